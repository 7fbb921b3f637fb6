r"""Loops of far-sighted steps: what outputs cost with all that follows, and what that is worth.

A value function is a set of vectors: the stream costs $\alpha_i \cdot b$ from a belief $b$ on, if
it is released as the $i$-th vector says. What a step looks at is told in four tables (`Outlook`):
the symbol of each state, how states move on, what outputs cost; and groups of symbols that share
a row of the channel. Sums are never regrouped: vectors are the same on every machine.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.array_loops import divide_by_sums, largest, least, least_place, marked, taken
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log
from sfumato.solver.column_loops import column_generation, gathered_at

_DUST = 1e-9
"""Outputs rarer than this are the solver's, not part of an optimum."""
_MAJOR, _WORTHWHILE = 30, 0.2
"""How often outputs are priced, and the part of the best one's worth from which others join it."""


@njit(cache=True, error_model="numpy")
def product(left: Floats, right: Floats) -> Floats:
    """The product of two tables, added up in the order of their entries."""
    total = np.zeros((len(left), right.shape[1]))
    for i in range(len(left)):
        for k in range(left.shape[1]):
            part = left[i, k]
            if part != 0.0:
                for j in range(right.shape[1]):
                    total[i, j] += part * right[k, j]
    return total


@njit(cache=True, error_model="numpy")
def grouped_costs(
    share: Floats,
    symbols: Ints,
    groups: Ints,
    count: int,
    losses: Floats,
    chosen: Ints,
    ahead: Floats,
    vectors: Ints,
) -> tuple[Floats, Floats]:
    """Mass of each group of symbols, and what outputs cost it: symbol and vector.

    Args:
        share: The belief about states.
        symbols: The symbol of each state.
        groups: The group of each symbol.
        count: How many groups there are.
        losses: Row = true symbol, column = released one.
        chosen: The symbols that may leave.
        ahead: Row = state, column = vector: the cost of all that follows.
        vectors: The vectors that may follow.

    Returns:
        The masses, and a table of costs above the cheapest output for each group, which decides
        nothing; column `z * len(vectors) + j`.
    """
    mass, worth = np.zeros(count), np.zeros((count, vectors.size))
    now = np.zeros((count, chosen.size))
    for f in range(share.size):
        x = symbols[f]
        g = groups[x]
        mass[g] += share[f]
        for j in range(vectors.size):
            worth[g, j] += share[f] * ahead[f, vectors[j]]
        for z in range(chosen.size):
            now[g, z] += share[f] * losses[x, chosen[z]]
    costs = np.empty((count, chosen.size * vectors.size))
    for g in range(count):
        for j in range(vectors.size):
            worth[g, j] /= mass[g]
        for z in range(chosen.size):
            now[g, z] /= mass[g]
        cheapest = least(now[g]) + least(worth[g])
        for z in range(chosen.size):
            for j in range(vectors.size):
                costs[g, z * vectors.size + j] = now[g, z] + worth[g, j] - cheapest
    return mass, costs


@njit(cache=True, error_model="numpy")
def best_outputs(
    mass: Floats, costs: Floats, epsilon: float, settled: float
) -> tuple[bool, Floats, Ints]:
    """The cheapest channel to some outputs of many: outputs that would help join those in use.

    Args:
        mass: The belief, summing to 1.
        costs: Row = true symbol, column = output; none below 0.
        epsilon: Budget for the leakage under the belief.
        settled: Part of the cost that may be left open.

    Returns:
        Whether it ended, rows of the channel, and the outputs that it uses.
    """
    size, outputs = costs.shape
    k = exp(epsilon)
    share, tiny = 1 / (k + 1), 1e-11 * largest(costs)
    used, means = np.zeros(outputs, dtype=np.bool_), np.zeros(outputs)
    for x in range(size):
        used[least_place(costs[x])] = True
        for y in range(outputs):
            means[y] += mass[x] * costs[x, y]
    used[least_place(means)] = True
    starts, begun = np.empty((size, 0)), np.empty(0, dtype=np.int64)
    place = np.zeros(outputs, dtype=np.int64)
    for _ in range(_MAJOR):
        active = marked(used)
        table = np.empty((size, active.size))
        for y in range(active.size):
            place[active[y]] = y
            for x in range(size):
                table[x, y] = costs[x, active[y]]
        # The columns of the last basis come first: few exchanges lead on from there.
        columns, released, weights, prices, done = column_generation(
            mass, table, share, tiny, 60 * size + 200, 0.3 * settled, starts, taken(place, begun)
        )
        if done < 0:
            return False, table, active
        means, parts = gathered_at(mass, costs, prices, share)
        worth = np.empty(outputs)
        for y in range(outputs):
            worth[y] = means[y] / k + (k - 1 / k) * parts[y]
        paid = 0.0
        for x in range(size):
            paid += mass[x] * prices[x]
        best = least(worth)
        if -best <= max(settled * paid, tiny):
            for x in range(size):
                for y in range(active.size):
                    table[x, y] = 0.0
            for j in range(size):
                if weights[j] > 0.0 and released[j] >= 0:
                    for x in range(size):
                        table[x, released[j]] += weights[j] * columns[j, x]
            kept, chosen = compact(mass, table)
            return True, kept, taken(active, chosen)
        basic = np.empty(size, dtype=np.bool_)
        for i in range(size):
            basic[i] = released[i] >= 0
        basis = marked(basic)
        starts, begun = np.empty((size, basis.size)), np.empty(basis.size, dtype=np.int64)
        for i in range(basis.size):
            begun[i] = active[released[basis[i]]]
            for x in range(size):
                starts[x, i] = columns[basis[i], x]
        for y in np.argsort(worth)[: 3 * size]:
            if worth[y] <= _WORTHWHILE * best:
                used[y] = True
    return False, table, active


