"""The compiled parts of a design against plain formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.solver.barrier import barrier
from sfumato.solver.column_loops import gathered_at
from sfumato.solver.design_loops import bound_at, is_belief
from sfumato.solver.dual import dual_bound
from sfumato.solver.extreme_columns import pieces
from tests.strategies import Floats, Problem, problems

SIZES = [13, 16, 24, 40]


def distance(size: int, power: float) -> Floats:
    places = np.arange(size, dtype=np.float64)
    return np.asarray(np.abs(places[:, None] - places) ** power)


def scattered(size: int) -> Floats:
    return np.random.default_rng(size).dirichlet(np.ones(size))


@given(problems(), st.lists(st.floats(-30.0, 30.0), min_size=6, max_size=6))
def test_the_compiled_floor_is_the_reference(problem: Problem, prices: list[float]) -> None:
    chosen = np.array(prices[: problem.belief.size])
    share = problem.belief / problem.belief.sum()
    expected = dual_bound(chosen, problem.belief, problem.loss, problem.epsilon)
    scale = problem.loss.max() + np.abs(chosen).max()
    floor = bound_at(chosen, share, problem.loss, problem.epsilon)
    assert floor == pytest.approx(expected, abs=1e-13 * scale)


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_prices_that_are_no_numbers_prove_nothing(wrong: float) -> None:
    means, parts = gathered_at(np.full(4, 0.25), distance(4, 1), np.array([0, 1, wrong, 0]), 0.3)
    assert not np.isfinite(means + parts).any()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_interior_solutions_are_couplings_and_fall_into_shapes(size: int, epsilon: float) -> None:
    belief, k = scattered(size), math.exp(epsilon)
    coupling, _, _ = barrier(belief, distance(size, 1), k, 1e-6, 60)
    assert coupling.min() > 0
    assert coupling.sum(axis=1) == pytest.approx(1.0, abs=1e-7)
    assert (coupling <= (k + 1) * (belief @ coupling) * (1 + 1e-7)).all()
    ratios, outputs = pieces(belief, coupling, 1 / (k + 1))
    assert ratios.shape == (size, len(outputs))
    assert belief @ ratios == pytest.approx(1.0, abs=1e-9)
    between = (ratios > 1 / k * (1 + 1e-9)) & (ratios < k * (1 - 1e-9))
    assert between.sum(axis=0).max() <= 1


def test_a_belief_is_told_from_what_is_none() -> None:
    for entries, fine in [([0.5, 0.5], True), ([1.0, 0.0], False), ([0.5, 0.6], False)]:
        assert is_belief(np.array(entries), 1e-200, 1e-9) is fine
    assert not is_belief(np.array([math.nan, 1.0]), 1e-200, 1e-9)
