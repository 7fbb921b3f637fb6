"""Temporal leakage: one value of the loss function, the whole function, and steps over time.

Rivals, in the same run: the paper's Algorithm 1 (corrected) in numpy, and HiGHS on the linear
program of each pair of rows, as the paper used a commercial solver. Processor seconds, one core.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from sfumato.temporal.loss_function import LossFunction, temporal_loss
from sfumato.temporal.over_time import temporal_leakage

Floats = NDArray[np.float64]
ALPHA = 1.0


def matrix(size: int, seed: int = 0) -> Floats:
    """Rows of uniform numbers, as in the paper."""
    rows = np.random.default_rng(seed).random((size, size))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def algorithm_1(rows: Floats, alpha: float) -> float:
    """The paper's Algorithm 1, with whole rows as numpy arrays."""
    growth, best = math.expm1(alpha), 0.0
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            if i == j:
                continue
            inside = first > second
            while True:
                q, d = first[inside].sum(), second[inside].sum()
                bound = (q * growth + 1) / (d * growth + 1)
                dropped = inside & (first <= bound * second)
                if not dropped.any():
                    break
                inside &= ~dropped
            best = max(best, math.log(bound))
    return best


def highs(rows: Floats, alpha: float) -> float:
    """One linear program for each pair: the fraction's denominator is made 1."""
    size, most, best = len(rows), math.exp(alpha), 0.0
    # Variables: the scaled vector and its least entry m; m <= x <= e^alpha m.
    below = np.hstack([-np.eye(size), np.ones((size, 1))])
    above = np.hstack([np.eye(size), np.full((size, 1), -most)])
    limits = np.vstack([below, above])
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            if i != j:
                found = linprog(
                    np.append(-first, 0.0),
                    limits,
                    np.zeros(2 * size),
                    np.append(second, 0.0)[None, :],
                    [1.0],
                    method="highs",
                )
                best = max(best, math.log(-found.fun))
    return best


def seconds(run: Callable[[], object], times: int = 3) -> float:
    """Processor seconds, the least of some runs."""
    found = []
    for _ in range(times):
        began = time.process_time()
        run()
        found.append(time.process_time() - began)
    return min(found)


def one_value() -> None:
    """One value of the loss function, as the matrix grows."""
    print("## One value of the loss function\n")
    print("| n | ms | numpy Algorithm 1 / ours | HiGHS / ours | largest difference |")
    print("|---|---|---|---|---|")
    for size in (10, 20, 50, 100, 200, 500, 1000):
        rows = matrix(size)
        ours = temporal_loss(rows, ALPHA)
        spent = seconds(lambda rows=rows: temporal_loss(rows, ALPHA), 5)
        cells, apart = ["", ""], 0.0
        for place, (rival, most) in enumerate(((algorithm_1, 200), (highs, 20))):
            if size <= most:
                began = time.process_time()
                found = rival(rows, ALPHA)
                cells[place] = f"{(time.process_time() - began) / spent:,.0f}"
                apart = max(apart, abs(found - ours))
        print(f"| {size} | {1e3 * spent:.3f} | {cells[0]} | {cells[1]} | {apart:.0e} |")


def whole_function() -> None:
    """The whole function, and what it saves."""
    print("\n## The whole function\n")
    print("| n | corners | seconds | us a value afterwards | direct / afterwards |")
    print("|---|---|---|---|---|")
    for size in (10, 50, 200, 500):
        rows = matrix(size)
        spent = seconds(lambda rows=rows: LossFunction.of(rows), 1)
        loss = LossFunction.of(rows)
        levels = np.linspace(0.01, 3, 1000)
        each = seconds(lambda loss=loss, levels=levels: [loss(level) for level in levels]) / 1000
        direct = seconds(lambda rows=rows: temporal_loss(rows, ALPHA))
        print(
            f"| {size} | {loss.gaps.size} | {spent:.3f} | {1e6 * each:.2f} | {direct / each:,.0f} |"
        )


def over_time() -> None:
    """Steps over time, all at once: backward alone, and both directions."""
    print("\n## Over time (n = 50)\n")
    loss = LossFunction.of(matrix(50))
    budgets = np.full(1_000_000, 0.1)
    loss.accumulated(budgets[:10])
    all_at_once = seconds(lambda: loss.accumulated(budgets))
    both = seconds(lambda: temporal_leakage(budgets, loss, loss), 1)
    rate = 1e-6 * budgets.size / all_at_once
    print(f"- backward leakage, known budgets: {rate:.1f} million steps/s")
    print(f"- both directions of all of them: {1e-6 * budgets.size / both:.1f} million steps/s")


if __name__ == "__main__":
    temporal_loss(matrix(5), ALPHA)
    one_value()
    whole_function()
    over_time()
