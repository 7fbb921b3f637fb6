"""How many people pass a gate, hour by hour."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample

_BEGIN = datetime(2026, 3, 2)
_HOURS = 21 * 24
_MEAN, _SWING, _WEEKEND = 420.0, 380.0, 0.55
_DRIFT = 0.9
"""Of an unusual hour, what is left in the next one."""


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"counts.csv": _rows(rng)}


def _rows(rng: np.random.Generator) -> Rows:
    yield "when", "people"
    unusual = 0.0
    for hour in range(_HOURS):
        moment = _BEGIN + timedelta(hours=hour)
        unusual = _DRIFT * unusual + rng.normal(0.0, 0.05)
        usual = _MEAN - _SWING * np.cos(2 * np.pi * (moment.hour - 3) / 24)
        level = usual * (_WEEKEND if moment.weekday() >= 5 else 1.0) * np.exp(unusual)
        yield moment.isoformat(timespec="minutes"), int(rng.poisson(level))


COUNTS = Sample(
    "counts",
    "How many people pass a gate, hour by hour for three weeks: publish it, hide each of them.",
    _tables,
    (
        "sfumato compare counts.csv --value people --sensitivity 1 --epsilon 2 --period 24",
        "sfumato realtime counts.csv --value people --sensitivity 1 --epsilon 2 --time when "
        "--keep when --period hour --range 0:2000 -o private.csv",
        "sfumato verify private.csv.certificate.json",
    ),
)
