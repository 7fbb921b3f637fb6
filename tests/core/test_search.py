"""One search for all boundaries: what it returns keeps the rule, and is the last that does."""

from __future__ import annotations

import math
from itertools import count
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.core.search import (
    boundaries,
    boundary,
    doubled,
    geometric,
    largest,
    largest_above,
    least_above,
    narrowed,
)

numbers = st.floats(1e-12, 1e12)


@given(numbers, numbers, numbers)
def test_the_last_float_that_keeps_the_rule_is_found_from_either_side(
    one: float, two: float, three: float
) -> None:
    low, edge, high = sorted((one, two, three))
    if not low < edge < high:
        return
    assert boundary(lambda x: x <= edge, low, high) == edge
    assert boundary(lambda x: x >= edge, high, low) == edge
    assert narrowed(lambda x: x <= edge, low, high) == (edge, math.nextafter(edge, math.inf))


@given(st.randoms(use_true_random=False), st.integers(0, 30))
def test_whatever_the_rule_does_the_result_was_seen_to_keep_it(coins: Random, steps: int) -> None:
    seen: dict[float, bool] = {}

    def wavering(x: float) -> bool:
        seen[x] = coins.random() < 0.5
        return seen[x]

    found = boundary(wavering, 0.0, 1.0, steps=steps)
    assert found == 0.0 or seen[found]
    assert len(seen) <= steps
    least = least_above(wavering, 0.1, 1e3, steps=steps)
    assert math.isinf(least) or seen[least]
    most = largest_above(wavering, 0.1, 1e3, steps=steps)
    assert most == 0.0 or seen[most]
    assert (found := largest(wavering, 1.0)) == 0.0 or seen[found]


@given(numbers, st.floats(1e-9, 1e-2))
def test_a_tolerance_is_kept_on_the_safe_side(edge: float, relative: float) -> None:
    found = boundary(lambda x: x >= edge, 2 * edge, 0.0, relative=relative)
    assert edge <= found <= edge * (1 + 2 * relative)
    found = boundary(lambda x: x >= edge, 2 * edge, 0.0, absolute=relative * edge)
    assert edge <= found <= edge * (1 + 2 * relative)


@given(st.floats(1e-100, 1e100))
def test_a_scale_of_unknown_size_is_found_in_few_steps(edge: float) -> None:
    asked = count()
    inside, outside = narrowed(
        lambda x: bool(next(asked) + 1) and x <= edge, 1e-101, 1e101, steps=40, middle=geometric
    )
    assert inside <= edge < outside
    assert outside / inside < 1 + 1e-8
    assert next(asked) <= 40


@given(numbers)
def test_doubling_brackets_the_edge_or_gives_up_on_the_safe_side(edge: float) -> None:
    low, high = doubled(lambda x: x >= edge, 1.0, 1e13)
    assert low < edge <= high
    assert high in (1.0, 2 * low)
    assert least_above(lambda x: x >= edge, 1.0, 1e13) == edge
    assert largest_above(lambda x: x <= edge, 1.0, 1e13) == edge
    assert least_above(lambda x: False, 1.0, edge) == math.inf
    assert largest_above(lambda x: True, 1.0, max(edge, 1.0)) <= max(edge, 1.0)


def test_nothing_that_keeps_the_rule_is_zero_or_infinite() -> None:
    assert largest(lambda x: False, 1.0) == 0.0
    assert largest_above(lambda x: False, 1.0, 8.0) == 0.0
    assert least_above(lambda x: False, 1.0, 8.0) == math.inf


def test_a_start_that_doubling_cannot_move_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="start"):
        doubled(lambda x: False, 0.0, 1.0)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5))
def test_many_searches_at_once_are_as_many_single_ones(edges: list[float]) -> None:
    limits = np.array(edges)
    inside, outside = boundaries(lambda x: x <= limits, np.full(limits.size, -0.5), limits + 1.0)
    for edge, low, high in zip(edges, inside, outside, strict=True):
        assert (low, high) == narrowed(edge.__ge__, -0.5, edge + 1.0)
