"""Backward matrices against the joint table of two values, and against the reversed chain."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato import MarkovChain
from sfumato.core.errors import InvalidParameter
from sfumato.temporal.backward import backward_matrix, transition_counts
from sfumato.temporal.loss_function import LossFunction
from tests.oracles.temporal import reversed_steps

Floats = NDArray[np.float64]


@st.composite
def processes(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """A chain whose values are all possible at any time, and a start."""
    size = draw(st.integers(1, 5))
    entry = st.floats(1e-3, 1.0)
    rows = np.array(
        draw(st.lists(st.lists(entry, min_size=size, max_size=size), min_size=size, max_size=size))
    )
    start = np.array(draw(st.lists(entry, min_size=size, max_size=size)))
    return rows / rows.sum(axis=1, keepdims=True), start / start.sum()


def joint_of_path(chain: Floats, start: Floats, steps: int) -> Floats:
    """Probability of every path, by definition."""
    size = len(chain)
    joint = np.zeros((size,) * (steps + 1))
    for path in itertools.product(range(size), repeat=steps + 1):
        joint[path] = start[path[0]] * math.prod(chain[a, b] for a, b in itertools.pairwise(path))
    return joint


def successive(chain: Floats, start: Floats, steps: int) -> list[Floats]:
    """The backward matrix of each of some steps, from the distribution before it."""
    shares = [start]
    for _ in range(steps - 1):
        shares.append(shares[-1] @ chain / (shares[-1] @ chain).sum())
    return [backward_matrix(chain, share) for share in shares]


@settings(max_examples=30)
@given(processes())
def test_one_step_is_bayes_rule(process: tuple[Floats, Floats]) -> None:
    chain, start = process
    joint = joint_of_path(chain, start, 1)
    wanted = (joint / joint.sum(axis=0)).T
    assert backward_matrix(chain, start) == pytest.approx(wanted, rel=1e-12)


@settings(max_examples=30)
@given(processes())
def test_every_step_is_that_of_the_joint_table_of_all_paths(
    process: tuple[Floats, Floats],
) -> None:
    chain, start = process
    found = successive(chain, start, 3)
    joint = joint_of_path(chain, start, 3)
    for step, matrix in enumerate(found):
        others = tuple(axis for axis in range(4) if axis not in (step, step + 1))
        two = joint.sum(axis=others)
        assert matrix == pytest.approx((two / two.sum(axis=0)).T, rel=1e-10)
    for one, other in zip(found, reversed_steps(chain, start, 3), strict=True):
        assert one == pytest.approx(other, rel=1e-10)


@settings(max_examples=30)
@given(processes())
def test_rows_sum_to_one(process: tuple[Floats, Floats]) -> None:
    for matrix in successive(*process, 4):
        assert matrix.sum(axis=1) == pytest.approx(np.ones(len(matrix)), abs=1e-14)
        assert matrix.min() >= 0


@pytest.mark.parametrize("seed", range(5))
def test_in_the_long_run_it_is_the_reversed_chain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = rng.dirichlet(np.ones(4), 4)
    last = successive(chain, np.array([0.97, 0.01, 0.01, 0.01]), 300)[-1]
    turned = MarkovChain.from_matrix(chain).reversed().transition()
    assert last == pytest.approx(np.asarray(turned), rel=1e-9)


def test_a_stationary_start_gives_the_same_matrix_at_every_step() -> None:
    chain = np.array([[0.9, 0.1], [0.3, 0.7]])
    first, *others = successive(chain, np.array([0.75, 0.25]), 5)
    for other in others:
        assert other == pytest.approx(first, rel=1e-12)


def test_of_an_impossible_value_nothing_is_said_and_it_adds_no_leakage() -> None:
    chain, start = [[0.5, 0.5, 0.0], [0.2, 0.8, 0.0], [0.3, 0.3, 0.4]], [0.6, 0.4, 0.0]
    matrix = backward_matrix(chain, start)
    assert matrix[2].tolist() == start
    possible = LossFunction.of(matrix[:2])
    for alpha in (0.1, 1.0, 5.0):
        assert LossFunction.of(matrix)(alpha) == pytest.approx(possible(alpha), rel=1e-12)


def test_a_value_that_cannot_have_come_before_has_an_empty_column() -> None:
    matrix = backward_matrix([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0])
    assert matrix.tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("chain", "start"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], [0.5, 0.5]),
        ([[0.5, 0.5], [0.5, 0.5]], [0.5, 0.6]),
        ([[0.5, 0.5], [0.5, 0.5]], [1.0]),
        ([[0.5, 0.5], [0.5, 0.5]], [1.5, -0.5]),
    ],
)
def test_what_is_no_chain_or_no_start_is_refused(chain: Any, start: Any) -> None:
    with pytest.raises(InvalidParameter):
        backward_matrix(chain, start)


# Counts -------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.integers(0, 3), max_size=12), max_size=5),
    st.sampled_from([0.0, 0.5, 2.0]),
)
def test_matrices_are_counts_of_pairs(paths: list[list[int]], smoothing: float) -> None:
    backward, forward = transition_counts(paths, 4, smoothing=smoothing)
    counts = np.full((4, 4), smoothing)
    for path in paths:
        for before, after in itertools.pairwise(path):
            counts[before, after] += 1
    for place in range(4):
        for found, row in ((forward[place], counts[place]), (backward[place], counts[:, place])):
            wanted = row / row.sum() if row.sum() > 0 else np.full(4, 0.25)
            assert found == pytest.approx(wanted, abs=1e-14)


def test_both_directions_of_long_paths_are_those_of_the_chain() -> None:
    rng = np.random.default_rng(4)
    chain = np.array([[0.8, 0.2], [0.3, 0.7]])
    path = [0]
    for _ in range(40_000):
        path.append(int(rng.random() < chain[path[-1], 1]))
    backward, forward = transition_counts([path], 2)
    assert forward == pytest.approx(chain, abs=0.02)
    assert backward == pytest.approx(backward_matrix(chain, [0.6, 0.4]), abs=0.02)


@pytest.mark.parametrize("wrong", [[[0, 2]], [[-1, 0]]])
def test_places_outside_the_alphabet_are_refused_and_not_quoted(wrong: list[list[int]]) -> None:
    with pytest.raises(InvalidParameter, match=r"places in range\(2\)") as refused:
        transition_counts(wrong, 2)
    assert str(wrong[0]) not in str(refused.value)


@pytest.mark.parametrize("smoothing", [-0.5, math.nan, math.inf])
def test_smoothing_below_nothing_is_refused(smoothing: float) -> None:
    with pytest.raises(InvalidParameter, match="smoothing"):
        transition_counts([[0, 1]], 2, smoothing=smoothing)
