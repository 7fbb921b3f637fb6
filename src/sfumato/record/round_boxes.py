r"""How much of a ball lies in a box: what the privacy of round noise comes down to.

In one and two dimensions in closed form, and in any number of them for a box around the centre:
there the share of the box inside the ball is the distribution of a sum of squares,
$P(\sum h_i^2 U_i^2 \le r^2)$ with $U_i$ uniform on $[0, 1]$, convolved axis by axis.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.interpolate import PchipInterpolator

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter

_TABLE, _NODES = 4001, 96
"""Levels of a table of shares, and nodes of an integral: right to 4e-6 in three dimensions."""


def ball_volume(dimension: int, radius: float = 1.0) -> float:
    """Volume of a ball.

    Examples:
        >>> ball_volume(2), ball_volume(3)
        (3.14159, 4.18879)
    """
    log = 0.5 * dimension * portable.log(math.pi) - float(portable.log_gamma(0.5 * dimension + 1))
    return portable.exp(log) * math.prod([radius] * dimension)


def box_in_ball(low: Floats, high: Floats, radius: float) -> Floats:
    """Volume of the part of some boxes that lies in a ball around the origin.

    Args:
        low: Lower corners, one box a row; one or two columns.
        high: Upper corners.
        radius: Of the ball.

    Examples:
        >>> corner = np.array([[1.0, 1.0]])
        >>> box_in_ball(-corner, corner, 2.0)  # a square that fits
        array([4.])
        >>> box_in_ball(-9 * corner, 9 * corner, 2.0)  # a disc that fits
        array([12.56637])
    """
    match low.shape[1]:
        case 1:
            ends = np.clip(high, -radius, radius) - np.clip(low, -radius, radius)
            return np.asarray(ends[:, 0])
        case 2:
            return _in_disc(low, high, np.full(len(low), radius))
        case more:
            raise InvalidParameter("centres", more, "have at most two axes")


def _in_disc(low: Floats, high: Floats, radius: Floats) -> Floats:
    corners = [(high, high, 1.0), (low, high, -1.0), (high, low, -1.0), (low, low, 1.0)]
    total = np.zeros(len(low))
    for first, second, sign in corners:
        total += sign * _from_origin(first[:, 0], second[:, 1], radius)
    return np.maximum(total, 0.0)


def _from_origin(x: Floats, y: Floats, radius: Floats) -> Floats:
    """Signed area of a disc between the origin and (x, y)."""
    width, height = np.minimum(np.abs(x), radius), np.minimum(np.abs(y), radius)
    # Up to `flat` the rectangle's own top bounds the area, beyond it the circle does.
    flat = np.minimum(np.sqrt(np.maximum(radius**2 - height**2, 0.0)), width)
    under = height * flat + _under_circle(width, radius) - _under_circle(flat, radius)
    return np.asarray(np.sign(x) * np.sign(y) * under)


def _under_circle(x: Floats, radius: Floats) -> Floats:
    safe = np.where(radius > 0, radius, 1.0)
    share = np.clip(x / safe, -1.0, 1.0)
    return 0.5 * radius**2 * (share * np.sqrt(1 - share**2) + portable.arc_sine(share))


def centred_share(half: Floats, radius: float) -> float:
    """The share of a box around the centre of a ball that lies in the ball, in any dimension.

    Examples:
        >>> centred_share(np.ones(5), 3.0)
        1.0
        >>> centred_share(np.ones(2), 1.0)  # a quarter of pi
        0.785398
    """
    squares = half**2
    if radius**2 >= squares.sum():
        return 1.0
    if radius == 0:
        return 0.0
    if len(half) <= 2:
        volume = box_in_ball(-half[None, :], half[None, :], radius)[0]
        return float(min(volume / np.prod(2 * half), 1.0))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    steps, weights = 0.5 * (nodes + 1), 0.5 * weights
    levels = np.linspace(0.0, 1.0, _TABLE) ** 2 * radius**2
    below = np.minimum(np.sqrt(levels / squares[0]), 1.0)
    for square in squares[1:]:
        # Only roots that stay within the level count: integrate up to there.
        reach = np.minimum(np.sqrt(levels / square), 1.0)
        curve = PchipInterpolator(np.sqrt(levels), below)
        inner = levels[:, None] - square * (reach[:, None] * steps) ** 2
        below = reach * (portable.dot(curve(np.sqrt(np.maximum(inner, 0.0))), weights))
    return float(min(below[-1], 1.0))
