"""Yesterday's answers are for yesterday's values: identity through files, days and restarts."""

import json
import random
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from sfumato.store.keys import key_file
from sfumato.store.ledger_reader import LedgerReader
from tests.contracts.store_laws import answers_of
from tests.shell.releasing import COLUMNS, RULE, ledger_of
from tests.shell.running import TOKEN, call, done, refused, rows
from tests.shell.tables import FORMATS, PLACES, by_stream, read, table, walk, write

NAMES = ["when", "person", "place"]
SURE = ("--epsilon", 30, "--method", "randomized-response")
"""So much that an answer is the value: an answer of yesterday shows."""


def day(number: int, count: int = 12) -> list[tuple[str, str]]:
    return walk(100 + number, rows=count)


def timed(path: Path, number: int, records: Sequence[tuple[str, str]]) -> Path:
    """A day with a time in every row."""
    hours = [
        (f"2024-05-{number:02d}T{hour:02d}:00", *record) for hour, record in enumerate(records)
    ]
    return write(path, NAMES, hours)


# Daily files -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["file", "pipe"])
def test_new_data_under_an_old_name_never_gets_old_answers(
    model: Path, tmp_path: Path, how: str
) -> None:
    """The same name, other values: refused, and with --append answered for what they are."""
    ledger, out = tmp_path / "city.ledger", tmp_path / "private.csv"
    first, second = ([("a", place) for place in places] for places in (PLACES, PLACES[::-1]))
    live = table(tmp_path / "live.csv", first)
    run = ("release", live if how == "file" else "-", "-m", model, *SURE, "--ledger", ledger)

    def released(*more: object) -> tuple[int, str, str]:
        result = call(*run, *more, "-o", "-", stdin=live.read_bytes())
        return result.code, result.out, result.err

    assert released()[0] == 0
    kept = ledger_bytes(ledger)
    table(live, second)
    code, told, said = released()
    assert (code, told) == (2, "")
    assert "4 rows of" in said and "were answered before" in said
    assert all(option in said for option in ("--resume", "--append", "--time", "--event"))
    assert ledger_bytes(ledger) == kept
    code, told, said = released("--append")
    assert code == 0
    answers = [line.split(",") for line in told.splitlines()[1:]]
    assert [answer[2] for answer in answers] == list(PLACES[::-1])
    assert [answer[1] for answer in answers] == ["4", "5", "6", "7"]
    assert not out.exists()


def ledger_bytes(ledger: Path) -> list[tuple[str, int, object]]:
    with LedgerReader(ledger) as reader:
        return [(a.stream, a.sequence, a.released) for a in answers_of(reader)]