@njit(cache=True, error_model="numpy")
def compact(share: Floats, rows: Floats) -> tuple[Floats, Ints]:
    """The columns that are used, and their places; rows sum to 1 again."""
    size, outputs = rows.shape
    chances = np.zeros(outputs)
    for x in range(size):
        for y in range(outputs):
            chances[y] += share[x] * rows[x, y]
    often = np.empty(outputs, dtype=np.bool_)
    for y in range(outputs):
        often[y] = chances[y] > _DUST
    columns = marked(often)
    kept = np.empty((size, columns.size))
    for x in range(size):
        for y in range(columns.size):
            kept[x, y] = rows[x, columns[y]]
    divide_by_sums(kept)
    return kept, columns


@njit(cache=True, error_model="numpy")
def leakage_at(likelihoods: Floats, extremes: Floats, belief: Floats) -> float:
    """The leakage of a channel under another belief than the one it was made for.

    Args:
        likelihoods: Row = output, column = state of the stream.
        extremes: Row = output: its largest and its least probability; none have 0.
        belief: About the state.
    """
    ratio = 1.0
    for y in range(len(likelihoods)):
        if extremes[y, 0] > 0.0:  # those beyond the last output are empty
            chance = 0.0
            for s in range(belief.size):
                chance += belief[s] * likelihoods[y, s]
            ratio = max(ratio, max(extremes[y, 0] / chance, chance / extremes[y, 1]))
    return log(ratio)


@njit(cache=True, error_model="numpy")
def channel_leakage(rows: Floats, belief: Floats) -> float:
    """The leakage of a channel, row = symbol, under a belief about symbols."""
    ratio = 1.0
    for y in range(rows.shape[1]):
        chance, high, low = 0.0, 0.0, np.inf
        for x in range(belief.size):
            chance += belief[x] * rows[x, y]
            high, low = max(high, rows[x, y]), min(low, rows[x, y])
        if high > 0.0:
            ratio = max(ratio, max(high / chance, chance / low))
    return log(ratio)


@njit(cache=True, error_model="numpy")
def best_vector(
    belief: Floats, vectors: Floats, likelihoods: Floats, extremes: Floats, limit: float
) -> tuple[int, float]:
    """The cheapest vector that can be believed here, and its promise.

    A vector is the cost of a channel that was made for another belief. Where that would leak more
    than `limit`, the promise cannot be kept; if all would, the one that leaks least is taken.
    """
    best, worth, least = 0, np.inf, np.inf
    for j in range(len(vectors)):
        promise = 0.0
        for s in range(belief.size):
            promise += vectors[j, s] * belief[s]
        if least <= limit and promise >= worth:
            continue
        leaks = leakage_at(likelihoods[j], extremes[j], belief)
        if leaks <= limit or leaks < least:
            best, worth, least = j, promise, leaks
    return best, worth


@njit(cache=True, error_model="numpy")
def followed(
    share: Floats, rows: Floats, symbols: Ints, groups: Ints, moves: Floats
) -> tuple[Floats, Floats]:
    """Probability of each output, and the belief about the state after it."""
    outputs = rows.shape[1]
    chances, beliefs = np.zeros(outputs), np.zeros((outputs, moves.shape[1]))
    for f in range(share.size):
        g = groups[symbols[f]]
        for y in range(outputs):
            mass = share[f] * rows[g, y]
            chances[y] += mass
            for s in range(moves.shape[1]):
                beliefs[y, s] += mass * moves[f, s]
    divide_by_sums(beliefs)
    return chances, beliefs


