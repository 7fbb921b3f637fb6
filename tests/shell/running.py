"""The command line: called in this process, or run in one of its own."""

import contextlib
import csv
import io
import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from sfumato.cli.app import run
from sfumato.service import hardening
from tests.shell.forked import MAIN, ForkedProcess

TOKEN = "raw-value-that-nobody-may-read"
"""A value in tables that must never be said."""

PATIENCE = 120.0
"""Seconds after which a process that says nothing is taken for hanging."""

PIPE_CAPACITY = 1 << 16
"""Bytes that a pipe of Linux takes without a reader."""

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
"""A process flushes because it was written to, not because Python was told to."""

COMMAND = [sys.executable, "-W", "error", "-c", MAIN]


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object on standard output."""
        parsed = json.loads(self.out)
        assert isinstance(parsed, dict)
        return parsed


@contextlib.contextmanager
def _standard_input(data: bytes | None) -> Iterator[None]:
    """A pipe that holds these bytes, then ends; without them the input is left as it is."""
    if data is None:
        yield
        return
    assert len(data) <= PIPE_CAPACITY
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    with open(reading, encoding="utf-8") as file, mock.patch.object(sys, "stdin", file):
        yield


def call(*arguments: object, stdin: bytes | None = None) -> Result:
    """Run a command in this process, whose limits stay: exit code, output, complaints."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(hardening, "harden_process", lambda: None),
        mock.patch.object(sys, "argv", ["sfumato", *map(str, arguments)]),
        _standard_input(stdin),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run()
    return Result(code, out.getvalue(), err.getvalue())


def done(*arguments: object, stdin: bytes | None = None) -> Result:
    """Run a command that must succeed."""
    result = call(*arguments, stdin=stdin)
    assert result.code == 0, result.err
    return result


def files(folder: Path) -> set[str]:
    """Names of all that lies in a folder."""
    return {path.name for path in folder.iterdir()}


def refused(result: Result, *words: object) -> None:
    """Exit code 2, one line that says what must hold, and nothing on standard output."""
    assert (result.code, result.out) == (2, ""), result.err
    assert result.err.startswith("sfumato: ")
    assert len(result.err.splitlines()) == 1
    assert TOKEN not in result.err
    for word in words:
        assert str(word) in result.err


def spawn(
    *arguments: object,
    stdin: bytes = b"",
    script: str = MAIN,
    command: Sequence[str] | None = None,
) -> Result:
    """Run a command in a process of its own, to its end.

    Args:
        arguments: Of the command.
        stdin: What it reads.
        script: What it does instead of the plain command.
        command: A program, for what must begin with an interpreter of its own.
    """
    if command is None:
        process = ForkedProcess(arguments, script)
        out, err = process.communicate(stdin, PATIENCE)
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())
    finished = subprocess.run(
        [*command, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env=ENVIRONMENT,
    )
    return Result(finished.returncode, finished.stdout.decode(), finished.stderr.decode())


class Pipe:
    """A command between two pipes: lines go in, lines come out, one at a time."""

    def __init__(self, process: ForkedProcess) -> None:
        self.process = process
        self._in = process.stdin.fileno()
        self._out = process.stdout.fileno()
        self._held = b""

    def send(self, line: str) -> None:
        """Write one line."""
        os.write(self._in, line.encode() + b"\n")

    def receive(self) -> str:
        """The next whole line; fails if it does not come."""
        while b"\n" not in self._held:
            ready, _, _ = select.select([self._out], [], [], PATIENCE)
            assert ready, "no answer came"
            part = os.read(self._out, 1 << 16)
            assert part, "the output ended"
            self._held += part
        line, self._held = self._held.split(b"\n", 1)
        return line.decode()

    def silent(self) -> bool:
        """Whether nothing more lies in the output now."""
        return not self._held and not select.select([self._out], [], [], 0)[0]

    def ended(self) -> tuple[int, str, str]:
        """Close the input, wait for the end: exit code, what was still said, complaints."""
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode is not None
        return self.process.returncode, (self._held + out).decode(), err.decode()


@contextlib.contextmanager
def piped(*arguments: object) -> Iterator[Pipe]:
    """A running command with pipes at both ends; killed if the test leaves it running."""
    process = ForkedProcess(arguments)
    try:
        yield Pipe(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, read without the package."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def litter(folder: Path) -> list[str]:
    """Files that a command began and did not finish."""
    return sorted(path.name for path in folder.iterdir() if "partial" in path.name)


def figures(output: Path | str) -> dict[str, Any]:
    """The certificate beside an output, without what its figures follow from."""
    document = json.loads(Path(f"{output}.certificate.json").read_text(encoding="utf-8"))
    held = ("format", "program", "job", "coins", "commitment", "asked", "evidence", "table")
    return {name: told for name, told in document.items() if name not in (*held, "written")}
