"""The whole certified design against HiGHS on both forms of its program: `make bench`.

For the textbook form HiGHS gets its matrices ready-made and is timed alone; for the transport form
the time to build them counts, as in `solve_transport`. The design is timed from the arguments to
the certified channel, proof included. Ratios are to the design within a thousandth. All in one
run, so that ratios mean something.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

from sfumato import loss as losses
from sfumato.core.alphabet import Alphabet
from sfumato.core.loss import Loss
from sfumato.solver.linear_programs import solve_transport
from sfumato.solver.optimal_channel import optimal

Floats = NDArray[np.float64]

EPSILONS = (0.3, 1.0, 2.0)
NEAR = 1e-3
GRIDS = {8: (2, 4), 16: (4, 4), 24: (4, 6), 48: (6, 8), 100: (10, 10), 200: (10, 20), 400: (20, 20)}
TEXTBOOK, TRANSPORT = 100, 100
"""Largest alphabets that HiGHS is given in either form."""
SLOW = 2.0
"""Seconds after which one belief must do."""


def textbook(belief: Floats, loss: Floats, epsilon: float) -> Callable[[], object]:
    """The program as it stands on paper, a(y|x) between P(y)/k and k P(y), ready to be solved."""
    size, k = len(belief), math.exp(epsilon)
    unit = sparse.eye_array(size * size)
    marginal = sparse.kron(np.ones((size, 1)), sparse.kron(belief[None, :], sparse.eye_array(size)))
    below = sparse.vstack([marginal / k - unit, unit - k * marginal], format="csr")
    sums = sparse.kron(sparse.eye_array(size), np.ones((1, size)), format="csr")
    cost = (belief[:, None] * loss).ravel()
    zeros, ones = np.zeros(2 * size * size), np.ones(size)
    return lambda: linprog(cost, below, zeros, sums, ones, method="highs")


def seconds(solve: Callable[[], object], repeats: int) -> float:
    """Least time of one call: what a busy neighbour adds is no part of it."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        solve()
        best = min(best, time.perf_counter() - start)
        if best > SLOW:
            break
    return best


def losses_of(size: int) -> Iterator[Loss]:
    """Three losses on alphabets of a size."""
    line, grid = Alphabet.of_size(size), Alphabet.grid(*GRIDS[size])
    yield from (losses.absolute(line), losses.hamming(line), losses.euclidean(grid))


def row(size: int, loss: Loss, epsilon: float, beliefs: list[Floats]) -> str:
    """One line of the table: means over beliefs."""
    ours, rough, paper, form, gaps, rough_gaps = [], [], [], [], [], []
    for belief in beliefs:
        for times, proven, tolerance in ((ours, gaps, 0.0), (rough, rough_gaps, NEAR)):
            design = optimal(belief, loss, epsilon, tolerance=tolerance)
            proven.append((design.gap or 0.0) / design.cost)
            call = partial(optimal, belief, loss, epsilon, tolerance=tolerance)
            times.append(seconds(call, 9 if size < 100 else 2))
        if size <= TEXTBOOK:
            paper.append(seconds(textbook(belief, loss.matrix, epsilon), 3 if size < 24 else 1))
        if size <= TRANSPORT:
            call = partial(solve_transport, belief, loss.matrix, epsilon)
            form.append(seconds(call, 3 if size < 24 else 1))
        if size >= TEXTBOOK:
            break
    cells = [f"{size}", loss.name, f"{epsilon:g}"]
    cells += [f"{1e3 * np.mean(ours):.3f}", f"{max(gaps):.0e}"]
    cells += [f"{1e3 * np.mean(rough):.3f}", f"{max(rough_gaps):.0e}"]
    for peer in (paper, form):
        cells.append(f"{1e3 * np.mean(peer):.1f}" if peer else "-")
        cells.append(f"{np.mean(peer) / np.mean(rough):.0f}" if peer else "-")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Measure and print a table."""
    rng = np.random.default_rng(5)
    heads = ["symbols", "loss", "epsilon", "design ms", "gap", f"within {NEAR:g}: ms", "gap"]
    heads += ["HiGHS textbook ms", "ratio", "HiGHS transport ms", "ratio"]
    print("| " + " | ".join(heads) + " |")
    print("|---" * len(heads) + "|")
    for size in GRIDS:
        beliefs = [rng.dirichlet(np.ones(size)) for _ in range(5 if size < 48 else 2)]
        for loss in losses_of(size):
            for epsilon in EPSILONS if size <= 48 else (1.0,):
                print(row(size, loss, epsilon, beliefs), flush=True)


if __name__ == "__main__":
    main()
