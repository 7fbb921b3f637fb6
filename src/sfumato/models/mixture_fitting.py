"""Mixtures of normals by expectation maximisation, summed in a fixed order.

Weights, means and covariances are part of fingerprints and certificates, so nothing is left to a
library that sums in an order of its own: neither these steps nor the groups they begin with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log
from sfumato.core.portable_products import root
from sfumato.models.first_groups import first_groups

# As scikit-learn has them: starts, steps at most, and the gain of likelihood that is none.
_STARTS, _STEPS, _GAIN = 2, 1000, 1e-3
_NEVER_EMPTY = 10 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True, eq=False)
class FittedMixture:
    """Weights, means and covariances of the components, and how likely they make a record."""

    weights: Floats
    means: Floats
    covariances: Floats
    likelihood: float
    records: int

    @property
    def bic(self) -> float:
        """Schwarz's criterion: the less the better."""
        count, size = self.means.shape
        free = count * size * (size + 1) // 2 + count * size + count - 1
        rows = float(self.records)
        return float(-2 * self.likelihood * rows + free * portable.log(rows))


def fitted_mixture(scaled: Floats, components: int, least: float) -> FittedMixture:
    """The better of two starts, for records of unit deviation, one a row.

    Args:
        scaled: The records.
        components: How many.
        least: Added to every variance: no component is narrower.
    """
    records = np.ascontiguousarray(scaled)
    coins = np.random.RandomState(0)
    best: FittedMixture | None = None
    for _ in range(_STARTS):
        shares = np.eye(components)[first_groups(records, components, coins)]
        weights, means, covariances, likelihood = _maximised(records, shares, least)
        if best is None or likelihood > best.likelihood:
            best = FittedMixture(weights, means, covariances, likelihood, len(records))
    assert best is not None
    return best


@njit(cache=True)
def _maximised(
    records: Floats, shares: Floats, least: float
) -> tuple[Floats, Floats, Floats, float]:
    weights, means, covariances = _gathered(records, shares, least)
    before = -np.inf
    for _ in range(_STEPS):
        likelihood = _shared(records, weights, means, covariances, shares)
        weights, means, covariances = _gathered(records, shares, least)
        if abs(likelihood - before) < _GAIN:
            break
        before = likelihood
    return weights, means, covariances, _shared(records, weights, means, covariances, shares)


@njit(cache=True)
def _gathered(records: Floats, shares: Floats, least: float) -> tuple[Floats, Floats, Floats]:
    """Weights, means and covariances of components that have shares of the records."""
    rows, size = records.shape
    count = shares.shape[1]
    totals, means = np.full(count, _NEVER_EMPTY), np.zeros((count, size))
    covariances = np.zeros((count, size, size))
    for row in range(rows):
        for part in range(count):
            totals[part] += shares[row, part]
            for axis in range(size):
                means[part, axis] += shares[row, part] * records[row, axis]
    for part in range(count):
        means[part] /= totals[part]
    off = np.empty(size)
    for row in range(rows):
        for part in range(count):
            for axis in range(size):
                off[axis] = records[row, axis] - means[part, axis]
            for axis in range(size):
                for other in range(axis + 1):
                    more = shares[row, part] * off[axis] * off[other]
                    covariances[part, axis, other] += more
    for part in range(count):
        for axis in range(size):
            for other in range(axis + 1):
                covariances[part, axis, other] /= totals[part]
                covariances[part, other, axis] = covariances[part, axis, other]
            covariances[part, axis, axis] += least
    return totals / totals.sum(), means, covariances


@njit(cache=True)
def _shared(
    records: Floats, weights: Floats, means: Floats, covariances: Floats, shares: Floats
) -> float:
    """Mean log density of the records; the shares of the components in each are written down."""
    rows, size = records.shape
    count = weights.size
    roots, heights = np.empty((count, size, size)), np.empty(count)
    for part in range(count):
        roots[part] = root(covariances[part])
        heights[part] = log(weights[part]) - 0.5 * size * log(2 * math.pi)
        for axis in range(size):
            heights[part] -= log(roots[part, axis, axis])
    logs, white, total = np.empty(count), np.empty(size), 0.0
    for row in range(rows):
        highest = -np.inf
        for part in range(count):
            squared = 0.0
            for axis in range(size):
                left = records[row, axis] - means[part, axis]
                for other in range(axis):
                    left -= roots[part, axis, other] * white[other]
                white[axis] = left / roots[part, axis, axis]
                squared += white[axis] * white[axis]
            logs[part] = heights[part] - 0.5 * squared
            highest = max(highest, logs[part])
        whole = 0.0
        for part in range(count):
            shares[row, part] = exp(logs[part] - highest)
            whole += shares[row, part]
        for part in range(count):
            shares[row, part] /= whole
        total += highest + log(whole)
    return float(total / rows)
