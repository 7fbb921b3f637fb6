"""What homes draw from the grid, every half hour."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample, walk
from sfumato.studies.town import SLOTS_PER_DAY

_WATTS = (120.0, 350.0, 900.0, 2_200.0)
"""Asleep or away, up, cooking, heating water: each the middle of what is seen."""
_NIGHT = np.array([[96, 3, 0.5, 0.5], [30, 66, 3, 1], [10, 50, 36, 4], [10, 30, 10, 50]])
_DAY = np.array([[85, 12, 2, 1], [10, 75, 12, 3], [3, 40, 50, 7], [3, 40, 17, 40]])
_NOISE = 0.12


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"history.csv": _rows(rng, 30, 14), "live.csv": _rows(rng, 5, 2)}


def _rows(rng: np.random.Generator, homes: int, days: int) -> Rows:
    yield "home", "when", "watts"
    for home in range(homes):
        for day in range(days):
            night, rest = 14, SLOTS_PER_DAY - 14
            levels = walk(rng, _NIGHT, night) + walk(rng, _DAY, rest)
            for slot, level in enumerate(levels):
                watts = _WATTS[level] * np.exp(rng.normal(0.0, _NOISE))
                when = f"2026-03-{day + 2:02d}T{slot // 2:02d}:{slot % 2 * 30:02d}"
                yield f"h{home + 1:02d}", when, round(watts)


METER = Sample(
    "meter",
    "What five homes draw, every half hour: a meter tells when people sleep; what may it say?",
    _tables,
    (
        "sfumato fit history.csv --stream home --value watts --bins 6 --range 0:3000 --units W "
        "-o meter.model",
        "sfumato plan --model meter.model --epsilon 1.5",
        "sfumato release live.csv --model meter.model --epsilon 1.5 --time when --keep when "
        "--ledger meter.ledger -o private.csv",
        "sfumato audit private.csv --model meter.model --ledger meter.ledger",
    ),
)
