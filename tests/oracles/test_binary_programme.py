"""The programme of two symbols against figures found by other means, and its own laws."""

import math

import numpy as np
import pytest

from tests.oracles.binary_programme import BinaryProgramme
from tests.oracles.textbook_lp import textbook_optimum

WRONG = [[0.0, 1.0], [1.0, 0.0]]


def sticky(stay: float, points: int = 201, sides: int = 3) -> BinaryProgramme:
    return BinaryProgramme([[stay, 1 - stay], [1 - stay, stay]], WRONG, points, sides)


@pytest.mark.parametrize(
    ("stay", "budget", "steps", "even", "best"),
    [
        (0.95, 3, 12, 0.345, 0.188),
        (0.98, 10, 20, 0.193, 0.056),
        (0.98, 10, 50, 0.313, 0.119),
        (0.99, 10, 50, 0.283, 0.073),
        (0.9, 10, 50, 0.386, 0.282),
    ],
)
def test_totals_are_worth_most_in_few_places(
    stay: float, budget: float, steps: int, even: float, best: float
) -> None:
    chain = sticky(stay)
    assert chain.even(budget, steps) == pytest.approx(even, abs=0.002)
    assert chain.total(budget, steps, levels=20) == pytest.approx(best, abs=0.002)


@pytest.mark.parametrize(
    ("stay", "cap", "near", "charged", "far"),
    [
        (0.9, 0.5, 0.288, 0.31, 0.265),
        (0.95, 0.5, 0.276, 0.18, 0.222),
        (0.95, 1.0, 0.155, 0.46, 0.116),
        (0.98, 0.5, 0.262, 0.084, 0.160),
        (0.98, 1.0, 0.143, 0.20, 0.076),
    ],
)
def test_caps_buy_more_with_sight(
    stay: float, cap: float, near: float, charged: float, far: float
) -> None:
    chain = sticky(stay, points=401)
    today = chain.step_wise(cap)
    assert today.loss == pytest.approx(near, abs=0.001)
    assert today.charge == pytest.approx(charged, abs=0.01)
    assert chain.average([cap]).loss == pytest.approx(far, abs=0.001)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stay", "loss", "charge"),
    [
        (0.9, 0.263, 0.24),
        (0.95, 0.218, 0.18),
        (0.95, 0.113, 0.44),
        (0.98, 0.221, 0.074),
        (0.98, 0.132, 0.16),
    ],
)
def test_free_spends_buy_the_same_for_less(stay: float, loss: float, charge: float) -> None:
    """Mixing two prices, which is possible in the long run, reaches every point of a hull."""
    chain = sticky(stay, sides=2)
    spends = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0]
    found = [chain.average(spends, price) for price in np.geomspace(0.15, 2.0, 10)]
    charges, losses = [one.charge for one in found[::-1]], [one.loss for one in found[::-1]]
    assert charges[0] < charge < charges[-1]
    assert np.interp(charge, charges, losses) <= loss + 0.003


def test_the_cost_of_a_step_is_not_concave() -> None:
    """Near a corner no posterior within reach is useful: the value rises, falls and rises."""
    chain = sticky(0.9, points=1201)
    values = chain._envelope(chain.instant[None, :], chain._split(math.log(2)))[0]
    quarter, third, half = (values[round(1200 * b)] for b in (1 / 4, 1 / 3, 1 / 2))
    assert (quarter, third, half) == pytest.approx((1 / 4, 2 / 9, 1 / 4), abs=1e-9)


def test_more_places_for_chords_change_little() -> None:
    assert sticky(0.9, sides=9).average([0.5]).loss == pytest.approx(
        sticky(0.9, sides=2).average([0.5]).loss, rel=1e-3
    )


def test_one_step_is_the_linear_programme() -> None:
    """Skewed costs and a third output that hedges: the same as a solver finds for the channel."""
    costs = np.array([[0.0, 3.0, 0.9], [1.0, 0.2, 0.5]])
    chain = BinaryProgramme([[0.8, 0.2], [0.1, 0.9]], costs, points=401, sides=33)
    values = chain._envelope(chain.instant[None, :], chain._split(0.7))[0]
    for place in (30, 120, 200, 290, 370):
        belief = np.array([1 - chain.grid[place], chain.grid[place]])
        best = textbook_optimum(belief, costs, 0.7)
        assert best - 1e-9 <= values[place] <= best * 1.002
