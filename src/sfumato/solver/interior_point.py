r"""An interior-point method for the capped transport problem behind the optimal channel.

$$\min_{g, P} \sum_{x,y} b(x) C(x,y) g(x,y) + \sum_y c(y) P(y), \qquad
  \sum_y g(x,y) = 1,\; \sum_x b(x) g(x,y) = P(y),\; 0 \le g(x,y) \le K P(y)$$

where $K = k + 1$. Both sides have a strictly feasible start in closed form, so every iterate is
feasible and the method may stop at any gap. Symbols meet each other only through two numbers of
each output, $P(y)$ and its price $\mu(y)$: a Newton step is a symmetric system of twice the number
of outputs, not of symbols. Loops run over outputs innermost, add in a fixed order and use no
BLAS: the same input gives the same bits on any number of threads.

Cells hold four numbers, stacked in `cells`: $g$, its slack $t = KP - g$, and their prices $z, w$.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.compiled import njit

# Part of the way to the boundary that a step may go.
_BOUNDARY = 0.97
# A gap, on losses of at most 1, that is not worth a step.
_NOTHING = 1e-14


@njit(cache=True, error_model="numpy")
def interior_point(
    belief: Floats,
    loss: Floats,
    fixed: Floats,
    cap: float,
    cells: Floats,
    marginal: Floats,
    prices: Floats,
    worth: Floats,
    tolerance: float,
    max_steps: int,
) -> int:
    """Minimise to a relative gap by Mehrotra's predictor and corrector, in place.

    Args:
        belief: Probability of each symbol.
        loss: Cost of a unit of `g`: row = symbol, column = output.
        fixed: Cost of a unit of each output's marginal.
        cap: The bound `K` of `g / P`.
        cells: A strictly feasible start, from `cold`; the solution afterwards.
        marginal: `P`, likewise.
        prices: Of the symbols, likewise.
        worth: Prices of the outputs, likewise.
        tolerance: Stop when the gap is below this part of the cost.
        max_steps: Stop after so many steps, whatever the gap.

    Returns:
        The number of steps taken.
    """
    size, outputs = loss.shape
    moves = np.empty((4, size, outputs))
    aims, inverse = np.empty((2, size, outputs)), np.empty((2, size, outputs))
    curve = np.empty((size, 2 * outputs))  # beta * h, then h
    system, unknown = np.empty((2 * outputs, 2 * outputs)), np.empty(2 * outputs)
    weight, change = np.empty(size), np.empty(size)
    for step in range(max_steps):
        gap, cost = _gap(belief, loss, fixed, cells, marginal)
        if gap <= tolerance * cost + _NOTHING:
            return step
        _build(belief, cap, cells, inverse, curve, weight, system)
        _factor(system)
        for i in range(2):
            for x in range(size):
                for y in range(outputs):
                    aims[i, x, y] = -cells[2 + i, x, y]
        near, far = _move(
            belief, cap, cells, aims, inverse, curve, weight, system, unknown, change, moves
        )
        saved = _dot(fixed, unknown[:outputs])
        for x in range(size):
            saved += belief[x] * _dot(loss[x], moves[0, x])
        left = max(0.0, 1 + near * saved / gap - far * (1 + saved / gap))
        _correct(belief, gap * left**3 / (2 * size * outputs), cells, inverse, moves, aims)
        near, far = _move(
            belief, cap, cells, aims, inverse, curve, weight, system, unknown, change, moves
        )
        near, far = min(1.0, _BOUNDARY * near), min(1.0, _BOUNDARY * far)
        for i in range(4):
            for x in range(size):
                for y in range(outputs):
                    cells[i, x, y] += (near if i < 2 else far) * moves[i, x, y]
        for y in range(outputs):
            marginal[y] += near * unknown[y]
            worth[y] += far * unknown[outputs + y]
        for x in range(size):
            prices[x] += far * change[x]
    return max_steps


@njit(cache=True, error_model="numpy")
def _sum(values: Floats) -> float:
    """The sum, from the first to the last: loops are compiled far sooner than sums of arrays."""
    total = 0.0
    for value in values:
        total += value
    return total


@njit(cache=True, error_model="numpy")
def _dot(values: Floats, others: Floats) -> float:
    """The sum of products, likewise."""
    total = 0.0
    for i in range(values.size):
        total += values[i] * others[i]
    return total


@njit(cache=True, error_model="numpy")
def cold(
    belief: Floats, loss: Floats, fixed: Floats, cap: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """Every symbol released alike, and prices at which each cell costs about the same."""
    size, outputs = loss.shape
    cells = np.empty((4, size, outputs))
    prices = np.empty(size)
    spread = 0.0
    for x in range(size):
        total = 0.0
        for y in range(outputs):
            total += loss[x, y] + fixed[y]
        prices[x] = total / outputs
        for y in range(outputs):
            spread = max(spread, abs(loss[x, y] + fixed[y] - prices[x]))
    height = 1.5 * spread + _NOTHING
    low = height / (cap - 1)
    marginal, worth = np.empty(outputs), np.empty(outputs)
    for y in range(outputs):
        marginal[y], worth[y] = 1 / outputs, cap * low - fixed[y]
    for x in range(size):
        for y in range(outputs):
            cells[0, x, y], cells[1, x, y] = 1 / outputs, (cap - 1) / outputs
            cells[2, x, y] = loss[x, y] + fixed[y] - prices[x] + height
            cells[3, x, y] = low
        prices[x] -= (cap - 1) * low + height
    return cells, marginal, prices, worth


@njit(cache=True, error_model="numpy")
def _gap(
    belief: Floats, loss: Floats, fixed: Floats, cells: Floats, marginal: Floats
) -> tuple[float, float]:
    gap, cost = np.zeros(fixed.size), np.empty(fixed.size)
    for y in range(fixed.size):
        cost[y] = fixed[y] * marginal[y]
    for x in range(belief.size):
        for y in range(fixed.size):
            gap[y] += belief[x] * (
                cells[0, x, y] * cells[2, x, y] + cells[1, x, y] * cells[3, x, y]
            )
            cost[y] += belief[x] * loss[x, y] * cells[0, x, y]
    return _sum(gap), _sum(cost)


@njit(cache=True, error_model="numpy")
def _build(
    belief: Floats,
    cap: float,
    cells: Floats,
    inverse: Floats,
    curve: Floats,
    weight: Floats,
    system: Floats,
) -> None:
    r"""The upper half of the system in the moves of $P$ and $\mu$, symbols eliminated.

    A cell moves by $h(\rho + \beta\,\Delta P + \Delta\nu + \Delta\mu)$ with $1/h = z/g + w/t$ and
    $\beta = K w/t$; the equation of a symbol has the single unknown $\Delta\nu(x)$ besides.
    """
    size, outputs = belief.size, cells.shape[2]
    own, cross, other = np.zeros(outputs), np.zeros(outputs), np.zeros(outputs)
    for x in range(size):
        first, second = curve[x, :outputs], curve[x, outputs:]
        g, t = inverse[0, x], inverse[1, x]
        share = belief[x]
        for y in range(outputs):
            g[y], t[y] = 1 / cells[0, x, y], 1 / cells[1, x, y]
            slope = cells[3, x, y] * t[y]
            h = 1 / (cells[2, x, y] * g[y] + slope)
            first[y], second[y] = cap * slope * h, h
            own[y] += share * cap * slope * (first[y] - cap)
            cross[y] += share * first[y]
            other[y] += share * h
        weight[x] = 1 / _sum(second)
    for p in range(2 * outputs):
        for q in range(2 * outputs):
            system[p, q] = 0.0
    for y in range(outputs):
        system[y, y], system[y, outputs + y] = own[y], cross[y] - 1
        system[outputs + y, outputs + y] = other[y]
    scale = np.empty(size)
    for x in range(size):
        scale[x] = weight[x] * belief[x]
    _take_products(curve, scale, system)


@njit(cache=True, error_model="numpy")
def _take_products(rows: Floats, scale: Floats, system: Floats) -> None:
    """Subtract the scaled squares of the rows, eight at a time to spare memory traffic."""
    size, width = rows.shape
    for x in range(0, size - 7, 8):
        for p in range(width):
            a, b, c, d = rows[x, p:], rows[x + 1, p:], rows[x + 2, p:], rows[x + 3, p:]
            e, f, g, h = rows[x + 4, p:], rows[x + 5, p:], rows[x + 6, p:], rows[x + 7, p:]
            sa, sb = scale[x] * a[0], scale[x + 1] * b[0]
            sc, sd = scale[x + 2] * c[0], scale[x + 3] * d[0]
            se, sf = scale[x + 4] * e[0], scale[x + 5] * f[0]
            sg, sh = scale[x + 6] * g[0], scale[x + 7] * h[0]
            target = system[p, p:]
            for q in range(target.size):
                target[q] -= ((sa * a[q] + sb * b[q]) + (sc * c[q] + sd * d[q])) + (
                    (se * e[q] + sf * f[q]) + (sg * g[q] + sh * h[q])
                )
    for x in range(size - size % 8, size):
        for p in range(width):
            target, row = system[p, p:], rows[x, p:]
            factor = scale[x] * row[0]
            for q in range(target.size):
                target[q] -= factor * row[q]


@njit(cache=True, error_model="numpy")
def _factor(system: Floats) -> None:
    """Eliminate in place. The block of P is negative and the rest then positive: no pivoting."""
    size = len(system)
    for j in range(size):
        for i in range(j + 1, size):
            target, row = system[i, i:], system[j, i:]
            factor = row[0] / system[j, j]
            for c in range(target.size):
                target[c] -= factor * row[c]


@njit(cache=True, error_model="numpy")
def _solve(system: Floats, right: Floats) -> None:
    size = len(system)
    for j in range(size):
        factor = right[j] / system[j, j]
        for i in range(j + 1, size):
            right[i] -= factor * system[j, i]
        right[j] = factor
    for i in range(size - 2, -1, -1):
        for c in range(i + 1, size):
            right[i] -= system[i, c] / system[i, i] * right[c]


@njit(cache=True, error_model="numpy")
def _move(
    belief: Floats,
    cap: float,
    cells: Floats,
    aims: Floats,
    inverse: Floats,
    curve: Floats,
    weight: Floats,
    system: Floats,
    unknown: Floats,
    change: Floats,
    moves: Floats,
) -> tuple[float, float]:
    """The Newton step that would make `g * z` and `t * w` move by `aims`, each over `g` and `t`.

    Returns:
        How far `g, t` and how far `z, w` can move before one of them is 0, at most 1.
    """
    outputs = cells.shape[2]
    right, other = np.zeros(outputs), np.zeros(outputs)
    both = np.empty(outputs)
    for x in range(belief.size):
        first, second = curve[x, :outputs], curve[x, outputs:]
        aim, slack = aims[0, x], aims[1, x]
        for y in range(outputs):
            both[y] = aim[y] - slack[y]
        change[x] = -_dot(second, both) * weight[x]
        share = belief[x]
        for y in range(outputs):
            need = both[y] + change[x]
            right[y] -= share * (cap * slack[y] + first[y] * need)
            other[y] -= share * second[y] * need
    for y in range(outputs):
        unknown[y], unknown[outputs + y] = right[y], other[y]
    _solve(system, unknown)
    for y in range(outputs):
        right[y], other[y] = unknown[y], unknown[outputs + y]
    rate, fall = np.ones(outputs), np.ones(outputs)
    for x in range(belief.size):
        first, second = curve[x, :outputs], curve[x, outputs:]
        aim, slack = aims[0, x], aims[1, x]
        for y in range(outputs):
            both[y] = first[y] * right[y] + second[y] * other[y]
        change[x] -= _sum(both) * weight[x]
        for y in range(outputs):
            g = both[y] + second[y] * (aim[y] - slack[y] + change[x])
            t = cap * right[y] - g
            moves[0, x, y], moves[1, x, y] = g, t
            g, t = g * inverse[0, x, y], t * inverse[1, x, y]
            z, w = aim[y] - cells[2, x, y] * g, slack[y] - cells[3, x, y] * t
            moves[2, x, y], moves[3, x, y] = z, w
            rate[y] = max(rate[y], max(-g, -t))
            fall[y] = max(fall[y], max(-z / cells[2, x, y], -w / cells[3, x, y]))
    fastest, steepest = 1.0, 1.0
    for y in range(outputs):
        fastest, steepest = max(fastest, rate[y]), max(steepest, fall[y])
    return 1 / fastest, 1 / steepest


@njit(cache=True, error_model="numpy")
def _correct(
    belief: Floats, target: float, cells: Floats, inverse: Floats, moves: Floats, aims: Floats
) -> None:
    """Aim at equal products, less the second-order part of the predicted step."""
    least = 1e-3 / belief.size  # a symbol that hardly occurs shall not steer the rest
    for i in range(2):
        for x in range(belief.size):
            level = target / max(belief[x], least)
            aim, primal, dual, price = aims[i, x], moves[i, x], moves[2 + i, x], cells[2 + i, x]
            for y in range(aim.size):
                aim[y] = (level - primal[y] * dual[y]) * inverse[i, x, y] - price[y]
