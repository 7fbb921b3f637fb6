"""What wearables see their people do, every ten minutes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.studies.samples.sample import Rows, Sample, walk

_ACTIVITIES = ("lying", "sitting", "standing", "walking", "stairs", "cycling")
_STAYS = (0.95, 0.90, 0.70, 0.65, 0.35, 0.80)
_NEXT = np.array(
    [
        [0, 6, 2, 2, 0.2, 0.1],
        [3, 0, 5, 3, 0.3, 0.2],
        [1, 4, 0, 6, 1, 0.5],
        [0.5, 3, 5, 0, 3, 0.5],
        [0.1, 1, 3, 8, 0, 0.1],
        [0.1, 2, 2, 3, 0.2, 0],
    ]
)
"""How often one activity gives way to another, as parts."""


def _tables(rng: np.random.Generator) -> Mapping[str, Rows]:
    return {"history.csv": _rows(rng, 30, 432), "live.csv": _rows(rng, 6, 100)}


def _rows(rng: np.random.Generator, people: int, length: int) -> Rows:
    stays = np.asarray(_STAYS)[:, None]
    transition = np.diag(_STAYS) + (1 - stays) * _NEXT / _NEXT.sum(axis=1, keepdims=True)
    yield "person", "activity"
    for person in range(people):
        for place in walk(rng, transition, length):
            yield f"p{person + 1:02d}", _ACTIVITIES[place]


ACTIVITIES = Sample(
    "activities",
    "What six people do, every ten minutes: may their watches tell, and what would a total buy?",
    _tables,
    (
        "sfumato fit history.csv --stream person --value activity -o watch.model",
        "sfumato plan --model watch.model --budget 10 --horizon 100",
        "sfumato release live.csv --model watch.model --budget 10 --horizon 100 "
        "--ledger watch.ledger -o private.csv",
        "sfumato audit private.csv --model watch.model --ledger watch.ledger",
    ),
)