def test_another_name_continues_the_streams(model: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "city.ledger"
    for number in (1, 2):
        live = table(tmp_path / f"day{number}.csv", [("a", place) for place in PLACES])
        run = ("release", live, "-m", model, *RULE, "--ledger", ledger)
        done(*run, "-o", tmp_path / f"private{number}.csv")
    told = [row["sequence"] for row in rows(tmp_path / "private2.csv")]
    assert told == ["4", "5", "6", "7"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_stream_and_time_tell_events_apart(model: Path, tmp_path: Path, suffix: str) -> None:
    """One name every day, and the same day twice: each value is answered once, as it was."""
    ledger, live = tmp_path / "city.ledger", tmp_path / f"live.{suffix}"
    run = ("release", live, "-m", model, *SURE, "--time", "when", "--ledger", ledger, "--json")
    for number in (1, 2, 2):
        timed(live, number, day(number))
        report = done(*run, "-o", tmp_path / f"private{number}.csv").document
        answers = [row["released"] for row in rows(tmp_path / f"private{number}.csv")]
        assert answers == [place for _, place in day(number)]
    assert (report["rows"], report["repeated"]) == (12, 12)
    assert len(ledger_bytes(ledger)) == 24


@pytest.mark.parametrize(
    "other", ["2024-05-01 07:00", "2024-05-01T07:00:00", "2024-05-01T07:00:00.000000"]
)
def test_one_time_written_in_two_ways_is_one_event(model: Path, tmp_path: Path, other: str) -> None:
    run = ("-m", model, *RULE, "--time", "when", "--ledger", tmp_path / "l", "--json")
    for number, when in enumerate(("2024-05-01T07:00", other)):
        live = write(tmp_path / "live.csv", NAMES, [(when, "a", PLACES[0])])
        report = done("release", live, *run, "-o", tmp_path / f"p{number}.csv").document
    assert report["repeated"] == 1
    assert (tmp_path / "p0.csv").read_bytes() == (tmp_path / "p1.csv").read_bytes()


# A retry with another value ----------------------------------------------------------------------


@pytest.mark.parametrize("column", ["--time", "--event"])
def test_a_retry_with_another_value_is_refused_and_draws_nothing(
    model: Path, tmp_path: Path, column: str
) -> None:
    ledger, live = tmp_path / "city.ledger", tmp_path / "live.csv"
    run = ("release", live, "-m", model, *RULE, column, "when", "--ledger", ledger)
    timed(live, 1, [("a", place) for place in PLACES])
    done(*run, "-o", tmp_path / "first.csv")
    kept = ledger_bytes(ledger)
    timed(live, 1, [("a", place) for place in (*PLACES[:3], PLACES[0])])
    result = call(*run, "-o", tmp_path / "second.csv")
    refused(result, live, "row 4", "was answered before, for another value")
    assert not any(place in result.err for place in PLACES)
    assert not (tmp_path / "second.csv").exists()
    assert ledger_bytes(ledger) == kept


def test_without_its_key_file_a_retry_is_answered_and_remarked_on(
    model: Path, tmp_path: Path
) -> None:
    ledger, live = tmp_path / "city.ledger", tmp_path / "live.csv"
    run = ("release", live, "-m", model, *RULE, "--time", "when", "--ledger", ledger)
    timed(live, 1, day(1))
    done(*run, "-o", tmp_path / "first.csv")
    key_file(ledger).unlink()
    result = done(*run, "-o", tmp_path / "second.csv")
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()
    assert result.err.count("whether its value is the same cannot be told") == 1


@pytest.mark.parametrize("columns", [("--time", "when"), ("--event", "when"), ()])
def test_a_ledger_knows_its_events_by_one_thing(
    model: Path, tmp_path: Path, columns: tuple[str, ...]
) -> None:
    ledger, live = tmp_path / "city.ledger", timed(tmp_path / "live.csv", 1, day(1))
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    done(*run, *columns)
    for others in {("--time", "when"), ("--event", "when"), ()} - {columns}:
        refused(call(*run, *others), ledger, "events of this ledger are known by")


# Resuming ----------------------------------------------------------------------------------------


def changed(records: list[tuple[str, str]], how: str) -> list[tuple[str, str]]:
    match how:
        case "a value":
            person, place = records[3]
            records[3] = (person, PLACES[(PLACES.index(place) + 1) % 4])
        case "a person":
            records[3] = ("somebody", records[3][1])
        case "two rows swapped":
            other = next(i for i in range(4, len(records)) if records[i] != records[3])
            records[3], records[other] = records[other], records[3]
        case "a row more in front":
            records.insert(0, ("person-1", PLACES[0]))
        case "rows missing at the end":
            del records[-2:]
    return records


@pytest.mark.parametrize(
    "how",
    ["a value", "a person", "two rows swapped", "a row more in front", "rows missing at the end"],
)
def test_resuming_checks_that_the_input_is_the_same(model: Path, tmp_path: Path, how: str) -> None:
    ledger, live = tmp_path / "city.ledger", table(tmp_path / "live.csv", day(1))
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger)
    done(*run, "-o", tmp_path / "first.csv")
    kept = ledger_bytes(ledger)
    table(live, changed(day(1), how))
    refused(call(*run, "--resume", "-o", tmp_path / "second.csv"), live, "--resume is for the same")
    assert ledger_bytes(ledger) == kept
    assert not (tmp_path / "second.csv").exists()
    table(live, day(1))
    done(*run, "--resume", "-o", tmp_path / "second.csv")
    assert (tmp_path / "second.csv").read_bytes() == (tmp_path / "first.csv").read_bytes()


def test_resuming_needs_something_to_resume(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", day(1)), tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    refused(call(*run, "--resume"), "be the ledger of the interrupted run")
    ledger.touch()
    refused(call(*run, "--resume"), "nothing of 'live.csv' to resume")
    done(*run)
    other = table(tmp_path / "other.csv", day(2))
    result = call("release", other, *run[2:], "--resume")
    refused(result, "nothing of 'other.csv' to resume")
    refused(call(*run, "--resume", "--append"), "--append must not come with --resume")


def test_resuming_without_the_key_file_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", day(1)), tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    done(*run)
    key_file(ledger).unlink()
    refused(call(*run, "--resume"), "bring it back, or --append")
    done(*run, "--append")


def test_the_last_of_several_inputs_of_a_name_is_resumed(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", day(1)), tmp_path / "city.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger)
    done(*run, "-o", tmp_path / "first.csv")
    table(live, day(2))
    done(*run, "--append", "-o", tmp_path / "second.csv")
    done(*run, "--resume", "-o", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "second.csv").read_bytes()
    table(live, day(1))
    refused(call(*run, "--resume", "-o", tmp_path / "no.csv"), "--resume is for the same input")


def test_without_a_ledger_an_output_is_not_written_over(
    model: Path, tmp_path: Path, key: Path
) -> None:
    live, private = table(tmp_path / "live.csv", day(1)), tmp_path / "private.csv"
    run = ("release", live, "-m", model, *RULE, "-o", private)
    done(*run)
    before = private.read_bytes()
    refused(call(*run), private, "not exist: a second release tells more")
    refused(call(*run, "--append"), "ledger must be given to append a source")
    assert private.read_bytes() == before
    done(*run, "--key-file", key)


# An audit over days ------------------------------------------------------------------------------


@pytest.fixture(params=[(), ("--batch", 3)], ids=["values", "batches"])
def days(model: Path, tmp_path: Path, request: pytest.FixtureRequest) -> list[Path]:
    """Three days of one ledger: their outputs; the inputs lie beside them."""
    outputs = []
    for number in (1, 2, 3):
        live = timed(tmp_path / f"live{number}.csv", number, day(number))
        outputs.append(tmp_path / f"private{number}.csv")
        rule = (*RULE, *request.param, "--time", "when", "--keep", "when")
        ledger = ("--ledger", tmp_path / "city.ledger")
        done("release", live, "-m", model, *rule, *ledger, "-o", outputs[-1])
    return outputs


def test_an_audit_takes_several_files_in_order(model: Path, days: list[Path]) -> None:
    truths = [x for n in (1, 2, 3) for x in ("--against", days[0].with_name(f"live{n}.csv"))]
    report = done("audit", *days, "-m", model, *truths, "--json").document
    assert (report["passed"], report["rows"], report["problem_count"]) == (True, 36, 0)
    told = by_stream([row for path in days for row in rows(path)])
    for name, stream in told.items():
        spent = sum(float(row["sip"]) for row in stream)
        assert report["streams"][name]["sip"] == pytest.approx(spent)
    assert done("audit", *days[:2], "-m", model).code == 0
    for wrong in ((days[1],), (days[0], days[2]), (days[1], days[0])):
        result = call("audit", *wrong, "-m", model)
        assert result.code == 1


@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2), ()])
def test_an_audit_with_the_ledger_takes_any_days(
    model: Path, days: list[Path], which: tuple[int, ...]
) -> None:
    ledger = ("--ledger", days[0].with_name("city.ledger"))
    chosen = [days[i] for i in which]
    report = done("audit", *chosen, "-m", model, *ledger, "--json").document
    assert (report["passed"], report["rows"]) == (True, 12 * len(which))
    assert report["only_in_ledger"] == 36 - 12 * len(which)
    assert sum(stream["steps"] for stream in report["streams"].values()) == 36
    assert done("audit", *chosen, "-m", model, *ledger, "--coverage", "part").code == 0
    whole = call("audit", *chosen, "-m", model, *ledger, "--coverage", "whole")
    assert whole.code == (0 if len(which) == 3 else 1)


