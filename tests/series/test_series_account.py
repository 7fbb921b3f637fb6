"""The curve of Gaussian releases, against many digits and against Google's accountant."""

import itertools
import math
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.account import Account
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import ApproxDP
from sfumato.noise.curves import (
    composed_epsilon,
    concentrated_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_ratio,
)
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.series.series_account import GaussianAccount
from tests.contracts.accounts import AccountLaws
from tests.oracles.paper_bounds import paper_delta, paper_deviation, paper_epsilon

Floats = NDArray[np.float64]

RATIOS = [1e-6, 1e-4, 0.01, 0.3, 1.0, 5.0, 20.0]
DELTAS = [1e-3, 1e-6, 1e-10]


def curve(ratio: float, epsilon: float) -> mpmath.mpf:
    """Delta of the Gaussian mechanism, with 60 digits (Balle and Wang, Theorem 8)."""
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


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


def least_log_delta(rho: float, epsilon: float) -> mpmath.mpf:
    """Minimum over the order, by golden section on a convex function, in 40 digits."""
    with mpmath.workdps(40):
        r, eps = mpmath.mpf(rho), mpmath.mpf(epsilon)

        def log_delta(log_order: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.exp(log_order)
            return (a - 1) * (a * r - eps) - mpmath.log(a - 1) + a * mpmath.log1p(-1 / a)

        low, high = mpmath.mpf(-8), mpmath.mpf(14)
        golden = (mpmath.sqrt(5) - 1) / 2
        for _ in range(90):
            left, right = high - golden * (high - low), low + golden * (high - low)
            if log_delta(left) < log_delta(right):
                high = right
            else:
                low = left
        return log_delta((low + high) / 2)


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


# The filter and what was spent --------------------------------------------------------------------

NOISES = [GaussianNoise.at(1.0, size) for size in (9.0, 14.0, 23.0, 40.0)]


def best_stopping(
    told: list[float], squares: float, actions: tuple[int, ...] = (1,)
) -> tuple[float, float]:
    """The delta of who stops when it pays best, and the chance that any loss is more than told.

    A dynamic programme over the loss of privacy, which moves by N(s/2, s) at every release that
    spends s; what is told after `n` units of `squares` is `told[n]`. From the last unit back.
    """
    unit = squares / (len(told) - 1)
    step = math.sqrt(unit) / 6
    loss = np.asarray(np.arange(-round(6 / step), round(12 / step)) * step, dtype=np.float64)
    best, passed = np.zeros((2, len(told), loss.size))
    for spent in range(len(told) - 1, -1, -1):
        paid = np.maximum(-np.expm1(told[spent] - loss), 0.0) if spent else np.zeros(loss.size)
        over = (loss > told[spent]).astype(float) if spent else np.zeros(loss.size)
        best[spent], passed[spent] = paid, over
        for action in actions:
            if spent + action < len(told):
                for table in (best, passed):
                    later = _mean_after(table[spent + action], loss, action * unit, step)
                    table[spent] = np.maximum(table[spent], later)
    start = int(np.argmin(np.abs(loss)))
    return float(best[0, start]), float(passed[0, start])


def _mean_after(values: Floats, loss: Floats, spent: float, step: float) -> Floats:
    """Mean of a function of the loss one release later, by the density on the lattice."""
    wide = math.ceil(8 * math.sqrt(spent) / step)
    moves = np.arange(-wide, wide + 1) * step
    density = np.exp(-((moves - spent / 2) ** 2) / (2 * spent))
    padded = np.concatenate([np.full(wide, values[0]), values, np.full(wide, values[-1])])
    return np.asarray(np.correlate(padded, density / density.sum(), "valid"))


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (4.0, 1e-6)])
def test_whoever_stops_when_ahead_does_not_gain_on_the_fixed_budget(
    epsilon: float, delta: float
) -> None:
    squares = GaussianAccount(epsilon, delta).most
    told = [epsilon] * 61
    best, _ = best_stopping(told, squares, (1, 7))
    assert best <= delta
    assert best == pytest.approx(float(curve(math.sqrt(squares), epsilon)), rel=0.02)
    assert best > 0.98 * delta


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (4.0, 1e-6)])
def test_what_was_spent_holds_for_whoever_stops_when_ahead(epsilon: float, delta: float) -> None:
    begun = GaussianAccount(epsilon, delta)
    told = [replace(begun, squares=begun.most * n / 100, count=n).spent.epsilon for n in range(101)]
    assert told == sorted(told)
    best, passed = best_stopping(told, begun.most)
    assert best <= passed <= delta
    assert told[-1] < 1.5 * epsilon and told[1] < 0.5 * epsilon


