"""Follow many released streams together, by the compiled loops that released them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.guard import guarded
from sfumato.core.progress import Progress
from sfumato.stream.evidence import Evidence
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_arrays import PREPARED, Prepared
from sfumato.stream.fleet_loop import Batch, Details, Moves
from sfumato.stream.next_moves import OBSERVE
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks


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
    def of(cls, streams: Ints, moves: Moves, solved: dict[int, tuple[StepDesign, int]]) -> Self:
        """What the loop found, and what was made on the spot."""
        details = moves.details
        room = len(details.chosen)
        channels = Prepared(
            which=streams[:room],
            chosen=details.chosen,
            parts=details.parts,
            blends=details.blends,
            charges=moves.charges[:room],
            status=np.full(room, PREPARED, dtype=np.int64),
            columns=details.columns,
            released=moves.released[:room],
        )
        told = (details.told, details.tells, details.before)
        return cls(moves.charges, moves.withheld, *told, channels, details.masses, solved)


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
            InterruptedStep: If Ctrl-C or the like broke into an earlier step.
        """
        followed = self._follow(left, whole=whole)
        # Outside of the lock: whoever is told may ask the fleet.
        if progress:
            progress(len(left.streams))
        return followed

    @guarded
    def _follow(self, left: Left, *, whole: bool) -> Followed:
        self._check_whole()
        count, symbols = len(left.streams), len(self.plan.model.alphabet)
        width = int(self._policy.tables[0][:, 3].max())
        details = Details.blank(count, count if whole else 0, symbols, width)
        moves = Moves.seen(left.released, left.signals, left.outcomes, details)
        solved: dict[int, tuple[StepDesign, int]] = {}

        def alone(row: int, stream: int) -> bool:
            return self._alone_seen(row, stream, moves, solved)

        self._go(OBSERVE, Batch.of(left.streams, self._slots), moves, alone)
        return Followed.of(left.streams, moves, solved)

    def _alone_seen(
        self, row: int, stream: int, moves: Moves, solved: dict[int, tuple[StepDesign, int]]
    ) -> bool:
        """A row that the loop does not cover."""
        state, labels = self._state(stream), self.plan.model.alphabet.labels
        place, signal = int(moves.released[row]), int(moves.signals[row])
        outcome = OUTCOMES[moves.outcomes[row]]
        seen, sent = None if place < 0 else labels[place], None if signal < 0 else signal
        details = moves.details
        details.before[row] = self._last[stream]
        try:
            told = self.plan.observed(state, [seen], outcome, sent)
        except InvalidParameter as problem:
            raise NotReleased(row, f"the {problem.name} must {problem.rule}") from None
        except UnknownSymbol as problem:
            raise NotReleased(row, f"the {problem}") from None
        event = told.events[0]
        moves.charges[row] = event.sip.epsilon, event.ldp.epsilon
        if outcome in (Outcome.SUPPRESSED, Outcome.REPEATED):
            moves.withheld[row] = self.plan.prepare(state, 1) is not None
        if told.design is not None and told.output is not None:
            solved[row] = told.design, told.output
            if not told.design.design.channel.is_constant:
                details.told[row] = told.design.design.channel.likelihood(told.output)
                details.tells[row] = True
        self._put(stream, told.following)
        return True


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