@pytest.mark.parametrize("number", range(4))
def test_a_day_with_a_fault_in_it_fails(
    model: Path, days: list[Path], tmp_path: Path, number: int
) -> None:
    """A row lost, a value changed, two rows swapped, a price lowered: in the second day alone."""
    lines = days[1].read_text().splitlines()
    where = random.Random(number).randrange(3, 10)
    fields = lines[where].split(",")
    match number:
        case 0:
            del lines[where]
        case 1:
            place = rows(days[1])[where - 1]["released"]
            lines[where] = lines[where].replace(place, PLACES[(PLACES.index(place) + 1) % 4])
        case 2:
            lines[where], lines[where + 1] = lines[where + 1], lines[where]
            person = lines[where].split(",")[0]
            if person != lines[where + 1].split(",")[0]:
                lines[where] = lines[where].replace(person, "person-9")
        case _:
            lines[where] = ",".join([*fields[:-2], "0.0001", fields[-1]])
    days[1].write_text("\n".join(lines) + "\n")
    ledger = ("--ledger", tmp_path / "city.ledger")
    assert call("audit", days[1], "-m", model, *ledger).code == 1
    assert call("audit", *days, "-m", model).code == 1


def test_a_retry_in_a_later_file_passes_the_audit(model: Path, tmp_path: Path) -> None:
    records = [(f"e{i}", *row) for i, row in enumerate(walk(5, rows=30))]
    run = ("-m", model, *RULE, "--event", "id", "--ledger", tmp_path / "city.ledger")
    outputs = [tmp_path / f"private{i}.csv" for i in range(3)]
    for output, part in zip(outputs, (slice(0, 12), slice(8, 20), slice(2, 30)), strict=True):
        live = write(tmp_path / "live.csv", ["id", "person", "place"], records[part])
        done("release", live, *run, "-o", output)
    report = done("audit", *outputs, "-m", model, "--json").document
    assert (report["passed"], report["repeated"]) == (True, 4 + 18)
    ledger = ("--ledger", tmp_path / "city.ledger")
    report = done("audit", *outputs, "-m", model, *ledger, "--json").document
    assert (report["passed"], report["repeated"], report["only_in_ledger"]) == (True, 22, 0)
    lines = outputs[2].read_text().splitlines()
    told = rows(outputs[2])[0]["released"]
    lines[1] = lines[1].replace(told, PLACES[(PLACES.index(told) + 1) % 4])
    outputs[2].write_text("\n".join(lines) + "\n")
    assert call("audit", *outputs, "-m", model).code == 1
    assert call("audit", *outputs, "-m", model, *ledger).code == 1


