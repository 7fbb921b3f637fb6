import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato import Alphabet, Prior, seeded
from sfumato.core.errors import InvalidParameter
from sfumato.stream import Belief

ALPHA = 1e-6  # false alarm rate of a statistical test
SAMPLES = 20_000

distributions = (
    st.lists(st.integers(0, 50), min_size=1, max_size=6)
    .filter(any)
    .map(lambda weights: np.array(weights) / sum(weights))
)


@given(distributions)
def test_every_moment_has_the_same_belief(probabilities: NDArray[np.float64]) -> None:
    prior = Prior(probabilities)
    told = prior.first().update(np.linspace(0.1, 0.9, probabilities.size))
    assert np.array_equal(prior.first().marginal, probabilities)
    assert np.array_equal(prior.following(told).marginal, probabilities)
    assert prior.following(told).drift == 0.0


@given(distributions)
def test_support_is_full_when_no_value_is_impossible(probabilities: NDArray[np.float64]) -> None:
    assert Prior(probabilities).full_support == all(p > 0 for p in probabilities)


def test_equal_priors_have_equal_fingerprints() -> None:
    prior = Prior([0.7, 0.3], Alphabet("ab"))
    assert prior.fingerprint == Prior([0.7, 0.3], Alphabet("ab")).fingerprint
    assert prior.fingerprint != Prior([0.3, 0.7], Alphabet("ab")).fingerprint
    assert prior.fingerprint != Prior([0.7, 0.3], Alphabet("ba")).fingerprint
    assert prior.fingerprint != Prior([0.7, 0.3]).fingerprint


def test_symbols_are_numbered_unless_named() -> None:
    assert Prior([0.2, 0.3, 0.5]).alphabet.labels == (0, 1, 2)
    assert Prior([0.5, 0.5], Alphabet("ab")).alphabet.labels == ("a", "b")


def test_nobody_can_write_to_a_prior() -> None:
    given = np.array([0.5, 0.5])
    prior = Prior(given)
    given[0] = 0.0
    assert np.array_equal(prior.probabilities, [0.5, 0.5])
    with pytest.raises(ValueError, match="read-only"):
        prior.probabilities[0] = 0.0


@pytest.mark.statistical
def test_samples_follow_the_prior_and_no_neighbouring_one() -> None:
    truth = np.array([0.5, 0.3, 0.2])
    counts = np.bincount(Prior(truth).sample(SAMPLES, seeded(3)), minlength=3)

    def p_value(power: float) -> float:
        tilted = truth**power / (truth**power).sum()
        return float(stats.chisquare(counts, tilted * SAMPLES).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(0.7) < ALPHA
    assert p_value(1.3) < ALPHA


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_sample_has_the_length_that_was_asked_for(length: int) -> None:
    assert Prior([0.5, 0.5]).sample(length, seeded(0)).shape == (length,)


@pytest.mark.parametrize(
    "wrong",
    [[], [0.5, 0.4], [1.1, -0.1], [float("nan"), 1.0], [[0.5, 0.5]], [0.6, 0.5]],
)
def test_what_is_no_distribution_is_refused(wrong: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="probabilities"):
        Prior(wrong)


def test_alphabet_and_probabilities_must_have_one_size() -> None:
    with pytest.raises(InvalidParameter, match="have 3 entries"):
        Prior([0.5, 0.5], Alphabet("abc"))


@pytest.mark.parametrize("length", [0, -1])
def test_an_empty_sample_is_refused(length: int) -> None:
    with pytest.raises(InvalidParameter, match="length"):
        Prior([0.5, 0.5]).sample(length, seeded(0))


def test_first_belief_is_about_one_value() -> None:
    belief = Prior([0.2, 0.8]).first()
    assert isinstance(belief, Belief)
    assert (belief.joint.ndim, belief.axis, belief.error) == (1, 0, 0.0)
