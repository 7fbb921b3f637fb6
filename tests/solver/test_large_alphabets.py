"""Large alphabets: the channel on groups keeps its budget, and its bound is a bound."""

import math
import tracemalloc

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import Alphabet, loss
from sfumato.solver import optimal
from sfumato.solver.even_loss import solve_even
from sfumato.solver.grouped import Grouped
from sfumato.solver.large_alphabets import closed_form_cells, expected, solve_coarse, solve_whole
from sfumato.stream import information_leakage, local_leakage
from tests.oracles.exact_leakage import within
from tests.oracles.textbook_lp import textbook_optimum

GRID = Alphabet.grid(6, 11)
LINE = Alphabet.of_size(66)
LOSSES = {
    "hamming": loss.hamming(LINE),
    "absolute": loss.absolute(LINE),
    "euclidean": loss.euclidean(GRID),
    "squared": loss.squared(GRID),
    "table": loss.matrix(np.random.default_rng(3).random((66, 66))),
}


def skewed(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    belief = np.maximum(rng.dirichlet(np.full(size, 0.3)), 1e-12)
    return np.asarray(belief / belief.sum())


def is_within(solved: Grouped, belief: NDArray[np.float64], epsilon: float) -> bool:
    rows = solved.rows[solved.groups]
    ratios = rows / (belief @ rows)
    limit = math.exp(epsilon) * (1 + 1e-9)
    return bool(ratios.max() <= limit and ratios.min() >= 1 / limit)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 4.0, 30.0])
@pytest.mark.parametrize("name", LOSSES)
def test_keeps_its_budget_and_its_bound(
    name: str, epsilon: float, rng: np.random.Generator
) -> None:
    belief = skewed(rng, 66)
    design = optimal(belief, LOSSES[name], epsilon)
    assert within(design.channel.weights, belief.tolist(), epsilon)
    assert design.lower_bound is not None
    assert design.lower_bound <= design.cost


@pytest.mark.parametrize(
    "name",
    [
        "hamming",
        pytest.param("euclidean", marks=pytest.mark.slow),
        pytest.param("table", marks=pytest.mark.slow),
    ],
)
def test_groups_are_near_the_textbook_optimum(name: str, rng: np.random.Generator) -> None:
    belief = np.asarray(rng.dirichlet(np.ones(66)))
    best = textbook_optimum(belief, LOSSES[name].matrix, 0.5)
    design = optimal(belief, LOSSES[name], 0.5)
    assert best * (1 - 1e-9) <= design.cost <= 1.01 * best
    assert design.lower_bound is not None
    assert 0.98 * best <= design.lower_bound <= best * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("name", ["absolute", "euclidean"])
def test_the_search_on_groups_comes_within_two_percent(
    name: str, epsilon: float, rng: np.random.Generator
) -> None:
    belief = np.asarray(rng.dirichlet(np.ones(66)))
    near = solve_coarse(belief, LOSSES[name], epsilon)
    whole = solve_whole(belief, LOSSES[name], epsilon)
    assert whole is not None
    assert is_within(near, belief, epsilon)
    assert is_within(whole, belief, epsilon)
    ours, theirs = (expected(each, belief, LOSSES[name]) for each in (near, whole))
    assert ours <= 1.01 * theirs


def test_symbols_beyond_the_first_hundreds_share_rows(rng: np.random.Generator) -> None:
    belief = skewed(rng, 400)
    solved = solve_coarse(belief, loss.euclidean(Alphabet.grid(20, 20)), 1.0)
    assert solved.groups.shape == (400,)
    assert solved.rows.shape == (solved.groups.max() + 1, solved.outputs.size)
    assert len(solved.rows) < 300
    assert solved.rows.sum(axis=1) == pytest.approx(1.0)
    assert is_within(solved, belief, 1.0)


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.5])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 50.0])
def test_equal_errors_have_a_closed_form(
    epsilon: float, concentration: float, rng: np.random.Generator
) -> None:
    size = 20
    belief = np.maximum(rng.dirichlet(np.full(size, concentration)), 1e-9)
    belief /= belief.sum()
    solved = solve_even(belief, 2.0, epsilon)
    table = loss.matrix(2.0 * (1 - np.eye(size)))
    best = textbook_optimum(belief, table.matrix, epsilon)
    if solved is None:
        # The symbols that are left cannot take up the rest: the search must find the optimum.
        assert optimal(belief, table, epsilon).cost == pytest.approx(best, rel=1e-7)
        return
    assert is_within(solved, belief, epsilon)
    assert expected(solved, belief, table) == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("name", LOSSES)
def test_the_closed_form_on_cells_keeps_both_bounds(name: str, rng: np.random.Generator) -> None:
    belief = skewed(rng, 66)
    solved = closed_form_cells(belief, LOSSES[name], 3.5)
    assert solved.rows.sum(axis=1) == pytest.approx(1.0)
    assert is_within(solved, belief, 3.5)
    assert len(solved.outputs) <= math.exp(3.5) + 1


def test_a_cap_on_the_model_free_leakage_is_kept(rng: np.random.Generator) -> None:
    belief = skewed(rng, 140)
    line = loss.absolute(Alphabet.of_size(140))
    design = optimal(belief, line, 1.0, ldp=1.2)
    assert local_leakage(design.channel).epsilon <= 1.2
    assert information_leakage(design.channel, belief).epsilon <= 1.0


def test_no_budget_means_a_constant(rng: np.random.Generator) -> None:
    design = optimal(skewed(rng, 140), loss.absolute(Alphabet.of_size(140)), 1e-12)
    assert design.channel.is_constant
    assert design.lower_bound == 0.0


def test_a_loss_of_nothing_costs_nothing(rng: np.random.Generator) -> None:
    assert optimal(skewed(rng, 70), np.zeros((70, 70)), 1.0).cost == 0.0


def test_the_same_question_has_the_same_answer(rng: np.random.Generator) -> None:
    belief, line = skewed(rng, 150), loss.absolute(Alphabet.of_size(150))
    one, other = optimal(belief, line, 1.0), optimal(belief, line, 1.0)
    assert np.array_equal(one.channel.weights, other.channel.weights)


def test_ten_thousand_cells_of_a_map_fit_into_little_memory(rng: np.random.Generator) -> None:
    belief = np.maximum(rng.dirichlet(np.ones(10_000)), 1e-12)
    belief /= belief.sum()
    cells = loss.euclidean(Alphabet.grid(100, 100))
    tracemalloc.start()
    design = optimal(belief, cells, 1.0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 400e6
    assert design.sip.epsilon <= 1.0
    assert design.gap is not None
    assert design.gap <= 0.03 * design.cost


def test_ten_thousand_symbols_with_equal_errors(rng: np.random.Generator) -> None:
    belief = np.asarray(rng.dirichlet(np.full(10_000, 5.0)))
    design = optimal(belief, loss.hamming(Alphabet.of_size(10_000)), 1.0)
    assert design.gap == pytest.approx(0.0, abs=1e-9)
