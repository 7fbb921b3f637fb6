"""Linear estimation of a noisy series by brute force. Slow and obvious."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def impulse_response(coefficients: Sequence[float], steps: int) -> list[float]:
    """What one unit of innovation is worth 0, 1, 2, ... steps later."""
    worth = [1.0]
    for step in range(1, steps):
        recent = zip(
            coefficients, reversed(worth[max(0, step - len(coefficients)) :]), strict=False
        )
        worth.append(sum(weight * value for weight, value in recent))
    return worth


def autocovariances(
    coefficients: Sequence[float], innovation: float, most: int, steps: int = 20_000
) -> Floats:
    """From the series as a sum over all its innovations."""
    worth = np.array(impulse_response(coefficients, steps + most))
    return innovation * np.array([worth[:steps] @ worth[lag : steps + lag] for lag in range(most)])


def covariance(coefficients: Sequence[float], innovation: float, length: int) -> Floats:
    """Covariance matrix of `length` successive values."""
    known = autocovariances(coefficients, innovation, length)
    return np.array([[known[abs(i - j)] for j in range(length)] for i in range(length)])


def conditional(joint: Floats, target: int, observed: Sequence[int], noise: float) -> Floats:
    """Weights of the observed values and, last, the variance of the target that they leave.

    One after the other, as in a table: each observation is a rank-one update of the joint normal
    distribution of all values, so that no linear system is solved.
    """
    size = len(joint)
    left = joint.copy()
    # Row i: what the estimate of value i is, as a combination of the observations.
    means = np.zeros((size, len(observed)))
    for number, place in enumerate(observed):
        surprise = -means[place]
        surprise[number] += 1.0
        gain = left[:, place] / (left[place, place] + noise)
        means = means + np.outer(gain, surprise)
        left = left - np.outer(gain, left[place])
    return np.append(means[target], left[target, target])


def riccati(coefficients: Sequence[float], innovation: float, noise: float) -> float:
    """Error of the filter after so many steps that it no longer changes."""
    order = len(coefficients)
    transition = np.vstack([np.array(coefficients, dtype=float), np.eye(order)[:-1]])
    driving = np.zeros((order, order))
    driving[0, 0] = innovation
    posterior = np.zeros((order, order))
    for _ in range(1_000_000):
        prior = transition @ posterior @ transition.T + driving
        gain = prior[:, 0] / (prior[0, 0] + noise)
        before, posterior = posterior, prior - np.outer(gain, prior[0])
        if np.abs(posterior - before).max() <= 1e-15 * np.abs(posterior).max():
            return float(posterior[0, 0])
    raise AssertionError("the filter did not settle")
