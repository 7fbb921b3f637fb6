r"""The published rule with a private weight: whoever knows the noise finds the weight out.

The paper releases $x_t = (1 - w)\,\hat z_t + w z_t + n_t$ and says that an attacker who does not
know $w$ cannot use the hidden Markov model of true values and releases. But $\hat z_t$ is a
function of earlier releases and the noise is public, so for each weight the measurement
$\hat z_t + (x_t - \hat z_t) / w$ and its noise are known, and with them how likely all that left
is. Weights are averaged by that.

References:
    [RTR, Sec. 7]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from sfumato.attacks.series_attack import SeriesAttack, autocovariances, reconstruct_series
from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import InvalidParameter
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filters import Estimate, one_lag

_WEIGHTS = np.round(np.geomspace(0.02, 1.0, 40), 6)
"""Weights that are tried if no others are given."""
_LONGEST = 1000
"""Values whose covariances are factorised for every weight."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightAttack:
    """What an attacker makes of a series that was released with a private weight.

    Attributes:
        weights: Those that were tried.
        chances: How likely each is, given all that left.
        series: His estimates of all values, averaged over the weights.

    Examples:
        >>> series = SeriesAttack(np.ones(2), np.ones(2), np.ones(2))
        >>> WeightAttack(np.array([0.25, 0.75]), np.array([0.2, 0.8]), series).weight
        0.75
    """

    weights: Floats
    chances: Floats
    series: SeriesAttack

    @property
    def weight(self) -> float:
        """The likeliest weight."""
        return float(self.weights[self.chances.argmax()])


def reconstruct_private_weight(
    released: Sequence[float],
    noise: float,
    process: Autoregressive,
    *,
    weights: ArrayLike | None = None,
    estimate: Estimate | None = None,
) -> WeightAttack:
    """Infer a private weight, and every value, from what the published rule released.

    Args:
        released: What left.
        noise: Variance of the noise of a release, which is public.
        process: How values move.
        weights: To be tried, in (0, 1].
        estimate: The rule that predicts a value from earlier releases; the paper's if not given.

    Examples:
        >>> from sfumato.core.purpose import Purpose
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.series.realtime import Realtime
        >>> moving, rng = Autoregressive(20.0, [0.9], 1.0), np.random.default_rng(1)
        >>> true = [20.0]
        >>> for _ in range(199):
        ...     true.append(20 + 0.9 * (true[-1] - 20) + rng.normal())
        >>> asked = {"epsilon": 20.0, "delta": 1e-6, "length": 200, "weight": 0.3}
        >>> method = Realtime.gaussian(1.0, **asked, estimate=one_lag())
        >>> left = method.release(np.array(true), seeded(1), Purpose.SIMULATION)
        >>> noise = 0.3**2 * method.variances[0]
        >>> found = reconstruct_private_weight(left.tolist(), noise, moving)
        >>> bool(0.2 < found.weight < 0.45)
        True

    References:
        [RTR, Sec. 7]
    """
    left = checks.numbers("released", released)
    if left.ndim != 1 or not 1 <= left.size <= _LONGEST:
        raise InvalidParameter("released", left.shape, f"be 1 to {_LONGEST:,} values")
    checks.positive("noise", noise)
    tried = _WEIGHTS if weights is None else checks.numbers("weights", weights).ravel()
    if not (tried.size and np.all((tried > 0) & (tried <= 1))):
        raise InvalidParameter("weights", tried.shape, "be some, each in (0, 1]")
    predicted, blended = _predictions(left, noise, estimate or one_lag())
    spread = linalg.toeplitz(autocovariances(process, left.size))
    found = []
    for weight in tried.tolist():
        shares = np.where(blended, weight, 1.0)
        measured = predicted + (left - predicted) / shares
        found.append((measured, noise / np.square(shares)))
    scores = np.array(
        [_log_chance(measured - process.mean, spread, noises) for measured, noises in found]
    )
    # A density of releases is one of measurements over the weights.
    scores -= blended.sum() * np.log(tried)
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    return WeightAttack(tried, chances, _averaged(left, found, chances, process))


def _averaged(
    left: Floats, found: list[tuple[Floats, Floats]], chances: Floats, process: Autoregressive
) -> SeriesAttack:
    likely = np.flatnonzero(chances > 1e-6)
    each = [reconstruct_series(*found[place], process=process) for place in likely.tolist()]
    shares = chances[likely] / chances[likely].sum()
    values = sum(share * one.values for share, one in zip(shares, each, strict=True))
    squares = [np.square(one.errors) + np.square(one.values - values) for one in each]
    spread = sum(share * square for share, square in zip(shares, squares, strict=True))
    return SeriesAttack(left, np.asarray(values), np.sqrt(spread))


def _predictions(left: Floats, noise: float, estimate: Estimate) -> tuple[Floats, Bools]:
    """What the rule predicts before each release, and whether the release blends it in."""
    running, half = estimate.begin(1), 0.5
    predicted, blended = np.empty(left.size), np.zeros(left.size, dtype=np.bool_)
    for time, value in enumerate(left.tolist()):
        at_zero, at_one = (deepcopy(running).one(m, half, noise / half**2) for m in (0.0, 1.0))
        blended[time] = math.isclose(at_one - at_zero, half, abs_tol=1e-6)
        predicted[time] = at_zero / half if blended[time] else value
        measured = predicted[time] + (value - predicted[time]) / half if blended[time] else value
        running.one(measured, half, noise / half**2)
    return predicted, blended


def _log_chance(off: Floats, spread: Floats, noises: Floats) -> float:
    """Log density of measurements, up to a constant."""
    factor = linalg.cholesky(spread + np.diag(noises), lower=True)
    scaled = linalg.solve_triangular(factor, off, lower=True)
    return float(-0.5 * scaled @ scaled - np.log(np.diag(factor)).sum())
