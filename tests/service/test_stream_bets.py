"""Bets on streams that are followed: as the test of a whole release, and fair at every look."""

import itertools

import numpy as np

from sfumato.models.drift_bets import near_chains
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, value_scores
from sfumato.models.markov import MarkovChain
from sfumato.service.stream_bets import StreamBets, capital_of

STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], [0.3, 0.7])
CHANNEL = np.array([[0.7, 0.3], [0.4, 0.6]])


def followed(outputs: tuple[int, ...]) -> StreamBets:
    bets = StreamBets.against(STICKY, in_batches=False)
    assert bets is not None
    for output in outputs:
        bets = bets.passed(None if output < 0 else CHANNEL[:, output])
    return bets


def test_gains_are_those_of_whole_streams_in_blocks_of_moments() -> None:
    rng = np.random.default_rng(1)
    outputs = tuple(rng.integers(2, size=70).tolist())
    bets = followed(outputs)
    told = Emissions.of_rows([CHANNEL.T[list(outputs)]])
    model = value_scores(Guess(STICKY.initial, np.array(STICKY.transition())), told)
    for place, (name, chain) in enumerate(near_chains(STICKY)):
        gained = value_scores(chain, told) - model
        blocks = [gained[first : first + 32].sum() for first in (0, 32, 64)]
        assert bets.names[place] == name
        np.testing.assert_allclose([gain[place] for gain in bets.gains], blocks, atol=1e-12)


def test_the_mean_capital_at_a_look_is_one_whatever_order_streams_go_on_in() -> None:
    """All outputs of two streams of unequal length, weighed by their exact probabilities."""
    mean = 0.0
    for first, second in itertools.product(
        itertools.product(range(2), repeat=4), itertools.product(range(2), repeat=2)
    ):
        weight = 1.0
        for outputs in (first, second):
            belief = np.array(STICKY.initial)
            for moment, output in enumerate(outputs):
                belief = belief @ STICKY.transition() if moment else belief
                belief = belief * CHANNEL[:, output]
            weight *= belief.sum()
        made = capital_of([followed(first), followed((second[0], -1, second[1]))])
        assert made is not None
        # A silent moment between two outputs: their probability under a chain that moved twice.
        belief = STICKY.initial * CHANNEL[:, second[0]]
        silent = (belief @ STICKY.transition() @ STICKY.transition() * CHANNEL[:, second[1]]).sum()
        plain = (belief @ STICKY.transition() * CHANNEL[:, second[1]]).sum()
        mean += weight / plain * silent * np.exp(made.log_capital[-1])
    np.testing.assert_allclose(mean, 1.0, atol=1e-8)


def test_nobody_bets_on_batches_on_many_symbols_or_on_longer_memories() -> None:
    large = MarkovChain.from_matrix(np.full((65, 65), 1 / 65))
    assert StreamBets.against(large, in_batches=False) is None
    assert StreamBets.against(STICKY, in_batches=True) is None
    assert StreamBets.against(STICKY.lifted(2), in_batches=False) is None
    assert capital_of([]) is None
