"""Stationary distributions against exact ones."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from sfumato import MarkovChain
from sfumato.models.stationary import stationary_carried, stationary_dense


def test_every_entry_has_all_its_digits() -> None:
    """A chain that hardly ever climbs: its entries are known, over thirty powers of ten."""
    size, climb = 12, 2.0**-9
    matrix = np.zeros((size, size))
    for place in range(size):
        matrix[place, min(place + 1, size - 1)] += climb
        matrix[place, max(place - 1, 0)] += 1 - climb
    odds = Fraction(climb) / (1 - Fraction(climb))
    exact = [odds**place for place in range(size)]
    whole = sum(exact)
    found = stationary_dense(matrix)
    for entry, weight in zip(found, exact, strict=True):
        assert entry == pytest.approx(float(weight / whole), rel=1e-14)


def test_several_closed_classes_share_with_the_least_norm_and_what_is_left_has_nothing() -> None:
    matrix = np.zeros((5, 5))
    matrix[:2, :2] = [[0.5, 0.5], [0.2, 0.8]]
    matrix[2, [0, 3]] = 0.5
    matrix[3:, 3:] = [[0.1, 0.9], [0.9, 0.1]]
    system = np.vstack([matrix.T - np.eye(5), np.ones(5)])
    least = np.linalg.lstsq(system, np.append(np.zeros(5), 1.0), rcond=None)[0]
    found = stationary_dense(matrix)
    assert np.allclose(found, least, atol=1e-14)
    assert found[2] == 0.0


def test_large_chains_are_left_as_they_are_by_a_step() -> None:
    size = 3000
    places = np.arange(size)
    walk = np.stack([places, (places + 1) % size, (7 * places) % size], axis=1)
    shares = np.tile([0.7, 0.2, 0.1], size)
    matrix = sparse.csr_array((shares, (np.repeat(places, 3), walk.ravel())), (size, size))
    chain = MarkovChain.from_matrix(matrix, floor=1e-8, initial=np.full(size, 1 / size))
    found = stationary_carried(chain.spread, chain.background)
    assert found.sum() == pytest.approx(1.0)
    assert np.abs(chain.spread(found) - found).sum() < 1e-13
