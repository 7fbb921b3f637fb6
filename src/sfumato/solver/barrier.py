r"""An interior-point method for the optimal channel on alphabets of medium size.

With $a(y|x) = P(y)/k + (1 - 1/k)\,g(x,y)$ the program is (see `design.programs`)

$$\min \sum_{x,y} b(x)\, g(x,y)\, C(x,y), \quad \sum_y g(x,y) = 1, \quad
  g \ge 0, \quad s(x,y) = (k+1) \sum_u b(u)\, g(u,y) - g(x,y) \ge 0$$

where $C(x,y) = (1 - 1/k)\,D(x,y) + \sum_u b(u)\,D(u,y)/k$. The Hessian of one output is diagonal
plus rank two, so a Newton step costs one symmetric system of as many unknowns as symbols. Cells
lie with the output innermost; sums run over symbols outermost, in a fixed order, without BLAS.

Products of cells and their prices are driven to $\mu \sqrt{b(x)}$: rare symbols matter less, but
not as much less as their probability.
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

# A pivot lost to rounding: its unknown stays where it is.
_LOST = 1e300


@njit(cache=True, error_model="numpy")
def barrier(
    belief: Floats, loss: Floats, k: float, tolerance: float, max_steps: int
) -> tuple[Floats, Floats, int]:
    """Mehrotra's predictor and corrector from the channel that ignores the truth.

    Args:
        belief: Probability of each true symbol.
        loss: Row = true symbol, column = candidate output.
        k: The exponential of the budget.
        tolerance: Stop when the gap is at most this part of the cost.
        max_steps: Stop after so many steps, or when rounding stops progress.

    Returns:
        The coupling $g$, its row prices per unit of belief, and the number of steps.
    """
    size, outputs = loss.shape
    costs, weight, cells, dual = _start(belief, loss, k)
    moves = np.empty_like(cells)
    aims, curve = np.empty((3, size, outputs)), np.empty((5, size, outputs))
    coupling, prices = cells[0].copy(), dual.copy()
    system, change, missing = np.empty((size, size)), np.empty(size), np.empty(size)
    best, steps = np.inf, 0
    while steps < max_steps:
        gap, cost = _residuals(belief, costs, k + 1, cells, dual, aims[2], missing)
        if not gap < np.inf or (best < 1e-3 * cost and gap >= best):
            break
        best = gap
        coupling[:], prices[:] = cells[0], dual
        if gap <= tolerance * cost:
            break
        _build(belief, k + 1, cells, curve, system)
        _factor(system)
        moves[:] = 0.0
        target, near, far = 0.0, 0.0, 0.0
        for corrector in range(2):
            _move(belief, k + 1, target, weight, cells, curve, aims, system, missing, change, moves)
            near, far = _reach(cells, moves)
            if corrector == 0:
                left = _gap_after(cells, moves, min(1.0, near), min(1.0, far)) / gap
                target = left**3 * gap / (2 * outputs * weight.sum())
        part = min(0.999, max(0.95, 1 - gap / cost))
        near, far = min(1.0, part * near), min(1.0, part * far)
        _advance(cells, moves, near, far)
        for x in range(size):
            dual[x] += far * change[x]
        steps += 1
    return coupling, prices / belief, steps


@njit(cache=True, error_model="numpy")
def _start(belief: Floats, loss: Floats, k: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Costs, barrier weights, cells (g, s and their prices z, w) and prices of the symbols."""
    size, outputs = loss.shape
    means = np.zeros(outputs)
    for x in range(size):
        for y in range(outputs):
            means[y] += belief[x] * loss[x, y]
    costs, cells = np.empty((size, outputs)), np.empty((4, size, outputs))
    weight, dual, scale = np.sqrt(belief), np.empty(size), means.sum() / outputs
    weight /= weight.sum()
    for x in range(size):
        least = np.inf
        for y in range(outputs):
            cost = (1 - 1 / k) * loss[x, y] + means[y] / k
            costs[x, y] = belief[x] * cost
            least = min(least, cost)
        dual[x] = belief[x] * least
        cells[0, x], cells[1, x] = 1 / outputs, k / outputs
        cells[2, x], cells[3, x] = weight[x] * scale, weight[x] * scale / k
    return costs, weight, cells, dual


@njit(cache=True, error_model="numpy")
def _residuals(
    belief: Floats,
    costs: Floats,
    cap: float,
    cells: Floats,
    dual: Floats,
    residual: Floats,
    missing: Floats,
) -> tuple[float, float]:
    """Gap and cost; what the prices and the rows are off is filled in."""
    size, outputs = costs.shape
    g, s, z, w = cells[0], cells[1], cells[2], cells[3]
    pressed, gap, cost = np.zeros(outputs), np.zeros(outputs), np.zeros(outputs)
    for x in range(size):
        row = w[x]
        for y in range(outputs):
            pressed[y] += row[y]
    for x in range(size):
        gx, sx, zx, wx, cx, excess = g[x], s[x], z[x], w[x], costs[x], residual[x]
        share, price = cap * belief[x], dual[x]
        for y in range(outputs):
            excess[y] = cx[y] - price - zx[y] + wx[y] - share * pressed[y]
        for y in range(outputs):
            gap[y] += zx[y] * gx[y] + wx[y] * sx[y]
        for y in range(outputs):
            cost[y] += cx[y] * gx[y]
        missing[x] = 1.0 - gx.sum()
    return gap.sum(), cost.sum()


