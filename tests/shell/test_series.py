"""`sfumato compare` and `sfumato realtime` on small tables."""

import json
import math
import os
import threading
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import SfumatoError
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import secure
from sfumato.core.state import SeriesState
from sfumato.series.realtime import Realtime
from sfumato.series.realtime_run import continued
from sfumato.series.series_compare import compare as python_compare
from sfumato.store.codec import from_bytes
from sfumato.store.outputs import locked
from tests.shell.running import Result, call, done, figures, litter, rows, spawn
from tests.shell.tables import write

TOKEN = "4711.5x"


@pytest.fixture
def series(tmp_path: Path) -> Path:
    return table(tmp_path / "counts.csv", values())


def values(length: int = 60, offset: float = 0.0) -> list[float]:
    return [offset + round(100 + 20 * math.sin(moment / 5), 1) for moment in range(length)]


def table(path: Path, cells: list[float] | list[object]) -> Path:
    return write(path, ["moment", "cnt"], list(enumerate(cells)))


def told(path: Path) -> NDArray[np.float64]:
    return np.array([float(row["cnt"]) for row in rows(path)])


def refused(result: Result, *words: object) -> None:
    """Exit code 2, one line that says what must hold, and nothing on standard output."""
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1
    assert "4711" not in result.err
    for word in words:
        assert str(word) in result.err


def compare(series: Path, *options: object) -> tuple[object, ...]:
    base = ("compare", series, "--value", "cnt", "--sensitivity", 1, "--epsilon", 2, "--runs", 2)
    return (*base, *options)


def realtime(series: Path, output: object, *options: object) -> tuple[object, ...]:
    base = ("realtime", series, "--value", "cnt", "--sensitivity", 1, "--epsilon", 2)
    return (*base, "-o", output, *options)


# compare ----------------------------------------------------------------------------------------


def test_compare_shows_a_table_of_every_method(series: Path) -> None:
    result = done(*compare(series, "--runs", 1))
    for name in ("realtime", "published", "fast*", "fourier*", "bd", "tree", "pegasus"):
        assert name in result.out
    for group in ("nothing told", "user level, pure", "user level, approximate"):
        assert f"{group}; 60 values, 1 simulations each" in result.out
    for group in ("w-event level, pure", "event level, pure", "event level, approximate"):
        assert group in result.out
    assert "what to do: of what hides all values of a person" in result.out
    assert "silence*" in result.out and "event-laplace" in result.out


def test_compare_tells_the_same_as_json(series: Path) -> None:
    document = done(*compare(series, "--json", "--methods", "realtime, gaussian,bd")).document
    assert document["values"] == 60
    assert {one["method"] for one in document["methods"]} == {"realtime", "gaussian", "bd"}
    keys = {"method", "says", "unit", "kind", "online", "helped", "epsilon", "delta"}
    for one in document["methods"]:
        assert set(one) == keys | {
            *("rmse", "rmse_error", "mae", "mae_error", "relative", "of_silence"),
        }
        assert one["epsilon"] <= 2.0
    same = python_compare(
        values(), sensitivity=1.0, epsilon=2.0, delta=1e-6, runs=2, methods=["bd", "gaussian"]
    )
    told = {one["method"]: one for one in document["methods"]}
    for outcome in same.outcomes:
        assert told[outcome.method] == asdict(outcome)
    assert document["silence"] == same.silence
    assert document["refused"] == {}


def test_compare_says_what_a_constant_beats(tmp_path: Path) -> None:
    source = table(tmp_path / "calm.csv", [5.0, 5.5] * 30)
    names = ("--methods", "gaussian,event-laplace,silence", "--epsilon", 0.5)
    result = done(*compare(source, *names))
    assert (
        "warning: no nearer than a constant, so no use here: gaussian, event-laplace" in result.err
    )


