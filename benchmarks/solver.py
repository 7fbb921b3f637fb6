"""The whole certified design against HiGHS's transport form alone, in one run: `make bench`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from sfumato.design.optimal import optimal
from sfumato.design.programs import solve_transport

BELIEFS = 10


def seconds(solve: Callable[[np.ndarray], object], beliefs: list[np.ndarray]) -> float:
    """Mean time of one call."""
    start = time.perf_counter()
    for belief in beliefs:
        solve(belief)
    return (time.perf_counter() - start) / len(beliefs)


def main() -> None:
    """Measure and print a table."""
    rng = np.random.default_rng(5)
    optimal(np.full(3, 1 / 3), 1 - np.eye(3), 1.0)  # compile
    print("symbols, design ms, HiGHS transport form / design, gap to the bound")
    for size in (4, 8, 16, 24, 48, 100):
        place = np.arange(size, dtype=float)
        loss = np.abs(place[:, None] - place)
        beliefs = [rng.dirichlet(np.ones(size)) for _ in range(BELIEFS if size < 48 else 2)]
        ours = seconds(lambda belief, loss=loss: optimal(belief, loss, 1.0), beliefs)
        highs = seconds(lambda belief, loss=loss: solve_transport(belief, loss, 1.0), beliefs)
        gap = max((d.gap or 0.0) / d.cost for d in (optimal(b, loss, 1.0) for b in beliefs))
        print(f"{size}, {1e3 * ours:.2f}, {highs / ours:.1f}, {gap:.1e}", flush=True)


if __name__ == "__main__":
    main()
