"""Large alphabets: the channel on groups keeps its budget, and its bound is a bound."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import Alphabet, information_leakage, local_leakage, loss, optimal
from sfumato.design.coarse import _cells, solve_coarse
from tests.oracles.exact_leakage import within
from tests.oracles.textbook_lp import textbook_optimum

GRID = Alphabet.grid(6, 11)
LINE = Alphabet.of_size(66)
TABLES = {
    "hamming": loss.hamming(LINE).matrix,
    "absolute": loss.absolute(LINE).matrix,
    "euclidean": loss.euclidean(GRID).matrix,
    "squared": loss.squared(GRID).matrix,
}


def skewed(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    belief = np.maximum(rng.dirichlet(np.full(size, 0.3)), 1e-12)
    return np.asarray(belief / belief.sum())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("name", TABLES)
def test_keeps_its_budget_and_its_bound(
    name: str, epsilon: float, rng: np.random.Generator
) -> None:
    belief = skewed(rng, 66)
    design = optimal(belief, TABLES[name], epsilon)
    assert within(design.channel.weights, belief.tolist(), epsilon)
    assert design.lower_bound is not None
    assert design.lower_bound <= design.cost


@pytest.mark.parametrize("name", ["euclidean"])
def test_groups_are_near_the_textbook_optimum(name: str, rng: np.random.Generator) -> None:
    belief = np.asarray(rng.dirichlet(np.ones(66)))
    best = textbook_optimum(belief, TABLES[name], 0.5)
    design = optimal(belief, TABLES[name], 0.5)
    assert best * (1 - 1e-9) <= design.cost <= 1.02 * best
    assert design.lower_bound is not None
    assert design.lower_bound <= best * (1 + 1e-9)


def test_a_solution_on_groups_is_a_channel(rng: np.random.Generator) -> None:
    belief = skewed(rng, 66)
    solved = solve_coarse(belief, TABLES["euclidean"], 1.0)
    assert solved is not None
    solution, outputs = solved
    assert solution.rows.shape == (66, outputs.size)
    assert solution.rows.sum(axis=1) == pytest.approx(1.0)
    assert len(np.unique(solution.rows, axis=0)) <= 33


@pytest.mark.parametrize("name", TABLES)
def test_the_closed_form_on_cells_keeps_both_bounds(name: str, rng: np.random.Generator) -> None:
    epsilon = 3.5
    belief = skewed(rng, 66)
    rows, outputs = _cells(belief, TABLES[name], epsilon)
    ratios = rows / (belief @ rows)
    assert rows.sum(axis=1) == pytest.approx(1.0)
    assert ratios.max() <= math.exp(epsilon) * (1 + 1e-9)
    assert ratios.min() >= math.exp(-epsilon) * (1 - 1e-9)
    assert len(outputs) <= math.exp(epsilon) + 1


def test_a_cap_on_the_model_free_leakage_is_kept(rng: np.random.Generator) -> None:
    belief = skewed(rng, 140)
    line = loss.absolute(Alphabet.of_size(140))
    design = optimal(belief, line, 1.0, ldp=1.2)
    assert local_leakage(design.channel).epsilon <= 1.2
    assert information_leakage(design.channel, belief).epsilon <= 1.0