def test_compare_takes_a_weight_a_period_and_a_time(tmp_path: Path) -> None:
    week = [100 + 40 * (moment % 7 > 4) for moment in range(140)]
    days = [f"2011-{1 + moment // 28:02d}-{1 + moment % 28:02d}" for moment in range(140)]
    source = write(tmp_path / "w.csv", ["day", "cnt"], list(zip(days, week, strict=True)))
    names = ("--methods", "realtime,published", "--json", "--epsilon", 4)
    plain = done(*compare(source, *names)).document["methods"]
    weekly = done(*compare(source, *names, "--period", 7)).document["methods"]
    months = ("--period", "month", "--time", "day")
    done(*compare(source, *names, *months))
    refused(call(*compare(source, *names, "--period", "month")), "--time")
    refused(call(*compare(source, *names, "--period", "decade")), "--period", "hour-of-week")
    errors = [{o["method"]: o["rmse"] for o in found} for found in (plain, weekly)]
    assert errors[1]["realtime"] < 0.8 * errors[0]["realtime"]
    light = done(*compare(source, *names, "--weight", 0.05)).document["methods"]
    assert {o["method"]: o["helped"] for o in light}["published"] is False
    refused(call(*compare(source, "--methods", "published", "--weight", 2)), "--weight")


def test_compare_leaves_out_rows_without_a_value_when_told(tmp_path: Path) -> None:
    source = table(tmp_path / "gaps.csv", [1.0, "", 3.0, 4.0])
    names = ("--methods", "gaussian", "--json")
    assert done(*compare(source, *names, "--missing", "drop")).document["values"] == 3
    refused(call(*compare(source, *names)), "row 2", "--missing")
    for other in ("skip", "symbol", "guess"):
        refused(call(*compare(source, *names, "--missing", other)), "--missing")


def test_compare_looks_at_the_first_rows_alone(series: Path) -> None:
    options = ("--rows", 12, "--json", "--methods", "gaussian")
    assert done(*compare(series, *options)).document["values"] == 12


def test_compare_draws_a_picture(series: Path, tmp_path: Path) -> None:
    picture = tmp_path / "compare.png"
    done(*compare(series, "--methods", "realtime,laplace", "--plot", picture, "--quiet"))
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_compare_matches_variances(series: Path) -> None:
    names = ("--methods", "laplace,gaussian", "--json", "--runs", 20)
    errors = {
        one["method"]: one["rmse"]
        for one in done(*compare(series, *names, "--match", "variance")).document["methods"]
    }
    assert errors["laplace"] == pytest.approx(errors["gaussian"], rel=0.1)
    plain = {
        one["method"]: one["rmse"] for one in done(*compare(series, *names)).document["methods"]
    }
    assert plain["laplace"] > 1.3 * plain["gaussian"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--methods", "nobody"), "nobody"),
        (("--match", "luck"), "luck"),
        (("--epsilon", 0), "epsilon"),
        (("--epsilon", -1), "epsilon"),
        (("--delta", 0), "delta"),
        (("--sensitivity", 0), "sensitivity"),
        (("--runs", 0), "runs"),
        (("--value", "missing"), "missing"),
        (("--rows", 0), ""),
    ],
)
def test_compare_refuses_impossible_wishes(
    series: Path, options: tuple[object, ...], word: str
) -> None:
    refused(call(*compare(series, *options)), word)


@pytest.mark.parametrize("command", ["compare", "realtime"])
@pytest.mark.parametrize("bad", [TOKEN, "", "nan", "inf"])
def test_a_value_that_is_no_number_is_refused_with_its_row_and_unquoted(
    tmp_path: Path, command: str, bad: str
) -> None:
    source = table(tmp_path / "bad.csv", [1.0, 2.0, bad, 4.0])
    asked = compare(source) if command == "compare" else realtime(source, tmp_path / "out.csv")
    refused(call(*asked), "3")
    assert not (tmp_path / "out.csv").exists() and not litter(tmp_path)


@pytest.mark.parametrize("command", ["compare", "realtime"])
def test_an_empty_table_is_refused(tmp_path: Path, command: str) -> None:
    source = table(tmp_path / "empty.csv", [])
    asked = compare(source) if command == "compare" else realtime(source, tmp_path / "out.csv")
    refused(call(*asked))
    assert not (tmp_path / "out.csv").exists() and not litter(tmp_path)


# realtime ---------------------------------------------------------------------------------------


