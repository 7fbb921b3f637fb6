"""Leakage of every release against Eqs. 13, 15 and 11 step by step, and against the definitions."""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import TemporalLeakage, temporal_leakage
from tests.oracles.temporal import (
    ExactLoss,
    defined_leakage,
    exact_leakage,
    randomised_response,
    reversed_steps,
)

Floats = NDArray[np.float64]

BACKWARD = [[0.8, 0.2], [0.2, 0.8]]
FORWARD = [[0.8, 0.2], [0.1, 0.9]]
STICKY = [[0.97, 0.02, 0.01], [0.05, 0.9, 0.05], [0.0, 0.0, 1.0]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]
EVEN = [[0.5, 0.5], [0.5, 0.5]]

budgets = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-6, 2.0), st.just(1e-12)), min_size=1, max_size=12
)


def rounded_up(got: Floats, exact: Sequence[Any], relative: float = 1e-12) -> bool:
    pairs = zip(got.tolist(), exact, strict=True)
    return all(want <= one <= want * (1 + relative) + 1e-300 for one, want in pairs)


# Against fifty digits -----------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    budgets,
    st.sampled_from([BACKWARD, STICKY, EVEN]),
    st.sampled_from([FORWARD, STICKY, IDENTITY]),
)
def test_every_leakage_is_that_of_fifty_digits_rounded_up(
    epsilons: list[float], backward: list[list[float]], forward: list[list[float]]
) -> None:
    told = temporal_leakage(epsilons, LossFunction.of(backward), LossFunction.of(forward))
    before, after, both = exact_leakage(epsilons, ExactLoss(backward), ExactLoss(forward))
    assert told.epsilons.tolist() == epsilons
    assert rounded_up(told.backward, before)
    assert rounded_up(told.forward, after)
    assert rounded_up(told.total, both)
    assert told.event.alpha == told.total.max()


def test_a_function_for_each_step_is_used_at_its_step() -> None:
    forward, start, epsilons = [[0.9, 0.1], [0.3, 0.7]], [0.99, 0.01], [0.3, 0.1, 0.0, 0.5, 0.2]
    matrices = reversed_steps(forward, start, 4)
    moving = [[[0.6, 0.4], [0.4, 0.6]], forward, [[0.5, 0.5], [0.0, 1.0]], EVEN]
    told = temporal_leakage(
        epsilons,
        [LossFunction.of(matrix) for matrix in matrices],
        [LossFunction.of(matrix) for matrix in moving],
    )
    before, after, both = exact_leakage(
        epsilons,
        [ExactLoss(matrix) for matrix in matrices],
        [ExactLoss(matrix) for matrix in moving],
    )
    assert rounded_up(told.backward, before)
    assert rounded_up(told.forward, after)
    assert rounded_up(told.total, both)
    # In another order it would be another leakage.
    turned = [LossFunction.of(matrix) for matrix in moving[::-1]]
    assert temporal_leakage(epsilons, turned, turned).forward[0] != told.forward[0]


def test_one_function_is_the_same_as_it_at_every_step() -> None:
    loss, epsilons = LossFunction.of(STICKY), np.linspace(0.0, 0.5, 9)
    once, each = (
        temporal_leakage(epsilons, loss, loss),
        temporal_leakage(epsilons, [loss] * 8, loss),
    )
    assert np.array_equal(once.backward, each.backward)
    assert np.array_equal(once.total, each.total)


# Against the definitions --------------------------------------------------------------------------


def tiny_cases() -> list[tuple[Floats, Floats, list[float]]]:
    rng = np.random.default_rng(5)
    found = []
    for length in (1, 2, 3):
        for _ in range(12):
            chain = rng.dirichlet([0.7, 0.7], 2)
            found.append(
                (chain, rng.dirichlet([2.0, 2.0]), rng.uniform(0.05, 2.0, length).tolist())
            )
    return found


