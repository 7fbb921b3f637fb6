import math

import numpy as np
import pytest
from scipy import special

from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.bayes_attack import Found, Way, bayes_disclosure
from sfumato.record.attack.chain_bound import ChainBound, chain_bound, sampled_information
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import noise_of


def pair(rho: float, scale: float = 1.0) -> JointMixture:
    return JointMixture.normal([0.0, 0.0], scale**2 * np.array([[1.0, rho], [rho, 1.0]]))


def inside(reduced: float) -> float:
    """Probability that a standard normal lies within so many deviations."""
    return float(special.erf(reduced / math.sqrt(2)))


@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6, 0.95])
def test_the_bound_is_that_of_the_paper_by_hand(rho: float) -> None:
    shrunk = math.sqrt(1 - rho**2)  # e^-I
    gaussian = chain_bound(pair(rho), noise_of("gaussian", 2.0, 2), 0.5)
    assert gaussian.delta == pytest.approx(inside(0.25 / shrunk) * inside(0.25), rel=1e-9)
    assert gaussian.information == pytest.approx(-math.log(shrunk), abs=1e-12)
    uniform = chain_bound(pair(rho), noise_of("uniform", 2.0, 2), 0.5)
    width = 0.5 / (2 * math.sqrt(3))
    assert uniform.delta == pytest.approx(min(width / shrunk, 1) * width, rel=1e-9)


def test_three_attributes_by_the_determinants() -> None:
    matrix = np.array([[1.0, 0.5, 0.2], [0.5, 2.0, -0.4], [0.2, -0.4, 1.5]])
    found = chain_bound(JointMixture.normal(np.zeros(3), matrix), noise_of("gaussian", 1.0, 3), 0.3)
    candidates = []
    for last in range(3):
        rest = [axis for axis in range(3) if axis != last]
        ratio = matrix[last, last] * np.linalg.det(matrix[np.ix_(rest, rest)])
        told = 0.5 * math.log(ratio / np.linalg.det(matrix))
        candidates.append(inside(0.3 * math.exp(told)) * inside(0.3) ** 2)
    assert found.delta == pytest.approx(max(candidates), rel=1e-9)
    assert found.last == int(np.argmax(candidates))


def test_without_correlation_it_is_what_the_values_alone_tell() -> None:
    noise = noise_of("uniform", [2.0, 3.0])
    assert chain_bound(pair(0.0), noise, [0.5, 0.7]).delta == pytest.approx(
        noise.largest_box([0.5, 0.7]), rel=1e-9
    )


def test_the_order_that_is_best_for_the_attacker_is_taken() -> None:
    found = chain_bound(pair(0.9), noise_of("gaussian", [1.0, 9.0]), 0.5)
    each = [inside(0.5), inside(0.5 / 9)]
    wide = 1 / math.sqrt(1 - 0.81)
    both = [inside(0.5 * wide) * each[1], each[0] * inside(0.5 / 9 * wide)]
    assert found.delta == pytest.approx(max(both), rel=1e-9)
    assert found.last == int(np.argmax(both))


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.99])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 2.0])
def test_whether_it_holds_is_what_the_best_attacker_says(rho: float, ratio: float) -> None:
    noise = noise_of("gaussian", ratio, 2)
    bound = chain_bound(pair(rho), noise, 0.5 * ratio)
    precise = np.linalg.inv(pair(rho).covariances[0]) + np.eye(2) / ratio**2
    rng = np.random.default_rng(3)
    posterior = rng.multivariate_normal([0, 0], np.linalg.inv(precise), 200_000)
    exact = float(np.mean(np.abs(posterior).max(axis=1) <= 0.5 * ratio))
    if abs(exact / bound.delta - 1) > 0.02:
        assert bound.holds(bayes_disclosure(pair(rho), noise, 0.5 * ratio)) == (exact < bound.delta)


def test_it_is_no_bound_where_the_noise_is_as_wide_as_the_people() -> None:
    noise = noise_of("gaussian", 1.0, 2)
    found = bayes_disclosure(pair(0.6), noise, 0.2)
    bound = chain_bound(pair(0.6), noise, 0.2)
    assert not bound.holds(found)
    assert found.delta > 1.8 * bound.delta


def test_a_bound_within_the_error_of_the_truth_is_not_called_wrong() -> None:
    found = Found(0.5, 0.49, 0.51, Way.SAMPLING)
    assert ChainBound(0.495, 0, 0.0).holds(found)
    assert not ChainBound(0.48, 0, 0.0).holds(found)


def test_it_is_a_probability_whatever_the_information() -> None:
    near = pair(1 - 1e-9)
    assert 0 < chain_bound(near, noise_of("ball", 1.0, 2), 3.0).delta <= 1
    assert chain_bound(near, noise_of("laplace", 1.0, 2), 50.0).delta <= 1


def test_noise_of_other_axes_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="noise must have 2 axes"):
        chain_bound(pair(0.5), noise_of("ball", 1.0, 3), 1.0)
    with pytest.raises(InvalidParameter, match="accuracy"):
        chain_bound(pair(0.5), noise_of("ball", 1.0, 2), [1.0, 2.0, 3.0])


def test_sampled_information_knows_normals_and_independence() -> None:
    rng = np.random.default_rng(5)
    records = rng.multivariate_normal([0, 0], [[1, 0.9], [0.9, 1]], 3_000)
    found = sampled_information(np.column_stack([records, rng.normal(size=3_000)]))
    assert found[0, 1] == pytest.approx(-0.5 * math.log(1 - 0.81), abs=0.08)
    assert max(found[0, 2], found[1, 2]) < 0.05
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("records", [[1.0, 2.0], [[1.0, 2.0]] * 3])
def test_too_little_to_learn_information_from_is_refused(records: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="at least eight rows"):
        sampled_information(records)
