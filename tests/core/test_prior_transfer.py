import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.channel import Channel
from sfumato.core.information_leakage import information_leakage
from sfumato.core.prior_transfer import transfer_bound, transfer_gap

SEEDS = st.integers(0, 2**32 - 1)


def channel_and_priors(seed: int, size: int, priors: int) -> tuple[Channel, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    channel = Channel.from_probabilities(rng.dirichlet(np.ones(3), size=size))
    return channel, list(rng.dirichlet(np.ones(size), size=priors) * 0.98 + 0.02 / size)


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_no_leakage_moves_by_more_than_the_gap(seed: int, size: int) -> None:
    channel, (prior, other) = channel_and_priors(seed, size, 2)
    moved = abs(
        information_leakage(channel, prior).epsilon - information_leakage(channel, other).epsilon
    )
    assert moved <= transfer_gap(prior, other) + 1e-12


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_a_family_has_the_gap_of_its_farthest_and_rarest(seed: int, size: int) -> None:
    channel, (true, *family) = channel_and_priors(seed, size, 4)
    gap = transfer_gap(true, *family)
    told = information_leakage(channel, true).epsilon
    for prior in family:
        assert abs(information_leakage(channel, prior).epsilon - told) <= gap + 1e-12


@settings(max_examples=32, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_no_leakage_under_another_prior_is_above_the_bound(seed: int, size: int) -> None:
    channel, (prior, other) = channel_and_priors(seed, size, 2)
    told = information_leakage(channel, prior).epsilon
    assert information_leakage(channel, other).epsilon <= transfer_bound(told, prior, other) + 1e-12


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0, 900.0])
def test_the_bound_is_the_leakage_itself_under_the_same_prior(epsilon: float) -> None:
    assert transfer_bound(epsilon, [0.3, 0.7], [0.3, 0.7]) == pytest.approx(epsilon, rel=1e-12)


def test_a_prior_far_away_costs_at_most_the_double() -> None:
    assert transfer_bound(0.5, [0.01, 0.99], [0.99, 0.01]) == pytest.approx(1.0)