@pytest.mark.parametrize(("chain", "start", "epsilons"), tiny_cases())
def test_all_three_leakages_bound_those_of_the_joint_table(
    chain: Floats, start: Floats, epsilons: list[float]
) -> None:
    channels = [randomised_response(2, epsilon) for epsilon in epsilons]
    past, future, both, alone = defined_leakage(chain, start, channels)
    assert alone == pytest.approx(epsilons)
    losses = [LossFunction.of(m) for m in reversed_steps(chain, start, len(epsilons) - 1)]
    told = temporal_leakage(epsilons, losses, LossFunction.of(chain))
    slack = 1e-12
    assert np.all(past <= told.backward + slack)
    assert np.all(future <= told.forward + slack)
    assert np.all(both <= told.total + slack)
    # With two values the loss of one step is exact.
    assert past[:2] == pytest.approx(told.backward[:2], rel=1e-9)
    assert future[-2:] == pytest.approx(told.forward[-2:], rel=1e-9)


def test_the_sum_of_both_ways_is_more_than_the_truth_where_their_worst_pairs_differ() -> None:
    chain, start = [[0.9, 0.1], [0.5, 0.5]], [0.2, 0.8]
    channels = [randomised_response(2, epsilon) for epsilon in (1.0, 0.5, 1.0)]
    past, future, both, alone = defined_leakage(chain, start, channels)
    assert both[1] < past[1] + future[1] - alone[1] - 1e-3


def uneven_case() -> tuple[Floats, list[Floats]]:
    """Three values in a row; the mechanism tells the outer ones apart best, the chain the inner."""
    chain = np.array([[0.1, 0.8, 0.1], [0.45, 0.1, 0.45], [0.1, 0.8, 0.1]])
    r = math.exp(-0.5)
    geometric = np.array(
        [[1, (1 - r) * r, r * r], [r, 1 - r, r], [r * r, (1 - r) * r, 1]],
    ) / (1 + r)
    response = randomised_response(3, 1.0)
    return chain, [response, geometric, response]


def test_equation_10_with_the_leakages_as_defined_is_no_bound_but_the_recursion_is() -> None:
    chain, channels = uneven_case()
    start = [1 / 3] * 3
    past, future, both, alone = defined_leakage(chain, start, channels)
    assert past[1] + future[1] - alone[1] == pytest.approx(1.3936969264, abs=1e-9)
    assert both[1] == pytest.approx(1.8936969264, abs=1e-9)
    losses = [LossFunction.of(matrix) for matrix in reversed_steps(chain, start, 2)]
    told = temporal_leakage([1.0, 1.0, 1.0], losses, LossFunction.of(chain))
    assert np.all(told.total >= both)


# Windows ------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 2.0), min_size=2, max_size=9))
def test_windows_are_those_of_theorem_3_rounded_up(epsilons: list[float]) -> None:
    told = temporal_leakage(epsilons, LossFunction.of(BACKWARD), LossFunction.of(FORWARD))
    before, after, _ = exact_leakage(epsilons, ExactLoss(BACKWARD), ExactLoss(FORWARD))
    for width in range(2, len(epsilons) + 1):
        wanted = max(
            before[t] + after[t + width - 1] + sum(map(Fraction, epsilons[t + 1 : t + width - 1]))
            for t in range(len(epsilons) - width + 1)
        )
        assert wanted <= told.window(width).alpha <= wanted * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize("matrix", [BACKWARD, STICKY, IDENTITY, EVEN])
def test_a_whole_stream_leaks_the_sum_of_its_budgets(matrix: list[list[float]]) -> None:
    loss = LossFunction.of(matrix)
    for seed in range(20):
        epsilons = np.random.default_rng(seed).exponential(1.0, seed + 1)
        told = temporal_leakage(epsilons, loss, loss)
        total = sum(map(Fraction, epsilons.tolist()))
        assert total <= Fraction(told.user.alpha) <= total * (1 + Fraction(1, 10**12))
        assert told.event.alpha <= told.user.alpha * (1 + 1e-13)


