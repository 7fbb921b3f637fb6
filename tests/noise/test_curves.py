"""The curve of Gaussian releases, against many digits and against Google's accountant."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.noise.curves import (
    composed_epsilon,
    concentrated_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_ratio,
)
from tests.oracles.gaussian_curves import curve, least_log_delta
from tests.oracles.paper_bounds import paper_delta, paper_deviation, paper_epsilon

RATIOS = [1e-6, 1e-4, 0.01, 0.3, 1.0, 5.0, 20.0]
DELTAS = [1e-3, 1e-6, 1e-10]


# The curve --------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("ratio", RATIOS)
def test_gaussian_epsilon_is_the_least_one_of_the_curve_and_never_below(
    ratio: float, delta: float
) -> None:
    epsilon = gaussian_epsilon(ratio, delta)
    assert curve(ratio, epsilon) <= delta
    if epsilon > 1e-12:
        assert curve(ratio, epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 30.0])
def test_gaussian_ratio_is_the_largest_one_that_keeps_the_budget(
    epsilon: float, delta: float
) -> None:
    ratio = gaussian_ratio(epsilon, delta)
    assert curve(ratio, epsilon) <= delta < curve(ratio * (1 + 1e-6), epsilon)
    assert gaussian_epsilon(ratio, delta) <= epsilon
    assert gaussian_epsilon(ratio, delta) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("slack", [1e-12, 1e-8])
@pytest.mark.parametrize("error", [0.0, 1e-9, 1e-2])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 7.0])
def test_what_is_rounded_is_paid_for(ratio: float, error: float, slack: float) -> None:
    delta = 1e-6
    epsilon = gaussian_epsilon(ratio, delta, slack, error)
    paid = mpmath.exp(error) * curve(ratio, epsilon - 2 * mpmath.mpf(error)) + slack
    assert paid <= delta
    assert epsilon > gaussian_epsilon(ratio, delta)
    assert epsilon < gaussian_epsilon(ratio, delta) * 1.01 + 3 * error


@pytest.mark.parametrize("size", [0.2, 1.0, 5.0])
def test_a_table_within_the_error_has_no_more_delta_than_stated(size: float) -> None:
    """Weights that are off by the factor, in the worst way, on a lattice: sums of all cells."""
    places, error = np.arange(-4000, 4001), 0.05
    masses = np.exp(-0.5 * (places / 400) ** 2)
    masses, apart = masses / masses.sum(), round(400 * size)
    near = np.abs(places) <= 2800 - apart
    for epsilon in (0.0, 0.05, 1.0, 4.0, 12.0):
        told = masses * np.exp(np.where(places < 0, error, -error))
        here, there = told[apart:], told[:-apart]
        delta = np.maximum(here[near[apart:]] - math.exp(epsilon) * there[near[apart:]], 0).sum()
        slack = told[~near].sum()
        assert delta + slack <= gaussian_delta(size, epsilon, slack, error)


def test_the_delta_of_tables_rises_with_the_ratio_and_falls_with_epsilon() -> None:
    ratios = [gaussian_delta(ratio, 2.0, 1e-9, 1e-6) for ratio in np.linspace(0.1, 9, 60)]
    levels = [gaussian_delta(2.0, level, 1e-9, 1e-6) for level in np.linspace(0, 60, 90)]
    assert ratios == sorted(ratios) and levels == sorted(levels, reverse=True)


def test_nothing_released_costs_nothing_and_everything_released_costs_all() -> None:
    assert gaussian_epsilon(0.0, 1e-6) == 0.0
    assert gaussian_epsilon(1e4, 1e-6) == math.inf
    assert gaussian_epsilon(1.0, 1e-6, slack=1e-6) == math.inf


@pytest.mark.parametrize("bad", [0.0, 1.0, -1e-3, math.nan])
def test_impossible_deltas_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter):
        gaussian_epsilon(1.0, bad)
    with pytest.raises(InvalidParameter):
        gaussian_ratio(1.0, bad)


@pytest.mark.parametrize("count", [1, 10, 1000])
@pytest.mark.parametrize("delta", [1e-5, 1e-8])
def test_compositions_agree_with_the_privacy_loss_distribution(count: int, delta: float) -> None:
    total = 0.8
    each = total / math.sqrt(count)
    mine = gaussian_epsilon(total, delta)
    bounds = []
    for pessimistic in (False, True):
        one = pld.from_gaussian_mechanism(
            standard_deviation=1 / each,
            value_discretization_interval=1e-4 if count < 1000 else 1e-5,
            pessimistic_estimate=pessimistic,
            use_connect_dots=pessimistic,
        )
        bounds.append(one.self_compose(count).get_epsilon_for_delta(delta))
    assert bounds[0] <= mine * (1 + 1e-9)
    assert mine <= bounds[1] * (1 + 1e-9)
    assert bounds[1] <= 1.01 * bounds[0]


@given(
    squares=st.floats(1e-4, 100.0),
    delta=st.sampled_from([1e-3, 1e-6, 1e-12]),
)
@settings(max_examples=40)
def test_the_curve_lies_strictly_below_the_paper_bound(squares: float, delta: float) -> None:
    mine = gaussian_epsilon(math.sqrt(squares), delta)
    assert mine < paper_epsilon(squares, delta)


@given(squares=st.floats(1e-3, 50.0), delta=st.sampled_from([1e-3, 1e-6, 1e-12]))
def test_both_paper_bounds_are_inverse_to_each_other(squares: float, delta: float) -> None:
    epsilon = paper_epsilon(squares, delta)
    assert paper_delta(squares, epsilon) == pytest.approx(delta, rel=1e-6)
    assert curve(math.sqrt(squares), epsilon) < delta


def test_paper_delta_is_1_where_the_theorem_says_nothing() -> None:
    assert paper_delta(4.0, 1.9) == 1.0


@given(
    weights=st.lists(st.floats(0.01, 1.0), min_size=1, max_size=20),
    sensitivity=st.sampled_from([0.1, 1.0, 30.0]),
    epsilon=st.floats(0.05, 20.0),
)
def test_paper_deviation_spends_the_paper_epsilon(
    weights: list[float], sensitivity: float, epsilon: float
) -> None:
    deviation = paper_deviation(weights, sensitivity, epsilon, 1e-6)
    squares = sum((weight * sensitivity / deviation) ** 2 for weight in weights)
    assert paper_epsilon(squares, 1e-6) == pytest.approx(epsilon, rel=1e-6)
    assert gaussian_ratio(epsilon, 1e-6) > math.sqrt(squares)


# Concentrated privacy ---------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [1e-6, 0.01, 0.5, 10.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-8])
def test_concentrated_epsilon_is_the_least_over_all_orders(rho: float, delta: float) -> None:
    found = concentrated_epsilon(rho, delta)
    assert least_log_delta(rho, found) <= math.log(delta) + 1e-9
    assert found < 1e-12 or least_log_delta(rho, found * (1 - 1e-3)) > math.log(delta)
    assert found >= gaussian_epsilon(math.sqrt(2 * rho), delta)


def test_concentrated_slack_costs_more_and_nothing_costs_nothing() -> None:
    assert concentrated_epsilon(0.0, 1e-6) == 0.0
    assert concentrated_epsilon(0.5, 1e-6, 1e-10) > concentrated_epsilon(0.5, 1e-6)
    assert concentrated_epsilon(0.5, 1e-6, 1e-6) == math.inf


# Composition by the paper -----------------------------------------------------------------------


def kairouz(epsilons: list[float], slack: float) -> mpmath.mpf:
    with mpmath.workdps(40):
        each = [mpmath.mpf(one) for one in epsilons]
        drift = sum((mpmath.exp(e) - 1) * e / (mpmath.exp(e) + 1) for e in each)
        square = sum(e**2 for e in each)
        first = mpmath.sqrt(2 * square * mpmath.log(mpmath.e + mpmath.sqrt(square) / slack))
        second = mpmath.sqrt(2 * square * mpmath.log(1 / mpmath.mpf(slack)))
        return min(sum(each), drift + first, drift + second)


@given(
    epsilons=st.lists(st.floats(1e-3, 3.0), min_size=1, max_size=30),
    slack=st.sampled_from([0.3, 1e-3, 1e-9]),
    delta=st.sampled_from([0.0, 1e-9, 1e-3]),
)
def test_composed_epsilon_is_the_formula_rounded_up(
    epsilons: list[float], slack: float, delta: float
) -> None:
    found = composed_epsilon(epsilons, [delta] * len(epsilons), slack)
    exact = kairouz(epsilons, slack)
    assert exact <= found.epsilon <= exact * (1 + mpmath.mpf(10) ** -9)
    with mpmath.workdps(40):
        failed = 1 - (1 - mpmath.mpf(slack)) * (1 - mpmath.mpf(delta)) ** len(epsilons)
        assert failed <= found.delta <= failed + mpmath.mpf(10) ** -14


@pytest.mark.parametrize("delta", [1e-17, 5e-17, 1e-16, 1e-15])
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_composed_delta_forgets_no_tiny_delta(delta: float, count: int) -> None:
    found = composed_epsilon([0.1] * count, [delta] * count, 1e-17)
    with mpmath.workdps(60):
        failed = 1 - (1 - mpmath.mpf(1e-17)) * (1 - mpmath.mpf(delta)) ** count
        assert failed <= found.delta


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.5, 20), (1.0, 3)])
def test_composed_epsilon_is_never_below_the_optimal_composition(
    epsilon: float, count: int
) -> None:
    slack = 1e-5
    found = composed_epsilon([epsilon] * count, [0.0] * count, slack)
    lie = 2 / (math.exp(epsilon) + 1)
    one = pld.from_randomized_response(lie, 2, pessimistic_estimate=False)
    assert found.epsilon >= one.self_compose(count).get_epsilon_for_delta(slack)


@pytest.mark.parametrize("bad", [[-1.0], [math.nan], [math.inf]])
def test_impossible_epsilons_are_not_composed(bad: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        composed_epsilon(bad, [0.0], 1e-6)


@pytest.mark.parametrize("bad", [[-0.1], [1.5], [math.nan], [0.0, 0.0]])
def test_impossible_deltas_are_not_composed(bad: list[float]) -> None:
    with pytest.raises(InvalidParameter):
        composed_epsilon([0.5], bad, 1e-6)
