"""Loops of an audit: worst windows, and what all outputs of a stream told about one value."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import log
from sfumato.models.chain_loops import Known, expect, spread

_BLOCK, _DEEP = 128, 64
"""Values that numpy adds up without halving, and how often an array can be halved."""


@njit(cache=True, nogil=True)
def worst_window(values: Floats, first: int, width: int, worst: float) -> float:
    """The largest sum of some successive values, each rounded up as `core.numerics.sum_up` does.

    Args:
        values: What steps leaked.
        first: Only windows count that end at this one or later.
        width: How many values a window has, or fewer at the beginning.
        worst: What is returned if no sum is larger.
    """
    parts = np.empty(width + 2)
    for last in range(first, values.size):
        count = 0
        for place in range(max(0, last - width + 1), last + 1):
            count = _add_exactly(parts, count, values[place])
        nearest = _rounded(parts, count)
        # What is left of the exact sum: its largest part says on which side it lies.
        count = _add_exactly(parts, count, -nearest)
        if count > 0 and parts[count - 1] > 0.0:
            nearest = np.nextafter(nearest, np.inf)
        worst = max(worst, nearest)
    return worst


@njit(cache=True, nogil=True)
def _add_exactly(parts: Floats, count: int, value: float) -> int:
    """Add to a sum that is held as parts that do not overlap; how many there are then.

    References: [Shewchuk1997, Fig. 9]
    """
    kept = 0
    for place in range(count):
        large, small = value, parts[place]
        if abs(large) < abs(small):
            large, small = small, large
        high = large + small
        low = small - (high - large)
        if low != 0.0:
            parts[kept] = low
            kept += 1
        value = high
    if value != 0.0:
        parts[kept] = value
        kept += 1
    return kept


@njit(cache=True, nogil=True)
def _rounded(parts: Floats, count: int) -> float:
    """The float that is nearest to an exact sum."""
    if count == 0:
        return 0.0
    place = count - 1
    high, low = parts[place], 0.0
    while place > 0:
        place -= 1
        before = high
        high = before + parts[place]
        low = parts[place] - (high - before)
        if low != 0.0:
            break
    # Half way between two floats the rest decides.
    if place > 0 and ((low < 0.0) == (parts[place - 1] < 0.0)) and low != 0.0:
        twice = low * 2.0
        other = high + twice
        if twice == other - high:
            high = other
    return float(high)


@njit(cache=True, nogil=True, error_model="numpy")
def information_gain(masses: Floats, likelihood: Floats, cell: int) -> float:
    """Logarithm of how much likelier an output is in one cell than on average."""
    whole, expected = 0.0, 0.0
    for x in range(masses.size):
        whole += masses[x]
        expected += masses[x] * likelihood[x]
    return float(log(likelihood[cell] / (expected / whole)))


@njit(cache=True, nogil=True, error_model="numpy")
def _information_gains(masses: Floats, likelihoods: Floats, cells: Ints, gains: Floats) -> None:
    for row in range(cells.size):
        gains[row] = information_gain(masses[row], likelihoods[row], cells[row])


def information_gains(masses: Floats, likelihoods: Floats, cells: Ints) -> Floats:
    """The same for many outputs, one row each."""
    gains = np.empty(len(cells))
    _information_gains(masses, likelihoods, cells, gains)
    return gains


@njit(cache=True, nogil=True)
def sums_in_turn(amounts: Floats, starts: Ints, counts: Ints, totals: Floats) -> None:
    """Add amounts to totals one after the other: as if each came alone.

    Args:
        amounts: Group after group; what is no number is passed over.
        starts: Where each group begins, and
        counts: how many it has.
        totals: What each group had before, and has then; not a number for nothing at all.
    """
    for group in range(starts.size):
        for place in range(starts[group], starts[group] + counts[group]):
            if not np.isnan(amounts[place]):
                before = totals[group]
                totals[group] = (0.0 if np.isnan(before) else before) + amounts[place]


@njit(cache=True, nogil=True)
def pairwise_sum(values: Floats) -> float:
    """A sum in the order in which `numpy.sum` adds up an array without gaps."""
    if values.size <= _BLOCK:
        return float(_block_sum(values))
    # Halves of halves, the first of each first: a stack, for a loop that calls itself is not kept.
    firsts, counts = np.zeros(_DEEP, dtype=np.int64), np.zeros(_DEEP, dtype=np.int64)
    turns, sums, top, held = np.zeros(_DEEP, dtype=np.int64), np.zeros(_DEEP), 0, 0
    counts[0] = values.size
    while top >= 0:
        first, count, turn = firsts[top], counts[top], turns[top]
        half = count // 2
        half -= half % 8
        if count <= _BLOCK:
            sums[held] = _block_sum(values[first : first + count])
            held, top = held + 1, top - 1
        elif turn == 2:
            sums[held - 2] += sums[held - 1]
            held, top = held - 1, top - 1
        else:
            turns[top], top = turn + 1, top + 1
            firsts[top] = first if turn == 0 else first + half
            counts[top] = half if turn == 0 else count - half
            turns[top] = 0
    return float(sums[0])


@njit(cache=True, nogil=True)
def _block_sum(values: Floats) -> float:
    """The sum of at most `_BLOCK` values: eight side by side, then what is left."""
    whole, total = values.size - values.size % 8, 0.0
    if whole:
        a, b, c, d = values[0], values[1], values[2], values[3]
        e, f, g, h = values[4], values[5], values[6], values[7]
        for place in range(8, whole, 8):
            a, b = a + values[place], b + values[place + 1]
            c, d = c + values[place + 2], d + values[place + 3]
            e, f = e + values[place + 4], f + values[place + 5]
            g, h = g + values[place + 6], h + values[place + 7]
        total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for place in range(whole, values.size):
        total += values[place]
    return total


@njit(cache=True, nogil=True, error_model="numpy")
def prior_logs(
    initial: Floats, known: Known, backoff: Floats, background: Floats, logs: Floats
) -> None:
    """Logarithms of the law of the value of each moment, before anything was told."""
    prior, moved = initial.copy(), np.empty(initial.size)
    for moment in range(len(logs)):
        if moment:
            spread(prior, known, backoff, background, moved)
            prior[:] = moved
        total = pairwise_sum(prior)
        for x in range(prior.size):
            logs[moment, x] = log(prior[x] / total)


@njit(cache=True, nogil=True, error_model="numpy")
def one_value_leakages(
    initial: Floats,
    known: Known,
    backoff: Floats,
    background: Floats,
    logs: Floats,
    told: Floats,
    tells: Bools,
    starts: Ints,
    worst: Floats,
) -> None:
    """The largest change of belief about any one value of each stream, as `one_value_leakage`.

    Args:
        initial: Law of the first value; the chain has order 1.
        known: Rows of the chain, as in `chain_loops`, with
        backoff: the weight of the background in each, and
        background: what they are mixed with.
        logs: What `prior_logs` found.
        told: How likely each symbol made what left, one row per value, stream after stream.
        tells: Whether that tells anything.
        starts: Where the values of each stream begin, and the end.
        worst: The result, before it is rounded up; -1 where nothing was told at all.
    """
    size, longest = initial.size, 0
    for stream in range(starts.size - 1):
        longest = max(longest, starts[stream + 1] - starts[stream])
    later, every = np.empty((longest, size)), np.ones(size)
    joint, moved, after = np.empty(size), np.empty(size), np.empty(size)
    for stream in range(starts.size - 1):
        first, steps = starts[stream], starts[stream + 1] - starts[stream]
        worst[stream] = -1.0
        for moment in range(steps):
            if tells[first + moment]:
                worst[stream] = 0.0
        if worst[stream] < 0.0:
            continue
        later[steps - 1] = 1.0
        for moment in range(steps - 1, 0, -1):
            after[:] = later[moment]
            if tells[first + moment]:
                _weigh(after, told[first + moment])
            expect(after, every, 0.0, known, backoff, background, later[moment - 1])
            most = later[moment - 1].max()
            for x in range(size):
                later[moment - 1, x] /= most
        joint[:] = initial
        for moment in range(steps):
            if moment:
                spread(joint, known, backoff, background, moved)
                joint[:] = moved
            if tells[first + moment]:
                _weigh(joint, told[first + moment])
            if moment:
                total = pairwise_sum(joint)
                for x in range(size):
                    joint[x] /= total
            for x in range(size):
                after[x] = joint[x] * later[moment, x]
            total = pairwise_sum(after)
            for x in range(size):
                if logs[moment, x] > -np.inf:
                    ratio = abs(log(after[x] / total) - logs[moment, x])
                    worst[stream] = max(worst[stream], ratio)


@njit(cache=True, nogil=True, error_model="numpy", forceinline=True)
def _weigh(weights: Floats, likelihood: Floats) -> None:
    most = likelihood.max()
    for x in range(weights.size):
        weights[x] *= likelihood[x] / most
