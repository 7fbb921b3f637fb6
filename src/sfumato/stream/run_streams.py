"""The streams of one run over a table, in one fleet that lasts as long as the run.

Whatever a row needs to know of its stream lies in arrays: where it stands, whether it was answered
in this run, and the time of its last row. A stream takes some hundred bytes, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.store.protocol import Answer
from sfumato.stream.column_times import Clock, TimeKeys, keys_of
from sfumato.stream.column_values import Irregular
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_answers import Run
from sfumato.stream.plan import Plan
from sfumato.tables.cells import Time

Stored: TypeAlias = Callable[[Sequence[str]], list[tuple[StreamState, str | None] | None]]
"""Where streams stood before this run, and the times of their last rows; None for new ones."""

_NEVER = -1


class RunStreams:
    """The streams of one run, each at a place of its own; a `HeldStreams` for rows, too.

    Args:
        plan: The rule; with a policy, for single values.
        randomness: Coins.
        threads: How many threads share the work.

    Attributes:
        stored: Where streams stood before; nowhere unless set.
        ordered: Whether the times of all streams are told by their keys.
    """

    def __init__(self, plan: Plan, randomness: Randomness, threads: int = 1) -> None:
        self._plan, self._randomness, self._threads = plan, randomness, threads
        self.stored: Stored = lambda names: [None] * len(names)
        self._fleet: Fleet | None = None
        self._began = np.empty(0, dtype=np.int64)
        self._old = np.empty(0, dtype=np.bool_)
        self._timed = np.empty(0, dtype=np.bool_)
        self._times = TimeKeys(Clock.WHOLE, np.empty(0, dtype=np.int64))
        self.ordered = True

    def __len__(self) -> int:
        """How many streams had answers in this run, new or old."""
        return int(((self._began != _NEVER) | self._old).sum())

    @property
    def fleet(self) -> Fleet:
        """The fleet, once there is a stream."""
        assert self._fleet is not None
        return self._fleet

    def places(self, names: Sequence[str]) -> Ints:
        """The places of some different streams; those that were never seen are begun or loaded."""
        found = np.full(len(names), -1) if self._fleet is None else self._fleet.places(names)
        strange = np.flatnonzero(found < 0)
        if not strange.size:
            return found
        rows = strange.tolist()
        before = list(zip(rows, self.stored([names[row] for row in rows]), strict=True))
        began = [(row, one) for row, one in before if one is not None]
        fresh = [row for row, one in before if one is None]
        places = self._enlist([names[row] for row in fresh], [state for _, (state, _) in began])
        found[[*(row for row, _ in began), *fresh]] = places
        last = {place: end[1] for place, (_, end) in zip(places.tolist(), began, strict=False)}
        self._set_last({place: text for place, text in last.items() if text is not None})
        return found

    def _enlist(self, names: list[str], states: list[StreamState]) -> Ints:
        if self._fleet is None:
            self._fleet = Fleet(
                self._plan,
                names,
                states=states,
                randomness=self._randomness,
                threads=self._threads,
            )
            places = np.arange(len(self._fleet))
        else:
            places = self._fleet.enlist(names, states)
        room = len(self._fleet)
        if room > len(self._began):
            self._grow(max(room, 2 * len(self._began)))
        return places

    def _grow(self, room: int) -> None:
        more = room - len(self._began)
        self._began = np.concatenate([self._began, np.full(more, _NEVER)])
        self._old = np.concatenate([self._old, np.zeros(more, dtype=np.bool_)])
        self._timed = np.concatenate([self._timed, np.zeros(more, dtype=np.bool_)])
        keys = np.concatenate([self._times.keys, np.zeros(more, dtype=np.int64)])
        self._times = TimeKeys(self._times.clock, keys)

    def run(self, cells: Ints, which: Ints) -> Run:
        """Release values; see `Fleet.run`."""
        return self.fleet.run(cells, which)

    def mark_new(self, which: Ints, sequences: Ints) -> None:
        """Streams have got new answers, each stream's in order."""
        unseen = self._began[which] == _NEVER
        # The first of a stream is written last.
        self._began[which[unseen][::-1]] = sequences[unseen][::-1]

    def mark_old(self, which: Ints) -> None:
        """Streams have got old answers."""
        self._old[which] = True

    def answered_here(self, which: Ints, sequences: Ints) -> Bools:
        """Which moments of streams were answered in this run."""
        began = self._began[which]
        return np.asarray((began != _NEVER) & (sequences >= began))

    @property
    def largest(self) -> tuple[float, float]:
        """The largest leakages of streams that had answers in this run."""
        had = (self._began != _NEVER) | self._old
        if not had.any():
            return 0.0, 0.0
        spent: Floats = self.fleet.spent[had[: len(self.fleet)]]
        sip, ldp = spent.max(axis=0).tolist()
        return sip, ldp

    # -- times ------------------------------------------------------------------------------------

    def compared(self, times: TimeKeys) -> TimeKeys:
        """Times of rows on the clock of the run.

        Raises:
            Irregular: If they cannot be compared with those before.
        """
        if not self.ordered:
            raise Irregular
        if not self._timed.any():
            self._times = TimeKeys(times.clock, self._times.keys)
        if times.clock is Clock.REAL:
            self._times = self._times.on(Clock.REAL)
        return times.on(self._times.clock)

    def last_keys(self, which: Ints) -> tuple[Bools, Ints]:
        """Which streams have a last time, and the keys of those times."""
        return self._timed[which], self._times.keys[which]

    def set_times(self, which: Ints, times: TimeKeys) -> None:
        """The last times of streams, those of later rows last."""
        self._times.keys[which] = times.keys
        self._timed[which] = True

    def last_time(self, stream: str) -> str | None:
        """The time of the last row of a stream, if it has one."""
        (place,) = self.places([stream]).tolist()
        return self._times.time(place).text if self._timed[place] else None

    def _set_last(self, times: Mapping[int, str]) -> None:
        """The last times of streams, by their places."""
        if not times:
            return
        try:
            keys = self.compared(keys_of([Time.of(text) for text in times.values()]))
        except Irregular:
            self.ordered = False
            return
        self.set_times(np.array([*times]), keys)

    # -- as rows see them -------------------------------------------------------------------------

    def names(self) -> Iterable[str]:
        """The streams that this run asked for."""
        return () if self._fleet is None else self._fleet.streams

    def state(self, stream: str) -> StreamState:
        """Where a stream stands."""
        (place,) = self.places([stream]).tolist()
        return self.fleet.state(place)

    def began(self, stream: str) -> int | None:
        """The first moment of a stream that was answered in this run."""
        (place,) = self.places([stream]).tolist()
        moment = int(self._began[place])
        return None if moment == _NEVER else moment

    def take(self, answers: Sequence[Answer], states: Mapping[str, StreamState]) -> None:
        """What was committed just now: new answers, and where their streams stand."""
        places = dict(zip(states, self.places([*states]).tolist(), strict=True))
        self.fleet.put(np.array([*places.values()]), [*states.values()])
        which = np.array([places[answer.stream] for answer in answers], dtype=np.int64)
        self.mark_new(which, np.array([answer.sequence for answer in answers], dtype=np.int64))
        times = {places[one.stream]: one.time for one in answers if one.time is not None}
        self._set_last(times)

    def repeat(self, stream: str) -> None:
        """A stream has got an old answer."""
        self.mark_old(self.places([stream]))

    def repeated(self) -> Iterable[str]:
        """None: what these streams have spent is in `largest`."""
        return ()