@njit(cache=True, error_model="numpy")
def _build(belief: Floats, cap: float, cells: Floats, curve: Floats, system: Floats) -> None:
    r"""The system in the prices, and the inverse Hessian of each output.

    With $\Delta = z/g + w/s$ and $v = w/s$ that inverse is $\Delta^{-1} - pp^T + tt^T$, where
    $p$ is proportional to $b/\Delta$ and $t$ to a combination of $v/\Delta$ and $p$. `curve` holds
    $1/\Delta$, $p$, $t$, $1/g$ and $1/s$.
    """
    size, outputs = cells.shape[1:]
    g, s, z, w = cells[0], cells[1], cells[2], cells[3]
    inverse, p, t = curve[0], curve[1], curve[2]
    _over(g, curve[3])
    _over(s, curve[4])
    _times(z, curve[3], p)
    _times(w, curve[4], t)
    _over_sum(p, t, inverse)
    _times(inverse, t, t)
    first, second, cross = np.zeros(outputs), np.zeros(outputs), np.full(outputs, -1 / cap)
    for x in range(size):
        ix, px, tx, share = inverse[x], p[x], t[x], belief[x]
        for y in range(outputs):
            second[y] += tx[y] * px[y]
            cross[y] += tx[y] * share
        for y in range(outputs):
            px[y] = ix[y] * share
            first[y] += px[y] * share
    for y in range(outputs):
        root = math.sqrt(first[y] * (first[y] * second[y] + cross[y] * cross[y]))
        second[y], cross[y] = first[y] / root, cross[y] / root
        first[y] = 1 / math.sqrt(first[y])
    for x in range(size):
        px, tx = p[x], t[x]
        for y in range(outputs):
            tx[y] = second[y] * tx[y] - cross[y] * px[y]
        for y in range(outputs):
            px[y] *= first[y]
    _gather(p, t, system)
    for x in range(size):
        system[x, x] += inverse[x].sum()


