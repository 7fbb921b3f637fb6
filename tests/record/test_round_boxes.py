"""Boxes in balls: against quadrature, characteristic functions and random points."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate

from sfumato.record.round_boxes import ball_volume, box_in_ball, centred_share
from tests.oracles.disclosure import share_in_ball

Floats = NDArray[np.float64]

places = st.floats(-3, 3)
widths = st.floats(0.01, 3)


def slices_of_a_ball(low: Floats, high: Floats, radius: float) -> float:
    """Volume of box and ball by nested one-dimensional quadrature."""

    def chord(left: float, axis: int) -> float:
        reach = math.sqrt(max(left, 0.0))
        a, b = max(low[axis], -reach), min(high[axis], reach)
        if a >= b:
            return 0.0
        if axis == low.size - 1:
            return float(b - a)
        # The next axes are cut where their faces meet the ball.
        kinks = {
            math.sqrt(left - e * e) for e in (*low[axis + 1 :], *high[axis + 1 :]) if e * e < left
        }
        ends = sorted({a, b, *(k for s in kinks for k in (s, -s) if a < k < b)})
        total = 0.0
        nodes, weights = np.polynomial.legendre.leggauss(24)
        for start, stop in itertools.pairwise(ends):
            half = 0.5 * (stop - start)
            # A sine takes the square roots out of the ends.
            angles = 0.5 * math.pi * nodes
            at = start + half * (1 + np.sin(angles))
            scale = half * 0.5 * math.pi * np.cos(angles) * weights
            total += sum(s * chord(left - x * x, axis + 1) for s, x in zip(scale, at, strict=True))
        return total

    return chord(radius**2, 0)


@pytest.mark.parametrize("dimension", range(1, 17))
def test_the_volume_of_a_ball_is_the_integral_of_its_slices(dimension: int) -> None:
    if dimension == 1:
        assert ball_volume(1, 1.5) == pytest.approx(3.0)
        return
    slice_at = integrate.quad(
        lambda t: ball_volume(dimension - 1) * math.cos(t) ** dimension, -math.pi / 2, math.pi / 2
    )[0]
    assert ball_volume(dimension) == pytest.approx(slice_at, rel=1e-9)
    assert ball_volume(dimension, 2.0) == pytest.approx(2.0**dimension * slice_at, rel=1e-9)


@given(st.tuples(places, places), st.tuples(widths, widths), st.floats(0.05, 3))
@settings(max_examples=40)
def test_area_of_a_rectangle_in_a_disc(
    corner: tuple[float, float], size: tuple[float, float], radius: float
) -> None:
    low = np.array(corner)
    high = low + size
    found = box_in_ball(low[None], high[None], radius)[0]
    assert found == pytest.approx(slices_of_a_ball(low, high, radius), rel=1e-7, abs=1e-9)


@given(places, widths, st.floats(0.05, 3))
def test_length_of_an_interval_in_an_interval(low: float, width: float, radius: float) -> None:
    found = box_in_ball(np.array([[low]]), np.array([[low + width]]), radius)[0]
    assert found == pytest.approx(max(min(low + width, radius) - max(low, -radius), 0.0), abs=1e-12)


@pytest.mark.parametrize("dimension", [1, 2])
def test_boxes_that_tile_space_share_the_ball(dimension: int) -> None:
    edges = np.linspace(-2.0, 2.0, 6)
    cells = np.stack(np.meshgrid(*[np.arange(5)] * dimension, indexing="ij"), axis=-1)
    cells = cells.reshape(-1, dimension)
    parts = box_in_ball(edges[cells], edges[cells + 1], 1.7)
    assert parts.min() >= 0
    assert parts.sum() == pytest.approx(ball_volume(dimension, 1.7), rel=1e-3)


@pytest.mark.parametrize("dimension", range(1, 7))
@pytest.mark.parametrize("part", [0.3, 0.6, 0.8, 0.97, 1.0])
def test_share_of_a_centred_box_is_the_law_of_a_sum_of_squares(dimension: int, part: float) -> None:
    half = np.linspace(0.6, 1.3, dimension) if dimension > 1 else np.ones(1)
    radius = part * math.sqrt(float(half @ half))
    exact = share_in_ball(half.tolist(), radius)
    assert centred_share(half, radius) == pytest.approx(exact, rel=2e-5, abs=1e-6)


@pytest.mark.parametrize("dimension", range(2, 17))
def test_a_ball_within_the_box_is_counted_whole(dimension: int) -> None:
    half = np.linspace(1.0, 2.0, dimension)
    exact = ball_volume(dimension, 0.9) / float(np.prod(2 * half))
    assert centred_share(half, 0.9) == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("dimension", [4, 8, 12, 16])
def test_share_agrees_with_random_points(dimension: int, rng: np.random.Generator) -> None:
    half = np.linspace(0.5, 1.5, dimension)
    radius = math.sqrt(float(half @ half) / 3)  # near the mean of the sum: the share is middling
    rolled = rng.random((200_000, dimension)) * half
    share = float(((rolled**2).sum(axis=1) <= radius**2).mean())
    error = 4.5 * math.sqrt(share * (1 - share) / 200_000)
    assert abs(centred_share(half, radius) - share) < error
    assert abs(centred_share(half, 1.05 * radius) - share) > error  # a wrong radius is caught


@given(
    st.lists(st.floats(0.1, 3), min_size=1, max_size=6),
    st.floats(0.05, 5),
    st.floats(1.0, 2.0),
)
@settings(max_examples=15)
def test_shares_lie_in_the_unit_interval_and_grow_with_the_ball(
    half: list[float], radius: float, more: float
) -> None:
    box = np.array(half)
    small, large = centred_share(box, radius), centred_share(box, more * radius)
    assert 0 <= small <= large * (1 + 1e-6) + 1e-9
    assert large <= 1
