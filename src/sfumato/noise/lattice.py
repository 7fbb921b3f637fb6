r"""Noise for numbers, on a lattice of points: a finite channel, so that its certificate is exact.

Noise that is drawn and added in floating point gives values away: which floats can come out
depends on what went in. Here a value is first clamped to an interval and moved to the nearest
of evenly spaced points, and an output is a point as well, drawn by integer weights that
are the probabilities of the cells around the points. The outputs that can occur are the same
for every value, no logarithm or root of a random float is taken, and leakage is computed from
the very integers that are sampled. Outputs beyond the last points are clamped to them, which is
a function of the output alone and can only lower the leakage.

Moving a value to its point costs no privacy at all: the guarantee about the point is one about
the value itself, since everything that is released depends on the value through the point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter

MOST_POINTS = 4096


@dataclass(frozen=True, slots=True)
class Lattice:
    """Evenly spaced points that stand for the numbers of an interval.

    Attributes:
        low: The first point; smaller values are taken for it.
        high: The last point; larger values are taken for it.
        count: Number of points.

    Examples:
        >>> ages = Lattice(0.0, 100.0, 11)
        >>> ages.places([-3.0, 24.9, 25.1, 250.0])
        array([ 0,  2,  3, 10])
        >>> ages.points[:3]
        array([ 0., 10., 20.])
    """

    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        # Whole numbers are the same ends, and must have the same fingerprint.
        object.__setattr__(self, "low", float(self.low))
        object.__setattr__(self, "high", float(self.high))
        if not (self.low < self.high and math.isfinite(self.high - self.low)):
            rule = "be finite, the first less than the second"
            raise InvalidParameter("interval", (self.low, self.high), rule)
        if checks.count("count", self.count, at_least=2) > MOST_POINTS:
            raise InvalidParameter("count", self.count, f"be at most {MOST_POINTS}")
        if not np.all(np.diff(self.points) > 0):
            raise InvalidParameter("count", self.count, "be less: the points are too close")

    @property
    def width(self) -> float:
        """How far the values are apart at most."""
        return self.high - self.low

    @property
    def step(self) -> float:
        """Distance of neighbouring points."""
        return self.width / (self.count - 1)

    @property
    def points(self) -> Floats:
        """The points themselves."""
        return np.linspace(self.low, self.high, self.count)

    @property
    def edges(self) -> Floats:
        """Where one point ends and the next begins, without the two outer ends."""
        points = self.points
        return np.asarray(0.5 * points[1:] + 0.5 * points[:-1])

    @property
    def cuts(self) -> Floats:
        """The same with the outer ends, at infinity: beyond the last points all is clamped."""
        return np.concatenate([[-np.inf], self.edges, [np.inf]])

    def places(self, values: ArrayLike) -> Ints:
        """The place of the nearest point for each value, clamped to the interval.

        Raises:
            InvalidParameter: If a value is no finite number; it is not quoted.
        """
        given = checks.numbers("values", values)
        return np.searchsorted(self.edges, given, side="right").astype(np.int64)

    def outside(self, values: ArrayLike) -> int:
        """How many of the values are clamped."""
        given = checks.numbers("values", values)
        return int(np.count_nonzero((given < self.low) | (given > self.high)))

    def scaled(self, scales: ArrayLike) -> Floats:
        """One positive scale for each point, from one for all or as many as points."""
        each = np.asarray(scales, dtype=np.float64)
        if each.shape not in ((), (self.count,)):
            raise InvalidParameter("scales", each.shape, f"be one number or {self.count}")
        if not np.all(np.isfinite(each) & (each > 0)):
            raise InvalidParameter("scales", float(each.min()), "be finite and greater than 0")
        return np.broadcast_to(each, (self.count,))

    def noisy(self, noise: Noise, scales: ArrayLike) -> Floats:
        """The probabilities of outputs (columns) for each true point (rows) after noise.

        Args:
            noise: The shape.
            scales: Standard deviation (Gaussian) or mean size (Laplace); one for all points, or
                one for each.

        Examples:
            >>> Lattice(0.0, 2.0, 3).noisy(Noise.LAPLACE, 1.0)
            array([[0.69673467, 0.19170025, 0.11156508],
                   [0.30326533, 0.39346934, 0.30326533],
                   [0.11156508, 0.19170025, 0.69673467]])
        """
        each = self.scaled(scales)
        reduced = (self.cuts - self.points[:, None]) / each[:, None]
        left, right = reduced[:, :-1], reduced[:, 1:]
        # Right of the point, differences of upper tails keep the digits of small masses.
        mirrored = left > 0
        upper, lower = np.where(mirrored, -left, right), np.where(mirrored, -right, left)
        rows = _cumulative(noise, upper) - _cumulative(noise, lower)
        return np.asarray(rows / rows.sum(axis=1, keepdims=True))


class Noise(StrEnum):
    """The shape of the noise."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"


def _cumulative(noise: Noise, reduced: Floats) -> Floats:
    match noise:
        case Noise.GAUSSIAN:
            return np.asarray(portable.normal_share(reduced))
        case Noise.LAPLACE:
            small = 0.5 * portable.exp(-np.abs(reduced))
            return np.where(reduced < 0, small, 1 - small)
        case _:
            assert_never(noise)
