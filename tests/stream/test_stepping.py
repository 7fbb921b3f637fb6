import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from sfumato.core.belief import Belief
from sfumato.core.lane_vectors import put
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.solver.policy import Tables, part_weights
from sfumato.stream import draw_loops, mixture_loops, stepping
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.kept_channel_loops import output_marginal
from tests.compiled import NO_LIMIT, PART, WHOLE, Floats, Ints, handmade, kept_rows, mixed_weights
from tests.strategies import beliefs, positive_matrices


@st.composite
def drawn_from(draw: st.DrawFn) -> tuple[Tables, int, list[int]]:
    """A kept channel, a mixing weight and integers to mix it with, zeros among them."""
    size, width = draw(st.integers(2, 5)), draw(st.integers(1, 6))
    rows = draw(positive_matrices(size, width))
    names = draw(st.permutations(range(max(size, width))))[:width]
    tables = handmade([rows], draw(beliefs(size)), names)
    parts = draw(st.sampled_from([0, 1, WHOLE - 1, WHOLE]) | st.integers(0, WHOLE))
    cuts = sorted(draw(st.lists(st.integers(0, PART), min_size=width - 1, max_size=width - 1)))
    return tables, parts, [b - a for a, b in itertools.pairwise([0, *cuts, PART])]


def drawn(tables: Tables, parts: int, blend: list[int], symbol: int, words: list[int]) -> list[int]:
    count = len(words)
    columns, nothing = np.full(count, -1), np.zeros(count, dtype=np.int64)
    blends = np.zeros((count, int(tables[0][0, 3])), dtype=np.int64)
    blends[:, : len(blend)] = blend
    charges = np.zeros((count, 2))
    ready = (nothing, nothing, np.full(count, parts), blends, charges, nothing, columns, nothing)
    draw_loops.draw(tables, ready, np.full(count, symbol), np.array(words, dtype=np.uint64))
    return columns.tolist()


