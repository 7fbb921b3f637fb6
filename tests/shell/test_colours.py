"""Colours on terminals alone: a pipe gets the bytes that it always got."""

import os
import pty
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from sfumato.cli.colours import Role, role_of
from tests.shell.forked import ForkedProcess

COMPARE = ("plan", "--model", "MODEL", "--epsilon", "0.5", "--method", "step-wise", "--streams", 2,
           "--length", 10)  # fmt: skip
CODES = re.compile(r"\x1b\[[0-9;]*m")
BARE = {
    name: value
    for name, value in os.environ.items()
    if name not in ("NO_COLOR", "FORCE_COLOR", "TERM", "COLUMNS")
}


def on_terminal(*arguments: object, **environment: str) -> str:
    """What a command writes on a terminal of its own, both streams together."""
    master, slave = pty.openpty()
    given = {**BARE, "TERM": "xterm", "COLUMNS": "200", **environment}
    process = ForkedProcess(arguments, environment=given, terminal=slave)
    os.close(slave)
    process.stdin.close()
    told = b""
    while part := _read(master):
        told += part
    process.communicate()
    os.close(master)
    return told.decode().replace("\r\n", "\n")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # Linux says so when the last writer has gone
        return b""


def piped(*arguments: object, environment: Mapping[str, str]) -> bytes:
    out, complaints = ForkedProcess(arguments, environment={**BARE, **environment}).communicate()
    return out + complaints


@pytest.fixture(scope="module")
def asked(model: Path) -> list[object]:
    return [model if part == "MODEL" else part for part in COMPARE]


def test_a_terminal_sees_names_of_columns_bold_and_legends_dim(asked: list[object]) -> None:
    told = on_terminal(*asked).rpartition("\x1b[2K")[2]  # after the bar
    header = next(line for line in told.splitlines() if "loss" in line and "SIP" in line)
    assert header.startswith("\x1b[1m") and header.endswith("\x1b[0m")
    assert any(line.startswith("\x1b[2m  SIP: ") for line in told.splitlines())
    assert "\x1b[2m---" in told
    codes = CODES.findall(told)
    assert 2 * codes.count("\x1b[0m") == len(codes)


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
def test_a_terminal_that_wants_none_gets_none(
    asked: list[object], environment: dict[str, str]
) -> None:
    assert not CODES.search(on_terminal(*asked, "--quiet", **environment))


def test_the_words_are_the_same_with_and_without_colours(model: Path) -> None:
    """Of a command that shows no bar, which is drawn as often as there is time."""
    told = on_terminal("explain", model)
    assert CODES.search(told)
    assert CODES.sub("", told) == on_terminal("explain", model, NO_COLOR="1")


def test_a_pipe_and_json_get_no_colour(asked: list[object]) -> None:
    plain = piped(*asked, environment={"NO_COLOR": "1", "TERM": "xterm"})
    assert piped(*asked, environment={"TERM": "xterm"}) == plain
    assert b"\x1b" not in plain and len(plain) > 500
    assert b"\x1b[1m" in piped(*asked, environment={"FORCE_COLOR": "1"})
    assert b"\x1b" not in piped(*asked, "--json", environment={"FORCE_COLOR": "1"})
    assert "\x1b" not in on_terminal(*asked, "--json", "-q")


def test_a_refusal_is_red_and_says_the_same(tmp_path: Path) -> None:
    told = on_terminal("explain", tmp_path / "nowhere")
    assert told.startswith("\x1b[31msfumato: ")


def test_names_from_data_bring_no_colours_of_their_own(tmp_path: Path) -> None:
    hostile = tmp_path / "a\x1b[32mb.csv"
    hostile.write_text("x\n1\n")
    told = on_terminal("explain", hostile)
    assert "\x1b[32m" not in told and "\\x1b[32m" in told.replace("\n", "")


@pytest.mark.parametrize(
    ("line", "role"),
    [
        ("the audit found nothing wrong", Role.GOOD),
        ("the audit FAILED", Role.PROBLEM),
        ("PROBLEM row 3 is not what was released", Role.PROBLEM),
        ("the home is NOT whole", Role.PROBLEM),
        ("warning: few streams", Role.WARNING),
        ("note: rows leave in order", Role.WARNING),
        ("WORSE THAN SAYING NOTHING: a constant would be nearer", Role.WARNING),
        ("numpy: good; 2.1", Role.GOOD),
        ("numpy: WRONG; not installed", Role.PROBLEM),
        ("extra spark: not there; for Spark", Role.WARNING),
        ("60 rows, 3 streams", Role.PLAIN),
    ],
)
def test_lines_are_what_their_words_say(line: str, role: Role) -> None:
    assert role_of(line) is role
