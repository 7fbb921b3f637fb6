import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from sfumato import Alphabet, Channel, loss
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList, PriorSet
from sfumato.solver import optimal
from sfumato.solver.bounded_prior_channel import bounded_leakage, bounded_prior
from tests.oracles.textbook_lp import textbook_optimum

Floats = NDArray[np.float64]


def corners(box: PriorBox) -> Floats:
    """Corners of a box of priors: all but one symbol at a bound."""
    found = []
    for free in range(box.size):
        others = [place for place in range(box.size) if place != free]
        for bounds in itertools.product((box.lower, box.upper), repeat=len(others)):
            prior = np.zeros(box.size)
            prior[others] = [bound[place] for bound, place in zip(bounds, others, strict=True)]
            prior[free] = 1 - prior.sum()
            if box.lower[free] - 1e-12 <= prior[free] <= box.upper[free] + 1e-12:
                found.append(np.maximum(prior, 0.0))
    return np.array(found)


def program_of_corners(priors: Floats, nominal: Floats, table: Floats, epsilon: float) -> float:
    """Every constraint of every corner, one by one."""
    size, k = len(table), math.exp(epsilon)
    rows = []
    for prior, y, x in itertools.product(priors, range(size), range(size)):
        mean, entry = np.zeros((size, size)), np.zeros((size, size))
        mean[:, y], entry[x, y] = prior, 1.0
        rows += [(entry - k * mean).ravel(), (mean - k * entry).ravel()]
    sums = np.kron(np.eye(size), np.ones(size))
    cost = (nominal[:, None] * table).ravel()
    found = linprog(cost, np.array(rows), np.zeros(len(rows)), sums, np.ones(size))
    assert found.status == 0
    return float(found.fun)


def table_of(rng: np.random.Generator, size: int) -> Floats:
    return np.asarray(rng.random((size, size)) * (1 - np.eye(size)))


def check_optimum(priors: PriorSet, listed: Floats, table: Floats, epsilon: float) -> None:
    """The program of all corners costs as much, and the budget is kept."""
    found = bounded_prior(priors, table, epsilon)
    best = program_of_corners(listed, priors.nominal, table, epsilon)
    assert found.cost == pytest.approx(best, abs=1e-6)
    assert bounded_leakage(found.channel, priors).epsilon <= epsilon


@settings(max_examples=16)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 3), epsilon=st.floats(0.1, 3))
def test_the_optimum_over_a_box_is_that_of_all_its_corners(
    seed: int, size: int, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    centre = rng.dirichlet(np.ones(size))
    box = PriorBox(centre * rng.random(size), centre + (1 - centre) * rng.random(size))
    check_optimum(box, corners(box), table_of(rng, size), epsilon)


@settings(max_examples=16)
@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(0, 0.4), epsilon=st.floats(0.1, 3))
def test_the_optimum_over_a_ball_is_that_of_its_corners(
    seed: int, radius: float, epsilon: float
) -> None:
    rng = np.random.default_rng(seed)
    # With no symbol below the radius the corners move all of it from one symbol to another.
    centre = np.full(2, 0.2) + 0.6 * rng.dirichlet(np.ones(2))
    moved = min(radius, float(centre.min()))
    ball = PriorBall(centre, moved)
    step = np.array([moved, -moved])
    listed = np.array([centre + step, centre - step])
    check_optimum(ball, listed, table_of(rng, 2), epsilon)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_one_prior_is_the_ordinary_optimum(epsilon: float) -> None:
    prior, absolute = [0.1, 0.2, 0.3, 0.4], loss.absolute(Alphabet.of_size(4))
    best = optimal(prior, absolute, epsilon).cost
    for priors in (PriorBall(prior, 0.0), PriorList([prior]), PriorBox(prior, prior)):
        assert bounded_prior(priors, absolute, epsilon).cost == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_all_priors_give_the_optimum_of_local_privacy(epsilon: float) -> None:
    size = 4
    box = PriorBox(np.zeros(size), np.ones(size))
    table = loss.absolute(Alphabet.of_size(size)).matrix
    # A cap of epsilon on the model-free leakage implies every other constraint.
    best = textbook_optimum(box.nominal, table, epsilon, ldp=epsilon)
    found = bounded_prior(box, table, epsilon)
    assert found.cost == pytest.approx(best, abs=1e-7)
    assert found.ldp.epsilon <= epsilon + 1e-9


@settings(max_examples=16)
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.01, 6), cap=st.floats(0.01, 8))
def test_every_channel_keeps_its_budget_and_its_cap(seed: int, epsilon: float, cap: float) -> None:
    rng = np.random.default_rng(seed)
    sets: list[PriorSet] = [
        PriorList(rng.dirichlet(np.full(3, 0.3), size=3)),
        PriorBox.near(rng.dirichlet(np.full(3, 0.3)), 0.5),
        PriorBall(rng.dirichlet(np.full(3, 0.3)), 0.1),
    ]
    for priors in sets:
        found = bounded_prior(priors, table_of(rng, 3), epsilon, ldp=cap)
        assert found.sip.epsilon <= epsilon
        assert found.ldp.epsilon <= cap


def test_a_wider_set_is_never_cheaper() -> None:
    table = loss.hamming(Alphabet.of_size(3)).matrix
    costs = [bounded_prior(PriorBall([0.3, 0.3, 0.4], r), table, 1.0).cost for r in (0, 0.1, 0.3)]
    assert costs == sorted(costs)


@pytest.mark.parametrize(("low", "high", "epsilon"), [(0.0, 0.5, 1.0), (0.2, 0.6, 0.5)])
def test_the_published_binary_rule_leaks_more_than_its_budget(
    low: float, high: float, epsilon: float
) -> None:
    k = math.exp(epsilon)
    up, down = high / (high - low + k), (1 - low) / (high - low + k)
    rule = Channel.from_probabilities([[1 - up, up], [down, 1 - down]])
    box = PriorBox([1 - high, low], [1 - low, high])
    assert bounded_leakage(rule, box).epsilon > 1.05 * epsilon
    assert bounded_prior(box, 1 - np.eye(2), epsilon).sip.epsilon <= epsilon
