import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato import loss as losses_by_name
from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.closed_form import paper_response, randomized_response
from sfumato.solver.dual import dual_bound
from sfumato.solver.linear_programs import solve_capped, solve_transport
from sfumato.solver.optimal_channel import optimal
from tests.oracles.exact_leakage import (
    exact_information_leakage,
    exact_local_leakage,
    within,
    within_locally,
)
from tests.oracles.textbook_lp import textbook_optimum
from tests.strategies import Floats, Problem, beliefs, problems

SAME = 1e-7  # of the largest loss


def even(size: int) -> Floats:
    return np.full(size, 1 / size)


LINE = Alphabet.of_size(12)
GRID = Alphabet.grid(3, 4)
HALVES = {label: "low" if int(label) < 5 else "high" for label in LINE.labels}
LOSSES = [
    losses_by_name.hamming(LINE),
    losses_by_name.absolute(LINE),
    losses_by_name.squared(LINE),
    losses_by_name.euclidean(GRID),
    losses_by_name.matrix(np.random.default_rng(1).random((12, 12)), "random"),
    losses_by_name.histogram(LINE, HALVES),
]
BELIEFS = {
    "even": even(12),
    "falling": 0.6 ** np.arange(12) / np.sum(0.6 ** np.arange(12)),
    "random": np.random.default_rng(2).dirichlet(np.ones(12)),
    "one rare value": np.array([1e-10] + [(1 - 1e-10) / 11] * 11),
}


@pytest.mark.parametrize("ldp", [None, 1.5, 1.0, 0.4], ids=lambda share: f"ldp={share}")
@pytest.mark.parametrize("belief", BELIEFS.values(), ids=BELIEFS.keys())
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: str(loss.name))
def test_costs_what_the_textbook_program_costs(
    loss: Loss, belief: Floats, ldp: float | None
) -> None:
    for epsilon in (0.2, 1.5):
        cap = None if ldp is None else ldp * epsilon
        expected = textbook_optimum(belief, loss.matrix, epsilon, cap)
        design = optimal(belief, loss, epsilon, ldp=cap)
        assert design.cost == pytest.approx(expected, abs=SAME * loss.matrix.max())


@given(problems())
def test_is_the_best_channel_within_its_budget(problem: Problem) -> None:
    design = optimal(problem.belief, problem.loss, problem.epsilon)
    expected = textbook_optimum(problem.belief, problem.loss, problem.epsilon)
    slack = SAME * problem.loss.max()
    assert design.lower_bound is not None
    assert design.lower_bound <= expected + slack
    assert design.cost == pytest.approx(expected, abs=slack)
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon)


@given(problems(), st.floats(0.1, 2.2))
def test_is_the_best_channel_within_both_budgets(problem: Problem, share: float) -> None:
    cap = share * problem.epsilon
    design = optimal(problem.belief, problem.loss, problem.epsilon, ldp=cap)
    expected = textbook_optimum(problem.belief, problem.loss, problem.epsilon, cap)
    slack = SAME * problem.loss.max()
    assert design.lower_bound is not None
    assert design.lower_bound <= expected + slack
    assert design.cost == pytest.approx(expected, abs=slack)
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon)
    assert within_locally(design.channel.weights, cap)


@given(problems(), st.none() | st.floats(0.1, 2.2))
def test_the_proven_floor_lies_under_the_cost_and_next_to_it(
    problem: Problem, share: float | None
) -> None:
    cap = None if share is None else share * problem.epsilon
    design = optimal(problem.belief, problem.loss, problem.epsilon, ldp=cap)
    assert design.lower_bound is not None
    assert design.gap is not None
    assert 0.0 <= design.lower_bound <= design.cost
    assert design.gap <= SAME * problem.loss.max()


@given(problems())
def test_certificates_are_those_of_the_integers(problem: Problem) -> None:
    design = optimal(problem.belief, problem.loss, problem.epsilon)
    sip = exact_information_leakage(design.channel.weights, problem.belief.tolist())
    ldp = exact_local_leakage(design.channel.weights)
    assert sip <= design.sip.epsilon <= sip + 1e-12
    assert ldp <= design.ldp.epsilon <= ldp + 1e-12


@given(problems())
def test_leaks_at_most_twice_its_budget_without_a_model(problem: Problem) -> None:
    design = optimal(problem.belief, problem.loss, problem.epsilon)
    assert exact_local_leakage(design.channel.weights) <= 2 * problem.epsilon


