"""A table with a row for each person: what they weigh, earn and answered."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample

_PEOPLE = 800
_TRANSPORT = ("foot", "bicycle", "bus", "train", "car")
_SHARES = (0.12, 0.22, 0.21, 0.15, 0.30)


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"people.csv": _rows(rng)}


def _rows(rng: np.random.Generator) -> Rows:
    yield "id", "height", "weight", "salary", "commute"
    for person in range(_PEOPLE):
        height = rng.normal(171.0, 9.0)
        weight = 0.9 * (height - 171.0) + rng.normal(74.0, 11.0)
        salary = 38_000.0 * np.exp(rng.normal(0.0, 0.45))
        commute = _TRANSPORT[int(np.searchsorted(np.cumsum(_SHARES), rng.random()))]
        yield f"n{person + 1:03d}", f"{height:.1f}", f"{weight:.1f}", round(salary, -2), commute


PEOPLE = Sample(
    "people",
    "Height, weight, salary and way to work of 800 people: publish one column, or two that "
    "tell of each other.",
    _tables,
    (
        "sfumato privatize people.csv -c commute --epsilon 1 -o commute.csv",
        "sfumato privatize people.csv -c salary --epsilon 2 --range 0:200000 --prior mixture "
        "-o salary.csv",
        "sfumato verify salary.csv.certificate.json --against people.csv",
        "sfumato disclosure --table people.csv --columns height,weight --accuracy 3,4 --sigma 8 "
        "--noise gaussian --coupling gaussian",
        "sfumato publish --table people.csv --columns height,weight --accuracy 3,4 "
        "--coupling gaussian --target-delta 0.2 -o noisy.csv",
    ),
)
