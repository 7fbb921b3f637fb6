"""The streams of a live run in a fleet: a copy of what the store has, and nothing else.

It may be thrown away at any time, and is read again from the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import CorruptData
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.store.live_intake import last_time
from sfumato.store.protocol import Answer, Head, Position, Store
from sfumato.stream.fleet import Fleet
from sfumato.stream.plan import Plan
from sfumato.stream.row_run import state_kind
from sfumato.tables.cells import Time


class FleetCopy:
    """Where the streams of a store stand, those that were asked for; used by one thread at a time.

    Args:
        plan: The rule; with a policy, for single values.
        coins: Of the releases.
        store: Where streams stand.
        most: How many streams are held; beyond, all are forgotten and read again.
    """

    def __init__(self, plan: Plan, coins: Randomness, store: Store, most: int) -> None:
        self._plan, self._coins, self._store, self._most = plan, coins, store, most
        self._kind = state_kind(plan)
        self._fleet: Fleet | None = None
        self._times: dict[int, Time] = {}
        self._unlooked: dict[int, int] = {}
        # The head of a shared store as it was left; how often it was another, for others commit,
        # too; and of each stream, how often it had been when the stream was read.
        self._left: Head | None = None
        self._moves, self._read = 0, np.empty(0, dtype=np.int64)

    @property
    def fleet(self) -> Fleet:
        """The fleet, once there is a stream."""
        assert self._fleet is not None
        return self._fleet

    def __len__(self) -> int:
        return 0 if self._fleet is None else len(self._fleet)

    def forget(self) -> None:
        """Throw it away: the store knows."""
        self._fleet, self._left = None, None
        self._times, self._unlooked = {}, {}

    def places(self, names: Sequence[str]) -> Ints:
        """The places of some different streams, each as the store has it now.

        Raises:
            CorruptData: If what is stored is not what the last commit stored.
        """
        found = self._held(names)
        strange = np.flatnonzero(found < 0)
        if len(self) + strange.size > self._most:
            self.forget()
            strange, found = np.arange(len(names)), np.full(len(names), -1)
        if self._store.shared and self._outdated(found):
            self._renew(names, found)
        if strange.size:
            found[strange] = self._load([names[place] for place in strange.tolist()])
        self._note_read(found)
        return found

    def _outdated(self, found: Ints) -> bool:
        """Whether others may have moved one of these streams since it was read."""
        head = self._store.front.head
        if head != self._left:
            self._moves, self._left = self._moves + 1, head
        return bool((self._read[found[found >= 0]] != self._moves).any())

    def _note_read(self, places: Ints) -> None:
        """These are now as the store has them."""
        if len(self) > len(self._read):
            more = np.zeros(2 * len(self) - len(self._read), dtype=np.int64)
            self._read = np.concatenate([self._read, more])
        self._read[places] = self._moves

    def committed(self) -> None:
        """What these streams did is in the store, in a turn that is not over yet."""
        self._left = self._store.front.head

    def _held(self, names: Sequence[str]) -> Ints:
        return np.full(len(names), -1) if self._fleet is None else self._fleet.places(names)

    def _load(self, names: list[str]) -> Ints:
        """Begin streams, or take them up where they stand in the store."""
        new = not (self._store.shared or self._store.front.head.entries)
        ends = [None] * len(names) if new else self._store.ends(names)
        begun = [(row, end) for row, end in enumerate(ends) if end is not None]
        fresh = [row for row, end in enumerate(ends) if end is None]
        states = [self._kind.read(position) for _, (position, _) in begun]
        added = self._enlist([names[row] for row in fresh], states)
        for place, (_, (_, last)) in zip(added.tolist(), begun, strict=False):
            self._set_time(place, last)
        places = np.empty(len(names), dtype=np.int64)
        places[[*(row for row, _ in begun), *fresh]] = added
        return places

    def _enlist(self, names: list[str], states: list[StreamState]) -> Ints:
        if self._fleet is None:
            self._fleet = Fleet(self._plan, names, states=states, randomness=self._coins)
            return np.arange(len(self._fleet))
        return self._fleet.enlist(names, states)

    def _renew(self, names: Sequence[str], found: Ints) -> None:
        """Read streams again that others have moved since they were read."""
        held = np.flatnonzero(found >= 0)
        if not held.size:
            return
        ends = self._store.ends([names[row] for row in held.tolist()])
        moments, spent = self.fleet.stands(found[held])
        told = zip(found[held].tolist(), moments.tolist(), spent.tolist(), ends, strict=True)
        moved: list[tuple[int, Position, Answer]] = []
        for place, moment, sums, end in told:
            stands = (0, [0.0, 0.0])
            if end is not None:
                position, last = end
                stands = position.sequence, [position.leakage, position.model_free]
                if stands != (moment, sums):
                    moved.append((place, position, last))
            if stands[0] < moment:
                raise CorruptData("the store has fewer answers of a stream than it had before")
        if moved:
            states = [self._kind.read(position) for _, position, _ in moved]
            self.fleet.put(np.array([place for place, _, _ in moved]), states)
        for place, _, last in moved:
            self._set_time(place, last)

    # -- times ------------------------------------------------------------------------------------

    def _set_time(self, place: int, last: Answer) -> None:
        self._times.pop(place, None)
        self._unlooked.pop(place, None)
        if last.time is not None:
            self._times[place] = Time.of(last.time)
        else:
            self._unlooked[place] = last.sequence

    def time(self, place: int, stream: str) -> Time | None:
        """The last time that was told of a stream; an answer without one does not reset it."""
        if place not in self._times and place in self._unlooked:
            # Only who tells a time makes us look: a stream without any would be read to its start.
            told = last_time(self._store, stream, self._unlooked.pop(place))
            if told is not None:
                self._times[place] = Time.of(told)
        return self._times.get(place)

    def set_times(self, which: Ints, times: Sequence[Time | None]) -> None:
        """The times of new answers, those of later ones last."""
        for place, time in zip(which.tolist(), times, strict=True):
            if time is not None:
                self._times[place] = time