@settings(max_examples=30)
@given(st.lists(st.floats(0.0, 2.0), min_size=1, max_size=9))
def test_a_wider_window_never_leaks_less(epsilons: list[float]) -> None:
    told = temporal_leakage(epsilons, LossFunction.of(STICKY), LossFunction.of(STICKY))
    assert told.window(1) == told.event
    widths = [told.window(width).alpha for width in range(1, len(epsilons) + 1)]
    assert all(one <= other * (1 + 1e-13) for one, other in itertools.pairwise(widths))


@pytest.mark.parametrize("width", [0, -1, 4])
def test_a_window_that_does_not_fit_is_refused(width: int) -> None:
    loss = LossFunction.of(BACKWARD)
    with pytest.raises(InvalidParameter, match="width"):
        temporal_leakage([0.1] * 3, loss, loss).window(width)


# Special sequences --------------------------------------------------------------------------------


def test_a_single_release_leaks_what_it_leaks() -> None:
    loss = LossFunction.of(STICKY)
    told = temporal_leakage([0.3], loss, loss)
    assert told.backward == told.forward == told.total == told.epsilons == [0.3]
    assert told.event.alpha == told.window(1).alpha == told.user.alpha == 0.3
    assert temporal_leakage(0.3, loss, loss).total == [0.3]


def test_without_correlation_nothing_is_added_to_the_last_bit() -> None:
    epsilons = np.random.default_rng(1).random(50)
    for loss in (LossFunction.unknown(), LossFunction.of(EVEN)):
        assert np.array_equal(temporal_leakage(epsilons, loss, loss).total, epsilons)


def test_moments_without_a_release_leak_through_their_neighbours() -> None:
    loss = LossFunction.of(BACKWARD)
    told = temporal_leakage([1.0, 0.0, 0.0, 1.0], loss, loss)
    assert np.all(told.total > 0)
    assert temporal_leakage([0.0] * 4, loss, loss).event.alpha == 0.0
    assert told.total[1] == pytest.approx(told.total[2], rel=1e-14)


@pytest.mark.parametrize("wrong", [[0.1, -0.1], [math.nan], [math.inf], [[0.1], [0.2]]])
def test_budgets_that_are_none_are_refused(wrong: Any) -> None:
    loss = LossFunction.of(BACKWARD)
    with pytest.raises(InvalidParameter):
        temporal_leakage(wrong, loss, loss)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_as_many_functions_as_steps_are_needed(count: int) -> None:
    loss = LossFunction.of(BACKWARD)
    with pytest.raises(InvalidParameter, match="2, one for each step"):
        temporal_leakage([0.1] * 3, [loss] * count, loss)


def test_leakages_cannot_be_written_to() -> None:
    told = temporal_leakage([0.1, 0.2], LossFunction.of(BACKWARD), LossFunction.of(FORWARD))
    assert isinstance(told, TemporalLeakage)
    with pytest.raises(ValueError, match="read-only"):
        told.total[0] = 0.0


# Each of these was found broken -------------------------------------------------------------------


@pytest.mark.parametrize("budget", [705.0, 720.0, 800.0, 2000.0])
@pytest.mark.parametrize("matrix", [FORWARD, [[0.8, 0.2], [0.0, 1.0]]])
def test_budgets_beyond_the_range_of_floats_are_accumulated_like_others(
    matrix: list[list[float]], budget: float
) -> None:
    loss = LossFunction.of(matrix)
    exact = ExactLoss(matrix).accumulated([budget, 1.0])[-1]
    told = temporal_leakage([budget, 1.0], loss, loss).backward[-1]
    assert exact <= told <= exact * (1 + 1e-9)
    each = temporal_leakage([budget, 1.0], [loss], loss).backward[-1]
    assert told == pytest.approx(each, rel=1e-13)


def test_a_negative_budget_is_named_with_its_value() -> None:
    loss = LossFunction.of(BACKWARD)
    with pytest.raises(InvalidParameter, match=r"-0\.25"):
        temporal_leakage([0.1, -0.25, 0.1], loss, loss)


def test_a_sequence_without_releases_is_refused_or_leaks_nothing() -> None:
    loss = LossFunction.of(BACKWARD)
    try:
        told = temporal_leakage([], loss, loss)
    except InvalidParameter:
        return
    assert told.event.alpha == told.user.alpha == 0.0
