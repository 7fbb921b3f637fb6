r"""A proven floor under the expected loss of every channel within a budget.

For any prices $\nu(x)$, every channel with ratios in $[1/k, k]$ costs at least

$$\sum_x b(x)\,\nu(x) \;+\; \min_y \min_r \sum_x b(x)\, r(x)\, (D(x,y) - \nu(x))$$

where the inner minimum is over the shapes that one output may have: $1/k \le r \le k$,
$\sum_x b(x) r(x) = 1$, and $\max r / \min r \le h$ if the model-free leakage is capped at
$\log h$. A best shape is high on the symbols of least $D - \nu$ and low on the rest; its value is
a ratio of a piecewise linear to a linear function of the mass $q$ that is high, so the
minimum is at a corner. Good prices come from the dual solution of the linear program, but
the bound holds for any.

For a loss that is too large to be a matrix the inner minimum is replaced by a floor under it, which
needs one pass over pairs of symbols (`floor_values`); a cap is then left out, since that only
admits more channels and so can only lower the bound.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.loss import Loss
from sfumato.core.numerics import UNIT

# Outputs whose level is computed exactly at first; values made exact at a time, and how often.
_LEVELS, _EXACT, _PASSES = 400, 64, 16


def dual_bound(
    prices: Floats, belief: Floats, loss: Floats | Loss, epsilon: float, ldp: float | None = None
) -> float:
    """Evaluate the bound at given prices, rounded down.

    Examples:
        >>> import math
        >>> even, wrong = np.array([0.5, 0.5]), np.array([[0.0, 1.0], [1.0, 0.0]])
        >>> dual_bound(np.array([0.5, 0.5]), even, wrong, epsilon=math.log(3))
        0.1666667
    """
    share = belief / belief.sum()
    if isinstance(loss, Loss) and not loss.stored:
        return bound_from(floor_values(prices, share, loss, epsilon), prices, share, loss.bound)
    table = loss.matrix if isinstance(loss, Loss) else loss
    shapes = best_shape_values(prices, share, table, epsilon, ldp)
    return bound_from(shapes, prices, share, float(table.max()))


def bound_from(shapes: Floats, prices: Floats, share: Floats, largest: float) -> float:
    """The bound from the values of all outputs, less what floating point may have added."""
    # Sums of `n` terms, a quotient and an interpolation, each of at most this size.
    scale = float(largest + np.abs(prices).max())
    error = (16 * share.size + 64) * UNIT * scale
    return float(portable.dot(share, prices) + shapes.min() - error)


def best_shape_values(
    prices: Floats, belief: Floats, loss: Floats, epsilon: float, ldp: float | None = None
) -> Floats:
    """For each output, the least cost of a unit of it after prices are paid."""
    k = portable.exp(epsilon)
    if ldp is None:
        from sfumato.solver.column_loops import gathered_at

        # Without a cap the value falls with q, so the minimum is at the largest, 1/(k+1).
        mean, gathered = gathered_at(belief, loss, prices, 1 / (k + 1))
        return np.asarray(mean / k + (k - 1 / k) * gathered)
    surplus = loss - prices[:, None]
    order = np.argsort(surplus, axis=0)
    sorted_surplus = np.take_along_axis(surplus, order, axis=0)
    mass = belief[order]
    zero = np.zeros((1, loss.shape[1]))
    # Corners: high mass q and the surplus of the symbols in it.
    corner = np.vstack([zero, mass.cumsum(axis=0)])
    total = np.vstack([zero, (mass * sorted_surplus).cumsum(axis=0)])
    return np.asarray(_least_over_corners(corner, total, total[-1], k, portable.exp(ldp)))


def floor_values(prices: Floats, belief: Floats, loss: Loss, epsilon: float) -> Floats:
    r"""Floors under `best_shape_values` for a loss between places, exact where they are least.

    Without a cap the value of an output is $m/k + (k - 1/k)\,G$, with $m$ the mean surplus and $G$
    the surplus $u$ of the cheapest mass $s = 1/(k+1)$. By duality
    $G \ge s\,t - \sum_x b(x) (t - u(x))^+$ for every level $t$, with equality at the surplus where
    the mass is reached. Levels are computed for some outputs and borrowed by their neighbours;
    the least floors are then replaced by exact values until no other can be below them.

    Rounding is covered by `bound_from`: a sum that is larger than a few times $s$ puts its floor
    far below every possible $G \ge -s \max |u|$, and a smaller one errs by as little as $G$ itself.
    """
    from sfumato.core.coordinate_losses import gathered_floors, place_centres

    assert loss.measure is not None
    assert loss.places is not None
    k = portable.exp(epsilon)
    share = 1 / (k + 1)
    places, code = np.ascontiguousarray(loss.places.T), loss.measure.value
    some, nearest = place_centres(places, code, np.full(len(loss), 1 / len(loss)), 0, _LEVELS)
    columns = loss.columns(some)
    step = float(np.median(columns[np.arange(len(loss)), nearest]))
    # A guess is good enough: every few symbols stand for all.
    few = np.arange(0, len(loss), 1 + len(loss) // _LEVELS // 4)
    levels = _levels(columns[few], belief[few], prices[few], share)[nearest]
    means, gathered = gathered_floors(places, code, belief, prices, share, levels, step)
    values = (means - portable.dot(belief, prices)) / k + (k - 1 / k) * gathered
    exact = np.zeros(len(loss), dtype=np.bool_)
    for _ in range(_PASSES):
        least = np.argsort(values, kind="stable")[:_EXACT]
        if exact[least[0]]:
            break
        values[least] = best_shape_values(prices, belief, loss.columns(least), epsilon)
        exact[least] = True
    return np.asarray(values)


def _levels(columns: Floats, belief: Floats, prices: Floats, share: float) -> Floats:
    """The surplus at which the cheapest symbols of each output reach their share of the mass."""
    surplus = columns - prices[:, None]
    order = np.argsort(surplus, axis=0)
    reached = (
        (belief[order].cumsum(axis=0) < share * belief.sum()).sum(axis=0).clip(max=len(belief) - 1)
    )
    outputs = np.arange(columns.shape[1])
    return np.asarray(surplus[order[reached, outputs], outputs])


def _least_over_corners(corner: Floats, total: Floats, mean: Floats, k: float, h: float) -> Floats:
    """Minimum over q of the value of the shape that is high on mass q.

    Two regimes meet at $q = (h-k)/(k(h-1))$. Below it the high ratio is $k$ and the low one
    $(1-kq)/(1-q)$; above it the cap binds: low $1/(1+(h-1)q)$, high $h$ times that. The low
    ratio may not fall under $1/k$, which ends the first regime at $q = 1/(k+1)$.
    """
    best = mean.copy()  # r = 1 everywhere: the output ignores the truth
    switch = min(max((h - k) / (k * (h - 1)), 0.0), 1 / (k + 1))
    for q, gained in _corners_within(corner, total, 0.0, switch):
        low, high = (1 - k * q) / (1 - q), k
        best = np.minimum(best, low * mean + (high - low) * gained)
    for q, gained in _corners_within(corner, total, switch, min(1.0, (k - 1) / (h - 1))):
        low = 1 / (1 + (h - 1) * q)
        best = np.minimum(best, low * (mean + (h - 1) * gained))
    return best


def _corners_within(
    corner: Floats, total: Floats, start: float, end: float
) -> list[tuple[Floats, Floats]]:
    """Every corner in [start, end] and both ends, with the surplus gathered up to each."""
    if start > end:
        return []
    at_ends = [(np.full(corner.shape[1], q), _gathered(corner, total, q)) for q in (start, end)]
    inside = np.clip(corner, start, end)
    # A corner outside the range is moved to its end; its surplus is read off there.
    low, high = at_ends[0][1], at_ends[1][1]
    gained = np.where(corner < start, low, np.where(corner > end, high, total))
    return [*at_ends, *zip(inside, gained, strict=True)]


def _gathered(corner: Floats, total: Floats, q: float) -> Floats:
    """Surplus gathered up to mass `q` in each column: linear between corners."""
    columns = np.arange(corner.shape[1])
    after = np.clip((corner < q).sum(axis=0), 1, len(corner) - 1)
    x0, x1 = corner[after - 1, columns], corner[after, columns]
    y0, y1 = total[after - 1, columns], total[after, columns]
    part = np.clip((q - x0) / np.maximum(x1 - x0, np.finfo(np.float64).tiny), 0.0, 1.0)
    return np.asarray(y0 + part * (y1 - y0))
