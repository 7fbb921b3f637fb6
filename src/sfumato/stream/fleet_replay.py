"""Follow many released streams together, by the compiled loops that released them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.progress import Progress
from sfumato.core.purpose import Fallback
from sfumato.stream.evidence import Evidence
from sfumato.stream.fleet import Fleet, waves
from sfumato.stream.fleet_answers import RELEASED, SKIPPED
from sfumato.stream.fleet_arrays import PREPARED, Prepared
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.replay_loops import find_columns, likelihoods

_SUPPRESSED, _REPEATED = OUTCOMES.index(Outcome.SUPPRESSED), OUTCOMES.index(Outcome.REPEATED)


class NotReleased(Exception):
    """A row that the plan cannot have let leave where it stands.

    Attributes:
        row: Its place among those that were given.
        rule: What it breaks.
    """

    def __init__(self, row: int, rule: str) -> None:
        super().__init__(rule)
        self.row, self.rule = row, rule


class Left(NamedTuple):
    """Rows that were seen to leave, those of each stream in order.

    Attributes:
        streams: The place of the stream of each.
        released: The place of its symbol in the alphabet; -1 for none.
        outcomes: What left, as places in `OUTCOMES`.
        signals: Which output of its channel left, where a row says so; else -1.
    """

    streams: Ints
    released: Ints
    outcomes: Ints
    signals: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What anybody can compute of rows that left.

    Attributes:
        charges: Both certificates of each.
        withheld: Whether nothing new left although there was budget.
        told: How likely each symbol made what left; ones where nothing was told.
        tells: Whether the channel was not a constant.
        before: The symbol that the stream said last, before; -1 for none.
        channels: The kept channels that rows came from, each the first in an array of its own; the
            channel is -1 where `solved` has another one, or nothing new left.
        masses: What the adversary believed before each; empty unless it was asked for.
        solved: Rows whose channel was made on the spot, and the output that left.
    """

    charges: Floats
    withheld: Bools
    told: Floats
    tells: Bools
    before: Ints
    channels: Prepared
    masses: Floats
    solved: dict[int, tuple[StepDesign, int]]

    @classmethod
    def blank(cls, count: int, symbols: int, width: int, *, whole: bool) -> Self:
        """Room for some rows; channels and masses only if all of it is asked for."""
        room = count if whole else 0
        channels = Prepared(
            which=np.zeros(room, dtype=np.int64),
            chosen=np.full(room, -1, dtype=np.int64),
            parts=np.zeros(room, dtype=np.int64),
            blends=np.zeros((room, width), dtype=np.int64),
            charges=np.zeros((room, 2)),
            status=np.zeros(room, dtype=np.int64),
            columns=np.zeros(room, dtype=np.int64),
            released=np.zeros(room, dtype=np.int64),
        )
        return cls(
            charges=np.zeros((count, 2)),
            withheld=np.zeros(count, dtype=np.bool_),
            told=np.ones((count, symbols)),
            tells=np.zeros(count, dtype=np.bool_),
            before=np.full(count, -1, dtype=np.int64),
            channels=channels,
            masses=np.zeros((room, symbols)),
            solved={},
        )