@pytest.mark.parametrize(
    ("size", "epsilon", "best", "response", "claimed_cost", "true_leakage", "best_hamming"),
    [
        (10, 1.0, 1.5843, 2.8161, 1.2140, 1.900, 0.7282),
        (20, 2.0, 1.3816, 5.0400, 0.9000, 2.858, 0.6305),
    ],
)
def test_the_numbers_of_the_errata(
    size: int,
    epsilon: float,
    best: float,
    response: float,
    claimed_cost: float,
    true_leakage: float,
    best_hamming: float,
) -> None:
    belief, line = even(size), Alphabet.of_size(size)
    distance, wrong = losses_by_name.absolute(line), losses_by_name.hamming(line)
    claim = paper_response(belief, distance, epsilon)
    assert optimal(belief, distance, epsilon).cost == pytest.approx(best, abs=6e-5)
    assert optimal(belief, wrong, epsilon).cost == pytest.approx(best_hamming, abs=6e-5)
    assert randomized_response(belief, distance, epsilon).cost == pytest.approx(response, abs=6e-5)
    assert claim.cost == pytest.approx(claimed_cost, abs=6e-5)
    assert claim.sip.epsilon == pytest.approx(true_leakage, abs=6e-4)


def test_the_small_number_of_the_errata() -> None:
    design = optimal(even(3), losses_by_name.hamming(Alphabet.of_size(3)), 0.5)
    assert design.cost == pytest.approx(0.4504, abs=6e-5)


@given(
    problems(),
    st.none() | st.floats(0.05, 2.5),
    st.lists(st.floats(-30.0, 30.0), min_size=6, max_size=6),
)
def test_the_dual_bound_holds_for_any_prices(
    problem: Problem, share: float | None, prices: list[float]
) -> None:
    cap = None if share is None else share * problem.epsilon
    chosen = np.array(prices[: problem.belief.size])
    bound = dual_bound(chosen, problem.belief, problem.loss, problem.epsilon, cap)
    best = textbook_optimum(problem.belief, problem.loss, problem.epsilon, cap)
    assert bound <= best + 1e-8 * (problem.loss.max() + np.abs(chosen).max())


def exact_dual_value(prices: Floats, belief: Floats, loss: Floats, epsilon: float) -> mpmath.mpf:
    """The bound at given prices, without a cap, in 50 digits and by its definition.

    The cheapest shape of an output is e^eps on the symbols of least surplus, up to a belief mass
    of 1/(e^eps + 1), and e^-eps on the rest.
    """
    with mpmath.workdps(50):
        k = mpmath.exp(mpmath.mpf(epsilon))
        masses = [mpmath.mpf(mass) for mass in belief.tolist()]
        share = [mass / mpmath.fsum(masses) for mass in masses]
        offers = [mpmath.mpf(price) for price in prices.tolist()]
        values = []
        for column in loss.T.tolist():
            surplus = [mpmath.mpf(cost) - offer for cost, offer in zip(column, offers, strict=True)]
            left, value = 1 / (k + 1), mpmath.mpf(0)
            for extra, mass in sorted(zip(surplus, share, strict=True)):
                high = min(mass, left)
                left -= high
                value += extra * (k * high + (mass - high) / k)
            values.append(value)
        paid = mpmath.fsum(b * offer for b, offer in zip(share, offers, strict=True))
        return paid + min(values)


@given(
    problems(),
    st.lists(st.floats(-30.0, 30.0), min_size=6, max_size=6),
    st.sampled_from([1e-6, 1e-3, 1.0, 8.0, 20.0]),
)
def test_the_dual_bound_is_rounded_down(
    problem: Problem, prices: list[float], epsilon: float
) -> None:
    chosen = np.array(prices[: problem.belief.size])
    for budget in (problem.epsilon, epsilon):
        bound = dual_bound(chosen, problem.belief, problem.loss, budget)
        exact = exact_dual_value(chosen, problem.belief, problem.loss, budget)
        scale = problem.loss.max() + np.abs(chosen).max()
        assert bound <= exact
        assert float(exact) - bound <= 1e-12 * scale