def test_realtime_releases_one_value_per_row(series: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    result = done(*realtime(series, output))
    assert told(output).shape == (60,)
    assert list(rows(output)[0]) == ["cnt"]
    assert "60 values by realtime" in result.err and "user level" in result.err
    assert "a person who may be in every value" in result.err
    assert np.abs(told(output) - values()).mean() < 40
    assert not np.any(told(output) == values())
    assert not litter(tmp_path)


@pytest.mark.parametrize("method", ["realtime", "laplace", "bd", "tree", "pegasus"])
def test_realtime_tells_its_guarantee_as_json(series: Path, tmp_path: Path, method: str) -> None:
    output = tmp_path / "out.csv"
    document = done(*realtime(series, output, "--method", method, "--json")).document
    assert document.pop("output") == str(output)
    assert document == figures(output)
    assert document["values"] == 60 and document["method"] == method
    assert 0 < document["epsilon"] <= 2.0 and document["delta"] <= 1e-6
    units = {"bd": "w-event level", "tree": "event level", "pegasus": "event level"}
    assert document["unit"] == units.get(method, "user level")


def test_realtime_writes_to_standard_output(series: Path) -> None:
    result = done(*realtime(series, "-"))
    lines = result.out.splitlines()
    assert lines[0] == "cnt" and len(lines) == 61
    assert all(math.isfinite(float(line)) for line in lines[1:])


def test_realtime_does_not_overwrite(series: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.csv"
    output.write_text("mine")
    refused(call(*realtime(series, output)), "out.csv", "second release")
    assert output.read_text() == "mine"


@pytest.mark.parametrize("method", ["fast", "fourier", "delayed-fourier", "tops", "topl"])
def test_realtime_refuses_methods_tuned_on_the_truth(
    series: Path, tmp_path: Path, method: str
) -> None:
    refused(call(*realtime(series, tmp_path / "out.csv", "--method", method)), method, "tuned")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--method", "nobody"), "nobody"),
        (("--epsilon", 0), "epsilon"),
        (("--epsilon", -2), "epsilon"),
        (("--delta", 0), "delta"),
        (("--sensitivity", 0), "sensitivity"),
        (("--value", "missing"), "missing"),
        (("--range", "1"), "--range"),
        (("--unit", "world"), "--unit"),
        (("--unit", "event", "--method", "bd"), "w-event level"),
        (("--unit", "user", "--method", "tree"), "event level"),
        (("--method", "published"), "weight"),
        (("--method", "bd", "--period", 7), "--method"),
        (("--period", "weekday"), "--period"),
        (("--period", 1), "period"),
        (("--keep", "moment"), "--independent"),
        (("--keep", "cnt"), "--keep"),
        (("--missing", "symbol"), "--missing"),
        (("--range", "a:b"), "--range"),
        (("--range", "120:80"), ""),
        (("--range", "nan:100"), ""),
        (("--method", "bd", "--window", 0), "window"),
    ],
)
def test_realtime_refuses_impossible_wishes(
    series: Path, tmp_path: Path, options: tuple[object, ...], word: str
) -> None:
    refused(call(*realtime(series, tmp_path / "out.csv", *options)), word)
    assert not (tmp_path / "out.csv").exists() and not litter(tmp_path)


def test_realtime_clamps_to_a_range_and_says_so(tmp_path: Path) -> None:
    source = table(tmp_path / "wide.csv", [50.0] * 10 + [1e9] * 3)
    output = tmp_path / "out.csv"
    result = done(*realtime(source, output, "--range", "0:100", "--epsilon", 40, "--method", "bd"))
    assert "3 values were clamped" in result.err
    assert told(output).max() <= 100 and told(output).min() >= 0


def test_realtime_clamps_what_leaves_as_well(tmp_path: Path) -> None:
    source = table(tmp_path / "few.csv", [0.0, 1.0] * 20)
    output = tmp_path / "out.csv"
    done(*realtime(source, output, "--range", "0:1", "--epsilon", 1, "--method", "gaussian"))
    assert set(told(output)) <= {0.0, 1.0} | set(told(output)[told(output) > 0])
    assert told(output).min() == 0.0 and told(output).max() == 1.0


@pytest.mark.parametrize(("unit", "most"), [("event", 3.0), ("user", 400.0)])
def test_a_unit_is_asked_for_and_said(series: Path, tmp_path: Path, unit: str, most: float) -> None:
    output = tmp_path / "out.csv"
    options = ("--unit", unit, "--method", "laplace")
    result = done(*realtime(series, output, *options))
    assert f"{unit} level" in result.err
    document = json.loads(Path(f"{output}.certificate.json").read_text())
    assert document["unit"] == f"{unit} level" and document["epsilon"] <= 2
    assert ("every value" in document["protects"]) == (unit == "user")
    assert np.abs(told(output) - values()).mean() < most
    assert document["cost"] == pytest.approx(math.sqrt(2) / 2 * (60 if unit == "user" else 1), 0.02)


