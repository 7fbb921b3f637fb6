"""Ten thousand random problems, and what exact arithmetic says of every answer."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sfumato.solver.closed_form import (
    calibrated_randomized_response,
    paper_response,
    randomized_response,
)
from sfumato.solver.context_free_channel import context_free
from sfumato.solver.design_result import Design
from sfumato.solver.optimal_channel import optimal
from tests.oracles.exact_leakage import exact_information_leakage, within, within_locally
from tests.strategies import LEAST_MASS, Floats, Problem

IN_A_CHUNK = 250
CHUNKS = [0, 1, *(pytest.param(chunk, marks=pytest.mark.slow) for chunk in range(2, 8))]
"""Five hundred problems in every run, and as many again for each two chunks of slow ones."""


def random_belief(rng: np.random.Generator, size: int) -> Floats:
    even, rare = np.ones(size), np.ones(size)
    rare[rng.integers(size)] = 10 ** rng.uniform(-12, 0)
    masses = (
        rng.dirichlet(even),
        rng.dirichlet(0.1 * even),
        10 ** rng.uniform(-12, 0, size),
        rare,
    )[rng.integers(4)]
    share = np.maximum(masses / masses.sum(), LEAST_MASS)
    return np.asarray(share / share.sum())


def random_loss(rng: np.random.Generator, size: int) -> Floats:
    places = np.arange(size, dtype=np.float64)
    apart = np.abs(places[:, None] - places[None, :])
    return (np.sign(apart), apart, apart**2, rng.random((size, size)))[rng.integers(4)]


def random_problems(rng: np.random.Generator, chunk: int) -> list[Problem]:
    """The same for every method, another one for every chunk."""
    own = np.random.default_rng([chunk, int(rng.integers(2**32))])
    found = []
    for _ in range(IN_A_CHUNK):
        size = int(own.integers(2, 9))
        epsilon = float(10 ** own.uniform(-3, math.log10(8)))
        found.append(Problem(random_belief(own, size), random_loss(own, size), epsilon))
    return found


def check(design: Design, problem: Problem) -> None:
    assert within(design.channel.weights, problem.belief.tolist(), problem.epsilon), problem
    assert within(design.channel.weights, problem.belief.tolist(), design.sip.epsilon), problem
    assert within_locally(design.channel.weights, design.ldp.epsilon), problem


@pytest.mark.parametrize("chunk", range(40))
def test_optimal(chunk: int, rng: np.random.Generator) -> None:
    for problem in random_problems(rng, chunk):
        design = optimal(problem.belief, problem.loss, problem.epsilon)
        check(design, problem)
        assert design.lower_bound is not None
        assert design.lower_bound <= design.cost, problem
        assert design.cost - design.lower_bound <= 1e-7 * problem.loss.max(), problem


@pytest.mark.parametrize("chunk", CHUNKS)
def test_calibrated_randomized_response(chunk: int, rng: np.random.Generator) -> None:
    for problem in random_problems(rng, chunk):
        design = calibrated_randomized_response(problem.belief, problem.loss, problem.epsilon)
        check(design, problem)
        assert design.sip.epsilon <= problem.epsilon, problem


@pytest.mark.parametrize("rule", [randomized_response, context_free])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_rules_without_a_model(
    chunk: int, rule: Callable[..., Design], rng: np.random.Generator
) -> None:
    for problem in random_problems(rng, chunk):
        design = rule(problem.belief, problem.loss, problem.epsilon)
        check(design, problem)
        assert within_locally(design.channel.weights, problem.epsilon), problem


def test_the_same_problems_catch_the_published_rule(rng: np.random.Generator) -> None:
    broken = 0
    for problem in random_problems(rng, 0):
        claim = paper_response(problem.belief, problem.loss, problem.epsilon)
        kept = within(claim.channel.weights, problem.belief.tolist(), problem.epsilon + 1e-9)
        spare = problem.belief.min() * (math.exp(problem.epsilon) + 1) - 1
        assert kept is bool(spare > 0) or abs(spare) < 1e-6, problem
        assert within(claim.channel.weights, problem.belief.tolist(), claim.sip.epsilon), problem
        broken += not kept
    assert broken > IN_A_CHUNK // 2


def one_rare_value(size: int, rare: float) -> Floats:
    return np.array([rare] + [(1 - rare) / (size - 1)] * (size - 1))


@pytest.mark.parametrize(
    ("belief", "claimed", "true"),
    [
        (np.full(10, 0.1), 1.0, 1.900),
        (np.full(20, 0.05), 2.0, 2.858),
        (one_rare_value(20, 1.164e-4), 4.0, 9.04),
        (one_rare_value(10, 1.218e-4), 0.5, 8.08),
    ],
    ids=["even 10", "even 20", "skewed 20", "skewed 10"],
)
def test_the_published_rule_leaks_what_the_errata_say(
    belief: Floats, claimed: float, true: float
) -> None:
    claim = paper_response(belief, 1 - np.eye(belief.size), claimed)
    exact = exact_information_leakage(claim.channel.weights, belief.tolist())
    assert not within(claim.channel.weights, belief.tolist(), claimed)
    assert float(exact) == pytest.approx(true, abs=6e-4 if true < 3 else 6e-3)
    assert claim.sip.epsilon == pytest.approx(float(exact), abs=1e-12)


def leakage_along_equal_outputs(stay: float, claimed: float, steps: int) -> list[float]:
    """The published rule on a binary chain while it releases 0 again and again, by hand."""
    transition = np.array([[stay, 1 - stay], [1 - stay, stay]])
    belief = np.array([0.5, 0.5])
    leakages = []
    for _ in range(steps):
        kernel = np.tile(belief * math.exp(-claimed), (2, 1))
        kernel[[0, 1], [0, 1]] = 1 - (1 - belief) * math.exp(-claimed)
        ratios = kernel / (belief @ kernel)
        leakages.append(float(np.abs(np.log(ratios)).max()))
        channel = paper_response(belief, 1 - np.eye(2), claimed)
        assert channel.sip.epsilon == pytest.approx(leakages[-1], abs=1e-9)
        belief = belief * ratios[:, 0] @ transition
    return leakages


def test_the_published_rule_leaks_more_and_more_along_a_sticky_stream() -> None:
    leakages = leakage_along_equal_outputs(stay=0.98, claimed=0.5, steps=60)
    assert leakages[0] <= 0.5 < leakages[1]
    assert leakages[12] == pytest.approx(2.16, abs=0.006)
    assert leakages[-1] == pytest.approx(2.1775, abs=1e-4)
    assert leakages == sorted(leakages)
