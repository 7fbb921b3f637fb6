import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, seeded
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.rivals.windowed import (
    LEAST_BUDGET,
    BudgetAbsorption,
    BudgetDistribution,
    Windowed,
    noise_within,
)
from tests.series.quick import simulations

METHODS = [BudgetDistribution, BudgetAbsorption]
Step = tuple[float, Fraction, bool]
Floats = NDArray[np.float64]


def run(method: Windowed, series: Sequence[float], randomness: Randomness) -> list[Step]:
    """Each step: what left, what it leaked, and whether it was published."""
    events = method.begin(randomness, purpose=Purpose.SIMULATION).advance(series)
    asking = method.dissimilarity.leakage.epsilon
    return [(e.released or 0.0, Fraction(e.charge), e.charge > asking) for e in events]


def exact_leakage(noise: LaplaceNoise) -> float:
    """Largest log-ratio of the noise at a distance of its sensitivity, from its integers alone."""
    table = [int(weight) for weight in noise.noise.weights]
    ratios = [Fraction(a, b) for a, b in itertools.pairwise(table)]
    ratios.append(Fraction(table[-1] * 2**62, table[0] * noise.noise.repeat))
    # The two-sided noise is a mixture over its second half, so no ratio of its is larger.
    worst = max(max(ratios), max(1 / r for r in ratios))
    return noise.steps * math.log(worst)


def planned(method: Windowed, published: Sequence[bool]) -> list[Fraction]:
    """Budgets of the paper, step by step: what is asked with, and what is published with."""
    half, w = Fraction(method.epsilon) / 2, method.window
    taken: list[Fraction] = []
    last, paid = -1, 1  # before the first step: one share was paid, by the step before
    for i, told in enumerate(published):
        if isinstance(method, BudgetDistribution):
            offer = (half - sum(taken[max(0, i - w + 1) : i], Fraction(0))) / 2
        else:
            nullified = last + paid - 1
            offer = half / w * min(i - nullified, w) if i > nullified else Fraction(0)
        taken.append(offer if told else Fraction(0))
        if told:
            last, paid = i, round(offer / (half / w))
    return taken


def oracle_sums(method: Windowed, published: Sequence[bool], asking: float) -> float:
    """The largest sum over a window of what the steps were planned to leak."""
    spends = [float(take) + asking for take in planned(method, published)]
    w = method.window
    return max(math.fsum(spends[i : i + w]) for i in range(len(spends)))


series_strategy = st.lists(
    st.one_of(st.floats(-50, 50), st.floats(-1e6, 1e6)), min_size=1, max_size=40
)


@pytest.mark.parametrize("kind", METHODS)
@settings(max_examples=60, deadline=None)
@given(
    series=series_strategy,
    epsilon=st.floats(0.05, 20.0),
    window=st.integers(1, 8),
    seed=st.integers(0, 10**6),
)
def test_no_window_leaks_more_than_the_budget(
    kind: type[Windowed], series: list[float], epsilon: float, window: int, seed: int
) -> None:
    method = kind(1.0, epsilon, window)
    steps = run(method, series, seeded(seed))
    spent = [cost for _, cost, _ in steps]
    note(f"published {sum(p for *_, p in steps) > 1}")
    assert method.guarantee <= PureDP(epsilon)
    for start in range(len(spent)):
        assert sum(spent[start : start + window]) <= Fraction(method.guarantee.epsilon)


@pytest.mark.parametrize("kind", METHODS)
@settings(max_examples=40, deadline=None)
@given(series=series_strategy, window=st.integers(1, 6), seed=st.integers(0, 10**6))
def test_budgets_are_those_of_the_paper(
    kind: type[Windowed], series: list[float], window: int, seed: int
) -> None:
    method = kind(1.0, 4.0, window)
    steps = run(method, series, seeded(seed))
    published = [told for *_, told in steps]
    asking = Fraction(method.dissimilarity.leakage.epsilon)
    for (_, cost, told), plan in zip(steps, planned(method, published), strict=True):
        if told:
            assert float(cost - asking) == pytest.approx(float(plan), rel=1e-5)
            assert cost - asking <= plan
        else:
            assert cost in (0, asking)
    # The plan of the paper stays within the budget too, and its every step was tried.
    assert oracle_sums(method, published, 2.0 / window) <= 4.0 + 1e-9


