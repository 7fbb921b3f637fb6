"""Mixtures of columns against a linear program of another make."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.solver.column_mixture import mixed_columns


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 8), count=st.integers(1, 60))
def test_the_mixture_is_the_optimum_of_the_program(seed: int, size: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    belief = rng.dirichlet(np.ones(size)) * 0.9 + 0.1 / size
    ratios = 1 + rng.random((size, count)) * 3
    ratios /= belief @ ratios
    costs, constant = rng.random(count) - 0.5, 0.4
    every = np.column_stack([ratios, np.ones(size)])
    best = linprog(np.append(costs, constant), A_eq=every, b_eq=np.ones(size), method="highs")
    rows = mixed_columns(belief, ratios, costs, constant)
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)
    paid = 0.0
    for column in rows.T:
        weight = belief @ column
        off = np.abs(every - (column / weight)[:, None]).max(axis=0)
        assert off.min() < 1e-9  # a column that was given
        paid += weight * np.append(costs, constant)[off.argmin()]
    assert best.fun - 1e-9 <= paid <= best.fun + 1e-6


def test_columns_that_cost_too_much_are_left() -> None:
    told = np.array([[1.5, 0.5], [0.5, 1.5]])
    rows = mixed_columns(np.array([0.5, 0.5]), told, np.array([0.6, 0.6]), 0.5)
    np.testing.assert_array_equal(rows, np.ones((2, 1)))
