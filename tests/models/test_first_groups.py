"""K-means in fixed order, against scikit-learn's."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sfumato.models.first_groups import _settled, first_groups


@pytest.mark.parametrize("seed", range(12))
def test_groups_and_coins_are_those_of_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    records, count = rng.normal(size=(200, 1 + seed % 3)), 2 + seed % 5
    own, peer = np.random.RandomState(seed), np.random.RandomState(seed)
    for _ in range(2):
        expected = KMeans(count, n_init=1, random_state=peer).fit(records).labels_
        assert np.array_equal(first_groups(records, count, own), expected)


def test_of_equal_distances_the_first_centre_wins() -> None:
    records = np.array([[-1.0], [0.0], [1.0]])
    assert _settled(records, np.array([[-1.0], [1.0]]), 1e9).tolist() == [0, 0, 1]


def test_an_empty_group_gets_the_farthest_record() -> None:
    records = np.array([[0.0], [1.0], [9.0]])
    assert _settled(records, np.array([[0.0], [50.0]]), 0.0).tolist() == [0, 0, 1]


def test_more_groups_than_different_records_are_no_trouble() -> None:
    records = np.repeat([[0.0], [1.0]], 5, axis=0)
    groups = first_groups(records, 4, np.random.RandomState(0))
    assert len(set(groups[:5])) == len(set(groups[5:])) == 1
    assert groups[0] != groups[5]
