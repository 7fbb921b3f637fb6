"""What was recovered, as rows of tables and as a few numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.loss import Loss, hamming
from sfumato.stream.recovered_counts import Estimate, Population
from sfumato.stream.recovery import RecoveredValues, Recovery
from sfumato.tables.writers import Columns, Record

COUNT_COLUMNS: Columns = {
    "moment": int,
    "symbol": str,
    "released": int,
    "count": float,
    "error": float,
    "low": float,
    "high": float,
}
FREE_COLUMNS: Columns = {"unbiased": float, "unbiased_error": float}
FLOW_COLUMNS: Columns = {"from": str, "to": str, "count": float, "error": float}
_BLOCK = 100_000
"""Rows that are made at one time."""
_DRAWN = 4_000_000
"""Values of drawn tracks, over all streams, that the errors of a summary are made from."""


@dataclass(frozen=True, slots=True)
class RecoverySummary:
    """What a recovery came to.

    Attributes:
        rows: Values.
        streams: Streams.
        expected_released: What the released values are expected to lose, per value, given all that
            left; those that were withheld cost what the best guess does.
        expected_recovered: What the best guesses are expected to lose.
        counts: Of each symbol over all values: released, recovered, and the standard error of that.
        assumes: What must hold for it to be right on average.
    """

    rows: int
    streams: int
    expected_released: float
    expected_recovered: float
    counts: dict[str, tuple[int, float, float]]
    assumes: str


def summary(
    recovery: Recovery, values: RecoveredValues, loss: Loss | None = None
) -> RecoverySummary:
    """The few numbers that a person wants to see."""
    priced = loss or recovery.plan.value_loss or hamming(recovery.plan.model.alphabet)
    places, costs = recovery.released.places, values.losses.copy()
    for first, stop, found in recovery.blocks():
        own = places[first:stop]
        for place in np.unique(own[own >= 0]):
            same = own == place
            costs[first:stop][same] = found[same] @ priced.columns([place])[:, 0]
    everything = np.zeros(len(recovery.evidence), dtype=np.int64)
    # Fewer tracks of more values: their errors add up, and so does what is known of them.
    draws = int(np.clip(_DRAWN // max(1, len(everything)), 20, 200))
    crowd = Population(recovery, everything, draws=draws)
    totals = crowd.counts()
    left = np.bincount(places[places >= 0], minlength=len(recovery.labels))
    counts = {
        str(label): (
            int(left[place]),
            float(totals.values[0, place]),
            float(totals.errors[0, place]),
        )
        for place, label in enumerate(recovery.labels)
    }
    streams = len(recovery.released.streams)
    after = float(values.losses.mean())
    return RecoverySummary(len(places), streams, float(costs.mean()), after, counts, crowd.assumes)


def value_columns(recovery: Recovery) -> Columns:
    """The columns of `value_rows` after that of the stream.

    A path of states is called what it is where it need not be the likeliest track.
    """
    track = "likeliest" if recovery.chain.observable else "likeliest_path"
    first = {"sequence": int, "released": str, "recovered": str}
    return {**first, "probability": float, "loss": float, track: str, "credible": str}


def value_rows(recovery: Recovery, values: RecoveredValues) -> Iterator[list[Record]]:
    """A row for every released one, in their order, some at a time."""
    tracks, moments = recovery.likeliest_path(), recovery.released.moments
    released, labels = recovery.released, [str(label) for label in recovery.labels]
    owners = np.repeat(np.arange(len(released.streams)), np.diff(released.starts))
    order = np.argsort(released.rows, kind="stable")
    for start in range(0, len(order), _BLOCK):
        yield [
            (
                released.streams[owners[value]],
                int(moments[value]),
                None if released.places[value] < 0 else labels[released.places[value]],
                labels[values.guesses[value]],
                float(values.probabilities[value]),
                float(values.losses[value]),
                labels[tracks[value]],
                "|".join(labels[place] for place in values.credible(value)),
            )
            for value in order[start : start + _BLOCK].tolist()
        ]


def count_rows(population: Population, free: Estimate | None = None) -> Iterator[Record]:
    """A row for every moment, or group of them, and symbol."""
    recovery, found = population.recovery, population.counts()
    own = recovery.released.moments if population.groups is None else population.groups
    places, seen = recovery.released.places, recovery.released.places >= 0
    group = np.searchsorted(found.groups, own)
    size = len(recovery.labels)
    left = np.bincount(group[seen] * size + places[seen], minlength=len(found.groups) * size)
    low, high = found.interval()
    for row, name in enumerate(found.groups.tolist()):
        for place, label in enumerate(recovery.labels):
            numbers = (found.values, found.errors, np.maximum(low, 0.0), high)
            cells = [float(table[row, place]) for table in numbers]
            extra = [] if free is None else _numbers(free.values, free.errors, row, place)
            yield (name, str(label), int(left[row * size + place]), *cells, *extra)


def flow_rows(population: Population) -> Iterator[Record]:
    """A row for every pair of symbols."""
    found, labels = population.flows(), population.recovery.labels
    for here, one in enumerate(labels):
        for there, other in enumerate(labels):
            count, error = found.values[here, there], found.errors[here, there]
            yield str(one), str(other), float(count), float(error)


def _numbers(values: Floats, errors: Floats, row: int, place: int) -> list[float | None]:
    """An estimate and its error; nothing where there is none."""
    pair = float(values[row, place]), float(errors[row, place])
    return [None, None] if np.isnan(pair[0]) else list(pair)