@pytest.mark.parametrize("column", ["--event", "--time"])
@pytest.mark.parametrize("batch", [(), ("--batch", 2)])
def test_what_a_pipe_sends_twice_is_answered_as_before(
    model: Path, tmp_path: Path, column: str, batch: tuple[object, ...]
) -> None:
    """Twice at once while it may wait, and once more at the end; in a file that is an error."""
    records = [(f"{i}", "a", PLACES[i]) for i in (0, 0, 1, 2, 3, 0)]
    lines = write(tmp_path / "live.csv", NAMES, records).read_bytes()
    rule = (*RULE, *batch, column, "when", "--ledger", tmp_path / "l.ledger")
    told = done("release", "-", "-m", model, *rule, "-o", "-", stdin=lines)
    out = told.out.splitlines()[1:]
    assert len(out) == (5 if batch else 6)
    assert len(set(out)) == 4 and out[-1] == out[0]
    (tmp_path / "piped.csv").write_text(told.out)
    spec = {"epsilon": 1.0, "method": "randomized-response"} | ({"batch": 2} if batch else {})
    spec |= {"event": "when"} if column == "--event" else {}
    (tmp_path / "piped.csv.plan.json").write_text(json.dumps(spec))
    audit = ("audit", tmp_path / "piped.csv", "-m", model, "--allow")
    beside = ("unsealed,any-model,repeated", "--ledger", tmp_path / "l.ledger")
    assert call(*audit, beside[0]).code == (0 if column == "--event" else 1)
    done(*audit, *beside)
    # Which rows come again is a message to whoever reads the file, and nobody asked for one.
    said = call(*audit, "unsealed,any-model", *beside[1:])
    assert said.code == 1 and f"row {len(out)}: a row must not come after a later one" in said.out
    other = lines.replace(b"0,a,bakery\n1", b"0,a,clinic\n1")
    wrong = call("release", "-", "-m", model, *rule[:-1], tmp_path / "m", "-o", "-", stdin=other)
    assert wrong.code == 2 and "row 2" in wrong.err
    refused(
        call("release", tmp_path / "live.csv", "-m", model, *rule[:-2], "-o", tmp_path / "p.csv")
    )


