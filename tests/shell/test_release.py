import errno
import itertools
import json
import math
import os
import signal
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sfumato.files import load
from sfumato.formats.readers import Table
from sfumato.jobs import release
from sfumato.jobs.spec import ReleaseSpec, read_spec
from sfumato.models.encoding import StreamModel
from sfumato.store.sqlite import Answer, SqliteStore
from tests.shell.running import COMMAND, call, done, litter, piped, rows, spawn
from tests.shell.tables import FORMATS, PLACES, by_stream, read, table, walk, write

FAST = ("--method", "randomized-response")
SPEC = ReleaseSpec(epsilon=1.0, method="randomized-response")
RULE = ("--epsilon", 1, *FAST)
LIVE = walk(7, rows=60)
COLUMNS = ["person", "sequence", "released", "outcome", "sip", "ldp"]


def ledger_of(path: Path, model: Path, spec: ReleaseSpec = SPEC) -> tuple[list[Answer], Any]:
    """Every answer of a ledger, and what each stream spent."""
    read = load(model)
    assert isinstance(read, StreamModel)
    with SqliteStore(path, spec.plan(read).fingerprint) as store:
        answers = list(store.events())
        states = {a.event.stream: store.state(a.event.stream) for a in answers}
    return answers, {name: (s.sequence, s.ledger) for name, s in states.items() if s is not None}


