"""Release many streams together: certified releases at memory speed.

The state of all streams lies in arrays and one step of all of them is a few compiled loops. What
the loops do not cover (a value outside the alphabet, a budget that is gone, a belief the
policy does not cover) goes through the plan, stream by stream. The answers are those that each
stream would get alone with the same coins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InsecureRandomness, InterruptedStep, InvalidParameter
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.guard import Guarded
from sfumato.core.ledger import Ledgers
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, secure
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.stream.batched_plan import BatchedPlan
from sfumato.stream.fleet_arrays import PREPARED, Crowd, Prepared
from sfumato.stream.instant import InstantPlan


@dataclass(frozen=True, slots=True, eq=False)
class FleetStep:
    """What left at one moment of many streams.

    Attributes:
        streams: Names of the streams.
        sequences: The moment of each.
        released: Place in the alphabet of the symbol that left; -1 where none did.
        outcomes: What left.
        charges: Both certificates of each: under the model, and whatever the model.
        alphabet: The symbols.
    """

    streams: Sequence[str]
    sequences: Ints
    released: Ints
    outcomes: Sequence[Outcome]
    charges: Floats
    alphabet: Alphabet

    def labels(self) -> list[Label | None]:
        """The symbols that left; None where none did."""
        known = self.alphabet.labels
        return [known[place] if place >= 0 else None for place in self.released.tolist()]

    def __len__(self) -> int:
        return len(self.streams)

    def __iter__(self) -> Iterator[Event]:
        """One event per stream."""
        for stream, sequence, label, outcome, (sip, ldp) in zip(
            self.streams,
            self.sequences.tolist(),
            self.labels(),
            self.outcomes,
            self.charges.tolist(),
            strict=True,
        ):
            yield Event(stream, sequence, outcome, label, SIP(sip), LDP(ldp))


class Fleet(Guarded):
    """What fleets of values and of batches share: a crowd, ledgers, and steps that happen or not.

    A batch is a value of the chain of batches; `values` says how many moments it takes.
    """

    def __init__(
        self,
        plan: InstantPlan | BatchedPlan,
        chain: MarkovChain,
        values: int,
        streams: Sequence[str],
        states: Sequence[StreamState],
        randomness: Randomness | None,
        threads: int,
    ) -> None:
        if plan.policy is None:
            rule = "have a policy: make one with `compile_policy`"
            raise InvalidParameter("plan", "one without", rule)
        self._randomness = secure() if randomness is None else randomness
        if self._randomness.simulated and plan.purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release")
        self.streams = (*(state.stream for state in states), *streams)
        count = checks.count("streams", len(self.streams))
        if len(set(self.streams)) != count:
            raise InvalidParameter("streams", "a name twice", "be different")
        self._rule, self._policy, self._values = plan, plan.policy, values
        workers = checks.count("threads", threads)
        self._crowd = Crowd(chain, self._policy.tables, self._policy.repair_limit, count, workers)
        self._crowd.drifts[:] = plan.begin("").belief.drift
        self._ledgers = Ledgers(count, plan.budget.memory)
        self._last = np.full(count, -1, dtype=np.int64)
        self._torn = False
        alphabet = plan.model.alphabet
        self._numbered = alphabet.labels == tuple(range(len(alphabet)))
        for place, state in enumerate(states):
            self._put(place, state)

    def __len__(self) -> int:
        return len(self.streams)

    def _prepared(self, streams: Ints, places: Ints) -> tuple[Prepared, Bools]:
        """The channels of the next step, and which rows they cover."""
        allowed = self._allowed(streams)
        prepared = self._crowd.prepare(streams, allowed)
        quick = (prepared.status == PREPARED) & (places >= 0)
        quick &= (allowed[:, 0] >= USELESS_BELOW) & (allowed[:, 1] >= USELESS_BELOW)
        return prepared, quick

    def _released(self, streams: Ints, some: Prepared, places: Ints) -> Ints:
        """Draw for some streams, charge them and move them on; the places that leave."""
        told = self._crowd.release(some, places, self._words(streams)).copy()
        self._ledgers.charge(streams, some.charges, self._values)
        self._crowd.advance(streams)
        self._crowd.moments[streams] += self._values - 1
        return told

    def skip(self, which: Ints | None = None) -> None:
        """Let a moment of every stream, or of some, or a whole batch, pass without a release."""
        with self._lock:
            self._check_whole()
            streams = self._chosen(which, None)
            self._torn = True
            self._crowd.advance(streams)
            self._crowd.moments[streams] += self._values - 1
            self._ledgers.charge(streams, np.zeros((len(streams), 2)), self._values)
            self._torn = False

    def state(self, stream: int) -> StreamState:
        """Where a stream stands: store it, and go on from it later."""
        with self._lock:
            return self._state(stream)

    def _state(self, stream: int) -> StreamState:
        self._check_whole()
        last = int(self._last[stream])
        return StreamState(
            plan=self._rule.fingerprint,
            stream=self.streams[stream],
            sequence=int(self._crowd.moments[stream]),
            belief=self._crowd.belief(stream),
            ledger=self._ledgers[stream],
            last=None if last < 0 else last,
        )

    @property
    def spent(self) -> Floats:
        """What every stream has spent so far: under the model, and whatever the model."""
        with self._lock:
            return self._ledgers.spent.copy()

    @property
    def bytes_per_stream(self) -> int:
        """Memory that the state of one stream takes; it does not grow with time."""
        crowd, ledgers = self._crowd, self._ledgers
        held = crowd.joints.nbytes + crowd.moments.nbytes + crowd.drifts.nbytes
        spent = ledgers.counts.nbytes + ledgers.spent.nbytes + ledgers.recent.nbytes
        return (held + spent + self._last.nbytes) // len(self)

    @property
    def torn(self) -> bool:
        """Whether an exception broke into a step; the fleet must be begun again from states."""
        return self._torn

    def _check_whole(self) -> None:
        if self._torn:
            raise InterruptedStep

    def _put(self, place: int, state: StreamState) -> None:
        self._rule.check_own(state)
        self._crowd.put(place, state.sequence, state.belief)
        self._ledgers[place] = state.ledger
        self._last[place] = -1 if state.last is None else state.last

    def _chosen(self, which: Ints | None, count: int | None) -> Ints:
        if which is None:
            streams = np.arange(len(self))
        else:
            given = np.asarray(which)
            whole = given.ndim == 1 and (given.dtype.kind in "iu" or given.size == 0)
            if (
                not whole
                or len(np.unique(given)) != len(given)
                or (given.size and not (given.min() >= 0 and given.max() < len(self)))
            ):
                raise InvalidParameter("which", "other places", "be places of different streams")
            streams = given.astype(np.int64)
        if count is not None and count != len(streams):
            raise InvalidParameter("values", count, f"be one per stream, {len(streams)}")
        return streams

    def _allowed(self, streams: Ints) -> Floats:
        due = self._rule.budget.allowances(self._ledgers, streams, self._values)
        return np.minimum(due, self._policy.allowed)

    def _words(self, streams: Ints) -> NDArray[np.uint64]:
        if not self._randomness.addressed:
            return self._randomness.words(len(streams))
        words = np.empty(len(streams), dtype=np.uint64)
        for row, stream in enumerate(streams.tolist()):
            here = self._rule.address(self.streams[stream], int(self._crowd.moments[stream]))
            words[row] = self._randomness.at(here).word()
        return words

    def _numbers(self, values: Sequence[Any] | NDArray[Any]) -> Ints:
        """Places of symbols, in the shape of the values; -1 for those outside the alphabet."""
        alphabet = self._rule.model.alphabet
        if not isinstance(values, np.ndarray):
            return np.array([alphabet.place(value) for value in values], dtype=np.int64)
        if self._numbered and values.dtype.kind in "iu":
            places = values.astype(np.int64)
            return np.where((places >= 0) & (places < len(alphabet)), places, -1)
        flat = [alphabet.place(value) for value in values.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(values.shape)


class InstantFleet(Fleet):
    """Streams that are released together under one plan with a compiled policy.

    Args:
        plan: The rule; with a policy.
        streams: Names of new streams; or
        states: where streams stand that were begun before.
        randomness: Coins; fresh ones from `secure()` unless given.
        threads: How many threads share the work of a step.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> loss = sf.loss.hamming(chain.alphabet)
        >>> policy = sf.compile_policy(chain, loss, 0.5, steps=500)
        >>> plan = sf.InstantPlan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        >>> fleet = sf.InstantFleet(plan, ["ann", "bob", "eve"])
        >>> step = fleet.step([0, 1, 1])
        >>> len(step.labels()), bool((step.charges[:, 0] <= 0.5).all())
        (3, True)
    """

    def __init__(
        self,
        plan: InstantPlan,
        streams: Sequence[str] = (),
        *,
        states: Sequence[StreamState] = (),
        randomness: Randomness | None = None,
        threads: int = 1,
    ) -> None:
        if not isinstance(plan.model, MarkovChain):
            raise InvalidParameter("plan", "one without a chain", "have a compiled policy")
        super().__init__(plan, plan.model, 1, streams, states, randomness, threads)
        self.plan = plan

    def step(self, values: Sequence[object] | Ints, which: Ints | None = None) -> FleetStep:
        """Release one value of every stream, or of some; all of them or, on an error, none.

        Args:
            values: The true symbols.
            which: Places of the streams that they belong to, each at most once; all in order if
                not given.

        Raises:
            BudgetExceeded: If the budget of a stream is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.
        """
        with self._lock:
            return self._step(values, which)

    def _step(self, values: Sequence[object] | Ints, which: Ints | None) -> FleetStep:
        self._check_whole()
        streams = self._chosen(which, len(values))
        places = self._numbers(values)
        if places.ndim != 1:
            raise InvalidParameter("values", places.shape, "be one row")
        prepared, quick = self._prepared(streams, places)
        step = self._blank(streams, whole=which is None)
        slow = [
            (row, *self.plan.step(self._state(int(streams[row])), values[row], self._randomness))
            for row in np.flatnonzero(~quick).tolist()
        ]
        # Nothing has changed so far: an error above leaves every stream where it was.
        self._torn = True
        rows = slice(None) if not slow else quick
        some = prepared[rows]
        step.charges[rows] = some.charges
        step.released[rows] = self._released(streams[rows], some, places[rows])
        self._last[streams[rows]] = step.released[rows]
        for row, event, state in slow:
            self._put(int(streams[row]), state)
            self._tell(step, row, event)
        self._torn = False
        return step

    def _blank(self, streams: Ints, *, whole: bool) -> FleetStep:
        names = self.streams if whole else [self.streams[place] for place in streams.tolist()]
        return FleetStep(
            streams=names,
            sequences=self._crowd.moments[streams],
            released=np.empty(len(streams), dtype=np.int64),
            outcomes=[Outcome.RELEASED] * len(streams),
            charges=np.zeros((len(streams), 2)),
            alphabet=self.plan.model.alphabet,
        )

    def _tell(self, step: FleetStep, row: int, event: Event) -> None:
        alphabet = step.alphabet
        known = event.released is not None
        step.released[row] = alphabet.index(event.released) if known else -1
        step.outcomes[row] = event.outcome  # type: ignore[index]
        step.charges[row] = event.sip.epsilon, event.ldp.epsilon
