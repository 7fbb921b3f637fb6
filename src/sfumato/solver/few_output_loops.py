r"""The best channel to few outputs by an interior-point method, in room that is given.

The program and its Newton steps are those of `barrier.py`, which says why each is one symmetric
system of as many unknowns as symbols:

$$\min \sum_{x,y} b(x)\, g(x,y)\, C(x,y), \quad \sum_y g(x,y) = 1, \quad
  g \ge 0, \quad s(x,y) = (k+1) \sum_u b(u)\, g(u,y) - g(x,y) \ge 0$$

Here no array is made, so that the loops of a release can solve it at each step, and outputs are
taken four at a time, as LLVM's vectors: a step with 16 symbols and 8 outputs takes 2 us. Entry
`x * outputs + y` of a flat array belongs to symbol x and output y, and the number of outputs is a
multiple of four. Exchanges of columns (`simplex_loops.py`) are quicker up to some eight symbols;
beyond, prices swing, and it takes dozens of them where this takes six to ten steps.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats, apart
from sfumato.core.compiled import IN_PLACE, njit
from sfumato.core.lane_vectors import beside, four, item, lane, larger, largest, put, same
from sfumato.solver.lane_systems import LANES, added, factor, solve

Interior = tuple[Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats, Floats]
"""Costs, cells (g, s and their prices z, w), how they move, the curve at them, what a move aims at,
rank-one parts of the system, the system, vectors of symbols, and sums over them."""

# Rows that miss their sum by more than this are no channel.
_WRONG = 1e-7
# From this step on a gap that grows says that rounding has stopped progress.
_SETTLING = 5


def interior_room(size: int, outputs: int) -> Interior:
    """Room for programs with so many symbols and at most so many outputs."""
    padded, flat = -(-size // LANES) * LANES, size * outputs

    def floats(*shape: int) -> Floats:
        return apart(shape)

    return (
        floats(flat),
        floats(4, flat),
        floats(4, flat),
        floats(5, flat),
        floats(3, flat),
        floats(2, outputs, padded),
        floats(padded, padded),
        floats(5, padded),
        floats(2 * outputs),
    )


@njit(**IN_PLACE)
def interior_channel(
    belief: Floats, outputs: int, k: float, tolerance: float, max_steps: int, room: Interior
) -> int:
    """Mehrotra's predictor and corrector from the channel that ignores the truth.

    Args:
        belief: Probability of each true symbol.
        outputs: How many there are, a multiple of four.
        k: What ratios may be, the exponential of the budget.
        tolerance: Stop when the gap is at most this part of the cost.
        max_steps: Give up after so many steps.
        room: Begins with the losses; gets the coupling $g$ and the prices of the symbols' equations
            (`coupling_of` and `prices_of` say where).

    Returns:
        The number of steps, -1 when the method gave up.
    """
    costs, cells, moves, curve, aims, ranks, system, vectors, sums = room
    size, cap, count = belief.size, k + 1, belief.size * outputs
    dual, missing, change, over, weight = vectors[0], vectors[1], vectors[2], vectors[3], vectors[4]
    _start(belief, k, outputs, costs, weight, cells, dual)
    best = np.inf
    for step in range(max_steps):
        gap, cost = _residuals(belief, cap, outputs, costs, cells, dual, aims[2], missing)
        if not gap < np.inf or (step >= _SETTLING and gap >= best):
            return -1
        if gap <= tolerance * cost:
            off = 0
            for x in range(size):
                off += not abs(missing[x]) < _WRONG
            return step if off == 0 else -1
        best = gap
        _build(belief, cap, outputs, cells, curve, ranks, system)
        factor(system, size, over)
        for i in range(4):
            still = moves[i]
            for at in range(0, count, LANES):
                put(still, at, same(0.0))
        target, near, far = 0.0, 0.0, 0.0
        for corrector in range(2):
            _move(
                belief,
                cap,
                target,
                outputs,
                weight,
                cells,
                curve,
                aims,
                system,
                over,
                missing,
                change,
                moves,
                sums,
            )
            near, far = _reach(cells, curve, moves, count)
            if corrector == 0:
                left = _gap_after(cells, moves, count, min(1.0, near), min(1.0, far)) / gap
                target = left * left * left * gap / (2 * outputs)
        part = min(0.999, max(0.95, 1 - gap / cost))
        near, far = min(1.0, part * near), min(1.0, part * far)
        _advance(cells, moves, count, near, far)
        for x in range(size):
            dual[x] += far * change[x]
    return -1


@njit(**IN_PLACE, forceinline=True)
def coupling_of(room: Interior, cell: int) -> float:
    """An entry of the coupling that was found."""
    return float(item(room[1], cell))


@njit(**IN_PLACE)
def prices_of(belief: Floats, k: float, room: Interior, prices: Floats) -> None:
    """What a channel must pay for each symbol, as `simplex_loops.best_columns` prices columns.

    There rows of the channel sum to 1, here those of the coupling do: the difference is the part
    `1/k` that ignores the truth.
    """
    dual, paid = room[7][0], 0.0
    for x in range(belief.size):
        paid += dual[x]
    for x in range(belief.size):
        prices[x] = (dual[x] / belief[x] - paid / k) / (1 - 1 / k)


@njit(**IN_PLACE, forceinline=True)
def _roots(lanes: Any) -> Any:
    return beside(
        math.sqrt(lane(lanes, 0)),
        math.sqrt(lane(lanes, 1)),
        math.sqrt(lane(lanes, 2)),
        math.sqrt(lane(lanes, 3)),
    )


@njit(**IN_PLACE)
def _start(
    belief: Floats,
    k: float,
    outputs: int,
    costs: Floats,
    weight: Floats,
    cells: Floats,
    dual: Floats,
) -> None:
    """Costs from losses, barrier weights, cells and prices to begin with."""
    size, scale, total, part = belief.size, 0.0, 0.0, 1 / k
    g, s, z, w = cells[0], cells[1], cells[2], cells[3]
    for y in range(0, outputs, LANES):
        mean = same(0.0)
        for x in range(size):
            mean += same(belief[x]) * four(costs, x * outputs + y)
        scale += added(mean) / outputs
        for x in range(size):
            at = x * outputs + y
            put(costs, at, same(1 - part) * four(costs, at) + same(part) * mean)
    for x in range(size):
        weight[x] = math.sqrt(belief[x])
        total += weight[x]
    for x in range(size):
        weight[x] /= total
        least, price = np.inf, weight[x] * scale
        for y in range(outputs):
            least = min(least, item(costs, x * outputs + y))
        dual[x] = belief[x] * least
        for at in range(x * outputs, (x + 1) * outputs, LANES):
            put(costs, at, same(belief[x]) * four(costs, at))
            put(g, at, same(1.0 / outputs))
            put(s, at, same(k / outputs))
            put(z, at, same(price))
            put(w, at, same(price / k))


@njit(**IN_PLACE)
def _residuals(
    belief: Floats,
    cap: float,
    outputs: int,
    costs: Floats,
    cells: Floats,
    dual: Floats,
    residual: Floats,
    missing: Floats,
) -> tuple[float, float]:
    """Gap and cost; what the prices and the rows are off is filled in."""
    size, gap, cost = belief.size, same(0.0), same(0.0)
    g, s, z, w = cells[0], cells[1], cells[2], cells[3]
    for x in range(size):
        missing[x] = 1.0
    for y in range(0, outputs, LANES):
        pressed = same(0.0)
        for x in range(size):
            pressed += four(w, x * outputs + y)
        pressed *= same(cap)
        for x in range(size):
            at = x * outputs + y
            here, pull, push, paid = four(g, at), four(z, at), four(w, at), four(costs, at)
            put(residual, at, paid - same(dual[x]) - pull + push - same(belief[x]) * pressed)
            gap += pull * here + push * four(s, at)
            cost += paid * here
            missing[x] -= added(here)
    return added(gap), added(cost)


@njit(**IN_PLACE)
def _build(
    belief: Floats,
    cap: float,
    outputs: int,
    cells: Floats,
    curve: Floats,
    ranks: Floats,
    system: Floats,
) -> None:
    """The system in the prices, its upper triangle; `curve` as in `barrier.py`."""
    size, padded, one = belief.size, system.shape[1], same(1.0)
    g, s, z, w = cells[0], cells[1], cells[2], cells[3]
    inverse, p, t, over_g, over_s = curve[0], curve[1], curve[2], curve[3], curve[4]
    plus, minus = ranks[0], ranks[1]
    for y in range(0, outputs, LANES):
        first, second, cross = same(0.0), same(0.0), same(-1 / cap)
        for x in range(size):
            at, share = x * outputs + y, same(belief[x])
            put(over_g, at, one / four(g, at))
            put(over_s, at, one / four(s, at))
            pull, push = four(z, at) * four(over_g, at), four(w, at) * four(over_s, at)
            bend = one / (pull + push)
            along, across = bend * push, bend * share
            second += along * pull
            cross += along * share
            first += across * share
            put(inverse, at, bend)
            put(t, at, along)
            put(p, at, across)
        root = _roots(first * (first * second + cross * cross))
        second, cross, first = first / root, cross / root, one / _roots(first)
        for x in range(size):
            at = x * outputs + y
            along = second * four(t, at) - cross * four(p, at)
            across = first * four(p, at)
            put(t, at, along)
            put(p, at, across)
            for i in range(LANES):
                plus[y + i, x], minus[y + i, x] = lane(along, i), lane(across, i)
    for i in range(size):
        held = same(0.0)
        for y in range(0, outputs, LANES):
            held += four(inverse, i * outputs + y)
        for j in range(i & -LANES, padded, LANES):
            total = same(0.0)
            for y in range(0, outputs * padded, padded):
                total += same(item(plus, y + i)) * four(plus, y + j)
                total -= same(item(minus, y + i)) * four(minus, y + j)
            put(system, i * padded + j, total)
        system[i, i] += added(held)


@njit(**IN_PLACE)
def _move(
    belief: Floats,
    cap: float,
    target: float,
    outputs: int,
    weight: Floats,
    cells: Floats,
    curve: Floats,
    aims: Floats,
    system: Floats,
    over: Floats,
    missing: Floats,
    change: Floats,
    moves: Floats,
    sums: Floats,
) -> None:
    """The Newton step to products `target * weight`, less the second-order part of `moves`."""
    size, z, w = belief.size, cells[2], cells[3]
    inverse, p, t, over_g, over_s = curve[0], curve[1], curve[2], curve[3], curve[4]
    aim, slack, residual = aims[0], aims[1], aims[2]
    push, room, of_push, of_room = moves[0], moves[1], moves[2], moves[3]
    for x in range(change.size):
        change[x] = missing[x]
    for y in range(0, outputs, LANES):
        pressed, across, along = same(0.0), same(0.0), same(0.0)
        for x in range(size):
            at, level = x * outputs + y, same(target * weight[x])
            second = level - four(push, at) * four(of_push, at)
            put(aim, at, second * four(over_g, at) - four(z, at))
            second = level - four(room, at) * four(of_room, at)
            put(slack, at, second * four(over_s, at) - four(w, at))
            pressed += four(slack, at)
        pressed *= same(cap)
        for x in range(size):
            at = x * outputs + y
            out = four(aim, at) - four(slack, at) + same(belief[x]) * pressed - four(residual, at)
            across += four(p, at) * out
            along += four(t, at) * out
            put(push, at, out)
        put(sums, y, across)
        put(sums, outputs + y, along)
        for x in range(size):
            at = x * outputs + y
            out = four(inverse, at) * four(push, at) - across * four(p, at) + along * four(t, at)
            change[x] -= added(out)
    solve(system, size, over, change)
    for y in range(0, outputs, LANES):
        pressed, across, along = same(0.0), four(sums, y), four(sums, outputs + y)
        for x in range(size):
            at, rise = x * outputs + y, same(change[x])
            across += four(p, at) * rise
            along += four(t, at) * rise
        for x in range(size):
            at = x * outputs + y
            out = four(inverse, at) * (four(push, at) + same(change[x]))
            out += along * four(t, at) - across * four(p, at)
            pressed += same(belief[x]) * out
            put(push, at, out)
        pressed *= same(cap)
        for x in range(size):
            at = x * outputs + y
            out = four(push, at)
            put(room, at, pressed - out)
            put(of_push, at, four(aim, at) - four(z, at) * four(over_g, at) * out)
            out = four(room, at)
            put(of_room, at, four(slack, at) - four(w, at) * four(over_s, at) * out)


@njit(**IN_PLACE)
def _reach(cells: Floats, curve: Floats, moves: Floats, count: int) -> tuple[float, float]:
    """How far the cells and how far their prices can move before one of them is 0."""
    z, w, over_g, over_s = cells[2], cells[3], curve[3], curve[4]
    push, room, of_push, of_room = moves[0], moves[1], moves[2], moves[3]
    near, far, none = same(1e-30), same(1e-30), same(0.0)
    for at in range(0, count, LANES):
        near = larger(near, none - four(push, at) * four(over_g, at))
        near = larger(near, none - four(room, at) * four(over_s, at))
        far = larger(far, (none - four(of_push, at)) / four(z, at))
        far = larger(far, (none - four(of_room, at)) / four(w, at))
    return 1 / largest(near), 1 / largest(far)


@njit(**IN_PLACE)
def _gap_after(cells: Floats, moves: Floats, count: int, near: float, far: float) -> float:
    gap, by, paid = same(0.0), same(near), same(far)
    for i in range(2):
        have, move, price, change = cells[i], moves[i], cells[2 + i], moves[2 + i]
        for at in range(0, count, LANES):
            after = four(price, at) + paid * four(change, at)
            gap += (four(have, at) + by * four(move, at)) * after
    return added(gap)


@njit(**IN_PLACE)
def _advance(cells: Floats, moves: Floats, count: int, near: float, far: float) -> None:
    for i in range(4):
        have, move, length = cells[i], moves[i], same(near if i < 2 else far)
        for at in range(0, count, LANES):
            put(have, at, four(have, at) + length * four(move, at))
