"""Plant bugs one by one, and see which test notices each: what a suite made faster must not lose.

Run as `python tests/mutants.py [--only WORDS ...] [--list] [--check-clean] [--jobs N]`; bugs stand
in `mutants.toml`. Each is planted in a copy of the sources: the working tree is never touched. The
exit code is 1 if a bug survives, does not fit the sources any more, breaks them, or hangs.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = Path(__file__).with_suffix(".toml")
SOURCES = Path("src")
COPIED = ("src", "tests", "docs", "pyproject.toml", "README.md")
"""All that tests look at."""

PATIENCE = 300.0
"""Seconds after which a bug is said to hang; the slowest tests compile loops for a minute."""
LONG = 3600.0
"""The same for all tests together, without a bug."""

SETTINGS = {"HYPOTHESIS_PROFILE": "mutants", "OPENBLAS_NUM_THREADS": "1"}
PYTEST = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow", "-rfE")
_FIRST = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - (.*))?$", re.MULTILINE)
_NO_KILL = re.compile(
    r"(?:\w+\.)*(?:ImportError|ModuleNotFoundError|SyntaxError|NameError|TypingError|LoweringError)"
)


class Verdict(StrEnum):
    """What became of a bug; all but the first are failures."""

    KILLED = "killed"
    SURVIVED = "SURVIVED"
    UNFIT = "DOES NOT FIT"
    BROKEN = "BROKEN MUTANT"
    HUNG = "HANGS"


@dataclass(frozen=True)
class Mutant:
    """A bug to plant.

    Attributes:
        name: The law that it breaks, in words.
        old: Text that stands exactly once in all sources, wherever that is.
        new: What takes its place.
        tests: What must notice it: arguments of pytest.
    """

    name: str
    old: str
    new: str
    tests: tuple[str, ...]

    def places(self, sources: Mapping[Path, str]) -> list[Path]:
        """The files that hold the old text, as often as they hold it."""
        return [file for file, text in sources.items() for _ in range(text.count(self.old))]

    def misfit(self, tree: Path, sources: Mapping[Path, str]) -> str | None:
        """Why the bug cannot be planted or noticed; None if it can."""
        found = self.places(sources)
        if len(found) != 1:
            return f"its text stands {len(found)} times, not once"
        for test in self.tests:
            file, _, name = test.partition("::")  # a class of laws is inherited: its name is there
            if not (tree / file).exists() or name.split("::")[0] not in (tree / file).read_text():
                return f"there is no {test}"
        return None

    def plant(self, tree: Path, sources: Mapping[Path, str]) -> None:
        """Put the bug into a copy, and forget what was compiled of it."""
        [file] = self.places(sources)
        file.write_text(sources[file].replace(self.old, self.new))
        for stale in [file, *_users(file, tree / SOURCES)]:
            for cache in (stale.parent / "__pycache__").glob(f"{stale.stem}.*"):
                cache.unlink()


@dataclass(frozen=True)
class Result:
    """What became of a bug, the first test that noticed it, and how long that took."""

    mutant: Mutant
    verdict: Verdict
    told: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.verdict:<14}{self.seconds:6.1f} s  {self.mutant.name}\n{'':24}{self.told}"


def catalogue(words: Sequence[str] = ()) -> list[Mutant]:
    """The bugs whose names hold one of some words; all, if there are none."""
    listed = tomllib.loads(CATALOGUE.read_text())["mutant"]
    found = [Mutant(**(each | {"tests": tuple(each["tests"])})) for each in listed]
    names = [mutant.name for mutant in found]
    if len(set(names)) != len(names):
        raise SystemExit(f"{CATALOGUE}: every mutant must have a name of its own")
    return [each for each in found if not words or any(word in each.name for word in words)]


def sources_of(tree: Path) -> dict[Path, str]:
    """Every file of the program, with its text."""
    return {file: file.read_text() for file in sorted((tree / SOURCES).rglob("*.py"))}


def _users(file: Path, sources: Path) -> list[Path]:
    """The files that import a file, directly or through others.

    Compiled loops are kept with those that they call: a change in one file shows in all its users.
    """
    imports = {each: _imported(each, sources) for each in sources.rglob("*.py")}
    users, fresh = {file}, {file}
    while fresh:
        fresh = {each for each, held in imports.items() if held & fresh} - users
        users |= fresh
    return sorted(users - {file})


def _imported(file: Path, sources: Path) -> set[Path]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
    return {sources.joinpath(*name.split(".")).with_suffix(".py") for name in names}


def copied(folder: Path) -> Path:
    """A copy of all that tests look at, with what was compiled, which is known by its times."""
    for name in COPIED:
        place = ROOT / name
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, folder / name)
    return folder


def _pytest(tree: Path, arguments: Iterable[str], patience: float) -> tuple[int, str]:
    """Exit code and output of pytest in a copy; whatever it started ends with it."""
    running = subprocess.Popen(
        [sys.executable, *PYTEST, *arguments],
        cwd=tree,
        env=os.environ | SETTINGS | {"PYTHONPATH": str(tree / SOURCES)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = running.communicate(timeout=patience)
    except BaseException:
        os.killpg(running.pid, signal.SIGKILL)  # a forked child would keep the pipe open
        running.communicate()
        raise
    return running.returncode, said


def tried(mutant: Mutant) -> Result:
    """Plant a bug in a copy of its own, and run its tests until one fails."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tree = copied(Path(folder))
        sources = sources_of(tree)
        if (misfit := mutant.misfit(tree, sources)) is not None:
            return Result(mutant, Verdict.UNFIT, misfit, 0.0)
        mutant.plant(tree, sources)
        try:
            ended = _pytest(tree, ["-x", *mutant.tests], PATIENCE)
        except subprocess.TimeoutExpired:
            return Result(mutant, Verdict.HUNG, " ".join(mutant.tests), PATIENCE)
    return Result(mutant, *_judged(*ended), time.monotonic() - start)


