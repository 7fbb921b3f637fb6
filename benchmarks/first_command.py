"""The first commands after installing: from the wheel of `make wheel`, and from plain sources.

Each turn installs the package anew (`pip install --no-deps --target`, or a copy of the sources),
with an empty home, and runs the commands of the README on a small table. Seconds are those of all
processors, with helper processes; medians over turns. The wheel is the newest in `dist`; without
one, plain sources alone are measured, once.

    python benchmarks/first_command.py [--turns 3] [--plain-turns 1]
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {
    "fit": "fit history.csv --stream user --value place -o town.model",
    "release, a total": "release live.csv --model town.model --budget 10 --horizon 50 "
    "--ledger town.ledger -o private.csv",
    "audit": "audit private.csv --model town.model --ledger town.ledger",
    "release, a cap": "release live.csv --model town.model --epsilon 0.5 -o capped.csv",
}
RUN = "import sys; from sfumato.cli.app import run; sys.exit(run())"


def from_wheel(wheel: Path, place: Path) -> None:
    """Install a wheel beside what it needs."""
    asked = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*asked, place, wheel], check=True)


def from_sources(place: Path) -> None:
    """What `pip install .` installs: nothing is compiled."""
    shutil.copytree(
        ROOT / "src" / "sfumato",
        place / "sfumato",
        ignore=shutil.ignore_patterns("*.nbi", "*.nbc", "__pycache__"),
    )


def spent() -> float:
    """Seconds of the processors of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def one_turn(install: Callable[[Path], None]) -> dict[str, tuple[float, float]]:
    """Seconds of processors and of the wall of each command after installing."""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder, place = Path(name) / "work", Path(name) / "package"
        folder.mkdir()
        place.mkdir()
        install(place)
        outside = {"HOME": name, "PYTHONPATH": str(place), "PATH": os.environ["PATH"]}
        made = "from sfumato.cli import warm_jobs; warm_jobs.make_tables()"
        asked = {"cwd": folder, "env": outside, "check": True, "capture_output": True}
        subprocess.run([sys.executable, "-c", made], **asked)
        for command, line in COMMANDS.items():
            before, began = spent(), time.perf_counter()
            subprocess.run([sys.executable, "-c", RUN, *line.split()], **asked)
            found[command] = spent() - before, time.perf_counter() - began
    return found


def main() -> None:
    """Print a table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--turns", type=int, default=3, help="installations of the wheel")
    asked.add_argument("--plain-turns", type=int, default=1, help="those of plain sources")
    given = asked.parse_args()
    wheels = sorted((ROOT / "dist").glob("sfumato-*linux*.whl"), key=os.path.getmtime)
    ways: dict[str, tuple[Callable[[Path], None], int]] = {}
    if wheels:
        ways["wheel"] = lambda place: from_wheel(wheels[-1], place), given.turns
    ways["plain sources"] = from_sources, given.plain_turns
    print("## First commands after installing\n")
    print("| installed from | command | turns | s of processors | s of wall |")
    print("|---" * 5 + "|")
    for way, (install, turns) in ways.items():
        runs = [one_turn(install) for _ in range(turns)]
        for command in COMMANDS:
            cpu, wall = (statistics.median(run[command][kind] for run in runs) for kind in (0, 1))
            print(f"| {way} | {command} | {turns} | {cpu:.1f} | {wall:.1f} |", flush=True)


if __name__ == "__main__":
    main()
