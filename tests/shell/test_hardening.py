"""What once slipped through: damaged files, smuggled values, odd names, strange exits."""

import gzip
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sfumato import Prior
from sfumato.cli.console import BAD_INPUT, UNREAD
from sfumato.core.errors import CorruptData
from sfumato.models.encoding import Bins, Symbols, Unreadable
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output
from tests.shell.releasing import EVEN, STEP, write_rules
from tests.shell.running import COMMAND, Result, call, done, litter, rows, spawn
from tests.shell.tables import PLACES, table, walk, write

RULE = ("--epsilon", 1, "--method", "randomized-response")
FIT = ("--stream", "person", "--value", "place")
LIVE = walk(7, rows=60)
RAW = "raw-value-that-nobody-may-read"


def refusal(path: Path) -> BadTable:
    with pytest.raises(BadTable) as caught:
        list(Table.at(str(path)).chunks(["person", "place"]))
    assert RAW not in str(caught.value)
    return caught.value


def clear(result: Result, *words: object) -> None:
    """Exit code 2, one line, no traceback, and it names what it should."""
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    for word in words:
        assert str(word) in result.err


# test_readers ------------------------------------------------------------------------------------


def test_a_damaged_compressed_file_is_refused(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(json.dumps(walk(1, 500)).encode()))
    whole[len(whole) // 2 : len(whole) // 2 + 40] = b"\xff" * 40
    path = tmp_path / "live.csv.gz"
    path.write_bytes(whole)
    assert "damaged" in str(refusal(path))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_columnar_file_damaged_in_the_middle_is_refused(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"live.{suffix}", ["person", "place"], walk(1, 400))
    whole = bytearray(path.read_bytes())
    place = 40 if suffix == "parquet" else 300
    whole[place : place + 80] = b"\xff" * 80
    path.write_bytes(whole)
    assert "damaged" in str(refusal(path))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_folder_is_no_columnar_table(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"live.{suffix}").mkdir()
    assert "must be one file" in str(refusal(tmp_path / f"live.{suffix}"))


@pytest.mark.parametrize("data", [b"", b"not parquet at all"])
def test_counting_a_damaged_file_is_no_drama(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "live.parquet"
    path.write_bytes(data)
    assert Table.at(str(path)).count() is None


@pytest.mark.parametrize("damage", [b"\xff", b"\0"])
@pytest.mark.parametrize("row", [1, 3])
def test_a_json_line_of_another_encoding_is_named(tmp_path: Path, row: int, damage: bytes) -> None:
    lines = [b'{"person":"p1","place":"here"}'] * 4
    lines[row - 1] = b'{"person":"p1","place":"' + RAW.encode() + damage + b'"}'
    path = tmp_path / "live.jsonl"
    path.write_bytes(b"\n".join(lines))
    assert refusal(path).row == row


@pytest.mark.parametrize("suffix", ["csv"])
def test_a_table_without_rows_is_refused(tmp_path: Path, suffix: str) -> None:
    problem = refusal(write(tmp_path / f"live.{suffix}", ["person", "place"], []))
    assert "must not be empty" in str(problem)


def test_a_row_after_a_field_of_many_lines_is_named(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    path.write_bytes(b'person,place\np1,"a\nb\nc"\np2,caf\xe9\n')
    assert refusal(path).row == 2


# test_writers ------------------------------------------------------------------------------------


def test_a_carriage_return_in_a_name_survives_csv(tmp_path: Path) -> None:
    path = tmp_path / "private.csv"
    with Output(Table.at(str(path)), {"person": str, "sip": float}) as output:
        output.write([("p\r1", 0.5)])
    (chunk,) = Table.at(str(path)).chunks(["person"])
    assert chunk.columns == {"person": ["p\r1"]}


# test_encoding -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[1], {"a": 1}, 10**400])
def test_what_no_number_can_be_made_of_is_refused_without_quoting_it(value: Any) -> None:
    with pytest.raises(Unreadable):
        Bins([0.0, 1.0]).encode(value)


@pytest.mark.parametrize("value", ["9", "x", 1.5])
def test_a_value_outside_the_alphabet_is_encoded_as_none(value: Any) -> None:
    assert Symbols.of(["1", "2"]).encode(value) is None
    assert Symbols.of(["a", "b"]).encode(value) is None


def test_symbols_are_text_or_numbers_and_nothing_else() -> None:
    for value in ([1], {"a": 1}):
        with pytest.raises(Unreadable):
            Symbols.of(["a", "b"]).encode(value)  # type: ignore[arg-type]


# codec -------------------------------------------------------------------------------------------


def test_a_damaged_kind_is_refused() -> None:
    data = bytearray(to_bytes(Prior([0.5, 0.5])))
    data[data.index(b"Prior")] ^= 0x80
    with pytest.raises(CorruptData):
        from_bytes(bytes(data), Prior)


# test_store / test_release -----------------------------------------------------------------------


def test_a_folder_is_no_ledger(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "a.ledger"
    ledger.mkdir()
    clear(
        call("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv"),
        ledger,
    )


def test_a_ledger_damaged_in_the_middle_is_refused(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE * 5), tmp_path / "a.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger)
    done(*run, "-o", tmp_path / "p.csv")
    damaged = bytearray(ledger.read_bytes())
    for page in range(4, len(damaged) // 4096):
        damaged[page * 4096 : page * 4096 + 3000] = b"\xa5" * 3000
    ledger.write_bytes(damaged)
    clear(call(*run, "-o", tmp_path / "q.csv"), ledger)


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))
from sfumato.cli import main
main()
"""


def test_a_ledger_on_a_full_disk_ends_with_exit_code_2(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", LIVE * 20)
    run = ("release", live, "-m", model, *RULE, "--ledger", tmp_path / "a.ledger")
    result = spawn(*run, "-o", tmp_path / "p.csv", script=LIMITED)
    clear(result, "a.ledger")
    assert not (tmp_path / "p.csv").exists()
    assert litter(tmp_path) == []


def test_the_output_must_not_be_the_input_under_another_name(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    (tmp_path / "link.csv").symlink_to(live)
    before = live.read_bytes()
    monkeypatch.chdir(tmp_path)
    for given, output in (("live.csv", "./live.csv"), ("live.csv", live), ("link.csv", "live.csv")):
        assert call("release", given, "-m", model, *RULE, "-o", output).code == 2
        assert live.read_bytes() == before


def test_fit_never_writes_over_its_history(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", LIVE)
    before = history.read_bytes()
    assert call("fit", history, *FIT, "-o", history).code == 2
    assert history.read_bytes() == before


@pytest.mark.parametrize("name", ["sequence", "released", "outcome", "sip", "ldp"])
def test_a_stream_column_with_the_name_of_an_output_column_is_refused(
    tmp_path: Path, name: str
) -> None:
    live = write(tmp_path / "live.csv", [name, "place"], LIVE)
    done("fit", live, "--stream", name, "--value", "place", "-o", tmp_path / "m")
    private = tmp_path / "private.csv"
    result = call("release", live, "-m", tmp_path / "m", *RULE, "-o", private)
    clear(result, name)


def test_a_table_without_rows_is_refused_by_release(model: Path, tmp_path: Path) -> None:
    live = table(tmp_path / "live.csv", [])
    clear(call("release", live, "-m", model, *RULE, "-o", tmp_path / "p.csv"), live)


@pytest.mark.parametrize("format", ["xml", "parquet", "arrow"])
def test_a_pipe_is_csv_or_json_lines(model: Path, format: str) -> None:
    lines = b'{"person": "a", "place": "market"}\n'
    result = call("release", "-", "-m", model, *RULE, "--format", format, "-o", "-", stdin=lines)
    clear(result, "--format", "csv", "jsonl")


def test_a_target_that_cannot_be_written_is_told_before_anything_is_spent(
    model: Path, tmp_path: Path
) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE), tmp_path / "a.ledger"
    target = tmp_path / "private.csv"
    target.mkdir()
    result = call("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", target)
    clear(result, target)
    assert "partial" not in result.err
    assert not ledger.exists()


def test_a_refused_published_rule_does_not_claim_the_budget_is_gone(
    model: Path, tmp_path: Path
) -> None:
    live = table(tmp_path / "live.csv", LIVE)
    result = call(
        "release",
        live,
        "-m",
        model,
        "--epsilon",
        1,
        "--method",
        "published",
        "-o",
        tmp_path / "p.csv",
    )
    assert "would need more than SIP(1), over what is left of its budget, SIP(1)" not in result.err


def test_a_seed_on_a_real_ledger_is_called_so(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:5]), tmp_path / "a.ledger"
    run = ("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "p.csv")
    done(*run)
    assert "simulation" in call(*run, "--seed", 1).err.splitlines()[-1]


SIGNALLED = """
import os, signal, sys
from sfumato.stream.plan import Plan
inner, count = Plan.step, 0
def step(*arguments, **named):
    global count
    count += 1
    if count == 10:
        os.kill(os.getpid(), signal.SIGINT)
    return inner(*arguments, **named)
Plan.step = step
from sfumato.cli import main
main()
"""


def test_an_interrupt_is_honoured_long_before_thousands_of_rows(
    model: Path, tmp_path: Path
) -> None:
    live = table(tmp_path / "live.csv", walk(3, rows=6000))
    run = ("release", live, "-m", model, *RULE, "-o", tmp_path / "p.csv")
    assert spawn(*run, script=SIGNALLED).code == 130
    assert len(rows(tmp_path / "p.csv")) < 1000


# test_audit --------------------------------------------------------------------------------------


@pytest.fixture
def released(model: Path, tmp_path: Path) -> Path:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    rule = (*RULE, "--when-unknown", "suppress", "--ledger", tmp_path / "city.ledger")
    done("release", live, "-m", model, *rule, "-o", private)
    return private


def rewritten(path: Path, records: list[dict[str, str]]) -> Path:
    changed = path.with_name("changed.csv")
    write(changed, list(records[0]), [list(row.values()) for row in records])
    shutil.copy(f"{path}.plan.json", f"{changed}.plan.json")
    return changed


def another(value: str) -> str:
    return PLACES[(PLACES.index(value) + 1) % len(PLACES)]


def test_a_value_smuggled_into_a_suppressed_row_is_found(model: Path, released: Path) -> None:
    records = rows(released)
    records[-1] |= {"outcome": "suppressed", "sip": "0.0", "ldp": "0.0", "released": RAW}
    assert call("audit", rewritten(released, records), "-m", model).code == 1


def test_a_repeated_value_that_is_another_is_found(model: Path, tmp_path: Path) -> None:
    live, private = table(tmp_path / "live.csv", [("a", p) for p in PLACES * 2]), tmp_path / "p.csv"
    rule = ("--budget", 4, "--horizon", 4, *EVEN, "--when-exhausted", "repeat", *RULE[2:])
    done("release", live, "-m", model, *rule, "-o", private)
    records = rows(private)
    records[-1]["released"] = another(records[-1]["released"])
    assert call("audit", rewritten(private, records), "-m", model).code == 1


def test_a_centre_that_is_not_that_of_the_cell_is_found(models: Path, tmp_path: Path) -> None:
    live = write(tmp_path / "live.csv", ["person", "lon", "lat"], [("a", 10, -5), ("a", 30, -15)])
    private, model = tmp_path / "private.csv", models / "grid.model"
    done("release", live, "-m", model, *RULE, "-o", private)
    records = rows(private)
    records[0]["x"] = "10.123456"  # the raw coordinate
    assert call("audit", rewritten(private, records), "-m", model).code == 1


def test_the_last_value_of_a_stream_is_compared_with_the_ledger(
    model: Path, released: Path
) -> None:
    records = rows(released)
    records[-1]["released"] = another(records[-1]["released"])
    ledger = released.with_name("city.ledger")
    result = call("audit", rewritten(released, records), "-m", model, "--ledger", ledger)
    assert result.code == 1


def test_a_last_row_that_is_missing_is_found_by_the_ledger(model: Path, released: Path) -> None:
    ledger = released.with_name("city.ledger")
    changed = rewritten(released, rows(released)[:-1])
    assert call("audit", changed, "-m", model, "--ledger", ledger).code == 1


def test_a_stream_missing_from_the_table_is_found_by_the_ledger(
    model: Path, released: Path
) -> None:
    ledger = released.with_name("city.ledger")
    records = [row for row in rows(released) if row["person"] != "person-1"]
    assert call("audit", rewritten(released, records), "-m", model, "--ledger", ledger).code == 1


def test_answers_changed_in_the_ledger_are_found(model: Path, released: Path) -> None:
    ledger = released.with_name("city.ledger")
    database = sqlite3.connect(ledger)
    database.execute("UPDATE events SET released = 'market', leakage = 0.001")
    database.commit()
    database.close()
    assert call("audit", released, "-m", model, "--ledger", ledger).code == 1


@pytest.mark.parametrize("value", ["x", "1.5", "palace"])
def test_a_released_value_that_is_no_number_is_a_problem(
    models: Path, tmp_path: Path, value: str
) -> None:
    model, private = models / "levels.model", tmp_path / "private.csv"
    live = table(tmp_path / "live.csv", [("a", 1 + i % 3) for i in range(9)])
    done("release", live, "-m", model, *RULE, "-o", private)
    records = rows(private)
    records[4]["released"] = value
    assert call("audit", rewritten(private, records), "-m", model).code == 1


@pytest.mark.parametrize(
    "fields", [{"released": "palace"}, {"sip": "nan"}, {"sip": "-1"}, {"released": ""}]
)
def test_a_problem_does_not_shift_the_true_values(
    model: Path, released: Path, fields: dict[str, str]
) -> None:
    records = rows(released)
    records[3] |= fields
    live = released.with_name("live.csv")
    result = call("audit", rewritten(released, records), "-m", model, "--against", live)
    assert result.code == 1
    assert "row 4: " in result.out


def test_a_true_table_that_does_not_fit_is_named(model: Path, released: Path) -> None:
    shorter = table(released.with_name("shorter.csv"), LIVE[:-1])
    clear(call("audit", released, "-m", model, "--against", shorter), shorter)


def test_a_ragged_loss_in_the_rules_is_refused(model: Path, released: Path) -> None:
    document = Path(f"{released}.plan.json")
    rules = json.loads(document.read_text()) | {"loss": [[0, 1], [1, 0, 2]]}
    write_rules(document, rules)
    clear(call("audit", released, "-m", model))


# test_commands -----------------------------------------------------------------------------------


def test_the_help_of_the_demo_teaches_by_example() -> None:
    said = done("demo", "--help").out
    assert "sfumato demo " in said[said.index("Examples:") :]


@pytest.mark.parametrize("order", [20, 60, 99])
def test_an_order_too_high_for_any_memory_is_refused(tmp_path: Path, order: int) -> None:
    history = table(tmp_path / "history.csv", LIVE)
    clear(call("fit", history, *FIT, "--order", order, "-o", tmp_path / "m"), "order")


def test_a_belief_of_many_symbols_may_be_typed() -> None:
    belief = ",".join(["0.01"] * 100)
    done("design", "--belief", belief, "--epsilon", 1, "--method", "randomized-response")


def test_a_picture_of_an_unknown_kind_is_refused(model: Path, tmp_path: Path) -> None:
    picture = tmp_path / "loss.xyz"
    rule = ("--epsilon", 1, *STEP, "--steps", 2, "--plot", picture)
    clear(call("plan", "-m", model, *rule), "--plot")


@pytest.mark.slow
def test_saying_nothing_never_beats_the_optimum_of_the_same_streams(model: Path) -> None:
    # A stream that begins in one place for sure and wanders off.
    found = done("plan", "-m", model, "--epsilon", 0.3, *STEP, "--steps", 60, "--json").document
    methods = {row["method"]: row["loss"] for row in found["methods"]}
    assert methods["step-wise"] <= methods["say nothing"]


def test_the_folder_of_a_model_is_named_as_the_user_named_it(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", LIVE)
    target = tmp_path / "missing" / "city.model"
    result = call("fit", history, *FIT, "-o", target)
    clear(result)
    assert "partial" not in result.err


@pytest.mark.parametrize("values", [["1e17", "1e17"], ["1700000000.001", "1700000000.002"]])
def test_values_that_cannot_be_cut_are_refused_in_words_of_the_user(
    tmp_path: Path, values: list[str]
) -> None:
    history = table(tmp_path / "history.csv", [("a", value) for value in values])
    result = call("fit", history, *FIT, "--bins", 4, "-o", tmp_path / "m")
    clear(result, "bins", history)


def test_the_widest_range_of_floats_can_be_cut(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", [("a", "-1e308"), ("a", "1e308")])
    assert (
        done("fit", history, *FIT, "--bins", 4, "-o", tmp_path / "m", "--json").document["symbols"]
        == 4
    )


def test_nan_is_no_symbol(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", [("a", "1"), ("a", "NaN"), ("a", "2")])
    clear(call("fit", history, *FIT, "-o", tmp_path / "m"), f"{history}, row 2")


@pytest.mark.parametrize("place", [[1], {"a": 1}, 10**400])
def test_json_that_is_no_number_is_named_by_its_row(tmp_path: Path, place: Any) -> None:
    history = tmp_path / "history.jsonl"
    lines = [{"person": "a", "place": 1.5}, {"person": "a", "place": place}]
    history.write_text("".join(json.dumps(line) + "\n" for line in lines))
    clear(call("fit", history, *FIT, "--bins", 2, "-o", tmp_path / "m"), f"{history}, row 2")


@pytest.mark.parametrize("suffix", ["parquet", "csv.gz"])
@pytest.mark.parametrize("command", ["fit", "release"])
def test_damaged_input_ends_with_exit_code_2(
    model: Path, tmp_path: Path, command: str, suffix: str
) -> None:
    path = tmp_path / f"live.{suffix}"
    whole = gzip.compress(b"person,place\n" + json.dumps(walk(1, 500)).encode())
    damaged = whole[:60] + b"\xff" * 40 + whole[100:]
    path.write_bytes(damaged if suffix == "csv.gz" else b"")
    more = (
        (*FIT, "-o", tmp_path / "m")
        if command == "fit"
        else ("-m", model, *RULE, "-o", tmp_path / "p.csv")
    )
    clear(call(command, path, *more), path)


@pytest.mark.parametrize("target", ["/dev/full", "closed pipe"])
def test_standard_output_that_cannot_be_written_gives_no_strange_exit_code(target: str) -> None:
    script = '"$@" > /dev/full' if target == "/dev/full" else '("$@"; echo $? >&2) | true'
    shell = ["sh", "-c", script, "sh", *COMMAND]
    result = spawn("design", "--belief", "0.5,0.5", "--epsilon", 1, "--json", command=shell)
    assert "Exception ignored" not in result.err
    if target == "/dev/full":
        assert result.code == BAD_INPUT
    else:
        assert int(result.err.split()[-1]) == UNREAD


def test_quiet_means_no_remarks(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", walk(1, rows=300))
    result = done("fit", history, *FIT, "-o", tmp_path / "m", "--quiet")
    assert (result.out, result.err) == ("", "")


def test_a_row_called_suppressed_is_found_where_the_plan_refuses(
    model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    done("release", live, "-m", model, *RULE, "-o", private)
    records = rows(private)
    records[-1] |= {"outcome": "suppressed", "sip": "0.0", "ldp": "0.0", "released": ""}
    assert call("audit", rewritten(private, records), "-m", model).code == 1


def test_event_ids_are_compared_with_the_ledger(model: Path, tmp_path: Path) -> None:
    records = [(f"e{i}", *row) for i, row in enumerate(LIVE)]
    live = write(tmp_path / "live.csv", ["id", "person", "place"], records)
    private, ledger = tmp_path / "private.csv", tmp_path / "a.ledger"
    done("release", live, "-m", model, *RULE, "--event", "id", "--ledger", ledger, "-o", private)
    told = rows(private)
    done("audit", private, "-m", model, "--ledger", ledger)
    told[0]["event"], told[1]["event"] = told[1]["event"], told[0]["event"]
    assert call("audit", rewritten(private, told), "-m", model, "--ledger", ledger).code == 1


@pytest.mark.parametrize("option", ["--event", "--stream"])
def test_the_value_column_is_never_released_as_a_name(
    model: Path, tmp_path: Path, option: str
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    result = call("release", live, "-m", model, *RULE, option, "place", "-o", private)
    clear(result, "column")
    assert not private.exists()


def test_a_ledger_is_a_file_of_its_own(model: Path, tmp_path: Path) -> None:
    live, one = table(tmp_path / "live.csv", LIVE), tmp_path / "one.csv"
    clear(call("release", live, "-m", model, *RULE, "--ledger", one, "-o", one), one)
    clear(call("release", live, "-m", model, *RULE, "--ledger", live, "-o", one), live)
    clear(call("release", live, "-m", model, *RULE, "-o", model), model)


@pytest.mark.parametrize("window", [0, -1])
def test_a_window_is_at_least_one_step(model: Path, released: Path, window: int) -> None:
    clear(call("audit", released, "-m", model, "--window", window), "window")
