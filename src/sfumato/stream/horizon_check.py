"""Whether a table has more values of a stream than its budget is for, before anything is drawn."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.budgets import Horizon
from sfumato.core.purpose import Fallback
from sfumato.stream.plan import Plan
from sfumato.tables.batches import Batch
from sfumato.tables.chunks import Chunk
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table


def check_horizon(source: Table, stream: str, plan: Plan) -> None:
    """Refuse a file with more values of a stream than a budget is for.

    With a ledger it is refused where the budget ends: what was answered until then stays there.
    """
    budget = plan.budget
    if not isinstance(budget, Horizon) or plan.on_exhausted is not Fallback.REFUSE:
        return
    if source.is_standard or not Path(source.path).is_file():
        return  # a pipe is read once
    counts: Counter[object] = Counter()
    with closing(source.batches([stream])) as batches:
        for batch in batches:
            codes, owners = _owners(batch, stream)
            before = np.array([counts[owner] for owner in owners], dtype=np.int64)
            more = np.bincount(codes, minlength=len(owners))
            if (before + more > budget.steps).any():
                rule = (
                    f"the budget is for {budget.steps} values of a stream, and this one is beyond "
                    "them; nothing was released. Give it a longer --horizon, or let nothing or the "
                    "last value leave then: --when-exhausted suppress or repeat"
                )
                row = batch.first + _first_beyond(codes, before, budget.steps)
                raise BadTable(source.path, row, rule)
            counts.update(dict(zip(owners, more.tolist(), strict=True)))


def _owners(batch: Batch | Chunk, stream: str) -> tuple[Ints, list[object]]:
    """The number of each row's stream in a list of those that are not equal."""
    column = batch.columns[stream]
    rows, cells = (None, column) if isinstance(column, list) else column.coded()
    numbers: dict[object, int] = {}
    codes = np.array([numbers.setdefault(cell, len(numbers)) for cell in cells], dtype=np.int64)
    return codes if rows is None else codes[rows], [*numbers]


def _first_beyond(codes: Ints, before: Ints, most: int) -> int:
    """The first row whose stream has had so many before."""
    by_stream = np.argsort(codes, kind="stable")
    streams = codes[by_stream]
    turns = np.arange(len(codes)) - np.searchsorted(streams, streams) + before[streams]
    return int(by_stream[turns >= most].min())
