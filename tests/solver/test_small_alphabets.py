"""Designs by compiled loops, at the sizes where the methods change."""

import math

import numpy as np
import pytest

from sfumato.solver.linear_programs import solve_transport
from sfumato.solver.small_alphabets import design_small, solutions
from tests.oracles.exact_leakage import within
from tests.strategies import Floats

SIZES = [12, 13, 16, 24, 25, 40]


def distance(size: int, power: float) -> Floats:
    places = np.arange(size, dtype=np.float64)
    return np.asarray(np.abs(places[:, None] - places) ** power)


def scattered(size: int) -> Floats:
    return np.random.default_rng(size).dirichlet(np.ones(size))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_reaches_the_optimum_of_highs(size: int, epsilon: float, power: float) -> None:
    belief = scattered(size)
    loss = distance(size, power) if power else 1 - np.eye(size)
    design = design_small(belief, loss, epsilon, ldp=math.inf, tolerance=0.0)
    best = (belief[:, None] * solve_transport(belief, loss, epsilon).rows * loss).sum()
    assert design is not None
    assert design.cost == pytest.approx(best, abs=1e-7 * loss.max())
    assert within(design.channel.weights, belief.tolist(), epsilon)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tolerance", [1e-2, 1e-3, 1e-5])
def test_the_gap_is_within_what_was_asked_for(size: int, tolerance: float) -> None:
    belief, loss = scattered(size), distance(size, 1)
    design = design_small(belief, loss, 1.0, ldp=math.inf, tolerance=tolerance)
    assert design is not None
    assert design.gap is not None
    assert design.gap <= tolerance * design.cost
    assert within(design.channel.weights, belief.tolist(), 1.0)


@pytest.mark.parametrize("size", SIZES)
def test_the_same_call_gives_the_same_bits(size: int) -> None:
    belief, loss = scattered(size), distance(size, 2)
    first, second = (design_small(belief, loss, 0.7, ldp=math.inf, tolerance=0.0) for _ in range(2))
    assert first is not None
    assert second is not None
    assert (first.channel.weights == second.channel.weights).all()
    assert (first.cost, first.lower_bound) == (second.cost, second.lower_bound)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
def test_every_method_comes_to_the_same_cost(size: int, tolerance: float) -> None:
    belief, loss = scattered(size), distance(size, 1)
    costs = [
        float((belief[:, None] * rows * loss).sum())
        for rows, _ in solutions(belief, loss, 1.0, tolerance)
    ]
    assert costs
    assert costs == pytest.approx([costs[-1]] * len(costs), rel=max(tolerance, 1e-6))