@pytest.mark.parametrize("kind", METHODS)
def test_a_step_publishes_or_repeats_the_last_release(kind: type[Windowed]) -> None:
    series = np.repeat([500.0, -300.0, 800.0], 12)
    steps = run(kind(1.0, 4.0, 4), list(series), seeded(3))
    assert 3 <= sum(told for *_, told in steps) < 36
    last = 0.0
    for told, _, published in steps:
        assert (told != last) == published
        last = told


@pytest.mark.parametrize("kind", METHODS)
def test_before_the_first_publication_the_initial_value_leaves(kind: type[Windowed]) -> None:
    method = kind(1.0, 2.0, 5, initial=7.0)
    steps = [run(method, [7.0], seeded(seed))[0] for seed in range(40)]
    assert 0 < sum(told for *_, told in steps) < 40
    assert all((released == 7.0) or told for released, _, told in steps)


@pytest.mark.parametrize("kind", METHODS)
def test_a_large_move_is_followed_and_none_is_not(kind: type[Windowed]) -> None:
    method = kind(1.0, 2.0, 5)
    moved = [run(method, [0.0] * 5 + [1e5] * 5, seeded(s))[-1] for s in range(30)]
    assert all(abs(told - 1e5) < 200 for told, *_ in moved)
    still = [sum(p for *_, p in run(method, [0.0] * 20, seeded(s))) for s in range(30)]
    assert np.mean(still) < 8


def test_distribution_halves_what_is_left_and_gets_it_back() -> None:
    method = BudgetDistribution(1.0, 4.0, 3)
    far = [1e6, -1e6, 1e6, -1e6, 1e6]
    steps = run(method, far, seeded(0))
    asking = Fraction(method.dissimilarity.leakage.epsilon)
    shares = [float(cost - asking) for _, cost, _ in steps]
    # 1, then half of what is left of 2; the first leaves the window at the fourth step.
    assert shares == pytest.approx([1, 0.5, 0.25, 0.625, 0.5625], rel=1e-9)


def test_absorption_takes_skipped_shares_and_pays_with_silence() -> None:
    method = BudgetAbsorption(1.0, 4.0, 4)  # shares of 1/2
    series = [0.0, 0.0, 1e6, -1e6, 1e6, -1e6, -1e6]
    wanted = [False, False, True, False, False, True, False]
    runs = (run(method, series, seeded(seed)) for seed in range(200))
    steps = next(steps for steps in runs if [told for *_, told in steps] == wanted)
    asking = method.dissimilarity.leakage.epsilon
    costs = [float(cost) for _, cost, _ in steps]
    expected = [asking, asking, asking + 1.5, 0, 0, asking + 0.5, asking]
    assert costs == pytest.approx(expected, rel=1e-9)


def test_absorption_saves_no_more_than_a_window() -> None:
    method = BudgetAbsorption(1.0, 4.0, 3)
    runs = (run(method, [0.0] * 9 + [1e6], seeded(seed)) for seed in range(300))
    steps = next(s for s in runs if [told for *_, told in s] == [False] * 9 + [True])
    assert float(steps[-1][1]) == pytest.approx(2.0 + 4.0 / 6, rel=1e-9)


def test_distribution_with_nothing_left_repeats_and_asks_nothing() -> None:
    method = BudgetDistribution(1.0, 1.0, 40)
    steps = run(method, [1e9 * (-1) ** i for i in range(40)], seeded(1))
    tried = math.floor(math.log2(0.25 / LEAST_BUDGET)) + 1
    assert [told for *_, told in steps] == [True] * tried + [False] * (40 - tried)
    assert all(cost == 0 for _, cost, _ in steps[tried:])


@pytest.mark.parametrize("budget", [2e-4, 0.003, 0.3, 1.0, 5.0])
def test_the_noise_stays_within_its_budget_by_its_own_integers(budget: float) -> None:
    noise = noise_within(3.0, budget)
    assert exact_leakage(noise) <= noise.leakage.epsilon < budget
    assert exact_leakage(noise) >= budget * (1 - 1e-5)


