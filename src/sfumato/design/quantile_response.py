r"""The fair rival for numbers: randomised response on quantiles, and the receiver's best guess.

The prior is cut into $m$ cells of equal mass, the cell of the value is told by $m$-ary randomised
response, and what leaves is the median of what is then believed: a function of the report, so
nothing more is told. Every $m$ is tried, each at the largest budget that its exact leakage under
the prior allows. Noise that is added to a number is no match for it where budgets are small.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato.design.numbers import NumberDesign, guessed, number_design
from sfumato.guarantees import LIP
from sfumato.leakage.information import information_leakage
from sfumato.mechanisms.channel import Channel
from sfumato.mechanisms.lattice import Lattice

Floats = NDArray[np.float64]

_MOST_CELLS = 64
_HALVINGS = 48


def quantile_response(lattice: Lattice, prior: ArrayLike, epsilon: float) -> NumberDesign:
    """Randomised response on the quantiles of the prior, with the best guess from its reports.

    Examples:
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> found = quantile_response(ages, bell / bell.sum(), epsilon=2.0)
        >>> found.cost, found.lip.epsilon <= 2.0
        (1.109, True)
    """
    belief = _checks.belief("prior", prior, lattice.count)
    budget = _checks.epsilon("epsilon", epsilon)
    best: NumberDesign | None = None
    tried: set[bytes] = set()
    for cells in range(1, min(_MOST_CELLS, lattice.count) + 1):
        owner = _quantile_cells(belief, cells)
        if owner.tobytes() in tried:
            continue
        tried.add(owner.tobytes())
        told = number_design(_response(owner, belief, budget), lattice, None, belief, LIP(budget))
        found = guessed(told, belief)
        if best is None or found.cost < best.cost:
            best = found
    assert best is not None  # one cell, a constant, is always tried
    return best


def _quantile_cells(belief: Floats, cells: int) -> NDArray[np.int64]:
    """The cell of each point: by the middle of its mass, so that a heavy point is not torn."""
    reached = (np.cumsum(belief) - 0.5 * belief) / belief.sum()
    owner = np.minimum((reached * cells).astype(np.int64), cells - 1)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)


def _response(owner: NDArray[np.int64], belief: Floats, budget: float) -> Channel:
    """Response among cells whose exact leakage is as large as the budget allows."""
    count = int(owner.max()) + 1
    places = np.array([int(np.flatnonzero(owner == cell)[0]) for cell in range(count)])

    def made(level: float) -> Channel:
        others = 1 / (count - 1 + math.exp(level))
        rows = np.full((owner.size, count), others)
        rows[np.arange(owner.size), owner] = 1 - (count - 1) * others
        return Channel.from_probabilities(rows, places)

    if count == 1:
        return Channel.constant(owner.size, int(places[0]))
    # The model-free level lies between the leakage under a prior and its double.
    low, high = budget * (1 - 1e-12), 2 * budget
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if information_leakage(made(middle), belief).epsilon <= budget:
            low = middle
        else:
            high = middle
    return made(low)
