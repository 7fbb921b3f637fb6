"""Which modules a row of a CSV file passes on its way: `python -m tests.stream.row_walk`.

A release with a ledger is run with a few rows and with some more, one row at a time; what is called
more often is on the way of a row, everything else is setup. What `Plan.step` and `Plan.prepare`
compute is one place (docs/design/stream.md says what is behind it), and so is `core`, the words
that all rooms share.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.stream.plan import Plan
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.readers import Table

_FEW, _MORE = 3, 8


class OneByOne(Table):
    """A table whose rows come one at a time, as from a pipe."""

    def chunks(self, wanted: Any, optional: Any = (), rows: int = 1) -> Any:
        return Table.chunks(self, wanted, optional, 1)


class Walk:
    """Counts calls of modules, and of one module by another."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.hops: Counter[tuple[str, str]] = Counter()
        self._inside = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        step = frame.f_code in (Plan.step.__code__, Plan.prepare.__code__)
        if event == "return" and step:
            self._inside -= 1
        if event != "call" or not name.startswith("sfumato."):
            return
        if not self._inside and frame.f_code.co_filename.endswith(".py") and _walked(name):
            self.calls[name] += 1
            before = _caller(frame)
            if before != name:
                self.hops[before, name] += 1
        self._inside += step


def _walked(name: str) -> bool:
    return not name.startswith("sfumato.core.") and ".partition." not in name


def _caller(frame: FrameType) -> str:
    """The last module of ours that is on the way here."""
    back = frame.f_back
    while back is not None:
        name = str(back.f_globals.get("__name__", ""))
        if name.startswith("sfumato.") and _walked(name):
            return name
        back = back.f_back
    return ""


def _released(rows: int) -> Walk:
    chain = sf.MarkovChain.fit([list("aabbaabb") * 20, list("abababbb") * 20])
    model = StreamModel(chain, Symbols(chain.alphabet))
    plan = ReleaseSpec(epsilon=1.0, method="randomized-response").plan(model)
    walk = Walk()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = "".join(f"u,{'ab'[row % 2]}\n" for row in range(rows))
        (folder / "live.csv").write_text(f"stream,value\n{lines}")
        source, output = OneByOne.at(str(folder / "live.csv")), Table.at(str(folder / "out.csv"))
        sys.setprofile(walk)
        try:
            release_table(source, output, model, plan, RunSpec(ledger=folder / "city.ledger"))
        finally:
            sys.setprofile(None)
    return walk


def walk_of_a_row() -> tuple[list[str], list[tuple[str, str]]]:
    """The modules that a row passes, and which calls which, in the order of first calls."""
    _released(_FEW)  # what is computed once and remembered is no part of the way
    few, more = _released(_FEW), _released(_MORE)
    modules = [name for name in more.calls if more.calls[name] > few.calls[name]]
    hops = [hop for hop in more.hops if more.hops[hop] > few.hops[hop]]
    return modules, hops


if __name__ == "__main__":
    found, edges = walk_of_a_row()
    print(f"{len(found)} modules, {len(edges)} ways between them")
    for module in found:
        calls = ", ".join(end for start, end in edges if start == module)
        print(f"{module}{' -> ' + calls if calls else ''}")
