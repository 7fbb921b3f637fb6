"""What is learnt is as exact as the Fisher information of the outputs allows."""

import math

import numpy as np
import pytest

from sfumato.core.arrays import Floats
from sfumato.models.emissions import Emissions
from sfumato.models.learning import learn_chain
from sfumato.models.markov import MarkovChain
from tests.oracles import hidden_sequences

STAYS, LENGTH, FLIP = (0.85, 0.7), 7, 0.15
CHANNEL = [[1 - FLIP, FLIP], [FLIP, 1 - FLIP]]


def probabilities(point: Floats) -> Floats:
    """Of all sequences of outputs, at a point: how the bit stays, and how it begins."""
    first, second, begun = point.tolist()
    rows = [[first, 1 - first], [1 - second, second]]
    found = hidden_sequences.output_probabilities([begun, 1 - begun], rows, CHANNEL, LENGTH)
    return np.array(list(found.values()))


def fisher_information(point: Floats) -> Floats:
    """That of the outputs of one stream, by differences of all their probabilities."""
    slopes = [
        (probabilities(point + step) - probabilities(point - step)) / 2e-5
        for step in 1e-5 * np.eye(3)
    ]
    base = probabilities(point)
    return np.array([[(one * other / base).sum() for other in slopes] for one in slopes])


def spread(streams: int, runs: int, seed: int) -> Floats:
    """Mean square errors of how the bit stays, over many populations."""
    rng, point = np.random.default_rng(seed), np.array([*STAYS, 0.6])
    chances, errors = probabilities(point), []
    sequences = [list(map(int, np.binary_repr(place, LENGTH))) for place in range(2**LENGTH)]
    told = [np.array(CHANNEL)[:, seen].T for seen in sequences]
    alphabet = MarkovChain.from_matrix(CHANNEL).alphabet
    for _ in range(runs):
        drawn = rng.choice(chances.size, size=streams, p=chances)
        emissions = Emissions.of_rows([told[place] for place in drawn])
        moves = learn_chain(emissions, alphabet, smoothing=0.0).guess.moves
        errors.append(np.diagonal(moves) - STAYS)
    return np.asarray((np.array(errors) ** 2).mean(axis=0))


@pytest.mark.parametrize("streams", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_errors_shrink_as_the_fisher_information_says(streams: int) -> None:
    runs = 100
    least = np.diagonal(np.linalg.inv(fisher_information(np.array([*STAYS, 0.6]))))[:2]
    off = 4 * math.sqrt(2 / runs)
    seen = spread(streams, runs, streams) * streams
    assert np.all(np.abs(seen / least - 1) < off)
    # The same test notices information that is off by more than that.
    assert np.any(np.abs(seen / (3 * least) - 1) > off)
