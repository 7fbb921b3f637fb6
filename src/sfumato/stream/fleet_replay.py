"""Follow many released streams together, by the compiled loops that released them."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InvalidParameter
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.progress import Progress
from sfumato.stream.evidence import Evidence, output_of
from sfumato.stream.fleet import Fleet
from sfumato.stream.fleet_arrays import PREPARED
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.replay_loops import find_columns, likelihoods

_RELEASED = OUTCOMES.index(Outcome.RELEASED)


def replayed(tracks: ReleasedTracks, plan: Plan, progress: Progress | None = None) -> Evidence:
    """What streams of single values told that were released under a compiled policy."""
    replay, starts = _Replay(tracks, plan), tracks.starts
    lengths = np.diff(starts)
    longest_first = np.argsort(-lengths, kind="stable")
    falling = lengths[longest_first]
    done = 0
    for moment in range(int(lengths.max(initial=0))):
        some = longest_first[: np.searchsorted(-falling, -moment, side="left")]
        replay.moment(np.sort(some), moment)
        done += len(some)
        if progress:
            progress(done)
    size = len(plan.model.alphabet)
    begins = np.where(replay.tells, np.arange(len(tracks.places)) * size, -1)
    reaches = np.ones(len(tracks.places), dtype=np.int64)
    return Evidence(starts, begins, reaches, tracks.moments, replay.told.ravel())


class _Replay(Fleet):
    """A fleet that moves on by what was seen to leave; it draws nothing.

    Attributes:
        told: How likely each symbol made what left, one row per value.
        tells: Whether that tells anything.
    """

    def __init__(self, tracks: ReleasedTracks, plan: Plan) -> None:
        super().__init__(plan, tracks.streams)
        self._tracks = tracks
        self.told: Floats = np.ones((len(tracks.places), len(plan.model.alphabet)))
        self.tells: Bools = np.zeros(len(tracks.places), dtype=np.bool_)

    def moment(self, streams: Ints, moment: int) -> None:
        """What left at one moment of some streams."""
        at = self._tracks.starts[streams] + moment
        allowed = self._allowed(streams)
        prepared = self._arrays.prepare(streams, allowed)
        quick = (prepared.status == PREPARED) & (self._tracks.outcomes[at] == _RELEASED)
        quick &= (allowed[:, 0] >= USELESS_BELOW) & (allowed[:, 1] >= USELESS_BELOW)
        slow = np.flatnonzero(~quick)
        some, here = (prepared, at) if not slow.size else (prepared.of(quick), at[quick])
        kept, places = self._policy.tables, self._tracks.places[here]
        signals = self._tracks.signals[here]
        wrong = (signals >= 0) != (self.plan.sight is not None)
        if wrong.any():
            rule = "the signal must stand at each release of a far-sighted plan, and nowhere else"
            raise self._tracks.refusal(int(self._tracks.rows[here[wrong][0]]), rule)
        find_columns(kept, some.chosen, places, signals, some.columns)
        if some.columns.size and some.columns.min() < 0:
            row = int(self._tracks.rows[here[some.columns < 0][0]])
            raise self._tracks.refusal(row, "the output must be one that the channel can release")
        channels = (some.chosen, some.parts, some.blends, some.columns)
        likelihoods(kept, *channels, here, self.told, self.tells)
        charges = some.charges.copy()
        self._arrays.inform(some)
        moved = streams if not slow.size else streams[quick]
        self._ledgers.charge(moved, charges, self.plan.width)
        self._arrays.advance(moved)
        self._last[moved] = places
        for row in slow.tolist():
            self._alone_seen(int(streams[row]), int(at[row]))

    def _alone_seen(self, stream: int, at: int) -> None:
        """A moment that the loops do not cover."""
        state, labels = self._state(stream), self.plan.model.alphabet.labels
        place, outcome = int(self._tracks.places[at]), OUTCOMES[int(self._tracks.outcomes[at])]
        signal = int(self._tracks.signals[at])
        try:
            design = self.plan.prepare(state, 1) if outcome is Outcome.RELEASED else None
            if design is not None and not design.design.channel.is_constant:
                left = output_of(design, np.array([place]), signal)
                if left is not None:
                    self.told[at], self.tells[at] = design.design.channel.likelihood(left), True
            seen = None if place < 0 else labels[place]
            _, following = self.plan.observe(state, [seen], outcome, None if signal < 0 else signal)
        except InvalidParameter as problem:
            rule = f"the {problem.name} must {problem.rule}"
            raise self._tracks.refusal(int(self._tracks.rows[at]), rule) from None
        self._put(stream, following)
