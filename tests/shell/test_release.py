from pathlib import Path
from typing import Any

import pytest

from sfumato.models.stream_model import StreamModel
from sfumato.store import ledgered_run
from sfumato.store.files import load
from sfumato.stream.release_document import read_spec
from tests.shell.releasing import (
    COLUMNS,
    EVEN,
    FAST,
    LIVE,
    RULE,
    STEP,
    grouped,
    is_whole,
    released_rows,
)
from tests.shell.running import done, rows
from tests.shell.tables import FORMATS, PLACES, by_stream, read, table, write

# What comes out ----------------------------------------------------------------------------------


def test_every_row_is_answered_once_within_its_budget(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    report = done(
        "release", live, "-m", model, "--epsilon", 0.7, *STEP, "-o", private, "--json"
    ).document
    released = rows(private)
    assert list(released[0]) == COLUMNS
    assert [row["person"] for row in released] == [person for person, _ in LIVE]
    for stream in by_stream(released).values():
        assert [int(row["sequence"]) for row in stream] == list(range(len(stream)))
    assert {row["released"] for row in released} <= set(PLACES)
    assert all(0 <= float(row["sip"]) <= 0.7 for row in released)
    assert all(float(row["sip"]) <= float(row["ldp"]) <= 1.4 for row in released)
    sums = [sum(float(row["sip"]) for row in s) for s in by_stream(released).values()]
    is_whole(report, private, max(sums))


def test_a_release_that_tells_nothing_says_so(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    rule = ("release", live, "-m", model, *STEP)
    tiny = done(*rule, "--epsilon", 1e-9, "-o", tmp_path / "tiny.csv")
    assert "NOTHING TOLD" in tiny.err
    assert len({row["released"] for row in rows(tmp_path / "tiny.csv")}) == 1
    much = done(*rule, "--epsilon", 2, "-o", tmp_path / "much.csv")
    assert "NOTHING TOLD" not in much.err


@pytest.mark.parametrize("given", FORMATS)
@pytest.mark.parametrize("wanted", FORMATS)
def test_the_format_of_a_file_changes_nothing_but_its_looks(
    model: Path, tmp_path: Path, key: Path, given: str, wanted: str
) -> None:
    live, private = table(tmp_path / f"live.{given}", LIVE[:20]), tmp_path / f"private.{wanted}"
    plain = table(tmp_path / "plain.csv", LIVE[:20])
    done("release", live, "-m", model, *RULE, "--key-file", key, "-o", private)
    done("release", plain, "-m", model, *RULE, "--key-file", key, "-o", tmp_path / "same.csv")
    found = [{name: str(field) for name, field in row.items()} for row in read(private)]
    assert found == rows(tmp_path / "same.csv")


def test_the_rules_lie_beside_the_output(model: Path, tmp_path: Path) -> None:
    matrix = tmp_path / "far.csv"
    matrix.write_text("0,1,2,3\n1,0,1,2\n2,1,0,1\n3,2,1,0\n")
    live, private = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "private.csv"
    rule = (
        "--budget",
        5,
        "--window",
        3,
        *EVEN,
        "--ldp",
        4,
        "--loss",
        matrix,
        "--when-unknown",
        "repeat",
    )
    done("release", live, "-m", model, *rule, *FAST, "-o", private)
    spec = read_spec(tmp_path / "private.csv.plan.json")
    assert (spec.budget, spec.window, spec.ldp, spec.epsilon) == (5.0, 3, 4.0, None)
    assert (spec.method, spec.when_unknown) == ("randomized-response", "repeat")
    assert spec.loss == [[0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]]


def test_columns_may_have_other_names_than_at_fit(model: Path, tmp_path: Path) -> None:
    live = write(tmp_path / "live.csv", ["who", "extra", "where"], [("a", "?", PLACES[0])])
    private = tmp_path / "private.csv"
    done("release", live, "-m", model, *RULE, "--stream", "who", "--value", "where", "-o", private)
    assert [row["who"] for row in rows(private)] == ["a"]


def test_many_interleaved_streams_equal_one_stream_at_a_time(
    model: Path, tmp_path: Path, key: Path
) -> None:
    together = tmp_path / "together.csv"
    live = table(tmp_path / "live.csv", LIVE)
    rule = ("-m", model, "--epsilon", 1, *STEP, "--key-file", key)
    done("release", live, *rule, "-o", together)
    alone: dict[str, list[dict[str, Any]]] = {}
    for person in sorted({person for person, _ in LIVE}):
        own = table(tmp_path / f"{person}.csv", [row for row in LIVE if row[0] == person])
        done("release", own, *rule, "-o", tmp_path / f"{person}-private.csv")
        alone |= by_stream(rows(tmp_path / f"{person}-private.csv"))
    assert len(alone) == 3
    assert by_stream(rows(together)) == alone


@pytest.mark.parametrize("size", [1, 7])
def test_the_size_of_a_group_and_the_states_held_change_nothing(
    model: Path, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    run = ("release", live, "-m", model, *RULE, "--key-file", key)
    done(*run, "-o", tmp_path / "whole.csv")
    grouped(monkeypatch, size)
    monkeypatch.setattr(ledgered_run, "_STATES_HELD", 1)
    done(*run, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_bins_are_released_by_name(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", 10), ("a", "12.5"), ("b", 30.0), ("b", "2.9e1")])
    private = tmp_path / "private.csv"
    done("release", live, "-m", models / "bins.model", "--epsilon", 9, *STEP, "-o", private)
    assert {row["released"] for row in rows(private)} <= {"12.5", "17.5", "22.5", "27.5"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_cell_of_a_grid_is_released_with_its_centre(
    models: Path, tmp_path: Path, suffix: str
) -> None:
    points = [("a", 10, -5), ("a", 30, -15), ("b", 19.5, -7.25), ("a", 11.0, "-6")]
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], points)
    private = tmp_path / f"private.{suffix}"
    rule = ("--epsilon", 1, *STEP, "--loss", "euclidean")
    done("release", live, "-m", models / "grid.model", *rule, "-o", private)
    encoding = load(models / "grid.model")
    assert isinstance(encoding, StreamModel)
    alphabet = encoding.chain.alphabet
    assert list(read(private)[0]) == [*COLUMNS[:3], "x", "y", *COLUMNS[3:]]
    for row in read(private):
        assert alphabet.coordinates is not None
        centre = alphabet.coordinates[alphabet.index(row["released"])]
        assert [float(row["x"]), float(row["y"])] == centre.tolist()


# Forms of a budget -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_horizon_keeps_the_sum_within_the_budget(
    model: Path, tmp_path: Path, key: Path, method: str
) -> None:
    rule = ("--budget", 4, "--horizon", 12, *EVEN, "--method", method, "--key-file", key)
    values = [PLACES[i // 3 % 4] for i in range(12)]
    spent = sum(float(row["sip"]) for row in released_rows(tmp_path, model, values, *rule))
    assert 2 < spent <= 4 + 1e-12


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_window_keeps_every_window_within_the_budget(
    model: Path, tmp_path: Path, key: Path, method: str
) -> None:
    rule = ("--budget", 2, "--window", 4, *EVEN, "--method", method, "--key-file", key)
    values = [PLACES[i // 4 % 4] for i in range(30)]
    sips = [float(row["sip"]) for row in released_rows(tmp_path, model, values, *rule)]
    windows = [sum(sips[i : i + 4]) for i in range(len(sips) - 3)]
    assert 1 < max(windows) <= 2 + 1e-12
    assert sum(sips) > 2


def test_a_cap_on_the_model_free_leakage_is_kept(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i // 4 % 4]) for i in range(10)])
    rule = ("--budget", 9, "--horizon", 10, *EVEN, "--ldp", 5, "--key-file", key)
    done("release", live, "-m", model, *rule, "-o", tmp_path / "private.csv")
    spent = sum(float(row["ldp"]) for row in rows(tmp_path / "private.csv"))
    assert 2 < spent <= 5 + 1e-12


# What leaves instead -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "outcomes"),
    [
        ("suppress", ["suppressed", "released", "suppressed"]),
        ("repeat", ["suppressed", "released", "repeated"]),
        ("substitute", ["released", "released", "released"]),
    ],
)
def test_an_unknown_value_is_answered_by_the_rule(
    model: Path, tmp_path: Path, policy: str, outcomes: list[str]
) -> None:
    live = table(tmp_path / "live.csv", [("a", "nowhere"), ("a", PLACES[0]), ("a", "nowhere")])
    private = tmp_path / "private.csv"
    done("release", live, "-m", model, *RULE, "--when-unknown", policy, "-o", private)
    released = rows(private)
    assert [row["outcome"] for row in released] == outcomes
    for row in released:
        if row["outcome"] == "released":
            assert row["released"] in PLACES
            assert float(row["sip"]) > 0
        else:
            assert (float(row["sip"]), float(row["ldp"])) == (0.0, 0.0)
            expected = released[1]["released"] if row["outcome"] == "repeated" else ""
            assert row["released"] == expected
    assert "nowhere" not in private.read_text()


@pytest.mark.parametrize(
    ("policy", "outcome"), [("suppress", "suppressed"), ("repeat", "repeated")]
)
def test_a_budget_that_is_gone_is_answered_by_the_rule(
    model: Path, tmp_path: Path, policy: str, outcome: str
) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i % 4]) for i in range(6)])
    private = tmp_path / "private.csv"
    rule = ("--budget", 3, "--horizon", 4, *EVEN, "--when-exhausted", policy)
    done("release", live, "-m", model, *rule, *FAST, "-o", private)
    *kept, late, last = rows(private)
    assert [row["outcome"] for row in kept] == ["released"] * 4
    for row in (late, last):
        assert row["outcome"] == outcome
        assert float(row["sip"]) == 0.0
        assert row["released"] == (kept[-1]["released"] if policy == "repeat" else "")


def test_a_suppressed_value_is_empty_in_every_format(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", 7), ("a", 1)])
    for suffix in FORMATS:
        private = tmp_path / f"private.{suffix}"
        rule = ("--when-unknown", "suppress")
        done("release", live, "-m", models / "levels.model", *RULE, *rule, "-o", private)
        first, second = read(private)
        assert first["released"] in (None, "")
        assert str(second["released"]) in {"1", "2", "3"}
        if suffix != "csv":
            assert isinstance(second["released"], int)
