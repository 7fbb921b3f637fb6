import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import LIP, Channel
from sfumato.column.leakage_transfer import estimated, estimation_gap, transferred
from sfumato.column.notion_relations import ldp_from_lip, ldp_from_lip_closed_form
from sfumato.core.errors import InvalidParameter
from sfumato.core.information_leakage import information_leakage
from sfumato.core.prior_transfer import total_variation, transfer_gap
from sfumato.solver.optimal_channel import optimal
from tests.core.test_prior_transfer import SEEDS, channel_and_priors


@settings(max_examples=16, deadline=None)
@given(seed=SEEDS, size=st.integers(2, 5))
def test_a_transferred_guarantee_holds(seed: int, size: int) -> None:
    channel, (prior, other) = channel_and_priors(seed, size, 2)
    told = transferred(LIP(information_leakage(channel, prior).epsilon), prior, other)
    assert information_leakage(channel, other).epsilon <= told.epsilon + 1e-12


def radius_of_the_gap(epsilon: float, prior: list[float], least: float) -> float:
    """[LIP, Cor. 6] with the logarithm that it lacks: up to here adding the gap is better."""
    return least * math.expm1(ldp_from_lip(LIP(epsilon), prior).epsilon - epsilon)


@settings(max_examples=16)
@given(epsilon=st.floats(0.05, 4), least=st.floats(0.05, 0.5))
def test_within_the_radius_the_gap_is_the_better_bound(epsilon: float, least: float) -> None:
    prior = [least, 1 - least]
    radius = radius_of_the_gap(epsilon, prior, least)
    free = transferred(LIP(epsilon), prior, [1 - 1e-9, 1e-9]).epsilon
    assert epsilon + math.log1p(radius / least) == pytest.approx(free, rel=1e-9)


def test_the_published_radius_lacks_a_logarithm() -> None:
    epsilon, least = 1.0, 0.5
    bound = (math.exp(epsilon) - 1 + least) / least
    published = least * math.expm1(min(epsilon, bound - epsilon))
    gap = epsilon + math.log1p(published / least)
    free = ldp_from_lip_closed_form(LIP(epsilon), [0.5, 0.5]).epsilon
    assert gap > 1.3 * free
    assert radius_of_the_gap(epsilon, [0.5, 0.5], least) < published / 2


@pytest.mark.parametrize("samples", [200, 5_000])
def test_an_estimated_prior_is_as_good_as_stated(samples: int, rng: np.random.Generator) -> None:
    prior, failure = np.array([0.3, 0.3, 0.4]), 0.05
    channel = Channel.from_probabilities([[0.6, 0.4], [0.3, 0.7], [0.5, 0.5]])
    told, failed, runs = information_leakage(channel, prior).epsilon, 0, 2_000
    for counts in rng.multinomial(samples, prior, size=runs):
        estimate = counts / samples
        gap = estimation_gap(samples, 3, float(min(prior.min(), estimate.min())), failure)
        failed += abs(information_leakage(channel, estimate).epsilon - told) > gap
    assert failed <= failure * runs


def test_a_gap_that_is_too_small_would_be_noticed(rng: np.random.Generator) -> None:
    prior, samples = np.array([0.3, 0.7]), 200
    noisy = Channel.from_probabilities([[0.9, 0.1], [0.1, 0.9]])
    told = information_leakage(noisy, prior).epsilon
    moved = [
        abs(information_leakage(noisy, counts / samples).epsilon - told)
        for counts in rng.multinomial(samples, prior, size=500)
    ]
    gap = estimation_gap(samples, 2, 0.2, 0.05)
    assert np.mean(np.array(moved) > gap / 10) > 0.05


def test_equal_priors_have_no_gap_and_nonsense_is_refused() -> None:
    assert transfer_gap([0.5, 0.5], [0.5, 0.5]) == 0.0
    assert total_variation([1.0, 0.0], [0.0, 1.0]) == 1.0
    with pytest.raises(InvalidParameter):
        transfer_gap([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(InvalidParameter):
        estimation_gap(0, 2, 0.3, 0.1)


@pytest.mark.parametrize("samples", [50, 400, 5000])
def test_an_estimate_alone_bounds_the_leakage_under_the_truth(
    samples: int, rng: np.random.Generator
) -> None:
    prior, failure, trials = np.array([0.5, 0.3, 0.2]), 0.1, 300
    failed = 0
    for _ in range(trials):
        estimate = rng.multinomial(samples, prior) / samples
        channel = optimal(estimate, 1 - np.eye(3), 1.0).channel
        told = information_leakage(channel, estimate)
        true = information_leakage(channel, prior).epsilon
        bound = estimated(told, estimate, samples, failure).epsilon
        assert bound <= ldp_from_lip(told, estimate).epsilon
        failed += true > bound
    assert failed <= failure * trials


def test_few_samples_leave_the_model_free_leakage() -> None:
    told, estimate = LIP(1.0), [0.9, 0.1]
    assert estimated(told, estimate, 20, 0.01) == LIP(ldp_from_lip(told, estimate).epsilon)
    assert estimated(told, estimate, 10**8, 0.01).epsilon == pytest.approx(1.0, abs=2e-3)
