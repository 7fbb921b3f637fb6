"""How long an answer takes when rows come through a pipe, beside `cat`.

A feeder writes rows at a steady pace and notes when; the time to answer a row is from there to
when its line has been read at the other end of `sfumato release - -o -`. `cat` in its place, in
turn with it in the same run, is the limit of pipes and of the machine.

    python benchmarks/pipes.py [--seconds 5]
"""

from __future__ import annotations

import argparse
import os
import select
import subprocess
import sys
import tempfile
import time
from array import array
from pathlib import Path

import numpy as np
from tables import EPSILON, ring_chain

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel

STREAMS, SYMBOLS = 1_000, 16
TURN = 0.001
"""Seconds between two writes of the feeder: what is due by then is written at once."""
WARM = 2_000
LINES = 1_000
"""Rows that are sent one by one, each after the answer to the one before."""


def feed(rate: int, seconds: float, notes: str) -> None:
    """Write rows to standard output at a steady pace; note when each was written."""
    rng = np.random.default_rng(3)
    count = int(rate * seconds)
    who, what = rng.integers(0, STREAMS, count), rng.integers(0, SYMBOLS, count)
    rows = [f"u{a},{b}\n".encode() for a, b in zip(who.tolist(), what.tolist(), strict=True)]
    times = array("q")
    began, sent = time.monotonic(), 0
    while sent < count:
        due = min(count, int((time.monotonic() - began) * rate) + 1)
        if due > sent:
            times.extend([time.monotonic_ns()] * (due - sent))
            os.write(1, b"".join(rows[sent:due]))
            sent = due
        time.sleep(TURN)
    Path(notes).write_bytes(times.tobytes())


class Answers:
    """The lines that a command has written."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._part = b""
        self.lines = 0

    def read(self, patience: float = 60.0) -> int:
        """Wait for something; how many lines came with it."""
        ready, _, _ = select.select([self._descriptor], [], [], patience)
        if not ready:
            raise SystemExit("no answer came")
        part = os.read(self._descriptor, 1 << 20)
        if not part:
            raise SystemExit("the command ended")
        came = part.count(b"\n")
        self.lines += came
        return came

    def until(self, lines: int) -> None:
        """Wait until so many lines have come."""
        while self.lines < lines:
            self.read()


class Command:
    """A command between two pipes, warmed up."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input = self.process.stdin.fileno()
        self.answers = Answers(self.process.stdout.fileno())
        os.write(self.input, b"stream,value\n")
        rows = [f"u{row % STREAMS},{row % SYMBOLS}\n".encode() for row in range(WARM)]
        sent = 0
        for size in (1, 2, 5, 20, 100, 372, 500, 1000):  # loops of every size are ready
            os.write(self.input, b"".join(rows[sent : sent + size]))
            sent += size
            self.answers.until(sent + 1)

    def steady(self, rate: int, seconds: float) -> np.ndarray:
        """Milliseconds to answer each of many rows that come at a pace."""
        before, came = self.answers.lines, array("q")
        with tempfile.NamedTemporaryFile() as notes:
            words = [sys.executable, __file__, "--feed", str(rate), str(seconds), notes.name]
            feeder = subprocess.Popen(words, stdout=self.input)
            while self.answers.lines - before < int(rate * seconds):
                lines = self.answers.read()
                came.extend([time.monotonic_ns()] * lines)
            feeder.wait()
            sent = np.frombuffer(Path(notes.name).read_bytes(), dtype=np.int64)
        return (np.frombuffer(came, dtype=np.int64) - sent) / 1e6

    def one_by_one(self, lines: int) -> np.ndarray:
        """Milliseconds to answer rows each of which waits for the answer before it."""
        took = []
        for row in range(lines):
            began = time.monotonic_ns()
            os.write(self.input, f"u{row % STREAMS},{row % SYMBOLS}\n".encode())
            self.answers.until(self.answers.lines + 1)
            took.append(time.monotonic_ns() - began)
        return np.array(took) / 1e6

    def end(self) -> None:
        """Close the input and wait."""
        self.process.communicate()


def prepared(folder: Path) -> list[str]:
    """The words of a release of rows on standard input."""
    chain = ring_chain(SYMBOLS, 1)
    model = StreamModel(chain, Symbols(chain.alphabet))
    sf.save(model, folder / "ring.model")
    policy = sf.compile_policy(chain, sf.loss.absolute(chain.alphabet), EPSILON, steps=4_000)
    sf.save(policy, folder / "ring.policy")
    rule = ["--epsilon", str(EPSILON), "--loss", "absolute", "--method", "optimal"]
    files = ["-m", str(folder / "ring.model"), "--policy", str(folder / "ring.policy")]
    program = str(Path(sys.executable).with_name("sfumato"))
    return [program, "release", "-", *files, *rule, "--quiet", "-o", "-"]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of rows at each pace")
    parser.add_argument("--feed", nargs=3, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.feed:
        feed(int(asked.feed[0]), float(asked.feed[1]), asked.feed[2])
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        release = prepared(folder)
        ledger = ["--ledger", str(folder / "ring.ledger")]
        commands = {"release": release, "release, ledger": release + ledger, "cat": ["cat"]}
        print("| command | rows/s | p50, ms | p99, ms | largest, ms |\n|---|---|---|---|---|")
        for told, words in commands.items():
            command = Command(words)
            for rate in (1_000, 10_000):
                show(told, f"{rate:,}", command.steady(rate, asked.seconds))
            show(told, "one by one", command.one_by_one(LINES))
            command.end()


def show(command: str, pace: str, took: np.ndarray) -> None:
    """One row of the table."""
    middle, high, most = np.percentile(took, [50, 99, 100])
    print(f"| {command} | {pace} | {middle:.2f} | {high:.2f} | {most:.1f} |", flush=True)


if __name__ == "__main__":
    main()
