r"""The non-linear calibration of Section 7: $x_t = w z_t + (1 - w) \sqrt{z_t \hat z_t} + n_t$.

The estimate $\hat z_t$ is public, but the root lets a value through once more. For counts, which
are at least 0, one person changes what is told by up to

$$w \Delta + (1 - w) \sqrt{\hat z_t \Delta},$$

at $z_t = 0$: far more than the $w \Delta$ of the linear rule where the estimate is large.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.studies.rtr.one_lag_rule import Learnt


def calibrated_releases(
    values: Floats, weight: float, ratio: float, normals: Floats, *, honest: bool
) -> tuple[Floats, Floats]:
    """What leaves, time by run, and how much one person changes it, for a sensitivity of 1.

    Args:
        values: Counts.
        weight: Of the true value.
        ratio: Sensitivity over deviation of all steps together.
        normals: Standard normal draws, time by run.
        honest: Whether the noise is made for the true sensitivity, not that of the linear rule.
    """
    length, runs = normals.shape
    found, steps = np.empty((length, runs)), np.empty((length, runs))
    learnt = Learnt(np.zeros((1, runs)), math.inf, (1, runs))
    scale = math.sqrt(length) / ratio
    for time in range(length):
        guess = np.maximum(learnt.estimate()[0], 0.0) if time else np.zeros(runs)
        own = 1.0 if time == 0 else weight
        steps[time] = own + (1 - own) * np.sqrt(guess)
        noise = scale * (steps[time] if honest else np.full(runs, own))
        told = own * values[time] + (1 - own) * np.sqrt(values[time] * guess)
        found[time] = told + noise * normals[time]
        learnt.noise = np.square(noise)[None, :]
        learnt.add(found[time][None, :])
    return found, steps
