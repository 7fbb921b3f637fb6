"""Noises that tests of this room ask for: shells in any unit, a covariance, words for draws."""

import math
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import seeded
from sfumato.record.attack import bayes_attack
from sfumato.record.round_noise import RoundNoise
from sfumato.record.vector_noise import CorrelatedNoise, VectorNoise


def small_batches() -> Any:
    """A quarter of the rows that an attacker is tried on: as near, to a percent or two.

    Batches are as many, or more where they differ: they are taken until they agree.
    """
    return mock.patch.object(bayes_attack, "_BATCH", 32)


def shells(sigma: Any, edges: Any, masses: Any) -> RoundNoise:
    """Round noise from shells in any unit: they are scaled to the deviations asked for."""
    size, radii = np.size(sigma), np.array(edges, dtype=np.float64)
    squares = size / (size + 2) * np.diff(radii ** (size + 2)) / np.diff(radii**size)
    unit = math.sqrt(size / float(np.array(masses) @ squares))
    return RoundNoise(np.array(sigma), radii * unit, np.array(masses))


def correlated(covariance: Any) -> CorrelatedNoise:
    """Gaussian noise of a covariance."""
    scales = np.sqrt(np.diag(covariance))
    return CorrelatedNoise(scales, covariance / np.outer(scales, scales))


def coins(noise: VectorNoise, rows: int, seed: int = 3) -> NDArray[np.uint64]:
    """Words for so many draws."""
    return seeded(seed).words(rows * noise.words).reshape(rows, noise.words)
