"""What releases tell of moments and windows of a chain of any order: every sequence in turn.

Nothing is shared with the package: the joint table of all values and all outputs is written down,
and the definition is read off it.
"""

import itertools
import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def two_levels(size: int, epsilon: float, large: set[int], least: float) -> Floats:
    """A yes-or-no answer, more probable by e^epsilon for some values than for the others.

    With `least` up to 1 / (1 + e^epsilon) no quotient is larger; the smaller it is, the less the
    other answer tells.
    """
    yes = np.array([least * (math.exp(epsilon) if x in large else 1.0) for x in range(size)])
    return np.column_stack([yes, 1 - yes])


def told_of_windows(
    initial: Floats, transition: Floats, channels: list[Floats]
) -> dict[tuple[int, int], float]:
    """The largest log quotient of outputs' probabilities given two windows, by (first, width)."""
    order, size = initial.ndim, len(initial)
    length = max(len(channels), order)
    paths = list(itertools.product(range(size), repeat=length))
    chances, outputs = [], []
    for path in paths:
        chance = float(initial[path[:order]])
        for place in range(order, length):
            context = sum(
                value * size**power for power, value in enumerate(path[place - order : place][::-1])
            )
            chance *= transition[context, path[place]]
        told = np.ones(1)
        for channel, value in zip(channels, path, strict=False):
            told = (told[:, None] * channel[value]).ravel()
        chances.append(chance)
        outputs.append(chance * told)
    found = {}
    for width in range(1, len(channels) + 1):
        for first in range(len(channels) - width + 1):
            groups: dict[tuple[int, ...], tuple[float, Floats]] = {}
            for path, chance, told in zip(paths, chances, outputs, strict=True):
                mass, total = groups.get(path[first : first + width], (0.0, np.zeros_like(told)))
                groups[path[first : first + width]] = (mass + chance, total + told)
            given = np.array([total / mass for mass, total in groups.values() if mass > 0])
            found[first, width] = float(np.log(given.max(axis=0) / given.min(axis=0)).max())
    return found
