"""The compiled loops against plain formulas."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.solver.column_loops import column_generation, gathered_at

NOTHING_KNOWN = np.empty((1, 0)), np.empty(0, dtype=np.int64)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 30), epsilon=st.floats(0.01, 6.0))
@settings(max_examples=200)
def test_gathered_surplus_equals_a_sort(seed: int, size: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    belief = rng.dirichlet(np.ones(size))
    loss = rng.integers(0, 4, (size, 5)) / 2  # many ties
    prices = rng.integers(-2, 3, size) / 2
    share = 1 / (math.exp(epsilon) + 1)
    means, parts = gathered_at(belief, loss, prices, share)
    for y in range(5):
        surplus = loss[:, y] - prices
        order = np.argsort(surplus, kind="stable")
        reached = np.concatenate([[0.0], belief[order].cumsum()])
        worth = np.concatenate([[0.0], (belief * surplus)[order].cumsum()])
        assert means[y] == pytest.approx(float(belief @ surplus), abs=1e-12)
        assert parts[y] == pytest.approx(float(np.interp(share, reached, worth)), abs=1e-12)


@given(seed=st.integers(0, 10_000), size=st.integers(2, 9), epsilon=st.floats(0.05, 5.0))
def test_every_basic_column_is_a_shape(seed: int, size: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    belief = np.maximum(rng.dirichlet(np.full(size, 0.3)), 1e-9)
    belief /= belief.sum()
    k = math.exp(epsilon)
    columns, told, _, _, pivots = column_generation(
        belief, rng.random((size, size)), 1 / (k + 1), 1e-11, 5_000, 0.0, *NOTHING_KNOWN
    )
    assert pivots >= 0
    shapes = columns[told >= 0]
    assert shapes @ belief == pytest.approx(1.0, abs=1e-6)
    assert shapes.max() <= k * (1 + 1e-9)
    assert shapes.min() >= 1 / k * (1 - 1e-9)


def test_gives_up_rather_than_return_half_a_solution() -> None:
    line = np.abs(np.arange(12.0)[:, None] - np.arange(12.0))
    *_, pivots = column_generation(
        np.full(12, 1 / 12), line, 1 / (math.e + 1), 1e-11, 2, 0.0, *NOTHING_KNOWN
    )
    assert pivots == -1
