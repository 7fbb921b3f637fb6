"""`sfumato release --batch`: values that wait for each other, from the table to the audit."""

import csv
import json
import shutil
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from sfumato.models.stream_model import StreamModel
from sfumato.store import ledgered_run
from sfumato.store.files import load
from sfumato.stream import row_run
from sfumato.stream.release_document import read_spec
from sfumato.stream.release_spec import ReleaseSpec
from tests.shell.releasing import (
    LIVE,
    RULE,
    Rows,
    another,
    audited,
    grouped,
    is_whole,
    ledger_of,
    refused,
    released_rows,
    rewritten,
    write_rules,
)
from tests.shell.running import Result, call, done, litter, piped, rows, spawn
from tests.shell.tables import FORMATS, PLACES, by_stream, read, table, walk, write
from tests.shell.test_interrupted import TROUBLE

COLUMNS = ["person", "sequence", "batch", "released", "outcome", "sip", "ldp"]
RAW = "raw-value-that-nobody-may-read"
CHUNK = 8
"""Rows that `TROUBLE` reads at a time."""
Values = Iterable[tuple[str, str]]


def fast(width: int) -> tuple[object, ...]:
    """A rule that needs no solver."""
    return (*RULE, "--batch", width)


def spec_of(width: int, **options: Any) -> ReleaseSpec:
    return ReleaseSpec(epsilon=1.0, method="randomized-response", batch=width, **options)


def streams_of(path: Path) -> dict[str, Rows]:
    """Released rows of each stream in the order in which they left."""
    return by_stream(rows(path))


def batches_of(stream: Rows) -> list[Rows]:
    """Rows that belong to one batch, by what the table says."""
    found: dict[str, Rows] = {}
    for row in stream:
        found.setdefault(row["batch"], []).append(row)
    return list(found.values())


def counted(values: Values) -> dict[str, int]:
    counts: dict[str, int] = {}
    for person, _ in values:
        counts[person] = counts.get(person, 0) + 1
    return counts


