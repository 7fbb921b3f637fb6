"""Release many streams together: certified releases at memory speed.

The state of all streams lies in arrays and one step of all of them is a few compiled loops. What
the loops do not cover (a value outside the alphabet, a budget that is gone, a belief the
policy does not cover) goes through the plan, stream by stream. The answers are those that each
stream would get alone with the same coins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InterruptedStep, InvalidParameter
from sfumato.core.events import Event, Outcome, events_of
from sfumato.core.guard import Guarded, guarded
from sfumato.core.ledger import Ledgers
from sfumato.core.randomness import Randomness, secure
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.stream.fleet_arrays import PREPARED, Prepared, StreamArrays
from sfumato.stream.plan import Plan

Values = Sequence[Any] | NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """What left in one step of many streams.

    Attributes:
        streams: Names of the streams.
        sequences: The moment of each, or at which its batch began.
        released: Places in the alphabet of the symbols that left, -1 for none; in the shape of the
            values: one place per stream or, in batches, a row.
        outcomes: What left.
        charges: Both certificates of each: under the model, and whatever the model.
        alphabet: The symbols.
        signals: Which output of its channel left, -1 where none did; None unless the plan is
            far-sighted.
    """

    streams: Sequence[str]
    sequences: Ints
    released: Ints
    outcomes: Sequence[Outcome]
    charges: Floats
    alphabet: Alphabet
    signals: Ints | None = None

    def labels(self) -> list[Any]:
        """The symbols that left, a list per stream in batches; None where none did."""
        symbols = self.alphabet.labels
        found = [symbols[place] if place >= 0 else None for place in self.released.ravel().tolist()]
        if self.released.ndim == 1:
            return found
        width = self.released.shape[1]
        return [found[row : row + width] for row in range(0, len(found), width)]

    def __len__(self) -> int:
        return len(self.streams)

    def __iter__(self) -> Iterator[tuple[Event, ...]]:
        """The events of each stream; the leakage of a batch stands at its last value."""
        in_batches = self.released.ndim > 1
        rows = zip(
            self.streams,
            self.sequences.tolist(),
            self.labels(),
            self.outcomes,
            self.charges.tolist(),
            [-1] * len(self) if self.signals is None else self.signals.tolist(),
            strict=True,
        )
        for stream, began, left, outcome, charge, sent in rows:
            labels, signal = left if in_batches else [left], None if sent < 0 else sent
            began_at = (stream, began, outcome, labels, *charge)
            yield events_of(*began_at, in_batches=in_batches, signal=signal)


class Fleet(Guarded):
    """Streams that are released together under one plan with a compiled policy.

    A batch is a value of the chain of batches, so that one set of loops serves every width.

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
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        >>> fleet = sf.Fleet(plan, ["ann", "bob", "eve"])
        >>> step = fleet.step([0, 1, 1])
        >>> len(step.labels()), bool((step.charges[:, 0] <= 0.5).all())
        (3, True)

        In batches of three values:

        >>> policy = sf.compile_policy(chain, loss, 1.5, width=3, steps=500)
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, 3, policy=policy)
        >>> step = sf.Fleet(plan, ["ann", "bob"]).step([[0, 0, 1], [1, 1, 1]])
        >>> step.released.shape, bool((step.charges[:, 0] <= 1.5).all())
        ((2, 3), True)
    """

    def __init__(
        self,
        plan: Plan,
        streams: Sequence[str] = (),
        *,
        states: Sequence[StreamState] = (),
        randomness: Randomness | None = None,
        threads: int = 1,
    ) -> None:
        if plan.policy is None:
            rule = "have a policy: make one with `compile_policy`"
            raise InvalidParameter("plan", "one without", rule)
        chain = plan.space.chain
        assert isinstance(chain, MarkovChain)  # no other model has a policy
        self._randomness = secure() if randomness is None else randomness
        plan.check_coins(self._randomness)
        self.streams = (*(state.stream for state in states), *streams)
        count = checks.count("streams", len(self.streams))
        if len(set(self.streams)) != count:
            raise InvalidParameter("streams", "a name twice", "be different")
        self.plan, self._policy = plan, plan.policy
        workers = checks.count("threads", threads)
        self._arrays = StreamArrays.under(plan.policy, chain, count, workers)
        self._arrays.drifts[:] = plan.begin("").belief.drift
        self._ledgers = Ledgers(count, plan.budget.memory)
        self._last = np.full(count, -1, dtype=np.int64)
        self._torn = False
        alphabet = plan.model.alphabet
        self._numbered = alphabet.labels == tuple(range(len(alphabet)))
        # A batch is numbered with its first value most significant, as everywhere else.
        self._powers = len(alphabet) ** np.arange(plan.width - 1, -1, -1)
        for place, state in enumerate(states):
            self._put(place, state)

    def __len__(self) -> int:
        return len(self.streams)

    @guarded
    def step(self, values: Values, which: Ints | None = None) -> Step:
        """Release one value, or batch, of every stream, or of some; all of them or none.

        Args:
            values: The true symbols: one for each stream or, in batches, a row of `plan.width`.
            which: Places of the streams that they belong to, each at most once; all in order if
                not given.

        Raises:
            BudgetExceeded: If the budget of a stream is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.
        """
        self._check_whole()
        streams = self._chosen(which, len(values))
        cells = self._cells(values)
        # First what needs no coins; what the loops do not cover is tried by the plan on the side.
        prepared, quick = self._prepared(streams, cells)
        step = self._blank(streams, whole=which is None)
        paused = self._paused(streams, cells)
        guesses = self._guesses(streams[paused])
        slow = [
            (row, *self._alone(int(streams[row]), values[row]))
            for row in np.flatnonzero(~quick & ~paused).tolist()
        ]
        # Nothing has changed so far: an error above leaves every stream where it was.
        self._torn = True
        rows = slice(None) if quick.all() else quick
        some = prepared.of(rows)
        step.charges[rows] = some.charges
        outputs = self._released(streams[rows], some, cells[rows])
        if step.signals is not None:
            step.signals[rows] = some.columns
            step.signals[paused] = 0  # the one output of a constant
        if self.plan.in_batches:
            step.released[rows] = outputs[:, None] // self._powers % len(step.alphabet)
            self._last[streams[rows]] = step.released[rows, -1]
        else:
            step.released[rows] = outputs
            self._last[streams[rows]] = outputs
        if guesses.size:
            step.released[paused] = self._last[streams[paused]] = guesses
            self._ledgers.charge(streams[paused], np.zeros((guesses.size, 2)))
            self._arrays.advance(streams[paused])
        for row, events, state in slow:
            self._put(int(streams[row]), state)
            self._enter(step, row, events)
        self._torn = False
        return step

    def _paused(self, streams: Ints, cells: Ints) -> Bools:
        """Which rows only let the best constant leave, between two bursts; batches take turns."""
        if self.plan.in_batches:
            return np.zeros(len(streams), dtype=np.bool_)
        return self.plan.budget.pauses(self._ledgers, streams) & (cells >= 0)

    def _guesses(self, streams: Ints) -> Ints:
        """The best constants of some streams, as `silent` finds them."""
        places = []
        for stream in streams.tolist():
            assert self.plan.value_loss is not None  # only single values pause
            belief = self._arrays.belief(stream).marginal
            places.append(self.plan.value_loss.best_constant(belief)[0])
        return np.array(places, dtype=np.int64)

    def _alone(self, stream: int, values: Any) -> tuple[tuple[Event, ...], StreamState]:
        """The step of one stream, by the plan."""
        batch = values if self.plan.in_batches else [values]
        return self.plan.step(self._state(stream), batch, self._randomness)

    def _prepared(self, streams: Ints, cells: Ints) -> tuple[Prepared, Bools]:
        """The channels of the next step, and which rows they cover."""
        allowed = self._allowed(streams)
        prepared = self._arrays.prepare(streams, allowed)
        quick = (prepared.status == PREPARED) & (cells >= 0)
        quick &= (allowed[:, 0] >= USELESS_BELOW) & (allowed[:, 1] >= USELESS_BELOW)
        return prepared, quick

    def _released(self, streams: Ints, some: Prepared, cells: Ints) -> Ints:
        """Draw for some streams, charge them and move them on; the numbers of what leaves."""
        # A copy: the arrays write the next step into the same room.
        outputs = self._arrays.release(some, cells, self._words(streams)).copy()
        self._ledgers.charge(streams, some.charges, self.plan.width)
        self._arrays.advance(streams)
        self._arrays.moments[streams] += self.plan.width - 1
        return outputs

    @guarded
    def flush(self, stream: int, values: Sequence[object]) -> tuple[Event, ...]:
        """Release a shorter batch of one stream, at its end or when time is up."""
        if checks.count("stream", stream, at_least=0) >= len(self):
            raise InvalidParameter("stream", stream, f"be the place of one of {len(self)}")
        events, state = self.plan.step(self._state(stream), values, self._randomness)
        # The plan has drawn: from here on the stream has moved, or the fleet is torn.
        self._torn = True
        self._put(stream, state)
        self._torn = False
        return events

    @guarded
    def skip(self, which: Ints | None = None) -> None:
        """Let a moment of every stream, or of some, or a whole batch, pass without a release."""
        self._check_whole()
        streams = self._chosen(which, None)
        self._torn = True
        self._arrays.advance(streams)
        self._arrays.moments[streams] += self.plan.width - 1
        self._ledgers.charge(streams, np.zeros((len(streams), 2)), self.plan.width)
        self._torn = False

    @guarded
    def state(self, stream: int) -> StreamState:
        """Where a stream stands: store it, and go on from it later."""
        return self._state(stream)

    def _state(self, stream: int) -> StreamState:
        self._check_whole()
        last = int(self._last[stream])
        return StreamState(
            plan=self.plan.fingerprint,
            stream=self.streams[stream],
            sequence=int(self._arrays.moments[stream]),
            belief=self._arrays.belief(stream),
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
        arrays, ledgers = self._arrays, self._ledgers
        held = arrays.joints.nbytes + arrays.moments.nbytes + arrays.drifts.nbytes
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
        self.plan.check_own(state)
        self._arrays.put(place, state.sequence, state.belief)
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
        due = self.plan.budget.allowances(self._ledgers, streams, self.plan.width)
        return np.minimum(due, self._policy.allowed)

    def _words(self, streams: Ints) -> NDArray[np.uint64]:
        if not self._randomness.addressed:
            return self._randomness.words(len(streams))
        words = np.empty(len(streams), dtype=np.uint64)
        for row, stream in enumerate(streams.tolist()):
            here = self.plan.address(self.streams[stream], int(self._arrays.moments[stream]))
            words[row] = self._randomness.at(here).word()
        return words

    def _cells(self, values: Values) -> Ints:
        """Number of each value, or batch; -1 where a value is outside the alphabet."""
        width = self.plan.width
        if not self.plan.in_batches:
            places = self._places(values)
            if places.ndim != 1:
                raise InvalidParameter("values", places.shape, "be one row")
            return places
        table = values if isinstance(values, np.ndarray) else _rows(values, width)
        if table.ndim != 2 or table.shape[1] != width:
            rule = f"have {width} values for each stream; flush shorter batches"
            raise InvalidParameter("values", table.shape, rule)
        places = self._places(table)
        return np.where((places >= 0).all(axis=1), (places * self._powers).sum(axis=1), -1)

    def _places(self, values: Values) -> Ints:
        """Places of symbols, in the shape of the values; -1 for those outside the alphabet."""
        alphabet = self.plan.model.alphabet
        if not isinstance(values, np.ndarray):
            return np.array([alphabet.place(value) for value in values], dtype=np.int64)
        if self._numbered and values.dtype.kind in "iu":
            places = values.astype(np.int64)
            return np.where((places >= 0) & (places < len(alphabet)), places, -1)
        flat = [alphabet.place(value) for value in values.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(values.shape)

    def _blank(self, streams: Ints, *, whole: bool) -> Step:
        names = self.streams if whole else [self.streams[place] for place in streams.tolist()]
        count, in_batches = len(streams), self.plan.in_batches
        shape = (count, self.plan.width) if in_batches else (count,)
        return Step(
            streams=names,
            sequences=self._arrays.moments[streams],
            released=np.empty(shape, dtype=np.int64),
            outcomes=[Outcome.RELEASED] * count,
            charges=np.zeros((count, 2)),
            alphabet=self.plan.model.alphabet,
            signals=None if self.plan.sight is None else np.full(count, -1),
        )

    def _enter(self, step: Step, row: int, events: Sequence[Event]) -> None:
        """Put what the plan did into a row of a step."""
        places = [step.alphabet.place(event.released) for event in events]
        step.released[row] = places if self.plan.in_batches else places[0]
        step.outcomes[row] = events[-1].outcome  # type: ignore[index]
        step.charges[row] = events[-1].sip.epsilon, events[-1].ldp.epsilon
        if step.signals is not None and events[-1].signal is not None:
            step.signals[row] = events[-1].signal


def _rows(values: Sequence[Any], width: int) -> NDArray[Any]:
    """Batches as a table, whatever the symbols are."""
    if any(not isinstance(row, Sized) or len(row) != width for row in values):
        rule = f"have {width} values for each stream; flush shorter batches"
        raise InvalidParameter("values", "rows of other lengths", rule)
    table = np.empty((len(values), width), dtype=object)
    for place, row in enumerate(values):
        table[place] = list(row)
    return table
