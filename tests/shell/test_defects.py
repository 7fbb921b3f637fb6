"""What is nobody's fault but the program's or the surroundings': one line, a code of its own."""

import ast
import io
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import sfumato.cli
from sfumato import SIP, Window
from sfumato.cli import console
from sfumato.cli.app import run
from sfumato.cli.console import DEFECT, escaped
from sfumato.core.errors import InvalidParameter
from sfumato.store.files import whole
from tests.shell.releasing import STEP
from tests.shell.running import COMMAND, TOKEN, call, done, files, refused
from tests.shell.tables import write

BROKEN = "sfumato.cli.design_command.read_belief"
DESIGN = ("design", "--belief", "0.5,0.5", "--epsilon", 1)


def broken(*_: object) -> None:
    raise TypeError(TOKEN)


def test_a_defect_has_a_code_of_its_own_and_says_nothing_of_the_data() -> None:
    with mock.patch(BROKEN, broken):
        result = call(*DESIGN)
    assert (result.code, result.out) == (DEFECT, "") == (70, "")
    assert len(result.err.splitlines()) == 1
    assert result.err.startswith("sfumato: internal error (TypeError): a defect of the program")
    assert TOKEN not in result.err
    assert "--traceback" in result.err


@pytest.mark.parametrize("arguments", [("--traceback", *DESIGN), (*DESIGN, "--traceback")])
def test_who_asks_for_the_traceback_gets_it(arguments: tuple[object, ...]) -> None:
    with mock.patch(BROKEN, broken):
        result = call(*arguments)
    assert result.code == DEFECT
    assert "Traceback (most recent call last)" in result.err


def test_the_environment_may_ask_for_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_TRACEBACK", "1")
    with mock.patch(BROKEN, broken):
        assert "Traceback (most recent call last)" in call(*DESIGN).err
    monkeypatch.setenv("SFUMATO_TRACEBACK", "0")
    with mock.patch(BROKEN, broken):
        assert "Traceback" not in call(*DESIGN).err


def test_memory_that_is_not_there_is_no_defect() -> None:
    with mock.patch(BROKEN, mock.Mock(side_effect=MemoryError)):
        refused(call(*DESIGN), "more memory")


def test_the_version_is_told() -> None:
    assert done("--version").out == f"sfumato {metadata.version('sfumato')}\n"


def test_a_window_that_no_memory_holds_is_refused_by_its_rule(model: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="window must be at most 100,000: every stream"):
        Window(SIP(1.0), width=1_000_000_000)
    rule = ("--budget", 1, "--window", 1_000_000_000, "-o", tmp_path / "out.csv")
    refused(call("compile", "-m", model, *rule), "window must be at most 100,000")
    live = write(tmp_path / "live.csv", ["person", "place"], [("p", "market")])
    refused(call("release", live, "-m", model, *rule), "a horizon may be longer")
    assert files(tmp_path) == {"live.csv"}


# Standard streams ---------------------------------------------------------------------------------