def dated(tmp_path: Path, cells: list[object], **columns: list[object]) -> Path:
    days = [f"2011-{1 + moment // 28:02d}-{1 + moment % 28:02d}" for moment in range(len(cells))]
    rows_of = zip(days, cells, *columns.values(), strict=True)
    return write(tmp_path / "dated.csv", ["day", "cnt", *columns], list(rows_of))


def test_the_time_of_a_row_is_kept_and_said_to_be_public(tmp_path: Path) -> None:
    source = dated(tmp_path, list(values(30)), rain=["yes", "no"] * 15)
    output = tmp_path / "out.csv"
    result = done(*realtime(source, output, "--keep", "day"))
    assert list(rows(output)[0]) == ["day", "cnt"] and rows(output)[29]["day"] == "2011-02-02"
    assert "'day' leaves as it is: the time of a row is taken for public" in result.err
    refused(call(*realtime(source, tmp_path / "b.csv", "--keep", "day,rain")), "rain", "declared")
    both = ("--keep", "day,rain", "--independent", "rain")
    found = done(*realtime(source, tmp_path / "b.csv", *both, "--json")).document
    assert found["kept"] == ["day", "rain"]
    assert any("not checked: rain" in remark for remark in found["remarks"])


def test_rows_out_of_order_are_noticed(tmp_path: Path) -> None:
    pairs = [("2011-01-02", 1.0), ("2011-01-01", 2.0)]
    source = write(tmp_path / "back.csv", ["day", "cnt"], pairs)
    for options in (("--keep", "day"), ("--time", "day"), ("--time", "day", "--period", "weekday")):
        refused(call(*realtime(source, tmp_path / "out.csv", *options)), "row 2", "row above")
    worse = write(tmp_path / "no.csv", ["day", "cnt"], [(TOKEN, 1.0)])
    refused(call(*realtime(worse, tmp_path / "out.csv", "--time", "day")), "row 1", "date")


def test_a_period_by_the_calendar_is_the_period_in_turn(tmp_path: Path) -> None:
    """28 days are four weeks: the weekday of a row is its place in turn."""
    cells: list[object] = [100 + 40 * (moment % 7 > 4) for moment in range(28)]
    source, outputs = dated(tmp_path, cells), [tmp_path / "a.csv", tmp_path / "b.csv"]
    for output, period in zip(outputs, (7, "weekday"), strict=True):
        done(*realtime(source, output, "--seed", 3, "--time", "day", "--period", period))
    # Phases have other numbers and plans other coins, so that only the shape is compared.
    assert [told(output).shape for output in outputs] == [(28,), (28,)]
    documents = [json.loads(Path(f"{o}.certificate.json").read_text()) for o in outputs]
    assert [d["estimate"] for d in documents] == [
        "bank 1.0 of 7 phases",
        "bank 1.0 of 7 phases by weekday",
    ]


def test_missing_values_are_refused_dropped_or_let_pass(tmp_path: Path) -> None:
    source = dated(tmp_path, [50.0, "", 52.0, "nan", 51.0])
    refused(call(*realtime(source, tmp_path / "a.csv")), "row 2", "--missing")
    kept = ("--keep", "day", "--missing")
    result = done(*realtime(source, tmp_path / "b.csv", *kept, "drop"))
    assert [row["day"][-2:] for row in rows(tmp_path / "b.csv")] == ["01", "03", "05"]
    assert "2 rows without a value were left out" in result.err
    found = done(*realtime(source, tmp_path / "c.csv", *kept, "skip", "--json")).document
    cells = [row["cnt"] for row in rows(tmp_path / "c.csv")]
    assert [cell == "" for cell in cells] == [False, True, False, True, False]
    assert found["values"] == 3 and found["length"] == 5
    assert any("2 moments have no value" in remark for remark in found["remarks"])
    bd = ("--method", "bd", "--missing", "skip")
    refused(call(*realtime(source, tmp_path / "d.csv", *bd)), "--missing")
    first = dated(tmp_path, ["", 50.0, 52.0])
    done(*realtime(first, tmp_path / "e.csv", "--missing", "skip", "--period", 2))
    assert rows(tmp_path / "e.csv")[0]["cnt"] == ""


