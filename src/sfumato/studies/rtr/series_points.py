"""Budgets of a whole series, and the numbers that the studies of series measure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.noise.curves import gaussian_epsilon, gaussian_ratio
from sfumato.studies.rtr.laplace_curve import laplace_share

DELTA = 1e-7
"""That of the paper."""


@dataclass(frozen=True)
class Budget:
    """What a person who may be in every value of a series is promised.

    Attributes:
        epsilon: Of the whole series.
        length: Values of the series.
        sensitivity: The most that the person can change any value.
        delta: Of the whole series.

    Examples:
        >>> budget = Budget(1.0, 100)
        >>> round(budget.deviation, 1), round(budget.paper_epsilon, 2)
        (46.8, 1.24)
        >>> budget.matched_epsilon > budget.exact_epsilon > budget.epsilon
        True
    """

    epsilon: float
    length: int
    sensitivity: float = 1.0
    delta: float = DELTA

    @classmethod
    def with_noise(cls, deviation: float, length: int, sensitivity: float = 1.0) -> Budget:
        """The budget of independent Gaussian noise of a deviation."""
        ratio = sensitivity * math.sqrt(length) / deviation
        return cls(gaussian_epsilon(ratio, DELTA), length, sensitivity)

    @cached_property
    def ratio(self) -> float:
        """Sensitivity over deviation of all measurements together, by the exact curve."""
        return gaussian_ratio(self.epsilon, self.delta)

    @property
    def deviation(self) -> float:
        """Of independent Gaussian noise on every value."""
        return self.sensitivity * math.sqrt(self.length) / self.ratio

    @property
    def paper_epsilon(self) -> float:
        """What Theorem 5.1 says of the same noise."""
        half = self.ratio**2 / 2
        return 2 * math.sqrt(half * math.log(1 / self.delta)) + half

    @property
    def matched_epsilon(self) -> float:
        """Sum of the pure budgets of Laplace noise with the variance of the Gaussian noise."""
        return self.length * self.sensitivity * math.sqrt(2) / self.deviation

    @property
    def exact_epsilon(self) -> float:
        """Sum of the pure budgets of Laplace noise that keeps this budget by its exact curve."""
        return self.length * laplace_share(self.epsilon, self.delta, self.length)


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """One method at one setting.

    Attributes:
        figure: Number in the paper.
        panel: Which of its plots.
        series: That was released.
        method: That released it.
        x: Where the point stands: see the study.
        error: Root mean squared error.
        spread: Standard error of that over runs; 0 where the error is computed, not simulated.
        silence: Root mean squared error of the best constant.
        paper_error: The paper's relative error, which falls with the length of the series.
        epsilon: Of the whole series, at `delta`, for a person who may be in every value.
        delta: 0 for pure methods.
    """

    figure: str
    panel: str
    series: str
    method: str
    x: float
    error: float
    spread: float
    silence: float
    paper_error: float
    epsilon: float
    delta: float

    @property
    def of_silence(self) -> float:
        """The error in parts of that of a constant."""
        return self.error / self.silence


@dataclass(frozen=True, slots=True)
class Error:
    """Root mean squared error, and its standard error over runs."""

    root: float
    spread: float = 0.0

    @classmethod
    def of_runs(cls, squares: Floats) -> Error:
        """From the mean squared error of each run.

        Examples:
            >>> Error.of_runs(np.array([4.0, 4.0]))
            Error(root=2.0, spread=0.0)
        """
        root = math.sqrt(float(squares.mean()))
        if squares.size < 2 or not root:
            return cls(root)
        return cls(root, float(squares.std(ddof=1)) / math.sqrt(squares.size) / (2 * root))


def paper_error(error: float, values: Floats) -> float:
    """The paper's relative error: the norm of all errors over length and largest value."""
    return error / (math.sqrt(values.size) * float(np.abs(values).max()))
