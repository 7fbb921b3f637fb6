"""The inverse of the normal distribution function: Acklam's rational functions, right to 1e-9."""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log
from sfumato.core.portable_normal import normal_share

_FAR = 8.0
"""Where 0 and 1 are taken, in deviations."""
_CENTRAL = 0.02425
"""Tails beyond which a function of the logarithm takes over, as Acklam has it."""
_INNER = np.array(
    [
        -3.969683028665376e01,
        2.209460984245205e02,
        -2.759285104469687e02,
        1.383577518672690e02,
        -3.066479806614716e01,
        2.506628277459239e00,
    ]
)
_UNDER_INNER = np.array(
    [
        -5.447609879822406e01,
        1.615858368580409e02,
        -1.556989798598866e02,
        6.680131188771972e01,
        -1.328068155288572e01,
        1.0,
    ]
)
_OUTER = np.array(
    [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e00,
        -2.549732539343734e00,
        4.374664141464968e00,
        2.938163982698783e00,
    ]
)
_UNDER_OUTER = np.array(
    [7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e00, 3.754408661907416e00, 1.0]
)


@njit(cache=True)
def normal_quantile(share: float) -> float:
    """Where the normal distribution function has a value, to 1e-9: Acklam's rational functions."""
    if share <= 0.0 or share >= 1.0:
        return -_FAR if share <= 0.0 else _FAR
    tail = min(share, 1.0 - share)
    if tail < _CENTRAL:
        root = math.sqrt(-2.0 * log(tail))
        found = _ratio(root, _OUTER, _UNDER_OUTER)
        return found if share < 0.5 else -found
    off = share - 0.5
    return off * _ratio(off * off, _INNER, _UNDER_INNER)


@njit(cache=True)
def _ratio(at: float, top: Floats, bottom: Floats) -> float:
    above = below = 0.0
    for power in range(len(top)):
        above = above * at + top[power]
    for power in range(len(bottom)):
        below = below * at + bottom[power]
    return above / below


def normal_quantiles(shares: Floats) -> Floats:
    """The same of many, to the last digits."""
    flat = np.ascontiguousarray(shares, dtype=np.float64).reshape(-1)
    return np.asarray(_refined(flat).reshape(np.shape(shares)))


@njit(cache=True)
def _refined(shares: Floats) -> Floats:
    """Acklam's, and one step of Halley's; in the tail it is that of the nearer end."""
    found = np.empty(shares.size)
    for place in range(shares.size):
        share = shares[place]
        tail = min(share, 1.0 - share)
        if not tail > 0.0:
            found[place] = -np.inf if share <= 0.0 else np.inf
            continue
        guess = normal_quantile(tail)
        off = (normal_share(guess) - tail) * math.sqrt(2 * math.pi) * exp(0.5 * guess * guess)
        guess -= off / (1.0 + 0.5 * guess * off)
        found[place] = guess if share < 0.5 else -guess
    return found
