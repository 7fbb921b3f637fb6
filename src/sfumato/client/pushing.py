"""From a table of true values to a table of private ones, by a service.

What tells an event from all others follows from the table alone, so a push that is run again, for
whatever reason, asks for the same answers and gets them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from sfumato.client.pushed_rows import Plan, PushedRows
from sfumato.client.wire import LiveEvent, Reply
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.encoding import is_missing, text
from sfumato.store.protocol import Identity
from sfumato.tables.cells import Missing
from sfumato.tables.input_groups import (
    EventColumns,
    EventReader,
    Interruptible,
    groups,
    until_stopped,
)
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table, same_file

Ask = Callable[[list[LiveEvent]], Iterable[Reply]]
Finish = Callable[[str], Reply | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSpec:
    """How a table is read and sent.

    Attributes:
        stream: Column of streams.
        values: Columns of the value; several are sent as a list.
        events: What tells events apart; row numbers if it names no column.
        source: Name of the input: with the number of a row it is an id.
        missing: What becomes of a missing value: refused, left out, or its moment passes.
        drop_refused: Whether a row that the service refuses is left out, or ends the push.
    """

    stream: str = "stream"
    values: tuple[str, ...] = ("value",)
    events: EventColumns = field(default_factory=EventColumns)
    source: str | None = None
    missing: Missing = Missing.REFUSE
    drop_refused: bool = False

    def __post_init__(self) -> None:
        if self.events.identity is Identity.ROW and self.source is None:
            rule = "be given where no column (event, time) tells events apart"
            raise InvalidParameter("source", None, rule)
        if self.missing is Missing.SYMBOL:
            raise InvalidParameter("missing", "symbol", "be refuse, drop or skip")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys((self.stream, *self.values, *self.events.names)))


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did.

    Attributes:
        rows: Rows answered.
        repeated: How many of them had been answered before.
        streams: How many streams they belong to.
        refused: Rows that were left out because the service refused them.
        missing: Values that were missing.
        waiting: Rows that were sent and have no answer yet.
        interrupted: Whether it was asked to stop before the end of the input.
        continued: Streams that had answers before, none of which was asked for here.
        part: File of what was answered before an interruption; None if there is none.
    """

    rows: int
    repeated: int
    streams: int
    refused: int
    missing: int
    waiting: int
    interrupted: bool
    continued: int = 0
    part: str | None = None


def push_table(
    source: Table,
    output: Table,
    ask: Ask,
    finish: Finish,
    spec: PushSpec,
    progress: Progress | None = None,
    plan: Plan | None = None,
) -> PushReport:
    """Have every row of a table answered by a service; rows of streams may be interleaved.

    Args:
        source: The true values.
        output: Where the private values go; a file appears when it is complete. After Ctrl-C what
            was answered is in `OUTPUT.part`, where a longer one is never replaced by a shorter.
        ask: Gives a reply for each event, in order.
        finish: Releases what waits of a stream.
        spec: How the table is read.
        progress: Called with the number of rows answered so far.
        plan: Makes the rules that are written beside a complete file; none are, if None.

    Raises:
        BadTable: If a row is malformed or refused; what was answered gets the same answers again.
    """
    if same_file(source.path, output.path):
        raise BadTable(output.path, None, "the output must not be the input")
    if spec.stream in ("event", "sequence", "released", "outcome", "sip", "ldp"):
        raise InvalidParameter("the stream column", spec.stream, "not be named as an output column")
    push = _Push(source.path, spec)
    shows_ids = spec.events.event is not None
    with (
        Interruptible() as stop,
        PushedRows(output, spec.stream, events=shows_ids, plan=plan) as rows,
        closing(source.chunks(spec.columns)) as chunks,
    ):
        for chunk in groups(until_stopped(chunks, stop), stop):
            if chunk is not None:
                push.answered(chunk, ask, rows, stop)
            if progress:
                progress(rows.rows)
        if stop.requested:
            rows.stop()
        else:
            push.finished(finish, rows)
        waiting = rows.waiting()
    kept = stop.requested and rows.rows > 0 and not output.is_standard
    part = rows.part if kept else None
    return push.report(rows.rows, waiting, interrupted=stop.requested, part=part)


