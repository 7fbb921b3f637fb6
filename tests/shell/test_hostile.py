"""Every command against input that nobody should give it: one line, exit code 2, nothing left."""

import gzip
import os
from pathlib import Path

import pytest

from sfumato.core import limits
from tests.shell.releasing import STEP
from tests.shell.running import call, files, refused
from tests.shell.tables import write

ROWS = "".join(f"p{i % 4},{'abc'[i % 3]},{i % 7},{2 * (i % 7) + 1}\n" for i in range(40))
GOOD = f"stream,value,x,y\n{ROWS}".encode()
TABLES: dict[str, bytes] = {
    "empty.csv": b"",
    "header.csv": b"stream,value,x,y\n",
    "twice.csv": GOOD.replace(b"x,y", b"x,x"),
    "nul.csv": GOOD[:60] + b"\0" + GOOD[60:],
    "latin.csv": GOOD.replace(b"p1,", "é,".encode("latin-1")),
    "wide.csv": GOOD.decode().encode("utf-16"),
    "bytes.csv": bytes(range(256)) * 8,
    "blank.csv": b"\n\n  \n",
    "short.csv": GOOD + b"p1\n",
    "quote.csv": GOOD + b'"p1,a,1,3\n',
    "cut.csv.gz": gzip.compress(GOOD)[:-9],
    "deep.jsonl": b'{"stream": ' + b"[" * 100_000,
    "list.json": b'[{"stream": "p", "value": "a", "x": 1, "y": 2}]\n',
    "other.parquet": b"PAR1" + b"x" * 64 + b"PAR1",
    "other.arrow": b"ARROW1" + b"x" * 64,
    "name.txt": GOOD,
}
COMMANDS: dict[str, list[object]] = {
    "fit": ["IN", "-o", "OUT"],
    "release": ["IN", "-m", "MODEL", "--epsilon", 0.5, *STEP, "-o", "OUT"],
    "audit": ["IN", "-m", "MODEL", "--plan", "PLAN"],
    "privatize": ["IN", "-c", "value", "--epsilon", 1, "-o", "OUT"],
    "disclosure": ["-t", "IN", "-c", "x,y", "--accuracy", 2, "--sigma", 6],
    "publish": ["-t", "IN", "-c", "x,y", "--accuracy", 2, "--sigma", 6, "-o", "OUT"],
    "compare": ["IN", "--value", "x", "--sensitivity", 1, "--epsilon", 1, "--runs", 1],
    "realtime": ["IN", "--value", "x", "--sensitivity", 1, "--epsilon", 1, "-o", "OUT"],
    "temporal fit": ["IN", "-o", "OUT"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    for name, content in TABLES.items():
        (folder / name).write_bytes(content)
    (folder / "folder.csv").mkdir()
    (folder / "loop.csv").symlink_to(folder / "loop.csv")
    (folder / "plan.json").write_text('{"epsilon": 0.5}')
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_table_that_is_none_is_refused_by_every_command(
    command: str, place: Path, model: Path
) -> None:
    before = files(place)
    some = ("empty.csv", "bytes.csv", "quote.csv", "folder.csv", "missing.csv")
    every = (*TABLES, "folder.csv", "loop.csv", "missing.csv")
    for name in every if command == "fit" else some:  # they read with the same readers
        words: dict[object, object] = {
            "IN": place / name,
            "OUT": place / "out.csv",
            "MODEL": model,
            "PLAN": place / "plan.json",
        }
        told = call(*command.split(), *(words.get(each, each) for each in COMMANDS[command]))
        refused(told, name)
        assert files(place) == before


@pytest.mark.parametrize("name", ["crlf.csv", "mark.csv"])
def test_line_ends_and_marks_of_other_systems_are_read(name: str, tmp_path: Path) -> None:
    mark = b"\xef\xbb\xbf" if name == "mark.csv" else b""
    (tmp_path / name).write_bytes(mark + GOOD.replace(b"\n", b"\r\n"))
    assert call("fit", tmp_path / name, "-o", tmp_path / "m").code == 0


def test_counts_that_no_memory_holds_are_refused_by_their_rule(tmp_path: Path, model: Path) -> None:
    table, out = write(tmp_path / "t.csv", ["stream", "value", "x"], [("p", 1, 2)] * 9), "OUT"
    matrix = tmp_path / "b.csv"
    matrix.write_text("0.5,0.5\n0.5,0.5\n")
    many, series = 10**20, ["realtime", table, "--value", "x", "--sensitivity", 1, "--epsilon", 1]
    cases: list[tuple[list[object], str]] = [
        (["fit", table, "--value", "x", "--bins", many, "-o", out], "bins must be at most"),
        (
            ["fit", table, "--grid", f"{many}x2", "--x", "x", "--y", "value", "-o", out],
            "grid must be at most",
        ),
        (["release", table, "-m", model, "--epsilon", 1, "--batch", many, "-o", out], "at most"),
        (["compile", "-m", model, "--epsilon", 1, "--batch", many, "-o", out], "at most 1,000"),
        (["implied", "--prior", "0.5,0.5", "--epsilon", 1, "--times", many], "--times"),
        (["temporal", "leakage", "--backward", matrix, "--epsilon", 1, "--steps", many], "--steps"),
        (
            [*series, "--length", many, "-o", out],
            "--length must be at most",
        ),
        (
            ["compare", table, "--value", "x", "--sensitivity", 1, "--epsilon", 1, "--rows", -5],
            "--rows must be a whole number of at least 1",
        ),
        (["design", "--belief", " ", "--epsilon", 1], "--belief must hold at least one number"),
    ]
    before = files(tmp_path)
    for arguments, rule in cases:
        words = [tmp_path / "out.csv" if each == out else each for each in arguments]
        refused(call(*words), rule)
        assert files(tmp_path) == before


def test_a_state_that_is_none_is_named(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", ["x"], [(n,) for n in range(9)])
    state, out = tmp_path / "year.state", tmp_path / "out.csv"
    run = ("realtime", table, "--value", "x", "--sensitivity", 1, "--epsilon", 1, "--length", 20)
    state.write_bytes(b"no state at all")
    refused(call(*run, "--state", state, "-o", out), state, "must begin with the mark of Sfumato")
    assert files(tmp_path) == {"t.csv", "year.state"}


def test_an_output_in_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", ["stream", "value"], [("p", "a")] * 9)
    os.symlink(tmp_path / "m", tmp_path / "m")
    refused(call("fit", table, "-o", tmp_path / "m"), "a link that leads to itself")
    assert (tmp_path / "m").is_symlink()


def test_a_study_reads_no_more_than_a_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "people.csv.gz"
    bomb.write_bytes(gzip.compress(b"\0" * (1 << 20)) * 30)
    run = ("study", "mddp-figures", "-o", tmp_path, "--data")
    monkeypatch.setattr(limits, "DOCUMENT", 1 << 21)
    refused(call(*run, bomb), "must unpack to at most 2,097,152 bytes")
    refused(call(*run, "/dev/zero"), "--data must name a file")


def test_a_ledger_that_cannot_be_opened_is_no_defect(tmp_path: Path, model: Path) -> None:
    table = write(tmp_path / "t.csv", ["person", "place"], [("p", "market")] * 3)
    ledger = tmp_path / "city.ledger"
    os.symlink(ledger, ledger)
    run = ("release", table, "-m", model, "--epsilon", 1, *STEP, "-o", tmp_path / "out.csv")
    refused(call(*run, "--ledger", ledger), ledger)
    assert not (tmp_path / "out.csv").exists()
