"""Differential privacy when values are correlated over time (TPL).

The names of the room, loaded when they are first used:

>>> import sfumato as sf
>>> spec = sf.temporal.TemporalSpec(alpha=1.0, backward=[[[0.8, 0.2], [0.2, 0.8]]])
>>> spec.plan("town").budgets if spec.steps else "endless"
'endless'
"""

from __future__ import annotations

from importlib import import_module

_HOME_OF = {
    "Allocation": "temporal_plan",
    "Answer": "temporal_mechanisms",
    "Counts": "temporal_mechanisms",
    "EventColumns": "temporal_rows",
    "Histogram": "temporal_mechanisms",
    "LossFunction": "temporal_leakage",
    "Measurement": "temporal_mechanisms",
    "OwnMatrices": "temporal_spec",
    "TemporalPlan": "temporal_plan",
    "TemporalRelease": "temporal_release",
    "TemporalSpec": "temporal_spec",
    "allocate": "temporal_budgets",
    "audit_streams": "temporal_audit",
    "chain_leakage": "over_time",
    "least_noise_budgets": "least_noise",
    "release_streams": "temporal_run",
}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sfumato.temporal' has no attribute {name!r}")
    return getattr(import_module(f"sfumato.temporal.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_HOME_OF)
