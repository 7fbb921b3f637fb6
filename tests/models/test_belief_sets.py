"""Sets of beliefs against every corner of a box, and against chains drawn from inside."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.models.belief_sets import carried, first_beliefs, informed, mean_ranges
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior_sets import PriorBox

Floats = NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
ROUNDING = 2e-15
"""Of a sum of five numbers. More would let in what is outside of a very small box."""


def a_box(rng: np.random.Generator, size: int) -> PriorBox:
    middle = rng.dirichlet(np.ones(size))
    off = rng.random(size) * 0.2
    return PriorBox(np.maximum(middle - off, 0), np.minimum(middle + off, 1))


def corners(box: PriorBox) -> Floats:
    """All corners of the box cut by the plane of sum 1: one entry is free, the others at an end."""
    found, size = [], box.lower.size
    for free in range(size):
        for ends in itertools.product((0, 1), repeat=size - 1):
            row = np.empty(size)
            others = [place for place in range(size) if place != free]
            for place, end in zip(others, ends, strict=True):
                row[place] = (box.lower, box.upper)[end][place]
            row[free] = 1 - row[others].sum()
            if box.lower[free] - ROUNDING <= row[free] <= box.upper[free] + ROUNDING:
                found.append(row)
    return np.array(found)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_means_range_as_over_the_corners(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    box, columns = a_box(rng, size), rng.random((size, 3))
    low, high = mean_ranges(box, columns)
    means = corners(box) @ columns
    assert np.all(low <= means.min(axis=0)) and np.all(high >= means.max(axis=0))
    np.testing.assert_allclose(low, means.min(axis=0), atol=1e-10)
    np.testing.assert_allclose(high, means.max(axis=0), atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_beliefs_after_an_output_range_as_over_the_corners(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    box, likelihood = a_box(rng, size), rng.random(size) + 0.01
    after = informed(box, likelihood)
    joint = corners(box) * likelihood
    posteriors = joint / joint.sum(axis=1, keepdims=True)
    # A quotient of linear functions is extreme at a corner, too.
    assert np.all(after.lower <= posteriors.min(axis=0) + 5 * ROUNDING)
    assert np.all(after.upper >= posteriors.max(axis=0) - 5 * ROUNDING)
    np.testing.assert_allclose(after.lower, posteriors.min(axis=0), atol=1e-10)
    np.testing.assert_allclose(after.upper, posteriors.max(axis=0), atol=1e-10)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), radius=st.floats(0, 0.2))
def test_beliefs_a_moment_later_range_as_over_all_corners(
    seed: int, size: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    box, rows = a_box(rng, size), rng.dirichlet(np.ones(size), size=size)
    chains = PlausibleChains.from_radius(MarkovChain.from_matrix(rows), radius)
    after = carried(box, chains)
    ends = [corners(PriorBox(low, high)) for low, high in zip(chains.low, chains.high, strict=True)]
    highest = np.array([row.max(axis=0) for row in ends])
    lowest = np.array([row.min(axis=0) for row in ends])
    np.testing.assert_allclose(after.upper, (corners(box) @ highest).max(axis=0), atol=1e-9)
    np.testing.assert_allclose(after.lower, (corners(box) @ lowest).min(axis=0), atol=1e-9)
    assert np.all(after.upper >= (corners(box) @ highest).max(axis=0) - 5 * ROUNDING)
    assert np.all(after.lower <= (corners(box) @ lowest).min(axis=0) + 5 * ROUNDING)


def test_a_single_belief_stays_one() -> None:
    rows = np.array([[0.9, 0.1], [0.3, 0.7]])
    chains = PlausibleChains.from_radius(MarkovChain.from_matrix(rows, initial=[0.4, 0.6]), 0.0)
    box = first_beliefs(chains)
    for _ in range(200):
        box = carried(informed(box, np.array([0.6, 0.4])), chains)
    assert np.all(box.upper - box.lower < 1e-12)


def test_beliefs_never_leave_what_a_step_of_the_chain_allows() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]])
    chains = PlausibleChains.from_radius(chain, 0.05)
    box = first_beliefs(chains)
    for _ in range(50):
        box = carried(informed(box, np.array([0.99, 0.01])), chains)
    assert box.upper[0] <= 0.95 + 1e-9 and box.lower[0] >= 0.25 - 1e-9


def test_likelihoods_of_zero_rule_values_out() -> None:
    after = informed(PriorBox([0.2, 0.2, 0.2], [0.5, 0.5, 0.5]), np.array([0.0, 0.3, 0.6]))
    assert after.lower[0] == after.upper[0] == 0.0


def test_longer_memories_are_refused() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]]).lifted(2)
    with pytest.raises(InvalidParameter, match="order 1"):
        first_beliefs(PlausibleChains.from_radius(chain, 0.1))
