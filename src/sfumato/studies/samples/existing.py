"""A town whose counts already leave with Laplace noise: what does that really promise?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample
from sfumato.studies.town import PLACES, SLOTS_PER_DAY, people


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"history.csv": _history(), "counts.csv": _counts()}


def _history() -> Rows:
    yield "person", "place"
    for person, places in people(30, 5, seed=3).items():
        for place in places:
            yield person, place.replace(" ", "-")


def _counts() -> Rows:
    town = people(200, 1, seed=4)
    names = [place.replace(" ", "-") for place in PLACES]
    yield "town", *names
    for slot in range(SLOTS_PER_DAY):
        seen = Counter(places[slot] for places in town.values())
        yield "ours", *(seen[place] for place in PLACES)


EXISTING = Sample(
    "existing",
    "Counts of people by place that already leave with noise of epsilon 0.1 each half hour: "
    "what does each release really tell of people who stay where they are?",
    _tables,
    (
        "sfumato temporal fit history.csv --stream person --value place -o town",
        "sfumato temporal leakage --backward town.backward.csv --forward town.forward.csv "
        "--epsilon 0.1 --steps 48",
        "sfumato temporal allocate --alpha 1 --backward town.backward.csv "
        "--forward town.forward.csv --steps 48",
    ),
)
