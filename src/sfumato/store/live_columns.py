"""Replies to many events by columns: what is new in arrays, what is odd one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.store.answer_columns import AnswerColumns
from sfumato.store.live import Answered, LiveRun, Reply


@dataclass(frozen=True, slots=True)
class ReplyColumns:
    """A reply for each event, in the order asked; all answers are durable.

    Attributes:
        count: How many events asked.
        fresh: The new answers, in the order asked; None if there are none.
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