class Replay(Fleet):
    """A fleet that moves on by what was seen to leave; it draws nothing."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the streams by their places, as they are: not a copy."""
        return self._names

    @property
    def moments(self) -> Ints:
        """The next moment of each stream, as it is: not a copy."""
        return self._arrays.moments

    @property
    def totals(self) -> Floats:
        """What each stream has spent so far, as it is: not a copy."""
        return self._ledgers.spent

    def follow(self, left: Left, progress: Progress | None = None, *, whole: bool) -> Followed:
        """Let streams go on by what left.

        Args:
            left: The rows.
            progress: Called with the number of rows done so far.
            whole: Also say what was believed, and which channel each came from.

        Raises:
            NotReleased: If the plan cannot have let one leave; streams stand where they stood.
        """
        width = self._policy.tables[0][:, 3].max()
        symbols = len(self.plan.model.alphabet)
        found = Followed.blank(len(left.streams), symbols, int(width), whole=whole)
        before, done = self._backup(np.unique(left.streams)), 0
        try:
            for rows in waves(left.streams):
                self._moment(rows, Left(*(part[rows] for part in left)), found)
                done += len(rows)
                if progress:
                    progress(done)
        except BaseException:
            self._restore(before)
            raise
        return found

    def _moment(self, at: Ints, left: Left, found: Followed) -> None:
        """At most one row of each of some streams."""
        streams = left.streams
        found.before[at] = self._last[streams]
        allowed = self._allowed(streams)
        prepared = self._arrays.prepare(streams, allowed)
        if found.masses.size:
            found.masses[at] = self._marginals(streams)
        useful = (allowed[:, 0] >= USELESS_BELOW) & (allowed[:, 1] >= USELESS_BELOW)
        ready, new = (prepared.status == PREPARED) & useful, left.outcomes == RELEASED
        quick = ready & new
        paused = self._paused(streams, np.zeros(len(streams), dtype=np.int64))
        gone = (allowed <= 0.0).any(axis=1) & ~paused
        silent = ~new & (left.signals < 0)
        silent &= (ready | paused | gone) | (left.outcomes == SKIPPED)
        silent &= self._is_silence(left, gone)
        guessed = paused & new & ~quick
        guessed[guessed] = self._is_guess(Left(*(part[guessed] for part in left)))
        found.withheld[at] = silent & ~gone & (left.outcomes != SKIPPED)
        if quick.any():
            self._inform(at, left, prepared, quick, found)
        passed = streams[silent | guessed]
        self._ledgers.charge(passed, np.zeros((len(passed), 2)))
        self._arrays.advance(passed)
        self._last[streams[guessed]] = left.released[guessed]
        for row in np.flatnonzero(~(quick | silent | guessed)).tolist():
            self._alone_seen(int(at[row]), Left(*(part[row : row + 1] for part in left)), found)

    def _inform(
        self, at: Ints, left: Left, prepared: Prepared, quick: Bools, found: Followed
    ) -> None:
        """Rows that came from kept channels."""
        if not quick.all():
            at, left = at[quick], Left(*(part[quick] for part in left))
            prepared = prepared.of(quick)
        wrong = (left.signals >= 0) != (self.plan.sight is not None)
        if wrong.any():
            rule = "the signal must stand at each release of a far-sighted plan, and nowhere else"
            raise NotReleased(int(at[wrong][0]), rule)
        tables = self._policy.tables
        find_columns(
            tables, prepared.chosen, prepared.blends, left.released, left.signals, prepared.columns
        )
        if prepared.columns.min() < 0:
            rule = "the output must be one that the channel can release"
            raise NotReleased(int(at[prepared.columns < 0][0]), rule)
        drawn = (prepared.chosen, prepared.parts, prepared.blends, prepared.columns)
        likelihoods(tables, *drawn, at, found.told, found.tells)
        found.charges[at] = prepared.charges
        if found.masses.size:
            for kept, part in zip(found.channels, prepared, strict=True):
                kept[at] = part
        self._ledgers.charge(left.streams, prepared.charges)
        self._arrays.inform(prepared)
        self._arrays.advance(left.streams)
        self._last[left.streams] = left.released

    def _is_silence(self, left: Left, gone: Bools) -> Bools:
        """Which rows say what the plan lets leave where nothing new does."""
        plan, last = self.plan, self._last[left.streams]
        right: Bools = (left.outcomes == SKIPPED) & (left.released < 0)
        for rows, fallback in ((gone, plan.on_exhausted), (~gone, plan.on_unknown)):
            if fallback not in (Fallback.SUPPRESS, Fallback.REPEAT):
                continue
            again = rows & (last >= 0) & (fallback is Fallback.REPEAT)
            right |= again & (left.outcomes == _REPEATED) & (left.released == last)
            right |= rows & ~again & (left.outcomes == _SUPPRESSED) & (left.released < 0)
        return right

    def _is_guess(self, left: Left) -> Bools:
        """Which rows say the best constant of a pause; it has one signal in a far-sighted plan."""
        signal = -1 if self.plan.sight is None else 0
        right: Bools = left.released == self._guesses(left.streams)
        right &= left.signals == signal
        return right

    def _marginals(self, streams: Ints) -> Floats:
        """Beliefs about the next value."""
        if self._arrays.chain.order == 1:
            return self._arrays.joints[streams]
        beliefs = [self._arrays.belief(stream).marginal for stream in streams.tolist()]
        return np.array(beliefs).reshape(len(streams), -1)

    def _alone_seen(self, at: int, left: Left, found: Followed) -> None:
        """A row that the loops do not cover."""
        stream, place, code, signal = (int(part[0]) for part in left)
        state, labels = self._state(stream), self.plan.model.alphabet.labels
        outcome, seen = OUTCOMES[code], None if place < 0 else labels[place]
        try:
            told = self.plan.observed(state, [seen], outcome, None if signal < 0 else signal)
        except InvalidParameter as problem:
            raise NotReleased(at, f"the {problem.name} must {problem.rule}") from None
        event = told.events[0]
        found.charges[at] = event.sip.epsilon, event.ldp.epsilon
        if outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            found.withheld[at] = self.plan.prepare(state, 1) is not None
        if told.design is not None and told.output is not None:
            found.solved[at] = told.design, told.output
            if not told.design.design.channel.is_constant:
                found.told[at] = told.design.design.channel.likelihood(told.output)
                found.tells[at] = True
        self._put(stream, told.following)


def replayed(tracks: ReleasedTracks, plan: Plan, progress: Progress | None = None) -> Evidence:
    """What streams of single values told that were released under a compiled policy."""
    starts, count, size = tracks.starts, len(tracks.places), len(plan.model.alphabet)
    streams = np.repeat(np.arange(len(tracks.streams)), np.diff(starts))
    left = Left(streams, tracks.places, tracks.outcomes, tracks.signals)
    try:
        followed = Replay(plan, tracks.streams).follow(left, progress, whole=False)
    except NotReleased as problem:
        raise tracks.refusal(int(tracks.rows[problem.row]), problem.rule) from None
    begins = np.where(followed.tells, np.arange(count) * size, -1)
    reaches = np.ones(count, dtype=np.int64)
    return Evidence(starts, begins, reaches, tracks.moments, followed.told.ravel())