def test_a_tampered_ledger_fails_the_audit(model: Path, days: list[Path]) -> None:
    import sqlite3

    ledger = days[0].with_name("city.ledger")
    with sqlite3.connect(ledger) as database:
        database.execute("UPDATE events SET time = '2000-01-01T00:00:00' WHERE entry = 5")
    database.close()
    result = call("audit", *days, "-m", model, "--ledger", ledger)
    assert result.code == 1
    found = re.search(r"PROBLEM the ledger: one of the rows (\d+) to (\d+)", result.out)
    assert found and int(found[1]) <= 5 <= int(found[2])


# What leaves beside ------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("batch", [(), ("--batch", 3)])
def test_kept_columns_leave_beside_their_own_rows(
    model: Path, tmp_path: Path, suffix: str, batch: tuple[object, ...]
) -> None:
    records = [(f"{i}.5", f"site {i % 2}", *row) for i, row in enumerate(day(1))]
    live = write(tmp_path / f"live.{suffix}", ["when", "site", "person", "place"], records)
    keep = ("--time", "when", "--keep", "when,site", "--independent", "site")
    private = tmp_path / f"private.{suffix}"
    done("release", live, "-m", model, *RULE, *batch, *keep, "-o", private)
    told = read(private)
    order = ["person", "when", "site", "sequence", *(["batch"] if batch else []), *COLUMNS[2:]]
    assert list(told[0]) == order
    for name, stream in by_stream(told).items():
        expected = [(when, site) for when, site, person, _ in records if person == name]
        assert [(str(row["when"]), row["site"]) for row in stream] == expected
    done("audit", private, "-m", model)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--keep", "site"), "declare independent"),
        (("--keep", "place", "--independent", "place"), "not name a column that is released"),
        (("--keep", "person", "--independent", "person"), "they leave anyway"),
        (("--independent", "site"), "name columns that are kept"),
        (("--keep", "site,site", "--independent", "site"), "name every column once"),
        (("--keep", "sip", "--independent", "sip"), "the name of an output column"),
        (("--time", "place"), "hold times alone"),
        (("--keep", "nothing", "--independent", "nothing"), "column 'nothing'"),
    ],
)
def test_what_is_kept_must_not_tell_of_the_values(
    model: Path, tmp_path: Path, options: tuple[str, ...], word: str
) -> None:
    names = ["person", "place", "site", "sip"]
    live = write(tmp_path / "live.csv", names, [("a", PLACES[0], "s", TOKEN)])
    private = tmp_path / "private.csv"
    refused(call("release", live, "-m", model, *RULE, *options, "-o", private), word)
    assert not private.exists()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_copy_of_the_values_is_not_kept_whatever_was_declared(
    model: Path, tmp_path: Path, suffix: str
) -> None:
    records = [(*row, row[1]) for row in day(1)]
    live = write(tmp_path / f"live.{suffix}", ["person", "place", "copy"], records)
    keep, private = ("--keep", "copy", "--independent", "copy"), tmp_path / "private.csv"
    result = call("release", live, "-m", model, *RULE, *keep, "-o", private)
    refused(result, "column 'copy' must not hold the very values")
    assert not private.exists()


