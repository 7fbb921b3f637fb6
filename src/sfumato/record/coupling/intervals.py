"""Interval arithmetic on arrays, rounded outward.

Lower ends are below inf and upper ones above -inf; two nan are the empty interval. Whoever calls
these operations switches the warnings of numpy off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats

Pair = tuple[Floats, Floats]

_GREATEST = float(np.finfo(np.float64).max)
_RELATIVE = 2.0**-52
_LEAST = 5e-324
_LIBRARY = 8
"""Units in the last place by which a function of the C library may be out, with room to spare."""


def interval(low: Floats, high: Floats) -> Pair:
    """An interval that holds every number from low to high."""
    return np.minimum(low, _GREATEST), np.maximum(high, -_GREATEST)


def point(value: float) -> Pair:
    """The interval of one number."""
    return np.asarray(value), np.asarray(value)


def _outward(low: Floats, high: Floats, units: int = 1) -> Pair:
    low, high = interval(low, high)
    room, slack = units * _RELATIVE, units * _LEAST
    return low - (room * np.abs(low) + slack), high + (room * np.abs(high) + slack)


def _not_negative(pair: Pair) -> Pair:
    return np.maximum(pair[0], 0.0), pair[1]


def _from_zero(pair: Pair) -> Pair:
    """The part that is not negative."""
    possible = pair[1] >= 0
    return np.where(possible, np.maximum(pair[0], 0.0), np.nan), np.where(possible, pair[1], np.nan)


def _hull(one: Pair, other: Pair, ends: list[Floats]) -> Pair:
    """From the least to the greatest of some ends, where 0 times inf is 0."""
    empty = np.isnan(one[0]) | np.isnan(other[0])
    ends = [np.where(np.isnan(end), 0.0, end) for end in ends]
    low, high = _outward(np.minimum.reduce(ends), np.maximum.reduce(ends))
    return np.where(empty, np.nan, low), np.where(empty, np.nan, high)


def _product(one: Pair, other: Pair) -> Pair:
    return _hull(one, other, [left * right for left in one for right in other])


def _quotient(one: Pair, other: Pair) -> Pair:
    low, high = _hull(one, other, [left / right for left in one for right in other])
    # A divisor that may be 0 leaves nothing to say.
    anything = (other[0] <= 0) & (other[1] >= 0) & ~np.isnan(low)
    return np.where(anything, -np.inf, low), np.where(anything, np.inf, high)


def _absolute(pair: Pair) -> Pair:
    low, high = pair
    return np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high)


def _power(pair: Pair, exponent: float) -> Pair:
    if exponent < 0:
        return _quotient(point(1.0), _power(pair, -exponent))
    if exponent == 0:
        ones = np.where(np.isnan(pair[0]), np.nan, 1.0)
        return ones, ones
    if exponent % 2 == 1:
        return _outward(pair[0] ** exponent, pair[1] ** exponent, _LIBRARY)
    low, high = _absolute(pair) if exponent % 2 == 0 else _from_zero(pair)
    return _not_negative(_outward(low**exponent, high**exponent, _LIBRARY))


def _root(pair: Pair) -> Pair:
    low, high = _from_zero(pair)
    return _not_negative(_outward(np.sqrt(low), np.sqrt(high)))


def _exponential(pair: Pair) -> Pair:
    return _not_negative(_outward(portable.exp(pair[0]), portable.exp(pair[1]), _LIBRARY))


def _logarithm(pair: Pair) -> Pair:
    low, high = _from_zero(pair)
    return _outward(portable.log(low), portable.log(high), _LIBRARY)


ON_INTERVALS: dict[str, Callable[..., Any]] = {
    "+": lambda one, other: _outward(one[0] + other[0], one[1] + other[1]),
    "-": lambda one, other: _outward(one[0] - other[1], one[1] - other[0]),
    "*": _product,
    "/": _quotient,
    "**": _power,
    "unary +": lambda pair: pair,
    "unary -": lambda pair: (-pair[1], -pair[0]),
    "sqrt": _root,
    "exp": _exponential,
    "log": _logarithm,
    "abs": _absolute,
}
"""What each operation does; the right side of a power is a number."""