@given(
    problems(),
    st.none() | st.floats(0.05, 1.9),
    st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    st.sampled_from([0.0, 1e-6, 1e-2, 1.0]),
)
def test_the_dual_bound_holds_around_the_best_prices(
    problem: Problem, share: float | None, noise: list[float], scale: float
) -> None:
    belief, loss, epsilon = problem.belief, problem.loss, problem.epsilon
    cap = None if share is None else share * epsilon
    solution = (
        solve_transport(belief, loss, epsilon)
        if cap is None
        else solve_capped(belief, loss, epsilon, cap)
    )
    prices = solution.prices + scale * loss.max() * np.array(noise[: belief.size])
    best = textbook_optimum(belief, loss, epsilon, cap)
    assert dual_bound(prices, belief, loss, epsilon, cap) <= best + 1e-8 * loss.max()


@pytest.mark.parametrize("ldp", [None, 1.2])
def test_the_comparison_catches_a_bound_for_too_small_a_budget(ldp: float | None) -> None:
    loss = losses_by_name.absolute(Alphabet.of_size(6)).matrix
    best = textbook_optimum(even(6), loss, 1.0, ldp)
    smaller = optimal(even(6), loss, 0.99, ldp=None if ldp is None else 0.99 * ldp).lower_bound
    assert smaller is not None
    assert smaller > best + 1e-8 * loss.max()


@pytest.mark.parametrize("name", ["hamming", "absolute"])
@given(
    st.floats(0.7, 4.0),
    st.integers(2, 8),
    st.lists(st.floats(0.0, 1.0), min_size=8, max_size=8),
)
@settings(max_examples=40)
def test_equals_the_published_form_where_that_is_valid(
    name: str, epsilon: float, size: int, masses: list[float]
) -> None:
    floor = 1 / (math.exp(epsilon) + 1)
    assume(size * floor <= 1)
    spare = np.array(masses[:size]) + 1e-3
    belief = floor + (1 - size * floor) * spare / spare.sum()
    line = Alphabet.of_size(size)
    loss = losses_by_name.hamming(line) if name == "hamming" else losses_by_name.absolute(line)
    claim = paper_response(belief, loss, epsilon)
    assert claim.sip.epsilon <= epsilon + 1e-9
    slack = SAME * loss.matrix.max()
    assert optimal(belief, loss, epsilon).cost == pytest.approx(claim.cost, abs=slack)


@given(problems(), st.integers(1, 6), st.none() | st.floats(0.3, 1.5))
def test_fewer_candidates_keep_the_certificate_and_the_floor(
    problem: Problem, count: int, share: float | None
) -> None:
    cap = None if share is None else share * problem.epsilon
    design = optimal(problem.belief, problem.loss, problem.epsilon, ldp=cap, candidates=count)
    best = textbook_optimum(problem.belief, problem.loss, problem.epsilon, cap)
    slack = SAME * problem.loss.max()
    assert len(design.channel.outputs) <= count
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon)
    assert cap is None or within_locally(design.channel.weights, cap)
    assert design.lower_bound is not None
    assert design.lower_bound <= best + slack
    assert design.cost >= best - slack


def test_candidates_cost_little_on_a_long_line() -> None:
    line = Alphabet.of_size(60)
    loss = losses_by_name.absolute(line)
    best = optimal(even(60), loss, 1.0)
    few = optimal(even(60), loss, 1.0, candidates=12)
    assert best.cost <= few.cost + SAME * 59
    assert few.cost <= 1.05 * best.cost
    assert few.lower_bound is not None
    assert few.lower_bound <= best.cost + SAME * 59


@given(beliefs(), st.floats(1e-3, 8.0))
def test_nothing_to_gain_means_nothing_to_leak(belief: Floats, epsilon: float) -> None:
    """A loss that does not depend on the truth is best served by a constant."""
    design = optimal(belief, np.tile(np.arange(belief.size) + 1.0, (belief.size, 1)), epsilon)
    assert design.channel.is_constant
    assert design.sip.epsilon == 0.0
    assert design.cost == pytest.approx(1.0)


def one_certain(size: int) -> Floats:
    return np.array([1 - (size - 1) * 1e-9] + [1e-9] * (size - 1))