def _judged(code: int, said: str) -> tuple[Verdict, str]:
    """A test that failed is a kill; one that could not even begin is none."""
    last = (said.strip() or "nothing was said").splitlines()[-1]
    if code == 0:
        return Verdict.SURVIVED, last
    first = _FIRST.search(said)
    if code != 1 or first is None or _NO_KILL.match(first[2] or ""):
        return Verdict.BROKEN, last if first is None else first[0]
    return Verdict.KILLED, first[1]


def check_clean(mutants: Sequence[Mutant]) -> bool:
    """Whether all tests pass where nothing was planted."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
        code, said = _pytest(copied(Path(folder)), tests, LONG)
    print(said.strip().splitlines()[-1] if code == 0 else said)
    return code == 0


def listed(mutants: Sequence[Mutant]) -> bool:
    """Name bugs and where they fit; whether all do."""
    sources = sources_of(ROOT)
    misfits = [mutant.misfit(ROOT, sources) for mutant in mutants]
    for mutant, misfit in zip(mutants, misfits, strict=True):
        where = [str(file.relative_to(ROOT)) for file in mutant.places(sources)]
        print(mutant.name, f"    {f'{Verdict.UNFIT}: {misfit}' if misfit else where[0]}", sep="\n")
    return not any(misfits)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", default=(), help="bugs whose names hold these words")
    parser.add_argument("--list", action="store_true", help="name bugs and where they fit")
    parser.add_argument("--check-clean", action="store_true", help="first run all without a bug")
    parser.add_argument("--jobs", type=int, default=1, help="bugs at a time")
    asked = parser.parse_args()
    mutants = catalogue(asked.only)
    if not mutants:
        raise SystemExit(f"no mutant is named {' or '.join(asked.only)}")
    if asked.list:
        return int(not listed(mutants))
    if asked.check_clean and not check_clean(mutants):
        return 1
    start, results = time.monotonic(), []
    with ThreadPoolExecutor(asked.jobs) as pool:
        for result in pool.map(tried, mutants):
            results.append(result)
            print(result, flush=True)
    killed = sum(result.verdict is Verdict.KILLED for result in results)
    print(f"{killed} of {len(results)} killed in {time.monotonic() - start:.0f} s")
    return int(killed < len(results))


if __name__ == "__main__":
    raise SystemExit(main())
