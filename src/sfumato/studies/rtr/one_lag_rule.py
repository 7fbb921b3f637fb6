r"""The published rule, for many weights and runs together, with what its experiments vary.

$$x_t = (1 - w_t)\,\hat z_t(x_{t-1}) + w_t z_t + n_t$$

The product has this rule as `one_lag()`; here the parameters may also be known, as in Figure 10,
and the learnt correlation may be limited: as printed it has no limit, and where it exceeds 1 a
release runs away from the series.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats


@dataclass(frozen=True, slots=True)
class Known:
    """A process of first order that is known."""

    mean: float
    variance: float
    correlation: float


@dataclass(frozen=True, slots=True)
class Rule:
    """The published rule at some weights.

    Attributes:
        weights: Time by rule, or one row for all times.
        limit: The most that a learnt correlation may be; the paper has no limit.
        known: Parameters, if they need not be learnt.
    """

    weights: Floats
    limit: float = math.inf
    known: Known | None = None

    def noise(self, ratio: float, length: int, sensitivity: float = 1.0) -> Floats:
        """Deviation of the noise of each rule, all steps together keeping a ratio."""
        squares = np.square(np.broadcast_to(self.weights, (length, self.weights.shape[-1])))
        return np.asarray(sensitivity * np.sqrt(squares.sum(axis=0)) / ratio)

    def released(self, values: Floats, noise: Floats, normals: Floats) -> Floats:
        """What leaves: time by rule by run.

        Args:
            values: The series; one for all runs, or time by run.
            noise: Deviation of the noise of each rule.
            normals: Standard normal draws, time by run, the same for all rules.
        """
        length, runs = normals.shape
        count = self.weights.shape[-1]
        weights = np.broadcast_to(self.weights, (length, count))
        truth = np.broadcast_to(values.reshape(length, -1), (length, runs))
        found = np.empty((length, count, runs))
        learnt = Learnt(np.square(noise)[:, None], self.limit, (count, runs))
        for time in range(length):
            weight = weights[time][:, None]
            new = weight * truth[time] + noise[:, None] * normals[time]
            if time == 0:
                # As the product: nothing is known, so the first measurement leaves as it is.
                released = new / weight
            elif self.known is not None:
                released = (1 - weight) * _known(self.known, learnt.noise, found[time - 1]) + new
            else:
                released = (1 - weight) * learnt.estimate() + new
            found[time] = released
            learnt.add(released)
        return found


def _known(process: Known, noise: Floats, last: Floats) -> Floats:
    slope = process.correlation * process.variance / (process.variance + noise)
    return np.asarray(process.mean + slope * (last - process.mean))


class Learnt:
    """Algorithm 1: moments of the releases so far, about the first one."""

    def __init__(self, noise: Floats, limit: float, shape: tuple[int, int]) -> None:
        self.noise, self.limit, self.count = noise, limit, 0
        self.start, self.last = np.zeros(shape), np.zeros(shape)
        self.total, self.squares, self.products = (np.zeros(shape) for _ in range(3))

    def add(self, released: Floats) -> None:
        """One more release."""
        if self.count == 0:
            self.start = released.copy()
        away = released - self.start
        self.count += 1
        self.total += away
        self.squares += away * away
        self.products += self.last * away
        self.last = away

    def estimate(self) -> Floats:
        """Of the next value."""
        count = self.count
        if count < 3:
            return self.start + self.last
        mean = self.total / count
        spread = self.squares - count * mean * mean
        signal = np.maximum(spread / (count - 1) - self.noise, 0.0)
        linked = self.products - mean * (2 * self.total - self.last) + (count - 1) * mean * mean
        inner = spread - (self.last - mean) ** 2
        rho = np.divide(linked, inner, out=np.zeros_like(inner), where=inner > 0)
        rho = np.minimum(np.where(inner > 0, rho + 1 / count, 0.0), self.limit)
        whole = signal + self.noise
        slope = np.divide(rho * signal, whole, out=np.zeros_like(whole), where=whole > 0)
        return np.asarray(self.start + mean + slope * (self.last - mean))


def mean_squares(released: Floats, values: Floats) -> Floats:
    """Mean squared error of each rule and run."""
    length = released.shape[0]
    return np.asarray(np.square(released - values.reshape(length, 1, -1)).mean(axis=0))
