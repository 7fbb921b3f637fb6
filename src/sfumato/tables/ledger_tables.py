"""A ledger as a table: every answer that was ever given."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from pathlib import Path

from sfumato.core.progress import Progress
from sfumato.store.chain import ANSWER_FIELDS
from sfumato.store.ledger_head import check_head
from sfumato.store.ledger_reader import LedgerReader
from sfumato.tables.readers import CHUNK_ROWS, Table
from sfumato.tables.writers import Columns, Output, Record


def _columns(job: str, *, signalled: bool) -> Columns:
    """The columns; what an answer cost has the names that the job gives it."""
    signal: Columns = {"signal": int} if signalled else {}
    costs = ("sip", "ldp") if job == "release" else ("leakage", "model_free")
    return {
        "row": int,
        "event": str,
        "source": str,
        "place": int,
        "stream": str,
        "sequence": int,
        "batch": int,
        "released": str,
        **signal,
        "outcome": str,
        **dict.fromkeys(costs, float),
        "time": str,
    }


def export_ledger(path: str | Path, output: Table, progress: Progress | None = None) -> int:
    """Write every answer of a ledger to a table, in the order in which they were given.

    Args:
        path: The ledger; it is only read.
        output: The table. It holds event ids and times: see who may have it.
        progress: Called with the number of rows written so far.

    Returns:
        How many rows there are.

    Raises:
        CorruptData: If a row is not the one that was committed.
    """
    with LedgerReader(path) as ledger:
        check_head(ledger)
        signalled = ledger.signalled()
        with Output(output, _columns(ledger.front.job, signalled=signalled)) as sink:
            done, records = 0, _records(ledger, signalled=signalled)
            while part := list(islice(records, CHUNK_ROWS)):
                sink.write(part)
                done += len(part)
                if progress:
                    progress(done)
    return done


def _records(ledger: LedgerReader, *, signalled: bool) -> Iterator[Record]:
    names = ["id", "source", "place", "stream", "sequence", "batch", "released"]
    names += ["signal"] * signalled + ["outcome", "leakage", "model_free", "time"]
    cells = itemgetter(0, *(1 + ANSWER_FIELDS.index(name) for name in names))
    released = 1 + names.index("released")
    for row in ledger.rows():
        record = [*cells(row)]
        if record[released] is not None:
            record[released] = str(record[released])
        yield record
