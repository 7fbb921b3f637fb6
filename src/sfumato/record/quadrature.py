"""Gauss and Legendre's places and weights of an integral, in the same bits on every machine."""

from __future__ import annotations

import functools
import math

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats


@functools.cache
def legendre(count: int) -> tuple[Floats, Floats]:
    """Places between -1 and 1, and their weights; exact for polynomials of degree `2 count - 1`.

    Examples:
        >>> places, weights = legendre(3)
        >>> places.round(6), weights.round(6)
        (array([-0.774597,  0.      ,  0.774597]), array([0.555556, 0.888889, 0.555556]))
    """
    places = -portable.cosine(math.pi * (np.arange(count) + 0.75) / (count + 0.5))
    slopes = np.ones(count)
    # Newton's steps from a good guess; the fourth changes nothing but last bits.
    for _ in range(5):
        before, here = np.ones(count), places.copy()
        for degree in range(2, count + 1):
            following = ((2 * degree - 1) * places * here - (degree - 1) * before) / degree
            before, here = here, following
        slopes = count * (places * here - before) / (places * places - 1)
        places = places - here / slopes
    places = 0.5 * (places - places[::-1])
    weights = 2 / ((1 - places * places) * slopes * slopes)
    return checks.read_only(places), checks.read_only(0.5 * (weights + weights[::-1]))
