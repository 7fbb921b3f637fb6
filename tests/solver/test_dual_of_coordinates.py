"""The bound of a loss that is computed from places, against exact values and the textbook."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from sfumato import Alphabet, loss
from sfumato.solver import dual
from sfumato.solver.dual import best_shape_values, dual_bound, floor_values
from tests.oracles.textbook_lp import textbook_optimum

MEASURES = [loss.hamming, loss.absolute, loss.squared, loss.euclidean]


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
@pytest.mark.parametrize("measure", [loss.absolute, loss.squared, loss.euclidean])
def test_floors_are_under_the_values_and_exact_where_least(
    measure: Callable[[Alphabet], loss.Loss],
    epsilon: float,
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dual, "_LEVELS", 12)
    distance = measure(Alphabet.grid(15, 20))
    belief = np.asarray(rng.dirichlet(np.ones(300)))
    prices = distance.matrix.max() * rng.random(300)
    floors = floor_values(prices, belief, distance, epsilon)
    values = best_shape_values(prices, belief, distance.matrix, epsilon)
    assert np.all(floors <= values + 1e-9 * distance.bound)
    assert floors.min() == pytest.approx(values.min(), rel=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_any_prices_stay_below_the_textbook_optimum(
    measure: Callable[[Alphabet], loss.Loss],
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loss, "_TABULATED", 10)
    distance = measure(Alphabet.of_size(24))
    belief = np.asarray(rng.dirichlet(np.ones(24)))
    best = textbook_optimum(belief, distance.matrix, 1.0)
    assert not distance.stored
    for _ in range(20):
        prices = 2 * best * rng.random(24)
        assert dual_bound(prices, belief, distance, 1.0) <= best
        assert dual_bound(prices, belief, distance, 1.0, ldp=1.2) <= best


def test_a_bound_is_the_same_for_a_loss_and_its_table(rng: np.random.Generator) -> None:
    line = loss.absolute(Alphabet.of_size(30))
    belief, prices = np.asarray(rng.dirichlet(np.ones(30))), rng.random(30)
    assert dual_bound(prices, belief, line, math.log(2)) == dual_bound(
        prices, belief, line.matrix, math.log(2)
    )
