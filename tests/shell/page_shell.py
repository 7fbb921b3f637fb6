"""Lines of pages that need a shell, and programs that run beside a page."""

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.servers import free_port
from tests.shell.running import COMMAND, PATIENCE, Result

BESIDE = ("head", "cat", "chmod", "cut", "ls", "mkdir", "printf")
"""Programs other than ours that a page may use."""
_PORT = "8477"


@dataclass(frozen=True)
class OwnPort:
    """The port that a page names, and a free one that stands for it.

    Attributes:
        own: The free one; "" if the page names none.
    """

    own: str

    def here(self, typed: str) -> str:
        """What is typed, with the free port."""
        return typed.replace(_PORT, self.own) if self.own else typed

    def on_page(self, said: Result) -> Result:
        """What is said, with the port of the page."""
        if not self.own:
            return said
        told = (text.replace(self.own, _PORT) for text in (said.out, said.err))
        return Result(said.code, *told)


def own_port(page: str) -> OwnPort:
    """A free port for a page that begins a service."""
    if f"--port {_PORT}" not in page:
        return OwnPort("")
    return OwnPort(str(free_port()))


def in_shell(line: str, folder: Path, environment: Mapping[str, str]) -> Result:
    """Run a line as a shell does."""
    named = {word for word in re.findall(r"(?:^|[|(]\s*)([a-z]+)\b", line) if word != "sfumato"}
    assert named <= set(BESIDE), f"a page may use {', '.join(BESIDE)}, not {named}"
    ran = subprocess.run(
        ["sh", "-c", line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return Result(ran.returncode, ran.stdout, ran.stderr)


@contextmanager
def beside_page(
    line: str, folder: Path, environment: Mapping[str, str], said: Callable[[Result], bool]
) -> Iterator[Result]:
    """A program that goes on, once it has said what a page shows; it must end well."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(
            ["sh", "-c", f"exec {line}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )
        try:
            end = time.monotonic() + PATIENCE
            while not said(told := Result(0, _text(out), _text(err))):
                assert process.poll() is None and time.monotonic() < end, f"{line}\n{told}"
                time.sleep(0.05)
            yield told
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE) == 0, _text(err)
        finally:
            process.kill()
            process.wait()


def _text(file: IO[str]) -> str:
    return os.pread(file.fileno(), 1 << 20, 0).decode()


@contextmanager
def with_program() -> Iterator[dict[str, str]]:
    """An environment in which a shell finds `sfumato`: these very sources."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "sfumato"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(COMMAND)} "$@"\n')
        program.chmod(0o700)
        yield {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
