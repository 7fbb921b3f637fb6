"""TPL's algorithms as arrays, against the plain ones of the oracle and the loss function."""

import numpy as np
import pytest

from sfumato.studies.tpl.paper_algorithms import (
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_4,
    algorithm_5,
    right_ends,
    solver_value,
)
from sfumato.temporal.loss_function import temporal_loss
from tests.oracles import temporal as oracle

LEVELS = tuple(np.linspace(0.1, 4.0, 14).tolist())


def matrices() -> list[np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    rng = np.random.default_rng(5)
    made = [rng.random((size, size)) for size in (2, 3, 7)]
    made.append(rng.random((5, 5)) * (rng.random((5, 5)) < 0.7) + np.eye(5) * 0.1)
    return [rows / rows.sum(axis=1, keepdims=True) for rows in made]


@pytest.mark.parametrize("rows", matrices(), ids=lambda rows: f"{len(rows)} rows")
def test_all_algorithms_give_the_loss_function(
    rows: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    parameters = algorithm_2(rows)
    pieces = algorithm_4(parameters, 1e-6, LEVELS[-1])
    ends = right_ends(pieces)
    assert np.all(np.diff(ends) > 0)
    for level in LEVELS:
        wanted = temporal_loss(rows, level)
        for found in (
            algorithm_1(rows, level),
            algorithm_3(parameters, level),
            algorithm_5(pieces, ends, level),
            oracle.algorithm_1(rows, level),
        ):
            assert found == pytest.approx(wanted, rel=1e-9)


def test_the_solver_is_given_the_papers_problem() -> None:
    rows = matrices()[1]
    for level in LEVELS:
        both = [solver_value(rows[0], rows[1], level), solver_value(rows[1], rows[0], level)]
        assert max(both) == pytest.approx(oracle.linear_fractional(rows[:2], level), rel=1e-7)


def test_rows_that_are_alike_lose_nothing() -> None:
    rows = np.full((3, 3), 1 / 3)
    assert algorithm_1(rows, 1.0) == 0.0
    assert algorithm_3(algorithm_2(rows), 1.0) == 0.0
