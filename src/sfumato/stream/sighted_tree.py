"""A tree over beliefs for far-sighted channels, grown by how far beliefs lie apart.

What a kept channel loses at another belief than its own is mostly what mixing costs it, and that
grows with the distance of the two. So leaves are split by distance alone, and a channel is solved
for the mean belief of each leaf when all are there: one solution a channel, none on the way.

Where each step is solved by a small program, a leaf holds the outputs of its own channel and of
those nearest to it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.randomness import Randomness, categorical, integer_weights
from sfumato.solver.policy import Tables, Tree, tabulated
from sfumato.solver.solving_tables import PolicyKind, sighted_solving_tables
from sfumato.stream.compile_problem import WALKS, Sighted
from sfumato.stream.fleet_arrays import StreamArrays

_SOLVED = 12
"""Rounds of a simulation whose steps are solved: a first policy comes from these beliefs, and all
others from a simulation under it, which takes microseconds a step."""
_FIRST = 150
"""Channels of that first policy."""
_SIDE_BY_SIDE = 16
"""Times as many streams as in other simulations, since loops are quickest with many."""
_NEAR = 0.6
"""A leaf whose beliefs are this times the tolerance from their mean, added over symbols, is not
split: mixing costs about one and a half times that part of a step at a cap of half a nat."""


_OUTPUTS = 10
"""Outputs that a leaf tries, or those of a channel more: 5 lose 3 % more on recorded activities,
and 14 no less. Of more symbols, one and a half times as many."""


def sighted_tables(
    problem: Sighted,
    kind: PolicyKind,
    rounds: int,
    coins: Randomness,
    tolerance: float,
    most: int,
    told: Callable[[int], None],
) -> Tables:
    """Channels for the beliefs that a far-sighted release meets, and the tree that finds them.

    Args:
        problem: What is compiled for.
        kind: Whether leaves hold a channel, or outputs for a small program.
        rounds: How long to simulate, in steps of `WALKS` streams.
        coins: Of the simulation.
        tolerance: A part of the cost of a step that is not worth another channel.
        most: Keep no more channels than this.
        told: How many rounds are done.
    """
    planted = _planted if kind is PolicyKind.KEPT else _paired
    first = min(rounds, _SOLVED)
    beliefs, _ = problem.collected(first, coins, told)
    if rounds > first:
        tables = planted(problem, beliefs, tolerance, min(most, _FIRST))
        met = _simulated(problem, tables, first, rounds, coins, told)
        beliefs = np.concatenate([beliefs, *met])
    return planted(problem, beliefs, tolerance, most)


def _simulated(
    problem: Sighted,
    tables: Tables,
    done: int,
    rounds: int,
    coins: Randomness,
    told: Callable[[int], None],
) -> list[Floats]:
    """Beliefs that a policy meets when whatever it misses is mixed all the same."""
    count = WALKS * min(_SIDE_BY_SIDE, rounds - done)
    arrays = StreamArrays(problem.chain, tables, np.inf, count, scale=problem.scale)
    everyone, allowed = np.arange(count), np.tile(problem.allowed, (count, 1))
    met = list[Floats]()
    while done < rounds:
        beliefs = arrays.marginals()
        met.append(beliefs)
        prepared = arrays.prepare(everyone, allowed)
        cumulative = integer_weights(beliefs).cumsum(axis=1)
        truths = categorical(cumulative, everyone, coins.words(count))
        arrays.release(prepared, truths, coins.words(count))
        arrays.advance(everyone)
        done = min(rounds, done + count // WALKS)
        told(done)
    return met


def _planted(problem: Sighted, beliefs: Floats, tolerance: float, most: int) -> Tables:
    splits, thresholds, leaves = grown(beliefs, _NEAR * tolerance, most)
    channels = []
    for own, (place, members) in enumerate(leaves.items()):
        mean = beliefs[members].mean(axis=0)
        channels.append(problem.kept(mean / mean.sum()))
        splits[place] = [-1, own, own + 1]
    tree = Tree(np.array(splits), np.array(thresholds), np.arange(len(channels)))
    return tabulated(channels, tree)


def _paired(problem: Sighted, beliefs: Floats, tolerance: float, most: int) -> Tables:
    """Outputs of the best channels nearby, for each leaf."""
    splits, thresholds, leaves = grown(beliefs, _NEAR * tolerance, most)
    means = np.array([beliefs[members].mean(axis=0) for members in leaves.values()])
    means /= means.sum(axis=1, keepdims=True)
    steps = [problem.step(mean) for mean in means]
    pairs = [list(zip(one.symbols.tolist(), one.ahead.tolist(), strict=True)) for one in steps]
    known: dict[tuple[int, int], int] = {}
    candidates, orders = list[int](), list[Ints]()
    enough = max(_OUTPUTS, 3 * means.shape[1] // 2)
    for own, place in enumerate(leaves):
        near = np.argsort(np.abs(means - means[own]).sum(axis=1), kind="stable")
        some: dict[tuple[int, int], None] = {}
        for other in near.tolist():
            some |= dict.fromkeys(pairs[other])
            if len(some) >= enough:
                break
        begun = problem.begun(means[own], *np.array(list(some), dtype=np.int64).T)
        splits[place] = [-1, len(candidates), len(candidates) + len(some)]
        candidates += [known.setdefault(pair, len(known)) for pair in some]
        candidates += begun.outputs.tolist()
        orders.append(begun.orders)
    symbols, ahead = np.array(list(known), dtype=np.int64).T
    tree = (np.array(splits), np.array(thresholds), np.array(candidates))
    entries = np.concatenate(orders).astype(np.uint16)
    return sighted_solving_tables(problem.pair_costs(symbols, ahead), symbols, *tree, entries)


def grown(
    beliefs: Floats, near: float, most: int
) -> tuple[list[list[int]], list[float], dict[int, Ints]]:
    """Split beliefs, the leaf with the largest sum of distances first.

    Args:
        beliefs: One a row.
        near: Mean distance from their mean at which beliefs are left together.
        most: Leaves at most.

    Returns:
        Splits and thresholds of a tree, and the beliefs of each leaf.

    Examples:
        >>> beliefs = np.array([[0.1, 0.9], [0.2, 0.8], [0.8, 0.2], [0.9, 0.1]])
        >>> _, thresholds, leaves = grown(beliefs, 0.0, 2)
        >>> thresholds[0], [members.tolist() for members in leaves.values()]
        (0.2, [[0, 1], [2, 3]])
    """
    reached = beliefs.cumsum(axis=1)
    splits, thresholds = [[-1, 0, 0]], [0.0]
    leaves = {0: np.arange(len(beliefs))}
    waiting = [(-_apart(beliefs), 0)]
    while waiting and len(leaves) < most:
        _, place = heapq.heappop(waiting)
        members = leaves[place]
        found = _best_split(beliefs[members], reached[members])
        if found is None:
            continue
        symbol, threshold, low = found
        del leaves[place]
        first = len(splits)
        splits[place], thresholds[place] = [symbol, first, first + 1], threshold
        for part in (members[low], members[~low]):
            apart = _apart(beliefs[part])
            if apart > near * len(part):
                heapq.heappush(waiting, (-apart, len(splits)))
            leaves[len(splits)] = part
            splits.append([-1, 0, 0])
            thresholds.append(0.0)
    return splits, thresholds, leaves


def _best_split(beliefs: Floats, reached: Floats) -> tuple[int, float, Bools] | None:
    """The running sum whose median leaves beliefs nearest to the means of their halves."""
    best, least = None, np.inf
    for symbol in range(beliefs.shape[1] - 1):
        sums = reached[:, symbol]
        low = sums <= np.median(sums)
        if low.all():
            low = sums < sums.max()
        if not low.any():
            continue
        apart = _apart(beliefs[low]) + _apart(beliefs[~low])
        if apart < least:
            best, least = (symbol, float(sums[low].max()), low), apart
    return best


def _apart(beliefs: Floats) -> float:
    """Distances of beliefs from their mean, added up."""
    return float(np.abs(beliefs - beliefs.mean(axis=0)).sum())
