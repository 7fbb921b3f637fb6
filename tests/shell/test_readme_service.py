"""The block of the README about the service, run as it stands, in an empty folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shell.golden_cases import blocks
from tests.shell.running import COMMAND, done

ADDRESS = "http://127.0.0.1:8477"
HISTORY = "user,place\n" + "\n".join(
    f"u{number % 4},{place}" for number, place in enumerate(8 * ["home", "home", "work", "work"])
)
LIVE = "user,place\nann,home\nbob,work\nann,work\n"


def _lines() -> list[str]:
    """The commands of the block, each on a line of its own."""
    [block] = [text for _, text in blocks() if text.startswith("sfumato serve ")]
    return block.replace("\\\n", " ").splitlines()


@contextmanager
def running_service(folder: Path, line: str) -> Iterator[tuple[str, str]]:
    """A service by a line of the README, on a free port; its address, and its first key."""
    process = subprocess.Popen(
        ["sh", "-c", f"exec {line} --port 0"],
        cwd=folder,
        env=_environment(folder),
        stdout=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(300.0, process.kill)
    watchdog.start()
    assert process.stdout is not None
    told = ""
    try:
        while not re.search(r"sfk_\S{60}", told) or "http://" not in told:
            line = process.stdout.readline()
            assert line, f"the service ended: {told}"
            told += line
        yield re.findall(r"http://[\d.:]+", told)[0], re.findall(r"sfk_[\w-]{60}", told)[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        process.stdout.close()


def _environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a person who has installed the program."""
    program = folder / "bin" / "sfumato"
    if not program.exists():
        program.parent.mkdir()
        words = " ".join(f"'{word}'" for word in COMMAND)
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o700)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", **more}


@pytest.mark.slow
def test_the_lines_about_the_service_do_what_they_say(tmp_path: Path) -> None:
    (tmp_path / "history.csv").write_text(HISTORY)
    (tmp_path / "live.csv").write_text(LIVE)
    model, fitted = tmp_path / "city.model", tmp_path / "history.csv"
    done("fit", fitted, "--stream", "user", "--value", "place", "-o", model, "--quiet")
    serve, asked, push, audit, check = _lines()
    assert sys.executable in COMMAND and serve.startswith("sfumato serve ")
    with running_service(tmp_path, serve) as (url, key):
        told = []
        for line in (asked, push, audit, check):
            here = line.replace(ADDRESS, url)
            assert (line == here) == (line in (audit, check))
            ran = subprocess.run(
                ["sh", "-c", here],
                cwd=tmp_path,
                env=_environment(tmp_path, KEY=key),
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
            told.append(ran.stdout)
    reply = json.loads(told[0])
    assert reply["status"] == "answered" and reply["answers"][0]["released"] in ("home", "work")
    rows = (tmp_path / "private.csv").read_text().splitlines()
    assert len(rows) == len(LIVE.splitlines()) and rows[0].startswith("user,")
    assert "the audit found nothing wrong" in told[2]
    assert "default: 4 rows, 3 streams" in told[3] and "the home is whole" in told[3]
