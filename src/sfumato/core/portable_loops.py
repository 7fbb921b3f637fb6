r"""Elementary functions in plain double arithmetic: the same last bit on every machine.

The mathematical library of a system picks its code by the processor: with fused multiply-adds `exp`
and `log` round otherwise in a few cases of a thousand, and so do the vectorised ones of numpy. A
channel, a charge or a certificate must not depend on that. Here are only additions, products,
quotients and square roots, in a fixed order, which every processor rounds alike; LLVM fuses none of
them unless it is told to by `fastmath`. One loop of the package has that, a sieve whose passes are
summed again (`temporal/temporal_loops.py`); nothing that leaves is computed by it.

Errors, in units of the last place, confirmed with mpmath: `exp`, `log` 1, `expm1`, `log1p`, `exp2`
2. What is made of these for the normal distribution stands in `core/portable_normal.py`.
For scalars inside compiled loops; `core/portable.py` has the same for Python and for arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.lane_vectors import (
    bits_of,
    floats_of,
    from_bits,
    same,
    same_whole,
    shifted_down,
)

# ln 2 in two parts: the first has 32 bits, so that its product with any exponent is exact.
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_PER_LN2 = 1.4426950408889634
# Adding and taking away 1.5 * 2**52 rounds to a whole number.
_WHOLE = 6755399441055744.0
_MOST, _LEAST = 709.782712893384, -745.1332191019412
# The exponent bits of sqrt(1/2): mantissas are taken from there to sqrt(2).
_ROOT_HALF = 0x3FE6A09E667F3BCD


@njit(cache=True)
def _two_to(power: int) -> float:
    """A power of two within the normal range, from its bits."""
    return float(np.int64((power + 1023) << 52).view(np.float64))


@njit(cache=True)
def _grown(value: float, power: int) -> float:
    """A number near 1 times a power of two, rounded once, down to the least float."""
    half = power >> 1
    return value * _two_to(half) * _two_to(power - half)


@njit(cache=True)
def _beyond_one(part: float, rest: float) -> float:
    """exp(part + rest) - 1 for |part| < .35: the series, its terms gathered in fixed pairs."""
    square = part * part
    fourth = square * square
    first = (0.5 + part * (1 / 6)) + square * (1 / 24 + part * (1 / 120))
    second = (1 / 720 + part * (1 / 5040)) + square * (1 / 40320 + part * (1 / 362880))
    third = (1 / 3628800 + part * (1 / 39916800)) + square * (
        1 / 479001600 + part * (1 / 6227020800)
    )
    return part + (rest + square * (first + fourth * (second + fourth * third)))


@njit(cache=True)
def exp(value: float) -> float:
    """E to a power."""
    if not value <= _MOST:
        return value * math.inf if value > 0 else value
    if value < _LEAST:
        return 0.0
    shifted = value * _PER_LN2 + _WHOLE
    power = shifted - _WHOLE
    high, low = value - power * _LN2_HIGH, power * _LN2_LOW
    part = high - low
    return _grown(1.0 + _beyond_one(part, (high - part) - low), int(power))


@njit(cache=True)
def exp2(value: float) -> float:
    """2 to a power; whole powers are exact."""
    if not value < 1024.0:
        return value * math.inf if value > 0 else value
    if value < -1075.0:
        return 0.0
    power = (value + _WHOLE) - _WHOLE
    part = (value - power) * 0.6931471805599453
    return _grown(1.0 + _beyond_one(part, 0.0), int(power))


@njit(cache=True)
def expm1(value: float) -> float:
    """E to a power, less 1, right also near 0."""
    if not value <= _MOST:
        return value * math.inf if value > 0 else value
    if value < -40.0:
        return -1.0
    if -0.34 < value < 0.34:
        return _beyond_one(value, 0.0)
    power = (value * _PER_LN2 + _WHOLE) - _WHOLE
    high, low = value - power * _LN2_HIGH, power * _LN2_LOW
    part = high - low
    more, times = _beyond_one(part, (high - part) - low), int(power)
    if times > 60:
        return _grown(1.0 + more, times)
    whole = _two_to(times)
    return (whole - 1.0) + whole * more


@njit(cache=True)
def log(value: float) -> float:
    """The natural logarithm; that of 0 is minus infinity, below there is none."""
    if not (2.2250738585072014e-308 <= value < math.inf):
        if value == 0.0:
            return -math.inf
        if not value > 0.0:
            return math.nan
        if value == math.inf:
            return value
        return _log_normal(value * 18014398509481984.0, -54)
    return _log_normal(value, 0)


@njit(cache=True)
def _parts(value: float) -> tuple[int, float]:
    """The power of two of a positive normal number, and its mantissa less 1, around sqrt(1/2)."""
    bits = np.float64(value).view(np.int64)
    over = bits - _ROOT_HALF
    power = over >> 52
    return int(power), float(np.int64(bits - (power << 52)).view(np.float64)) - 1.0


@njit(cache=True)
def _log_normal(value: float, more: int) -> float:
    power, off = _parts(value)
    times = float(power + more)
    ratio = off / (2.0 + off)
    half = 0.5 * off * off
    return times * _LN2_HIGH + (off - (half - (ratio * (half + _tail(ratio)) + times * _LN2_LOW)))


@njit(cache=True)
def _tail(ratio: float) -> float:
    """2 artanh(r)/r - 2: its series, for |r| < .172."""
    square = ratio * ratio
    fourth = square * square
    eighth = fourth * fourth
    first = (2 / 3 + square * (2 / 5)) + fourth * (2 / 7 + square * (2 / 9))
    second = (2 / 11 + square * (2 / 13)) + fourth * (2 / 15 + square * (2 / 17))
    third = (2 / 19 + square * (2 / 21)) + fourth * (2 / 23)
    return square * (first + eighth * (second + eighth * third))


@njit(cache=True, forceinline=True)
def logs(value: Any) -> Any:
    """Logarithms of four positive normal numbers, side by side: those of `log`."""
    bits = bits_of(value)
    power = shifted_down(bits - same_whole(_ROOT_HALF), 52)
    off = from_bits(bits - power * same_whole(1 << 52)) - same(1.0)
    times = floats_of(power)
    ratio, half = off / (same(2.0) + off), same(0.5) * off * off
    square = ratio * ratio
    fourth = square * square
    eighth = fourth * fourth
    first = (same(2 / 3) + square * same(2 / 5)) + fourth * (same(2 / 7) + square * same(2 / 9))
    second = (same(2 / 11) + square * same(2 / 13)) + fourth * (
        same(2 / 15) + square * same(2 / 17)
    )
    third = (same(2 / 19) + square * same(2 / 21)) + fourth * same(2 / 23)
    tail = square * (first + eighth * (second + eighth * third))
    low = ratio * (half + tail) + times * same(_LN2_LOW)
    return times * same(_LN2_HIGH) + (off - (half - low))


@njit(cache=True)
def log1p(value: float) -> float:
    """The logarithm of 1 more, right also near 0."""
    above = 1.0 + value
    if above == 1.0 or not above > 0.0 or above == math.inf:
        return value if above == 1.0 else log(above)
    # What 1 + value lost to rounding counts at first order.
    lost = value - (above - 1.0) if above < 2.0 else 1.0 - (above - value)
    return log(above) + lost / above


@njit(cache=True)
def log2(value: float) -> float:
    """The logarithm to the base 2; those of its powers are exact."""
    if not (2.2250738585072014e-308 <= value < math.inf):
        return log(value) * _PER_LN2
    power, off = _parts(value)
    ratio = off / (2.0 + off)
    return power + (2.0 * ratio + ratio * _tail(ratio)) * _PER_LN2


@njit(cache=True)
def exp_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = exp(values[place])
    return found


@njit(cache=True)
def exp2_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = exp2(values[place])
    return found


@njit(cache=True)
def expm1_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = expm1(values[place])
    return found


@njit(cache=True)
def log_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = log(values[place])
    return found


@njit(cache=True)
def log1p_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = log1p(values[place])
    return found


@njit(cache=True)
def log2_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = log2(values[place])
    return found
