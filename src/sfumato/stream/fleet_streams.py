"""Where the streams of a fleet stand: names, beliefs and accounts, in arrays that grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import PerStep
from sfumato.core.errors import InterruptedStep, InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.core.ledger import Ledgers
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.store.answer_columns import PositionColumns
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.fleet_loop import Batch, FleetLoop
from sfumato.stream.plan import Plan
from sfumato.stream.stored_states import stored_positions


@dataclass(frozen=True, slots=True, eq=False)
class Backup:
    """Where some streams stood: for `FleetStreams.restore`.

    Attributes:
        places: The streams.
        rows: What the arrays held of each, array by array.
    """

    places: Ints
    rows: tuple[NDArray[Any], ...]


class FleetStreams(Guarded):
    """The state of many streams under one plan with a policy; `Fleet` lets them go on.

    Args:
        plan: The rule; with a policy.
        streams: Names of new streams.
        states: Where streams stand that were begun before; they come first.
        threads: How many threads share the work of a step.
    """

    def __init__(
        self, plan: Plan, streams: Sequence[str], states: Sequence[StreamState], threads: int
    ) -> None:
        if plan.policy is None:
            rule = "have a policy: make one with `compile_policy`"
            raise InvalidParameter("plan", "one without", rule)
        if plan.period is not None:
            rule = "have no budget for periods of time: step its streams one by one, by the plan"
            raise InvalidParameter("plan", "one with periods", rule)
        chain = plan.space.chain
        assert isinstance(chain, MarkovChain)  # no other model has a policy
        self.plan, self._policy = plan, plan.policy
        count = checks.count("streams", len(states) + len(streams))
        workers = checks.count("threads", threads)
        self._arrays = StreamArrays.under(plan.policy, chain, count, workers)
        self._ledgers = Ledgers(count, plan.budget.memory)
        self._last = np.full(count, -1, dtype=np.int64)
        self._names: list[str] = []
        self._listed: tuple[str, ...] = ()
        self._numbers: dict[str, int] = {}
        self._torn = False
        self._all = Batch.one_each(np.arange(0))
        self._loop = FleetLoop(plan, self._arrays, self._ledgers)
        self._slots = np.full(count, -1, dtype=np.int64)
        self._add(streams, states)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams, each at its place."""
        # Names are added and never change: as many as before are the same.
        if len(self._listed) != len(self._names):
            self._listed = tuple(self._names)
        return self._listed

    @guarded
    def enlist(self, streams: Sequence[str] = (), states: Sequence[StreamState] = ()) -> Ints:
        """Add streams: new ones, and before them those that were begun before; all or none.

        Args:
            streams: Names of new streams.
            states: Where streams stand that were begun before.

        Returns:
            Their places.

        Examples:
            >>> import sfumato as sf
            >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
            >>> loss = sf.loss.hamming(chain.alphabet)
            >>> policy = sf.compile_policy(chain, loss, 0.5, steps=500)
            >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
            >>> fleet = sf.Fleet(plan, ["ann"])
            >>> fleet.enlist(["bob", "eve"])
            array([1, 2])
        """
        self._check_whole()
        return self._add(streams, states)

    def _add(self, streams: Sequence[str], states: Sequence[StreamState]) -> Ints:
        names = [*(state.stream for state in states), *streams]
        first, count = len(self._names), len(self._names) + len(names)
        fresh = dict(zip(names, range(first, count), strict=True))
        if len(fresh) < len(names) or not self._numbers.keys().isdisjoint(fresh):
            raise InvalidParameter("streams", "a name twice", "be different")
        for state in states:
            self._check_state(state)
        if count > len(self._last):
            self._grow(max(count, 2 * len(self._last)))
        self._begin(slice(first, count))
        for place, state in enumerate(states, start=first):
            self._put(place, state)
        # Streams that are named last: an exception before leaves room behind, and no stream.
        self._names += names
        self._numbers |= fresh
        return np.arange(first, count)

    def _begin(self, rows: slice) -> None:
        """Set streams to their first value, whatever an exception left there."""
        begun = self.plan.begin("")
        self._arrays.joints[rows] = begun.belief.joint.ravel()
        self._arrays.drifts[rows] = begun.belief.drift
        for held in self._held[1:2] + self._held[3:-1]:
            held[rows] = 0
        self._last[rows] = -1

    def _grow(self, room: int) -> None:
        self._arrays.grow(room)
        self._ledgers.grow(room)
        self._last = np.concatenate([self._last, np.full(room - len(self._last), -1)])
        self._slots = np.full(room, -1, dtype=np.int64)

    def places(self, streams: Sequence[str]) -> Ints:
        """Places of streams by their names; -1 for those that were never enlisted."""
        with self._lock:
            found = self._numbers
            return np.array([found.get(name, -1) for name in streams], dtype=np.int64)

    @guarded
    def state(self, stream: int) -> StreamState:
        """Where a stream stands: store it, and go on from it later."""
        self._check_whole()
        return self._state(stream)

    @guarded
    def states(self, places: Ints) -> list[StreamState]:
        """Where some streams stand."""
        self._check_whole()
        return [self._state(place) for place in np.asarray(places).tolist()]

    def _state(self, stream: int) -> StreamState:
        last = int(self._last[stream])
        return StreamState(
            plan=self.plan.fingerprint,
            stream=self._names[stream],
            sequence=int(self._arrays.moments[stream]),
            belief=self._arrays.belief(stream),
            ledger=self._ledgers[stream],
            last=None if last < 0 else last,
        )

    @guarded
    def positions(self, places: Ints) -> PositionColumns:
        """Where some streams stand, as a store keeps it: without a `StreamState` for each."""
        self._check_whole()
        which = self._checked(places)
        names = [self._names[place] for place in which.tolist()]
        arrays, ledgers = self._arrays, self._ledgers
        return stored_positions(self.plan.fingerprint, names, arrays, ledgers, self._last, which)

    @guarded
    def backup(self, places: Ints) -> Backup:
        """Remember where some streams stand, for `restore`."""
        self._check_whole()
        return self._backup(self._checked(places))

    @guarded
    def restore(self, backup: Backup) -> None:
        """Set streams back to where they stood, if what they released since has not left.

        What has left is spent: whoever sets a stream back after that spends its budget twice.
        """
        self._check_whole()
        self._restore(backup)

    def _backup(self, places: Ints) -> Backup:
        return Backup(places, tuple(held[places] for held in self._held))

    def _restore(self, backup: Backup) -> None:
        self._torn = True
        for held, rows in zip(self._held, backup.rows, strict=True):
            held[backup.places] = rows
        self._torn = False

    @property
    def _held(self) -> tuple[NDArray[Any], ...]:
        return self._loop.held(self._last)

    @guarded
    def put(self, places: Ints, states: Sequence[StreamState]) -> None:
        """Set streams to where they stand after steps that were made elsewhere."""
        self._check_whole()
        pairs = list(zip(self._checked(places).tolist(), states, strict=True))
        for place, state in pairs:
            if state.stream != self._names[place]:
                raise InvalidParameter("states", "that of another stream", "be in their order")
            self._check_state(state)
        self._torn = True
        for place, state in pairs:
            self._put(place, state)
        self._torn = False

    def _check_state(self, state: StreamState) -> None:
        """Refuse what is no state under this plan, before anything changes."""
        self.plan.check_own(state)
        self._arrays.check(state.belief)

    def _put(self, place: int, state: StreamState) -> None:
        self.plan.check_own(state)
        self._arrays.put(place, state.sequence, state.belief)
        self._ledgers[place] = state.ledger
        self._last[place] = -1 if state.last is None else state.last

    @guarded
    def stands(self, places: Ints) -> tuple[Ints, Floats]:
        """How many moments some streams have, and what they have spent: see `spent`."""
        self._check_whole()
        which = self._checked(places)
        return self._arrays.moments[which], self._ledgers.spent[which]

    @guarded
    def exhausted(self, places: Ints) -> Bools:
        """Which of some streams have a budget that leaves nothing for their next step."""
        self._check_whole()
        which, budget = self._checked(places), self.plan.budget
        if isinstance(budget, PerStep):
            return np.zeros(len(which), dtype=np.bool_)
        due = budget.allowances(self._ledgers, which, self.plan.width)
        gone = (due <= 0.0).any(axis=1)
        return np.asarray(gone & ~budget.pauses(self._ledgers, which, self.plan.width))

    @property
    def spent(self) -> Floats:
        """What every stream has spent so far: under the model, and whatever the model."""
        with self._lock:
            return self._ledgers.spent[: len(self)].copy()

    @property
    def bytes_per_stream(self) -> int:
        """Memory that the state of one stream takes; it does not grow with time."""
        return sum(held.nbytes for held in self._held) // len(self._last)

    @property
    def torn(self) -> bool:
        """Whether an exception broke into a step; the fleet must be begun again from states."""
        return self._torn

    def _check_whole(self) -> None:
        if self._torn:
            raise InterruptedStep

    def _checked(self, which: Ints) -> Ints:
        """Places of streams, each as often as it likes."""
        given = np.asarray(which)
        whole = given.ndim == 1 and (given.dtype.kind in "iu" or given.size == 0)
        if not whole or (given.size and not (given.min() >= 0 and given.max() < len(self))):
            raise InvalidParameter("which", "other places", "be places of different streams")
        return given.astype(np.int64)

    def _everyone(self) -> Batch:
        """One row of every stream; made anew when streams have come."""
        if len(self._all.streams) != len(self):
            self._all = Batch.one_each(np.arange(len(self)))
        return self._all

    def _chosen(self, which: Ints | None, count: int | None) -> Ints:
        if which is None:
            streams = self._everyone().streams
        else:
            streams = self._checked(which)
            if len(np.unique(streams)) != len(streams):
                raise InvalidParameter("which", "other places", "be places of different streams")
        if count is not None and count != len(streams):
            raise InvalidParameter("values", count, f"be one per stream, {len(streams)}")
        return streams
