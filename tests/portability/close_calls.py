"""Where the last bits decided more than last digits: inputs with many ties, and long searches."""

from collections.abc import Callable
from typing import Any

import numpy as np

from sfumato.models.mixture_fitting import fitted_mixture
from sfumato.temporal.least_noise import least_noise_bound, least_noise_budgets
from sfumato.temporal.loss_function import LossFunction


def heaped_mixtures() -> dict[str, Any]:
    """Mixtures of records in fives and tens, of which many lie between two centres."""
    told = {}
    for seed in (183, 387, 398, *range(20)):
        rng = np.random.default_rng(seed)
        rows, size, count = (int(rng.choice(some)) for some in ((150, 1200), (1, 2, 3), (3, 4, 6)))
        records = rng.integers(-4, 5, (rows, size)) + rng.integers(-4, 5, (rows, size)) * 1.0
        records[:, -1] += records[:, 0]
        fitted = fitted_mixture((records - records.mean(axis=0)) / records.std(axis=0), count, 1e-4)
        told[f"{seed}"] = [fitted.weights, fitted.means, fitted.covariances]
    return told


def least_noise() -> dict[str, Any]:
    """Budgets of up to fifty moments under strong and weak correlation, and their bounds."""
    told = {}
    for seed in (22, 51, 121, *range(6)):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 6))
        backward, forward = (_loss(rng, size) for _ in range(2))
        steps = int(rng.choice([3, 8, 20, 50]))
        given = (backward, forward, float(rng.choice([0.3, 1, 2, 5])), steps)
        told[f"{seed}"] = [least_noise_budgets(*given), least_noise_bound(*given)]
    return told


def _loss(rng: np.random.Generator, size: int) -> LossFunction:
    table = rng.integers(1, 30, (size, size)) + np.eye(size) * rng.integers(0, 100)
    return LossFunction.of(table / table.sum(axis=1, keepdims=True))


CASES: dict[str, Callable[[], dict[str, Any]]] = {
    "heaped-mixtures": heaped_mixtures,
    "least-noise": least_noise,
}
