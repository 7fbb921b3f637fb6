"""Bounds as the paper has them: valid, and looser than the curves that are used."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.noise.binomial_noise import BinomialNoise


def paper_epsilon(squares: float, delta: float) -> float:
    r"""The bound of the paper for $\sum_t (w_t \Delta/\sigma)^2$: valid, and looser than the curve.

    Examples:
        >>> paper_epsilon(1.0, 1e-5)
        5.2985

    References:
        [RTR, Thm. 5.1]
    """
    half = 0.5 * checks.finite("squares", squares)
    return 2 * math.sqrt(half * math.log(1 / checks.proper_fraction("delta", delta))) + half


def paper_delta(squares: float, epsilon: float) -> float:
    r"""The same bound solved for delta, for $\epsilon \ge \frac12 \sum_t (w_t\Delta/\sigma)^2$.

    References:
        [RTR, Thm. 5.1]
    """
    total, level = checks.positive("squares", squares), checks.positive("epsilon", epsilon)
    if level < 0.5 * total:
        return 1.0
    return math.exp((total / 4 - level / 2) * (level / total - 0.5))


def paper_deviation(weights: ArrayLike, sensitivity: float, epsilon: float, delta: float) -> float:
    """The noise that the paper asks for.

    Examples:
        >>> paper_deviation([1.0], 1.0, 1.0, 1e-5)
        4.90055

    References:
        [RTR, Cor. 5.2]
    """
    squares = float(np.square(checks.numbers("weights", weights)).sum())
    level, tail = checks.positive("epsilon", epsilon), math.log(1 / delta)
    room = 2 * level + 4 * tail - 4 * math.sqrt(tail**2 + level * tail)
    return checks.positive("sensitivity", sensitivity) * math.sqrt(squares / room)


def paper_binomial_delta(noise: BinomialNoise, epsilon: float) -> float:
    """The bound of the paper, with the whole-number sensitivity it needs.

    References:
        [RTR, Lem. A.4]
    """
    level = checks.positive("epsilon", epsilon)
    share = (2 * noise.trials + 1) / (math.exp(level / noise.steps) + 1)
    if not 1 <= noise.steps + share <= noise.trials + 1:
        return 1.0
    return math.exp(-((noise.trials - noise.steps + 1 - share) ** 2) / noise.trials)
