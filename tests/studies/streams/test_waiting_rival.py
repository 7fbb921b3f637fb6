"""The rival of batches: what it may leak, what its receiver makes of it."""

import itertools

import numpy as np
import pytest

from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import hamming
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.studies.held_out import held_out
from sfumato.studies.streams.waiting_rival import best_waiting, waited

MOVES = np.array([[0.8, 0.2], [0.3, 0.7]])
CHAIN = MarkovChain.from_matrix(MOVES)  # stays at .6 and .4
LOSS = hamming(CHAIN.alphabet)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_batch_loses_what_all_paths_and_outputs_say(place: int) -> None:
    cap, paths = 0.2, np.array(list(itertools.product(range(2), repeat=3)))
    told = waited(CHAIN, cap, LOSS, 3, (place,), paths)
    assert told.charged == pytest.approx(cap, rel=1e-3)
    assert told.charged.max() <= cap
    start = np.array([0.6, 0.4])
    chance = start[paths[:, 0]] * MOVES[paths[:, 0], paths[:, 1]] * MOVES[paths[:, 1], paths[:, 2]]
    prior = np.array([chance[paths[:, place] == symbol].sum() for symbol in range(2)])
    truth = _response(prior, 3 * cap)[paths[:, place]]
    lost = np.zeros(len(paths))
    for output in range(2):
        weights = chance * truth[:, output]
        guess = [np.bincount(paths[:, moment], weights).argmax() for moment in range(3)]
        lost += truth[:, output] * (paths != guess).mean(axis=1)
    assert chance @ told.lost == pytest.approx(chance @ lost, rel=1e-3)


def _response(prior: Floats, leak: float) -> Floats:
    """Two answers, true with one chance: the largest whose posteriors stay within the leakage."""
    low, high = 0.5, 1.0
    for _ in range(50):
        true = (low + high) / 2
        rows = np.array([[true, 1 - true], [1 - true, true]])
        within = np.abs(np.log(rows / (prior @ rows))).max() <= leak
        low, high = (true, high) if within else (low, true)
    return np.array([[low, 1 - low], [1 - low, low]])


def test_every_value_told_in_batches_of_one_is_the_rival_value_by_value() -> None:
    streams = np.random.default_rng(1).integers(2, size=(40, 6))
    plan = Plan(CHAIN, PerStep(SIP(0.7)), LOSS, method=Method.CALIBRATED)
    found, at_once = best_waiting(CHAIN, 0.7, LOSS, 1, streams), held_out(plan, streams)
    assert found.lost == pytest.approx(at_once.received)
    assert found.charged == pytest.approx(at_once.charged)


def test_whichever_place_is_best_is_told() -> None:
    draw = np.random.default_rng(2)
    sticky = MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
    flips = draw.random((60, 12)) < 0.05
    streams = (draw.integers(2, size=(60, 1)) + flips.cumsum(axis=1)) % 2
    best = best_waiting(sticky, 0.5, LOSS, 3, streams)
    kinds = [(0,), (1,), (2,), (0, 1, 2)]
    losses = {each: waited(sticky, 0.5, LOSS, 3, each, streams).lost.mean() for each in kinds}
    assert best.lost.mean() == min(losses.values())
    assert losses[1,] < losses[0, 1, 2]
