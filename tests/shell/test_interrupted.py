import json
import signal
import sqlite3
from pathlib import Path

import pytest

from sfumato.cli.console import UNREAD
from tests.shell.releasing import COLUMNS, LIVE, RULE, STEP, ledger_of, refused
from tests.shell.running import call, done, litter, piped, rows, spawn
from tests.shell.tables import PLACES, table

# Standard input and output -----------------------------------------------------------------------


def test_each_answer_arrives_before_the_next_line_is_sent(model: Path) -> None:
    with piped("release", "-", "-m", model, "--epsilon", 1, *STEP, "-o", "-") as pipe:
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
    result = call("release", "-", "-m", model, *RULE, "-o", "-", stdin=lines.encode())
    assert result.code == 2
    assert result.out.endswith("\n")
    assert [line.count(",") for line in result.out.splitlines()] == [5, 5, 5]
    rule = "sfumato: -, row 3: value must be one of the 4 symbols of the alphabet"
    assert result.err.startswith(rule) and "palace" not in result.err


def test_a_pipe_and_a_file_give_the_same_answers(model: Path, tmp_path: Path, key: Path) -> None:
    live, private = table(tmp_path / "live.csv", LIVE[:15]), tmp_path / "private.csv"
    rule = ("-m", model, *RULE, "--key-file", key)
    done("release", live, *rule, "-o", private)
    through = spawn("release", "-", *rule, "-o", "-", stdin=live.read_bytes())
    assert (through.code, through.out) == (0, private.read_text())
    assert done("release", live, *rule, "-o", "-").out == private.read_text()


def test_an_empty_pipe_is_refused(model: Path) -> None:
    result = call("release", "-", "-m", model, *RULE, "-o", "-", stdin=b"")
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
        assert pipe.process.wait(timeout=60) == UNREAD
        assert pipe.process.stderr is not None
        assert pipe.process.stderr.read() == b""  # nobody is told, as of other programs before head
    kept, _ = ledger_of(ledger, model)
    assert [answer.sequence for answer in kept] == [0, 1]
    assert kept[0].released == told.split(",")[2]
    assert live.exists()


# Interrupted and killed --------------------------------------------------------------------------

TROUBLE = """
import os, signal, sqlite3, sys
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output
from sfumato.store.sqlite import SqliteStore

# A shell that starts the tests in the background lets them ignore SIGINT; nobody else does.
signal.signal(signal.SIGINT, signal.default_int_handler)
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
replace = os.replace
around(os, "replace", "replace")
counted = os.replace
# The compiler keeps its loops by the same call, on a machine where it runs for the first time.
kept = (".nbi", ".nbc")
os.replace = lambda old, new: (replace if str(new).endswith(kept) else counted)(old, new)

from sfumato.cli import main
main()
"""
KILLS = [
    ("before commit", 1, 0),
    ("before commit", 3, 16),
    ("inside commit", 4, 8),
    ("at the end of commit", 5, 8),  # three more when a ledger and an input begin
    ("after commit", 1, 8),
    ("after commit", 5, 40),
    ("before write", 3, 24),
    ("after write", 4, 32),
    ("before replace", 1, 60),
    ("after replace", 1, 60),
    ("after replace", 2, 60),
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
        script=TROUBLE,
    )
    assert killed.code == -signal.SIGKILL
    # The rules take their place first, so that no table stands without them.
    assert private.exists() == ((point, number) == ("after replace", 2))
    assert (tmp_path / "private.csv.plan.json").exists() == (point == "after replace")
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
    again = done(*run, "--resume", "-o", "-", stdin=lines.encode())
    assert again.out.splitlines()[: answered + 1] == told
    assert len(again.out.splitlines()) == len(LIVE) + 1
    assert f"{len(LIVE)} rows, {answered} of them answered before" in again.err
    kept, spent = ledger_of(tmp_path / "city.ledger", model)
    assert len(kept) == len(LIVE)
    assert sum(end.sequence for end in spent.values()) == len(LIVE)


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
        script=TROUBLE,
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
    assert (answer.released, repr(answer.leakage)) == (told[2], told[4])


def test_a_run_interrupted_without_a_ledger_says_that_it_cannot_go_on(
    model: Path, tmp_path: Path
) -> None:
    live, private = table(tmp_path / "live.csv", LIVE), tmp_path / "private.csv"
    stopped = spawn(
        *("after write", 2, int(signal.SIGINT), "release", live, "-m", model, *RULE),
        *("-o", private),
        script=TROUBLE,
    )
    assert stopped.code == 130
    assert "use --ledger to be able to go on" in stopped.err
    assert len(rows(private)) == 16


def test_an_interrupted_fit_leaves_no_model_and_no_litter(tmp_path: Path) -> None:
    history = table(tmp_path / "history.csv", LIVE)
    fit = ("fit", history, "--stream", "person", "--value", "place", "-o", tmp_path / "city.model")
    stopped = spawn("before replace", 1, int(signal.SIGINT), *fit, script=TROUBLE)
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
        assert said.startswith(f"sfumato: {ledger}: ") and "in use" in said
        assert "not a readable ledger" not in said
        pipe.send(f"a,{PLACES[1]}")
        assert pipe.receive().startswith("a,1,")
        assert pipe.ended()[0] == 0


def test_a_ledger_can_be_read_with_any_tool(model: Path, tmp_path: Path) -> None:
    live, ledger = table(tmp_path / "live.csv", LIVE[:9]), tmp_path / "city.ledger"
    done("release", live, "-m", model, *RULE, "--ledger", ledger, "-o", tmp_path / "private.csv")
    database = sqlite3.connect(ledger)
    found = database.execute(
        "SELECT stream, sequence, released, outcome, leakage, model_free FROM events ORDER BY place"
    ).fetchall()
    database.close()
    told = [tuple(row.values()) for row in rows(tmp_path / "private.csv")]
    assert [tuple(map(str, row)) for row in found] == told
    beside = {path.name.removeprefix("city.ledger") for path in tmp_path.glob("city.ledger*")}
    assert beside == {"", ".head", ".key"}