class _Push:
    """The rows of one table on their way."""

    def __init__(self, path: str, spec: PushSpec) -> None:
        self._path, self._spec = path, spec
        self._reader = EventReader(path, spec.events, spec.source or "")
        self._streams: set[str] = set()
        self._began: dict[str, int] = {}
        self._open: dict[str, None] = {}
        self._repeated = self._refused = self._missing = 0

    def answered(self, chunk: Chunk, ask: Ask, rows: PushedRows, stop: Interruptible) -> None:
        """Have some rows answered; the rows before one that breaks a rule leave first.

        A request to stop is heard at once: what was sent without a reply gets the same answer when
        it is sent again.
        """
        events, broken = list[LiveEvent](), None
        places: list[int] = []
        try:
            for place, event in self._events(chunk):
                places.append(place)
                events.append(event)
        except BadTable as problem:
            broken = problem
        for event in events:
            rows.expect(event.id)
        replies: list[Reply] | None = None
        with stop.waiting():
            replies = list(ask(events)) if events else []
        if replies is None:
            return
        self._heard(places, events, replies, rows)
        if broken is not None:
            raise broken

    def _events(self, chunk: Chunk) -> Iterator[tuple[int, LiveEvent]]:
        for offset in range(len(chunk)):
            value = self._value(chunk, offset)
            if value == []:
                continue
            stream = self._reader.cell(text, self._spec.stream, chunk, offset)
            time = self._reader.time(chunk, offset)
            name = self._reader.id(chunk, offset, stream, time)
            sent = LiveEvent(stream, value, name, None if time is None else time.text)
            yield chunk.first + offset, sent

    def _value(self, chunk: Chunk, offset: int) -> Any:
        """The value of a row; None if its moment passes, an empty list if it is left out."""
        cells = [chunk.columns[name][offset] for name in self._spec.values]
        if any(map(is_missing, cells)):
            self._missing += 1
            if self._spec.missing is Missing.REFUSE:
                rule = "the value must not be missing (--missing says what becomes of it)"
                raise BadTable(self._path, chunk.first + offset, rule)
            return [] if self._spec.missing is Missing.DROP else None
        return cells[0] if len(cells) == 1 else cells

    def _heard(
        self,
        places: Sequence[int],
        events: Sequence[LiveEvent],
        replies: Sequence[Reply],
        rows: PushedRows,
    ) -> None:
        for place, event, reply in zip(places, events, replies, strict=True):
            self._streams.add(event.stream)
            self._repeated += reply.repeated
            for answer in reply.answers:
                self._began.setdefault(answer.stream, answer.sequence)
            if reply.status == "waiting":
                self._open[event.stream] = None
            elif reply.problem is not None:
                if not self._spec.drop_refused:
                    why = reply.problem.detail or reply.problem.title
                    raise BadTable(self._path, place, f"the service refused it: {why}")
                self._refused += 1
                rows.drop(event.id)
            else:
                self._open.pop(event.stream, None)
        rows.take(replies)

    def finished(self, finish: Finish, rows: PushedRows) -> None:
        """At the end of the input what there is of a batch leaves."""
        for stream in self._open:
            reply = finish(stream)
            if reply is not None:
                rows.take([reply])

    def report(self, rows: int, waiting: int, *, interrupted: bool, part: str | None) -> PushReport:
        # Who asks again for what was answered has the ids right; who asks for nothing of it may
        # have given the same rows other ids, and they were released and charged again.
        fresh = self._repeated == 0
        continued = sum(first > 0 for first in self._began.values()) if fresh else 0
        return PushReport(
            rows,
            self._repeated,
            len(self._streams),
            self._refused,
            self._missing,
            waiting,
            interrupted,
            continued,
            part,
        )
