"""Expectation maximisation in fixed order, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from sfumato.models.mixture_fitting import fitted_mixture


@pytest.mark.parametrize(("size", "count"), [(1, 1), (1, 3), (2, 2), (3, 3)])
def test_a_fit_is_that_of_scikit_learn(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    records = np.concatenate([rng.normal(place, 1, (150, size)) for place in (0, 4, 9)])
    records = (records - records.mean(axis=0)) / records.std(axis=0)
    found = fitted_mixture(records, count, 1e-4)
    peer = GaussianMixture(count, n_init=2, random_state=0, max_iter=1000, reg_covar=1e-4)
    peer.fit(records)
    assert np.allclose(found.weights, peer.weights_, atol=1e-12)
    assert np.allclose(found.means, peer.means_, atol=1e-12)
    assert np.allclose(found.covariances, peer.covariances_, atol=1e-12)
    assert found.bic == pytest.approx(peer.bic(records), rel=1e-12)


def test_a_repeated_value_makes_no_spike() -> None:
    records = np.repeat([[0.0], [1.0]], 50, axis=0)
    found = fitted_mixture(records, 2, 1e-4)
    assert found.covariances.min() >= 1e-4