def test_the_curve_of_what_was_spent_so_far_is_no_guarantee_for_whoever_stops_when_ahead() -> None:
    squares = GaussianAccount(1.0, 1e-5).most
    told = [0.0, *(gaussian_epsilon(math.sqrt(squares * n / 100), 1e-5) for n in range(1, 101))]
    best, _ = best_stopping(told, squares)
    assert best > 4e-5


def test_the_filter_counts_the_same_in_every_order() -> None:
    told = []
    for order in itertools.permutations(NOISES):
        budget = GaussianAccount(2.0, 1e-6)
        for noise in order:
            budget = budget.charged(noise)
        told.append(budget.squares)
    assert max(told) - min(told) <= 1e-12 * max(told)
    exact = sum(1 / size**2 for size in (9.0, 14.0, 23.0, 40.0))
    assert exact <= min(told) <= exact * 1.021  # whole steps


def test_the_filter_never_undercounts_the_exact_sum() -> None:
    budget = GaussianAccount(1e3, 1e-6)
    exact = mpmath.mpf(0)
    for noise in NOISES * 50:
        budget = budget.charged(noise)
        with mpmath.workdps(40):
            exact += (mpmath.mpf(noise.steps) / mpmath.mpf(noise.deviation)) ** 2
    assert exact <= budget.squares <= exact * (1 + mpmath.mpf(10) ** -12)
    assert budget.count == 200
    assert budget.slack >= 50 * sum(noise.slack for noise in NOISES) * (1 - 1e-13)
    assert budget.error >= 50 * sum(noise.error for noise in NOISES) * (1 - 1e-13)


def test_refusal_changes_nothing() -> None:
    budget = GaussianAccount(1.0, 1e-6).charged(NOISES[2])
    before = budget.spent
    assert not budget.covers(GaussianNoise.at(1.0, 2.0))
    with pytest.raises(BudgetExceeded) as refusal:
        budget.charged(GaussianNoise.at(1.0, 2.0))
    assert refusal.value.sequence == 1
    assert budget.spent == before and budget.count == 1
    assert budget.covers(NOISES[3])


@given(sizes=st.lists(st.sampled_from([5.0, 8.0, 20.0, 60.0]), min_size=1, max_size=40))
@settings(max_examples=25)
def test_adaptive_noises_never_pass_the_budget(sizes: list[float]) -> None:
    """The shadow is the exact curve of all that was let through."""
    budget, kept = GaussianAccount(1.0, 1e-6), mpmath.mpf(0)
    for size in sizes:
        noise = GaussianNoise.at(1.0, size)
        if budget.covers(noise):
            budget = budget.charged(noise)
            kept += mpmath.mpf(1) / mpmath.mpf(size) ** 2
        else:
            with pytest.raises(BudgetExceeded):
                budget.charged(noise)
            assert gaussian_epsilon(math.sqrt(float(kept) + 1 / size**2), 1e-6) > 0.98
    if kept:
        assert curve(float(mpmath.sqrt(kept)), 1.0) <= 1e-6


def test_nothing_spent_is_nothing() -> None:
    assert GaussianAccount(1.0, 1e-6).spent.epsilon == 0.0
    begun = GaussianAccount(1.0, 1e-6).charged(NOISES[0])
    assert 0 < begun.spent.epsilon < math.inf
    assert begun.guarantee == ApproxDP(1.0, 1e-6)


def test_noise_that_its_table_does_not_hold_never_fits() -> None:
    wild = GaussianNoise.at(40.0, 1.0)
    assert wild.slack == 1.0
    assert not GaussianAccount(1e3, 1e-6).covers(wild)


class TestGaussianAccount(AccountLaws):
    """A cost is a noise; whole steps of its lattice may cost a hundredth more than was asked."""

    def begin(self) -> GaussianAccount:
        return GaussianAccount(1.0, 1e-6)

    def cost(self, account: Account[Any], part: float) -> GaussianNoise:
        squares = max(0.95 * part * account.allowance, 1e-11)
        return GaussianNoise.at(1.0, 1 / math.sqrt(squares))

    def spend(self, parts: list[float]) -> list[Any]:
        return super().spend(parts[:5])  # what is left of a left-over is soon less than any noise

    def within(self, costs: list[Any]) -> bool:
        with mpmath.workdps(40):
            mu = mpmath.sqrt(sum((mpmath.mpf(n.steps) / n.deviation) ** 2 for n in costs))
            tail = mpmath.e * mpmath.ncdf(-mu / 2 - 1 / mu)
            return bool(mpmath.ncdf(mu / 2 - 1 / mu) - tail <= 1e-6)
