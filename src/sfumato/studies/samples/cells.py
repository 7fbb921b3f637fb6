"""Where phones are: longitude and latitude every half hour, two weeks of them and two days."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample
from sfumato.studies.town import PLACES, SLOTS_PER_DAY, people

_WEST, _SOUTH = 12.30, 43.70
_DEGREES_EAST, _DEGREES_NORTH = 0.0124, 0.0090
"""Of a kilometre, there."""
_SCATTER = 0.15
"""Kilometres: a phone does not lie in the middle of its place."""


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {
        "history.csv": _rows(rng, people(40, 14, seed=1)),
        "live.csv": _rows(rng, people(5, 2, seed=2)),
    }


def _rows(rng: np.random.Generator, days: Mapping[str, list[str]]) -> Rows:
    yield "phone", "when", "lon", "lat"
    for phone, places in days.items():
        for slot, place in enumerate(places):
            east, north = PLACES[place] + rng.normal(0.0, _SCATTER, 2)
            day, half = divmod(slot, SLOTS_PER_DAY)
            when = f"2026-03-{day + 2:02d}T{half // 2:02d}:{half % 2 * 30:02d}"
            yield (
                phone,
                when,
                f"{_WEST + east * _DEGREES_EAST:.5f}",
                f"{_SOUTH + north * _DEGREES_NORTH:.5f}",
            )


CELLS = Sample(
    "cells",
    "Where five phones are, every half hour: which cell of a map may each tell?",
    _tables,
    (
        "sfumato fit history.csv --stream phone --grid 4x4 --x lon --y lat --units degrees "
        "--range 12.3:12.424,43.7:43.79 -o town.model",
        "sfumato plan --model town.model --epsilon 0.5",
        "sfumato release live.csv --model town.model --epsilon 0.5 -o private.csv",
        "sfumato audit private.csv --model town.model",
        "sfumato recover private.csv --model town.model -o guesses.csv",
    ),
)
