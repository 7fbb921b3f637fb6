"""Differential privacy when values are correlated over time (TPL).

The names of the room, loaded when they are first used:

>>> import sfumato as sf
>>> spec = sf.temporal.TemporalSpec(alpha=1.0, backward=[[[0.8, 0.2], [0.2, 0.8]]])
>>> spec.plan("town").budgets if spec.steps else "endless"
'endless'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.tables.input_groups import EventColumns as EventColumns
    from sfumato.temporal.least_noise import Allocation as Allocation
    from sfumato.temporal.least_noise import least_noise_budgets as least_noise_budgets
    from sfumato.temporal.loss_function import LossFunction as LossFunction
    from sfumato.temporal.over_time import chain_leakage as chain_leakage
    from sfumato.temporal.over_time import temporal_leakage as temporal_leakage
    from sfumato.temporal.temporal_audit import audit_streams as audit_streams
    from sfumato.temporal.temporal_budgets import allocate as allocate
    from sfumato.temporal.temporal_mechanisms import Answer as Answer
    from sfumato.temporal.temporal_mechanisms import Counts as Counts
    from sfumato.temporal.temporal_mechanisms import Histogram as Histogram
    from sfumato.temporal.temporal_mechanisms import Measurement as Measurement
    from sfumato.temporal.temporal_plan import TemporalPlan as TemporalPlan
    from sfumato.temporal.temporal_release import TemporalRelease as TemporalRelease
    from sfumato.temporal.temporal_run import release_streams as release_streams
    from sfumato.temporal.temporal_spec import OwnMatrices as OwnMatrices
    from sfumato.temporal.temporal_spec import TemporalSpec as TemporalSpec

__getattr__, __dir__ = lazily(__name__)
