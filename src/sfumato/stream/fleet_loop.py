"""Many steps of many streams by one compiled loop: what it is given, and what it stopped at.

`FleetLoop` puts together what `run_loops.follow` needs to know of a plan; `Batch` has the rows of
one call, sorted by stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.allowance_loops import AllowanceRule
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compile_events import is_eager
from sfumato.core.ledger import Ledgers
from sfumato.core.purpose import Fallback
from sfumato.stream import next_moves, row_loops, run_loops, serve_loop
from sfumato.stream.claim_loops import SPINS, all_done, open_claims, stopped
from sfumato.stream.fleet_answers import Codes
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.next_moves import RELEASE
from sfumato.stream.plan import Plan

_FALLBACKS = {Fallback.SUPPRESS: next_moves.SUPPRESS, Fallback.REPEAT: next_moves.REPEAT}
NO_WORDS = np.zeros(0, dtype=np.uint64)
_NO_LOSSES = np.zeros((0, 0))
_FEW_ROWS = 4_096
"""A plan does so many rows by itself in less time than it takes to compile the loop."""


class Details(NamedTuple):
    """What is asked of rows beyond their answers: entries of `run_loops.follow`.

    Attributes:
        told: How likely each symbol made what left.
        tells: Whether that tells anything.
        before: What the stream said before; -1 for nothing.
        chosen: The kept channel; -1 where there was none. Empty, with all that follows, unless it
            is asked for.
        parts: Its mixing weight.
        blends: The integers it is mixed with.
        columns: The column that left.
        masses: What was believed.
    """

    told: Floats
    tells: Bools
    before: Ints
    chosen: Ints
    parts: Ints
    blends: Ints
    columns: Ints
    masses: Floats

    @classmethod
    def blank(cls, count: int, room: int, symbols: int, width: int) -> Self:
        """Of `count` rows what was told, of `room` rows the channels as well."""
        return cls(
            told=np.ones((count, symbols)),
            tells=np.zeros(count, dtype=np.bool_),
            before=np.full(count, -1, dtype=np.int64),
            chosen=np.full(room, -1, dtype=np.int64),
            parts=np.zeros(room, dtype=np.int64),
            blends=np.zeros((room, width), dtype=np.int64),
            columns=np.zeros(room, dtype=np.int64),
            masses=np.zeros((room, symbols)),
        )


NO_DETAILS = Details.blank(0, 0, 0, 0)


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of many streams, one stream after another.

    Attributes:
        streams: The streams that have rows.
        begins: Where in `rows` those of each begin.
        turns: Where in `rows` the next of each is.
        ends: Where in `rows` those of each end.
        rows: Numbers of rows.
    """

    streams: Ints
    begins: Ints
    turns: Ints
    ends: Ints
    rows: Ints

    @classmethod
    def one_each(cls, streams: Ints) -> Self:
        """One row of every stream, in their order."""
        rows = np.arange(len(streams))
        return cls(streams, rows, rows.copy(), rows + 1, rows)

    def again(self) -> Self:
        """The same rows, set back to their beginning."""
        self.turns[:] = self.begins
        return self

    @classmethod
    def of(cls, which: Ints, slots: Ints) -> Self:
        """Rows by their streams; `slots` is work space, as in `group_rows`."""
        streams, begins = np.empty(len(which), dtype=np.int64), np.zeros(len(which) + 1, np.int64)
        rows = np.empty(len(which), dtype=np.int64)
        found = row_loops.group_rows(which, slots, streams, begins, rows)
        starts = begins[:found]
        return cls(streams[:found], starts, starts.copy(), begins[1 : found + 1], rows)

    def ranks(self) -> Ints:
        """How many rows of its stream come before each row."""
        ranks = np.empty(len(self.rows), dtype=np.int64)
        ranks[self.rows] = np.arange(len(self.rows)) - np.repeat(
            self.begins, self.ends - self.begins
        )
        return ranks

    def waiting(self) -> Self:
        """The streams that are not at their end."""
        some = self.turns < self.ends
        return type(self)(
            self.streams[some], self.begins[some], self.turns[some], self.ends[some], self.rows
        )

    def in_order(self) -> list[int]:
        """The streams by the turn that each is at, and by their rows."""
        order: list[int] = np.lexsort((self.rows[self.turns], self.turns - self.begins)).tolist()
        return order

    def split(self, parts: int) -> list[int]:
        """Where to cut the streams so that each part has about as many rows."""
        streams = len(self.streams)
        if parts == 1 or len(self.rows) == streams:  # a row each, but for some that stopped
            return [streams * part // parts for part in range(parts + 1)]
        before = np.append(0, np.cumsum(self.ends - self.turns))
        dues = int(before[-1]) * np.arange(1, parts) // parts
        return [0, *np.searchsorted(before, dues).tolist(), streams]


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """What is given of each row, and what is found: entries of `run_loops.follow`."""

    cells: Ints
    words: NDArray[np.uint64]
    sequences: Ints
    released: Ints
    outcomes: Codes
    charges: Floats
    signals: Ints
    withheld: Bools
    details: Details = NO_DETAILS

    @classmethod
    def seen(
        cls, released: Ints, signals: Ints, outcomes: Ints | Codes, details: Details = NO_DETAILS
    ) -> Self:
        """Rows that were seen to leave."""
        moves = replace(cls.blank(released, NO_WORDS), details=details)
        moves.released[:], moves.signals[:], moves.outcomes[:] = released, signals, outcomes
        # A row that cannot have left is never reached.
        moves.sequences[:], moves.charges[:] = 0, 0.0
        return moves

    @classmethod
    def blank(cls, cells: Ints, words: NDArray[np.uint64]) -> Self:
        """Nothing has been found yet.

        A release writes every row or none leaves, and its threads write faster than one alone
        would fill in zeros.
        """
        count = len(cells)
        return cls(
            cells=cells,
            words=words,
            sequences=np.empty(count, dtype=np.int64),
            released=np.empty(count, dtype=np.int64),
            outcomes=np.zeros(count, dtype=np.uint8),
            charges=np.empty((count, 2)),
            signals=np.empty(count, dtype=np.int64),
            withheld=np.zeros(count, dtype=np.bool_),
        )

    @property
    def entries(self) -> tuple[NDArray[Any], ...]:
        """In the order of the loop."""
        given = (self.cells, self.words, self.sequences, self.released)
        found = (self.outcomes, self.charges, self.signals, self.withheld)
        return (*given, *found, *self.details)


class Before:
    """Where streams stood before a call: room that the loop copies them to.

    Attributes:
        entered: Whether a stream was copied.
        rows: What the arrays held of each.
    """

    def __init__(self, held: tuple[NDArray[Any], ...], count: int) -> None:
        self.entered = np.zeros(count, dtype=np.bool_)
        self.rows = tuple(np.empty((count, *part.shape[1:]), part.dtype) for part in held)

    def __len__(self) -> int:
        return len(self.entered)


class Served(NamedTuple):
    """What releases one stream value by value, and the arrays that it does not keep alive."""

    answers: Iterator[int]
    arrays: tuple[Any, ...]


def _enter(held: tuple[NDArray[Any], ...], streams: Ints, before: Before) -> None:
    """Copy where streams stand, as the loop does when they enter it."""
    for part, room in zip(held, before.rows, strict=True):
        room[: len(streams)] = part[streams]
    before.entered[: len(streams)] = True


class FleetLoop:
    """The loop of a plan on some arrays.

    Args:
        plan: The rule; with a policy.
        arrays: Beliefs of the streams.
        ledgers: Their accounts.

    Attributes:
        pausing: Whether values leave one by one, with pauses between bursts.
    """

    def __init__(self, plan: Plan, arrays: StreamArrays, ledgers: Ledgers) -> None:
        assert plan.policy is not None
        self._plan, self._arrays, self._ledgers = plan, arrays, ledgers
        self._rule = AllowanceRule.of(plan.budget, plan.policy.allowed, plan.width)
        self._given = (
            *plan.policy.loop_tables,
            plan.policy.repair_limit,
            plan.policy.scale,
            *self._rule,
            *arrays.chain.loop_rows,
        )
        self.pausing = bool(self._rule.counts[3]) and not plan.in_batches
        self._options = np.zeros(8, dtype=np.int64)
        self._options[1:] = (
            arrays.chain.order,
            _FALLBACKS.get(plan.on_exhausted, next_moves.STOP),
            _FALLBACKS.get(plan.on_unknown, next_moves.STOP),
            plan.sight is not None,
            next_moves.NO_GUESS,
            0,
            len(plan.model.alphabet),
        )
        self._before = Before(self.held(np.zeros(0, dtype=np.int64)), 0)
        self._ready, self._without = is_eager(), 0

    def held(self, last: Ints) -> tuple[NDArray[Any], ...]:
        """All that is known of the streams, one row each, in the order of the loop."""
        arrays, ledgers = self._arrays, self._ledgers
        accounts = (ledgers.counts, ledgers.spent, ledgers.recent)
        return (arrays.joints, arrays.moments, arrays.drifts, *accounts, last)

    def before(self, batch: Batch, last: Ints) -> Before:
        """Room for where the streams of a batch stand, none of which was copied yet."""
        if len(self._before) < len(batch.streams):
            self._before = Before(self.held(last), max(len(batch.streams), 2 * len(self._before)))
        self._before.entered[:] = False
        return self._before

    def follow(
        self,
        mode: int,
        batch: Batch,
        moves: Moves,
        last: Ints,
        before: Before,
        *,
        first: bool,
        ahead: Callable[[], None],
    ) -> bool:
        """Let streams go through their rows; whether some stopped before one.

        Args:
            mode: `RELEASE` or `OBSERVE`.
            batch: The rows; its turns are moved on.
            moves: What is given of them, and found.
            last: What every stream released last.
            before: Where the streams stood: filled at the
            first: call for a batch.
            ahead: Something for later calls, which a helper does while others release.
        """
        options, given = self._entries(mode, batch, moves, last, before, first=first)
        if mode == RELEASE and not self._is_ready(batch, options, given):
            if first:
                _enter(self.held(last), batch.streams, before)
            return bool((batch.turns < batch.ends).any())

        claimed, threads = self._arrays.claims, self._arrays.threads
        # A helper that an exception left behind must not claim what comes next.
        threads.settle()
        open_claims(claimed, batch.split(threads.count))

        def work(thread: int) -> None:
            if thread == 1:
                ahead()  # whoever is behind for it finds fewer blocks left
            run_loops.follow(options, claimed, thread, *given, *self._arrays.room(thread))

        threads.together(work, lambda many: all_done(claimed, many, SPINS))
        return stopped(claimed) > 0

    def _is_ready(self, batch: Batch, options: Ints, given: tuple[Any, ...]) -> bool:
        """Whether the loop is compiled, or there are as many rows as that is worth."""
        if not self._ready:
            loop: Any = run_loops.follow
            due = batch.ends - batch.turns
            everything = (options, self._arrays.claims, 0, *given, *self._arrays.room(0))
            many = self._without + int(due.sum()) > _FEW_ROWS
            self._ready = many or loop.at_hand(*everything)
            # The plan does one row of each stream before this is asked again.
            self._without += int(np.count_nonzero(due))
        return self._ready

    def served(self, moves: Moves, last: Ints, before: Before) -> Served:
        """Release the first stream value by value: see `serve_loop.serve`."""
        batch = Batch.one_each(np.zeros(1, dtype=np.int64))
        options, given = self._entries(RELEASE, batch, moves, last, before, first=True)
        # Whoever asks for one value after another is told of a silence by the plan.
        options[2] = options[3] = next_moves.STOP
        claimed = self._arrays.claims
        open_claims(claimed, [0, 1])
        held = (claimed, batch.turns, before.entered, moves.cells, moves.words, moves.released)
        everything = (*held, options, claimed, 0, *given, *self._arrays.room(0))
        return Served(serve_loop.serve(*everything), everything)

    def _entries(
        self, mode: int, batch: Batch, moves: Moves, last: Ints, before: Before, *, first: bool
    ) -> tuple[Ints, tuple[Any, ...]]:
        """What the loop is given, but for the streams to go through and work space."""
        options = self._options.copy()
        guess, losses = self._guesses()
        options[0], options[5], options[6] = mode, guess, first
        streams = (*self.held(last), *before.rows, before.entered)
        rows = (batch.streams, batch.turns, batch.ends, batch.rows, *moves.entries)
        return options, (*self._given, losses, *streams, *rows)

    def _guesses(self) -> tuple[int, Floats]:
        """How the best constants of pauses are found now, and the losses that takes."""
        loss = self._plan.value_loss
        if not self.pausing or loss is None:
            return next_moves.NO_GUESS, _NO_LOSSES
        if not loss.stored:
            return next_moves.NO_GUESS, _NO_LOSSES
        return next_moves.TABLE, np.ascontiguousarray(loss.matrix)
