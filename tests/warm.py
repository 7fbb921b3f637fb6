"""Compile the loops before workers start: `python -m tests.warm`, the jobs of `sfumato warm`.

What only a test needs is compiled by the first worker that calls it; the others wait for it.
"""

from __future__ import annotations

<<<<<<< HEAD
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

=======
from sfumato.cli.warm_command import warmed
from sfumato.cli.warm_jobs import JOBS
>>>>>>> 8e15e62 (wip3)

if __name__ == "__main__":
    warmed(list(JOBS))
