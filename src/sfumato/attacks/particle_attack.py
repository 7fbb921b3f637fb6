"""Reconstruction of a series by particles: noise of any shape, weighed as it is.

The smoother of `sfumato.attacks.series_attack` is the best there is for normal noise. For Laplace
noise it is only the best linear one. Here many guesses at the series go forward together; each is
as likely as its distance from the measurement is under the noise, and unlikely ones give way to
likely ones. A value is judged when some more have left.

References:
    [Gordon1993]
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from sfumato.attacks.series_attack import SeriesAttack, seen_values
from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.realtime import Realtime
from sfumato.series.series_smoother import noise_variances

_LAG = 24
"""Values that must have left before one is judged: later ones tell hardly more of it."""


def reconstruct_by_particles(
    measured: Sequence[float | None] | ArrayLike,
    noise: Realtime | ArrayLike,
    process: Autoregressive,
    *,
    particles: int = 2000,
    seed: int = 0,
) -> SeriesAttack:
    """Infer every value of a series whose process is known, with noise of the shape it has.

    Args:
        measured: What left; None or not a number where nothing was measured.
        noise: The method that released it; or the variance of normal noise: one, or one for each
            time.
        process: How values move.
        particles: How many guesses go forward.
        seed: Of their moves.

    Examples:
        >>> moving = Autoregressive(10.0, [0.8], 1.0)
        >>> found = reconstruct_by_particles([9.0, 12.0, None, 11.0], 4.0, moving)
        >>> bool(np.abs(found.values - [10.16, 10.56, 10.54, 10.54]).max() < 0.15)
        True
    """
    checks.count("particles", particles, at_least=10)
    seen = seen_values(measured)
    variances, laplace = noise_variances(noise, len(seen)), _are_laplace(noise, len(seen))
    coins, order = np.random.default_rng(seed), process.order
    past = _begun(process, particles, coins)
    # The last values of every particle, the latest last: what is resampled goes together.
    kept = np.empty((particles, 0))
    weights = np.full(particles, 1 / particles)
    values, errors = np.empty(len(seen)), np.empty(len(seen))
    for time, value in enumerate(seen):
        fresh = past @ np.array(process.coefficients)
        fresh = fresh + np.sqrt(process.innovation) * coins.normal(size=particles)
        if time == 0:
            fresh = past[:, 0]
        else:
            past = np.column_stack([fresh, past[:, : order - 1]])
        kept = np.column_stack([kept[:, -_LAG:], fresh])
        if np.isfinite(value):
            off = value - process.mean - fresh
            weights = weights * _chances(off, variances.item(time), laplace.item(time))
            weights /= weights.sum()
        if time >= _LAG:
            judged = time - _LAG
            values[judged], errors[judged] = _moments(kept[:, 0], weights)
        if 1 / np.square(weights).sum() < particles / 2:
            chosen = _resampled(weights, coins)
            past, kept = past[chosen], kept[chosen]
            weights = np.full(particles, 1 / particles)
    for back in range(min(_LAG, len(seen))):
        place = len(seen) - 1 - back
        values[place], errors[place] = _moments(kept[:, -1 - back], weights)
    return SeriesAttack(seen, values + process.mean, errors)


def _begun(process: Autoregressive, particles: int, coins: np.random.Generator) -> Floats:
    """The last values before the first one, as the process has them in the long run."""
    spread = linalg.toeplitz(process.leading[:-1])
    return coins.multivariate_normal(np.zeros(len(spread)), spread, particles, method="cholesky")


def _are_laplace(noise: Realtime | ArrayLike, length: int) -> Bools:
    if not isinstance(noise, Realtime):
        return np.zeros(length, dtype=np.bool_)
    return np.array([isinstance(one, LaplaceNoise) for one in noise.noises[:length]])


def _chances(off: Floats, variance: float, laplace: bool) -> Floats:
    """How likely each distance is, up to a factor; the nearest particle is never impossible."""
    logs: Floats = np.asarray(-np.square(off) / (2 * variance))
    if laplace:
        logs = np.asarray(-np.abs(off) / math.sqrt(variance / 2))
    return np.asarray(np.exp(logs - logs.max()))


def _moments(values: Floats, weights: Floats) -> tuple[float, float]:
    mean = float(weights @ values)
    return mean, math.sqrt(max(float(weights @ np.square(values - mean)), 0.0))


def _resampled(weights: Floats, coins: np.random.Generator) -> Ints:
    """As many as before, each as often as it is likely: evenly spaced, with one coin for all."""
    points = (np.arange(len(weights)) + coins.random()) / len(weights)
    return np.minimum(np.searchsorted(np.cumsum(weights), points), len(weights) - 1)
