"""Simulated populations whose chain is known: a sticky bit, rings, and trips between bike stations.

All draws are by array. Trips are those of SFUMATO_DATA, as for studies; without it made-up ones
stand in for them.
"""

import os
from collections import Counter
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.models.markov import MarkovChain
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.model_versions import ContextFree, ModelVersion, next_version
from sfumato.studies.data.sequence_data import BIKES, people_of
from sfumato.studies.study import Setting

UNIT = 2**20
"""Probabilities are whole multiples of 1 / UNIT, so that an oracle knows the very same chain."""


def exactly(rows: Floats, initial: Floats) -> MarkovChain:
    """The chain whose probabilities are the nearest multiples of a unit, none of them 0."""

    def whole(row: Floats) -> Floats:
        counts = np.maximum(np.rint(row * UNIT), 1)
        counts[np.argmax(counts)] += UNIT - counts.sum()
        return counts / UNIT

    chain = MarkovChain.from_matrix([whole(row) for row in rows], whole(initial))
    assert np.array_equal(chain.transition() * UNIT, np.rint(chain.transition() * UNIT))
    return chain


def ring(size: int, stay: float) -> MarkovChain:
    """Values that stay, or go to a neighbour."""
    beside = np.roll(np.eye(size), 1, axis=1) + np.roll(np.eye(size), -1, axis=1)
    chain = MarkovChain.from_matrix(stay * np.eye(size) + (1 - stay) / 2 * beside, floor=1e-4)
    return exactly(chain.transition(), chain.initial.ravel())


def bikes(stations: int, folder: str | None = None) -> MarkovChain:
    """A chain fitted to trips between the most frequent stations, all others as one."""
    people, _, _ = people_of(BIKES, Setting(None if folder is None else Path(folder)))
    trips = [trip for one in people for trip in one]
    often = [name for name, _ in Counter(s for trip in trips for s in trip).most_common(stations)]
    kept = [[station if station in often else "others" for station in trip] for trip in trips]
    fitted = MarkovChain.fit(kept, floor=1e-4)
    return exactly(fitted.transition(), fitted.initial.ravel())


def real_bikes(stations: int) -> MarkovChain:
    """The same of the trips of SFUMATO_DATA, if it is set."""
    return bikes(stations, os.environ.get("SFUMATO_DATA"))


def drawn(rows: Floats, places: Ints, rng: np.random.Generator) -> Ints:
    """A draw from the row of each place."""
    found = (rng.random((*places.shape, 1)) > rows.cumsum(axis=1)[places]).sum(axis=-1)
    return np.asarray(np.minimum(found, rows.shape[1] - 1))


def streams_of(chain: MarkovChain, shape: tuple[int, int], rng: np.random.Generator) -> Ints:
    """True values of streams, a row each."""
    values = np.empty(shape, dtype=np.int64)
    values[:, 0] = drawn(chain.initial.ravel()[None], np.zeros(shape[0], dtype=np.int64), rng)
    for moment in range(1, shape[1]):
        values[:, moment] = drawn(chain.transition(), values[:, moment - 1], rng)
    return values


def versions_of(rules: LearningRules, values: Ints, rng: np.random.Generator) -> list[ModelVersion]:
    """What is learnt of context-free outputs at a quarter, a half and all of the values."""
    left, found = drawn(rules.channel, values, rng).astype(np.uint8), list[ModelVersion]()
    for part in (4, 2, 1):
        moments = values.shape[1] // part
        told = {f"s{place}": row[:moments].tobytes() for place, row in enumerate(left)}
        found.append(next_version(rules, found, ContextFree(told)))
    return found
