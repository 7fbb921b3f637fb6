"""Release many streams together: certified releases at memory speed.

The state of all streams lies in arrays and one step of all of them is a few compiled loops. What
the loops do not cover (a value outside the alphabet, a budget that is gone, a belief the
policy does not cover) goes through the plan, stream by stream. The answers are those that each
stream would get alone with the same coins.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Event, Outcome
from sfumato.core.guard import guarded
from sfumato.core.randomness import Randomness, secure
from sfumato.core.state import StreamState
from sfumato.stream.fleet_answers import SKIPPED, Codes, Run, Seen, Step
from sfumato.stream.fleet_arrays import PREPARED, Prepared
from sfumato.stream.fleet_streams import FleetStreams
from sfumato.stream.plan import Plan

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
        return self._stepped(streams, values, whole=which is None)

    def _stepped(self, streams: Ints, values: Values, *, whole: bool) -> Step:
        cells = self._cells(values)
        # First what needs no coins; what the loops do not cover is tried by the plan on the side.
        prepared, quick = self._prepared(streams, cells)
        step = self._blank(streams, whole=whole)
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
        run = Run.blank(len(streams), sighted=self.plan.sight is not None)
        before = self._backup(np.unique(streams))
        try:
            for rows in waves(streams):
                self._wave(run, rows, places[rows], streams[rows])
        except BaseException:
            # Nothing of it has left, so it never happened.
            self._restore(before)
            raise
        return run

    def _wave(self, run: Run, rows: Ints, cells: Ints, streams: Ints) -> None:
        """One value of each of some streams, or a moment that passes."""
        passing = cells == -2
        if passing.any():
            skipped = streams[passing]
            run.sequences[rows[passing]] = self._arrays.moments[skipped]
            run.outcomes[rows[passing]] = SKIPPED
            self._skipped(skipped)
            rows, cells, streams = rows[~passing], cells[~passing], streams[~passing]
        labels = (*self.plan.model.alphabet.labels, None)
        values = [labels[cell] for cell in cells.tolist()]
        step = self._stepped(streams, values, whole=False)
        run.sequences[rows], run.released[rows] = step.sequences, step.released
        run.outcomes[rows] = [OUTCOMES.index(outcome) for outcome in step.outcomes]
        run.charges[rows] = step.charges
        if run.signals is not None and step.signals is not None:
            run.signals[rows] = step.signals

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
        codes = np.asarray(outcomes)
        sent = np.full(len(streams), -1) if signals is None else np.asarray(signals)
        seen = Seen.blank(len(streams))
        before, lost = self._backup(np.unique(streams)), set()
        try:
            for row, stream in enumerate(streams.tolist()):
                seen.sequences[row] = self._arrays.moments[stream]
                if stream not in lost and not self._followed(
                    seen, row, stream, int(places[row]), int(sent[row]), OUTCOMES[codes[row]]
                ):
                    lost.add(stream)
        except BaseException:
            self._restore(before)
            raise
        return seen

    def _followed(
        self, seen: Seen, row: int, stream: int, place: int, signal: int, outcome: Outcome
    ) -> bool:
        """Let a stream go on by what left, by the plan; whether it can have left."""
        state, labels = self._state(stream), self.plan.model.alphabet.labels
        label = None if place < 0 else labels[place]
        try:
            events, following = self.plan.observe(
                state, [label], outcome, None if signal < 0 else signal
            )
        except (InvalidParameter, UnknownSymbol):
            return False
        if outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            seen.withheld[row] = self.plan.prepare(state) is not None
        seen.charges[row] = events[0].sip.epsilon, events[0].ldp.epsilon
        seen.possible[row] = True
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

    def _chosen(self, which: Ints | None, count: int | None) -> Ints:
        if which is None:
            streams = np.arange(len(self))
        else:
            streams = self._checked(which)
            if len(np.unique(streams)) != len(streams):
                raise InvalidParameter("which", "other places", "be places of different streams")
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
            here = self.plan.address(self._names[stream], int(self._arrays.moments[stream]))
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
        names = self._names if whole else [self._names[place] for place in streams.tolist()]
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


def waves(streams: Ints) -> list[Ints]:
    """Rows with at most one of each stream: its first value, its second, and so on.

    Examples:
        >>> [wave.tolist() for wave in waves(np.array([3, 5, 3, 3]))]
        [[0, 1], [2], [3]]
    """
    by_stream = np.argsort(streams, kind="stable")
    first = np.searchsorted(streams[by_stream], streams[by_stream])
    turns = np.empty(len(streams), dtype=np.int64)
    turns[by_stream] = np.arange(len(streams)) - first
    by_turn = np.argsort(turns, kind="stable")
    return np.split(by_turn, np.flatnonzero(np.diff(turns[by_turn])) + 1) if len(streams) else []


def _rows(values: Sequence[Any], width: int) -> NDArray[Any]:
    """Batches as a table, whatever the symbols are."""
    if any(not isinstance(row, Sized) or len(row) != width for row in values):
        rule = f"have {width} values for each stream; flush shorter batches"
        raise InvalidParameter("values", "rows of other lengths", rule)
    table = np.empty((len(values), width), dtype=object)
    for place, row in enumerate(values):
        table[place] = list(row)
    return table
