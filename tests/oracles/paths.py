"""Beliefs by brute force: every sequence of true values, and how likely it made what left."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def path_weights(
    initial: Floats, rows: Floats, told: Sequence[Floats | None]
) -> dict[tuple[int, ...], float]:
    """The joint probability of each path and of all outputs, up to a common factor.

    Args:
        initial: Probability of each first value.
        rows: Probability of each value after each other.
        told: For each moment, how likely its output was under each value; None: nothing was told.
    """
    found = {}
    for path in product(range(len(initial)), repeat=len(told)):
        weight = float(initial[path[0]])
        for before, after in pairwise(path):
            weight *= float(rows[before, after])
        for value, likelihood in zip(path, told, strict=True):
            weight *= 1.0 if likelihood is None else float(likelihood[value])
        found[path] = weight
    return found


def marginal(weights: dict[tuple[int, ...], float], moment: int, symbols: int) -> Floats:
    """The distribution of the value of one moment."""
    found = np.zeros(symbols)
    for path, weight in weights.items():
        found[path[moment]] += weight
    return found / found.sum()
