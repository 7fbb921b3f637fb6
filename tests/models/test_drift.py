"""Bets against a model: a right one is hardly ever accused, a wrong one is, and cheats are seen."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.models import drift_learner
from sfumato.models.belief_sets import (
    carried,
    first_beliefs,
    informed,
    mean_ranges,
    most_scores,
)
from sfumato.models.drift_bets import Bettor, bettors
from sfumato.models.drift_capital import drift_capital
from sfumato.models.drift_learner import DriftLearner, distance_since
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, value_scores
from sfumato.models.markov import MarkovChain
from sfumato.models.output_blocks import OutputBlock, OutputBlocks
from sfumato.models.plausible import PlausibleChains

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SEEDS = st.integers(0, 2**32 - 1)
STICKY = np.array([[0.9, 0.1], [0.1, 0.9]])
LOOSE = np.array([[0.4, 0.6], [0.6, 0.4]])
CHANNEL = np.array([[0.8, 0.2], [0.2, 0.8]])


def outputs(
    rng: np.random.Generator, moves: Floats, channel: Floats, streams: int, length: int, later: int
) -> Ints:
    """Outputs of streams that follow one chain, and from a moment on another; a row each."""
    size = len(channel)
    value = rng.integers(size, size=streams)
    found = np.empty((streams, length), dtype=np.int64)
    for moment in range(length):
        rows = moves if moment < later else LOOSE
        if moment:
            value = (rng.random((streams, 1)) > np.cumsum(rows, axis=1)[value]).sum(axis=1)
        found[:, moment] = (rng.random((streams, 1)) > np.cumsum(channel, axis=1)[value]).sum(
            axis=1
        )
    return np.minimum(found, size - 1)


def blocks_of(left: Ints, channel: Floats = CHANNEL, size: int = 50) -> OutputBlocks:
    told = Emissions.of_rows([channel.T[row] for row in left])
    return OutputBlocks.of(told, np.tile(np.arange(left.shape[1]), len(left)), size)


def under(moves: Floats, blocks: OutputBlocks) -> Floats:
    initial = np.full(len(moves), 1 / len(moves))
    return blocks.summed(value_scores(Guess(initial, moves), blocks.emissions))


def largest(blocks: OutputBlocks, bets: tuple[Bettor, ...]) -> float:
    scores = under(STICKY, blocks)
    return float(drift_capital(scores, bets, 0.01, np.zeros_like(scores)).log_capital.max())


# What a capital is -------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None)
@given(seed=SEEDS)
def test_the_mean_capital_over_all_outputs_is_one_at_most_and_no_less(seed: int) -> None:
    """Every sequence of outputs, weighed by its exact probability: the law of a martingale."""
    rng = np.random.default_rng(seed)
    rows, channel = rng.dirichlet([2, 2], size=2), rng.dirichlet([1, 1], size=2)
    model = MarkovChain.from_matrix(rows)
    mean, length = 0.0, 5
    for left in itertools.product(range(2), repeat=length):
        blocks = blocks_of(np.array([left]), channel, 2)
        weights = np.full(2, 0.5)
        for moment, output in enumerate(left):
            weights = (weights if not moment else weights @ rows) * channel[:, output]
        scores = blocks.summed(
            value_scores(Guess(np.full(2, 0.5), np.array(model.transition())), blocks.emissions)
        )
        found = drift_capital(scores, bettors(blocks, model), 0.01, np.zeros_like(scores))
        mean += weights.sum() * np.exp(found.log_capital[-1])
    assert mean == pytest.approx(1.0, abs=1e-9)


def test_a_capital_is_the_mixture_of_all_starts_and_all_bettors() -> None:
    rng = np.random.default_rng(3)
    gains, shares = rng.normal(size=(3, 7)), [0.5, 0.3, 0.2]
    bets = [Bettor("", share, row) for share, row in zip(shares, gains, strict=True)]
    found = drift_capital(np.zeros(7), bets, 0.01, np.zeros(7))
    starts = [1 / np.log2(c + 2) - 1 / np.log2(c + 3) for c in range(7)]
    for block in range(7):
        total = 1 - sum(starts[: block + 1])
        for start, (share, row) in itertools.product(
            range(block + 1), zip(shares, gains, strict=True)
        ):
            total += starts[start] * share * np.exp(row[start : block + 1].sum())
        assert found.log_capital[block] == pytest.approx(np.log(total))


def test_shares_of_bettors_and_of_starts_are_no_more_than_there_is() -> None:
    blocks = blocks_of(np.zeros((2, 20), dtype=np.int64))
    bets = bettors(blocks, MarkovChain.from_matrix(STICKY))
    assert sum(one.share for one in bets) == pytest.approx(1.0)
    with pytest.raises(InvalidParameter, match="alpha"):
        drift_capital(np.zeros(1), bets[:1], 1.5, np.zeros(1))


# Three sides: right, changed, cheated ------------------------------------------------------------


def test_a_right_model_is_hardly_ever_accused() -> None:
    rng, model = np.random.default_rng(11), MarkovChain.from_matrix(STICKY)
    alarms = 0
    for _ in range(120):
        blocks = blocks_of(outputs(rng, STICKY, CHANNEL, 10, 60, 60))
        alarms += largest(blocks, bettors(blocks, model)) >= np.log(10)
    # 12 are allowed at alpha .1; binomial noise leaves at most 21 in 99 of 100 runs.
    assert alarms <= 21


def test_a_change_is_found_soon_after_it_and_not_before() -> None:
    rng, model = np.random.default_rng(12), MarkovChain.from_matrix(STICKY)
    for _ in range(5):
        blocks = blocks_of(outputs(rng, STICKY, CHANNEL, 20, 150, 75))
        scores = under(STICKY, blocks)
        found = drift_capital(scores, bettors(blocks, model), 0.01, np.zeros_like(scores))
        assert found.alarm is not None and 30 <= found.alarm < 60
        assert abs(found.since - 30) <= 12
        assert 0.2 < distance_since(blocks, model, found.since) < 0.8


def _peeking(learn: Callable[[DriftLearner, OutputBlock], float]) -> Callable[..., float]:
    def bet(self: DriftLearner, block: OutputBlock) -> float:
        learn(self, block)
        return learn(self, block)

    return bet


def test_a_bettor_who_has_seen_the_outcome_is_rich_under_a_right_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, model = np.random.default_rng(13), MarkovChain.from_matrix(STICKY)
    monkeypatch.setattr(DriftLearner, "bet", _peeking(DriftLearner.bet))
    alarms = 0
    for _ in range(20):
        blocks = blocks_of(outputs(rng, STICKY, CHANNEL, 10, 60, 60), size=20)
        alarms += largest(blocks, bettors(blocks, model)) >= np.log(10)
    assert alarms > 10


def test_a_learner_says_nothing_of_a_block_that_the_block_decides() -> None:
    """Bets on a block are probabilities: over all that may leave in it they sum to one."""
    rng, model = np.random.default_rng(14), MarkovChain.from_matrix(STICKY)
    begun = outputs(rng, LOOSE, CHANNEL, 1, 30, 30)
    totals = np.zeros(9)
    for last in itertools.product(range(2), repeat=3):
        left = np.concatenate([begun, np.array([last])], axis=1)
        bets = bettors(blocks_of(left, size=30), model)
        totals += np.exp([one.scores[-1] for one in bets])
    np.testing.assert_allclose(totals, 1.0, atol=1e-9)


# Blocks ------------------------------------------------------------------------------------------


def test_what_left_later_changes_nothing_of_what_was_counted_before() -> None:
    rng, model = np.random.default_rng(15), MarkovChain.from_matrix(STICKY)
    left = outputs(rng, STICKY, CHANNEL, 3, 40, 20)
    whole, part = blocks_of(left, size=30), blocks_of(left[:, :20], size=30)
    for now, before in zip(bettors(whole, model), bettors(part, model), strict=True):
        np.testing.assert_array_equal(now.scores[:2], before.scores)


def test_learners_go_on_over_blocks_as_over_whole_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """A learner that cannot be moved scores blocks as the model does, batches and order 2 too."""
    monkeypatch.setattr(drift_learner, "_PRIOR", 1e15)
    rng = np.random.default_rng(16)
    rows = rng.dirichlet([2, 2], size=4)
    model = MarkovChain.from_matrix(rows, rng.dirichlet(np.ones(4)).reshape(2, 2))
    begins = np.array([-1, 0, -1, -1, 8, -1, -1, 12])
    reaches = np.array([1, 2, 1, 1, 1, 1, 1, 3])
    told = Emissions(2, np.array([0, 5, 8]), begins, reaches, rng.random(20))
    blocks = OutputBlocks.of(told, np.array([0, 3, 4, 6, 8, 1, 2, 7]), 3)
    guess = Guess(model.initial.ravel(), np.array(model.transition()))
    learner = DriftLearner(model, blocks, 1.0)
    said = [learner.bet(block) for block in blocks.each()]
    np.testing.assert_allclose(said, blocks.summed(value_scores(guess, told)), atol=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 4), radius=st.floats(0.0, 0.3))
def test_no_chain_of_a_set_makes_outputs_more_probable_than_the_bound(
    seed: int, size: int, radius: float
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(size), size=size)
    chains = PlausibleChains.from_radius(MarkovChain.from_matrix(rows), radius)
    told = Emissions.of_rows([rng.random((12, size)), rng.random((3, size))])
    bound, initial = most_scores(told, chains), np.asarray(chains.estimate.initial)
    for _ in range(5):
        moved = rows.copy()
        for row in moved:
            # What one probability gains another loses, as far as both may go.
            up, down = rng.permutation(size)[:2]
            far = min(radius, 1 - row[up], row[down]) * rng.random()
            row[up], row[down] = row[up] + far, row[down] - far
        assert np.all(value_scores(Guess(initial, moved), told) <= bound + 1e-12)


def test_bounds_of_many_streams_are_those_of_one_box_after_another() -> None:
    rng = np.random.default_rng(17)
    rows = rng.dirichlet(np.ones(3), size=3)
    chains = PlausibleChains.from_radius(MarkovChain.from_matrix(rows), 0.1)
    likelihoods = rng.random((9, 3))
    told = Emissions.of_rows([likelihoods, likelihoods[:4]])
    beliefs, expected = first_beliefs(chains), []
    for moment, likelihood in enumerate(likelihoods):
        beliefs = carried(beliefs, chains) if moment else beliefs
        expected.append(np.log(mean_ranges(beliefs, likelihood[:, None])[1][0]))
        beliefs = informed(beliefs, likelihood)
    found = most_scores(told, chains)
    np.testing.assert_allclose(found, [*expected, *expected[:4]], atol=1e-13)
    with pytest.raises(InvalidParameter, match="single values"):
        wide = Emissions(3, np.array([0, 1]), np.array([0]), np.array([2]), np.ones(9))
        most_scores(wide, chains)