def test_a_closed_output_ends_with_exit_code_2() -> None:
    command = " ".join(f"'{part}'" for part in COMMAND)
    ended = subprocess.run(
        ["sh", "-c", f"{command} --version >&-"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, "sfumato: output: Bad file descriptor\n")


def test_closed_standard_streams_are_taken_over_by_no_file(tmp_path: Path) -> None:
    program = """
import os, sys
from sfumato.cli.console import say, standard_streams
standard_streams()
found = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
problems = []
try:
    sys.stdin.read(1)
except OSError:
    problems.append("in")
try:
    print("x", flush=True)
except OSError:
    problems.append("out")
say("nobody hears this")
os.write(found, f"{found > 2} {problems}".encode())
os._exit(0)
"""
    told = tmp_path / "told"
    shell = f'"{sys.executable}" -c "$1" "$2" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", shell, "sh", program, str(told)], check=True)
    assert told.read_text() == "True ['in', 'out']"


def test_a_closed_input_is_named(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with mock.patch("sfumato.cli.app.standard_streams"):
        result = call("release", "-", "-m", model, "--epsilon", 1, *STEP, "-o", "-")
    assert result.code == 2
    assert "standard input must be readable; it is closed" in result.err


def called_with_ascii(*arguments: object) -> tuple[int, bytes, bytes]:
    """A command on streams that know no more than ASCII."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii") for _ in range(2))
    with (
        mock.patch.object(sys, "argv", ["sfumato", *map(str, arguments)]),
        mock.patch.object(sys, "stdout", out),
        mock.patch.object(sys, "stderr", err),
    ):
        code = run()
    out.flush()
    err.flush()
    return code, out.buffer.getvalue(), err.buffer.getvalue()


def test_letters_that_the_output_cannot_show_are_spelled_out(tmp_path: Path) -> None:
    table = write(tmp_path / "h.csv", ["stream", "value"], [("u", "é"), ("u", "ü"), ("v", "é")])
    code, out, _ = called_with_ascii("fit", table, "-o", tmp_path / "é.model")
    assert code == 0
    assert b"\\xe9.model: 2 streams" in out
    code, out, _ = called_with_ascii("fit", table, "-o", tmp_path / "é.model", "--json")
    assert code == 0
    assert b"\\u00e9.model" in out


def test_a_table_on_an_ascii_output_is_utf_8_all_the_same(tmp_path: Path) -> None:
    table = write(tmp_path / "t.csv", ["é", "n"], [("ü", 1), ("ö", 2)] * 20)
    code, out, err = called_with_ascii(
        *(
            "privatize",
            table,
            "-c",
            "é",
            "--epsilon",
            1,
            "-o",
            "-",
            "--values",
            "ü,ö",
            "--order",
            "kept",
        )
    )
    assert code == 0, err
    assert set(out.decode("utf-8").split()) <= {"é", "ü", "ö"}


# Names that come from data ------------------------------------------------------------------------

HOSTILE = [
    "\x1b[2Jgone",
    "[/red]",
    "[bold]b[/bold]",
    ":boom:",
    "\u202egnp.exe",
    "a\tb\nc",
    "\x9b1m",
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_names_from_data_do_nothing_to_a_terminal(
    name: str, kind: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = kind()
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "stdout", out)
    console.table(f"of {name}", ["stream", name], [[name, "1"]])
    written = out.getvalue()
    assert written.count(escaped(name)) == 3
    assert escaped(name) == name or name not in written
    assert escaped(name).isprintable()


def test_what_is_said_of_data_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("stream 'a\n\x1b[2J'")
    console.print_line("stream 'a\n\x1b[2J'")
    told = capsys.readouterr()
    assert told.err == told.out == "stream 'a\\n\\x1b[2J'\n"


def test_a_stream_with_a_hostile_name_goes_through_every_step(tmp_path: Path) -> None:
    records = [(name, place) for name in HOSTILE for place in ("here", "[/x]", "\x1b[1m")]
    history = write(tmp_path / "h.csv", ["stream", "value"], records)
    model, out = tmp_path / "m", tmp_path / "out.csv"
    told = [done("fit", history, "-o", model)]
    told.append(done("release", history, "-m", model, "--epsilon", 0.5, *STEP, "-o", out))
    told.append(done("audit", out, "-m", model))
    for result in told:
        assert "\x1b" not in result.out + result.err


def test_commands_print_through_what_escapes() -> None:
    folder = Path(sfumato.cli.__file__).parent
    for path in folder.glob("*.py"):
        if path.name == "console.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            called: Any = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "print"), path.name


# Surroundings -------------------------------------------------------------------------------------


def test_a_polite_kill_cleans_up_and_has_its_code(tmp_path: Path) -> None:
    def killed(*_: object) -> None:
        with whole(tmp_path / "half"):
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with mock.patch(BROKEN, killed):
        result = call(*DESIGN)
    assert (result.code, result.out) == (128 + signal.SIGTERM, "")
    assert result.err == "sfumato: terminated\n"
    assert files(tmp_path) == set()
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_interrupt_while_the_program_is_loaded_is_no_traceback() -> None:
    with (
        mock.patch("sfumato.cli.app.run", mock.Mock(side_effect=KeyboardInterrupt)),
        pytest.raises(SystemExit) as ended,
    ):
        sfumato.cli.main()
    assert ended.value.code == console.INTERRUPTED


def test_an_interruption_that_a_loop_turned_into_its_own_error_is_no_defect() -> None:
    def stopped(*_: object) -> None:
        raise SystemError("a compiled loop returned a result with an exception set") from (
            KeyboardInterrupt()
        )

    with mock.patch(BROKEN, stopped):
        result = call(*DESIGN)
    assert (result.code, result.err) == (130, "sfumato: interrupted\n")
