from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorList
from sfumato.solver.bounded_prior_channel import bounded_leakage


def random_channel(rng: np.random.Generator, size: int, outputs: int) -> Channel:
    return Channel.from_probabilities(rng.dirichlet(np.ones(outputs), size=size))


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 5), outputs=st.integers(2, 5))
def test_the_leakage_of_a_list_is_that_of_its_worst_prior(
    seed: int, size: int, outputs: int
) -> None:
    rng = np.random.default_rng(seed)
    channel, priors = random_channel(rng, size, outputs), rng.dirichlet(np.ones(size), size=3)
    worst = max(information_leakage(channel, prior).epsilon for prior in priors)
    assert bounded_leakage(channel, PriorList(priors)).epsilon == pytest.approx(worst, rel=1e-9)


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 4))
def test_it_is_never_below_the_exact_leakage_at_a_corner(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    channel = random_channel(rng, size, 3)
    priors = rng.dirichlet(np.ones(size), size=2)
    told = bounded_leakage(channel, PriorList(priors)).epsilon
    kept = PriorList(priors).priors
    for prior in kept:
        parts = [Fraction(float(p)) for p in prior]
        for column in channel.weights.T.tolist():
            mean = sum(p * w for p, w in zip(parts, column, strict=True)) / sum(parts)
            for weight in column:
                ratio = Fraction(weight) / mean
                with mpmath.workdps(50):
                    exact = abs(mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator))
                    assert exact <= told


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 5))
def test_over_all_priors_it_is_the_model_free_leakage(seed: int, size: int) -> None:
    channel = random_channel(np.random.default_rng(seed), size, 3)
    free = local_leakage(channel).epsilon
    everything = (
        PriorBox(np.zeros(size), np.ones(size)),
        PriorList(np.eye(size)),
        PriorBall(np.full(size, 1 / size), 1.0),
    )
    for priors in everything:
        assert bounded_leakage(channel, priors).epsilon == pytest.approx(free, rel=1e-9)


@settings(max_examples=16, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), radius=st.floats(0, 0.5))
def test_no_prior_of_a_ball_leaks_more(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    channel, centre = random_channel(rng, 4, 3), rng.dirichlet(np.ones(4))
    told = bounded_leakage(channel, PriorBall(centre, radius)).epsilon
    for other in rng.dirichlet(np.ones(4), size=5):
        distance = 0.5 * np.abs(other - centre).sum()
        prior = centre + min(1.0, radius / distance) * (other - centre)
        assert information_leakage(channel, prior).epsilon <= told + 1e-9


def test_a_constant_leaks_nothing_and_another_size_is_refused() -> None:
    assert bounded_leakage(Channel.constant(2, 0), PriorBall([0.5, 0.5], 0.2)).epsilon == 0.0
    with pytest.raises(InvalidParameter, match="priors must be about 2 symbols"):
        bounded_leakage(Channel.constant(2, 0), PriorBall([0.5, 0.25, 0.25], 0.2))
