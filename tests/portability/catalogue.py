"""Digests of all that the jobs write here: `python -m tests.portability.catalogue [NAME...]`.

The cases are those of the golden transcripts, and some that only matter here. A transcript allows
last digits to differ; here every byte of every file and every bit of every number counts. The
command prints a line for each case, a JSON object: file or section -> digest.
"""

import hashlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.portability import close_calls
from tests.shell import golden_cases, golden_python
from tests.shell.golden_cases import Case
from tests.shell.golden_text import plain

_TOWN = "fit trips.csv --stream person --grid 12x12 --x x --y y -o town.model"
_TRIPS = "release trips.csv -m town.model -o private.csv --seed 5 --budget 10 --horizon 6"
_FEW = "release live.csv -m city.model -o private.csv --seed 5 --budget 6 --horizon 6"

MORE = (
    Case("town-grid", (_TOWN, f"{_TRIPS} --loss euclidean")),
    Case("town-capped", (_TOWN, f"{_TRIPS} --loss euclidean --ldp 4")),
    Case("city-threes", (f"{_FEW} --batch 3",)),
    Case("city-auto", (f"{_FEW} --every auto",)),
)
UNLIKE = (
    *(".sqlite", ".db", ".png", ".html", ".svg", ".pdf", ".key", ".head", ".ledger"),
    *("guesses.csv", "hours.csv"),
)
"""Ends of files that hold times, drawings, a ledger's own coins, or what a receiver infers."""
LEDGERS = ("l", "copy")
LEDGER_OF_PLAN = re.compile(rb'"ledger_commitment": "[0-9a-f]+"')
LIBRARY = {**golden_python.CASES, **close_calls.CASES}


def names() -> list[str]:
    """All cases that draw or decide: no help, no refusals, no figures."""
    unlike = ("help", "refused", "study", "demo", "temporal-plot")
    told = [case.name for case in (*golden_cases.CASES, *MORE)]
    return [name for name in (*told, *LIBRARY) if not name.startswith(unlike)]


def bits(value: Any) -> Iterator[str]:
    """A value as words in which every bit of a number shows."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        for key in value:
            yield from (str(key), *bits(value[key]))
    elif isinstance(value, list | tuple):
        yield from ("[", *(word for item in value for word in bits(item)), "]")
    else:
        yield value.hex() if isinstance(value, float) else plain(str(value))


def digest(data: bytes) -> str:
    """Short, but long enough to differ."""
    return hashlib.sha256(data).hexdigest()[:16]


def run(case: Case, staged: Path, scratch: Path) -> dict[str, str]:
    """What the commands of a case leave behind."""
    folder = Path(tempfile.mkdtemp(dir=scratch))
    before = {path.name: path.read_bytes() for path in staged.iterdir() if path.is_file()}
    told = golden_cases.transcript(case, staged, folder)
    found = {"transcript": digest(told.encode())}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and not path.name.endswith(UNLIKE):
            data = LEDGER_OF_PLAN.sub(b"", path.read_bytes())
            if before.get(path.name) != data and path.name not in (*case.unseen, *LEDGERS):
                found[path.name] = digest(data.replace(str(folder).encode(), b"<folder>"))
    return found


def digests(wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Case, and file or section -> digest; the models that cases share come first."""
    with tempfile.TemporaryDirectory() as folder:
        staged, scratch = Path(folder) / "staged", Path(folder) / "scratch"
        staged.mkdir()
        scratch.mkdir()
        golden_cases.stage(staged)
        (staged / "trips.csv").write_text(trips())
        files = sorted(path for path in staged.iterdir() if path.is_file())
        yield "models", {path.name: digest(path.read_bytes()) for path in files}
        for case in (*golden_cases.CASES, *MORE):
            if case.name in wanted:
                yield case.name, run(case, staged, scratch)
    for name, make in LIBRARY.items():
        if name in wanted:
            told = make()
            yield name, {key: digest("\n".join(bits(told[key])).encode()) for key in told}


def trips() -> str:
    """People who walk about a town, with real numbers for places."""
    rng = np.random.default_rng(8)
    lines = ["person,x,y"]
    for person in range(4):
        place = rng.random(2) * 12
        for _ in range(6):
            place = np.clip(place + rng.normal(size=2), 0.0, 12.0)
            lines.append(f"p{person},{place[0]:.3f},{place[1]:.3f}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for told in digests(sys.argv[1:] or names()):
        print(json.dumps(told), flush=True)