def test_a_release_that_a_constant_beats_is_called_so(tmp_path: Path) -> None:
    """Loudly to the owner, who knows the truth; to others as far as what leaves shows it."""
    source = table(tmp_path / "calm.csv", [50.0, 51.0] * 100)
    output = tmp_path / "out.csv"
    result = done(*realtime(source, output, "--epsilon", 0.1, "--seed", 3))
    assert "warning: a constant is nearer to the series: its true error is 0.5" in result.err
    document = json.loads(Path(f"{output}.certificate.json").read_text())
    assert any("a constant may be as near" in remark for remark in document["remarks"])
    assert "0.5," not in json.dumps(document)
    good = done(*realtime(table(tmp_path / "wide.csv", [0.0, 900.0] * 100), tmp_path / "g.csv"))
    assert "of a constant's (told to you alone)" in good.err and "may be as near" not in good.err


def test_realtime_draws_what_was_released(series: Path, tmp_path: Path) -> None:
    picture = tmp_path / "out.png"
    done(*realtime(series, tmp_path / "out.csv", "--plot", picture, "--quiet"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    refused(call(*realtime(series, tmp_path / "b.csv", "--plot", tmp_path / "x.txt")), "--plot")


def test_a_seed_warns_and_repeats(series: Path, tmp_path: Path) -> None:
    first, second, other = (tmp_path / f"{name}.csv" for name in "abc")
    result = done(*realtime(series, first, "--seed", 3))
    assert "warning" in result.err and "simulation" in result.err
    done(*realtime(series, second, "--seed", 3))
    done(*realtime(series, other, "--seed", 4))
    assert first.read_bytes() == second.read_bytes() != other.read_bytes()


def test_a_seed_does_not_come_with_a_key(series: Path, tmp_path: Path, key: Path) -> None:
    refused(call(*realtime(series, tmp_path / "out.csv", "--seed", 3, "--key-file", key)), "--seed")


def test_without_a_key_two_releases_differ(series: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    done(*realtime(series, first))
    done(*realtime(series, second))
    assert not np.any(told(first) == told(second))


@pytest.mark.parametrize("method", ["realtime", "gaussian", "laplace", "bd", "tree", "pegasus"])
def test_a_key_gives_the_same_answers_to_the_same_series(
    series: Path, tmp_path: Path, key: Path, method: str
) -> None:
    outputs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for output in outputs:
        done(*realtime(series, output, "--key-file", key, "--method", method))
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_key_gives_another_series_noise_of_its_own(tmp_path: Path, key: Path) -> None:
    """Two series that differ in one value: shared noise would show which, and by how much."""
    changed = values()
    changed[-1] += 1.0
    sources = [table(tmp_path / "s1.csv", values()), table(tmp_path / "s2.csv", changed)]
    outputs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for source, output in zip(sources, outputs, strict=True):
        done(*realtime(source, output, "--key-file", key, "--method", "gaussian"))
    noise = [told(output) - np.array(values()) for output in outputs]
    assert not np.any(noise[0][:-1] == noise[1][:-1])
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.5


@pytest.mark.parametrize("method", ["gaussian", "laplace"])
def test_a_key_gives_another_budget_noise_of_its_own(
    series: Path, tmp_path: Path, key: Path, method: str
) -> None:
    """The same coins at two budgets are the same noise at two sizes: solved for the values."""
    outputs = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for output, epsilon in zip(outputs, (2, 4), strict=True):
        options = ("--key-file", key, "--method", method, "--epsilon", epsilon)
        done(*realtime(series, output, *options))
    noise = [told(output) - np.array(values()) for output in outputs]
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.6


def test_help_teaches_by_example() -> None:
    assert "sfumato compare counts.csv" in done("compare", "--help").out
    assert "sfumato realtime counts.csv" in done("realtime", "--help").out


# Series that come in parts -----------------------------------------------------------------------

PARTS = ("--value", "cnt", "--sensitivity", 1, "--epsilon", 2, "--length", 60)


def test_a_series_in_parts_is_released_once_and_within_its_budget(tmp_path: Path) -> None:
    state = tmp_path / "year.state"
    for count, new in ((20, 20), (45, 25), (60, 15)):
        source = table(tmp_path / f"{count}.csv", values()[:count])
        output = tmp_path / f"out-{count}.csv"
        found = done("realtime", source, *PARTS, "--state", state, "-o", output, "--json").document
        assert (found["values"], len(told(output))) == (new, new)
        assert found["epsilon"] <= 2
    again = call("realtime", source, *PARTS, "--state", state, "-o", tmp_path / "more.csv")
    refused(again, "values after the first 60")
    longer = table(tmp_path / "longer.csv", values(61))
    refused(
        call("realtime", longer, *PARTS, "--state", state, "-o", tmp_path / "more.csv"),
        "at most 60 values",
    )
    assert not (tmp_path / "more.csv").exists()
    assert litter(tmp_path) == []


def test_the_state_of_a_simulation_is_not_continued_as_a_release(
    series: Path, tmp_path: Path
) -> None:
    part = table(tmp_path / "part.csv", values()[:10])
    for first, second in ((("--seed", 1), ()), ((), ("--seed", 1))):
        state = tmp_path / f"{len(first)}.state"
        done(
            "realtime", part, *PARTS, "--state", state, *first, "-o", tmp_path / f"{state.stem}.csv"
        )
        before = state.read_bytes()
        output = tmp_path / "second.csv"
        went_on = call("realtime", series, *PARTS, "--state", state, *second, "-o", output)
        assert went_on.code == 2 and "and for the same purpose" in went_on.err
        assert state.read_bytes() == before
        assert not output.exists()


def test_a_second_run_with_the_same_state_is_refused(series: Path, tmp_path: Path) -> None:
    state, output = tmp_path / "year.state", tmp_path / "out.csv"
    held, done_with = threading.Event(), threading.Event()

    def first() -> None:
        with locked(state):
            held.set()
            done_with.wait(60)

    other = threading.Thread(target=first)
    other.start()
    assert held.wait(60)
    try:
        busy = call("realtime", series, *PARTS, "--state", state, "-o", output)
    finally:
        done_with.set()
        other.join()
    assert busy.code == 2 and "year.state" in busy.err
    assert not output.exists() and not state.exists()
    done("realtime", series, *PARTS, "--state", state, "-o", output)


def test_another_process_with_the_same_state_is_refused(series: Path, tmp_path: Path) -> None:
    state, output = tmp_path / "year.state", tmp_path / "out.csv"
    run = ("realtime", series, *PARTS, "--state", state, "-o", output)
    with locked(state):
        found = spawn(*run)
    refused(found, "year.state")
    assert not output.exists() and not state.exists()


def test_threads_with_one_state_release_each_value_once(tmp_path: Path) -> None:
    method = Realtime.laplace(1.0, epsilon=1.0, length=60)
    state, released = tmp_path / "year.state", []

    def run() -> None:
        for count in range(10, 61, 10):
            with suppress(SfumatoError):
                so_far = [float(moment) for moment in range(count)]
                new, _ = continued(method, so_far, state, secure(), Purpose.RELEASE)
                released.append(len(new))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = from_bytes(state.read_bytes(), SeriesState)
    assert sum(released) == kept.time <= 60


def test_the_state_is_on_disk_before_a_value_leaves(
    series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And its folder: a power cut must not bring back the state before it."""
    state, seen, sync = tmp_path / "year.state", [], os.fsync

    def noted(handle: int) -> None:
        seen.append(os.readlink(f"/proc/self/fd/{handle}"))
        sync(handle)

    def left(*_: object, **__: object) -> None:
        names = [Path(path).name for path in seen]
        assert any("year.state" in name for name in names)
        assert seen[-1] == str(tmp_path)
        assert from_bytes(state.read_bytes(), SeriesState).time == 60
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr("sfumato.tables.columns.write_columns", left)
    run = ("realtime", series, *PARTS, "--state", state, "-o", tmp_path / "out.csv")
    lost = call(*run)
    assert lost.code != 0 and "the disk is full" in lost.err
    monkeypatch.undo()
    refused(call(*run), "values after the first 60")


def test_a_week_is_learnt_over_parts_with_gaps(tmp_path: Path) -> None:
    """Phases are those of the dates, and a moment that passed is not released later."""
    cells: list[object] = [100 + 40 * (moment % 7 > 4) for moment in range(28)]
    cells[9] = ""
    state, week = tmp_path / "year.state", ("--time", "day", "--keep", "day", "--period", "weekday")
    told_days: list[str] = []
    for count in (10, 20, 28):
        source, output = dated(tmp_path, cells[:count]), tmp_path / f"{count}.csv"
        options = ("--value", "cnt", "--sensitivity", 1, "--epsilon", 2, "--length", 28)
        gaps = ("--missing", "skip", "--state", state, "-o", output)
        done("realtime", source, *options, *week, *gaps)
        told_days += [row["day"] for row in rows(output)]
    assert told_days == [f"2011-01-{1 + moment:02d}" for moment in range(28)]
    assert rows(tmp_path / "10.csv")[9]["cnt"] == ""
    kept = from_bytes(state.read_bytes(), SeriesState)
    assert kept.time == 28 and kept.arrays["clock"] == 28.0


def test_a_state_goes_on_under_its_own_budget_only(series: Path, tmp_path: Path) -> None:
    state, part = tmp_path / "year.state", table(tmp_path / "part.csv", values()[:10])
    done("realtime", part, *PARTS, "--state", state, "-o", tmp_path / "first.csv")
    before = state.read_bytes()
    other = [3 if option == 2 else option for option in PARTS]
    refused(
        call("realtime", series, *other, "--state", state, "-o", tmp_path / "second.csv"),
        "state.plan must be the one it was begun with",
    )
    state.write_bytes(before[:-3])
    refused(call("realtime", series, *PARTS, "--state", state, "-o", tmp_path / "second.csv"))
    assert not (tmp_path / "second.csv").exists()


def test_parts_need_a_public_memory_and_no_key(series: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(b"0123456789abcdef")
    key.chmod(0o600)
    for extra in (("--method", "pegasus"), ("--key-file", key)):
        result = call(
            *("realtime", series, *PARTS, "--state", tmp_path / "s", *extra),
            *("-o", tmp_path / "o.csv", "--quiet"),
        )
        assert result.code == 2
        assert "--state" in result.err
        assert not (tmp_path / "o.csv").exists()


# Series with a ledger ----------------------------------------------------------------------------


def test_a_ledger_answers_each_day_once_and_an_audit_checks_it(tmp_path: Path) -> None:
    ledger = tmp_path / "year.ledger"
    days = ("--length", 60, "--time", "day", "--keep", "day", "--ledger", ledger)
    outputs = [tmp_path / name for name in ("a.csv", "b.csv")]
    for output, count in zip(outputs, (20, 30), strict=True):
        done(*realtime(dated(tmp_path, list(values(count))), output, *days))
    assert told(outputs[1])[:20].tolist() == told(outputs[0]).tolist()
    found = done("audit", outputs[1], "--ledger", ledger)
    assert "30 rows of the ledger: chain, states, charges and budget" in found.out
    assert "cannot be checked: the estimates" in found.out
    assert done("audit", outputs[0], "--json").document["passed"] is True
    assert "charges of" in done("ledger", "check", ledger).out
    outputs[1].write_text(outputs[1].read_text().replace("2011-01-02,", "2011-01-02,1"))
    assert call("audit", outputs[1], "--ledger", ledger).code == 1
    refused(call("audit", tmp_path / "dated.csv"), "--model")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--resume",), "--ledger"),
        (("--append",), "--ledger"),
        (("--event", "day"), "--ledger"),
        (("--ledger", "l", "--state", "s"), "--state"),
        (("--ledger", "l", "--resume"), "interrupted run"),
        (("--ledger", "l", "--method", "tree"), "--method"),
        (("--ledger", "l", "--resume", "--append"), "--append"),
    ],
)
def test_ledger_options_that_do_not_go_together_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[object, ...], word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    source = dated(tmp_path, list(values(10)))
    refused(call(*realtime(source, tmp_path / "out.csv", *options)), word)
    assert not (tmp_path / "out.csv").exists()


def test_events_and_resumed_rows_get_their_old_answers(tmp_path: Path) -> None:
    source = dated(tmp_path, list(values(12)), id=[f"e{row}" for row in range(12)])
    for how, again in ((("--event", "id"), ()), ((), ("--resume",))):
        ledger = ("--ledger", tmp_path / f"{len(how)}.ledger")
        first, second = tmp_path / f"{len(how)}a.csv", tmp_path / f"{len(how)}b.csv"
        done(*realtime(source, first, *how, *ledger))
        done(*realtime(source, second, *how, *ledger, *again))
        assert first.read_bytes() == second.read_bytes()