def test_what_was_declared_is_said_to_be_no_part_of_the_certificate(
    model: Path, tmp_path: Path
) -> None:
    records = [(*row, "north") for row in day(1)]
    live = write(tmp_path / "live.csv", ["person", "place", "site"], records)
    keep = ("--keep", "site", "--independent", "site", "-o", tmp_path / "private.csv")
    said = done("release", live, "-m", model, *RULE, *keep).err
    assert "not certified: what column 'site' tells of the values: declared independent" in said


# Order of times ----------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [1, 2])
def test_a_row_that_goes_back_in_time_is_named(model: Path, tmp_path: Path, runs: int) -> None:
    records = [(when, "a", PLACES[0]) for when in ("1", "2", "10", "9")]
    rule = (*RULE, "--time", "when", "--ledger", tmp_path / "city.ledger")
    late = ("release", tmp_path / "live.csv", "-m", model, *rule)
    if runs == 2:
        write(tmp_path / "live.csv", NAMES, records[:3])
        done(*late, "-o", tmp_path / "first.csv")
        records = [("9", "b", PLACES[0]), *records[3:]]
    live = write(tmp_path / "live.csv", NAMES, records)
    result = call(*late, "-o", tmp_path / "second.csv")
    refused(result, f"{live}, row {len(records)}: its time lies before", "--late accept")
    done(*late, "--late", "accept", "-o", tmp_path / "third.csv")
    assert [row["sequence"] for row in rows(tmp_path / "third.csv")][-1] == "3"


def test_two_rows_of_a_stream_at_one_time_are_refused(model: Path, tmp_path: Path) -> None:
    live = write(tmp_path / "live.csv", NAMES, [("1", "a", PLACES[0]), ("1.0", "a", PLACES[0])])
    run = ("release", live, "-m", model, *RULE, "--time", "when", "-o", tmp_path / "p.csv")
    refused(call(*run), "row 2: a stream must have one row for each time; row 1 has it too")


@pytest.mark.parametrize("when", ["", "noon", "nan", "1e999", TOKEN])
def test_a_time_that_is_none_is_refused(model: Path, tmp_path: Path, when: str) -> None:
    live = write(tmp_path / "live.csv", NAMES, [("1", "a", PLACES[0]), (when, "b", PLACES[0])])
    run = ("release", live, "-m", model, *RULE, "--time", "when", "-o", tmp_path / "p.csv")
    refused(call(*run), "row 2: column 'when' must")


def test_times_are_of_one_kind_in_a_stream(model: Path, tmp_path: Path) -> None:
    live = write(
        tmp_path / "live.csv", NAMES, [("1", "a", "bakery"), ("2024-05-01", "a", "bakery")]
    )
    run = ("release", live, "-m", model, *RULE, "--time", "when", "-o", tmp_path / "p.csv")
    refused(call(*run), "row 2: column 'when' must be of one kind throughout")


# Missing values ----------------------------------------------------------------------------------

GAPS = [("a", PLACES[0]), ("a", ""), ("b", PLACES[1]), ("a", PLACES[2]), ("b", "NaN")]