@njit(cache=True, error_model="numpy")
def best_symbols(
    share: Floats, rows: Floats, symbols: Ints, groups: Ints, losses: Floats
) -> tuple[Ints, float]:
    """The symbol that is best after each output, and what that costs in all."""
    size, released = losses.shape
    mass, best, total = np.zeros(size), np.zeros(rows.shape[1], np.int64), 0.0
    for f in range(share.size):
        mass[symbols[f]] += share[f]
    for y in range(rows.shape[1]):
        spent = np.zeros(released)
        for x in range(size):
            part = mass[x] * rows[groups[x], y]
            for z in range(released):
                spent[z] += part * losses[x, z]
        best[y] = least_place(spent)
        total += spent[best[y]]
    return best, total


@njit(cache=True, error_model="numpy")
def believed_worth(
    chances: Floats,
    beliefs: Floats,
    vectors: Floats,
    likelihoods: Floats,
    extremes: Floats,
    limit: float,
) -> tuple[Ints, Floats]:
    """The vector that each output goes on with, and what it promises there."""
    ahead, worth = np.zeros(chances.size, np.int64), np.zeros(chances.size)
    for y in range(chances.size):
        ahead[y], worth[y] = best_vector(beliefs[y], vectors, likelihoods, extremes, limit)
    return ahead, worth


@njit(cache=True, error_model="numpy")
def raised(
    costs: Floats, columns: Ints, chosen: Ints, vectors: Floats, beliefs: Floats, worth: Floats
) -> float:
    """Make vectors dearer that promised too little, for this belief alone, in place.

    Returns:
        By how much a promise was off.
    """
    off, count = 0.0, chosen.size
    for y in range(columns.size):
        place, claim = columns[y] % count, 0.0
        for s in range(vectors.shape[1]):
            claim += vectors[chosen[place], s] * beliefs[y, s]
        if worth[y] > claim:
            off = max(off, worth[y] - claim)
            for g in range(len(costs)):
                for z in range(costs.shape[1] // count):
                    costs[g, z * count + place] += worth[y] - claim
    return off


@njit(cache=True, error_model="numpy")
def which_believed(beliefs: Floats, likelihoods: Floats, extremes: Floats, limit: float) -> Bools:
    """Place, output, vector: whether a vector can be believed after an output at a place."""
    places, outputs, _ = beliefs.shape
    count = len(likelihoods)
    fine = np.zeros((places, outputs, count), dtype=np.bool_)
    for p in range(places):
        for y in range(outputs):
            if beliefs[p, y, 0] < 0.0:
                continue
            least, nearest = np.inf, 0
            for j in range(count):
                leaks = leakage_at(likelihoods[j], extremes[j], beliefs[p, y])
                fine[p, y, j] = leaks <= limit
                if leaks < least:
                    least, nearest = leaks, j
            fine[p, y, nearest] = True
    return fine


@njit(cache=True, error_model="numpy")
def evaluated(
    channels: Floats,
    released: Ints,
    beliefs: Floats,
    fine: Bools,
    spent: Floats,
    symbols: Ints,
    losses: Floats,
    ahead: Floats,
    vectors: Floats,
) -> Floats:
    """The vectors of channels that stay, when what follows them is worth what vectors say now.

    Args:
        channels: Place, symbol, output.
        released: Place, output: the symbol that leaves.
        beliefs: Place, output: the belief after it; -1 where there is no output.
        fine: Place, output, vector: whether it can be believed.
        spent: What the leakage of each place costs.
        symbols: The symbol of each state.
        losses: Row = true symbol, column = released one.
        ahead: Row = state, column = vector: the cost of all that follows.
        vectors: Row = vector, column = state.

    Returns:
        Row = place, column = state.
    """
    places, outputs, states = beliefs.shape
    after = np.empty((places, symbols.size))
    for p in range(places):
        after[p] = spent[p]
        for y in range(outputs):
            if beliefs[p, y, 0] < 0.0:
                continue
            best, least = 0, np.inf
            for j in range(len(vectors)):
                if fine[p, y, j]:
                    promise = 0.0
                    for s in range(states):
                        promise += vectors[j, s] * beliefs[p, y, s]
                    if promise < least:
                        best, least = j, promise
            z = released[p, y]
            for f in range(symbols.size):
                x = symbols[f]
                after[p, f] += channels[p, x, y] * (losses[x, z] + ahead[f, best])
    return after