@settings(max_examples=150)
@given(drawn_from(), st.integers(0, 3))
def test_a_draw_is_exact_at_every_boundary(
    made: tuple[Tables, int, list[int]], low_bits: int
) -> None:
    """A column owns as many coins as it has weight, and those in order."""
    tables, parts, blend = made
    for symbol, kept in enumerate(kept_rows(tables, 0)):
        owned = [(WHOLE - parts) * w + parts * q for w, q in zip(kept, blend, strict=True)]
        assert sum(owned) == 2**62
        coins, owners = [], []
        for column, (start, weight) in enumerate(
            zip(itertools.accumulate([0, *owned[:-1]]), owned, strict=True)
        ):
            if weight:
                coins += [start, start + weight // 2, start + weight - 1]
                owners += [column] * 3
        words = [(coin << 2) + low_bits for coin in coins]
        assert drawn(tables, parts, blend, symbol, words) == owners


def test_the_kernel_that_forgets_the_mixture_would_be_seen() -> None:
    """The boundaries of the kept channel are not those of the mixed one."""
    tables = handmade([np.array([[0.9, 0.1], [0.1, 0.9]])], np.array([0.5, 0.5]))
    blend, parts = [PART // 2, PART // 2], WHOLE // 2
    (mixed, _), (kept, _) = (mixed_weights(tables, 0, part, blend)[0] for part in (parts, 0))
    word = (mixed + 5) << 2
    assert mixed < kept
    assert drawn(tables, parts, blend, 0, [word]) == [1]
    assert drawn(tables, 0, blend, 0, [word]) == [0]


@given(positive_matrices())
def test_kept_weights_sum_exactly_and_leave_nothing_out(rows: Floats) -> None:
    weights = part_weights(rows)
    assert (weights.sum(axis=1) == PART).all()
    assert weights.min() >= 1
    assert np.abs(weights / PART - rows).max() <= rows.shape[1] / PART


@given(beliefs(), st.floats(1.0, 2.0**40), st.floats(0.0, 1e-6))
def test_the_bound_of_a_logarithm_is_one(belief: Floats, value: float, error: float) -> None:
    bound = mixture_loops.log_up(value, error)
    assert math.log(value) + error <= bound <= math.log(value) * (1 + 16 * UNIT) + error + 1e-14


# The belief after an output ----------------------------------------------------------------------


@given(st.integers(0, 2), st.data())
def test_an_output_weighs_the_axis_of_its_moment(moment: int, data: st.DataObject) -> None:
    size, order = 2, 3
    joint = data.draw(beliefs(size**order)).reshape((size,) * order)
    tables = handmade([data.draw(positive_matrices(size, size))], np.full(size, 1 / size))
    chain = MarkovChain.from_matrix(np.full((size**order, size), 1 / size))
    crowd = StreamArrays(chain, tables, NO_LIMIT, 1)
    crowd.put(0, moment, Belief(joint, moment))
    ready = crowd.prepare(np.zeros(1, dtype=np.int64), np.array([[30.0, math.inf]]))
    ready.columns[0] = y = data.draw(st.integers(0, int(tables[0][0, 4]) - 1))
    crowd.inform(ready)
    full = mixed_weights(tables, 0, int(ready.parts[0]), ready.blends[0].tolist())
    constant = all(row == full[0] for row in full)
    after = crowd.belief(0).joint
    for place in np.ndindex(*joint.shape):
        likelihood = 1.0 if constant else full[place[moment]][y] / 2**62
        assert after[place] == pytest.approx(joint[place] * likelihood, rel=1e-15)
    assert crowd.drifts[0] == (0.0 if constant else 4 * UNIT)


@given(beliefs(4), st.floats(1e-3, 1e3))
def test_a_marginal_is_summed_up_with_its_running_sums(belief: Floats, scale: float) -> None:
    joints, told, reached = (belief * scale)[None, :], np.empty(4), np.empty(4)
    total = stepping.marginal(joints, 0, 1, told, reached)
    assert np.array_equal(told, joints[0])
    assert total == reached[-1] == pytest.approx(scale)
    pair, sums = np.empty(2), np.empty(2)
    stepping.marginal(joints, 0, 2, pair, sums)
    assert pair == pytest.approx([joints[0, :2].sum(), joints[0, 2:].sum()], rel=1e-15)
    stepping.marginal(joints, 0, 1, pair, sums)
    assert pair == pytest.approx([joints[0, ::2].sum(), joints[0, 1::2].sum()], rel=1e-15)


# Several streams, or columns, at a time ----------------------------------------------------------


# Not kept on disk: a loop of a test would not see that what it calls has changed.
@njit(error_model="numpy")
def _summed(joints: Floats, which: Ints, told: Floats, reached: Floats, totals: Floats) -> None:
    put(totals, 0, stepping.four_marginals(joints, which, 0, 0, told, reached))


@given(st.integers(1, 11), st.integers(0, 2**32 - 1))
def test_four_marginals_are_those_of_each_stream_alone(size: int, seed: int) -> None:
    joints, which = np.random.default_rng(seed).random((6, size)), np.array([4, 0, 5, 2])
    told, reached, totals = np.empty((4, size)), np.empty((4, size)), np.empty(4)
    _summed(joints, which, told, reached, totals)
    for place, stream in enumerate(which):
        alone, sums = np.empty(size), np.empty(size)
        total = stepping.marginal(joints, stream, 1, alone, sums)
        assert totals[place] == total
        assert np.array_equal(told[place], alone)
        assert np.array_equal(reached[place], sums)


@given(st.integers(1, 24), st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_an_output_marginal_is_summed_in_one_order_whatever_its_width(
    size: int, rows: int, width: int, seed: int
) -> None:
    """By rows first where each has more than four symbols; else symbol after symbol."""
    rng = np.random.default_rng(seed)
    blocks, belief = -(-width // 4), rng.random(size)
    weights = np.floor(rng.random((blocks, rows, 4)) * PART)
    row_of = rng.integers(rows, size=(1, size)).astype(np.uint16)
    nodes, out = np.array([[0, rows, 0, 4 * blocks, width]]), np.empty(4 * blocks)
    room = np.empty(max(rows, size))
    output_marginal(nodes, row_of, weights.reshape(-1, 4), 0, belief, room, out)
    for y in range(4 * blocks):
        column, total = weights[y // 4, :, y % 4].tolist(), 0.0
        if size > 4 * rows:
            masses = [0.0] * rows
            for x, row in enumerate(row_of[0].tolist()):
                masses[row] += float(belief[x])
            for row in range(rows):
                total += masses[row] * column[row]
        else:
            for x, row in enumerate(row_of[0].tolist()):
                total += float(belief[x]) * column[row]
        assert out[y] == total


@given(st.lists(st.integers(0, 6), min_size=1, max_size=11).filter(any))
def test_what_rounding_leaves_goes_to_the_first_of_the_largest(shares: list[int]) -> None:
    """Equal shares are frequent here: the first of them gets it, whichever lane it is in."""
    width, total = len(shares), float(sum(shares))
    room = -(-width // 4) * 4
    out, blends = np.full(room, 9.0 * PART), np.zeros((1, room), dtype=np.int64)
    out[:width] = np.array(shares) * float(PART)
    mixture_loops.blend(out, total, width, blends, 0)
    due = [int(share * float(PART) / total + 0.5) for share in shares]
    due[due.index(max(due))] += PART - sum(due)
    assert blends[0, :width].tolist() == due
