"""The interior-point method on few outputs, against the program as it is written in books."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfumato.core.arrays import Floats
from sfumato.solver.few_output_loops import (
    Interior,
    coupling_of,
    interior_channel,
    interior_room,
    prices_of,
)
from sfumato.solver.lane_systems import factor, solve

NEAR = 1e-7
# Costs of unlikely symbols are as small as what a solver leaves open unless it is told otherwise.
EXACTLY = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def by_a_solver(belief: Floats, losses: Floats, k: float) -> float:
    """The least cost of channels whose ratios to their output marginal are within 1/k and k."""
    size, outputs = losses.shape
    marginal = np.concatenate([share * np.eye(outputs) for share in belief], axis=1)
    own = np.eye(size * outputs).reshape(size, outputs, -1)
    over, under = own - k * marginal, marginal / k - own
    bounds = np.concatenate([over, under]).reshape(-1, size * outputs)
    found = linprog(
        (belief[:, None] * losses).ravel(),
        A_ub=bounds,
        b_ub=np.zeros(len(bounds)),
        A_eq=np.kron(np.eye(size), np.ones(outputs)),
        b_eq=np.ones(size),
        options=EXACTLY,
    )
    assert found.success
    return float(found.fun)


def begun(losses: Floats, room: Interior) -> None:
    room[0][: losses.size] = losses.ravel()


def channel_of(belief: Floats, losses: Floats, k: float, room: Interior) -> Floats:
    """Rows of the channel that a coupling stands for."""
    cells = [coupling_of(room, cell) for cell in range(losses.size)]
    coupling = np.array(cells).reshape(losses.shape)
    rows: Floats = (belief @ coupling) / k + (1 - 1 / k) * coupling
    return rows


@st.composite
def programs(draw: st.DrawFn) -> tuple[Floats, Floats, float]:
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    size, outputs = draw(st.integers(2, 13)), draw(st.sampled_from([4, 8]))
    belief = np.maximum(rng.dirichlet(np.full(size, draw(st.sampled_from([0.2, 2.0])))), 1e-9)
    losses = rng.random((size, outputs))
    losses -= losses.min(axis=1, keepdims=True)
    return belief / belief.sum(), losses, math.exp(draw(st.floats(0.05, 3.0)))


@given(program=programs())
@settings(max_examples=40)
def test_it_is_the_optimum_and_its_prices_prove_it(program: tuple[Floats, Floats, float]) -> None:
    belief, losses, k = program
    room = interior_room(*losses.shape)
    begun(losses, room)
    if interior_channel(belief, losses.shape[1], k, NEAR, 60, room) < 0:
        return
    rows, best = channel_of(belief, losses, k, room), by_a_solver(belief, losses, k)
    # Outputs that are rarer are the method's own: rounding decides what their ratios are.
    out = belief @ rows
    ratios = (rows / out)[:, out > 1e-6]
    assert rows.sum(axis=1) == pytest.approx(1.0, abs=1e-6)
    assert ratios.max() <= k * (1 + 1e-8)
    assert ratios.min() >= 1 / k * (1 - 1e-8)
    cost = float((belief[:, None] * rows * losses).sum())
    assert best * (1 - 1e-6) - 1e-9 <= cost <= best * (1 + 1e-6) + 1e-9
    prices = np.zeros(len(belief))
    prices_of(belief, k, room, prices)
    # No column is worth adding: high, that is k, on the cheapest part 1/(k+1), and 1/k elsewhere.
    for surplus in (losses - prices[:, None]).T:
        order = np.argsort(surplus)
        reached = np.concatenate([[0.0], belief[order].cumsum()])
        worth = np.concatenate([[0.0], (belief * surplus)[order].cumsum()])
        high = float(np.interp(1 / (k + 1), reached, worth))
        assert float(belief @ surplus) / k + (k - 1 / k) * high >= -1e-5 * best - 1e-8


def test_it_settles_where_steps_of_a_release_are() -> None:
    rng = np.random.default_rng(1)
    room, settled = interior_room(16, 8), 0
    for belief in np.maximum(rng.dirichlet(np.full(16, 0.3), 200), 1e-6):
        begun(rng.random((16, 8)), room)
        settled += interior_channel(belief / belief.sum(), 8, math.exp(0.5), 1e-5, 40, room) >= 0
    assert settled >= 198


def test_what_was_in_the_room_changes_nothing() -> None:
    rng = np.random.default_rng(2)
    belief, losses, used = rng.dirichlet(np.ones(9)), rng.random((9, 8)), interior_room(9, 12)
    for array in used:
        array[...] = rng.random(array.shape)
    # What is beyond the symbols of a row is 0 and stays so.
    used[5][:, :, 9:], used[7][:, 9:] = 0.0, 0.0
    fresh, found = interior_room(9, 8), []
    for room in (fresh, used):
        begun(losses, room)
        assert interior_channel(belief, 8, 2.0, NEAR, 40, room) >= 0
        found.append(channel_of(belief, losses, 2.0, room))
    np.testing.assert_array_equal(found[0], found[1])


def test_it_gives_up_rather_than_return_half_a_solution() -> None:
    belief, room = np.full(12, 1 / 12), interior_room(12, 12)
    begun(np.abs(np.arange(12.0)[:, None] - np.arange(12.0)), room)
    assert interior_channel(belief, 12, math.e, 1e-9, 2, room) == -1
    begun(np.full((12, 12), np.nan), room)
    assert interior_channel(belief, 12, math.e, 1e-9, 40, room) == -1


@pytest.mark.parametrize("seed", [42, 538, 548, 1861, 1989, 3696])
def test_rows_that_miss_their_sum_are_no_solution(seed: int) -> None:
    """Asked for more digits than it has, it closes its gap while rounding moves the rows."""
    rng, room = np.random.default_rng(seed), interior_room(12, 12)
    belief = rng.dirichlet(np.full(12, 5.0))
    losses = np.abs(rng.integers(0, 12, 12) - np.arange(12.0)[:, None])
    begun(losses, room)
    if interior_channel(belief, 12, 1.2, 1e-10, 40, room) >= 0:
        assert channel_of(belief, losses, 1.2, room).sum(axis=1) == pytest.approx(1.0, abs=1e-7)


def test_an_unknown_without_a_pivot_stays_where_it_is() -> None:
    rng, system, over = np.random.default_rng(3), np.zeros((8, 8)), np.zeros(8)
    root, right, found = rng.normal(size=(4, 4)), rng.normal(size=5), np.zeros(8)
    known, lost = [0, 1, 3, 4], 2
    matrix = np.zeros((5, 5))
    matrix[np.ix_(known, known)] = root @ root.T + np.eye(4)
    system[:5, :5], found[:5] = np.triu(matrix), right
    factor(system, 5, over)
    solve(system, 5, over, found)
    assert found[lost] == pytest.approx(0.0, abs=1e-200)
    np.testing.assert_allclose((matrix @ found[:5])[known], right[known], atol=1e-9)


@given(seed=st.integers(0, 10_000), size=st.integers(1, 24))
def test_systems_are_solved(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    padded = -(-size // 4) * 4
    root = rng.normal(size=(size, size))
    matrix, right = root @ root.T + np.eye(size), rng.normal(size=size)
    system, over, found = np.zeros((padded, padded)), np.zeros(padded), np.zeros(padded)
    system[:size, :size], found[:size] = np.triu(matrix), right
    factor(system, size, over)
    solve(system, size, over, found)
    np.testing.assert_allclose(matrix @ found[:size], right, atol=1e-8)
