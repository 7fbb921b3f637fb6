"""The streams of one shard while it is worked on: taken from bytes, moved on, put back as bytes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Ints
from sfumato.core.compile_events import eagerly
from sfumato.core.errors import BudgetExceeded, CorruptData
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.engines.spark.partition_release import stepped
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.column_values import PASSES
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_answers import Run
from sfumato.stream.fleet_streams import Backup
from sfumato.stream.plan import Plan

Part = tuple[Ints, Run]
"""Some rows by their numbers, and what left for them."""


class ShardStreams(ABC):
    """Streams of one shard; used by one task, and thrown away with it."""

    @abstractmethod
    def drawn(
        self, rows: Ints, cells: Ints, which: Ints, periods: Ints | None = None
    ) -> list[Part]:
        """Draw answers in the order given; rows for which no budget is left are left out.

        Args:
            rows: Numbers of rows.
            cells: As `Fleet.run` has them, by the numbers of rows.
            which: The place of the stream of each row, by the numbers of rows.
            periods: The period of each row, under a budget for periods of time.
        """

    @property
    @abstractmethod
    def rows(self) -> list[bytes]:
        """Where the streams stand, for `opened_streams`."""


def opened_streams(
    plan: Plan, coins: Randomness, begun: Sequence[bytes], names: Sequence[str], count: int
) -> ShardStreams:
    """The streams of a shard.

    Args:
        plan: The rule.
        coins: Of its key.
        begun: Where the streams stand that were begun before, as `ShardStreams.rows`.
        names: Of all streams; of those that were begun before,
        count: there are so many, and they come first.
    """
    if plan.by_fleet:
        return CompiledStreams(plan, coins, begun, names, count)
    return SolvedStreams(plan, coins, begun, names, count)


class CompiledStreams(ShardStreams):
    """Streams under a policy: all of them in one fleet, loaded and stored by array."""

    def __init__(
        self,
        plan: Plan,
        coins: Randomness,
        begun: Sequence[bytes],
        names: Sequence[str],
        count: int,
    ) -> None:
        self._plan = plan
        # Shards come a few rows at a time: none alone is worth compiling for, all together are.
        with eagerly():
            self._fleet = Fleet(plan, names, randomness=coins)
        if count:
            form = self._fleet.backup(np.zeros(0, dtype=np.int64)).rows
            held = _arrays(begun, form, count)
            self._fleet.restore(Backup(np.arange(count), held))

    def drawn(
        self, rows: Ints, cells: Ints, which: Ints, periods: Ints | None = None
    ) -> list[Part]:
        """Draw answers; see `ShardStreams`."""
        if self._plan.on_exhausted is Fallback.REFUSE and rows.size:
            gone = self._fleet.exhausted(which[rows]) & (cells[rows] != PASSES)
            rows = rows[~gone]
        if not rows.size:
            return []
        try:
            with eagerly():
                return [(rows, self._fleet.run(cells[rows], which[rows]))]
        except BudgetExceeded:
            # All or none: nothing has moved. Halves find the few that are refused.
            half = len(rows) // 2
            if not half:
                return []
            first = self.drawn(rows[:half], cells, which)
            return first + self.drawn(rows[half:], cells, which)

    @property
    def rows(self) -> list[bytes]:
        """Where the streams stand, array by array."""
        held = self._fleet.backup(np.arange(len(self._fleet))).rows
        return [part.astype(part.dtype.newbyteorder("<"), copy=False).tobytes() for part in held]


def _arrays(
    stored: Sequence[bytes], form: tuple[NDArray[Any], ...], count: int
) -> tuple[NDArray[Any], ...]:
    """Arrays of some streams, if they have the form that those of the plan have."""
    if len(stored) != len(form):
        raise CorruptData("a stored shard must have the arrays of its plan")
    found = []
    for data, part in zip(stored, form, strict=True):
        each = part.dtype.itemsize * int(np.prod(part.shape[1:]))
        if len(data) != count * each:
            raise CorruptData("a stored shard must have arrays of the shape that its plan has")
        array = np.frombuffer(data, part.dtype.newbyteorder("<")).reshape(count, *part.shape[1:])
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise CorruptData("stored numbers must be finite")
        found.append(array)
    return tuple(found)


class SolvedStreams(ShardStreams):
    """Streams that go step by step: without a policy, or with a budget for periods of time."""

    def __init__(
        self,
        plan: Plan,
        coins: Randomness,
        begun: Sequence[bytes],
        names: Sequence[str],
        count: int,
    ) -> None:
        self._plan, self._coins = plan, coins
        before = [from_bytes(stored, StreamState) for stored in begun]
        if [state.stream for state in before] != list(names[:count]):
            raise CorruptData("a stored shard must have a state for each of its streams")
        self._states = dict(enumerate([*before, *map(plan.begin, names[count:])]))

    def drawn(
        self, rows: Ints, cells: Ints, which: Ints, periods: Ints | None = None
    ) -> list[Part]:
        """Draw answers; see `ShardStreams`."""
        found: list[Part] = []
        for row in rows:
            alone = np.array([row])
            own = None if periods is None else periods[alone]
            given = (self._states, cells[alone], which[alone], own)
            try:
                run = stepped(self._plan, self._coins, *given)
            except BudgetExceeded:
                continue
            found.append((alone, run))
        return found

    @property
    def rows(self) -> list[bytes]:
        """Where the streams stand, state by state."""
        return [to_bytes(self._states[place]) for place in range(len(self._states))]
