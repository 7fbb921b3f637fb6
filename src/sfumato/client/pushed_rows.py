"""Answers of a service as rows of a table: the columns of `sfumato release`, in the input's order.

Which columns there are follows from the first answer that released something, so the same answers
make the same file, however they came.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sfumato.client.wire import GivenAnswer, Reply
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table
from sfumato.tables.writers import Output

Plan = Callable[[int, int, str], bytes]
"""The rules beside a table: from the numbers of its rows and streams, and its SHA-256."""
_COSTS = ("sip", "ldp", "charge", "epsilon")


@dataclass(frozen=True, slots=True)
class RowShape:
    """Which columns the rows have.

    Attributes:
        stream: Name of the column of streams, as in the input.
        events: Whether ids of events leave beside the answers.
        columns: Name of each column, the field of an answer that it holds, and its type.
    """

    stream: str
    events: bool
    columns: tuple[tuple[str, str, type], ...]

    @classmethod
    def of(cls, answer: GivenAnswer | None, stream: str, *, events: bool) -> RowShape:
        """The shape that an answer shows; that of names if there is none.

        Examples:
            >>> given = GivenAnswer(event="e", stream="u", sequence=0, outcome="ok", released=3,
            ...                     sip=0.1, ldp=0.2)
            >>> [name for name, _, _ in RowShape.of(given, "user", events=False).columns]
            ['user', 'sequence', 'released', 'outcome', 'sip', 'ldp']
        """
        released = str if answer is None or answer.released is None else type(answer.released)
        kinds: list[tuple[str, str, type]] = [("event", "event", str)] if events else []
        kinds += [(stream, "stream", str), ("sequence", "sequence", int), ("batch", "batch", int)]
        kinds += [("released", "released", released if released in (int, float) else str)]
        kinds += [("signal", "signal", int), ("x", "x", float), ("y", "y", float)]
        kinds += [("outcome", "outcome", str), *((name, name, float) for name in _COSTS)]
        always = ("event", "stream", "sequence", "released", "outcome")
        shown = ("sip", "ldp") if answer is None else tuple(_told(answer))
        return cls(stream, events, tuple(kind for kind in kinds if kind[1] in (*always, *shown)))

    def row(self, answer: GivenAnswer) -> list[Any]:
        """An answer as a row."""
        made: list[Any] = []
        for _, field, kind in self.columns:
            cell = getattr(answer, field)
            made.append(str(cell) if kind is str and cell is not None else cell)
        return made

    def fits(self, answer: GivenAnswer) -> bool:
        """Whether nothing of an answer is lost in these columns, and each cell is of its type."""
        kinds = {field: kind for _, field, kind in self.columns}
        if any(field not in kinds for field in _told(answer)):
            return False
        number = kinds["released"] in (int, float)
        return not number or isinstance(answer.released, int | float | None)


def _told(answer: GivenAnswer) -> Iterator[str]:
    """The optional fields that an answer has."""
    for field in ("batch", "signal", "x", "y", *_COSTS):
        if getattr(answer, field) is not None:
            yield field


class PushedRows:
    """The output of a push: rows leave in the order of the input, each as soon as it can.

    Args:
        output: Where to.
        stream: Name of the column of streams.
        events: Whether ids of events leave beside the answers.
        plan: Makes the rules that are written beside a file; None if they are not known.
    """

    def __init__(
        self, output: Table, stream: str, *, events: bool, plan: Plan | None = None
    ) -> None:
        self._table, self._stream, self._events, self._plan = output, stream, events, plan
        self._streams: set[str] = set()
        self._stopped = False
        self._expected: deque[str] = deque()
        self._times: Counter[str] = Counter()
        self._answers: dict[str, GivenAnswer] = {}
        self._held: list[GivenAnswer] = []
        self._shape: RowShape | None = None
        self._output: Output | None = None
        self.rows = 0

    def expect(self, event: str) -> None:
        """An event was sent: its row stands behind those before it."""
        self._expected.append(event)
        self._times[event] += 1

    def take(self, replies: Iterable[Reply]) -> None:
        """Answers came; write the rows that are next."""
        for reply in replies:
            self._answers.update({answer.event: answer for answer in reply.answers})
        self._write(self._ready())

    def drop(self, event: str) -> None:
        """An event gets no answer."""
        self._expected.remove(event)
        self._times[event] -= 1

    @property
    def part(self) -> str:
        """Where an incomplete file goes: nobody takes it for the whole."""
        return f"{self._table.path}.part"

    def stop(self) -> None:
        """Nothing more will come, and it is not all."""
        self._stopped = True

    def waiting(self) -> int:
        """How many rows have no answer yet."""
        return sum(event not in self._answers for event in self._expected)

    def _ready(self) -> list[GivenAnswer]:
        ready = []
        while self._expected and self._expected[0] in self._answers:
            event = self._expected.popleft()
            ready.append(self._answers[event])
            self._times[event] -= 1
            if not self._times[event]:  # a file may hold an event twice
                del self._answers[event], self._times[event]
        return ready

    def _write(self, ready: list[GivenAnswer]) -> None:
        self._held += ready
        first = next((answer for answer in self._held if answer.released is not None), None)
        if self._output is None and first is not None:
            self._open(first)
        if self._output is not None and self._shape is not None:
            if not all(map(self._shape.fits, self._held)):
                rule = "answers must be those of one release: name it with --release"
                raise BadTable(self._table.path, None, rule)
            self._output.write([self._shape.row(answer) for answer in self._held])
            self._streams.update(answer.stream for answer in self._held)
            self.rows += len(self._held)
            self._held = []

    def _open(self, first: GivenAnswer | None) -> None:
        self._shape = RowShape.of(first, self._stream, events=self._events)
        columns = {name: kind for name, _, kind in self._shape.columns}
        beside = {}
        if self._plan is not None and not self._table.is_standard:
            beside[f"{self._table.path}.plan.json"] = self._planned
        self._output = Output(self._table, columns, beside)
        self._output.__enter__()

    def _planned(self, digest: str) -> bytes:
        assert self._plan is not None
        return self._plan(self.rows, len(self._streams), digest)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            # What was answered behind a row that waits leaves too, when nothing more will come.
            self._expected = deque(each for each in self._expected if each in self._answers)
            self._write(self._ready())
            if self._output is None and (self._held or not self._stopped):
                self._open(self._held[0] if self._held else None)
                self._write([])
        if self._output is not None:
            if self._stopped:
                self._output.keep_as_part(self.part)
            self._output.__exit__(kind, failure, traceback)
        if kind is None and not self._stopped and not self._table.is_standard:
            Path(self.part).unlink(missing_ok=True)  # the whole file is there