def half_tiny(size: int) -> Floats:
    masses = np.where(np.arange(size) % 2 == 0, 1.0, 1e-12)
    return np.asarray(masses / masses.sum())


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.3, 2.0, 12.0, 30.0])
@pytest.mark.parametrize("belief", [even, one_certain, half_tiny])
@pytest.mark.parametrize("size", [5, 14, 20])
def test_odd_beliefs_and_budgets_are_certified_and_near(
    size: int, belief: Callable[[int], Floats], epsilon: float
) -> None:
    line, prior = Alphabet.of_size(size), belief(size)
    for loss in (losses_by_name.absolute(line), losses_by_name.hamming(line)):
        design = optimal(prior, loss, epsilon)
        assert within(design.channel.weights, prior.tolist(), epsilon)
        assert design.gap is not None
        assert design.lower_bound is not None
        assert 0.0 <= design.lower_bound <= design.cost
        assert design.gap <= SAME * loss.matrix.max()


@pytest.mark.parametrize("size", [3, 16, 30])
@pytest.mark.parametrize("tolerance", [0.0, 1e-3])
def test_a_loss_of_nothing_is_served_by_a_constant(size: int, tolerance: float) -> None:
    design = optimal(even(size), np.zeros((size, size)), 1.0, tolerance=tolerance)
    assert design.channel.is_constant
    assert design.cost == design.lower_bound == 0.0


@given(
    st.integers(7, 18),
    st.integers(0, 10_000),
    st.floats(0.02, 6.0),
    st.sampled_from([0.0, 1e-3, 0.05]),
)
@settings(max_examples=40)
def test_a_tolerance_is_kept_and_the_textbook_program_no_better(
    size: int, seed: int, epsilon: float, tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    belief = np.maximum(rng.dirichlet(np.full(size, 0.5)), 1e-9)
    belief /= belief.sum()
    loss = (
        rng.random((size, size)) if seed % 2 else np.abs(np.subtract.outer(*2 * [rng.random(size)]))
    )
    design = optimal(belief, loss, epsilon, tolerance=tolerance)
    best = textbook_optimum(belief, loss, epsilon)
    slack = SAME * loss.max()
    assert within(design.channel.weights, belief.tolist(), epsilon)
    assert design.lower_bound is not None
    assert design.lower_bound <= best + slack
    assert best - slack <= design.cost <= best / (1 - tolerance) + slack


def test_refuses_a_tolerance_that_is_none() -> None:
    with pytest.raises(InvalidParameter, match="tolerance must be finite and at least 0"):
        optimal([0.5, 0.5], WRONG, 1.0, tolerance=-0.1)


WRONG = 1 - np.eye(2)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, -math.inf])
def test_refuses_a_budget_that_is_no_guarantee(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be finite and greater than 0"):
        optimal([0.5, 0.5], WRONG, epsilon)
    with pytest.raises(InvalidParameter, match="ldp must be finite and greater than 0"):
        optimal([0.5, 0.5], WRONG, 1.0, ldp=epsilon)


def test_refuses_a_budget_beyond_what_the_weights_resolve() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be at most 40; got 41"):
        optimal([0.5, 0.5], WRONG, 41.0)


@pytest.mark.parametrize(
    ("belief", "rule"),
    [
        ([0.5, 0.6], "belief must sum to 1 within 1e-09; got 1.1"),
        ([1.0, 0.0], r"belief\[1\] must be at least 1e-200"),
        ([1.5, -0.5], "have no negative or NaN entry"),
        ([math.nan, 1.0], "have no negative or NaN entry"),
        ([math.inf, 1.0], "belief must sum to 1"),
        ([], "be a vector with at least one entry"),
        ([[0.5, 0.5]], "be a vector with at least one entry"),
    ],
)
def test_refuses_a_belief_that_is_none(belief: list[float], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        optimal(belief, WRONG, 1.0)


@pytest.mark.parametrize(
    ("loss", "rule"),
    [
        (1 - np.eye(3), "be 2 by 2, like the belief"),
        ([[0.0, 1.0]], "be a square matrix"),
        ([0.0, 1.0], "be a square matrix"),
        ([[0.0, -1.0], [1.0, 0.0]], "be finite and nowhere negative"),
        ([[0.0, math.nan], [1.0, 0.0]], "be finite and nowhere negative"),
        ([[0.0, math.inf], [1.0, 0.0]], "be finite and nowhere negative"),
    ],
)
def test_refuses_a_loss_that_is_none(loss: Floats, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        optimal([0.5, 0.5], loss, 1.0)


@pytest.mark.parametrize("count", [0, -1])
def test_refuses_to_choose_from_nothing(count: int) -> None:
    with pytest.raises(InvalidParameter, match="candidates must be a whole number"):
        optimal([0.5, 0.5], WRONG, 1.0, candidates=count)
