"""Rows as they arrive: in groups between which a request to stop is heard, and which event each is.

A clock ticks between groups, too, for whoever must not wait for ever.
"""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

from sfumato.models.encoding import Raw, Unreadable, text
from sfumato.store.protocol import Identity
from sfumato.tables.cells import Time
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import CHUNK_ROWS, Chunk

Value = TypeVar("Value")

GROUP_SECONDS, _LONGEST_TICK = 0.25, 3600.0


class Interruptible:
    """Turns SIGINT and SIGTERM into a request that is honoured between groups.

    While `waiting()` for input, which may take for ever, the signal interrupts at once.

    Examples:
        >>> with Interruptible() as stop:
        ...     stop.requested
        False
    """

    def __init__(self) -> None:
        self.requested = False
        self._waiting = False

    def __enter__(self) -> Interruptible:
        self._before = {}
        # Signals belong to the main thread; elsewhere the caller decides.
        if threading.current_thread() is threading.main_thread():
            for kind in (signal.SIGINT, signal.SIGTERM):
                self._before[kind] = signal.signal(kind, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for kind, handler in self._before.items():
            signal.signal(kind, handler)

    def _handle(self, kind: int, frame: FrameType | None) -> None:
        self.requested = True
        if self._waiting:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Input is awaited: nothing is under way that a signal could tear apart."""
        self._waiting = True
        try:
            if self.requested:
                raise KeyboardInterrupt
            yield
        except KeyboardInterrupt:
            self.requested = True
        finally:
            self._waiting = False


def groups(chunks: Iterator[Chunk | None], stop: Interruptible) -> Iterator[Chunk | None]:
    """Chunks in parts that take a fraction of a second, so that a request to stop is heard."""
    size = 16
    for chunk in chunks:
        if chunk is None:
            yield None
            continue
        start = 0
        while start < len(chunk) and not stop.requested:
            began = time.monotonic()
            part = {name: column[start : start + size] for name, column in chunk.columns.items()}
            yield Chunk(chunk.first + start, part)
            start += size
            quick = time.monotonic() - began < GROUP_SECONDS
            size = min(2 * size, CHUNK_ROWS) if quick else max(size // 2, 1)


def until_stopped(chunks: Iterator[Value], stop: Interruptible) -> Iterator[Value]:
    """Chunks, or batches, until the end or a request to stop."""
    while not stop.requested:
        chunk: Value | None = None
        with stop.waiting():
            chunk = next(chunks, None)
        if chunk is None:
            return
        yield chunk


def with_ticks(
    chunks: Iterator[Chunk], stop: Interruptible, patience: Callable[[], float | None]
) -> Iterator[Chunk | None]:
    """The same, with a None whenever `patience()` seconds have passed without a row.

    Args:
        chunks: The rows; read by a thread of their own, a few chunks ahead.
        stop: Ends it.
        patience: How long to wait for the next row; None for ever.
    """
    arrived: queue.Queue[Chunk | BaseException | None] = queue.Queue(maxsize=8)

    def read() -> None:
        try:
            for chunk in chunks:
                arrived.put(chunk)
            arrived.put(None)
        except BaseException as problem:  # whatever it is, the main thread raises it
            arrived.put(problem)

    threading.Thread(target=read, daemon=True).start()
    while not stop.requested:
        found: Chunk | BaseException | None = None
        try:
            with stop.waiting():
                due = patience()
                found = arrived.get(timeout=None if due is None else min(due, _LONGEST_TICK))
        except queue.Empty:
            yield None
            continue
        if isinstance(found, BaseException):
            raise found
        if found is None:
            return
        yield found


@dataclass(frozen=True, slots=True)
class EventColumns:
    """What tells events apart: through days, files and restarts.

    Attributes:
        event: Column of event ids. They are released, and tell an event from all others.
        time: Column of times. Without event ids, stream and time tell an event from all others;
            rows of a stream must not go back in time.

    Examples:
        >>> EventColumns(time="when").identity, EventColumns(event="id", time="when").identity
        (<Identity.TIME: 'time'>, <Identity.EVENT: 'event'>)
    """

    event: str | None = None
    time: str | None = None

    @property
    def identity(self) -> Identity:
        """What tells an event from all others."""
        if self.event is not None:
            return Identity.EVENT
        return Identity.ROW if self.time is None else Identity.TIME

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(name for name in (self.event, self.time) if name is not None)


@dataclass(frozen=True, slots=True)
class EventRow:
    """What every row says besides its value.

    Attributes:
        id: What tells its event from all others.
        stream: Whose value it is.
        place: Its number in the table.
        time: When, if a column says so.
    """

    id: str
    stream: str
    place: int
    time: Time | None


@dataclass(frozen=True, slots=True)
class EventReader:
    """Reads what rows say of their events.

    Attributes:
        path: The input, for messages.
        columns: What tells events apart.
        label: Of the input in the ledger: with the number of a row it is an id.
    """

    path: str
    columns: EventColumns
    label: str

    def cell(self, read: Callable[[Raw], Value], column: str, chunk: Chunk, offset: int) -> Value:
        """A cell that is no value, or the rule that it breaks."""
        try:
            return read(chunk.columns[column][offset])
        except Unreadable as problem:
            rule = f"column {column!r} {problem}"
            raise BadTable(self.path, chunk.first + offset, rule) from None

    def time(self, chunk: Chunk, offset: int) -> Time | None:
        """When a row was measured, if a column says so."""
        column = self.columns.time
        return None if column is None else self.cell(Time.of, column, chunk, offset)

    def id(self, chunk: Chunk, offset: int, stream: str, time: Time | None) -> str:
        """What tells the event of a row from all others."""
        if self.columns.event is not None:
            return self.cell(text, self.columns.event, chunk, offset)
        if time is not None:
            return json.dumps([stream, time.text], ensure_ascii=False)
        return f"{self.label}:{chunk.first + offset}"


def until_broken(rows: Iterable[Value]) -> tuple[list[Value], BadTable | None]:
    """The rows up to the first that breaks a rule, and what it broke."""
    read: list[Value] = []
    try:
        for row in rows:
            read.append(row)
    except BadTable as problem:
        return read, problem
    return read, None


class TimeOrder:
    """Refuses rows that go back in the time of their stream."""

    def __init__(
        self, path: str, column: str | None, last_time: Callable[[str], str | None], advice: str
    ) -> None:
        self._path, self._column, self._advice = path, column, advice
        self._last_time = last_time
        self._times: dict[str, Time | None] = {}

    def forget(self) -> None:
        """Ask anew for the last times: other rows have come in between."""
        self._times.clear()

    def check(self, row: EventRow, *, late: bool = False) -> None:
        """Refuse a row that goes back, unless late ones are taken."""
        if row.time is None:
            return
        if row.stream not in self._times:
            before = self._last_time(row.stream)
            self._times[row.stream] = None if before is None else Time.of(before)
        last = self._times[row.stream]
        try:
            if last is not None and row.time.before(last) and not late:
                rule = f"its time lies before that of the last row of its stream; {self._advice}"
                raise BadTable(self._path, row.place, rule)
        except Unreadable as problem:
            raise BadTable(self._path, row.place, f"column {self._column!r} {problem}") from None
        self._times[row.stream] = row.time
