"""Errors of methods on one series: computed where noise is all of it, else simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.series.filter_banks import learned, seasonal
from sfumato.series.filters import Estimate
from sfumato.series.paper_rule import paper_weight
from sfumato.series.rivals.fast import filter_errors
from sfumato.series.rivals.fourier import orthonormal
from sfumato.series.series_smoother import smooth_series
from sfumato.studies.rtr.one_lag_rule import Rule, mean_squares
from sfumato.studies.rtr.series_points import Budget, Error

WEIGHTS = np.append(np.geomspace(0.01, 0.8, 20), [0.85, 0.9, 0.95, 1.0])[None, :]
"""Constant weights that the published rule may choose from in hindsight."""


# Noise that is all of the error, or a filter whose error is known -------------------------------
#
# Of the noise itself, not of its tables: those end at a budget of 3e-6 for a value, and the paper's
# left plots go on.


def laplace_error(budget: Budget, epsilon: float) -> Error:
    """Of independent Laplace noise at a sum of pure budgets."""
    return Error(math.sqrt(2) * budget.sensitivity * budget.length / epsilon)


def fast_error(values: Floats, budget: Budget, epsilon: float) -> Error:
    """Of FAST without sampling, the variance of its walk the best for this very series."""
    noise = laplace_error(budget, epsilon).root ** 2
    tried = np.geomspace(1e-12, 1e12, 97)
    place = int(filter_errors(values, tried, noise).argmin())
    closer = np.geomspace(tried[max(place - 1, 0)], tried[min(place + 1, tried.size - 1)], 97)
    return Error(math.sqrt(float(filter_errors(values, closer, noise).min())))


def fourier_error(
    values: Floats, budget: Budget, epsilon: float, delay: int | None = None
) -> Error:
    """Of the first noisy Fourier coefficients, as many as are best for this very series.

    Args:
        values: The series.
        budget: Its sensitivity counts.
        epsilon: Pure budget of the whole.
        delay: Values of a block that is transformed by itself; the whole series if not given.
    """
    size = values.size if delay is None else delay
    share = epsilon / -(-values.size // size)
    numbers = np.minimum(2 * np.arange(1, size // 2 + 2) - 1, size)
    # Absolute values of m numbers of one norm sum to sqrt(m) times that norm, at most.
    noise = 2 * numbers * size * (budget.sensitivity / share) ** 2
    return _blocks_error(values, size, numbers, noise)


def gaussian_fourier_error(values: Floats, budget: Budget, delay: int | None = None) -> Error:
    """Of the same with Gaussian noise.

    The transform keeps lengths, so the noise of a coefficient is that of a value: this is the
    series with independent noise, and all high frequencies dropped.
    """
    size = values.size if delay is None else delay
    numbers = np.arange(1, size + 1)
    return _blocks_error(values, size, numbers, np.full(size, budget.deviation**2))


def _blocks_error(values: Floats, size: int, numbers: Ints, noise: Floats) -> Error:
    """Least error of blocks that keep so many numbers, with noise of a variance for each choice."""
    total = np.zeros(numbers.size)
    for start in range(0, values.size, size):
        energy = np.square(orthonormal(values[start : start + size]))
        dropped = np.append(np.cumsum(energy[::-1])[::-1], 0.0)
        kept = np.minimum(numbers, energy.size)
        total += dropped[kept] + kept * noise
    return Error(math.sqrt(float(total.min()) / values.size))


# Simulated --------------------------------------------------------------------------------------


def measured(values: Floats, budget: Budget, runs: int, draw: np.random.Generator) -> Floats:
    """The series with independent Gaussian noise, time by run."""
    return values[:, None] + budget.deviation * draw.standard_normal((values.size, runs))


def filter_error(values: Floats, seen: Floats, budget: Budget, estimate: Estimate) -> Error:
    """Of a filter of measurements with independent Gaussian noise."""
    ones, noise = np.ones(values.size), np.full(values.size, budget.deviation**2)
    found = estimate.begin(seen.shape[1]).update(seen, ones, noise)
    return Error.of_runs(np.square(found - values[:, None]).mean(axis=0))


def bank_error(values: Floats, seen: Floats, budget: Budget) -> Error:
    """Of the product's release: a bank of filters that learns the process."""
    return filter_error(values, seen, budget, learned())


def seasonal_error(
    values: Floats, seen: Floats, budget: Budget, period: int, phases: Sequence[int] | None
) -> Error:
    """Of the same with an offset for every hour or day."""
    return filter_error(values, seen, budget, seasonal(period, phases=phases))


def smoother_error(values: Floats, seen: Floats, budget: Budget) -> Error:
    """Of the completed series, every value from all measurements."""
    squares = [
        float(np.square(smooth_series(run, budget.deviation**2).values - values).mean())
        for run in seen.T
    ]
    return Error.of_runs(np.array(squares))


def rule_errors(
    values: Floats, seen: Floats, budget: Budget, limit: float = math.inf
) -> tuple[Error, Error, float]:
    """The published rule at the weight that its theorems ask for, at its best one, and that one.

    Both weights look at the true series. The best is chosen on the runs that it is judged by.
    """
    asked = paper_weight(values, budget.deviation**2)
    rule = Rule(np.append(WEIGHTS, [[asked]], axis=1), limit)
    noise = rule.noise(budget.ratio, values.size, budget.sensitivity)
    normals = (seen - values[:, None]) / budget.deviation
    squares = mean_squares(rule.released(values, noise, normals), values)
    best = int(squares.mean(axis=1).argmin())
    return (
        Error.of_runs(squares[-1]),
        Error.of_runs(squares[best]),
        float(rule.weights[0, best]),
    )


def check_runs(runs: int) -> int:
    """At least two, so that there is a standard error."""
    if runs < 2:
        raise InvalidParameter("runs", runs, "be at least 2")
    return runs
