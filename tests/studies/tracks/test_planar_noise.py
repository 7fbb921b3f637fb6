"""Planar Laplace noise on places, against points that are drawn and snapped."""

import numpy as np
import pytest

from sfumato.core.arrays import Floats
from sfumato.studies.tracks.planar_noise import planar_channels

PLACES = np.array([[0.0, 0.0], [1.0, 0.2], [0.3, 1.1], [2.0, 1.5], [0.9, 0.7]])
DRAWS = 40_000


def snapped(place: int, rate: float, seed: int) -> Floats:
    """Shares of the places that noisy points are nearest to."""
    rng = np.random.default_rng(seed)
    radii, angles = rng.gamma(2.0, 1 / rate, DRAWS), rng.uniform(0, 2 * np.pi, DRAWS)
    points = PLACES[place] + radii[:, None] * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    nearest = np.linalg.norm(points[:, None] - PLACES, axis=2).argmin(axis=1)
    return np.bincount(nearest, minlength=len(PLACES)) / DRAWS


def distance(channel: Floats, shares: Floats) -> float:
    """Chi square, in standard deviations of its law."""
    square = DRAWS * ((shares - channel) ** 2 / channel).sum()
    freedom = len(channel) - 1
    return float((square - freedom) / (2 * freedom) ** 0.5)


@pytest.mark.statistical
@pytest.mark.parametrize("place", range(len(PLACES)))
@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_chances_are_those_of_snapped_points_and_no_other_rate(place: int, rate: float) -> None:
    shares = snapped(place, rate, seed=place)
    less, right, more = planar_channels(PLACES, rate * np.array([0.7, 1.0, 1.3]))[:, place]
    assert distance(right, shares) < 6
    assert min(distance(less, shares), distance(more, shares)) > 12


def test_no_place_is_out_of_reach_and_rows_are_distributions() -> None:
    channels = planar_channels(PLACES, np.geomspace(1e-3, 20, 7))
    assert (channels > 0).all()
    assert np.abs(channels.sum(axis=2) - 1).max() < 1e-12


def test_noise_far_beyond_the_map_tells_nothing() -> None:
    channel = planar_channels(PLACES, np.array([1e-4]))[0]
    seen = channel.max(axis=0) > 1e-3
    assert np.abs(np.log(channel[:, seen] / channel[0, seen])).max() < 0.02
