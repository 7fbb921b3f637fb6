r"""Large alphabets: solve for groups of symbols, release for symbols.

If all symbols of a group share their row of the channel, the output tells the group at most; the
channel is feasible for the symbols as it stands, since ratios depend on the row alone. Which
method finds the rows depends on the loss: a closed form when every error costs the same, HiGHS
on 32 groups when the model-free leakage is capped, else the search of `grouped`, on
the table of the loss up to some hundred symbols and on cells of symbols beyond.

A large budget allows more groups than that: if each has at least the mass $1/(k+1)$, the
closed form $a(g'|g) = m_{g'}/k$, $a(g|g) = 1 - (1 - m_g)/k$ is optimal for groups and needs no
solver. The cheaper of the two channels is taken.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import SolverFailed
from sfumato.core.loss import Loss
from sfumato.solver.certify import certified, without_dust
from sfumato.solver.design_result import Design, measured
from sfumato.solver.dual import bound_from, dual_bound, floor_values
from sfumato.solver.even_loss import solve_even
from sfumato.solver.grouped import Grouped, balanced, finished, group_means, moved, solve_grouped
from sfumato.solver.linear_programs import solve_capped

_CAPPED_GROUPS, _CAPPED_OUTPUTS, _CELLS = 32, 64, 384
# Symbols up to which the whole program is solved where the search did not come near enough.
_WHOLE = 160
# Relative gaps: of the solve that tells which outputs of cells are used, and of a whole one.
_FAIR, _TIGHT = 0.005, 0.001
# A factor `k` from which the closed form on cells is tried as well.
_GENEROUS = 8.0
# Part of the cost: a channel on groups this near to its bound is taken.
_NEAR = 0.01
# A budget below this is too small for a solver: the best constant is returned.
_NOTHING = 1e-9


def design_large(belief: Floats, loss: Loss, epsilon: float, *, ldp: float | None = None) -> Design:
    """A certified channel near the optimum; its `gap` says how near.

    Only the columns of the loss that the channel releases are ever computed, unless the loss is
    small enough to be a table. Arguments are those of `optimal`, checked.
    """
    share = belief / belief.sum()
    constant = measured(
        Channel.constant(belief.size, int(loss.means(share).argmin())), belief, loss
    )
    if min(epsilon, epsilon if ldp is None else ldp) < _NOTHING:
        return replace(constant, lower_bound=0.0)
    # A model-free leakage of twice the budget holds anyway: such a cap only guides the rounding.
    active = ldp if ldp is not None and ldp < 2 * epsilon else None
    designs, bound = [constant], 0.0
    for solve in (solve_coarse, solve_whole):
        solved = solve(share, loss, epsilon, active)
        if solved is None:
            break
        designs.append(_certified(solved, belief, loss, epsilon, ldp))
        bound = max(bound, _bound(solved, share, loss, epsilon, active))
        if designs[-1].cost - bound <= _NEAR * designs[-1].cost:
            break
    return replace(min(designs, key=lambda design: design.cost), lower_bound=bound)


def _certified(
    solved: Grouped, belief: Floats, loss: Loss, epsilon: float, ldp: float | None
) -> Design:
    """The channel in integers that keep the budget."""
    columns = loss.columns(solved.outputs)
    share = belief / belief.sum()
    rows, left = without_dust(
        solved.rows[solved.groups], share, columns, np.arange(solved.outputs.size)
    )
    channel = certified(rows, belief, epsilon, ldp=ldp, outputs=solved.outputs[left])
    return measured(channel, belief, loss)


def _bound(solved: Grouped, share: Floats, loss: Loss, epsilon: float, ldp: float | None) -> float:
    if solved.lower_bound is not None:
        return solved.lower_bound
    return dual_bound(solved.prices, share, loss, epsilon, ldp)


def solve_coarse(belief: Floats, loss: Loss, epsilon: float, ldp: float | None = None) -> Grouped:
    """A near-optimal channel with few distinct rows; a cap is one of less than twice the budget."""
    if ldp is not None:
        return _capped(belief, loss, epsilon, ldp)
    wrong = _cost_of_any_error(loss)
    even = None if wrong is None else solve_even(belief, wrong, epsilon)
    if even is not None:
        return even
    solved = (
        solve_grouped(belief, loss.matrix, epsilon)
        if loss.stored
        else _on_cells(belief, loss, epsilon)
    )
    if portable.exp(epsilon) > _GENEROUS:
        cells = closed_form_cells(belief, loss, epsilon)
        if expected(cells, belief, loss) < expected(solved, belief, loss):
            return replace(cells, prices=solved.prices, lower_bound=solved.lower_bound)
    return solved


def solve_whole(
    belief: Floats, loss: Loss, epsilon: float, ldp: float | None = None
) -> Grouped | None:
    """Every symbol its own row and every output allowed; None where that would take long."""
    if ldp is not None or belief.size > _WHOLE:
        return None
    solved = balanced(belief, loss.matrix, epsilon, _TIGHT)
    everything = np.arange(belief.size)
    return Grouped(everything, solved.rows, everything, solved.prices)


def expected(grouped: Grouped, belief: Floats, loss: Loss) -> float:
    """Mean loss of a channel on groups."""
    mass, losses = group_means(belief, loss.columns(grouped.outputs), grouped.groups)
    return float(portable.dot(mass, (grouped.rows * losses).sum(axis=1)))


def centres_of(belief: Floats, loss: Loss, count: int) -> tuple[Ints, Ints]:
    """Outputs spread by belief and loss, and the group of symbols around each."""
    if loss.stored:
        from sfumato.solver.group_loops import spread_centres

        first = int(loss.means(belief).argmin())
        centres, nearest = spread_centres(belief, loss.matrix, first, count)
    else:
        from sfumato.core.coordinate_losses import place_centres

        assert loss.measure is not None
        assert loss.places is not None
        places = np.ascontiguousarray(loss.places.T)
        centres, nearest = place_centres(
            places, loss.measure.value, belief, int(belief.argmax()), count
        )
    used, groups = np.unique(nearest, return_inverse=True)
    return centres[used], groups


def _on_cells(belief: Floats, loss: Loss, epsilon: float) -> Grouped:
    """Search on cells of symbols, move the outputs to where symbols want them, solve once more."""
    centres, cells = centres_of(belief, loss, _CELLS)
    mass, losses = group_means(belief, loss.columns(centres), cells)
    coarse = solve_grouped(mass, losses, epsilon)
    outputs, losses = centres[coarse.outputs], np.ascontiguousarray(losses[:, coarse.outputs])
    columns = loss.columns(outputs)
    told = coarse.rows[coarse.groups[cells]]
    prices = coarse.prices[cells] + ((columns - losses[cells]) * told).sum(axis=1)
    values = floor_values(prices, belief, loss, epsilon)
    bound = bound_from(values, prices, belief, loss.bound)
    solved = balanced(mass, losses, epsilon, _FAIR)
    outputs = moved(outputs, values, loss.rows(outputs), solved, _FAIR)
    columns = loss.columns(outputs)
    # A cell that is cut by the border of two outputs' realms is split along it.
    groups = cells * outputs.size + columns.argmin(axis=1)
    groups = np.unique(groups, return_inverse=True)[1]
    done = finished(belief, columns, epsilon, groups, outputs, prices)
    return replace(done, lower_bound=bound)


def _cost_of_any_error(loss: Loss) -> float | None:
    """What every error costs, if all cost the same and the truth costs nothing."""
    if not loss.stored:
        return 1.0 if loss.all_alike else None
    wrong = float(loss.matrix[0, -1])
    even = wrong > 0 and np.array_equal(loss.matrix, wrong * (1 - np.eye(len(loss))))
    return wrong if even else None


def closed_form_cells(belief: Floats, loss: Loss, epsilon: float) -> Grouped:
    """The closed form on as many groups of mass at least `1/(k+1)` as can be had."""
    k = portable.exp(epsilon)
    centres, groups = centres_of(belief, loss, min(belief.size, int(k) + 1, _CELLS))
    mass, losses = group_means(belief, loss.columns(centres), groups)
    best = losses.argmin(axis=1)
    while mass.min() < 1 / (k + 1) and mass.size > 1:
        # The lightest group joins the one whose centre suits its members best.
        light = int(mass.argmin())
        offers = losses[light, best]
        offers[light] = np.inf
        host = int(offers.argmin())
        losses[host] = (mass[host] * losses[host] + mass[light] * losses[light]) / (
            mass[host] + mass[light]
        )
        mass[host] += mass[light]
        best[host] = losses[host].argmin()
        groups[groups == light] = host
        groups -= groups > light
        mass, best = np.delete(mass, light), np.delete(best, light)
        losses = np.delete(losses, light, axis=0)
    response = np.tile(mass / k, (mass.size, 1)) + (1 - 1 / k) * np.eye(mass.size)
    used, places = np.unique(best, return_inverse=True)
    rows = np.zeros((mass.size, used.size))
    np.add.at(rows.T, places, response.T)
    return Grouped(groups, rows, centres[used], np.zeros(belief.size))


def _capped(belief: Floats, loss: Loss, epsilon: float, ldp: float) -> Grouped:
    """HiGHS on groups, when rows must stay near each other."""
    centres, groups = centres_of(belief, loss, _CAPPED_GROUPS)
    outputs = np.union1d(centres, centres_of(belief, loss, _CAPPED_OUTPUTS)[0])
    columns = loss.columns(outputs)
    mass, losses = group_means(belief, columns, groups)
    try:
        solved = solve_capped(mass, losses, epsilon, ldp)
    except SolverFailed:
        # Extreme caps are too much for the solver; mixing brings any channel under them.
        return solve_coarse(belief, loss, min(epsilon, ldp))
    own = (solved.rows[groups] * (columns - losses[groups])).sum(axis=1)
    return Grouped(groups, solved.rows, outputs, solved.prices[groups] + own)
