"""Portable functions against mpmath: within their stated errors, everywhere, and at the ends."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.core import portable, portable_normal
from sfumato.core.portable_products import eigen, inner, root

RNG = np.random.default_rng(11)
WIDE, NEAR, TINY = RNG.uniform(-745, 709, 400), RNG.normal(size=400), RNG.normal(size=400) * 1e-4
SIZES = np.abs(WIDE) + 1e-300
SHARES = RNG.uniform(-1, 1, 400)
# The first is off by 2.83 units: the worst that was found.
OCTAVE = [1.3738927780694137, *np.random.default_rng(12).uniform(0.7, 1.45, 2_000)]

# What is computed, what it is, where, and its error in units of the last place.
LAWS: list[tuple[Callable[[Any], Any], Callable[[Any], Any], Any, float]] = [
    (portable.exp, mpmath.exp, [*WIDE, *NEAR, *TINY], 1),
    (portable.exp2, lambda x: mpmath.power(2, x), [*WIDE, *NEAR], 2),
    (portable.expm1, mpmath.expm1, [*NEAR, *TINY, *np.abs(WIDE)], 2),
    (portable.log, mpmath.log, [*SIZES, *portable.exp(WIDE), *(1 + TINY)], 1),
    (portable.log1p, mpmath.log1p, [*np.abs(WIDE), *TINY, *(0.99 * SHARES)], 2),
    (portable.log2, lambda x: mpmath.log(x, 2), [*SIZES, *OCTAVE], 3),
    (portable.tanh, mpmath.tanh, [*NEAR, *TINY], 5),
    (portable.sinh, mpmath.sinh, [*NEAR, *TINY], 5),
    (portable.erf, mpmath.erf, [*NEAR, *TINY], 8),
    (portable_normal.erfc, mpmath.erfc, [*NEAR, *RNG.uniform(-6, 26, 400)], 8),
    (portable.normal_share, mpmath.ncdf, [*NEAR, *RNG.uniform(-37, 8, 400)], 8),
    (portable.log_normal_share, lambda x: mpmath.log(mpmath.ncdf(x)), RNG.uniform(-60, 3, 400), 16),
    (portable.arc_sine, mpmath.asin, SHARES, 5),
]


@pytest.mark.parametrize(("function", "true", "places", "units"), LAWS)
def test_errors_are_as_stated(function: Any, true: Any, places: Any, units: float) -> None:
    with mpmath.workdps(60):
        for place in map(float, places):
            exact = true(mpmath.mpf(place))
            assert abs(mpmath.mpf(function(place)) - exact) <= units * math.ulp(float(exact)), place


def test_an_array_has_the_bits_of_its_numbers() -> None:
    table = RNG.normal(size=(7, 5)) * 3
    for function in (portable.exp, portable.expm1, portable.normal_share, portable.sine):
        each = [[function(value) for value in row] for row in table.tolist()]
        assert np.array_equal(function(table), each)
        assert np.array_equal(function(table.T), np.transpose(each))


def test_ends_of_the_line() -> None:
    inf, nan = math.inf, math.nan
    ends = [-inf, -1.0, 0.0, 5e-324, inf, nan]
    assert portable.exp(ends).tolist()[:-1] == [0.0, portable.exp(-1.0), 1.0, 1.0, inf]
    assert portable.log(ends[2:5]).tolist() == [-inf, pytest.approx(-744.4400719213812), inf]
    assert portable.expm1(ends[:1]).tolist() == [-1.0]
    assert portable.log1p([-1.0, inf]).tolist() == [-inf, inf]
    assert portable.normal_share([-inf, inf]).tolist() == [0.0, 1.0]
    for function in (portable.exp, portable.log, portable.expm1, portable.log1p, portable.erf):
        assert math.isnan(function(nan))
    assert math.isnan(portable.log(-1.0))
    # The least and the largest that floats hold, and what lies beyond.
    assert portable.exp(709.782712893384) < inf == portable.exp(709.7827128933841)
    assert portable.exp(-745.1332191019411) == 5e-324
    assert portable.exp(-745.2) == 0.0


def test_whole_powers_of_two_are_exact() -> None:
    powers = np.arange(-1074.0, 1024.0)
    numbers = np.ldexp(1.0, powers.astype(int))
    assert np.array_equal(portable.exp2(powers), numbers)
    assert np.array_equal(portable.log2(numbers[52:]), powers[52:])


def test_products_are_those_of_fractions() -> None:
    """Whole numbers: any order is exact, so any slip in an index shows."""
    for rows, middle, columns in ((1, 1, 1), (3, 7, 5), (9, 16, 2), (4, 23, 11)):
        left = RNG.integers(-9, 9, (rows, middle)).astype(float)
        right = RNG.integers(-9, 9, (middle, columns)).astype(float)
        exact = [[sum(a * b for a, b in zip(x, y, strict=True)) for y in right.T] for x in left]
        assert np.array_equal(portable.dot(left, right), exact)
        assert np.array_equal(portable.dot(left, right[:, 0]), np.array(exact)[:, 0])
        assert np.array_equal(portable.dot(left[0], right), exact[0])
        assert inner(left[0], right[:, 0].copy()) == exact[0][0]
    with pytest.raises(ValueError, match="do not fit"):
        portable.dot(np.ones(3), np.ones(4))


def test_small_systems() -> None:
    table = RNG.normal(size=(9, 9))
    square = portable.dot(table, table.T)
    sides = RNG.normal(size=(9, 2))
    found = portable.solved(table, sides)
    assert np.allclose(portable.dot(table, found), sides, atol=1e-11)
    assert np.isnan(portable.solved(np.zeros((2, 2)), np.ones(2))).all()
    triangle = root(square)
    assert np.allclose(portable.dot(triangle, triangle.T), square)
    assert np.array_equal(triangle, np.tril(triangle))
    assert np.isnan(root(-np.eye(2))).all()
    values, vectors = eigen(square)
    assert np.all(np.diff(values) >= 0)
    assert np.allclose(portable.dot(vectors * values, vectors.T), square)
    assert np.allclose(portable.dot(vectors.T, vectors), np.eye(9))


def test_other_functions() -> None:
    angles = RNG.uniform(-7, 7, 200)
    assert np.abs(portable.sine(angles) - np.sin(angles)).max() < 4e-16
    assert np.abs(portable.cosine(angles) - np.cos(angles)).max() < 4e-16
    for value in (0.01, 0.5, 1.0, 2.5, 15.0, 1000.0):
        exact = math.lgamma(value)
        assert portable.log_gamma(value) == pytest.approx(exact, rel=1e-13, abs=1e-13)
    ends = portable.geometric(0.02, 0.8, 16)
    assert (ends[0], ends[-1]) == (0.02, 0.8)
    assert np.allclose(ends[1:] / ends[:-1], 40 ** (1 / 15))
