"""What is expected of the error of a released series, and of a constant: from public things."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats

_SURE = 2.0
"""Standard errors beyond which an expectation is refuted."""


@dataclass(frozen=True, slots=True)
class Risk:
    """What is expected of estimates; a function of what is released.

    Attributes:
        error: Root of the mean squared error that is expected of them.
        silence: The same of the best constant: how far the series varies, from the variance of
            the measurements less that of their noise.
        least: The same less two standard errors; 0 where the series may be constant.
    """

    error: float
    silence: float
    least: float

    @property
    def doubtful(self) -> bool:
        """Whether a constant may be as near to the series as the estimates are."""
        return self.error >= self.least


def believed(expected: float, shown: float, noise: float, count: float) -> float:
    r"""The mean squared error of estimates that is to be told: their own, unless it is refuted.

    A filter knows its error if the series moves as it says. Whatever the series is, measurements
    $y = z + n$ with normal noise show the error of an estimate $e(y)$ without bias [Stein]:

    $$E (e - z)^2 = E \left[ (e - y)^2 - v + 2 v \frac{de}{dy} \right]$$

    where $v$ is the variance of the noise. That is less precise, so it counts where the filter's
    own is farther off than chance explains.

    Args:
        expected: What the estimates expect of themselves.
        shown: What measurements show.
        noise: Mean variance of their noise.
        count: Number of measurements.

    Examples:
        >>> believed(1.0, 1.1, 4.0, 400), believed(1.0, 3.0, 4.0, 400)
        (1.0, 3.0)
    """
    unsure = math.sqrt((2 * noise + 4 * max(shown, expected)) * noise / count)
    return expected if abs(shown - expected) <= _SURE * unsure else max(shown, 0.0)


def risk_of_sums(squared: float, count: float, total: float, squares: float, noises: float) -> Risk:
    """The risk of estimates, and of a constant as measurements show it.

    Args:
        squared: Mean squared error that is expected of the estimates.
        count: Number of measurements.
        total: Their sum, about any number.
        squares: The sum of their squares, about the same.
        noises: The sum of the variances of their noise.

    Examples:
        >>> risk_of_sums(1.0, 100, 0.0, 1000.0, 100.0)
        Risk(error=1.0, silence=3.00..., least=2.8...)
    """
    noise = noises / count
    varies = max(squares / count - (total / count) ** 2 - noise * (1 - 1 / count), 0.0)
    # Standard error of the sample variance of values that are fixed, with normal noise.
    unsure = math.sqrt((2 * noise + 4 * varies) * noise / count)
    least = math.sqrt(max(varies - 2 * unsure, 0.0))
    return Risk(math.sqrt(squared), math.sqrt(varies), least)


def measured_risk(released: Sequence[float | None], variances: Floats) -> Risk | None:
    """The risk of values that are their own measurements, with noise of known variances."""
    pairs = [
        (value, variance)
        for value, variance in zip(released, variances.tolist(), strict=False)
        if value is not None and math.isfinite(variance)
    ]
    if not pairs:
        return None
    values, noises = np.array(pairs).T
    away = values - values[0]
    sums = (float(away.sum()), float(portable.dot(away, away)), float(noises.sum()))
    return risk_of_sums(float(noises.mean()), len(pairs), *sums)
