"""Chains that outputs have not ruled out: bets are fair, and the true chain stays in the box."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.chain_bet_loops import count_pairs
from sfumato.models.chain_bets import FixedOutputs, inverse_weights, plausible_chains
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains, tightened
from sfumato.store.codec import from_bytes, to_bytes
from tests.oracles import hidden_sequences

STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]], [0.6, 0.4])
RUNS, CONFIDENCE = 60, 0.8


def response(symbols: int, epsilon: float) -> Floats:
    """Randomised response."""
    kept = math.exp(epsilon)
    whole = np.ones((symbols, symbols)) + (kept - 1) * np.eye(symbols)
    return whole / (kept + symbols - 1)


def outputs(
    chain: MarkovChain, channel: Floats, streams: int, length: int, rng: np.random.Generator
) -> FixedOutputs:
    """What streams of a chain let out."""
    cumulated = chain.transition().cumsum(axis=1), channel.cumsum(axis=1)
    values = rng.choice(chain.size, size=streams, p=chain.initial.ravel())
    columns = np.empty((streams, length), dtype=np.int64)
    for moment in range(length):
        columns[:, moment] = (rng.random(streams)[:, None] > cumulated[1][values]).sum(axis=1)
        values = (rng.random(streams)[:, None] > cumulated[0][values]).sum(axis=1)
    columns = columns.clip(max=len(channel.T) - 1)
    return FixedOutputs(channel, np.arange(streams + 1) * length, columns.ravel())


def test_no_bet_on_the_true_chain_gains_on_average() -> None:
    channel, length = response(2, 1.5), 5
    weights = inverse_weights(channel)
    assert weights is not None
    rows, first = STICKY.transition().tolist(), STICKY.initial.tolist()
    sequences = hidden_sequences.output_probabilities(first, rows, channel.tolist(), length)
    guide = np.array([0.2, 0.8]), np.array([[0.6, 0.4], [0.1, 0.9]])
    spread = np.ones((2, 2))
    means, others = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    levels = (np.arange(8) + 0.5) / 8
    for seen, probability in sequences.items():
        tables = np.zeros((2, 2, 8, 2, 2))
        ends = np.array([0, length])
        count_pairs(*guide, channel, ends, np.array(seen), spread, tables)
        for parity, i, j in np.ndindex(2, 2, 2):
            for right, total in ((rows[i][j], means), (rows[i][j] - 0.2, others)):
                won = levels[:, None, None] * weights[:, i][:, None] * (weights[:, j] - right)
                capital = np.prod((1 + 0.2 * won) ** tables[parity, i])
                total[parity, i, j] += probability * capital
    np.testing.assert_allclose(means, 1.0, atol=1e-8)
    assert np.all(others > 1 + 1e-3)


def covers(shrink: float, seed: int) -> int:
    """How often the true chain lies in a box, or in one of a share of its width."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(RUNS):
        left = outputs(STICKY, response(2, 2.0), 40, 20, rng)
        box = plausible_chains(left, STICKY, guide=STICKY, confidence=CONFIDENCE)
        middle, half = (box.low + box.high) / 2, shrink * (box.high - box.low) / 2
        low, high = np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)
        found += replace(box, low=low, high=high).contains(STICKY)
    return found


def test_the_true_chain_is_covered_and_a_narrow_box_does_not_cover_it() -> None:
    # With probability under 1e-4 this many of the runs are missed at the stated confidence.
    least = RUNS * CONFIDENCE - 4 * math.sqrt(RUNS * CONFIDENCE * (1 - CONFIDENCE))
    assert covers(1.0, 1) >= RUNS * CONFIDENCE
    assert covers(0.15, 1) < least


@pytest.mark.slow
@pytest.mark.parametrize(("symbols", "epsilon"), [(2, 1.0), (5, 3.0), (16, 4.0)])
def test_rings_are_covered_at_the_stated_confidence(symbols: int, epsilon: float) -> None:
    step = np.roll(np.eye(symbols), 1, axis=1)
    matrix = 0.8 * np.eye(symbols) + 0.1 * step + 0.1 * step.T
    ring = MarkovChain.from_matrix(matrix, np.full(symbols, 1 / symbols), floor=1e-3)
    rng, runs, found, widths = np.random.default_rng(symbols), 60, 0, []
    for _ in range(runs):
        left = outputs(ring, response(symbols, epsilon), 200, 50, rng)
        box = plausible_chains(left, ring, guide=ring, confidence=0.9)
        found += box.contains(ring)
        widths.append(box.widest)
    assert found >= 0.9 * runs
    assert np.mean(widths) < 0.7


def test_more_outputs_narrow_the_box() -> None:
    rng = np.random.default_rng(3)
    widths = [
        plausible_chains(outputs(STICKY, response(2, 1.0), many, 50, rng), STICKY).widest
        for many in (20, 200, 2000)
    ]
    assert widths[0] > 1.5 * widths[1] > 3 * widths[2]


@pytest.mark.parametrize(
    "pattern", [[0, 1, 0, 0], [0, 0, 1, 1]], ids=["two after one", "moves known by their moment"]
)
def test_streams_that_follow_no_chain_leave_none(pattern: list[int]) -> None:
    columns = np.tile(pattern, 2000)
    left = FixedOutputs(response(2, 9.0), np.array([0, 8000]), columns)
    with pytest.raises(InvalidParameter, match="no such chain is left"):
        plausible_chains(left, STICKY)


