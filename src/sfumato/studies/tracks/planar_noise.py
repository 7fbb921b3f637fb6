r"""Planar Laplace noise on places: the report of a noisy point, snapped to the nearest place.

Noise of rate $\lambda$ has density $\lambda^2 e^{-\lambda r} / 2\pi$ at distance $r$; its radius is
within $r$ with probability $1 - (1 + \lambda r) e^{-\lambda r}$. Which place is nearest along a ray
does not depend on the rate, so rays are followed once, and a channel for any rate is a sum over
rings. Rays point from each place to every other one, so that no place is out of reach, and all
places have the same rays, so that noise far beyond the map tells nothing of where it began.

References:
    [Andres2013, Sec. 4]
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats

_ANGLES, _RINGS = 360, 200
_FAR = 300.0
"""Rays end at so many times the widest distance; all beyond lies in the same direction."""


def planar_channels(places: Floats, rates: Floats) -> Floats:
    """Chances of every report, given every true place, at every rate.

    Args:
        places: One row of two coordinates a place.
        rates: Of the noise, one over a distance.

    Returns:
        An array of the shape (rates, places, places).

    Examples:
        >>> corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        >>> channels = planar_channels(corners, np.array([0.01, 20.0]))
        >>> channels.sum(axis=2).round(9).tolist()
        [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
        >>> channels[:, 0].round(2).tolist()
        [[0.25, 0.25, 0.25, 0.25], [1.0, 0.0, 0.0, 0.0]]
    """
    to = places[None] - places[:, None]
    distances = np.linalg.norm(to, axis=2)
    least, most = distances[distances > 0].min(), distances.max()
    radii = np.concatenate([[0.0], np.geomspace(0.01 * least, _FAR * most, _RINGS)])
    angles = _directions(to[distances > 0])
    shares = np.array([_nearest_shares(places, place, radii, angles) for place in places])
    within = 1 - (1 + rates[:, None] * radii) * np.exp(-rates[:, None] * radii)
    within[:, -1] = 1.0
    channels: Floats = np.einsum("sr,xry->sxy", np.diff(within, axis=1), shares)
    return channels


def _directions(to: Floats) -> Floats:
    """Even directions, and those from any place to any other one."""
    even = np.arange(_ANGLES) * (2 * np.pi / _ANGLES)
    between = np.arctan2(to[:, 1], to[:, 0]) % (2 * np.pi)
    return np.unique(np.concatenate([even, between]).round(12))


def _nearest_shares(places: Floats, origin: Floats, radii: Floats, angles: Floats) -> Floats:
    """For each ring around a place, in what share of directions every place is the nearest."""
    # Each direction stands for half the way to its neighbours on either side.
    gaps = np.diff(np.append(angles, angles[0] + 2 * np.pi))
    weights = (gaps + np.roll(gaps, 1)) / (4 * np.pi)
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    shares = np.empty((len(radii) - 1, len(places)))
    for ring, radius in enumerate((radii[:-1] + radii[1:]) / 2):
        points = origin + radius * directions
        # Squares of distances, without the part that all places share.
        apart = (places**2).sum(axis=1) - 2 * points @ places.T
        shares[ring] = np.bincount(apart.argmin(axis=1), weights, len(places))
    return shares