@pytest.mark.parametrize("many", [100, pytest.param(1500, marks=pytest.mark.slow)])
def test_noise_within_any_budget_is_found(many: int) -> None:
    budgets = [*np.geomspace(1e-3, 20.0, many), *np.geomspace(LEAST_BUDGET, 1e-3, many // 20)]
    for budget in map(float, budgets):
        assert budget * (1 - 1e-4) < noise_within(0.3, budget).leakage.epsilon < budget


@pytest.mark.parametrize("kind", METHODS)
def test_spending_is_that_of_the_noise_by_its_own_integers(kind: type[Windowed]) -> None:
    method = kind(2.0, 3.0, 2)
    (_, cost, told), *_ = run(method, [1e5, 0.0], seeded(1))
    assert told
    first = noise_within(2.0, 3.0 / 4)  # for both: half of a half, and one share of two
    expected = exact_leakage(method.dissimilarity) + exact_leakage(first)
    assert expected <= float(cost) <= expected * (1 + 1e-9)


class Forgetful(BudgetDistribution):
    """A planted bug: all of the budget goes to publications, asking is thought to be free."""

    __slots__ = ()

    @property
    def guarantee(self) -> PureDP:
        return PureDP(self.epsilon)


def test_a_forgotten_question_is_found_by_the_oracle() -> None:
    honest = BudgetDistribution(1.0, 4.0, 4)
    published = [told for *_, told in run(honest, [1e6, -1e6] * 4, seeded(0))]
    assert oracle_sums(honest, published, exact_leakage(honest.dissimilarity)) <= 4.0
    careless = LaplaceNoise.at(1.0, 4.0 / 4)  # epsilon / w instead of epsilon / 2w
    buggy = Forgetful(1.0, 4.0, 4)
    object.__setattr__(buggy, "dissimilarity", careless)  # no field lets it in
    assert oracle_sums(buggy, published, exact_leakage(buggy.dissimilarity)) > 4.0
    # And the ledger refuses it by itself, before the draw.
    with pytest.raises(BudgetExceeded, match="this event was not released"):
        run(buggy, [1e6, -1e6] * 4, seeded(0))


def test_a_window_refuses_the_least_excess() -> None:
    memory = BudgetDistribution(1.0, 1.0, 3).memory()
    for _ in range(7):
        memory.advance()
        memory.charge(memory.asked, 0.25, Fraction(1), 0)
    memory.charge(memory.told, 0.25, Fraction(1), 0)
    with pytest.raises(BudgetExceeded):
        memory.charge(memory.told, 5e-324, Fraction(1), 0)
    assert memory.leaked == Fraction(1)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "window", "initial", "named"),
    [
        (0.0, 1.0, 3, 0.0, "sensitivity"),
        (math.inf, 1.0, 3, 0.0, "sensitivity"),
        (1.0, 0.0, 3, 0.0, "epsilon"),
        (1.0, math.nan, 3, 0.0, "epsilon"),
        (1.0, 1.0, 0, 0.0, "window"),
        (1.0, 1.0, 10**6, 0.0, "epsilon"),
        (1.0, 1.0, 10**7, 0.0, "window"),
        (1.0, 1.0, 3, math.nan, "initial"),
    ],
)
@pytest.mark.parametrize("kind", METHODS)
def test_bad_parameters_are_named(
    kind: type[Windowed],
    sensitivity: float,
    epsilon: float,
    window: int,
    initial: float,
    named: str,
) -> None:
    with pytest.raises(InvalidParameter, match=named):
        kind(sensitivity, epsilon, window, initial=initial)


@pytest.fixture(scope="module")
def publications() -> Floats:
    """Errors of first publications, all with a budget of 1."""
    method = BudgetDistribution(1.0, 4.0, 2)
    return np.asarray(simulations(method, [1e6], 3000)[:, 0] - 1e6)


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.7, False), (1.3, False)])
def test_publications_have_the_stated_noise(
    publications: Floats, factor: float, passes: bool
) -> None:
    variance = factor * 2.0
    # Squares of Laplace numbers have 5 times the squared variance.
    deviation = variance * math.sqrt(5 / publications.size)
    assert (abs(float(np.mean(publications**2)) - variance) < 4 * deviation) == passes
