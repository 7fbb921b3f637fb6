"""Bets on the ends of a set: what they make on average, over every sequence of outputs."""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from sfumato.core.arrays import Floats, Ints
from sfumato.models.chain_bets import FixedOutputs
from sfumato.models.markov import MarkovChain
from sfumato.models.plausible import PlausibleChains
from sfumato.models.set_bets import left_set, set_gains

CHANNEL = np.array([[0.8, 0.2], [0.3, 0.7]])
MIDDLE = MarkovChain.from_matrix([[0.8, 0.2], [0.3, 0.7]], [0.6, 0.4])
NEAR = PlausibleChains.from_radius(MIDDLE, 0.1)
LENGTH = 4


def chain(stay: float, other: float, first: float = 0.6) -> MarkovChain:
    return MarkovChain.from_matrix([[stay, 1 - stay], [1 - other, other]], [first, 1 - first])


def sequences(truth: MarkovChain, channel: Floats, length: int) -> Iterator[tuple[Ints, float]]:
    """Every sequence of outputs of a stream, and how probable it is: sums over all values."""
    rows, first = truth.transition(), truth.initial.ravel()
    for outputs in itertools.product(range(2), repeat=length):
        forward = first * channel[:, outputs[0]]
        for output in outputs[1:]:
            forward = (forward @ rows) * channel[:, output]
        yield np.array(outputs), float(forward.sum())


def means(
    truth: MarkovChain, told: Floats = CHANNEL, used: Floats = CHANNEL, alike: float = 1e-12
) -> Floats:
    """What each bettor has on average after a block of one stream: a row a bet, a column a rate."""
    total = np.zeros((20, 6))
    for outputs, weight in sequences(truth, used, LENGTH):
        left = FixedOutputs(told, np.array([0, LENGTH]), outputs, alike=alike)
        total += weight * np.exp(set_gains(left, NEAR))
    return total


def bets(i: int, j: int, parity: int) -> tuple[int, int]:
    """The bets that a move is oftener, and more seldom, than the set says."""
    place = 4 * (2 * i + j) + 2 * parity
    return place, place + 1


def test_nobody_gains_by_a_chain_of_the_set() -> None:
    ends = [(0.9, 0.8, 0.7), (0.9, 0.6, 0.5), (0.7, 0.8, 0.7), (0.7, 0.6, 0.5), (0.8, 0.7, 0.6)]
    for stay, other, first in ends:
        assert np.all(means(chain(stay, other, first)) <= 1 + 1e-9)


@pytest.mark.parametrize("parity", [0, 1])
def test_a_bet_is_fair_at_its_own_end_wins_beyond_it_and_loses_inside(parity: int) -> None:
    """Three sides: the end that is bet on is neither too near nor too far."""
    oftener, seldom = bets(0, 0, parity)
    for bet, edge, beyond, inside in (
        (oftener, 0.9, 0.97, 0.8),
        (seldom, 0.7, 0.5, 0.8),
    ):
        fair, wins, loses = (means(chain(stay, 0.7))[bet] for stay in (edge, beyond, inside))
        np.testing.assert_allclose(fair, 1.0, atol=1e-9)
        assert np.all(wins > 1 + 1e-5) and np.all(loses < 1 - 1e-5)


def test_how_streams_begin_is_bet_on_at_its_ends_and_not_where_they_go_on() -> None:
    oftener = means(chain(0.8, 0.7, 0.7))[16]
    np.testing.assert_allclose(oftener, 1.0, atol=1e-9)
    assert np.all(means(chain(0.8, 0.7, 0.9))[16] > 1 + 1e-5)
    going_on = FixedOutputs(
        CHANNEL, np.array([0, 3, 6]), np.array([0, 0, 0, 0, 1, 0]), np.array([False, False])
    )
    np.testing.assert_allclose(set_gains(going_on, NEAR)[16:], 0.0, atol=1e-9)
    begun = FixedOutputs(CHANNEL, going_on.starts, going_on.columns)
    assert np.abs(set_gains(begun, NEAR)[16:]).min() > 1e-3


def test_all_capital_together_is_one_at_most_over_blocks_and_all_of_it_is_shared_out() -> None:
    """Pairs of outputs of two blocks count in neither: half of one was seen already."""

    def mean(truth: MarkovChain) -> float:
        total = 0.0
        for outputs, weight in sequences(truth, CHANNEL, 6):
            parts = [
                FixedOutputs(CHANNEL, np.array([0, 3]), outputs[:3]),
                FixedOutputs(CHANNEL, np.array([0, 3]), outputs[3:], np.array([False])),
            ]
            found = left_set([set_gains(part, NEAR) for part in parts], "ab", 0.01)
            total += weight * float(np.exp(found.log_capital[-1]))
        return total

    for stay, other in ((0.9, 0.8), (0.7, 0.6), (0.8, 0.7)):
        assert 0.9 < mean(chain(stay, other)) <= 1 + 1e-9
    idle = left_set([np.zeros((20, 6))] * 3, "ab", 0.01)
    np.testing.assert_allclose(idle.log_capital, 0.0, atol=1e-9)  # all shares are one capital


def test_a_channel_that_is_a_little_off_makes_nobody_rich_where_it_is_said_to_be() -> None:
    """What every probability may be off is paid for; who does not say so gains by it."""
    off, edge = 1e-3, chain(0.9, 0.6, 0.7)
    used = CHANNEL + off * np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert np.all(means(edge, used=used, alike=off) <= 1 + 1e-12)
    assert means(edge, used=used).max() > 1 + 1e-6