@njit(cache=True, error_model="numpy")
def _gather(p: Floats, t: Floats, system: Floats) -> None:
    """Upper triangle of the sum of all $tt^T - pp^T$, four outputs at a time."""
    size, outputs = p.shape
    padded = -(-outputs // 4) * 4
    plus, minus = np.zeros((padded, size)), np.zeros((padded, size))
    for x in range(size):
        for y in range(outputs):
            plus[y, x], minus[y, x] = t[x, y], p[x, y]
    system[:] = 0.0
    for y in range(0, padded, 4):
        for i in range(size):
            at = i & -4  # whole vectors
            row = system[i, at:]
            a, b, c, d = plus[y, at:], plus[y + 1, at:], plus[y + 2, at:], plus[y + 3, at:]
            e, f, g, h = minus[y, at:], minus[y + 1, at:], minus[y + 2, at:], minus[y + 3, at:]
            k = i - at
            ai, bi, ci, di, ei, fi, gi, hi = a[k], b[k], c[k], d[k], e[k], f[k], g[k], h[k]
            for j in range(row.size):
                row[j] += ((ai * a[j] + bi * b[j]) + (ci * c[j] + di * d[j])) - (
                    (ei * e[j] + fi * f[j]) + (gi * g[j] + hi * h[j])
                )


@njit(cache=True, error_model="numpy")
def _factor(system: Floats) -> None:
    """Cholesky's method in the upper triangle, in place."""
    size = len(system)
    for j in range(size):
        if not system[j, j] > 0.0:
            system[j, j] = _LOST
        scale = 1 / math.sqrt(system[j, j])
        for c in range(j, size):
            system[j, c] *= scale
        for i in range(j + 1, size):
            target, row = system[i, i:], system[j, i:]
            factor = row[0]
            for c in range(target.size):
                target[c] -= factor * row[c]


@njit(cache=True, error_model="numpy")
def _solve(system: Floats, right: Floats) -> None:
    size = len(system)
    for i in range(size):
        right[i] /= system[i, i]
        for c in range(i + 1, size):
            right[c] -= right[i] * system[i, c]
    for i in range(size - 1, -1, -1):
        for c in range(i + 1, size):
            right[i] -= system[i, c] * right[c]
        right[i] /= system[i, i]


@njit(cache=True, error_model="numpy")
def _move(
    belief: Floats,
    cap: float,
    target: float,
    weight: Floats,
    cells: Floats,
    curve: Floats,
    aims: Floats,
    system: Floats,
    missing: Floats,
    change: Floats,
    moves: Floats,
) -> None:
    """The Newton step to products `target * weight`, less the second-order part of `moves`."""
    size, outputs = cells.shape[1:]
    z, w = cells[2], cells[3]
    inverse, p, t, over_g, over_s = curve[0], curve[1], curve[2], curve[3], curve[4]
    aim, slack, residual = aims[0], aims[1], aims[2]
    pressed, across, along = np.zeros(outputs), np.zeros(outputs), np.zeros(outputs)
    push = moves[0]
    # Loops over few rows each: the compiler vectorises no others.
    for x in range(size):
        level = target * weight[x]
        ax, mx, ox, ux, cx = aim[x], moves[0, x], moves[2, x], over_g[x], z[x]
        for y in range(outputs):
            ax[y] = (level - mx[y] * ox[y]) * ux[y] - cx[y]
        ax, mx, ox, ux, cx = slack[x], moves[1, x], moves[3, x], over_s[x], w[x]
        for y in range(outputs):
            ax[y] = (level - mx[y] * ox[y]) * ux[y] - cx[y]
        for y in range(outputs):
            pressed[y] += cap * ax[y]
    parts = np.empty(outputs)
    for x in range(size):
        out, ax, sx, rx = push[x], aim[x], slack[x], residual[x]
        px, tx, share = p[x], t[x], belief[x]
        for y in range(outputs):
            out[y] = ax[y] - sx[y] + share * pressed[y] - rx[y]
        for y in range(outputs):
            across[y] += px[y] * out[y]
        for y in range(outputs):
            along[y] += tx[y] * out[y]
    for x in range(size):
        out, ix, px, tx = push[x], inverse[x], p[x], t[x]
        for y in range(outputs):
            parts[y] = ix[y] * out[y] - across[y] * px[y] + along[y] * tx[y]
        change[x] = missing[x] - parts.sum()
    _solve(system, change)
    for x in range(size):
        px, tx, rise = p[x], t[x], change[x]
        for y in range(outputs):
            across[y] += px[y] * rise
        for y in range(outputs):
            along[y] += tx[y] * rise
    pressed[:] = 0.0
    for x in range(size):
        out, ix, px, tx, rise, share = push[x], inverse[x], p[x], t[x], change[x], cap * belief[x]
        for y in range(outputs):
            out[y] = ix[y] * (out[y] + rise) - across[y] * px[y] + along[y] * tx[y]
        for y in range(outputs):
            pressed[y] += share * out[y]
    for x in range(size):
        out, room = push[x], moves[1, x]
        for y in range(outputs):
            room[y] = pressed[y] - out[y]
    _less(aim, z, over_g, push, moves[2])
    _less(slack, w, over_s, moves[1], moves[3])


@njit(cache=True, error_model="numpy")
def _over(cells: Floats, out: Floats) -> None:
    flat, to = cells.reshape(-1), out.reshape(-1)
    for i in range(to.size):
        to[i] = 1 / flat[i]


@njit(cache=True, error_model="numpy")
def _over_sum(left: Floats, right: Floats, out: Floats) -> None:
    one, other, to = left.reshape(-1), right.reshape(-1), out.reshape(-1)
    for i in range(to.size):
        to[i] = 1 / (one[i] + other[i])


@njit(cache=True, error_model="numpy")
def _times(left: Floats, right: Floats, out: Floats) -> None:
    one, other, to = left.reshape(-1), right.reshape(-1), out.reshape(-1)
    for i in range(to.size):
        to[i] = one[i] * other[i]


@njit(cache=True, error_model="numpy")
def _less(aim: Floats, price: Floats, over: Floats, move: Floats, out: Floats) -> None:
    """What a price must move by when its cell moves."""
    start, factor, scale = aim.reshape(-1), price.reshape(-1), over.reshape(-1)
    shift, to = move.reshape(-1), out.reshape(-1)
    for i in range(to.size):
        to[i] = start[i] - factor[i] * scale[i] * shift[i]


@njit(cache=True, error_model="numpy")
def _reach(cells: Floats, moves: Floats) -> tuple[float, float]:
    """How far the cells and how far their prices can move before one of them is 0."""
    size, outputs = cells.shape[1:]
    reached = np.empty(2)
    for side in range(2):
        rate = np.full(outputs, 1e-30)
        for i in range(2 * side, 2 * side + 2):
            for x in range(size):
                have, move = cells[i, x], moves[i, x]
                for y in range(outputs):
                    fall = -move[y] / have[y]
                    rate[y] = fall if fall > rate[y] else rate[y]
        reached[side] = 1 / rate.max()
    return reached[0], reached[1]


@njit(cache=True, error_model="numpy")
def _gap_after(cells: Floats, moves: Floats, near: float, far: float) -> float:
    size, outputs = cells.shape[1:]
    gap = np.zeros(outputs)
    for i in range(2):
        for x in range(size):
            have, move, price, change = cells[i, x], moves[i, x], cells[2 + i, x], moves[2 + i, x]
            for y in range(outputs):
                gap[y] += (have[y] + near * move[y]) * (price[y] + far * change[y])
    return float(gap.sum())


@njit(cache=True, error_model="numpy")
def _advance(cells: Floats, moves: Floats, near: float, far: float) -> None:
    for i in range(4):
        have, move, length = cells[i].reshape(-1), moves[i].reshape(-1), near if i < 2 else far
        for c in range(have.size):
            have[c] += length * move[c]
