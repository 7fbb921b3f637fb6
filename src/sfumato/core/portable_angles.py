"""Sine, cosine and arc sine for places on the earth: see `core/portable_loops.py`.

Errors are at most 2 units in the last place of the larger of the result and 1 (sine and cosine, for
angles up to a thousand turns) or 4 of the result (arc sine).
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

# A quarter turn in three parts: the first two have 32 bits, their products with quarters are exact.
_QUARTER = float.fromhex("0x1.921fb54400000p+0")
_QUARTER_MIDDLE = float.fromhex("0x1.0b4611a600000p-34")
_QUARTER_LAST = float.fromhex("0x1.3198a2e037073p-69")
_WHOLE = 6755399441055744.0
# arcsin(x)/x in x**2 up to .5: interpolated at Chebyshev's points, worked out in 60 digits.
_ARC = (
    0.30276043105762646,
    -13.708026360341666,
    111.89800913276284,
    -327.24011300192376,
    393.5712301734687,
    -166.04539367892636,
)
_UNDER_ARC = (
    1.0,
    -23.908116434544105,
    151.88305449653387,
    -384.99428555155157,
    421.24546245328975,
    -166.04539367892636,
)


@njit(cache=True)
def sine(angle: float) -> float:
    """The sine of an angle."""
    return _turned(angle, 0)


@njit(cache=True)
def cosine(angle: float) -> float:
    """The cosine of an angle."""
    return _turned(angle, 1)


@njit(cache=True)
def _turned(angle: float, more: int) -> float:
    """The sine of an angle and some quarter turns."""
    if not abs(angle) < 1e4:
        return math.nan
    quarters = (angle / (math.pi / 2) + _WHOLE) - _WHOLE
    part = ((angle - quarters * _QUARTER) - quarters * _QUARTER_MIDDLE) - quarters * _QUARTER_LAST
    place = (int(quarters) + more) % 4
    square, found = part * part, 0.0
    # Both series up to the 18th power; the angle is at most an eighth of a turn.
    for half in range(9, 0, -1):
        first = 2 * half + (place + 1) % 2
        found = -(found + 1.0) * square / (first * (first - 1))
    found = part + part * found if place % 2 == 0 else 1.0 + found
    return found if place < 2 else -found


@njit(cache=True)
def arc_sine(share: float) -> float:
    """The angle of a sine, from -1 to 1."""
    size = abs(share)
    if not size <= 1.0:
        return math.nan
    root = size if size < 0.5 else math.sqrt(0.5 * (1.0 - size))
    square = root * root
    above, below = _ARC[0], _UNDER_ARC[0]
    for place in range(1, 6):
        above, below = above * square + _ARC[place], below * square + _UNDER_ARC[place]
    found = root * (above / below)
    if size >= 0.5:
        found = math.pi / 2 - 2.0 * found
    return found if share > 0 else -found


@njit(cache=True)
def sine_each(angles: Floats) -> Floats:
    """The sines of a row of angles."""
    found = np.empty(angles.size)
    for place in range(angles.size):
        found[place] = sine(angles[place])
    return found


@njit(cache=True)
def cosine_each(angles: Floats) -> Floats:
    """The cosines of a row of angles."""
    found = np.empty(angles.size)
    for place in range(angles.size):
        found[place] = cosine(angles[place])
    return found


@njit(cache=True)
def arc_sine_each(shares: Floats) -> Floats:
    """The angles of a row of sines."""
    found = np.empty(shares.size)
    for place in range(shares.size):
        found[place] = arc_sine(shares[place])
    return found
