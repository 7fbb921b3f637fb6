r"""Round noise: its density depends on the distance from 0 alone and is constant on shells.

One shell around 0 is the ball of the paper, in any dimension. Axes may have scales of their own:
the noise is then round in units of them.

References:
    [MDDP, Thm. 5]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import BITS, integer_weights
from sfumato.record.noise_form import ROUND, NoiseForm
from sfumato.record.round_boxes import ball_volume, box_in_ball, centred_share
from sfumato.record.vector_noise import (
    ROUNDED_UP,
    Kind,
    VectorNoise,
    Words,
    axis_scales,
    grid_points,
    standard,
    uniforms,
)

_PRECISE, _CONVOLVED = 1e-6, 1e-5
"""What boxes in balls may be off by, as a part: in closed form, and by convolution (4e-6 seen)."""


@dataclass(frozen=True, slots=True, eq=False)
class RoundNoise(VectorNoise):
    r"""Noise whose density depends on the distance from 0 alone, constant on each of some shells.

    Attributes:
        sigma: Standard deviation of each axis; distances are measured in units of them.
        edges: Radii between the shells, from 0 on, such that the mean squared distance is the
            number of axes.
        masses: Probability of each shell.

    Examples:
        >>> disc = RoundNoise.ball(np.array([1.0, 1.0]))
        >>> disc.edges, disc.largest_box([0.5, 0.5])  # radius sqrt(N + 2); 1 / (4 pi)
        (array([0., 2.]), 0.0795775)
        >>> RoundNoise.ball(np.ones(6)).largest_box([0.5] * 6)  # 1 / (volume of the ball)
        0.00037794767
    """

    sigma: Floats
    edges: Floats
    masses: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", axis_scales("sigma", self.sigma))
        edges = _radii(self.edges)
        given = checks.numbers("masses", self.masses)
        masses = checks.probabilities("masses", given, edges.size - 1)
        squared = float(portable.dot(masses, _mean_squares(edges, self.sigma.size)))
        if abs(squared / self.sigma.size - 1) > 1e-6:
            rule = "give every axis the deviation sigma"
            raise InvalidParameter("edges", squared, rule)
        object.__setattr__(self, "edges", checks.read_only(edges))
        object.__setattr__(self, "masses", masses)

    @classmethod
    def ball(cls, sigma: ArrayLike) -> RoundNoise:
        """Uniform on a ball, or on an ellipsoid if the axes have scales of their own."""
        scales = axis_scales("sigma", sigma)
        return cls(scales, np.array([0.0, math.sqrt(scales.size + 2)]), np.array([1.0]))

    @property
    def words(self) -> int:
        """One word an axis for the direction, one for the shell, one for the place in it."""
        return self.sigma.size + 2

    @property
    def fingerprint(self) -> str:
        """Identifies the noise."""
        return digest("round noise", self.sigma, self.edges, self.masses)

    @property
    def heights(self) -> Floats:
        """The density of each shell, in units of sigma."""
        volumes = np.array([ball_volume(self.sigma.size, edge) for edge in self.edges])
        return np.asarray(self.masses / np.diff(volumes))

    @property
    def falling(self) -> bool:
        """Whether the density nowhere rises with the distance: then the best box is at 0."""
        return bool(self.edges[0] == 0 and np.all(np.diff(self.heights) <= 0))

    def box_mass(self, half: ArrayLike) -> float:
        """Probability of the box around 0 with these half widths."""
        widths = axis_scales("half", half, self.sigma.size) / self.sigma
        volume = float(np.prod(2 * widths))
        inside = np.array([centred_share(widths, edge) * volume for edge in self.edges])
        return min(float(portable.dot(self.heights, np.diff(inside))), 1.0)

    def box_masses(self, centres: Floats, half: ArrayLike) -> Floats:
        """Probability of boxes around some points; one or two axes."""
        widths = axis_scales("half", half, self.sigma.size) / self.sigma
        places = centres / self.sigma
        inside = [box_in_ball(places - widths, places + widths, edge) for edge in self.edges]
        return np.asarray(portable.dot(self.heights, np.diff(np.array(inside), axis=0)))

    def largest_box(self, half: ArrayLike) -> float:
        """Largest probability of any box of this size, rounded up."""
        widths = axis_scales("half", half, self.sigma.size)
        if self.falling:
            share = widths / self.sigma
            if float(portable.dot(share, share)) <= self.edges[1] ** 2 * ROUNDED_UP:  # the box fits
                return min(self.box_mass(widths) * ROUNDED_UP, 1.0)
            slack = _PRECISE if widths.size <= 2 else _CONVOLVED
            return min(self.box_mass(widths) * (1 + slack), 1.0)
        if self.sigma.size > 2:
            rule = "fall with the distance in more than two dimensions"
            raise InvalidParameter("masses", self.masses.size, rule)
        return _largest_round_box(self, widths)

    def axis_mass(self, axis: int, low: ArrayLike, high: ArrayLike) -> Floats:
        """Probability that one axis lies in some intervals."""
        left, right = (np.asarray(end, dtype=np.float64) / self.sigma[axis] for end in (low, high))
        dimension = self.sigma.size
        below = []
        for edge in self.edges:
            inside = ball_volume(dimension, edge)
            ends = [_ball_cumulative(end, edge, dimension) for end in (left, right)]
            below.append(inside * (ends[1] - ends[0]))
        return np.asarray(
            (self.heights.reshape(-1, *[1] * left.ndim) * np.diff(below, axis=0)).sum(axis=0)
        )

    def draw(self, words: Words) -> Floats:
        """Noise from random words: one draw a row."""
        size = self.sigma.size
        normals = standard(Kind.GAUSSIAN, uniforms(words[:, :size]))
        # Independent normal numbers have no preferred direction.
        directions = normals / np.sqrt((normals**2).sum(axis=1, keepdims=True))
        # The shell is drawn by integers: coins and masses then differ by less than `SLACK` allows.
        cumulative = integer_weights(self.masses[None, :])[0].cumsum()
        coins = (words[:, size] >> np.uint64(64 - BITS)).astype(np.int64)
        shell = np.searchsorted(cumulative, coins, side="right")
        powers = portable.raised(self.edges, size)
        inner, outer = powers[shell], powers[shell + 1]
        radii = portable.power(inner + uniforms(words[:, size + 1]) * (outer - inner), 1 / size)
        return np.asarray(self.sigma * directions * radii[:, None])

    def form(self) -> NoiseForm:
        """The noise as plain arrays."""
        size = self.sigma.size
        heights = self.heights / float(np.prod(self.sigma))
        reach = self.edges[-1] * self.sigma
        scale, edges = np.array(self.sigma), np.array(self.edges)  # writable, as all forms are
        return NoiseForm(ROUND, scale, np.zeros((size, size)), edges, heights, reach)


def _radii(edges: ArrayLike) -> Floats:
    given = checks.numbers("edges", edges)
    if given.ndim != 1 or given.size < 2 or given[0] < 0 or np.diff(given).min() <= 0:
        raise InvalidParameter("edges", given.shape, "be radii that increase")
    return given


def _ball_cumulative(place: Floats, radius: float, dimension: int) -> Floats:
    """Distribution function of one coordinate of a uniform point of a ball."""
    if radius == 0:
        return np.where(place < 0, 0.0, 1.0)
    share = np.clip(place / radius, -1.0, 1.0)
    return np.asarray(0.5 + 0.5 * np.sign(share) * _within(np.abs(share), dimension))


def _within(share: Floats, dimension: int) -> Floats:
    """How much of a ball lies within such a share of its radius, along one axis.

    The incomplete beta function of 1/2 and (dimension + 1)/2; its second argument grows by 1 with
    every term.
    """
    rest = 1 - share**2
    if dimension % 2:
        second, beta, power, found = 1.0, 2.0, rest, share
    else:
        second, beta, found, power = (
            0.5,
            math.pi,
            portable.arc_sine(share) / (math.pi / 2),
            np.sqrt(rest),
        )
    for _ in range(dimension // 2):
        found = found + share * power / (second * beta)
        beta, power, second = beta * second / (second + 0.5), power * rest, second + 1
    return found


def _mean_squares(edges: Floats, dimension: int) -> Floats:
    """Mean squared radius of uniform points of each shell."""
    up, volume = portable.raised(edges, dimension + 2), portable.raised(edges, dimension)
    return np.asarray(dimension / (dimension + 2) * np.diff(up) / np.diff(volume))


_CELLS, _CLOSE = {1: 400, 2: 24}, {1: 1e-6, 2: 2e-4}
"""Cells of centres along an axis to begin with, and the part of the bound that may stay open."""
_LEVELS, _MOST_CELLS = 12, 20_000
"""Halvings of cells, and how many are looked at together: beyond them the bound is what it is."""


def _largest_round_box(noise: RoundNoise, half: Floats) -> float:
    """Branch and bound over the corner of positive centres: the others are its mirror images.

    A box around any point of a cell lies in the box around the cell's centre that is wider by half
    the cell: its mass is a bound for all of the cell, and so is the box within the densest shell.
    """
    cells, close = _CELLS[len(half)], _CLOSE[len(half)]
    reach = noise.edges[-1] * noise.sigma + half
    spans = reach / cells
    axes = [np.arange(0.5, cells) * span for span in spans]
    centres = grid_points(axes)
    best, bound = 0.0, 1.0
    densest = float(noise.heights.max() * np.prod(2 * half / noise.sigma))
    for _ in range(_LEVELS):
        least = noise.box_masses(centres, half)
        most = np.minimum(noise.box_masses(centres, half + 0.5 * spans), densest)
        best, bound = max(best, float(least.max())), float(most.max())
        open_cells = most > best * (1 + 0.5 * close)
        if bound <= best * (1 + close) or np.count_nonzero(open_cells) > _MOST_CELLS:
            break
        spans = 0.5 * spans
        moves = grid_points([np.array([-0.5, 0.5])] * len(half)) * spans
        centres = (centres[open_cells][:, None, :] + moves).reshape(-1, len(half))
    return min(bound * (1 + _PRECISE), 1.0)
