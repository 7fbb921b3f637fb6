r"""Clustering geo-indistinguishability: one noisy report for all that stays near a true centre.

While the truth stays within a radius of the place where the last report was made, that report is
repeated to the digit; once it leaves, a fresh one is made there. A repetition so *excludes* every
place that lies further from the centre, and a fresh report every place that lies nearer: no bound
on any ratio holds, whatever the noise. What an observer believes is a joint distribution of place
and centre, followed exactly here.

References:
    [Cunha2019, Sec. 3]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Bools, Floats
from sfumato.studies.tracks.track_runs import Followed, TrackWorld


@dataclass(frozen=True, slots=True, eq=False)
class ClusteredReports:
    """A channel for fresh reports, and which places are near which centre.

    Attributes:
        channel: Chances of every report, given the true place.
        near: Whether a place (row) is near a centre (column).
    """

    channel: Floats
    near: Bools

    def released(self, track: Sequence[int], rng: np.random.Generator) -> list[int | None]:
        """Fresh reports; None where the last one is repeated.

        Args:
            track: True places.
            rng: Coins of a simulation.
        """
        centre: int | None = None
        told: list[int | None] = []
        for place in track:
            if centre is not None and self.near[place, centre]:
                told.append(None)
                continue
            centre = place
            told.append(int(rng.choice(len(self.channel), p=self.channel[place])))
        return told

    def filtered(self, first: Floats, moves: Floats, told: Sequence[int | None]) -> list[Floats]:
        """Beliefs about (place, centre) at each moment, given what left by then.

        Args:
            first: Belief before the first value.
            moves: From place to place.
            told: What `released` returned.
        """
        assert told[0] is not None
        joint = np.diag(first * self.channel[:, told[0]])
        found = [joint / joint.sum()]
        for report in told[1:]:
            moved = moves.T @ found[-1]
            if report is None:
                joint = np.where(self.near, moved, 0.0)
            else:
                fresh = np.where(self.near, 0.0, moved).sum(axis=1)
                joint = np.diag(fresh * self.channel[:, report])
            found.append(joint / joint.sum())
        return found

    def smoothed(
        self, moves: Floats, told: Sequence[int | None], filtered: Sequence[Floats]
    ) -> Floats:
        """Beliefs about the place at each moment, given all that left.

        Args:
            moves: From place to place.
            told: What `released` returned.
            filtered: What `filtered` returned.
        """
        later = np.ones_like(self.channel)
        found = [filtered[-1].sum(axis=1)]
        for moment in range(len(told) - 2, -1, -1):
            report = told[moment + 1]
            if report is None:
                ahead = np.where(self.near, later, 0.0)
            else:
                fresh = self.channel[:, report] * later.diagonal()
                ahead = np.where(self.near, 0.0, fresh[:, None])
            later = moves @ ahead
            later /= later.max()
            joint = filtered[moment] * later
            found.append(joint.sum(axis=1) / joint.sum())
        return np.array(found[::-1])


def follow_clustered(world: TrackWorld, rule: ClusteredReports, seed: int) -> Followed:
    """Release every track once; its leakage has no bound.

    Args:
        world: Chain, loss and tracks.
        rule: Noise and radius.
        seed: Of the coins.
    """
    rng = np.random.default_rng(seed)
    moves, losses = world.chain.transition(), world.losses
    first = world.chain.first().marginal
    sums = np.zeros((3, len(world.tracks)))
    for row, track in enumerate(world.tracks.tolist()):
        told = rule.released(track, rng)
        known = rule.filtered(first, moves, told)
        guesses = (np.array([joint.sum(axis=1) for joint in known]) @ losses).argmin(axis=1)
        wise = (rule.smoothed(moves, told, known) @ losses).argmin(axis=1)
        shown = _repeated(told)
        sums[:, row] = [losses[track, answers].sum() for answers in (shown, guesses, wise)]
    unbounded = np.full(len(world.tracks), np.inf)
    shown_off, guessed, adversary = sums / world.tracks.shape[1]
    return Followed(shown_off, guessed, adversary, unbounded, unbounded)


def _repeated(told: Sequence[int | None]) -> list[int]:
    shown: list[int] = []
    for report in told:
        shown.append(shown[-1] if report is None else report)
    return shown
