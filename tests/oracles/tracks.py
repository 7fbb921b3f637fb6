"""What outputs tell about values, by writing down every track. Slow and obvious."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Track = tuple[int, ...]


@dataclass(frozen=True)
class Factor:
    """How likely an output was: a function of the whole track, known once value `end` left."""

    end: int
    likelihood: Callable[[Track], float]


def chances(
    initial: NDArray[np.float64], moves: NDArray[np.float64], length: int
) -> dict[Track, float]:
    """Probability of every track of a chain of order `initial.ndim`."""
    size, order = initial.shape[0], initial.ndim
    found: dict[Track, float] = defaultdict(float)
    for track in itertools.product(range(size), repeat=max(length, order)):
        chance = float(initial[track[:order]])
        for t in range(order, length):
            context = 0
            for value in track[t - order : t]:
                context = context * size + value
            chance *= float(moves[context, track[t]])
        found[track[:length]] += chance
    return dict(found)


def weighted(
    prior: Mapping[Track, float], factors: Sequence[Factor], until: int
) -> dict[Track, float]:
    """Probability of every track, given the outputs that left until a moment."""
    found = {}
    for track, chance in prior.items():
        for factor in factors:
            if factor.end <= until:
                chance *= factor.likelihood(track)
        found[track] = chance
    total = sum(found.values())
    return {track: chance / total for track, chance in found.items()}


def marginal(tracks: Mapping[Track, float], moment: int, size: int) -> NDArray[np.float64]:
    found = np.zeros(size)
    for track, chance in tracks.items():
        found[track[moment]] += chance
    return found


def flows(tracks: Mapping[Track, float], size: int) -> NDArray[np.float64]:
    found = np.zeros((size, size))
    for track, chance in tracks.items():
        for here, there in itertools.pairwise(track):
            found[here, there] += chance
    return found
