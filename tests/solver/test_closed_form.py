import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.solver.closed_form import (
    calibrated_randomized_response,
    paper_response,
    randomized_response,
)
from sfumato.solver.design_result import Design
from sfumato.solver.optimal_channel import optimal
from tests.oracles.exact_leakage import (
    exact_information_leakage,
    exact_local_leakage,
    within,
    within_locally,
)
from tests.strategies import Floats, Problem, problems

Rule = Callable[[Floats, Floats, float], Design]

RULES: list[Rule] = [randomized_response, calibrated_randomized_response, paper_response]


@given(problems())
def test_calibrated_leakage_is_the_budget_and_never_more(problem: Problem) -> None:
    design = calibrated_randomized_response(problem.belief, problem.loss, problem.epsilon)
    exact = exact_information_leakage(design.channel.weights, problem.belief.tolist())
    assert float(exact) == pytest.approx(problem.epsilon, abs=1e-9)
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon)
    assert design.sip.epsilon <= problem.epsilon


@given(problems())
def test_calibrated_keeps_the_shape_of_randomized_response(problem: Problem) -> None:
    rows = calibrated_randomized_response(
        problem.belief, problem.loss, problem.epsilon
    ).channel.probabilities
    size = problem.belief.size
    assert np.diag(rows) == pytest.approx(rows[0, 0], rel=1e-12)
    assert rows[~np.eye(size, dtype=bool)] == pytest.approx(rows[0, 1], rel=1e-12)
    assert rows[0, 0] > rows[0, 1]


@pytest.mark.parametrize("epsilon", [1e-15, 1e-12, 1e-9])
def test_calibrated_never_exceeds_a_budget_too_small_to_be_used(epsilon: float) -> None:
    belief = np.array([0.2, 0.3, 0.5])
    design = calibrated_randomized_response(belief, 1 - np.eye(3), epsilon)
    assert within(design.channel.weights, belief.tolist(), epsilon)


@given(problems())
def test_randomized_response_spends_its_model_free_budget(problem: Problem) -> None:
    design = randomized_response(problem.belief, problem.loss, problem.epsilon)
    exact = exact_local_leakage(design.channel.weights)
    assert float(exact) == pytest.approx(problem.epsilon, abs=1e-9)
    assert within_locally(design.channel.weights, problem.epsilon)
    assert design.ldp.epsilon <= problem.epsilon


@given(problems())
def test_randomized_response_follows_its_formula(problem: Problem) -> None:
    design = randomized_response(problem.belief, problem.loss, problem.epsilon)
    size, odds = problem.belief.size, math.exp(problem.epsilon)
    expected = np.where(np.eye(size, dtype=bool), odds, 1.0) / (odds + size - 1)
    assert design.channel.probabilities == pytest.approx(expected, rel=1e-12)
    cost = float(problem.belief @ (expected * problem.loss).sum(axis=1))
    assert design.cost == pytest.approx(cost, rel=1e-12, abs=1e-15)
    assert design.lower_bound is None
    assert design.gap is None


@given(problems())
def test_published_follows_its_formula_and_tells_its_true_leakage(problem: Problem) -> None:
    belief, shrink = problem.belief, math.exp(-problem.epsilon)
    design = paper_response(belief, problem.loss, problem.epsilon)
    expected = np.where(np.eye(belief.size, dtype=bool), 1 - (1 - belief) * shrink, belief * shrink)
    assert design.channel.probabilities == pytest.approx(expected, rel=1e-6, abs=1e-14)
    assert within(design.channel.weights, belief.tolist(), design.sip.epsilon)
    rarest = float(belief.min())
    true = max(problem.epsilon, math.log((1 - (1 - rarest) * shrink) / rarest))
    assert design.sip.epsilon == pytest.approx(true, abs=1e-6)


@given(problems())
def test_no_rule_within_the_budget_beats_the_optimum(problem: Problem) -> None:
    best = optimal(problem.belief, problem.loss, problem.epsilon)
    assert best.lower_bound is not None
    for rule in (randomized_response, calibrated_randomized_response):
        design = rule(problem.belief, problem.loss, problem.epsilon)
        assert design.cost >= best.lower_bound - 1e-12 * problem.loss.max()


@given(st.floats(0.05, 4.0), st.integers(2, 6))
def test_calibrated_is_more_useful_than_plain(epsilon: float, size: int) -> None:
    """The same adversary learns as much from both only when plain response is given more."""
    belief, wrong = np.full(size, 1 / size), 1 - np.eye(size)
    plain = randomized_response(belief, wrong, epsilon)
    calibrated = calibrated_randomized_response(belief, wrong, epsilon)
    assert plain.sip.epsilon < epsilon
    assert calibrated.cost < plain.cost


@given(st.floats(0.001, 0.5), st.floats(0.01, 6.0))
def test_the_optimum_of_two_symbols_costs_what_formulas_say(mass: float, epsilon: float) -> None:
    """The published rule while it keeps its bound, a lopsided one below, and else a constant."""
    k = math.exp(epsilon)
    if mass >= 1 / (k + 1):
        cost = 2 * mass * (1 - mass) / k
    elif mass > 1 / (2 * k):
        cost = (1 - mass * (k - 1)) / (k + 1)
    else:
        cost = mass
    for belief in ([mass, 1 - mass], [1 - mass, mass]):
        found = optimal(belief, [[0, 1], [1, 0]], epsilon)
        assert found.cost == pytest.approx(cost, rel=1e-7, abs=1e-9)