def test_a_channel_without_an_inverse_proves_nothing() -> None:
    assert inverse_weights(np.array([[0.7, 0.3], [0.7, 0.3]])) is None
    assert inverse_weights(np.array([[0.5, 0.5], [0.2, 0.8], [0.9, 0.1]])) is None
    blind = FixedOutputs(np.full((2, 2), 0.5), np.array([0, 2]), np.array([0, 1]))
    with pytest.raises(InvalidParameter, match="inverse"):
        plausible_chains(blind, STICKY)
    with pytest.raises(InvalidParameter, match="cannot be left out"):
        FixedOutputs(response(2, 1.0), np.array([0, 2]), np.array([0, -1]))


def test_weights_are_right_on_average_whatever_is_true() -> None:
    channel = np.array([[0.5, 0.3, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.2, 0.1, 0.1, 0.6]])
    weights = inverse_weights(channel)
    assert weights is not None
    np.testing.assert_allclose(channel @ weights, np.eye(3), atol=1e-8)


def test_all_of_a_box_lies_within_its_radius_of_the_estimate() -> None:
    left = outputs(STICKY, response(2, 2.0), 40, 20, np.random.default_rng(5))
    box = plausible_chains(left, MarkovChain.from_matrix([[0.5, 0.5], [0.7, 0.3]]))
    wide = PlausibleChains.from_radius(box.estimate, box.radius)
    assert np.all((wide.low <= box.low) & (box.high <= wide.high))
    assert np.all((wide.first_low <= box.first_low) & (box.first_high <= wide.first_high))
    narrow = PlausibleChains.from_radius(box.estimate, 0.99 * box.radius)
    bounds = ((wide.low, narrow.low, box.low), (-wide.high, -narrow.high, -box.high))
    assert not all(np.all(less <= own) for _, less, own in bounds)


def ended(columns: Ints, values: Ints, why: str) -> int:
    """After how many outputs a stream ends."""
    shown = {"value": values, "output before": np.append(1, columns[:-1]), "output": columns}[why]
    return int(np.flatnonzero(np.append(shown[:-1] == 0, True))[0]) + 1


@pytest.mark.parametrize("why", ["value", "output before", "output"])
def test_bets_are_fair_unless_a_stream_ends_because_of_its_last_output(why: str) -> None:
    channel, length = response(2, 1.0), 4
    weights = inverse_weights(channel)
    assert weights is not None
    rows, first = STICKY.transition(), STICKY.initial.ravel()
    total, right = 0.0, rows[0, 1]
    for values in itertools.product(range(2), repeat=length):
        moved = first[values[0]] * math.prod(rows[a, b] for a, b in itertools.pairwise(values))
        for columns in itertools.product(range(2), repeat=length):
            shown = math.prod(channel[x, y] for x, y in zip(values, columns, strict=True))
            stop = ended(np.array(columns), np.array(values), why)
            tables = np.zeros((2, 2, 8, 2, 2))
            own = np.array(columns[:stop]), np.ones((2, 2)), tables
            count_pairs(first, rows, channel, np.array([0, stop]), *own)
            won = 0.0625 * weights[:, 0][:, None] * (weights[:, 1] - right)
            pairs = tables[0, 0].sum(axis=0)
            total += moved * shown * float(np.prod((1 + won) ** pairs))
    assert bool(abs(total - 1) < 1e-8) is (why != "output")


def test_a_box_knows_what_lies_in_it() -> None:
    near = PlausibleChains.from_radius(STICKY, 0.05)
    assert near.contains(STICKY)
    assert near.widest == pytest.approx(0.1)
    assert PlausibleChains.from_radius(STICKY, 0.0).contains(STICKY)
    moved = MarkovChain.from_matrix([[0.9, 0.1], [0.36, 0.64]], [0.6, 0.4])
    begun = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]], [0.7, 0.3])
    assert not near.contains(moved)
    assert not near.contains(begun)
    assert not near.contains(STICKY.lifted(2))


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ([[0.5, 0.6], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]]),
        ([[0.0, 0.0], [0.0, 0.0]], [[0.4, 0.4], [1.0, 1.0]]),
        ([[0.5, 0.0], [0.0, 0.0]], [[0.4, 1.0], [1.0, 1.0]]),
        ([[0.0], [0.0]], [[1.0], [1.0]]),
    ],
)
def test_a_box_without_chains_is_refused(low: list[list[float]], high: list[list[float]]) -> None:
    near = PlausibleChains.from_radius(STICKY, 0.1)
    with pytest.raises(InvalidParameter, match="transition"):
        replace(near, low=np.array(low), high=np.array(high))
    with pytest.raises(InvalidParameter, match="confidence"):
        replace(near, confidence=0.0)


def test_a_stored_box_is_the_same() -> None:
    near = PlausibleChains.from_radius(STICKY, 0.1, 0.9)
    again = from_bytes(to_bytes(near), PlausibleChains)
    assert to_bytes(again) == to_bytes(near)


def test_what_rows_say_besides_never_loses_a_chain() -> None:
    rng = np.random.default_rng(9)
    for _ in range(200):
        row = rng.dirichlet(np.ones(4))[None]
        low = np.maximum(row - rng.random((1, 4)) * 0.3, 0.0)
        high = np.minimum(row + rng.random((1, 4)) * 0.3, 1.0)
        lower, upper = tightened(low, high)
        assert np.all((lower <= row) & (row <= upper))
        assert np.all((lower >= low - 1e-15) & (upper <= high + 1e-15))
