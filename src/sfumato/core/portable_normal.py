"""The error function and the normal distribution, on the exponentials of `core/portable_loops.py`.

Plain double arithmetic in a fixed order: the same last bit on every machine. Errors, in units of
the last place, confirmed with mpmath: `erf`, `erfc` and `normal_share` 8, `log_normal_share` 16.
For scalars inside compiled loops; `core/portable.py` has the same for Python and for arrays.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log, log1p

_ROOT_TWO = math.sqrt(2)
_FAR_OUT = 27.3
"""Where erfc is less than the least float."""

# Quotients of polynomials that interpolate at Chebyshev's points, worked out in 60 digits, highest
# power first: erf(x)/x in x**2 up to .5, exp(x**2) erfc(x) up to 5.5, x times that in x**-2 beyond.
_NEAR = (
    0.18572994181004687,
    3.1619521880395878,
    113.84413867052022,
    377.4555504782874,
    3208.6785277725153,
)
_UNDER_NEAR = (
    1.0,
    23.599425773087592,
    243.9912461758842,
    1282.3837074734904,
    2843.6173064341183,
)
_MIDDLE = (
    0.0,
    0.5641895842134014,
    9.13097058737221,
    72.55568107189733,
    362.05490862160235,
    1229.756942041613,
    2903.3909511523602,
    4666.897337008637,
    4718.644361054353,
    2362.5110655184603,
)
_UNDER_MIDDLE = (
    1.0,
    16.18422406474915,
    129.10159341719847,
    649.8177924613143,
    2243.487234628052,
    5458.908949767912,
    9298.542481538296,
    10636.848756994845,
    7384.452633064276,
    2362.5110652368094,
)
_FAR = (
    0.19318663409915668,
    1.5364504194855717,
    1.7478293822139594,
    0.6283235143383947,
    0.08382944276390218,
    0.0035807034229303975,
)
_UNDER_FAR = (
    1.0,
    3.871800309016733,
    3.588425515670727,
    1.1847930261411894,
    0.15175713443160374,
    0.006346631570923546,
)


@njit(cache=True)
def _bell(value: float, share: float) -> float:
    """exp(-share x**2), share 1 or 1/2: the square of the upper half of the digits is exact."""
    upper = float(np.int64(np.float64(value).view(np.int64) & ~0x7FFFFFF).view(np.float64))
    rest = share * ((value - upper) * (value + upper))
    return exp(-share * (upper * upper)) * (1.0 - rest * (1.0 - rest * (0.5 - rest * (1 / 6))))


@njit(cache=True)
def _over_bell(size: float) -> float:
    """exp(x**2) erfc(x) from .5 on."""
    if size < 5.5:
        above, below = _MIDDLE[0], _UNDER_MIDDLE[0]
        for place in range(1, 10):
            above, below = above * size + _MIDDLE[place], below * size + _UNDER_MIDDLE[place]
        return above / below
    inverse = 1.0 / (size * size)
    above, below = _FAR[0], _UNDER_FAR[0]
    for place in range(1, 6):
        above, below = above * inverse + _FAR[place], below * inverse + _UNDER_FAR[place]
    return above / below / size


@njit(cache=True)
def _near(value: float) -> float:
    """The error function up to .5."""
    square = value * value
    above, below = _NEAR[0], _UNDER_NEAR[0]
    for place in range(1, 5):
        above, below = above * square + _NEAR[place], below * square + _UNDER_NEAR[place]
    return value * (above / below)


@njit(cache=True)
def erfc(value: float) -> float:
    """What is left of the error function to 1, right also where it is tiny."""
    size = abs(value)
    if not size >= 0.5:
        return 1.0 - _near(value)
    tail = _bell(size, 1.0) * _over_bell(size) if size < _FAR_OUT else 0.0
    return tail if value > 0 else 2.0 - tail


@njit(cache=True)
def erf(value: float) -> float:
    """The error function."""
    size = abs(value)
    if not size >= 0.5:
        return _near(value)
    tail = _bell(size, 1.0) * _over_bell(size) if size < _FAR_OUT else 0.0
    return 1.0 - tail if value > 0 else tail - 1.0


@njit(cache=True)
def normal_share(reduced: float) -> float:
    """The normal distribution function, right also in its lower tail."""
    size = abs(reduced) / _ROOT_TWO
    if not size >= 0.5:
        return 0.5 + 0.5 * _near(reduced / _ROOT_TWO)
    tail = 0.5 * _bell(abs(reduced), 0.5) * _over_bell(size) if size < _FAR_OUT else 0.0
    return tail if reduced < 0 else 1.0 - tail


@njit(cache=True)
def log_normal_share(reduced: float) -> float:
    """Its logarithm, which does not vanish in the lower tail."""
    size = -reduced / _ROOT_TWO
    if not size >= 0.5:
        return log1p(-normal_share(-reduced))
    return log(0.5 * _over_bell(size)) - 0.5 * reduced * reduced


@njit(cache=True)
def erf_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = erf(values[place])
    return found


@njit(cache=True)
def normal_share_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = normal_share(values[place])
    return found


@njit(cache=True)
def log_normal_share_each(values: Floats) -> Floats:
    """The same of every number of a row."""
    found = np.empty(values.size)
    for place in range(values.size):
        found[place] = log_normal_share(values[place])
    return found
