"""Four numbers side by side are what four numbers alone are, to the last bit."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from sfumato.core.arrays import Floats, Ints
from sfumato.core.lane_vectors import (
    above_zero,
    address,
    crossed,
    fetch,
    first_lane,
    floats_of,
    four,
    four_at,
    lane,
    larger,
    largest,
    pairs,
    put,
    same,
    same_whole,
    smaller,
    smallest,
    sum_of,
    up_to,
    wholes,
    wholes_of,
)
from sfumato.core.portable_loops import log, logs

numbers = st.lists(st.floats(0.5, 1e6), min_size=8, max_size=8).map(np.array)


# Not kept on disk: a loop of a test would not see that what it calls has changed.
@njit(error_model="numpy")
def _all(given: Floats, count: int, ints: Ints, found: Floats) -> tuple[float, float, float]:
    one, other = four(given, 0), four(given, 4)
    put(found, 0, one / other + one * other - same(3.0))
    put(found, 4, larger(one, other))
    put(found, 8, smaller(one, other))
    put(found, 12, up_to(count, one, other))
    put(found, 16, above_zero(one - other, one))
    first, second = pairs(given, 0)
    put(found, 20, first)
    put(found, 24, second)
    put(found, 28, floats_of(wholes_of(one) * wholes(ints, 0) + same_whole(5)))
    put(found, 32, logs(one))
    return largest(one), smallest(one), lane(one, 2)


@given(numbers, st.integers(-1, 6), st.lists(st.integers(1, 2**40), min_size=4, max_size=4))
def test_lanes_are_rounded_as_numbers_alone_are(
    given: Floats, count: int, factors: list[int]
) -> None:
    found, one, other = np.empty(36), given[:4], given[4:]
    extremes = _all(given, count, np.array(factors), found)
    whole = [int(a) * b + 5 for a, b in zip(one, factors, strict=True)]
    due: list[Any] = [
        one / other + one * other - 3.0,
        np.maximum(one, other),
        np.minimum(one, other),
        np.where(np.arange(4) < count, one, other),
        np.where(one > other, one, 0.0),
        given[::2],
        given[1::2],
        np.array(whole).astype(np.float64),
        [log(value) for value in one],
    ]
    assert np.array_equal(found, np.concatenate(due))
    assert extremes == (one.max(), one.min(), one[2])


@njit(error_model="numpy")
def _crossed(square: Floats, found: Floats) -> None:
    rows = four(square, 0), four(square, 4), four(square, 8), four(square, 12)
    for place, column in enumerate(crossed(*rows)):
        put(found, 4 * place, column)


def test_rows_are_crossed_to_columns() -> None:
    square, found = np.arange(16.0).reshape(4, 4), np.empty(16)
    _crossed(square, found)
    assert np.array_equal(found.reshape(4, 4), square.T)


@njit(error_model="numpy")
def _looked_up(given: Floats, place: int, wanted: float) -> tuple[float, float, int]:
    fetch(given, place)
    value = four_at(address(given, place))
    return lane(value, 3), sum_of(value), first_lane(value, wanted)


@given(st.lists(st.integers(0, 3), min_size=8, max_size=8), st.integers(0, 4), st.integers(0, 3))
def test_four_at_an_address_are_those_of_the_array(
    given: list[int], place: int, wanted: int
) -> None:
    last, total, first = _looked_up(np.array(given, dtype=np.float64), place, float(wanted))
    some = given[place : place + 4]
    assert (last, total) == (some[3], sum(some))
    assert first == (some.index(wanted) if wanted in some else 4)
