"""Budgets of least noise, against grids of budgets and against a bound that nothing goes below."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.temporal.least_noise import (
    _slope,
    least_noise_bound,
    least_noise_budgets,
    noise_variance,
)
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_budgets import allocate, paper_budgets
from tests.oracles.temporal import ExactLoss, best_subset, exact_event

Floats = NDArray[np.float64]

STICKY: dict[str, list[list[float]]] = {
    "two values, .99": [[0.99, 0.01], [0.01, 0.99]],
    "two values, .9999": [[0.9999, 0.0001], [0.0001, 0.9999]],
    "absorbing": [[0.999, 0.001], [0.0, 1.0]],
    "three values": [[0.97, 0.02, 0.01], [0.05, 0.9, 0.05], [0.001, 0.001, 0.998]],
    "identity": [[1.0, 0.0], [0.0, 1.0]],
}


def random_case(seed: int) -> tuple[Floats, Floats, float, int]:
    rng = np.random.default_rng(seed)
    size, even = int(rng.integers(2, 5)), float(rng.choice([0.03, 0.3, 2.0]))
    back, forth = (rng.dirichlet(np.full(size, even), size) + 1e-6 for _ in range(2))
    back, forth = (table / table.sum(axis=1, keepdims=True) for table in (back, forth))
    return back, forth, float(10 ** rng.uniform(-1.5, 0.7)), int(rng.integers(2, 30))


def largest_constant(back: ExactLoss, forth: ExactLoss, alpha: float, steps: int) -> float:
    """In fifty digits, by halving."""
    low, high = 0.0, alpha
    for _ in range(40):
        middle = (low + high) / 2
        if exact_event([middle] * steps, back, forth) <= alpha:
            low = middle
        else:
            high = middle
    return low


def check(back: Floats, forth: Floats, alpha: float, steps: int) -> float:
    """The laws of one case; how far the noise is from the bound."""
    losses = LossFunction.of(back), LossFunction.of(forth)
    exact = ExactLoss(back), ExactLoss(forth)
    found = least_noise_budgets(*losses, alpha, steps)
    assert found.shape == (steps,) and found.min() > 0
    assert exact_event(found.tolist(), *exact) <= alpha
    had = noise_variance(found)
    constant = largest_constant(*exact, alpha, steps)
    assert had <= 2 * steps / constant**2 * (1 + 1e-8)
    assert had <= noise_variance(paper_budgets(*losses, alpha, steps))
    bound = least_noise_bound(*losses, alpha, steps)
    assert bound <= had
    return had / bound


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize(("alpha", "steps"), [(1.0, 10), (0.2, 25), (3.0, 6)])
def test_under_strong_correlation_noise_is_near_the_least(
    name: str, alpha: float, steps: int
) -> None:
    matrix = np.array(STICKY[name])
    gap = check(matrix, matrix, alpha, steps)
    # Three values that differ in how much they stay, and a large alpha, bend the lines most.
    assert gap < (1.05 if alpha <= 1 and name != "three values" else 1.8)


@pytest.mark.parametrize("seed", range(5))
def test_random_chains_get_no_more_noise_than_any_constant_or_published_budgets(seed: int) -> None:
    check(*random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_hundreds_of_random_chains_get_no_more_noise_than_any_constant(block: int) -> None:
    for seed in range(100 + 15 * block, 115 + 15 * block):
        check(*random_case(seed))


def test_a_short_sequence_of_what_hardly_changes_has_far_less_noise_than_published() -> None:
    loss = LossFunction.of(STICKY["two values, .9999"])
    found = noise_variance(least_noise_budgets(loss, loss, 1.0, 10)) / 10
    published = noise_variance(paper_budgets(loss, loss, 1.0, 10)) / 10
    assert found <= 200 < 1e-4 * published


@pytest.mark.parametrize("seed", range(2))
def test_two_releases_have_the_least_noise_of_all_on_a_grid(seed: int) -> None:
    back, forth, alpha, _ = random_case(seed)
    exact = ExactLoss(back), ExactLoss(forth)
    losses = LossFunction.of(back), LossFunction.of(forth)
    parts, least = np.linspace(0.02, 1.0, 80), math.inf
    for first in parts:
        low, high = 0.0, alpha
        for _ in range(25):
            middle = (low + high) / 2
            kept = exact_event([alpha * float(first), middle], *exact) <= alpha
            low, high = (middle, high) if kept else (low, middle)
        if low > 0:
            least = min(least, noise_variance(np.array([alpha * first, low])))
    assert least_noise_bound(*losses, alpha, 2) <= least
    assert noise_variance(least_noise_budgets(*losses, alpha, 2)) <= least * 1.001


@pytest.mark.parametrize("seed", range(3))
def test_no_feasible_budgets_go_below_the_bound(seed: int) -> None:
    back, forth, alpha, steps = random_case(seed)
    exact, rng = (ExactLoss(back), ExactLoss(forth)), np.random.default_rng(seed)
    bound = least_noise_bound(LossFunction.of(back), LossFunction.of(forth), alpha, steps)
    for _ in range(5):
        shape = rng.dirichlet(np.full(steps, 5.0)) * alpha * steps
        while exact_event(shape.tolist(), *exact) > alpha:
            shape = shape * 0.9
        assert noise_variance(shape) >= bound


@pytest.mark.parametrize("name", STICKY)
@pytest.mark.parametrize("alpha", [0.05, 1.0, 6.0])
def test_a_loss_function_lies_above_its_line(name: str, alpha: float) -> None:
    slope = _slope(LossFunction.of(STICKY[name]), alpha)
    assert 0 < slope <= 1
    for level in np.linspace(0.01, 1.0, 50) * alpha:
        assert best_subset(STICKY[name], float(level)) >= slope * level * (1 - 1e-12)


def test_without_correlation_every_release_has_all_of_alpha() -> None:
    loss = LossFunction.unknown()
    assert least_noise_budgets(loss, loss, 2.0, 5) == pytest.approx(2.0)
    assert least_noise_bound(loss, loss, 2.0, 5) == pytest.approx(2.5, rel=1e-8)
    assert least_noise_budgets(loss, loss, 2.0, 1).tolist() == [2.0]


@pytest.mark.parametrize("steps", [97, 300])
def test_long_sequences_are_certified_and_better_than_a_constant(steps: int) -> None:
    loss = LossFunction.of(STICKY["two values, .99"])
    found = least_noise_budgets(loss, loss, 1.0, steps)
    constant = allocate(loss, loss, 1.0).constant
    assert exact_event(found.tolist(), *[ExactLoss(STICKY["two values, .99"])] * 2) <= 1.0
    bound = least_noise_bound(loss, loss, 1.0, steps)
    assert bound <= noise_variance(found) <= 2 * steps / constant**2
    assert noise_variance(found) < 1.3 * bound


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_an_alpha_that_is_none_has_no_bound(wrong: float) -> None:
    with pytest.raises(InvalidParameter, match="alpha"):
        least_noise_bound(LossFunction.unknown(), LossFunction.unknown(), wrong, 3)
