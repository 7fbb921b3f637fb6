"""Compile the loops before workers start, so that none is compiled by both: `python -m tests.warm`.

The examples of every module that has loops, or calls those of another, are run once: one process
for each half of the rooms, which share no loop that takes long. What they print is not looked at
here; the suite does that.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import multiprocessing
import re
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
HALVES = (
    ("core", "models", "solver", "stream", "attacks"),
    ("noise", "column", "record", "series", "temporal"),
)


def modules(rooms: tuple[str, ...]) -> list[str]:
    """Modules of some rooms with loops, and those that import one of them."""
    texts = {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): path.read_text()
        for path in sorted(SOURCE.rglob("*.py"))
    }
    looped = {name for name, text in texts.items() if "@njit(" in text}
    imports = re.compile(r"from (sfumato[\w.]+) import")
    users = {name for name, text in texts.items() if looped & set(imports.findall(text))}
    return [name for name in texts if name in looped | users and name.split(".")[1] in rooms]


def warm(rooms: tuple[str, ...]) -> None:
    """Run the examples of these rooms."""
    with contextlib.redirect_stdout(io.StringIO()):
        for name in modules(rooms):
            doctest.testmod(importlib.import_module(name))


if __name__ == "__main__":
    workers = [multiprocessing.Process(target=warm, args=(rooms,)) for rooms in HALVES]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
