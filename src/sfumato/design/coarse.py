"""Large alphabets: solve for groups of symbols, release for symbols.

If all symbols of a group share their row of the channel, the output tells the group at most. The
problem then has one equation per group and is solved exactly by column generation; its channel
is feasible for the symbols as it stands, since ratios depend on the row alone. Groups are chosen
where belief and loss say that distinctions matter.

A large budget allows more groups than that: if each has at least the mass $1/(k+1)$, the
closed form $a(g'|g) = m_{g'}/k$, $a(g|g) = 1 - (1 - m_g)/k$ is optimal for groups and needs no
solver. The cheaper of the two channels is taken.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sfumato.design.programs import Solution, solve_capped, solve_columns

_GROUPS = 32
_OUTPUTS = 64


def solve_coarse(
    belief: NDArray[np.float64],
    loss: NDArray[np.float64],
    epsilon: float,
    ldp: float | None = None,
) -> tuple[Solution, NDArray[np.int64]] | None:
    """A near-optimal channel and the outputs it uses; None when the method gave up."""
    centres = _centres(belief, loss, _GROUPS)
    groups = _grouped(loss, centres)
    # Once more, with the best output of each group as its centre.
    centres = np.unique(_group_losses(belief, loss, groups)[1].argmin(axis=1))
    groups = _grouped(loss, centres)
    outputs = np.union1d(centres, _centres(belief, loss, _OUTPUTS))
    mass, losses = _group_losses(belief, loss[:, outputs], groups)
    solved = (
        solve_columns(mass, losses, epsilon)
        if ldp is None
        else solve_capped(mass, losses, epsilon, ldp)
    )
    if solved is None:
        return None
    rows = solved.rows[groups]
    prices = _spread(solved, loss[:, outputs], losses, groups)
    if ldp is None and math.exp(epsilon) > _GROUPS / 4:
        cells = _cells(belief, loss, epsilon)
        if _cost(belief, loss, *cells) < _cost(belief, loss, rows, outputs):
            rows, outputs = cells
    return Solution(rows, prices), outputs


def _cells(
    belief: NDArray[np.float64], loss: NDArray[np.float64], epsilon: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The closed form on as many groups of mass at least `1/(k+1)` as can be had."""
    k = math.exp(epsilon)
    groups = _grouped(loss, _centres(belief, loss, min(belief.size, int(k) + 1)))
    mass, losses = _group_losses(belief, loss, groups)
    centres = losses.argmin(axis=1)
    while mass.min() < 1 / (k + 1) and mass.size > 1:
        # The lightest group joins the one whose centre suits its members best.
        light = int(mass.argmin())
        offers = losses[light, centres]
        offers[light] = np.inf
        host = int(offers.argmin())
        losses[host] = (mass[host] * losses[host] + mass[light] * losses[light]) / (
            mass[host] + mass[light]
        )
        mass[host] += mass[light]
        centres[host] = losses[host].argmin()
        groups[groups == light] = host
        groups -= groups > light
        mass, centres = np.delete(mass, light), np.delete(centres, light)
        losses = np.delete(losses, light, axis=0)
    told = np.tile(mass / k, (mass.size, 1)) + (1 - 1 / k) * np.eye(mass.size)
    outputs, places = np.unique(centres, return_inverse=True)
    rows = np.zeros((mass.size, outputs.size))
    np.add.at(rows.T, places, told.T)
    return rows[groups], outputs


def _cost(
    belief: NDArray[np.float64],
    loss: NDArray[np.float64],
    rows: NDArray[np.float64],
    outputs: NDArray[np.int64],
) -> float:
    return float(belief @ (rows * loss[:, outputs]).sum(axis=1))


def _centres(
    belief: NDArray[np.float64], loss: NDArray[np.float64], count: int
) -> NDArray[np.int64]:
    """Outputs taken one by one, each for the symbol whose share of the loss is largest so far."""
    chosen = [int((belief @ loss).argmin())]
    nearest = loss[:, chosen[0]].copy()
    for _ in range(count - 1):
        worst = int((belief * nearest).argmax())
        if nearest[worst] == 0.0:
            break
        chosen.append(int(loss[worst].argmin()))
        nearest = np.minimum(nearest, loss[:, chosen[-1]])
        nearest[worst] = 0.0
    return np.unique(chosen)


def _grouped(loss: NDArray[np.float64], centres: NDArray[np.int64]) -> NDArray[np.int64]:
    """The nearest centre of each symbol; symbols equally far from all of them stay together."""
    to_centres = loss[:, centres]
    groups = to_centres.argmin(axis=1)
    undecided = (to_centres == to_centres[:, :1]).all(axis=1)
    if len(centres) > 1 and undecided.any():
        groups[undecided] = len(centres)
    return np.unique(groups, return_inverse=True)[1].astype(np.int64)


def _group_losses(
    belief: NDArray[np.float64], loss: NDArray[np.float64], groups: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mass of each group, and its mean loss for each output."""
    members = np.zeros((int(groups.max()) + 1, belief.size))
    members[groups, np.arange(belief.size)] = belief
    mass = members.sum(axis=1)
    return mass, np.ascontiguousarray(members @ loss / mass[:, None])


def _spread(
    solved: Solution,
    loss: NDArray[np.float64],
    losses: NDArray[np.float64],
    groups: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Prices of symbols: that of the group, and what the symbol itself would add to the cost."""
    rows = solved.rows[groups]
    return np.asarray(solved.prices[groups] + (rows * (loss - losses[groups])).sum(axis=1))
