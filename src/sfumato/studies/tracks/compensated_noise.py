r"""Each perturbation makes up for the errors of the earlier ones: CAPP, on the coordinates.

A coordinate $x_t$ in $[0, 1]$ is shifted by the sum $D$ of all that earlier reports were off by,
clipped to $[l, u]$, and perturbed by the square wave mechanism; reports are averaged over the last
few. $D$ depends on the true past, so an observer must follow whole paths: with particles here, each
of which weighs as much as it explains of the reports. Both coordinates share what a value may
leak. Under any chain its leakage is at most that of its perturbations, which is all that is known:
no channel of its own follows from public things.

References:
    [Du2025, Sec. 4], [Li2020, Sec. 5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.studies.tracks.track_runs import Followed, TrackWorld

_PARTICLES = 600


@dataclass(frozen=True, slots=True)
class SquareWave:
    """Reports near the input are `e^epsilon` times as likely as others.

    Attributes:
        epsilon: Leakage whatever is believed.

    Examples:
        >>> wave = SquareWave(1.0)
        >>> round(wave.half_width, 4)
        0.2561
        >>> inputs = np.zeros(10_000)
        >>> reports = wave.perturbed(inputs, np.random.default_rng(1))
        >>> bool((np.abs(reports) <= wave.half_width).mean() > 0.5)
        True
    """

    epsilon: float

    @property
    def half_width(self) -> float:
        """How far from the input a report is still near."""
        grown = math.exp(self.epsilon)
        return (self.epsilon * grown - grown + 1) / (2 * grown * (grown - 1 - self.epsilon))

    def perturbed(self, inputs: Floats, rng: np.random.Generator) -> Floats:
        """Reports for inputs in [0, 1].

        Args:
            inputs: Any shape.
            rng: Coins of a simulation.
        """
        width = self.half_width
        near = 2 * width * math.exp(self.epsilon)
        inside = rng.random(inputs.shape) < near / (near + 1)
        around = inputs + width * (2 * rng.random(inputs.shape) - 1)
        # Beside the near interval lies a length of 1 in all, on its left and on its right.
        beside = rng.random(inputs.shape)
        outside = np.where(beside < inputs, beside - width, beside + width)
        return np.where(inside, around, outside)

    def log_likelihood(self, reports: Floats, inputs: Floats) -> Floats:
        """Logarithms of the density, up to a constant.

        Args:
            reports: What left.
            inputs: What may have been perturbed.
        """
        return np.where(np.abs(reports - inputs) <= self.half_width, self.epsilon, 0.0)


@dataclass(frozen=True, slots=True)
class CompensatedNoise:
    """How a track is perturbed.

    Attributes:
        epsilon: Nats of a value, over both coordinates.
        margin: How far beyond [0, 1] a shifted coordinate may lie; below 0: within.
        window: Reports that are averaged.
    """

    epsilon: float
    margin: float
    window: int

    def released(self, coordinates: Floats, rng: np.random.Generator) -> Floats:
        """Reports of one track.

        Args:
            coordinates: In [0, 1], one row a moment.
            rng: Coins of a simulation.
        """
        wave, reports = SquareWave(self.epsilon / 2), np.empty_like(coordinates)
        off = np.zeros(2)
        for moment, place in enumerate(coordinates):
            reports[moment] = self._unscaled(wave.perturbed(self._inputs(place, off), rng))
            off += place - reports[moment]
        return reports

    def beliefs(
        self, first: Floats, moves: Floats, places: Floats, reports: Floats, seed: int
    ) -> tuple[Floats, Floats]:
        """What is believed at each moment, given what left by then, and given all.

        Args:
            first: Belief before the first value.
            moves: From place to place.
            places: Coordinates in [0, 1].
            reports: Of one track.
            seed: Of the particles.
        """
        rng, wave = np.random.default_rng(seed), SquareWave(self.epsilon / 2)
        size, steps = len(places), moves.cumsum(axis=1)
        paths: Ints = np.empty((_PARTICLES, len(reports)), dtype=np.int64)
        now = rng.choice(size, _PARTICLES, p=first / first.sum())
        off, logs = np.zeros((_PARTICLES, 2)), np.zeros(_PARTICLES)
        known = np.empty((len(reports), size))
        for moment, report in enumerate(reports):
            if moment:
                coins = rng.random(_PARTICLES)[:, None]
                now = np.minimum((steps[now] < coins).sum(axis=1), size - 1)
            paths[:, moment] = now
            inputs = self._inputs(places[now], off)
            logs += wave.log_likelihood(self._scaled(report), inputs).sum(axis=1)
            off += places[now] - report
            weights = np.exp(logs - logs.max())
            weights /= weights.sum()
            known[moment] = np.bincount(now, weights, size)
            if (weights**2).sum() * _PARTICLES > 2:
                chosen = rng.choice(_PARTICLES, _PARTICLES, p=weights)
                paths, off, now = paths[chosen], off[chosen], now[chosen]
                logs = np.zeros(_PARTICLES)
        weights = np.exp(logs - logs.max())
        whole = [np.bincount(column, weights, size) / weights.sum() for column in paths.T]
        return known, np.array(whole)

    def averaged(self, reports: Floats) -> Floats:
        """Means of the last few reports.

        Args:
            reports: Of one track.
        """
        starts = np.maximum(np.arange(len(reports)) - self.window + 1, 0)
        return np.array([reports[start : end + 1].mean(axis=0) for end, start in enumerate(starts)])

    def _inputs(self, place: Floats, off: Floats) -> Floats:
        return self._scaled(np.clip(place + off, -self.margin, 1 + self.margin))

    def _scaled(self, numbers: Floats) -> Floats:
        return (numbers + self.margin) / (1 + 2 * self.margin)

    def _unscaled(self, numbers: Floats) -> Floats:
        return numbers * (1 + 2 * self.margin) - self.margin


def follow_compensated(world: TrackWorld, rule: CompensatedNoise, seed: int) -> Followed:
    """Release every track once.

    Args:
        world: Chain, loss and tracks.
        rule: How it is perturbed.
        seed: Of the coins.
    """
    rng = np.random.default_rng(seed)
    moves, losses = world.chain.transition(), world.losses
    first, low = world.chain.first().marginal, world.places.min(axis=0)
    places = (world.places - low) / np.maximum(np.ptp(world.places, axis=0), 1e-12)
    sums = np.zeros((3, len(world.tracks)))
    for row, track in enumerate(world.tracks.tolist()):
        reports = rule.released(places[track], rng)
        known, whole = rule.beliefs(first, moves, places, reports, seed=seed + row)
        shown = ((rule.averaged(reports)[:, None] - places) ** 2).sum(axis=2).argmin(axis=1)
        answers = (shown, (known @ losses).argmin(axis=1), (whole @ losses).argmin(axis=1))
        sums[:, row] = [losses[track, guesses].sum() for guesses in answers]
    leak = np.full(len(world.tracks), rule.epsilon)
    shown_off, guessed, adversary = sums / world.tracks.shape[1]
    return Followed(shown_off, guessed, adversary, leak, leak)
