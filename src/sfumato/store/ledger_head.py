"""Whether a ledger has all the rows that were committed: how it ends, and its head beside it."""

from __future__ import annotations

from sfumato.core.errors import CorruptData
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.ledger_rows import LedgerRows


def check_head(ledger: LedgerReader) -> None:
    """Refuse a ledger whose end is not what it says, or that lost rows; a quick look.

    Raises:
        CorruptData: If rows are missing, or the last one was changed.
    """
    head, count = ledger.front.head, ledger.count()
    if count != head.entries:
        raise ledger.broken(f"it must have {head.entries} rows; it has {count}")
    if ledger.head_at(head.entries) != head:
        raise ledger.broken("its last row is not the one it ended with")
    if (missing := missing_rows(ledger)) is not None:
        raise CorruptData(f"{ledger.path}: {missing}")


def missing_rows(ledger: LedgerRows) -> str | None:
    """What shows that this is not all of the ledger, or an older one; None if nothing does."""
    anchored, head = ledger.anchored, ledger.front.head
    if anchored is None:
        # A run that is under way has rows in its log alone.
        if ledger.front.closed or ledger.log_there:
            return None
        return (
            "it was copied while it was in use, without its -wal file, and may lack rows; "
            "copy it with `sfumato ledger backup`"
        )
    if anchored.entries > head.entries:
        return (
            f"it has {head.entries} rows, but {anchored.entries} were committed: it was "
            f"{ledger.rollback}. What was released stays spent: bring back the "
            f"whole ledger (its head was {anchored})"
        )
    if ledger.head_at(anchored.entries) != anchored:
        return f"its rows are not those that were committed (their head was {anchored})"
    return None
