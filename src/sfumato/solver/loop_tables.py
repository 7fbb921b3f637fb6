"""The tables of a policy as its loops want them: made once, from those that are stored.

What is added says nothing new: the tree in one word a node, with leaves that lead to themselves,
so that several beliefs go down it side by side; and a bound on what mixing can cost, so that costs
are looked up only where it matters.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.solver.solving_tables import are_solving

if TYPE_CHECKING:
    from sfumato.solver.policy import Tables

SYMBOL_BITS = 20
"""A node of the tree is a place to go on from and, in so many bits, a symbol."""
_ROUNDING = 1e-9
"""Far more than the rounding of a mean of costs, as a part of it."""


class LoopTables(NamedTuple):
    """Kept channels and the tree that leads to them.

    Attributes:
        nodes: As in `Tables`; so are those that are not named here.
        extremes: With room behind them, so that four columns can be read at once.
        tree: For each node the first of its two branches and the symbol whose running sum is asked
            for; a leaf leads to itself.
        thresholds: What that sum is compared with; infinite at a leaf.
        rises: By what part of its cost mixing makes a channel dearer, divided by the mixing weight:
            an upper bound at every belief. Infinite where there is none.
    """

    nodes: Ints
    local: Floats
    row_of: NDArray[np.uint16]
    costs: Floats
    weights: Floats
    outputs: Ints
    extremes: Floats
    splits: Ints
    tree: Ints
    thresholds: Floats
    candidates: Ints
    rises: Floats

    @classmethod
    def of(cls, tables: Tables, scale: float) -> LoopTables:
        """From the tables of a policy, and what its costs are a part of, as in `Policy.scale`."""
        *_, outputs, extremes, splits, thresholds, candidates = tables
        leaf = splits[:, 0] < 0
        places = np.arange(len(splits))
        tree = np.where(leaf, places, splits[:, 1]) << SYMBOL_BITS
        tree |= np.where(leaf, 0, splits[:, 0])
        rises = np.zeros(0) if are_solving(tables) else _rises(tables[3], scale)
        return cls(
            *tables[:5],
            outputs=outputs,
            extremes=in_fours(extremes),
            splits=splits,
            tree=tree,
            thresholds=np.where(leaf, math.inf, thresholds),
            candidates=candidates,
            rises=rises,
        )


def in_fours(extremes: Floats) -> Floats:
    """Extremes of columns, with room behind them: four can be read at once, whichever is first."""
    return np.concatenate([extremes, np.ones((3, 2))])


def _rises(costs: Floats, scale: float) -> Floats:
    plain, blind = costs[:, 0], costs[:, 1]
    most: Floats
    rises: Floats
    # Costs may be anything that is finite: what overflows is no bound, and costs are looked up.
    with np.errstate(all="ignore"):
        if scale > 0.0:
            most = np.maximum((blind - plain).max(axis=1), 0.0)
            rises = (most + _ROUNDING * np.abs(costs).max(axis=(1, 2))) / scale
            return rises
        # A quotient of means is at most the largest quotient; where both are 0 it says nothing.
        quotients = np.where((plain == 0.0) & (blind == 0.0), 1.0, blind / plain)
        most = np.where(costs.min(axis=(1, 2)) < 0.0, math.inf, quotients.max(axis=1))
        rises = np.maximum(most - 1.0, 0.0) + _ROUNDING * (most + 1.0)
        return rises