def answered(values: Values, width: int) -> int:
    """Rows whose batch is complete when these have come."""
    return sum(count // width * width for count in counted(values).values())


def leaving(values: Values, width: int) -> list[tuple[str, int]]:
    """Stream and sequence number of every row, in the order in which it may leave."""
    waiting: dict[str, list[int]] = {}
    seen: dict[str, int] = {}
    order = []
    for person, _ in values:
        waiting.setdefault(person, []).append(seen.get(person, 0))
        seen[person] = seen.get(person, 0) + 1
        if len(waiting[person]) == width:
            order += [(person, sequence) for sequence in waiting.pop(person)]
    return order + [(person, sequence) for person, late in waiting.items() for sequence in late]


def overlapping(stream: Rows, width: int) -> list[float]:
    """For every window of so many values: what the batches leaked that have a value in it."""
    spans = [
        (int(batch[0]["sequence"]), int(batch[-1]["sequence"]), sum(float(r["sip"]) for r in batch))
        for batch in batches_of(stream)
    ]
    return [
        sum(leaked for first, last, leaked in spans if first < start + width and last >= start)
        for start in range(max(1, len(stream) - width + 1))
    ]


# What comes out ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "method"), [(1, "optimal"), (2, "optimal"), (3, "calibrated")])
def test_every_row_is_answered_once_within_the_budget_of_its_batch(
    model: Path, tmp_path: Path, width: int, method: str
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    rule = ("--epsilon", 0.7, "--method", method, "--batch", width)
    report = done("release", live, "-m", model, *rule, "-o", private, "--json").document
    told = rows(private)
    assert list(told[0]) == COLUMNS
    assert {row["released"] for row in told} <= set(PLACES)
    assert {row["outcome"] for row in told} == {"released"}
    streams = streams_of(private)
    assert {name: len(stream) for name, stream in streams.items()} == counted(LIVE)
    for stream in streams.values():
        assert [int(row["sequence"]) for row in stream] == list(range(len(stream)))
        batches = batches_of(stream)
        assert [len(b) for b in batches[:-1]] == [width] * (len(batches) - 1)
        assert 1 <= len(batches[-1]) <= width
        for batch in batches:
            assert {row["batch"] for row in batch} == {batch[0]["sequence"]}
            *before, last = batch
            assert all(float(row[name]) == 0.0 for row in before for name in ("sip", "ldp"))
            assert 0 <= float(last["sip"]) <= 0.7 * len(batch)
            assert float(last["sip"]) <= float(last["ldp"]) <= 1.4 * len(batch)
    sums = [sum(float(row["sip"]) for row in stream) for stream in streams.values()]
    assert max(sums) > 0.35 * min(map(len, streams.values()))
    is_whole(report, private, max(sums))


@pytest.mark.parametrize("width", [2, 3, 7])
def test_a_batch_leaves_when_its_last_row_has_come_and_the_rest_at_the_end(
    model: Path, tmp_path: Path, width: int
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    rule = ("--epsilon", 1, "--batch", width, "--loss", "histogram")
    done("release", live, "-m", model, *rule, "-o", private)
    told = [(row["person"], int(row["sequence"])) for row in rows(private)]
    assert told == leaving(LIVE, width)


def test_a_last_batch_is_as_short_as_it_must_be(model: Path, tmp_path: Path) -> None:
    for count in range(1, 8):
        live = table(tmp_path / "live.csv", [("a", PLACES[i % 4]) for i in range(count)])
        private = tmp_path / f"private{count}.csv"
        done("release", live, "-m", model, *fast(3), "-o", private)
        lengths = [len(batch) for batch in batches_of(rows(private))]
        assert lengths == [3] * (count // 3) + [count % 3] * (count % 3 > 0)


@pytest.mark.parametrize("size", [1, 4, 7])
def test_the_size_of_a_group_and_the_states_held_change_nothing(
    model: Path, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    run = ("release", live, "-m", model, *fast(3), "--key-file", key)
    done(*run, "-o", tmp_path / "whole.csv")
    grouped(monkeypatch, size)
    monkeypatch.setattr(ledgered_run, "_STATES_HELD", 1)
    monkeypatch.setattr(row_run, "_FLUSHED", 1)
    ledger = tmp_path / "city.ledger"
    done(*run, "--ledger", ledger, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_many_interleaved_streams_equal_one_stream_at_a_time(
    model: Path, tmp_path: Path, key: Path
) -> None:
    live, together = table(tmp_path / "live.csv", LIVE), tmp_path / "together.csv"
    rule = ("-m", model, "--epsilon", 1, "--batch", 2, "--key-file", key)
    done("release", live, *rule, "-o", together)
    for person, stream in streams_of(together).items():
        own = table(tmp_path / "own.csv", [row for row in LIVE if row[0] == person])
        done("release", own, *rule, "-o", tmp_path / "alone.csv")
        assert rows(tmp_path / "alone.csv") == stream


@pytest.mark.parametrize(
    ("given", "wanted"),
    [("csv", "jsonl"), ("jsonl", "parquet"), ("parquet", "arrow"), ("arrow", "csv")],
)
def test_the_format_of_a_file_changes_nothing_but_its_looks(
    model: Path, tmp_path: Path, key: Path, given: str, wanted: str
) -> None:
    live, private = table(tmp_path / f"live.{given}", LIVE[:20]), tmp_path / f"private.{wanted}"
    plain = table(tmp_path / "plain.csv", LIVE[:20])
    done("release", live, "-m", model, *fast(3), "--key-file", key, "-o", private)
    done("release", plain, "-m", model, *fast(3), "--key-file", key, "-o", tmp_path / "same.csv")
    found = [{name: str(field) for name, field in row.items()} for row in read(private)]
    assert found == rows(tmp_path / "same.csv")
    if wanted != "csv":
        assert all(isinstance(row["batch"], int) for row in read(private))
    done("audit", private, "-m", model, "--against", live)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_cells_of_a_grid_are_released_with_their_centres(
    models: Path, tmp_path: Path, suffix: str
) -> None:
    points = [("a", 10, -5), ("a", 30, -15), ("b", 19.5, -7.25), ("a", 11.0, "-6"), ("a", 12, -6)]
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], points)
    private, grid = tmp_path / f"private.{suffix}", models / "grid.model"
    rule = ("--epsilon", 1, "--loss", "euclidean", "--batch", 2)
    done("release", live, "-m", grid, *rule, "-o", private)
    encoding = load(grid)
    assert isinstance(encoding, StreamModel)
    alphabet = encoding.chain.alphabet
    assert alphabet.coordinates is not None
    assert list(read(private)[0]) == [*COLUMNS[:4], "x", "y", *COLUMNS[4:]]
    for row in read(private):
        centre = alphabet.coordinates[alphabet.index(row["released"])]
        assert [float(row["x"]), float(row["y"])] == centre.tolist()
    done("audit", private, "-m", grid, "--against", live)


def test_the_rules_beside_the_output_name_the_length_of_batches(
    model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "private.csv"
    done("release", live, "-m", model, *fast(3), "--loss", "histogram", "-o", private)
    spec = read_spec(tmp_path / "private.csv.plan.json")
    assert (spec.batch, spec.loss, spec.epsilon) == (3, "histogram", 1.0)
    done("release", live, "-m", model, *RULE, "-o", tmp_path / "single.csv")
    assert read_spec(tmp_path / "single.csv.plan.json").batch is None


def test_a_stream_column_called_batch_is_refused(tmp_path: Path) -> None:
    live = write(tmp_path / "live.csv", ["batch", "place"], LIVE)
    done("fit", live, "--stream", "batch", "--value", "place", "-o", tmp_path / "m")
    private = tmp_path / "private.csv"
    said = refused(live, "-m", tmp_path / "m", *fast(2), output=private)
    assert "batch" in said and "output column" in said
    done("release", live, "-m", tmp_path / "m", *RULE, "-o", private)


@pytest.mark.parametrize("width", [0, -1])
def test_a_batch_has_at_least_one_value(model: Path, tmp_path: Path, width: int) -> None:
    live = table(tmp_path / "live.csv", LIVE[:5])
    said = refused(live, "-m", model, *fast(width), output=tmp_path / "private.csv")
    assert f"--batch must be a whole number of at least 1; got {width}" in said
    target = tmp_path / "own.policy"
    given = ("--epsilon", 1, "--batch", width, "--steps", 32, "-o", target)
    result = call("compile", "-m", model, *given)
    assert (result.code, target.exists()) == (2, False)
    assert len(result.err.splitlines()) == 1


# Forms of a budget -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_horizon_keeps_the_sum_of_every_stream_within_the_budget(
    model: Path, tmp_path: Path, key: Path, method: str
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    steps = max(counted(LIVE).values())
    rule = ("--budget", 6, "--horizon", steps, "--batch", 2, "--method", method, "--key-file", key)
    done("release", live, "-m", model, *rule, "-o", tmp_path / "private.csv")
    for stream in streams_of(tmp_path / "private.csv").values():
        assert 2 < sum(float(row["sip"]) for row in stream) <= 6 + 1e-12


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
@pytest.mark.parametrize(("width", "window"), [(2, 5), (3, 2), (3, 4)])
def test_every_batch_with_a_value_in_a_window_counts_in_it(
    model: Path, tmp_path: Path, key: Path, method: str, width: int, window: int
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    rule = ("--budget", 2, "--window", window, "--batch", width, "--method", method)
    private = tmp_path / "private.csv"
    done("release", live, "-m", model, *rule, "--key-file", key, "-o", private)
    worst = {name: max(overlapping(s, window)) for name, s in streams_of(private).items()}
    assert all(1 < value <= 2 + 1e-12 for value in worst.values())
    assert all(sum(float(row["sip"]) for row in s) > 2 for s in streams_of(private).values())
    report = done("audit", private, "-m", model, "--json").document
    for name, stream in report["streams"].items():
        assert stream["worst_window"] == pytest.approx(worst[name])


def test_a_cap_on_the_model_free_leakage_is_kept(model: Path, tmp_path: Path) -> None:
    rule = ("--budget", 9, "--horizon", 10, "--ldp", 5, "--batch", 2)
    values = [PLACES[i // 4 % 4] for i in range(10)]
    spent = sum(float(row["ldp"]) for row in released_rows(tmp_path, model, values, *rule))
    assert 2 < spent <= 5 + 1e-12


@pytest.mark.parametrize(
    ("policy", "outcome"), [("suppress", "suppressed"), ("repeat", "repeated")]
)
def test_a_budget_that_is_gone_is_answered_by_the_rule(
    model: Path, tmp_path: Path, policy: str, outcome: str
) -> None:
    rule = ("--budget", 3, "--horizon", 4, "--batch", 2, "--when-exhausted", policy)
    told = released_rows(tmp_path, model, [PLACES[i % 4] for i in range(9)], *rule)
    assert [row["outcome"] for row in told] == ["released"] * 4 + [outcome] * 5
    for row in told[4:]:
        assert (float(row["sip"]), float(row["ldp"])) == (0.0, 0.0)
        assert row["released"] == (told[3]["released"] if policy == "repeat" else "")
    assert [row["batch"] for row in told] == ["0", "0", "2", "2", "4", "4", "6", "6", "8"]
    done("audit", tmp_path / "private.csv", "-m", model, "--against", tmp_path / "live.csv")


def test_a_budget_that_is_gone_is_refused_by_row_and_what_was_drawn_is_kept(
    model: Path, tmp_path: Path
) -> None:
    live, ledger = table(tmp_path / "live.csv", [("a", p) for p in PLACES * 2]), tmp_path / "l"
    rule = ("--budget", 3, "--horizon", 4, "--batch", 2, "--ledger", ledger)
    said = refused(live, "-m", model, *rule, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 6: releasing event 4 of stream 'a' would cost")
    kept, spent = ledger_of(ledger, model, ReleaseSpec(budget=3.0, horizon=4, batch=2))
    assert [answer.sequence for answer in kept] == [0, 1, 2, 3]
    assert spent["a"].leakage <= 3


# What leaves instead -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "outcomes"),
    [
        ("suppress", ["suppressed", "released", "suppressed", "suppressed"]),
        ("repeat", ["suppressed", "released", "repeated", "repeated"]),
        ("substitute", ["released", "released", "released", "released"]),
    ],
)
def test_an_unknown_value_decides_for_its_batch(
    model: Path, tmp_path: Path, policy: str, outcomes: list[str]
) -> None:
    known = PLACES[0]
    values = [RAW, known, known, known, known, RAW, RAW]
    live, private = table(tmp_path / "live.csv", [("a", v) for v in values]), tmp_path / "p.csv"
    run = ("release", live, "-m", model, *fast(2), "--when-unknown", policy, "-o", private)
    result = done(*run)
    told = rows(private)
    assert [row["outcome"] for row in told] == [o for o in outcomes for _ in range(2)][:7]
    for batch in batches_of(told):
        if batch[0]["outcome"] == "released":
            assert {row["released"] for row in batch} <= set(PLACES)
            assert float(batch[-1]["sip"]) > 0
        else:
            assert all((float(row["sip"]), float(row["ldp"])) == (0.0, 0.0) for row in batch)
            expected = told[3]["released"] if batch[0]["outcome"] == "repeated" else ""
            assert {row["released"] for row in batch} == {expected}
    assert RAW not in private.read_text() + result.out + result.err
    report = done("audit", private, "-m", model, "--against", live, "--json").document
    assert report["withheld"] == sum(row["outcome"] != "released" for row in told)


@pytest.mark.parametrize("place", [0, 1, 5, 6])
def test_an_unknown_value_is_refused_by_row_and_never_quoted(
    model: Path, tmp_path: Path, place: int
) -> None:
    values = [PLACES[i % 4] for i in range(7)]
    values[place] = RAW
    live, ledger = table(tmp_path / "live.csv", [("a", v) for v in values]), tmp_path / "a.ledger"
    private = tmp_path / "private.csv"
    said = refused(live, "-m", model, *fast(3), "--ledger", ledger, output=private)
    rule = "value must be one of the 4 symbols of the alphabet of the model; nothing leaves for it"
    assert said.startswith(f"sfumato: {live}, row {place + 1}: {rule}. To go on: --when-unknown ")
    # A refusal before the first answer leaves no ledger.
    assert ledger.exists() is (place >= 3)
    assert place < 3 or RAW.encode() not in ledger.read_bytes()
    kept, _ = ledger_of(ledger, model, spec_of(3))
    assert [answer.sequence for answer in kept] == list(range(place // 3 * 3))


def test_a_value_that_waits_is_not_in_the_ledger(model: Path, tmp_path: Path) -> None:
    """Not as text in any page, and not as an event."""
    ledger = tmp_path / "city.ledger"
    run = ("release", "-", "-m", model, *fast(3), "--when-unknown", "suppress", "--ledger", ledger)
    with piped(*run, "-o", "-") as pipe:
        pipe.send("person,place")
        for value in (RAW, PLACES[0]):
            pipe.send(f"a,{value}")
        for value in PLACES[:3]:
            pipe.send(f"b,{value}")
        assert [pipe.receive().split(",")[0] for _ in range(4)] == ["person", "b", "b", "b"]
        pipe.process.kill()
        pipe.process.wait()
    for path in tmp_path.iterdir():
        assert RAW.encode() not in path.read_bytes()
    kept, _ = ledger_of(ledger, model, spec_of(3, when_unknown="suppress"))
    assert {answer.stream for answer in kept} == {"b"}


# Twice with one ledger ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [("--epsilon", 1, "--batch", 2), fast(3)])
def test_a_second_run_gives_the_same_answers_and_draws_nothing(
    model: Path, tmp_path: Path, rule: tuple[object, ...]
) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "city.ledger"
    width = 2 if len(rule) == 4 else 3
    spec = ReleaseSpec(epsilon=1.0, batch=2) if width == 2 else spec_of(3)
    run = ("release", live, "-m", model, *rule, "--ledger", ledger)
    done(*run, "-o", tmp_path / "first.csv")
    before = ledger_of(ledger, model, spec)
    report = done(*run, "--resume", "-o", tmp_path / "second.csv", "--json").document
    assert (report["rows"], report["repeated"], report["waiting"]) == (len(LIVE), len(LIVE), 0)
    assert streams_of(tmp_path / "second.csv") == streams_of(tmp_path / "first.csv")
    assert ledger_of(ledger, model, spec) == before
    done("audit", tmp_path / "second.csv", "-m", model, "--ledger", ledger, "--against", live)


def test_a_table_that_grew_begins_new_batches_where_it_grew(model: Path, tmp_path: Path) -> None:
    ledger, live = tmp_path / "city.ledger", table(tmp_path / "live.csv", LIVE[:25])
    run = ("-m", model, *fast(3), "--ledger", ledger)
    done("release", live, *run, "-o", tmp_path / "first.csv")
    table(live, LIVE)
    more = ("--resume", "-o", tmp_path / "second.csv", "--json")
    report = done("release", live, *run, *more).document
    assert (report["rows"], report["repeated"]) == (len(LIVE), 25)
    first, second = streams_of(tmp_path / "first.csv"), streams_of(tmp_path / "second.csv")
    for name, stream in second.items():
        old = len(first[name])
        assert stream[:old] == first[name]
        began = [int(row["batch"]) for row in stream[old:]]
        assert began == [old + 3 * (i // 3) for i in range(len(began))]
    done("audit", tmp_path / "second.csv", "-m", model, "--ledger", ledger, "--against", live)


def test_a_ledger_of_another_width_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:9]), tmp_path / "city.ledger"
    done("release", live, "-m", model, *fast(2), "--ledger", ledger, "-o", tmp_path / "a.csv")
    kept = ledger_of(ledger, model, spec_of(2))
    for other in (RULE, fast(1), fast(3)):
        said = refused(live, "-m", model, *other, "--ledger", ledger, output=tmp_path / "b.csv")
        assert said.startswith(f"sfumato: {ledger}: this ledger was begun with another")
    assert ledger_of(ledger, model, spec_of(2)) == kept
    single = tmp_path / "single.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", single, "-o", tmp_path / "a.csv")
    said = refused(live, "-m", model, *fast(2), "--ledger", single, output=tmp_path / "b.csv")
    assert "this ledger was begun with another" in said


@pytest.mark.parametrize("group", [1, 2, 100])
@pytest.mark.parametrize("second", [2, 3, 5])
def test_an_event_id_twice_is_refused_also_while_it_waits(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int, second: int
) -> None:
    grouped(monkeypatch, group)
    records = [(f"e{i}", "a", PLACES[i % 4]) for i in range(6)]
    records[second - 1] = ("e0", "a", PLACES[0])
    live = write(tmp_path / "live.csv", ["id", "person", "place"], records)
    given = ("-m", model, *fast(3), "--event", "id", "--ledger", tmp_path / "city.ledger")
    said = refused(live, *given, output=tmp_path / "private.csv")
    rule = "an event id must occur once; it stands in row 1 too"
    assert said == f"sfumato: {live}, row {second}: {rule}"


def test_an_event_gets_the_same_answer_from_any_source(model: Path, tmp_path: Path) -> None:
    records = [(f"e{i}", person, place) for i, (person, place) in enumerate(LIVE[:20])]
    run = ("-m", model, *fast(3), "--event", "id", "--ledger", tmp_path / "city.ledger")
    names = ["id", "person", "place"]
    monday = write(tmp_path / "monday.csv", names, records[:12])
    tuesday = write(tmp_path / "tuesday.csv", names, records[6:])
    done("release", monday, *run, "-o", tmp_path / "first.csv")
    report = done("release", tuesday, *run, "-o", tmp_path / "second.csv", "--json").document
    first = {row["event"]: row for row in rows(tmp_path / "first.csv")}
    second = {row["event"]: row for row in rows(tmp_path / "second.csv")}
    assert list(rows(tmp_path / "first.csv")[0]) == ["event", *COLUMNS]
    assert set(first) == {f"e{i}" for i in range(12)}
    assert set(second) == {f"e{i}" for i in range(6, 20)}
    assert all(first[f"e{i}"] == second[f"e{i}"] for i in range(6, 12))
    assert (report["rows"], report["repeated"]) == (14, 6)


# Killed and interrupted --------------------------------------------------------------------------


def commits(values: list[tuple[str, str]], width: int) -> list[int]:
    """Rows in the ledger after each commit of a run that reads `CHUNK` rows at a time."""
    kept = [answered(values[:end], width) for end in range(CHUNK, len(values) + CHUNK, CHUNK)]
    moved = [now for before, now in zip([0, *kept], kept, strict=False) if now > before]
    return [*moved, len(values)]


@pytest.mark.parametrize(
    ("point", "number", "committed"),
    [
        ("before commit", 3, 2),
        ("at the end of commit", 5, 1),
        ("before write", 3, 3),
        ("before replace", 1, -1),
    ],
)
def test_a_killed_run_resumes_with_the_rows_that_waited(
    model: Path, tmp_path: Path, key: Path, point: str, number: int, committed: int
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    whole, ledger = tmp_path / "whole.csv", tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *fast(4), "--key-file", key)
    done(*run, "--ledger", tmp_path / "whole.ledger", "-o", whole)
    killed = spawn(
        *(point, number, int(signal.SIGKILL), *run, "--ledger", ledger, "-o", private),
        script=TROUBLE,
    )
    assert killed.code == -signal.SIGKILL
    assert not private.exists()
    report = done(*run, "--ledger", ledger, "--resume", "-o", private, "--json").document
    kept = [0, *commits(LIVE, 4)][committed]
    assert (report["rows"], report["repeated"], report["waiting"]) == (len(LIVE), kept, 0)
    assert streams_of(private) == streams_of(whole)
    assert ledger_of(ledger, model, spec_of(4)) == ledger_of(
        tmp_path / "whole.ledger", model, spec_of(4)
    )
    assert litter(tmp_path) == []
    done("audit", private, "-m", model, "--ledger", ledger, "--against", live)


@pytest.mark.parametrize(("kind", "wait"), [(signal.SIGTERM, ()), (signal.SIGINT, ("--wait", 600))])
def test_an_interrupted_run_is_complete_as_far_as_it_goes_and_counts_what_waited(
    model: Path, tmp_path: Path, key: Path, kind: signal.Signals, wait: tuple[object, ...]
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    whole, ledger = tmp_path / "whole.csv", tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *fast(4), "--key-file", key, *wait)
    done(*run, "-o", whole)
    stopped = spawn(
        *("after write", 3, int(kind), *run, "--ledger", ledger, "-o", private),
        script=TROUBLE,
    )
    assert stopped.code == 130
    came = 3 * CHUNK
    kept = answered(LIVE[:came], 4)
    held = f", {came - kept} rows waited for their batch; add --resume to go on\n"
    assert stopped.err.endswith("sfumato: interrupted; what was answered is complete" + held)
    assert 0 < kept < came
    assert rows(private) == rows(whole)[:kept]
    assert litter(tmp_path) == []
    audit = done("audit", private, "-m", model, "--ledger", ledger, "--json").document
    assert (audit["passed"], audit["rows"]) == (True, kept)
    report = done(*run, "--ledger", ledger, "--resume", "-o", private, "--json").document
    assert (report["rows"], report["repeated"]) == (len(LIVE), kept)
    assert streams_of(private) == streams_of(whole)


@pytest.mark.parametrize(("kind", "wait"), [(signal.SIGTERM, ()), (signal.SIGINT, ("--wait", 600))])
def test_a_pipe_that_waits_for_input_is_interrupted_at_once(
    model: Path, tmp_path: Path, kind: signal.Signals, wait: tuple[object, ...]
) -> None:
    ledger = tmp_path / "city.ledger"
    run = ("release", "-", "-m", model, *fast(2), *wait, "--ledger", ledger, "-o", "-")
    with piped(*run) as pipe:
        pipe.send("person,place")
        for place in PLACES[:3]:
            pipe.send(f"a,{place}")
        told = [pipe.receive().split(",") for _ in range(3)]
        # The third row was read once a whole batch after it has left.
        for place in PLACES[:2]:
            pipe.send(f"b,{place}")
        assert [pipe.receive().split(",")[0] for _ in range(2)] == ["b", "b"]
        pipe.process.send_signal(kind)
        assert pipe.process.wait(timeout=60) == 130
        _, rest, said = pipe.ended()
    assert rest == ""
    assert "interrupted; what was answered is complete, 1 rows waited for their batch" in said
    assert "Traceback" not in said and "Fatal" not in said
    kept, _ = ledger_of(ledger, model, spec_of(2))
    mine = [answer for answer in kept if answer.stream == "a"]
    assert [event.released for event in mine] == [row[3] for row in told[1:]]


# A live pipe -------------------------------------------------------------------------------------


def test_a_pipe_without_patience_tells_whole_batches_alone(model: Path) -> None:
    with piped("release", "-", "-m", model, *fast(3), "-o", "-") as pipe:
        pipe.send("person,place")
        for person in "aabbb":
            pipe.send(f"{person},{PLACES[0]}")
        assert pipe.receive() == ",".join(COLUMNS)
        assert [pipe.receive().split(",")[:3] for _ in range(3)] == [
            ["b", str(i), "0"] for i in range(3)
        ]
        assert pipe.silent()
        code, rest, said = pipe.ended()
    assert code == 0
    assert [line.split(",")[:3] for line in rest.splitlines()] == [["a", "0", "0"], ["a", "1", "0"]]
    assert said.startswith("5 rows, 0 of them answered before; 2 streams")


@pytest.mark.parametrize("wait", [0, 0.2])
def test_patience_ends_before_the_pipe_does(model: Path, wait: float) -> None:
    """Rows leave while the input is open: a lone row, then two that came together or not."""
    with piped("release", "-", "-m", model, *fast(3), "--wait", wait, "-o", "-") as pipe:
        pipe.send("person,place")
        pipe.send(f"a,{PLACES[0]}")
        assert pipe.receive() == ",".join(COLUMNS)
        assert pipe.receive().split(",")[:3] == ["a", "0", "0"]
        for person in ("a", "b"):
            pipe.send(f"{person},{PLACES[1]}")
        late = {tuple(pipe.receive().split(",")[:3]) for _ in range(2)}
        assert late == {("a", "1", "1"), ("b", "0", "0")}
        code, rest, said = pipe.ended()
    assert (code, rest) == (0, "")
    assert said.startswith("3 rows, 0 of them answered before; 2 streams")


@pytest.mark.parametrize("wait", [3600, 1e300])
def test_a_batch_that_is_complete_does_not_wait(model: Path, wait: float) -> None:
    with piped("release", "-", "-m", model, *fast(2), "--wait", wait, "-o", "-") as pipe:
        pipe.send("person,place")
        pipe.send(f"a,{PLACES[0]}")
        assert pipe.receive() == ",".join(COLUMNS)
        for batch in range(5):
            for place in PLACES[:2]:
                pipe.send(f"b,{place}")
            told = [pipe.receive().split(",")[:3] for _ in range(2)]
            began = str(2 * batch)
            assert told == [["b", began, began], ["b", str(2 * batch + 1), began]]
        code, rest, _ = pipe.ended()
    assert code == 0
    assert rest.split(",")[:3] == ["a", "0", "0"]


def test_json_lines_have_patience_too(model: Path) -> None:
    rule = ("--format", "jsonl", "--quiet", "--wait", 0.05)
    with piped("release", "-", "-m", model, *fast(5), *rule, "-o", "-") as pipe:
        for sequence in range(3):
            pipe.send(json.dumps({"person": "a", "place": PLACES[sequence]}))
            answer = json.loads(pipe.receive())
            assert list(answer) == COLUMNS
            assert (answer["sequence"], answer["batch"]) == (sequence, sequence)
        assert pipe.ended() == (0, "", "")


def test_a_bad_line_ends_a_patient_run_while_the_pipe_is_open(model: Path) -> None:
    with piped("release", "-", "-m", model, *fast(2), "--wait", 600, "-o", "-") as pipe:
        pipe.send("person,place")
        for value in (*PLACES[:3], RAW):
            pipe.send(f"a,{value}")
        assert pipe.process.wait(timeout=60) == 2
        _, out, said = pipe.ended()
    assert [line.count(",") for line in out.splitlines()] == [6, 6, 6]
    rule = "value must be one of the 4 symbols of the alphabet of the model; nothing leaves for it"
    assert said.startswith(f"sfumato: -, row 4: {rule}. To go on: --when-unknown ")


def test_an_empty_pipe_is_refused_whatever_the_patience(model: Path) -> None:
    result = call("release", "-", "-m", model, *fast(2), "--wait", 1, "-o", "-", stdin=b"")
    assert (result.code, result.err) == (2, "sfumato: -: the file must not be empty\n")


def test_patience_is_for_batches_and_some_seconds(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    said = refused(live, "-m", model, *RULE, "--wait", 5, output=private)
    assert said == "sfumato: --wait must come with --batch; got 5.0"
    for wrong in (-1, "nan", "inf"):
        said = refused(live, "-m", model, *fast(2), f"--wait={wrong}", output=private)
        assert "wait must be finite and at least 0" in said


def test_a_file_is_released_alike_with_and_without_patience(
    model: Path, tmp_path: Path, key: Path
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    run = ("release", live, "-m", model, *fast(3), "--key-file", key)
    done(*run, "-o", tmp_path / "plain.csv")
    done(*run, "--wait", 3600, "-o", tmp_path / "patient.csv")
    assert (tmp_path / "patient.csv").read_bytes() == (tmp_path / "plain.csv").read_bytes()


def test_no_patience_at_all_still_passes_its_audit(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    ledger = tmp_path / "city.ledger"
    run = ("-m", model, *fast(3), "--ledger", ledger)
    done("release", live, *run, "--wait", 0, "-o", private)
    assert {name: len(s) for name, s in streams_of(private).items()} == counted(LIVE)
    done("audit", private, "-m", model, "--ledger", ledger, "--against", live)


# Audits ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def honest(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table as `release --batch 3` wrote it, its input and its ledger beside it."""
    folder = tmp_path_factory.mktemp("honest")
    live, secret = table(folder / "live.csv", walk(11, rows=48)), folder / "secret.key"
    secret.write_bytes(b"thirty-two bytes for test coins!")
    secret.chmod(0o600)
    coins = ("--method", "randomized-response", "--key-file", secret)
    rule = ("--epsilon", 0.8, "--batch", 3, *coins, "--when-unknown", "suppress")
    done(
        *("release", live, "-m", model, *rule, "--ledger", folder / "city.ledger"),
        *("-o", folder / "private.csv"),
    )
    return folder / "private.csv"


@pytest.fixture
def released(honest: Path, tmp_path: Path) -> Path:
    """A copy that may be changed."""
    for path in honest.parent.iterdir():
        shutil.copy(path, tmp_path / path.name)
    return tmp_path / honest.name


def test_an_honest_table_passes_with_everything_it_can_be_held_against(
    model: Path, released: Path
) -> None:
    live, ledger = released.with_name("live.csv"), released.with_name("city.ledger")
    given = ("--against", live, "--ledger", ledger, "--window", 4)
    report = done("audit", released, "-m", model, *given, "--json").document
    assert (report["passed"], report["rows"], report["withheld"]) == (True, 48, 0)
    streams = streams_of(released)
    truths, wrong = by_stream(rows(live)), 0
    for name, stream in streams.items():
        entry = report["streams"][name]
        sips = [float(row["sip"]) for row in stream]
        told = zip(stream, truths[name], strict=True)
        errors = sum(row["released"] != true["place"] for row, true in told)
        wrong += errors
        assert entry["steps"] == len(stream)
        assert entry["sip"] == pytest.approx(sum(sips))
        assert entry["ldp"] == pytest.approx(sum(float(row["ldp"]) for row in stream))
        assert entry["worst_step"] == pytest.approx(max(sips))
        assert entry["worst_window"] == pytest.approx(max(overlapping(stream, 4)))
        assert entry["loss"] == errors
        assert abs(entry["gain"]) <= entry["sip"]
        assert entry["composed"] <= entry["sip"]
    assert report["mean_loss"] == pytest.approx(wrong / 48)


@pytest.mark.parametrize("window", [1, 2, 3, 5, 100])
def test_the_worst_window_has_every_batch_with_a_value_in_it(
    model: Path, released: Path, window: int
) -> None:
    report = done("audit", released, "-m", model, "--window", window, "--json").document
    for name, stream in streams_of(released).items():
        worst = max(overlapping(stream, window))
        assert report["streams"][name]["worst_window"] == pytest.approx(worst)


@pytest.mark.parametrize(
    "rule",
    [
        ("--epsilon", 1, "--loss", "histogram", "--batch", 7),
        ("--epsilon", 1, "--ldp", 1.2, "--batch", 2),
        ("--budget", 9, "--horizon", 30, "--batch", 2),
        ("--budget", 2, "--window", 3, "--ldp", 3, "--batch", 2),
        ("--epsilon", 0.5, "--batch", 7),
        ("--epsilon", 1, "--method", "context-free", "--batch", 2),
    ],
)
def test_every_rule_passes_its_own_audit(
    model: Path, tmp_path: Path, rule: tuple[object, ...]
) -> None:
    _, report = audited(tmp_path, model, LIVE[:16], *rule)
    for entry in report["streams"].values():
        assert abs(entry["gain"]) <= entry["sip"] + 1e-12


@pytest.mark.parametrize("name", ["levels", "bins"])
def test_levels_and_bins_pass_their_audit(models: Path, tmp_path: Path, name: str) -> None:
    with (models / f"{name}.csv").open() as file:
        records = [tuple(row.values()) for row in csv.DictReader(file)][:12]
    live = table(tmp_path / "live.csv", records)
    for suffix in FORMATS:
        private, model = tmp_path / f"private.{suffix}", models / f"{name}.model"
        rule = ("--epsilon", 1, "--batch", 2, "--loss", "absolute")
        done("release", live, "-m", model, *rule, "-o", private)
        done("audit", private, "-m", model, "--against", live)


def middle(records: Rows) -> list[int]:
    """Where the rows of a whole batch stand that others of its stream follow."""
    for name in sorted({row["person"] for row in records}):
        places = [i for i, row in enumerate(records) if row["person"] == name]
        if len(places) >= 9:
            return places[3:6]
    raise AssertionError("no stream is long enough")


QUIET = {"sip": "0.0", "ldp": "0.0", "released": ""}


def edited(places: Sequence[int], **fields: str) -> Callable[[Rows], Rows]:
    """Other cells in some of the three rows of a batch."""

    def edit(records: Rows) -> Rows:
        batch = middle(records)
        for place in places:
            records[batch[place]] |= fields
        return records

    return edit


def dropped(*places: int) -> Callable[[Rows], Rows]:
    """A batch without some of its three rows."""

    def drop(records: Rows) -> Rows:
        gone = {middle(records)[place] for place in places}
        return [row for place, row in enumerate(records) if place not in gone]

    return drop


def moved(name: str) -> Callable[[Rows], Rows]:
    """What stood at the last value of a batch stands at the first."""

    def move(records: Rows) -> Rows:
        first, _, last = middle(records)
        records[first][name], records[last][name] = records[last][name], records[first][name]
        return records

    return move


def batches_renumbered(records: Rows) -> Rows:
    for row in records:
        row["batch"] = str(int(row["batch"]) + 1)
    return records


def value_changed(records: Rows) -> Rows:
    place = middle(records)[1]
    records[place]["released"] = another(records[place]["released"])
    return records


def sip_spread(records: Rows) -> Rows:
    share = float(records[middle(records)[2]]["sip"]) / 3
    return edited((0, 1, 2), sip=repr(share))(records)


def sip_lowered(records: Rows) -> Rows:
    last = middle(records)[2]
    records[last]["sip"] = repr(float(records[last]["sip"]) * (1 - 1e-6))
    return records


def rows_swapped_in_a_batch(records: Rows) -> Rows:
    first, second, _ = middle(records)
    records[first], records[second] = records[second], records[first]
    return records


def rows_swapped_between_batches(records: Rows) -> Rows:
    place = middle(records)[2]
    name = records[place]["person"]
    other = next(i for i in range(place + 1, len(records)) if records[i]["person"] == name)
    records[place], records[other] = records[other], records[place]
    return records


def row_doubled(records: Rows) -> Rows:
    place = middle(records)[1]
    return [*records[: place + 1], *records[place:]]


BUGS: dict[str, Callable[[Rows], Rows]] = {
    "batch changed": edited([1], batch="4"),
    "batch of the first changed": edited([0], batch="0"),
    "batches joined": edited((0, 1, 2), batch="0"),
    "batch cut in two": edited([2], batch="5"),
    "batch unreadable": edited([0], batch="first"),
    "batches renumbered": batches_renumbered,
    "value changed": value_changed,
    "value unknown": edited([0], released="palace"),
    "sip moved": moved("sip"),
    "sip spread": sip_spread,
    "sip added": edited([0], sip="0.1"),
    "ldp moved": moved("ldp"),
    "sip lowered": sip_lowered,
    "first row dropped": dropped(0),
    "middle row dropped": dropped(1),
    "last row dropped": dropped(2),
    "batch dropped": dropped(0, 1, 2),
    "rows swapped in a batch": rows_swapped_in_a_batch,
    "rows swapped between batches": rows_swapped_between_batches,
    "row doubled": row_doubled,
    "row renumbered": edited([1], sequence="77"),
    "row suppressed": edited([1], outcome="suppressed", **QUIET),
    # What it told is hidden, but the later beliefs remember it.
    "batch suppressed": edited((0, 1, 2), outcome="suppressed", **QUIET),
    "value smuggled": edited((0, 1, 2), outcome="suppressed", sip="0.0", ldp="0.0"),
    "batch skipped": edited((0, 1, 2), outcome="skipped", **QUIET),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_planted_bug_is_found(model: Path, released: Path, bug: Callable[[Rows], Rows]) -> None:
    changed = rewritten(released, bug(rows(released)))
    result = call("audit", changed, "-m", model)
    assert result.code == 1
    assert "the audit FAILED" in result.out
    assert f"PROBLEM {changed}, row " in result.out


def test_a_table_that_was_not_changed_passes(model: Path, released: Path) -> None:
    copy = rewritten(released, rows(released))
    assert done("audit", copy, "-m", model).out.endswith("the audit found nothing wrong\n")


def test_the_row_of_a_moved_certificate_is_named(model: Path, released: Path) -> None:
    records = rows(released)
    first, _, last = middle(records)
    changed = rewritten(released, moved("sip")(records))
    problems = call("audit", changed, "-m", model, "--json").document["problems"]
    assert len(problems) == 2
    assert problems[0].startswith(f"row {first + 1}: sip must be 0; the table says ")
    assert problems[1].startswith(f"row {last + 1}: sip must be ")


@pytest.mark.parametrize("change", ["value", "missing"])
def test_the_end_of_a_table_is_compared_with_the_ledger(
    model: Path, released: Path, change: str
) -> None:
    records = rows(released)
    if change == "value":
        records[-1]["released"] = another(records[-1]["released"])
    else:
        name = records[-1]["person"]
        last = [r for r in records if r["person"] == name][-1]["batch"]
        records = [r for r in records if (r["person"], r["batch"]) != (name, last)]
    changed, ledger = rewritten(released, records), released.with_name("city.ledger")
    assert call("audit", changed, "-m", model, "--ledger", ledger).code == 1


def test_a_table_cut_in_the_middle_of_a_batch_is_not_an_honest_part(
    model: Path, released: Path
) -> None:
    """Batches leave whole: an interrupted release ends between two of them."""
    records = rows(released)
    part = rewritten(released, records[:12])
    assert done("audit", part, "-m", model, "--json").document["rows"] == 12
    torn = rewritten(released, records[:13])
    assert call("audit", torn, "-m", model).code == 1


def test_a_table_without_batches_is_refused(model: Path, released: Path) -> None:
    records = [{k: v for k, v in row.items() if k != "batch"} for row in rows(released)]
    changed = released.with_name("changed.csv")
    write(changed, list(records[0]), [list(row.values()) for row in records])
    shutil.copy(f"{released}.plan.json", f"{changed}.plan.json")
    result = call("audit", changed, "-m", model)
    assert result.code == 2
    assert "batch" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize("width", [None, 2, 4])
def test_the_length_of_batches_is_one_of_the_rules(
    model: Path, released: Path, tmp_path: Path, width: int | None
) -> None:
    """Longer batches may be cut short, as these could be; the ledger knows better."""
    rules = json.loads(Path(f"{released}.plan.json").read_text())
    other = tmp_path / "other.plan.json"
    write_rules(other, rules | {"batch": width})
    assert call("audit", released, "-m", model, "--plan", other).code == int(width != 4)
    ledger = released.with_name("city.ledger")
    kept = call("audit", released, "-m", model, "--plan", other, "--ledger", ledger)
    assert kept.code == 2
    assert "this ledger was begun with another" in kept.err


def test_the_true_table_must_be_the_one_that_was_released(
    model: Path, released: Path, tmp_path: Path
) -> None:
    live = walk(11, rows=48)
    shorter = table(tmp_path / "shorter.csv", live[:-1])
    renamed = table(tmp_path / "renamed.csv", [*live[:-1], ("somebody else", live[-1][1])])
    longer = table(tmp_path / "longer.csv", [*live, live[0]])
    for true in (shorter, renamed, longer):
        result = call("audit", released, "-m", model, "--against", true)
        assert result.code == 2
        assert f"{true}" in result.err


def test_an_audit_changes_nothing(model: Path, released: Path) -> None:
    folder = released.parent
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    done("audit", released, "-m", model, "--ledger", folder / "city.ledger")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


# Policies ----------------------------------------------------------------------------------------

SHARE = ("--epsilon", 0.5, "--batch", 2)


@pytest.fixture(scope="module")
def compiled(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the model with a policy for pairs beside it."""
    copy = tmp_path_factory.mktemp("compiled") / "city.model"
    shutil.copy(model, copy)
    said = done("compile", "-m", copy, *SHARE, "--steps", 64, "--max-channels", 8, "--json")
    assert said.document["epsilon"] == 1.0
    assert said.document["output"] == str(copy.with_suffix(".policy"))
    return copy


def clear(result: Result, *words: str) -> None:
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    for word in words:
        assert word in result.err


def test_a_compiled_release_in_batches_passes_its_audit(compiled: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    ledger, policy = tmp_path / "city.ledger", compiled.with_suffix(".policy")
    run_with = ("-m", compiled, *SHARE, "--policy", policy, "--ledger", ledger)
    done("release", live, *run_with, "-o", private)
    for stream in streams_of(private).values():
        for batch in batches_of(stream):
            assert sum(float(row["sip"]) for row in batch) <= 0.5 * len(batch)
    given = ("--ledger", ledger, "--against", live, "--window", 3, "--json")
    report = done("audit", private, "-m", compiled, *given).document
    assert report["passed"] and report["rows"] == len(LIVE)
    for entry in report["streams"].values():
        assert abs(entry["gain"]) <= entry["sip"]
    more = ("--resume", "-o", tmp_path / "again.csv", "--json")
    again = done("release", live, *run_with, *more).document
    assert again["repeated"] == len(LIVE)
    assert streams_of(tmp_path / "again.csv") == streams_of(private)


def test_a_change_in_a_compiled_release_is_found(compiled: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    policy = compiled.with_suffix(".policy")
    done("release", live, "-m", compiled, *SHARE, "--policy", policy, "-o", private)
    for name in ("value unknown", "sip lowered", "middle row dropped", "batch cut in two"):
        bug = BUGS[name]
        changed = rewritten(private, bug(rows(private)))
        assert call("audit", changed, "-m", compiled).code == 1


def test_rows_in_groups_and_one_by_one_get_the_same_compiled_answers(
    compiled: Path, tmp_path: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = compiled.with_suffix(".policy")
    live = table(tmp_path / "live.csv", LIVE)
    run = ("release", live, "-m", compiled, *SHARE, "--policy", policy, "--key-file", key)
    done(*run, "-o", tmp_path / "whole.csv")
    grouped(monkeypatch, 5)
    done(*run, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_a_policy_is_for_one_length_of_batch(compiled: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    policy = compiled.with_suffix(".policy")
    rule = "compiled for this chain, loss and method, and this length of batch"
    for other in (
        ("--epsilon", 0.5),
        ("--epsilon", 0.5, "--batch", 3),
        (*SHARE, "--loss", "histogram"),
    ):
        given = ("-m", compiled, *other, "--policy", policy, "-o", private)
        clear(call("release", live, *given), rule)
        assert not private.exists()


def test_an_even_share_of_a_total_is_compiled_for(model: Path, tmp_path: Path) -> None:
    total = ("--budget", 10, "--horizon", 40, "--ldp", 20, "--batch", 2)
    run = ("compile", "-m", model, *total, "--steps", 32, "-o", tmp_path / "own.policy", "--json")
    said = done(*run).document
    assert (said["epsilon"], said["ldp"]) == (0.5, 1.0)


def test_too_many_batches_to_be_compiled_are_refused(model: Path, tmp_path: Path) -> None:
    target = tmp_path / "own.policy"
    result = call("compile", "-m", model, "--epsilon", 0.5, "--batch", 5, "-o", target)
    clear(result, "width must have at most 512 batches")
    assert not target.exists()
