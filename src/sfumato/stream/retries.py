"""Rows that were answered before, and rows that come too late: who gets an answer, and which."""

from __future__ import annotations

from collections.abc import Callable

from sfumato.core.state import StreamState
from sfumato.models.encoding import Unreadable
from sfumato.store.ledgered_run import LedgeredRun
from sfumato.store.protocol import Answer, Identity, LedgerMismatch
from sfumato.stream.input_rows import Reading, Row
from sfumato.tables.cells import Late, Time
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import STANDARD


class RowChecks:
    """What must hold of a row besides its value, given the rows before it and the ledger.

    Attributes:
        live: Whether the rows come through a pipe; whoever sends them may send one again.
    """

    def __init__(
        self,
        path: str,
        ledger: LedgeredRun[StreamState],
        reading: Reading,
        remark: Callable[[str], None] | None,
    ) -> None:
        self._path = path
        self._ledger = ledger
        self._reading = reading
        self._remark = remark
        self.live = path == STANDARD
        self._times: dict[str, Time | None] = {}
        self._remarked: set[str] = set()

    def check_retry(self, answer: Answer, row: Row) -> None:
        """Refuse to give an old answer to another value, or to another row of this very input.

        Raises:
            BadTable: If the row is no retry; nothing is drawn for it either.
        """
        resumed = self._reading.identity is Identity.ROW
        # Whoever sends rows through a pipe may send one again; a table that has it twice is wrong.
        if self._ledger.answered_here(answer) and not (resumed or self.live):
            raise self.twice(answer.stream, answer.place, row)
        try:
            compared = self._ledger.check_retry(answer, row.stream, row.tag)
        except LedgerMismatch as problem:
            raise BadTable(self._path, row.place, str(problem)) from None
        if self._remark and not compared and answer.source not in self._remarked:
            self._remarked.add(answer.source)
            self._remark(
                f"{self._path}, row {row.place}: answered before; whether its value is the "
                "same cannot be told, because the key file of that run is gone"
            )

    def twice(self, stream: str, first: int, row: Row) -> BadTable:
        """What is wrong with a row whose event stands in an earlier row of the same input."""
        rule = f"an event id must occur once; it stands in row {first} too"
        if self._reading.identity is Identity.TIME:
            rule = f"a stream must have one row for each time; row {first} has it too"
        elif stream != row.stream:
            rule = "an event id must not occur in two streams"
        return BadTable(self._path, row.place, rule)

    def check_order(self, row: Row, time: Time) -> None:
        """Refuse a row that goes back in time, unless it was said that some do."""
        if row.stream not in self._times:
            before = self._ledger.last_time(row.stream)
            self._times[row.stream] = None if before is None else Time.of(before)
        last = self._times[row.stream]
        try:
            if last is not None and time.before(last) and self._reading.late is Late.REFUSE:
                rule = (
                    "its time lies before that of the last row of its stream; sort the table, or "
                    "release rows as they come (--late accept)"
                )
                raise BadTable(self._path, row.place, rule)
        except Unreadable as problem:
            rule = f"column {self._reading.time!r} {problem}"
            raise BadTable(self._path, row.place, rule) from None
        self._times[row.stream] = time
