import itertools
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from sfumato.core.belief import Belief
from sfumato.models.markov import MarkovChain
from tests.oracles.joint import DIGITS, Symbols, exact_step

STEPS = 300
Floats = NDArray[np.float64]
CASES = [(1, 4, 1e-3), (1, 3, 1e-9), (2, 3, 1e-3), (2, 2, 1e-6), (3, 2, 1e-3), (3, 2, 1e-8)]


def pair(order: int, size: int, floor: float) -> tuple[MarkovChain, MarkovChain]:
    """The same chain with dense and with sparse rows; many of its known moves are impossible."""
    draw = np.random.default_rng(order * 100 + size)
    rows = draw.dirichlet(np.full(size, 0.3), size**order)
    rows[rows < 0.15] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    initial = draw.dirichlet(np.ones(size**order)).reshape((size,) * order)
    dense = MarkovChain.from_matrix(rows, initial, floor=floor)
    return dense, replace(dense, known=sparse.csr_array(rows))


def exact_rows(chain: MarkovChain) -> dict[Symbols, list[Any]]:
    known = chain.known if isinstance(chain.known, np.ndarray) else chain.known.toarray()
    rows = {}
    with mpmath.workdps(DIGITS):
        for place, context in enumerate(itertools.product(range(chain.size), repeat=chain.order)):
            weight = mpmath.mpf(float(chain.backoff[place]))
            row = [
                (1 - weight) * mpmath.mpf(float(p)) + weight * mpmath.mpf(float(u))
                for p, u in zip(known[place], chain.background, strict=True)
            ]
            rows[context] = [p / sum(row) for p in row]
    return rows


def distance(joint: Floats, exact: dict[Symbols, Any]) -> Any:
    """The least d with |log(computed / (c * exact))| <= d for some scale c."""
    with mpmath.workdps(DIGITS):
        logs = [mpmath.log(mpmath.mpf(float(joint[c])) / p) for c, p in exact.items()]
        return (max(logs) - min(logs)) / 2


@pytest.mark.parametrize(("order", "size", "floor"), CASES)
def test_carried_beliefs_are_exact_within_their_drift_dense_and_sparse(
    order: int, size: int, floor: float
) -> None:
    chains = pair(order, size, floor)
    draw, moves = np.random.default_rng(1), exact_rows(chains[0])
    # The first values are all in the joint already: the last of them is current here.
    start = Belief(chains[0].initial, order - 1)
    told = [start, start]
    exact = {context: mpmath.mpf(float(start.joint[context])) for context in moves}
    for step in range(STEPS):
        likelihood = draw.dirichlet(np.ones(size))
        told = [
            chain.following(belief.weighted(likelihood))
            for chain, belief in zip(chains, told, strict=True)
        ]
        exact = exact_step(exact, moves, likelihood.tolist())
        if step % 10 == 9:
            away = [distance(belief.joint, exact) for belief in told]
            assert all(d <= belief.drift for d, belief in zip(away, told, strict=True))
            apart = np.log(told[0].joint / told[1].joint)
            assert np.ptp(apart) / 2 <= told[0].drift + told[1].drift
    assert told[0].drift == told[1].drift < 1e-11


@pytest.mark.parametrize("order", [1, 2, 3])
def test_many_streams_move_as_each_would_alone(order: int) -> None:
    for chain in pair(order, 2, 1e-3):
        draw = np.random.default_rng(7)
        streams, contexts = 6, 2**order
        joints = draw.dirichlet(np.ones(contexts), streams)
        moments, drifts = np.arange(streams), draw.random(streams) * 1e-12
        before = joints.copy(), moments.copy(), drifts.copy()
        which = np.array([5, 0, 3, 2])
        chain.carrier(joints, moments, drifts, which, np.empty(contexts))()
        for stream in range(streams):
            joint = before[0][stream].reshape(chain.initial.shape)
            belief = Belief(joint, min(stream, order - 1), float(before[2][stream]))
            due = chain.following(belief) if stream in which else belief
            assert np.array_equal(joints[stream], due.joint.ravel())
            assert drifts[stream] == due.drift
            assert moments[stream] == before[1][stream] + (stream in which)


@pytest.mark.parametrize("order", [2, 3])
def test_the_first_values_are_waited_for_and_only_scaled(order: int) -> None:
    for chain in pair(order, 2, 1e-3):
        belief = chain.first()
        for axis in range(1, order):
            belief = chain.following(belief)
            assert belief.axis == axis
            assert belief.joint == pytest.approx(chain.initial, rel=1e-14)
        moved = chain.following(belief)
        assert moved.axis == order - 1
        assert not np.allclose(moved.joint, chain.initial)


def test_a_planted_error_of_a_hundred_roundings_is_seen() -> None:
    """The oracle tells a belief that is off by a little more than its drift allows."""
    dense, _ = pair(1, 3, 1e-3)
    moves = exact_rows(dense)
    exact = {context: mpmath.mpf(float(dense.initial[context])) for context in moves}
    belief, exact = dense.following(dense.first()), exact_step(exact, moves)
    assert distance(belief.joint, exact) <= belief.drift
    tilted = belief.joint * np.array([1 + 4 * belief.drift, 1.0, 1.0])
    assert distance(tilted, exact) > belief.drift
