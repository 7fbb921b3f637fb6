"""Release many streams together: certified releases at memory speed.

The state of all streams lies in arrays and one step of all of them is a few compiled loops. What
the loops do not cover (a value outside the alphabet, a budget that is gone, a belief the
policy does not cover) goes through the plan, stream by stream. The answers are those that each
stream would get alone with the same coins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.arrays import Bools, Ints
from sfumato.core.budgets import PerStep
from sfumato.core.encoded_names import EncodedNames
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Event, Outcome
from sfumato.core.guard import guarded
from sfumato.core.randomness import Domain, Randomness, draw_ahead, secure, words_at
from sfumato.core.state import StreamState
from sfumato.stream.fleet_answers import RELEASED, Codes, Run, Seen, Step
from sfumato.stream.fleet_loop import Batch, Moves
from sfumato.stream.fleet_streams import Backup, FleetStreams
from sfumato.stream.next_moves import OBSERVE, PASSING, RELEASE
from sfumato.stream.plan import Plan
from sfumato.stream.solved_steps import SolvedSteps

Alone = Callable[[int, int], bool]
Values = Sequence[Any] | NDArray[Any]


class Fleet(FleetStreams):
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
        self._randomness = secure() if randomness is None else randomness
        plan.check_coins(self._randomness)
        super().__init__(plan, streams, states, threads)
        self._coin_names = EncodedNames(self._names)
        solving = plan.policy is not None and plan.policy.solves and plan.sight is None
        parts = (plan, self._arrays, self._ledgers)
        self._solved = SolvedSteps(*parts) if solving else None
        alphabet = plan.model.alphabet
        self._numbered = alphabet.labels == tuple(range(len(alphabet)))
        # A batch is numbered with its first value most significant, as everywhere else.
        self._powers = len(alphabet) ** np.arange(plan.width - 1, -1, -1)

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
        batch = self._everyone().again() if which is None else Batch.one_each(streams)
        moves = self._moves(batch, self._cells(values))
        self._go(RELEASE, batch, moves, lambda row, at: self._entered(moves, row, at, values[row]))
        return self._answered(streams, moves, whole=which is None)

    def _alone(self, stream: int, values: Any) -> tuple[tuple[Event, ...], StreamState]:
        """The step of one stream, by the plan."""
        batch = values if self.plan.in_batches else [values]
        return self.plan.step(self._state(stream), batch, self._randomness)

    def _answered(self, streams: Ints, moves: Moves, *, whole: bool) -> Step:
        """What left, one value or batch of each stream."""
        released = moves.released
        if self.plan.in_batches:
            size = len(self.plan.model.alphabet)
            patterns = released[:, None] // self._powers % size
            new = ((moves.outcomes == RELEASED) & (released >= 0))[:, None]
            released = np.where(new, patterns, released[:, None])
        return Step(
            streams=self.streams if whole else [self._names[place] for place in streams.tolist()],
            sequences=moves.sequences,
            released=released,
            codes=moves.outcomes,
            charges=moves.charges,
            alphabet=self.plan.model.alphabet,
            signals=None if self.plan.sight is None else moves.signals,
        )

    def _go(self, mode: int, batch: Batch, moves: Moves, alone: Alone) -> None:
        """Let streams go through their rows; all of them or none.

        Args:
            mode: Whether columns are drawn or found.
            batch: The rows.
            moves: What is given of each, and found.
            alone: Does the row of a stream that the loop does not cover, by the plan; whether the
                stream goes on after it.
        """
        before, first, going = self._loop.before(batch, self._last), True, batch
        # As many coins as now are wanted next time, as a rule.
        ahead = partial(draw_ahead, self._randomness, len(moves.words))
        given: Any = (moves, self._last, before)
        self._torn = True
        try:
            while self._loop.follow(mode, going, *given, first=first, ahead=ahead):
                going, first = going.waiting(), False
                rows, order = going.rows[going.turns], going.in_order()
                if self._solved is not None:
                    done = self._solved.step(mode, going, moves, self._last)
                    order = [group for group in order if not done[group]]
                for group in order:
                    on = alone(int(rows[group]), int(going.streams[group]))
                    going.turns[group] = going.turns[group] + 1 if on else going.ends[group]
        except BaseException:
            # Nothing of it has left, so it never happened. Threads that still run move streams and
            # say so in `entered`: nothing is read before the last of them is done.
            self._arrays.threads.settle()
            entered = before.entered[: len(batch.streams)]
            held = tuple(part[: len(entered)][entered] for part in before.rows)
            self._restore(Backup(batch.streams[entered], held))
            raise
        self._torn = False

    def _moves(self, batch: Batch, cells: Ints) -> Moves:
        """Room for what leaves, and coins for it."""
        count, needing = len(cells), self._needing(batch, cells)
        if not self._randomness.addressed and np.count_nonzero(needing) == count:
            return Moves.blank(cells, self._randomness.words(count))
        words, drawn = np.zeros(count, dtype=np.uint64), np.flatnonzero(needing)
        if not self._randomness.addressed:
            words[drawn] = self._randomness.words(len(drawn))
        else:
            which = np.empty(count, dtype=np.int64)
            which[batch.rows] = np.repeat(batch.streams, batch.ends - batch.turns)
            moments = self._arrays.moments[which] + self.plan.width * batch.ranks()
            at = (self.plan.fingerprint, self._coin_names, which[drawn], moments[drawn])
            words[drawn] = words_at(self._randomness, Domain.STREAM, *at, self._arrays.threads)
        return Moves.blank(cells, words)

    def _needing(self, batch: Batch, cells: Ints) -> Bools:
        """Which rows need a coin: values of the alphabet, unless all of a budget is gone.

        What a stream with several rows has left at the later ones is seen on the way only.
        """
        needing = cells >= 0
        budget = self.plan.budget
        if not isinstance(budget, PerStep):
            alone = np.flatnonzero(batch.ends - batch.turns == 1)
            due = budget.allowances(self._ledgers, batch.streams[alone], self.plan.width)
            gone = alone[(due <= 0.0).any(axis=1)]
            needing[batch.rows[batch.turns[gone]]] = False
        return needing

    def _entered(self, moves: Moves, row: int, stream: int, values: Any) -> bool:
        """Do a row by the plan, and put down what it did."""
        return self._noted(moves, row, stream, *self._alone(stream, values))

    def _noted(
        self, moves: Moves, row: int, stream: int, events: tuple[Event, ...], state: StreamState
    ) -> bool:
        """Put down what the plan did."""
        places = [self.plan.model.alphabet.place(event.released) for event in events]
        outcome = events[-1].outcome
        moves.released[row] = places[-1]
        if outcome is Outcome.RELEASED:
            moves.released[row] = (np.array(places) * self._powers).sum()
        moves.sequences[row] = events[0].sequence
        moves.outcomes[row] = OUTCOMES.index(outcome)
        moves.charges[row] = events[-1].sip.epsilon, events[-1].ldp.epsilon
        signal = events[-1].signal
        moves.signals[row] = -1 if signal is None else signal
        self._put(stream, state)
        return True

    @guarded
    def flush(self, stream: int, values: Sequence[object]) -> tuple[Event, ...]:
        """Release a shorter batch of one stream, at its end or when time is up."""
        self._check_whole()
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
        self._skipped(self._chosen(which, None))

    def _skipped(self, streams: Ints) -> None:
        self._torn = True
        self._arrays.advance(streams)
        self._arrays.moments[streams] += self.plan.width - 1
        self._ledgers.charge(streams, np.zeros((len(streams), 2)), self.plan.width)
        self._torn = False

    @guarded
    def run(self, cells: Ints, which: Ints) -> Run:
        """Release many values of many streams, each stream's in the order given; all or none.

        Args:
            cells: Places of the true symbols in the alphabet; -1 for one outside it, -2 for a
                moment that passes without a release.
            which: Place of the stream of each, as often as the stream has values.

        Raises:
            BudgetExceeded: If the budget of a stream is gone and the plan says to refuse.
            UnknownSymbol: If a value is not in the alphabet and the plan says to refuse.
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.

        Examples:
            >>> import sfumato as sf
            >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
            >>> loss = sf.loss.hamming(chain.alphabet)
            >>> policy = sf.compile_policy(chain, loss, 0.5, steps=500)
            >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
            >>> fleet = sf.Fleet(plan, ["ann", "bob"])
            >>> run = fleet.run(np.array([0, 0, 1, 1, 1]), np.array([0, 1, 0, 0, 1]))
            >>> run.sequences
            array([0, 0, 1, 2, 1])
        """
        self._check_whole()
        streams = self._checked(which)
        places = self._checked_cells("cells", cells, streams, -2)
        batch = Batch.of(streams, self._slots)
        moves = self._moves(batch, places)
        labels = (*self.plan.model.alphabet.labels, None)

        def alone(row: int, stream: int) -> bool:
            if places[row] == PASSING:
                return self._noted(moves, row, stream, *self.plan.skip(self._state(stream)))
            return self._entered(moves, row, stream, labels[places[row]])

        self._go(RELEASE, batch, moves, alone)
        return Run(
            sequences=moves.sequences,
            released=moves.released,
            outcomes=moves.outcomes,
            charges=moves.charges,
            signals=None if self.plan.sight is None else moves.signals,
        )

    @guarded
    def observe(self, released: Ints, signals: Ints | None, outcomes: Codes, which: Ints) -> Seen:
        """Follow many streams by what was seen to leave, in the order given: draws nothing.

        Args:
            released: Places of the symbols that left, -1 for none.
            signals: Which output of its channel left, -1 for none; None if there are none at all.
            outcomes: What left: places in `tuple(Outcome)`.
            which: Place of the stream of each, as often as the stream has values.

        Raises:
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.
        """
        self._check_whole()
        streams = self._checked(which)
        places = self._checked_cells("released", released, streams, -1)
        sent = np.full(len(streams), -1) if signals is None else np.asarray(signals)
        codes = np.asarray(outcomes)
        for name, given in (("signals", sent), ("outcomes", codes)):
            if given.shape != streams.shape or (given.size and given.dtype.kind not in "iu"):
                raise InvalidParameter(name, given.shape, f"be {len(streams)} whole numbers")
        if codes.size and not (codes.min() >= 0 and codes.max() < len(OUTCOMES)):
            raise InvalidParameter("outcomes", "others", "be places in `tuple(Outcome)`")
        batch, moves = Batch.of(streams, self._slots), Moves.seen(places, sent, codes)
        possible, lost = np.ones(len(streams), dtype=np.bool_), []

        def alone(row: int, stream: int) -> bool:
            if not (on := self._followed(moves, row, stream)):
                lost.append((row, stream))
            return on

        self._go(OBSERVE, batch, moves, alone)
        for row, stream in lost:
            possible[row:] &= streams[row:] != stream
        return Seen(moves.sequences, moves.charges, possible, moves.withheld)

    def _followed(self, moves: Moves, row: int, stream: int) -> bool:
        """Let a stream go on by what left, by the plan; whether it can have left."""
        state, labels = self._state(stream), self.plan.model.alphabet.labels
        place, signal = int(moves.released[row]), int(moves.signals[row])
        outcome = OUTCOMES[moves.outcomes[row]]
        moves.sequences[row] = state.sequence
        try:
            events, following = self.plan.observe(
                state,
                [None if place < 0 else labels[place]],
                outcome,
                None if signal < 0 else signal,
            )
        except (InvalidParameter, UnknownSymbol):
            return False
        if outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            moves.withheld[row] = self.plan.prepare(state) is not None
        moves.charges[row] = events[0].sip.epsilon, events[0].ldp.epsilon
        self._put(stream, following)
        return True

    def _checked_cells(self, name: str, cells: Ints, streams: Ints, least: int) -> Ints:
        """Places in the alphabet, one for each entry of `streams`."""
        if self.plan.in_batches:
            raise InvalidParameter("plan", "one for batches", "release values one by one")
        given, size = np.asarray(cells), len(self.plan.model.alphabet)
        if given.shape != streams.shape or (given.size and given.dtype.kind not in "iu"):
            raise InvalidParameter(name, given.shape, f"be {len(streams)} places in the alphabet")
        if given.size and not (given.min() >= least and given.max() < size):
            raise InvalidParameter(name, "others", f"be places in the alphabet, or {least} to -1")
        return given.astype(np.int64)

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
            # One comparison for both ends: what is below 0 is large if it is taken for unsigned.
            unknown = places.view(np.uint64) >= len(alphabet)
            if np.count_nonzero(unknown):
                places[unknown] = -1
            return places
        flat = [alphabet.place(value) for value in values.ravel().tolist()]
        return np.array(flat, dtype=np.int64).reshape(values.shape)


def _rows(values: Sequence[Any], width: int) -> NDArray[Any]:
    """Batches as a table, whatever the symbols are."""
    if any(not isinstance(row, Sized) or len(row) != width for row in values):
        rule = f"have {width} values for each stream; flush shorter batches"
        raise InvalidParameter("values", "rows of other lengths", rule)
    table = np.empty((len(values), width), dtype=object)
    for place, row in enumerate(values):
        table[place] = list(row)
    return table
