"""Rivals with fixed channels: those of the methods, with the leakage of brute force."""

import itertools
import math

import numpy as np
import pytest

from sfumato.core.local_leakage import local_leakage
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.models.markov import MarkovChain
from sfumato.series.rivals.tops import Tops
from sfumato.studies.sip.fixed_channels import (
    FixedChannel,
    best_threshold,
    follow,
    response,
    temporal_response,
    topl,
    tops,
)
from sfumato.temporal.over_time import chain_leakage

STICKY = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
ABSOLUTE = np.abs(np.arange(6)[:, None] - np.arange(6.0))


def worst_gain(chain: MarkovChain, channel: np.ndarray, steps: int) -> float:
    """The largest information gain about a whole stream, over all streams and outputs."""
    first, moves = chain.first().marginal, chain.transition()
    paths = list(itertools.product(range(chain.size), repeat=steps))
    prior = np.array(
        [first[p[0]] * math.prod(moves[a, b] for a, b in itertools.pairwise(p)) for p in paths]
    )
    gains = []
    for told in itertools.product(range(channel.shape[1]), repeat=steps):
        like = np.array(
            [math.prod(channel[x, y] for x, y in zip(p, told, strict=True)) for p in paths]
        )
        gains.append(np.abs(np.log(like / (prior @ like))).max())
    return float(max(gains))


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_stream_tells_more_than_its_steps_were_charged(epsilon: float) -> None:
    rival = response(2, epsilon)
    charged = max(
        float(follow(STICKY, rival, 1 - np.eye(2), np.array([path]), seed).charged[0]) * 4
        for path in itertools.product((0, 1), repeat=4)
        for seed in range(12)
    )
    gain = worst_gain(STICKY, rival.channel.probabilities, 4)
    # Twelve draws of each path pass by the dearest outputs, so the charge seen is a true bound.
    assert 0.8 * charged < gain <= charged + 1e-9 <= 4 * epsilon + 1e-8


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("threshold", [1, 3, 5])
def test_no_rival_passes_its_model_free_promise(epsilon: float, threshold: int) -> None:
    for rule in (tops, topl):
        rival = rule(6, epsilon, threshold)
        assert local_leakage(rival.channel).epsilon <= epsilon * (1 + 1e-9)
        assert rival.shown.max() <= 5
    assert local_leakage(response(6, epsilon).channel).epsilon <= epsilon * (1 + 1e-9)


def test_values_beyond_the_threshold_look_alike() -> None:
    rows = topl(6, 1.0, 3).channel.probabilities
    assert np.array_equal(rows[3], rows[5])
    assert not np.array_equal(rows[2], rows[3])


def test_the_channel_of_tops_is_what_tops_draws() -> None:
    # After its warm-up with a threshold at the ceiling ToPS adds Laplace noise to the value.
    method = Tops.at(ceiling=1.0, epsilon=1.0, warmup=1, candidates=1)
    told = method.release(np.zeros(4_001), seeded(4), Purpose.SIMULATION)[1:]
    rival = tops(2, 1.0, 1)
    ones = float((rival.channel.probabilities[0] * (rival.shown == 1)).sum())
    assert (told >= 0.5).mean() == pytest.approx(ones, abs=0.03)
    assert ones == pytest.approx(0.5 * math.exp(-0.5), abs=1e-9)


def test_outputs_that_tell_and_show_the_same_are_one() -> None:
    rows = np.array([[0.2, 0.4, 0.2, 0.2], [0.1, 0.2, 0.35, 0.35]])
    merged = FixedChannel.of(rows, np.array([0, 0, 1, 0]))
    assert sorted(merged.channel.probabilities[0]) == pytest.approx([0.2, 0.2, 0.6])
    loss = 1 - np.eye(2)
    assert merged.expected(loss) == pytest.approx([0.2, 0.1 + 0.2 + 0.35])


def test_the_threshold_in_hindsight_is_the_best_one() -> None:
    streams = np.random.default_rng(2).choice(6, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05], size=(20, 30))
    best = best_threshold(topl, 1.0, ABSOLUTE, streams)
    means = [topl(6, 1.0, cut).expected(ABSOLUTE)[streams].mean() for cut in range(1, 6)]
    assert best.expected(ABSOLUTE)[streams].mean() == min(means)


def test_temporal_budgets_keep_what_they_promise_of_one_value() -> None:
    rival = temporal_response(STICKY, 1.0)
    each = local_leakage(rival.channel).epsilon
    assert 0 < each < 0.5
    told = chain_leakage(STICKY, [each] * 12).event.alpha
    assert 0.8 < told <= 1.0 + 1e-6


def test_the_receiver_loses_less_on_streams_that_move_as_he_believes() -> None:
    streams = np.array([STICKY.sample(40, seeded(n)) for n in range(40)])
    lost = follow(STICKY, response(2, 0.5), 1 - np.eye(2), streams)
    assert lost.received.mean() < lost.shown.mean() - 0.05
    assert np.all(lost.charged <= 0.5)
