"""The pages of a shop that visits pass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample, walk

_PAGES = ("front", "search", "books", "music", "games", "garden", "basket", "help")
_CLICKS = np.array(
    [
        [4, 30, 18, 14, 14, 12, 3, 5],
        [5, 25, 18, 14, 14, 14, 8, 2],
        [4, 10, 60, 4, 3, 3, 15, 1],
        [4, 10, 4, 58, 8, 2, 13, 1],
        [4, 8, 3, 8, 62, 2, 12, 1],
        [4, 10, 3, 2, 2, 64, 14, 1],
        [15, 12, 12, 10, 10, 10, 26, 5],
        [25, 25, 5, 5, 5, 5, 5, 25],
    ]
)


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"history.csv": _rows(rng, 600), "live.csv": _rows(rng, 20)}


def _rows(rng: np.random.Generator, visits: int) -> Rows:
    yield "visit", "page"
    for visit in range(visits):
        for place in walk(rng, _CLICKS, 12):
            yield f"v{visit + 1:03d}", _PAGES[place]


CLICKS = Sample(
    "clicks",
    "The pages of twenty visits to a shop: clicks may wait for each other, which costs less.",
    _tables,
    (
        "sfumato fit history.csv --stream visit --value page -o shop.model",
        "sfumato plan --model shop.model --epsilon 0.5 --batch 1,2",
        "sfumato release live.csv --model shop.model --epsilon 0.5 --batch 2 -o private.csv",
        "sfumato audit private.csv --model shop.model",
    ),
)