def grouped(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Read, answer and commit this many rows at a time."""
    monkeypatch.setattr(Table.chunks, "__defaults__", ((), size))


def refused(*arguments: object, output: Path) -> str:
    """The message of a release that must end with exit code 2 and write nothing."""
    before = output.read_bytes() if output.exists() else None
    result = call("release", *arguments, "-o", output)
    assert result.code == 2
    assert (output.read_bytes() if output.exists() else None) == before
    assert not output.with_name(output.name + ".plan.json").exists()
    assert litter(output.parent) == []
    assert result.out == ""
    return result.err.splitlines()[-1]


# What comes out ----------------------------------------------------------------------------------


def test_every_row_is_answered_once_within_its_budget(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    report = done("release", live, "-m", model, "--epsilon", 0.7, "-o", private, "--json").document
    released = rows(private)
    assert list(released[0]) == COLUMNS
    assert [row["person"] for row in released] == [person for person, _ in LIVE]
    for stream in by_stream(released).values():
        assert [int(row["sequence"]) for row in stream] == list(range(len(stream)))
    assert {row["released"] for row in released} <= set(PLACES)
    assert all(0 <= float(row["sip"]) <= 0.7 for row in released)
    assert all(float(row["sip"]) <= float(row["ldp"]) <= 1.4 for row in released)
    sums = [sum(float(row["sip"]) for row in s) for s in by_stream(released).values()]
    assert report == {
        "output": str(private),
        "rows": len(LIVE),
        "repeated": 0,
        "streams": 3,
        "largest_sip": pytest.approx(max(sums)),
        "largest_ldp": report["largest_ldp"],
        "interrupted": False,
    }


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
    rule = ("--budget", 5, "--window", 3, "--ldp", 4, "--loss", matrix, "--when-unknown", "repeat")
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
    rule = ("-m", model, "--epsilon", 1, "--key-file", key)
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
    monkeypatch.setattr(release, "_STATES_HELD", 1)
    done(*run, "-o", tmp_path / "parts.csv")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def test_bins_are_released_by_name(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", 10), ("a", "12.5"), ("b", 30.0), ("b", "2.9e1")])
    private = tmp_path / "private.csv"
    done("release", live, "-m", models / "bins.model", "--epsilon", 9, "-o", private)
    assert {row["released"] for row in rows(private)} <= {"12.5", "17.5", "22.5", "27.5"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_cell_of_a_grid_is_released_with_its_centre(
    models: Path, tmp_path: Path, suffix: str
) -> None:
    points = [("a", 10, -5), ("a", 30, -15), ("b", 19.5, -7.25), ("a", 11.0, "-6")]
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], points)
    private = tmp_path / f"private.{suffix}"
    rule = ("--epsilon", 1, "--loss", "euclidean")
    done("release", live, "-m", models / "grid.model", *rule, "-o", private)
    encoding = load(models / "grid.model")
    assert isinstance(encoding, StreamModel)
    alphabet = encoding.chain.alphabet
    assert list(read(private)[0]) == [*COLUMNS[:3], "x", "y", *COLUMNS[3:]]
    for row in read(private):
        assert alphabet.coordinates is not None
        centre = alphabet.coordinates[alphabet.index(row["released"])]
        assert [float(row["x"]), float(row["y"])] == centre.tolist()


# Twice with one ledger ---------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_second_run_draws_nothing(model: Path, tmp_path: Path, method: str) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "city.ledger"
    spec = ReleaseSpec(epsilon=1.0, method=method)
    run = ("release", live, "-m", model, "--epsilon", 1, "--method", method, "--ledger", ledger)
    done(*run, "-o", tmp_path / "first.csv")
    before = ledger_of(ledger, model, spec)
    report = done(*run, "-o", tmp_path / "second.csv", "--json").document
    assert (report["rows"], report["repeated"], report["streams"]) == (len(LIVE), len(LIVE), 0)
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    assert ledger_of(ledger, model, spec) == before


def test_without_a_ledger_the_coins_are_fresh(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    for name in ("first.csv", "second.csv"):
        done("release", live, "-m", model, *RULE, "-o", tmp_path / name)
    assert (tmp_path / "first.csv").read_bytes() != (tmp_path / "second.csv").read_bytes()


def test_a_table_that_grew_is_answered_from_where_it_grew(model: Path, tmp_path: Path) -> None:
    run = ("-m", model, *RULE, "--ledger", tmp_path / "city.ledger")
    live = table(tmp_path / "live.csv", LIVE[:25])
    done("release", live, *run, "-o", tmp_path / "first.csv")
    table(live, LIVE)
    report = done("release", live, *run, "-o", tmp_path / "second.csv", "--json").document
    assert (report["rows"], report["repeated"]) == (len(LIVE), 25)
    assert rows(tmp_path / "second.csv")[:25] == rows(tmp_path / "first.csv")


def test_the_name_of_the_source_tells_events_apart(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:10])
    run = ("-m", model, *RULE, "--ledger", tmp_path / "city.ledger", "--json")
    done("release", live, *run, "-o", tmp_path / "first.csv")
    again = done("release", live, *run, "--source", "live.csv", "-o", tmp_path / "second.csv")
    other = done("release", live, *run, "--source", "tuesday", "-o", tmp_path / "third.csv")
    assert (again.document["repeated"], other.document["repeated"]) == (10, 0)
    first = {row["sequence"] for row in rows(tmp_path / "first.csv")}
    third = by_stream(rows(tmp_path / "third.csv"))
    assert first == {"0", "1", "2", "3", "4"}
    assert all(int(s[0]["sequence"]) == len(s) for s in third.values())


def test_a_ledger_of_another_rule_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "city.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "a.csv")
    kept = ledger_of(ledger, model)
    for other in (("--epsilon", 2, *FAST), ("--epsilon", 1, "--method", "calibrated")):
        said = refused(live, "-m", model, *other, "--ledger", ledger, output=tmp_path / "b.csv")
        assert said.startswith(f"sfumato: {ledger}: this ledger was begun with another")
    assert ledger_of(ledger, model) == kept


def test_a_seed_never_mixes_with_a_real_ledger(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:5])
    run = (live, "-m", model, *RULE)
    for first, second in ((("--seed", 1), ()), ((), ("--seed", 1)), (("--seed", 1), ("-q",))):
        ledger = tmp_path / f"{len(first)}{len(second)}.ledger"
        done("release", *run, *first, "--ledger", ledger, "-o", tmp_path / "first.csv")
        said = refused(*run, *second, "--ledger", ledger, output=tmp_path / "second.csv")
        assert "use a ledger of its own" in said
    said = refused(*run, "--seed", 1, "--key-file", key, output=tmp_path / "second.csv")
    assert "--seed must not come with --key-file" in said


def test_a_seed_gives_the_same_simulation_again_and_says_so(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    for name in ("first.csv", "second.csv"):
        result = done("release", live, "-m", model, *RULE, "--seed", 5, "-o", tmp_path / name)
        assert "guessable coins; treat the output as a simulation" in result.err
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    assert read_spec(tmp_path / "first.csv.plan.json").purpose == "simulation"


def test_a_key_gives_the_same_coins_again(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    other = tmp_path / "other.key"
    other.write_bytes(b"another secret of enough bytes")
    for name, secret in (("first.csv", key), ("second.csv", key), ("third.csv", other)):
        done("release", live, "-m", model, *RULE, "--key-file", secret, "-o", tmp_path / name)
    assert (tmp_path / "first.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    assert (tmp_path / "first.csv").read_bytes() != (tmp_path / "third.csv").read_bytes()


def test_a_key_that_others_can_read_is_warned_about(model: Path, tmp_path: Path, key: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:2])
    run = ("release", live, "-m", model, *RULE, "--key-file", key, "-o", tmp_path / "a.csv")
    assert "warning" not in done(*run).err
    key.chmod(0o644)
    assert f"warning: {key} can be read by others" in done(*run).err


@pytest.mark.parametrize("content", [b"", b"short"])
def test_a_key_that_is_too_short_is_refused(model: Path, tmp_path: Path, content: bytes) -> None:
    secret = tmp_path / "secret.key"
    secret.write_bytes(content)
    live = table(tmp_path / "live.csv", LIVE[:2])
    said = refused(live, "-m", model, *RULE, "--key-file", secret, output=tmp_path / "private.csv")
    assert "at least 16 bytes" in said


# Event ids ---------------------------------------------------------------------------------------


def events(path: Path, records: Sequence[tuple[str, str, str]]) -> Path:
    return write(path, ["id", "person", "place"], records)


def test_an_event_gets_the_same_answer_from_any_source(model: Path, tmp_path: Path) -> None:
    records = [(f"e{i}", person, place) for i, (person, place) in enumerate(LIVE[:12])]
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    monday = events(tmp_path / "monday.csv", records[:9])
    tuesday = events(tmp_path / "tuesday.csv", records[6:])
    done("release", monday, *run, "-o", tmp_path / "first.csv")
    report = done("release", tuesday, *run, "-o", tmp_path / "second.csv", "--json").document
    first, second = rows(tmp_path / "first.csv"), rows(tmp_path / "second.csv")
    assert list(first[0]) == ["event", *COLUMNS]
    assert [row["event"] for row in second] == [f"e{i}" for i in range(6, 12)]
    assert second[:3] == first[6:]
    assert (report["rows"], report["repeated"]) == (6, 3)


@pytest.mark.parametrize("group", [1, 2, 3])
@pytest.mark.parametrize("ledger", ["in memory", "on disk"])
def test_an_event_id_at_another_position_is_refused(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ledger: str, group: int
) -> None:
    grouped(monkeypatch, group)
    live = events(
        tmp_path / "live.csv",
        [("e1", "a", PLACES[0]), ("e2", "a", PLACES[1]), ("e1", "a", PLACES[2])],
    )
    kept = ("--ledger", tmp_path / "city.ledger") if ledger == "on disk" else ()
    said = refused(
        live, "-m", model, *RULE, "--event", "id", *kept, output=tmp_path / "private.csv"
    )
    rule = "an event id must occur once; it stands in row 1 too"
    assert said == f"sfumato: {live}, row 3: {rule}"


def test_an_event_id_at_another_position_of_a_later_run_is_refused(
    model: Path, tmp_path: Path
) -> None:
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    live = events(tmp_path / "live.csv", [("e1", "a", PLACES[0])])
    done("release", live, *run, "-o", tmp_path / "first.csv")
    events(live, [("e0", "a", PLACES[1]), ("e1", "a", PLACES[0])])
    said = refused(live, *run, output=tmp_path / "second.csv")
    assert said.endswith("row 2: an event id must occur once; it stands in row 1 too")


def test_an_event_id_in_two_streams_is_refused(model: Path, tmp_path: Path) -> None:
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    live = events(tmp_path / "live.csv", [("e1", "a", PLACES[0]), ("e1", "b", PLACES[1])])
    said = refused(live, *run, output=tmp_path / "private.csv")
    assert said == f"sfumato: {live}, row 2: an event id must not occur in two streams"
    other = events(tmp_path / "other.csv", [("e1", "b", PLACES[0])])
    said = refused(other, *run, output=tmp_path / "private.csv")
    assert said == f"sfumato: {other}, row 1: an event id must not occur in two streams"


@pytest.mark.parametrize("column", ["id", "person", "place"])
def test_an_empty_field_is_refused(model: Path, tmp_path: Path, column: str) -> None:
    record = {"id": "e2", "person": "a", "place": PLACES[0]} | {column: ""}
    live = events(
        tmp_path / "live.csv",
        [("e1", "a", PLACES[0]), (record["id"], record["person"], record["place"])],
    )
    said = refused(live, "-m", model, *RULE, "--event", "id", output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: ")
    assert "must not be empty" in said


# Bad input: exit code 2, the file, the row and the rule, nothing half written --------------------


def test_an_unknown_symbol_is_named_by_its_row(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [*LIVE[:6], ("person-1", "palace-of-secrets")])
    private = tmp_path / "private.csv"
    private.write_text("of an earlier run")
    said = refused(live, "-m", model, *RULE, output=private)
    assert said == (f"sfumato: {live}, row 7: value must be one of the 4 symbols of the alphabet")


def test_a_grid_that_does_not_cover_the_data_is_refused(models: Path, tmp_path: Path) -> None:
    points = [("a", 10, -5), ("a", 10, -4.321)]
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], points)
    said = refused(live, "-m", models / "grid.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: ")
    assert "4.321" not in said


@pytest.mark.parametrize("value", ["nan", "inf", "twelve", ""])
def test_a_number_that_is_none_is_refused(models: Path, tmp_path: Path, value: str) -> None:
    live = table(tmp_path / "live.csv", [("a", "12"), ("a", value), ("a", "13")])
    said = refused(live, "-m", models / "bins.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 2: the value must ")


def test_nan_in_a_column_of_numbers_is_refused(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.parquet", [("a", 1.0), ("a", 2.0), ("a", math.nan)])
    said = refused(live, "-m", models / "levels.model", *RULE, output=tmp_path / "private.csv")
    assert said == f"sfumato: {live}, row 3: the value must be a finite number"


def test_the_model_of_another_alphabet_is_refused(models: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    said = refused(live, "-m", models / "levels.model", *RULE, output=tmp_path / "private.csv")
    assert said.startswith(f"sfumato: {live}, row 1: value must be one of the 3 symbols")


def test_a_budget_already_spent_is_refused(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i % 2]) for i in range(6)])
    said = refused(
        live, "-m", model, "--budget", 3, "--horizon", 4, *FAST, output=tmp_path / "private.csv"
    )
    assert said.startswith(f"sfumato: {live}, row 5: releasing event 4 of stream 'a' would need")
    assert said.endswith("nothing was released")


def test_a_budget_spent_in_an_earlier_run_stays_spent(model: Path, tmp_path: Path) -> None:
    run = ("-m", model, "--budget", 3, "--horizon", 4, *FAST, "--ledger", tmp_path / "a.ledger")
    monday = table(tmp_path / "monday.csv", [("a", PLACES[0])] * 3)
    tuesday = table(tmp_path / "tuesday.csv", [("a", PLACES[0])] * 3)
    done("release", monday, *run, "-o", tmp_path / "first.csv")
    said = refused(tuesday, *run, output=tmp_path / "second.csv")
    assert said.startswith(f"sfumato: {tuesday}, row 2: releasing event 4 of stream 'a'")


def test_the_published_rule_is_refused_where_it_leaks_more_than_it_claims(
    model: Path, tmp_path: Path
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    said = refused(
        live, "-m", model, "--epsilon", 1, "--method", "published", output=tmp_path / "private.csv"
    )
    assert said.startswith(f"sfumato: {live}, row 1: ")


def test_what_was_drawn_before_a_bad_row_is_charged_and_given_again(
    model: Path, tmp_path: Path
) -> None:
    ledger, live = tmp_path / "city.ledger", tmp_path / "live.csv"
    run = ("-m", model, *RULE, "--ledger", ledger)
    table(live, [*LIVE[:8], ("person-1", "nowhere"), *LIVE[8:]])
    refused(live, *run, output=tmp_path / "private.csv")
    kept, spent = ledger_of(ledger, model)
    assert len(kept) == 8
    assert sum(count for count, _ in spent.values()) == 8
    table(live, [*LIVE[:8], ("person-1", PLACES[0]), *LIVE[8:]])
    report = done("release", live, *run, "-o", tmp_path / "private.csv", "--json").document
    assert (report["rows"], report["repeated"]) == (len(LIVE) + 1, 8)
    told = {(row["person"], int(row["sequence"])): row for row in rows(tmp_path / "private.csv")}
    for answer in kept:
        row = told[answer.event.stream, answer.event.sequence]
        assert row["released"] == answer.event.released


@pytest.mark.parametrize(
    "rule",
    [
        (),
        ("--epsilon", 1, "--budget", 1),
        ("--epsilon", 1, "--horizon", 5),
        ("--epsilon", 1, "--window", 5),
        ("--budget", 1),
        ("--horizon", 5),
        ("--window", 5),
        ("--horizon", 5, "--window", 5),
        ("--budget", 1, "--horizon", 5, "--window", 5),
        ("--epsilon", 0),
        ("--epsilon", -1),
        ("--epsilon", "nan"),
        ("--epsilon", "much"),
        ("--budget", 0, "--horizon", 5),
        ("--budget", 1, "--horizon", 0),
        ("--budget", 1, "--window", 0),
        ("--budget", 1, "--window", 2.5),
        ("--epsilon", 1, "--ldp", 0),
        ("--epsilon", 1, "--loss", "unheard-of"),
        ("--epsilon", 1, "--loss", "absolute"),
        ("--epsilon", 1, "--method", "magic"),
        ("--epsilon", 1, "--when-unknown", "guess"),
        ("--epsilon", 1, "--when-exhausted", "substitute"),
        ("--epsilon", 1, "--resume"),
        ("--epsilon", 1, "--value", "place,person"),
        ("--epsilon", 1, "--stream", "nobody"),
        ("--epsilon", 1, "--event", "nothing"),
        ("--epsilon", 1, "--key-file", "no-such-file"),
    ],
)
def test_a_wrong_rule_is_refused_before_anything_is_released(
    model: Path, tmp_path: Path, rule: tuple[object, ...]
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(live, "-m", model, *rule, output=tmp_path / "private.csv")
    assert "Traceback" not in said
    assert len(said) > 20


@pytest.mark.parametrize("missing", [(), ("--resume", "--ledger", "never-begun.ledger")])
def test_resuming_needs_the_ledger_of_the_run(
    model: Path, tmp_path: Path, missing: tuple[str, ...]
) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(
        live, "-m", model, *RULE, *(missing or ("--resume",)), output=tmp_path / "private.csv"
    )
    assert "--ledger must be the ledger of the interrupted run" in said
    assert not Path("never-begun.ledger").exists()


def test_the_output_must_not_be_the_input(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE[:3])
    said = refused(live, "-m", model, *RULE, output=live)
    assert said == f"sfumato: {live}: the output must not be the input"


def test_the_folder_of_the_output_must_exist(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:3]), tmp_path / "city.ledger"
    target = tmp_path / "missing" / "private.csv"
    result = call("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", target)
    assert result.code == 2
    assert result.err == f"sfumato: {target}: the folder of the output must exist; it does not\n"
    assert ledger_of(ledger, model) == ([], {})


# Raw values --------------------------------------------------------------------------------------


def test_raw_values_never_appear_anywhere(models: Path, tmp_path: Path) -> None:
    raws = [f"{12 + i / 7:.7f}" for i in range(40)]
    live = table(tmp_path / "live.csv", [(f"person-{i % 3}", raw) for i, raw in enumerate(raws)])
    folder = tmp_path / "out"
    folder.mkdir()
    run = ("-m", models / "bins.model", *RULE, "--ledger", folder / "a.ledger")
    result = done("release", live, *run, "-o", folder / "private.csv")
    table(live, [*zip(itertools.repeat("person-0"), raws), ("person-0", "98.7654321")])
    failed = call("release", live, *run, "-o", folder / "other.csv")
    assert failed.code == 2
    said = result.out + result.err + failed.out + failed.err
    told = said.encode() + b"".join(path.read_bytes() for path in folder.iterdir())
    assert {path.name for path in folder.iterdir()} >= {"a.ledger", "private.csv"}
    assert not any(raw.encode() in told for raw in (*raws, "98.7654321"))


# Forms of a budget -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_horizon_keeps_the_sum_within_the_budget(
    model: Path, tmp_path: Path, method: str
) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i // 3 % 4]) for i in range(12)])
    rule = ("--budget", 4, "--horizon", 12, "--method", method)
    done("release", live, "-m", model, *rule, "-o", tmp_path / "private.csv")
    spent = sum(float(row["sip"]) for row in rows(tmp_path / "private.csv"))
    assert 2 < spent <= 4 + 1e-12


@pytest.mark.parametrize("method", ["optimal", "randomized-response"])
def test_a_window_keeps_every_window_within_the_budget(
    model: Path, tmp_path: Path, method: str
) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i // 4 % 4]) for i in range(30)])
    rule = ("--budget", 2, "--window", 4, "--method", method)
    done("release", live, "-m", model, *rule, "-o", tmp_path / "private.csv")
    sips = [float(row["sip"]) for row in rows(tmp_path / "private.csv")]
    windows = [sum(sips[i : i + 4]) for i in range(len(sips) - 3)]
    assert 1 < max(windows) <= 2 + 1e-12
    assert sum(sips) > 2


def test_a_cap_on_the_model_free_leakage_is_kept(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [("a", PLACES[i // 4 % 4]) for i in range(10)])
    rule = ("--budget", 9, "--horizon", 10, "--ldp", 5)
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
    rule = ("--budget", 3, "--horizon", 4, "--when-exhausted", policy)
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


# A full disk -------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_full_disk_ends_with_exit_code_2_and_no_file(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, step: str
) -> None:
    def full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    live = table(tmp_path / "live.csv", LIVE[:9])
    monkeypatch.setattr(os, step, full_disk)
    said = refused(live, "-m", model, *RULE, output=tmp_path / f"private.{suffix}")
    assert "No space left on device" in said


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from sfumato.cli import main
main()
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_may_not_grow_ends_with_exit_code_2_and_no_file(
    model: Path, tmp_path: Path, suffix: str
) -> None:
    live = table(tmp_path / "live.csv", LIVE * 3)
    result = spawn(
        *("release", live, "-m", model, *RULE, "-o", tmp_path / f"private.{suffix}"),
        command=[*COMMAND[:-1], LIMITED],
    )
    assert result.code == 2
    assert "File too large" in result.err
    assert [path.name for path in tmp_path.iterdir()] == ["live.csv"]


def test_a_full_pipe_ends_with_exit_code_2(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE * 3)
    shell = ["sh", "-c", '"$@" > /dev/full', "sh", *COMMAND]
    result = spawn("release", live, "-m", model, *RULE, "-o", "-", command=shell)
    assert (result.code, result.err) == (2, "sfumato: output: No space left on device\n")


# Standard input and output -----------------------------------------------------------------------


def test_each_answer_arrives_before_the_next_line_is_sent(model: Path) -> None:
    with piped("release", "-", "-m", model, "--epsilon", 1, "-o", "-") as pipe:
        pipe.send("person,place")
        for number, (person, place) in enumerate(LIVE[:8]):
            pipe.send(f"{person},{place}")
            if number == 0:
                assert pipe.receive() == ",".join(COLUMNS)
            assert pipe.receive().startswith(f"{person},")
            assert pipe.silent()
        code, rest, said = pipe.ended()
    assert (code, rest) == (0, "")
    assert said.startswith("8 rows, 0 of them answered before")


def test_json_lines_come_and_go_one_by_one(model: Path) -> None:
    rule = ("--format", "jsonl", "--quiet")
    with piped("release", "-", "-m", model, *RULE, *rule, "-o", "-") as pipe:
        for sequence in range(3):
            pipe.send(json.dumps({"person": "a", "place": PLACES[sequence]}))
            answer = json.loads(pipe.receive())
            assert list(answer) == COLUMNS
            assert answer["sequence"] == sequence
        assert pipe.ended() == (0, "", "")


def test_a_bad_line_ends_the_output_on_a_whole_line(model: Path) -> None:
    lines = f"person,place\na,{PLACES[0]}\na,{PLACES[1]}\na,palace-of-secrets\na,{PLACES[0]}\n"
    result = spawn("release", "-", "-m", model, *RULE, "-o", "-", stdin=lines.encode())
    assert result.code == 2
    assert result.out.endswith("\n")
    assert [line.count(",") for line in result.out.splitlines()] == [5, 5, 5]
    assert result.err == "sfumato: -, row 3: value must be one of the 4 symbols of the alphabet\n"


def test_a_pipe_and_a_file_give_the_same_answers(model: Path, tmp_path: Path, key: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE[:15]), tmp_path / "private.csv"
    rule = ("-m", model, *RULE, "--key-file", key)
    done("release", live, *rule, "-o", private)
    through = spawn("release", "-", *rule, "-o", "-", stdin=live.read_bytes())
    assert (through.code, through.out) == (0, private.read_text())
    assert done("release", live, *rule, "-o", "-").out == private.read_text()


def test_an_empty_pipe_is_refused(model: Path) -> None:
    result = spawn("release", "-", "-m", model, *RULE, "-o", "-")
    assert (result.code, result.err) == (2, "sfumato: -: the file must not be empty\n")


def test_a_reader_that_goes_away_is_no_drama(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "city.ledger"
    with piped("release", "-", "-m", model, *RULE, "--ledger", ledger, "-o", "-") as pipe:
        pipe.send("person,place")
        pipe.send("a,market")
        pipe.receive()
        told = pipe.receive()
        assert pipe.process.stdout is not None
        pipe.process.stdout.close()
        pipe.send("a,market")
        assert pipe.process.wait(timeout=60) != 0
        assert pipe.process.stderr is not None
        assert b"Traceback" not in pipe.process.stderr.read()
    kept, _ = ledger_of(ledger, model)
    assert [answer.event.sequence for answer in kept] == [0, 1]
    assert kept[0].event.released == told.split(",")[2]
    assert live.exists()


# Interrupted and killed --------------------------------------------------------------------------

TROUBLE = """
import os, signal, sqlite3, sys
from sfumato.formats.readers import Table
from sfumato.formats.writers import Output
from sfumato.store.sqlite import SqliteStore

point, number, kind = sys.argv.pop(1), int(sys.argv.pop(1)), int(sys.argv.pop(1))
Table.chunks.__defaults__ = ((), 8)  # groups of 8 rows, so that there are several
count = 0

def passing(here):
    global count
    if here == point:
        count += 1
        if count == number:
            os.kill(os.getpid(), kind)

def around(owner, name, step):
    inner = getattr(owner, name)
    def outer(*arguments, **options):
        passing("before " + step)
        result = inner(*arguments, **options)
        passing("after " + step)
        return result
    setattr(owner, name, outer)

def watch(statement):
    if "INTO streams" in statement:
        passing("inside commit")
    if statement.startswith("COMMIT"):
        passing("at the end of commit")

class Watched(sqlite3.Connection):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.set_trace_callback(watch)

connect = sqlite3.connect
sqlite3.connect = lambda *arguments, **options: connect(*arguments, factory=Watched, **options)
around(SqliteStore, "commit", "commit")
around(Output, "write", "write")
around(os, "replace", "replace")

from sfumato.cli import main
main()
"""
TROUBLED = [*COMMAND[:-1], TROUBLE]
KILLS = [
    ("before commit", 1, 0),
    ("before commit", 3, 16),
    ("inside commit", 4, 8),
    ("at the end of commit", 3, 8),
    ("after commit", 1, 8),
    ("after commit", 5, 40),
    ("before write", 3, 24),
    ("after write", 4, 32),
    ("before replace", 1, 60),
    ("after replace", 1, 60),
]


@pytest.mark.parametrize(("point", "number", "kept"), KILLS)
def test_a_killed_run_resumes_as_if_nothing_had_happened(
    model: Path, tmp_path: Path, key: Path, point: str, number: int, kept: int
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    whole, ledger = tmp_path / "whole.csv", tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *RULE, "--key-file", key)
    done(*run, "--ledger", tmp_path / "whole.ledger", "-o", whole)
    killed = spawn(
        *(point, number, int(signal.SIGKILL), *run, "--ledger", ledger, "-o", private),
        command=TROUBLED,
    )
    assert killed.code == -signal.SIGKILL
    assert private.exists() == (point == "after replace")
    report = done(*run, "--ledger", ledger, "--resume", "-o", private, "--json").document
    assert (report["rows"], report["repeated"]) == (len(LIVE), kept)
    assert private.read_bytes() == whole.read_bytes()
    assert len({(row["person"], row["sequence"]) for row in rows(private)}) == len(LIVE)
    assert ledger_of(ledger, model) == ledger_of(tmp_path / "whole.ledger", model)
    assert litter(tmp_path) == []


@pytest.mark.parametrize("answered", [1, 5])
def test_an_answer_that_left_before_the_kill_is_given_again(
    model: Path, tmp_path: Path, answered: int
) -> None:
    run = ("release", "-", "-m", model, *RULE, "--ledger", tmp_path / "city.ledger")
    with piped(*run, "-o", "-") as pipe:
        pipe.send("person,place")
        for person, place in LIVE[:answered]:
            pipe.send(f"{person},{place}")
        told = [pipe.receive() for _ in range(answered + 1)]
        pipe.process.kill()
        assert pipe.process.wait() == -signal.SIGKILL
    lines = "person,place\n" + "".join(f"{person},{place}\n" for person, place in LIVE)
    again = spawn(*run, "--resume", "-o", "-", stdin=lines.encode())
    assert again.code == 0
    assert again.out.splitlines()[: answered + 1] == told
    assert len(again.out.splitlines()) == len(LIVE) + 1
    assert f"{len(LIVE)} rows, {answered} of them answered before" in again.err
    kept, spent = ledger_of(tmp_path / "city.ledger", model)
    assert len(kept) == len(LIVE)
    assert sum(count for count, _ in spent.values()) == len(LIVE)


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_a_valid_output_and_ledger(
    model: Path, tmp_path: Path, key: Path, kind: signal.Signals
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    whole, ledger = tmp_path / "whole.csv", tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *RULE, "--key-file", key)
    done(*run, "-o", whole)
    stopped = spawn(
        *("inside commit", 4, int(kind), *run, "--ledger", ledger, "-o", private),
        command=TROUBLED,
    )
    assert stopped.code == 130
    assert stopped.err.endswith("what was answered is complete; add --resume to go on\n")
    assert rows(private) == rows(whole)[:16]
    assert litter(tmp_path) == []
    audit = done("audit", private, "-m", model, "--ledger", ledger, "--json").document
    assert (audit["passed"], audit["rows"]) == (True, 16)
    report = done(*run, "--ledger", ledger, "--resume", "-o", private, "--json").document
    assert (report["rows"], report["repeated"]) == (len(LIVE), 16)
    assert private.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_a_pipe_that_waits_for_input_is_interrupted_at_once(
    model: Path, tmp_path: Path, kind: signal.Signals
) -> None:
    ledger = tmp_path / "city.ledger"
    with piped("release", "-", "-m", model, *RULE, "--ledger", ledger, "-o", "-") as pipe:
        pipe.send("person,place")
        pipe.send(f"a,{PLACES[0]}")
        pipe.receive()
        told = pipe.receive().split(",")
        pipe.process.send_signal(kind)
        assert pipe.process.wait(timeout=60) == 130
        _, rest, said = pipe.ended()
    assert rest == ""
    assert "interrupted; what was answered is complete" in said
    (answer,), _ = ledger_of(ledger, model)
    assert (answer.event.released, repr(answer.event.sip.epsilon)) == (told[2], told[4])


def test_a_run_interrupted_without_a_ledger_says_that_it_cannot_go_on(
    model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    stopped = spawn(
        *("after write", 2, int(signal.SIGINT), "release", live, "-m", model, *RULE),
        *("-o", private),
        command=TROUBLED,
    )
    assert stopped.code == 130
    assert "use --ledger to be able to go on" in stopped.err
    assert len(rows(private)) == 16


def test_an_interrupted_fit_leaves_no_model_and_no_litter(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", LIVE)
    fit = ("fit", history, "--stream", "person", "--value", "place", "-o", tmp_path / "city.model")
    stopped = spawn("before replace", 1, int(signal.SIGINT), *fit, command=TROUBLED)
    assert (stopped.code, stopped.out) == (130, "")
    assert "Traceback" not in stopped.err
    assert [path.name for path in tmp_path.iterdir()] == ["history.csv"]


def test_a_ledger_in_use_is_refused_with_exit_code_2(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "city.ledger"
    with piped("release", "-", "-m", model, *RULE, "--ledger", ledger, "-o", "-") as pipe:
        pipe.send("person,place")
        pipe.send(f"a,{PLACES[0]}")
        pipe.receive()
        pipe.receive()
        said = refused(
            live, "-m", model, *RULE, "--ledger", ledger, output=tmp_path / "private.csv"
        )
        assert said.startswith(f"sfumato: {ledger}: ")
        pipe.send(f"a,{PLACES[1]}")
        assert pipe.receive().startswith("a,1,")
        assert pipe.ended()[0] == 0


def test_a_ledger_can_be_read_with_any_tool(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:9]), tmp_path / "city.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "private.csv")
    database = sqlite3.connect(ledger)
    found = database.execute(
        "SELECT stream, sequence, released, outcome, sip, ldp FROM events ORDER BY place"
    ).fetchall()
    database.close()
    told = [tuple(row.values()) for row in rows(tmp_path / "private.csv")]
    assert [tuple(map(str, row)) for row in found] == told
    assert [path.name for path in tmp_path.glob("city.ledger*")] == ["city.ledger"]