def test_a_missing_value_is_refused_unless_told_otherwise(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", GAPS)
    run = ("release", live, "-m", model, *RULE, "-o", tmp_path / "p.csv")
    refused(call(*run), "row 2: the value must not be empty")
    refused(call(*run, "--missing", "symbol"), "fit it so")
    refused(call(*run, "--missing", "guess"), "refuse, drop, symbol, skip")


@pytest.mark.parametrize("batch", [(), ("--batch", 2)])
def test_a_missing_value_is_dropped_with_its_row(
    model: Path, tmp_path: Path, batch: tuple[object, ...]
) -> None:
    live, private = table(tmp_path / "live.csv", GAPS), tmp_path / "private.csv"
    run = ("release", live, "-m", model, *RULE, *batch, "--missing", "drop", "--json")
    report = done(*run, "-o", private).document
    assert (report["rows"], report["missing"]) == (3, 2)
    assert {row["outcome"] for row in rows(private)} == {"released"}
    done("audit", private, "-m", model, "--against", live)


@pytest.mark.parametrize("batch", [(), ("--batch", 2)])
def test_a_skipped_moment_passes_without_an_answer_and_at_no_charge(
    model: Path, tmp_path: Path, batch: tuple[object, ...]
) -> None:
    live, private = table(tmp_path / "live.csv", GAPS), tmp_path / "private.csv"
    run = ("release", live, "-m", model, *RULE, *batch, "--missing", "skip", "-o", private)
    result = done(*run)
    assert "2 values were missing and passed over" in result.err
    told = by_stream(rows(private))
    assert [row["sequence"] for row in told["a"]] == ["0", "1", "2"]
    assert [row["outcome"] for row in told["a"]] == ["released", "skipped", "released"]
    for row in (told["a"][1], told["b"][1]):
        assert (row["released"], float(row["sip"]), float(row["ldp"])) == ("", 0.0, 0.0)
    report = done("audit", private, "-m", model, "--against", live, "--json").document
    assert (report["passed"], report["withheld"], report["compared"]) == (True, 0, 3)


def test_a_skipped_moment_moves_the_belief_on(model: Path, tmp_path: Path, key: Path) -> None:
    """After many of them the belief is the stationary one: the price is as in a long calm."""
    from sfumato.core.state import StreamState
    from sfumato.models.stream_model import StreamModel
    from sfumato.store.codec import from_bytes
    from sfumato.store.files import load
    from tests.shell.releasing import SPEC

    live = table(tmp_path / "live.csv", [("a", PLACES[0]), *[("a", "")] * 5])
    ledger = tmp_path / "city.ledger"
    rule = ("--missing", "skip", "--key-file", key, "--ledger", ledger)
    done("release", live, "-m", model, *RULE, *rule, "-o", tmp_path / "p.csv")
    fitted = load(model)
    assert isinstance(fitted, StreamModel)
    plan = SPEC.instant(fitted)
    with LedgerReader(ledger) as reader:
        told = answers_of(reader)[0].released
        kept = reader.position("a")
    assert isinstance(told, str)
    _, state = plan.observe(plan.begin("a"), [told])
    for _ in range(5):
        _, state = plan.skip(state)
    assert kept is not None
    belief = from_bytes(kept.state, StreamState).belief
    assert belief.marginal.tolist() == state.belief.marginal.tolist()
    assert len(ledger_of(ledger, model)[0]) == 6


def test_a_missing_value_is_a_symbol_where_the_model_knows_it(tmp_path: Path) -> None:
    history = [(person, place or "(missing)") for person, place in gappy(1, 300)]
    done(
        *("fit", table(tmp_path / "history.csv", history), "--stream", "person"),
        *("--value", "place", "-o", tmp_path / "gaps.model"),
    )
    live, private = table(tmp_path / "live.csv", gappy(2, 40)), tmp_path / "private.csv"
    rule = (*SURE, "--missing", "symbol", "--json")
    report = done("release", live, "-m", tmp_path / "gaps.model", *rule, "-o", private).document
    told = [row["released"] for row in rows(private)]
    assert told == [place or "(missing)" for _, place in gappy(2, 40)]
    assert report["missing"] == told.count("(missing)") > 0
    done("audit", private, "-m", tmp_path / "gaps.model", "--against", live)


def gappy(seed: int, count: int) -> list[tuple[str, str]]:
    return [(person, "" if place == "school" else place) for person, place in walk(seed, count)]


def test_a_skip_that_the_rules_do_not_know_fails_the_audit(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", [("a", p) for p in PLACES]), tmp_path / "p.csv"
    done("release", live, "-m", model, *RULE, "-o", private)
    lines = private.read_text().splitlines()
    lines[-1] = "a,3,,skipped,0.0,0.0"
    private.write_text("\n".join(lines) + "\n")
    assert call("audit", private, "-m", model).code == 1
