"""Many events by columns, and replies to them: what is new in arrays, what is odd one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.store.answer_columns import AnswerColumns
from sfumato.store.live import Answered, Asked, LiveRun, Reply


@dataclass(frozen=True, slots=True)
class EventColumns:
    """Events that are asked together, in order: without an object for each; see `Asked`.

    Attributes:
        ids: What tells each from all others of its stream.
        streams: Whose values they are.
        values: The true values. Held in memory alone, and in no message.
        times: When they were measured; None if that is told of none.

    Examples:
        >>> one = EventColumns.of([Asked("e1", "ann", "home")])
        >>> two = EventColumns.of([Asked("e1", "bob", "work", "2026-05-01")])
        >>> EventColumns.joined([one, two])
        EventColumns(ids=['e1', 'e1'], streams=['ann', 'bob'], times=[None, '2026-05-01'])
    """

    ids: list[str]
    streams: list[str]
    values: list[Any] = field(repr=False)
    times: list[str | None] | None = None

    @classmethod
    def of(cls, events: Sequence[Asked]) -> EventColumns:
        """Events that are at hand one by one."""
        times = [event.time for event in events]
        return cls(
            [event.id for event in events],
            [event.stream for event in events],
            [event.value for event in events],
            None if times.count(None) == len(times) else times,
        )

    @classmethod
    def joined(cls, parts: Sequence[EventColumns]) -> EventColumns:
        """Those of several askers, one after the other."""
        if len(parts) == 1:
            return parts[0]
        times: list[str | None] | None = None
        if any(part.times is not None for part in parts):
            times = [one for part in parts for one in part.times or [None] * len(part)]
        return cls(
            [one for part in parts for one in part.ids],
            [one for part in parts for one in part.streams],
            [one for part in parts for one in part.values],
            times,
        )

    def __len__(self) -> int:
        return len(self.ids)

    def taken(self, places: Sequence[int]) -> EventColumns:
        """Some of them."""
        times = None if self.times is None else [self.times[place] for place in places]
        return EventColumns(
            [self.ids[place] for place in places],
            [self.streams[place] for place in places],
            [self.values[place] for place in places],
            times,
        )


@dataclass(frozen=True, slots=True)
class ReplyColumns:
    """A reply for each event, in the order asked; all answers are durable.

    Attributes:
        count: How many events asked.
        fresh: The new answers, in the order in which they were drawn: that of the events, but for
            those whose time was judged again; None if there are none.
        rows: The place of each new answer among the events.
        others: Replies to all other events, by their places.
    """

    count: int
    fresh: AnswerColumns | None = None
    rows: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    others: dict[int, Reply] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.count

    def replies(self) -> list[Reply]:
        """The same, one by one."""
        new = [] if self.fresh is None else self.fresh.answers()
        if not self.others:
            return [Answered((answer,)) for answer in new]
        found = dict(self.others)
        for place, answer in zip(self.rows.tolist(), new, strict=True):
            found[place] = Answered((answer,))
        return [found[place] for place in range(self.count)]


class ColumnarRun(LiveRun, Protocol):
    """A live run that takes events by columns, too: without an object for each of them."""

    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        """The same as `answer`; see `Asked` for what the columns are."""
        ...
