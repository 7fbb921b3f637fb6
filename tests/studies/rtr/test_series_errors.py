"""Errors that are computed are those of the product's own methods."""

import math

import numpy as np
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.series_methods import METHODS
from sfumato.series.series_spec import SeriesSpec
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.series_points import DELTA, Budget, Error, paper_error
from sfumato.studies.rtr.window_rivals import normal_tree_error, tree_error

VALUES = 300 + 80 * np.sin(np.arange(96) * 2 * np.pi / 24) + np.arange(96.0)
BUDGET = Budget(4.0, VALUES.size)


def simulated(method: str, epsilon: float, runs: int = 60) -> float:
    spec = SeriesSpec(1.0, epsilon, delta=DELTA, length=VALUES.size, truth=VALUES)
    made = METHODS[method].make(spec)
    squares = [
        np.square(made.release(VALUES, seeded(run), Purpose.SIMULATION) - VALUES).mean()
        for run in range(runs)
    ]
    return math.sqrt(float(np.mean(squares)))


@pytest.mark.parametrize(
    ("method", "computed"),
    [
        ("laplace", errors.laplace_error(BUDGET, 4.0)),
        ("fast", errors.fast_error(VALUES, BUDGET, 4.0)),
        ("fourier", errors.fourier_error(VALUES, BUDGET, 4.0)),
        ("delayed-fourier", errors.fourier_error(VALUES, BUDGET, 4.0, 24)),
        ("gaussian", Error(BUDGET.deviation)),
    ],
)
def test_a_computed_error_is_that_of_the_method(method: str, computed: Error) -> None:
    assert simulated(method, 4.0) == pytest.approx(computed.root, rel=0.06)


def test_trees_at_user_level_err_as_the_product_at_a_share_of_the_budget() -> None:
    values, total = np.zeros(100), 400.0
    spec = SeriesSpec(1.0, total / 100, length=100, truth=values)
    tree = METHODS["tree"].make(spec)
    assert tree.error_variances is not None
    exact = math.sqrt(float(tree.error_variances.mean()))
    assert tree_error(100, total).root == pytest.approx(exact, rel=0.01)


def test_a_gaussian_tree_keeps_its_ratio() -> None:
    budget = Budget(1.0, 8)
    # Eight values: 8 leaves, 4 pairs, 2 fours, 1 whole; her share of a node is its size.
    norm = math.sqrt(8 * 1 + 4 * 4 + 2 * 16 + 1 * 64)
    ends = [1, 2, 1, 3, 1, 2, 1, 4]
    exact = norm / budget.ratio * math.sqrt(sum(ends) / 8)
    assert normal_tree_error(budget).root == pytest.approx(exact)


def test_dropping_frequencies_never_errs_more_than_the_noise() -> None:
    for delay in (1, 5, 24, None):
        assert errors.gaussian_fourier_error(VALUES, BUDGET, delay).root <= BUDGET.deviation
    assert errors.gaussian_fourier_error(VALUES, BUDGET, 1).root == pytest.approx(BUDGET.deviation)


def test_the_paper_asks_for_more_than_the_exact_curve() -> None:
    for epsilon in (0.01, 1.0, 30.0):
        budget = Budget(epsilon, 50)
        assert budget.paper_epsilon > epsilon
        assert budget.matched_epsilon > budget.exact_epsilon


def test_a_relative_error_falls_with_the_length() -> None:
    assert paper_error(2.0, np.full(100, 4.0)) == pytest.approx(0.05)
    assert paper_error(2.0, np.full(400, 4.0)) == pytest.approx(0.025)


def test_one_run_has_no_standard_error() -> None:
    with pytest.raises(InvalidParameter, match="runs must be at least 2; got 1"):
        errors.check_runs(1)
