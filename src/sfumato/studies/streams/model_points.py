"""What a model is worth on streams that it was not fitted to, beside another model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.studies.data.habit_data import HabitSet
from sfumato.studies.data.sequence_data import SequenceSet
from sfumato.studies.standard_error import clustered_error

CAP = 0.5
"""What a value may leak, where each has a cap."""


@dataclass(frozen=True, slots=True)
class BurstTask:
    """Nats of a whole stream, spent in bursts so many values apart."""

    total: float
    every: int


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What was measured of a model, stream by stream and per value.

    Attributes:
        predicted: Logarithm of the probability of a value given all before it.
        loss: Loss under the total.
        capped: Loss where each value may leak `CAP`.
        charged: What it leaked then.
        silent: Loss of the best guess under the model if nothing is told.
    """

    predicted: Floats
    loss: Floats
    capped: Floats
    charged: Floats
    silent: Floats


@dataclass(frozen=True, slots=True)
class ModelPoint:
    """What one model is worth, per value.

    Attributes:
        data: Name of the set.
        model: Name of the model.
        unit: What losses are in.
        stand_in: Whether the data were made up for want of real ones.
        streams: On which it was measured.
        people: Whose they are.
        total: Nats of a whole stream,
        every: in bursts so many values apart.
        predicted: Mean logarithm of the probability of a value given all before it, in nats.
        predicted_more: How much more than under the first model,
        predicted_error: and the standard error of that over people.
        loss: Loss under the total.
        loss_more: How much more than under the first model,
        loss_error: and the standard error of that over people.
        capped: Loss where each value may leak `CAP`,
        capped_charge: what it leaked on average,
        capped_more: how much more it lost than under the first model,
        capped_error: and the standard error of that over people.
        silent: Loss of the best guess under the model if nothing is told.
    """

    data: str
    model: str
    unit: str
    stand_in: bool
    streams: int
    people: int
    total: float
    every: int
    predicted: float
    predicted_more: float
    predicted_error: float
    loss: float
    loss_more: float
    loss_error: float
    capped: float
    capped_charge: float
    capped_more: float
    capped_error: float
    silent: float

    @classmethod
    def beside(
        cls,
        first: Measured,
        name: str,
        own: Measured,
        found: HabitSet | SequenceSet,
        task: BurstTask,
    ) -> ModelPoint:
        """A model beside the first one, on the same streams with the same coins."""
        predicted, capped = own.predicted - first.predicted, own.capped - first.capped
        more = own.loss - first.loss
        return ModelPoint(
            data=found.name,
            model=name,
            unit=found.unit,
            stand_in=found.stand_in,
            streams=len(found.kept),
            people=len(np.unique(found.owners)),
            total=task.total,
            every=task.every,
            predicted=float(own.predicted.mean()),
            predicted_more=float(predicted.mean()),
            predicted_error=clustered_error(predicted, found.owners),
            loss=float(own.loss.mean()),
            loss_more=float(more.mean()),
            loss_error=clustered_error(more, found.owners),
            capped=float(own.capped.mean()),
            capped_charge=float(own.charged.mean()),
            capped_more=float(capped.mean()),
            capped_error=clustered_error(capped, found.owners),
            silent=float(own.silent.mean()),
        )
