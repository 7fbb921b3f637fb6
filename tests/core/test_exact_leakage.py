import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.information_leakage import (
    batch_leakage,
    information_leakage,
    instantaneous_leakage,
    sequence_leakage,
)
from sfumato.core.local_leakage import local_leakage
from tests.oracles.exact_leakage import (
    exact_information_leakage,
    exact_local_leakage,
    within,
    within_locally,
)
from tests.strategies import Floats, beliefs, channels_and_beliefs, positive_channels

SLACK = 1e-12

Measure = Callable[[Channel, Floats], float]


def amount(channel: Channel, belief: Floats) -> float:
    return information_leakage(channel, belief).epsilon


def is_a_tight_upper_bound(measure: Measure, channel: Channel, belief: Floats) -> bool:
    exact = exact_information_leakage(channel.weights, belief.tolist())
    return bool(exact <= measure(channel, belief) <= exact + SLACK)


@given(channels_and_beliefs())
def test_information_leakage_is_exact_and_rounded_up(pair: tuple[Channel, Floats]) -> None:
    assert is_a_tight_upper_bound(amount, *pair)


@given(channels_and_beliefs())
def test_information_leakage_passes_the_check_without_floats(
    pair: tuple[Channel, Floats],
) -> None:
    channel, belief = pair
    measured = amount(channel, belief)
    assert within(channel.weights, belief.tolist(), measured)
    assert measured <= SLACK or not within(channel.weights, belief.tolist(), measured - SLACK)


@given(positive_channels())
def test_local_leakage_is_exact_and_rounded_up(channel: Channel) -> None:
    exact = exact_local_leakage(channel.weights)
    measured = local_leakage(channel).epsilon
    assert exact <= measured <= exact + SLACK
    assert within_locally(channel.weights, measured)
    assert measured <= SLACK or not within_locally(channel.weights, measured - SLACK)


@given(channels_and_beliefs(), st.floats(-9e-10, 9e-10))
def test_a_belief_counts_by_its_shares(pair: tuple[Channel, Floats], off: float) -> None:
    channel, belief = pair
    assert is_a_tight_upper_bound(amount, channel, belief * (1 + off))


@given(channels_and_beliefs())
def test_leakage_under_a_model_never_exceeds_leakage_without(
    pair: tuple[Channel, Floats],
) -> None:
    channel, belief = pair
    assert amount(channel, belief) <= local_leakage(channel).epsilon + SLACK


PLANTED: dict[str, Measure] = {
    "belief in the wrong order": lambda channel, belief: amount(channel, belief[::-1]),
    "upper ratios alone": lambda channel, belief: float(np.log(channel.ratios(belief).max())),
    "lower ratios alone": lambda channel, belief: -float(np.log(channel.ratios(belief).min())),
    "an even belief": lambda channel, belief: amount(channel, np.full(3, 1 / 3)),
    "a mean over symbols": lambda channel, belief: float(
        belief @ np.abs(np.log(channel.ratios(belief))).max(axis=1)
    ),
    "rounded down": lambda channel, belief: amount(channel, belief) - 1e-14,
}


@pytest.mark.parametrize("measure", PLANTED.values(), ids=PLANTED.keys())
def test_the_oracle_catches_an_understated_leakage(
    measure: Measure, rng: np.random.Generator
) -> None:
    belief = np.array([0.9, 0.09, 0.01])
    caught = 0
    for _ in range(50):
        channel = Channel.from_probabilities(rng.dirichlet(np.ones(3), size=3))
        assert is_a_tight_upper_bound(amount, channel, belief)
        claimed = measure(channel, belief)
        too_low = claimed < exact_information_leakage(channel.weights, belief.tolist())
        assert too_low is not within(channel.weights, belief.tolist(), claimed)
        caught += too_low
    assert caught >= 5


@given(st.integers(2, 6), st.data())
def test_a_constant_channel_leaks_exactly_nothing(size: int, data: st.DataObject) -> None:
    constant = Channel.constant(size, data.draw(st.integers(0, size - 1)))
    row = data.draw(beliefs())
    equal_rows = Channel.from_probabilities(np.tile(row, (size, 1)))
    belief = data.draw(beliefs(size))
    for channel in (constant, equal_rows):
        assert information_leakage(channel, belief).epsilon == 0.0
        assert instantaneous_leakage(channel, belief).epsilon == 0.0
        assert local_leakage(channel).epsilon == 0.0


def test_an_output_that_rules_a_symbol_out_leaks_without_bound() -> None:
    channel = Channel.from_probabilities([[0.5, 0.5], [1.0, 0.0]])
    assert information_leakage(channel, [0.5, 0.5]).epsilon == math.inf
    assert local_leakage(channel).epsilon == math.inf


def test_one_unit_of_weight_is_enough_for_a_finite_leakage() -> None:
    channel = Channel([[2**62 - 1, 1], [1, 2**62 - 1]])
    belief = np.array([0.5, 0.5])
    assert is_a_tight_upper_bound(amount, channel, belief)
    assert local_leakage(channel).epsilon == pytest.approx(62 * math.log(2))


@given(channels_and_beliefs())
def test_the_leakage_of_a_moment_and_of_a_batch_are_the_same_measure(
    pair: tuple[Channel, Floats],
) -> None:
    channel, belief = pair
    assert instantaneous_leakage(channel, belief).epsilon == amount(channel, belief)
    assert batch_leakage(channel, belief) == instantaneous_leakage(channel, belief)


@given(st.lists(channels_and_beliefs(), max_size=4))
def test_the_leakage_of_a_sequence_is_at_least_the_exact_sum(
    steps: list[tuple[Channel, Floats]],
) -> None:
    total = sequence_leakage([c for c, _ in steps], [b for _, b in steps]).epsilon
    exact = sum(exact_information_leakage(c.weights, b.tolist()) for c, b in steps)
    assert exact <= total <= exact + SLACK


def test_refuses_a_belief_that_is_missing_or_rules_a_symbol_out() -> None:
    channel = Channel.constant(2, 0)
    with pytest.raises(InvalidParameter, match="beliefs must be one per channel, 1; got 0"):
        sequence_leakage([channel], [])
    with pytest.raises(InvalidParameter, match=r"belief\[1\] must be at least 1e-200"):
        information_leakage(channel, [1.0, 0.0])
    with pytest.raises(InvalidParameter, match="belief must have 2 entries; got 3"):
        information_leakage(channel, [0.5, 0.25, 0.25])
