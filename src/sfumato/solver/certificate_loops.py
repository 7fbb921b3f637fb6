r"""From float rows to integer weights that keep their budget, in one compiled pass.

The arithmetic of `sfumato.leakage`, loop for loop: every certificate is the plain formula in
floating point plus its known error. The tests hold the two against each other and against
rational numbers.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.array_loops import divide_by_sums, marked, taken
from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, expm1, log

_UNIT = 2.0**-53
_WHOLE = 2**62
_ROUNDS = 200
# Outputs rarer than this are dust.
_NEGLIGIBLE = 1e-9


@njit(cache=True, error_model="numpy")
def undusted(rows: Floats, belief: Floats, loss: Floats) -> tuple[Floats, Ints]:
    """Merge outputs that hardly occur into their cheapest stand-ins.

    Args:
        rows: One row per true symbol, one column per output.
        belief: Probability of each true symbol.
        loss: Of the same shape as `rows`.

    Returns:
        The merged rows, each summing to 1, and the columns that are left.
    """
    size = belief.size
    marginal = _marginal(rows, belief)
    frequent = np.empty(marginal.size, dtype=np.bool_)
    for y in range(marginal.size):
        frequent[y] = marginal[y] > _NEGLIGIBLE
    columns = marked(frequent)
    merged = np.empty((size, columns.size))
    for x in range(size):
        for j in range(columns.size):
            merged[x, j] = rows[x, columns[j]]
    for column in range(marginal.size):
        if 0.0 < marginal[column] <= _NEGLIGIBLE:
            host, least = 0, np.inf
            for j in range(columns.size):
                spent = 0.0
                for x in range(size):
                    spent += belief[x] * rows[x, column] * loss[x, columns[j]]
                if spent < least:
                    host, least = j, spent
            for x in range(size):
                merged[x, host] += rows[x, column]
    divide_by_sums(merged)
    return merged, columns


@njit(cache=True, error_model="numpy")
def rounded(
    rows: Floats, belief: Floats, epsilon: float, ldp: float
) -> tuple[bool, Ints, Ints, float, float]:
    """Integer weights next to `rows` whose leakage, rounded up, is within both budgets.

    Args:
        rows: One row per true symbol, each summing to 1; overwritten.
        belief: Probability of each true symbol; need not sum to 1 exactly.
        epsilon: Budget for the leakage under the belief.
        ldp: Budget for the model-free leakage; infinite if there is none.

    Returns:
        Whether it succeeded, the weights (rows sum to `2**62`), the columns of `rows` they
        belong to, and both leakages.
    """
    total = 0.0
    for x in range(belief.size):
        total += belief[x]
    share, columns = np.empty(belief.size), np.empty(rows.shape[1], dtype=np.int64)
    for x in range(belief.size):
        share[x] = belief[x] / total
    for y in range(columns.size):
        columns[y] = y
    # Aim below the budget by the error that the certificate itself allows for.
    margin = (4 * belief.size + 32) * _UNIT
    for _ in range(_ROUNDS):
        marginal = _marginal(rows, share)
        part = _mixing_weight(rows, marginal, epsilon - margin, ldp - margin)
        for x in range(belief.size):
            for y in range(marginal.size):
                rows[x, y] = (1 - part) * rows[x, y] + part * marginal[y]
        divide_by_sums(rows)
        weights, used = _integers(rows)
        columns = taken(columns, used)
        under_belief, model_free = leakages(weights, belief)
        if under_belief <= epsilon and model_free <= ldp:
            return True, weights, columns, under_belief, model_free
        rows = np.empty((belief.size, used.size))
        for x in range(belief.size):
            for y in range(used.size):
                rows[x, y] = float(weights[x, y]) / float(_WHOLE)
        margin *= 2
    return False, weights, columns, under_belief, model_free


@njit(cache=True, error_model="numpy")
def leakages(weights: Ints, belief: Floats) -> tuple[float, float]:
    """Leakage under the belief and whatever the belief, both rounded up; 0 for a constant."""
    size, outputs = weights.shape
    mean, total, constant = np.zeros(outputs), 0.0, True
    most, least = weights[0].copy(), weights[0].copy()
    for x in range(size):
        total += belief[x]
        for y in range(outputs):
            mean[y] += belief[x] * float(weights[x, y])
            most[y], least[y] = max(most[y], weights[x, y]), min(least[y], weights[x, y])
            constant = constant and weights[x, y] == weights[0, y]
    if constant:
        return 0.0, 0.0
    ratio, quotient = 0.0, 0.0
    for y in range(outputs):
        if least[y] == 0:
            return np.inf, np.inf
        expected, high, low = mean[y] / total, float(most[y]), float(least[y])
        ratio = max(ratio, max(high / expected, expected / low))
        quotient = max(quotient, high / low)
    return _log_up(ratio, (2 * size + 8) * _UNIT), _log_up(quotient, 3 * _UNIT)


@njit(cache=True, error_model="numpy")
def _log_up(value: float, relative_error: float) -> float:
    logarithm = log(value)
    error = 4 * _UNIT * abs(logarithm) + relative_error * (1 + 4 * _UNIT) + 2 * _UNIT
    return max(0.0, float(np.nextafter(logarithm + error, np.inf)))


@njit(cache=True, error_model="numpy")
def _marginal(rows: Floats, belief: Floats) -> Floats:
    marginal = np.zeros(rows.shape[1])
    for x in range(belief.size):
        for y in range(marginal.size):
            marginal[y] += belief[x] * rows[x, y]
    return marginal


@njit(cache=True, error_model="numpy")
def _mixing_weight(rows: Floats, marginal: Floats, epsilon: float, ldp: float) -> float:
    """Least weight of the output marginal that brings every ratio within bounds."""
    if epsilon <= 0 or ldp <= 0:
        return 1.0
    limit, quotient = exp(epsilon), exp(ldp)
    highest, lowest, weight = 1.0, 1.0, 0.0
    most, least = rows[0].copy(), rows[0].copy()
    for x in range(rows.shape[0]):
        for y in range(marginal.size):
            most[y], least[y] = max(most[y], rows[x, y]), min(least[y], rows[x, y])
    for y in range(marginal.size):
        if marginal[y] > 0:
            high, low = most[y] / marginal[y], least[y] / marginal[y]
            highest, lowest = max(highest, high), min(lowest, low)
            if quotient < np.inf and high > quotient * low:
                excess = high - quotient * low
                weight = max(weight, excess / (excess + expm1(ldp)))
    if highest > limit:
        weight = max(weight, (highest - limit) / (highest - 1))
    if lowest < 1 / limit:
        weight = max(weight, (1 / limit - lowest) / (1 - lowest))
    return min(1.0, weight * (1 + 1e-12))


@njit(cache=True, error_model="numpy")
def _integers(rows: Floats) -> tuple[Ints, Ints]:
    """Weights that sum to `2**62` in every row, and which columns of `rows` they use."""
    size, outputs = rows.shape
    weights, used = np.empty((size, outputs), dtype=np.int64), np.zeros(outputs, dtype=np.bool_)
    for x in range(size):
        left, largest = _WHOLE, 0
        for y in range(outputs):
            weights[x, y] = np.int64(np.rint(rows[x, y] * float(_WHOLE)))
            left -= weights[x, y]
            if rows[x, y] > rows[x, largest]:
                largest = y
        weights[x, largest] += left
        for y in range(outputs):
            used[y] = used[y] or weights[x, y] > 0
    places = marked(used)
    if places.size == outputs:
        return weights, places
    left_over = np.empty((size, places.size), dtype=np.int64)
    for x in range(size):
        for y in range(places.size):
            left_over[x, y] = weights[x, places[y]]
    return left_over, places
