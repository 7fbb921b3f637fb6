"""Bets on blocks of outputs: fair under the truth whatever guides them, and better than pairs."""

from itertools import product

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models import block_bets
from sfumato.models.block_bets import BlockSums, block_sums, bounds_left
from sfumato.models.chain_bets import FixedOutputs, inverse_weights, plausible_chains

RESPONSE = np.array([[0.7, 0.3], [0.3, 0.7]])
STICKY = np.array([[0.9, 0.1], [0.2, 0.8]])


def shown_by_hand(outputs: list[int], stakes: list[Floats], length: int) -> list[Floats]:
    """A and B of each block of a stream, for moves from 0 to 0: blocks that share no output."""
    weights, found, place = inverse_weights(RESPONSE), [], 0
    assert weights is not None
    while place < len(outputs) - 1:
        moves = range(place, min(place + length, len(outputs) - 1))
        put = [stakes[at][0] * weights[outputs[at], 0] for at in moves]
        won = sum(p * weights[outputs[at + 1], 0] for p, at in zip(put, moves, strict=True))
        found.append(np.array([won, sum(put)]))
        place += length + 1
    return found


def stakes_by_hand(outputs: list[int], chain: Floats, first: Floats) -> list[Floats]:
    """Stakes from earlier outputs alone: the belief, weighed by how noisy weights are."""
    weights = inverse_weights(RESPONSE)
    assert weights is not None
    squares = RESPONSE @ weights**2
    own, others = np.diag(squares), squares.sum(axis=0) - np.diag(squares)
    belief, found = first.copy(), []
    for output in outputs:
        found.append(belief * own / (belief * own + (1 - belief) * others))
        after = belief * RESPONSE[:, output]
        belief = (after / after.sum()) @ chain
    return found


def fixed(*streams: list[int]) -> FixedOutputs:
    starts = np.append(0, np.cumsum([len(one) for one in streams]))
    return FixedOutputs(RESPONSE, starts, np.concatenate(streams).astype(np.int64))


def test_sums_are_those_of_blocks_that_share_no_output() -> None:
    rng = np.random.default_rng(1)
    streams = [rng.integers(0, 2, size).tolist() for size in (1, 5, 34, 70)]
    guide = sf.MarkovChain.from_matrix(STICKY, [0.4, 0.6])
    found = block_sums(fixed(*streams), guide)
    for kind, length in enumerate(block_bets.LENGTHS):
        due = np.zeros(5)
        for one in streams:
            stakes = stakes_by_hand(one, STICKY, np.array([0.4, 0.6]))
            for a, b in shown_by_hand(one, stakes, length):
                due += [a, b, a * a, a * b, b * b]
        assert found.sums[kind, 0, 0] == pytest.approx(due)


@pytest.mark.parametrize("guide", [None, sf.MarkovChain.from_matrix([[0.3, 0.7], [0.6, 0.4]])])
def test_no_capital_has_a_mean_above_one_under_the_truth(guide: sf.MarkovChain | None) -> None:
    """Every output of a stream of eight, with its exact probability, by a plain sum over values."""
    means = np.zeros((2, 2, 2, len(block_bets._LADDER)))
    total = 0.0
    for outputs in product(range(2), repeat=8):
        chance = np.array([0.35, 0.65]) * RESPONSE[:, outputs[0]]
        for output in outputs[1:]:
            chance = (chance @ STICKY) * RESPONSE[:, output]
        found = block_sums(fixed(list(outputs)), guide)
        weights = inverse_weights(RESPONSE)
        assert weights is not None
        most = np.abs(weights).max() * np.maximum(np.abs(weights), np.abs(weights - 1)).max()
        which, rates, costs, _ = block_bets._rates(found, 0.0, 0.0, float(most))
        total += chance.sum()
        for i, j, side in product(range(2), range(2), range(2)):
            a, b, aa, ab, bb = np.moveaxis(found.sums[which, i, j], -1, 0)
            v = STICKY[i, j]
            won = (1 - 2 * side) * rates * (a - v * b) - costs * (aa - 2 * v * ab + v * v * bb)
            means[i, j, side] += chance.sum() * np.exp(won)
    assert total == pytest.approx(1)
    assert means.max() <= 1 + 1e-9
    assert means.min() > 0.5  # they do bet


def sticky_outputs(streams: int, length: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values, found = rng.integers(0, 2, streams), np.empty((streams, length), dtype=np.int64)
    for moment in range(length):
        found[:, moment] = rng.random(streams) < RESPONSE[values, 1]
        values = (rng.random(streams) < STICKY[values, 1]).astype(np.int64)
    return found


def test_bounds_hold_the_truth_and_rule_out_others() -> None:
    outputs = fixed(*sticky_outputs(400, 60, 2).tolist())
    found = block_sums(outputs, None)
    low, high, first_low, first_high = bounds_left(found, RESPONSE, outputs.beginnings, 0.05, 0.0)
    assert np.all(low <= STICKY) and np.all(high >= STICKY)
    assert np.all(first_low <= 0.5) and np.all(first_high >= 0.5)
    assert low[0, 0] > 0.7 and high[1, 0] < 0.45


def test_blocks_tell_more_than_pairs_at_the_same_confidence() -> None:
    outputs = fixed(*sticky_outputs(12_000, 80, 3).tolist())
    guide = sf.MarkovChain.from_matrix(STICKY)
    low, high, *_ = bounds_left(
        block_sums(outputs, guide), RESPONSE, outputs.beginnings, 0.05, outputs.alike
    )
    pairs = plausible_chains(outputs, guide, guide=guide, confidence=0.95)
    assert (high - low).max() < 0.8 * pairs.widest


def test_periods_add_up_and_what_was_bet_on_before_is_only_believed() -> None:
    told = sticky_outputs(20, 40, 4)
    guide = sf.MarkovChain.from_matrix(STICKY)
    first = block_sums(fixed(*told[:, :16].tolist()), None)
    later = block_sums(fixed(*told.tolist()), guide, np.full(20, 16))
    whole = first + later
    assert whole.moves == first.moves + later.moves == 20 * (15 + 23)
    alone = block_sums(fixed(*told[:, 16:].tolist()), guide)
    assert alone.moves == later.moves and not np.allclose(alone.sums, later.sums)
    assert (BlockSums.none(2) + whole).sums == pytest.approx(whole.sums)


def test_streams_that_follow_no_chain_leave_none() -> None:
    outputs = fixed(*[(np.arange(120) % 2).tolist()] * 40)
    with pytest.raises(InvalidParameter, match="no such chain is left"):
        bounds_left(block_sums(outputs, None), RESPONSE, outputs.beginnings, 0.05, 0.0)
