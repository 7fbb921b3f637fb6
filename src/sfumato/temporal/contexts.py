r"""Leakage of every release under a chain that looks back on several values.

Given the value of a moment alone, its past and its future are not independent at order 2 and more,
so what both tell may not be added. Given a whole context, as many successive values as the chain
looks back on, they are. So likelihoods are compared for every two contexts, from both ends inwards,
and a moment's, or a window's, is a mean over the contexts that agree with it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.temporal.context_loops import averaged
from sfumato.temporal.loss_function import temporal_loss

_MOST_CONTEXTS = 512
# Bounds for two contexts at every moment that are held at once: 400 MB.
_MOST_CELLS = 50_000_000


@dataclass(frozen=True, slots=True, eq=False)
class ContextBounds:
    """What the releases of a sequence tell, of moments and windows of it.

    Attributes:
        backward: Of each moment, through the releases up to it.
        forward: Of each moment, through the releases from it on.
        windows: Through all, of every window of 1, 2, ... moments up to the order.
        opening: Through the release of a moment and all before it, of that moment and those after
            it that make a context together.
        closing: The same, turned: infinite where there is no such context.
    """

    backward: Floats
    forward: Floats
    windows: tuple[Floats, ...]
    opening: Floats
    closing: Floats


@dataclass(frozen=True, slots=True, eq=False)
class _Quotients:
    """Bounds on log quotients of likelihoods of releases, for every two tuples of values.

    Attributes:
        share: Probability of each tuple, the first value most significant.
        past: Of all releases before the window.
        future: Of all releases after it.
        both: Of all around it.
    """

    share: Floats
    past: Floats
    future: Floats
    both: Floats

    @property
    def largest(self) -> tuple[float, float, float]:
        """The bounds for any two tuples that occur."""
        occurs = np.ix_(self.share > 0, self.share > 0)
        past, future, both = (
            float(one[occurs].max()) for one in (self.past, self.future, self.both)
        )
        return past, future, both


def context_bounds(chain: MarkovChain, epsilons: Floats) -> ContextBounds:
    """Bounds on what releases with these leakages tell of moments and windows.

    The chain begins with its own first values, stationary or not. A window that is narrower than a
    context is reached from wider ones, by taking a value off at either end.

    Raises:
        InvalidParameter: If the chain has too many contexts for all pairs of them.
    """
    contexts, order, length = chain.size**chain.order, chain.order, epsilons.size
    if contexts > _MOST_CONTEXTS or contexts**2 * length > _MOST_CELLS:
        rule = f"have at most {_MOST_CONTEXTS} contexts, and fewer over a long time"
        raise InvalidParameter("chain", contexts, rule)
    backward, forward, opening, closing = np.full((4, length), np.inf)
    windows = tuple(np.full(length - width, np.inf) for width in range(min(order, length)))
    bounds = ContextBounds(backward, forward, windows, opening, closing)
    before: list[_Quotients] = []
    for first, error, whole in _contexts(chain, epsilons):
        told = [whole]
        for width in range(order - 1, 0, -1):
            after = float(epsilons[first + width]) if first + width < length else 0.0
            found = _without_last(told[-1], chain.size, after, error)
            if before:
                left = float(epsilons[first - 1])
                other = _without_first(before[order - 1 - width], chain.size, left, error)
                found = _lesser(found, other)
            told.append(found)
        _enter(bounds, epsilons, first, told[::-1])
        before = told
    return bounds


def _enter(bounds: ContextBounds, epsilons: Floats, first: int, told: list[_Quotients]) -> None:
    """Write down what is told of the windows that begin at a moment, by their width."""
    order, length = len(told), epsilons.size
    slack = 1 + 8 * order * UNIT
    alone = told[0].largest
    bounds.backward[first] = (epsilons[first] + alone[0]) * slack
    bounds.forward[first] = (epsilons[first] + alone[1]) * slack
    for width in range(1, min(order, length - first) + 1):
        own = epsilons[first : first + width].sum()
        bounds.windows[width - 1][first] = (own + told[width - 1].largest[2]) * slack
    past, future, _ = told[-1].largest
    bounds.opening[first] = (epsilons[first] + past) * slack
    if first + order <= length:
        last = first + order - 1
        bounds.closing[last] = (epsilons[last] + future) * slack


def _without_last(told: _Quotients, size: int, epsilon: float, error: float) -> _Quotients:
    """Of the windows without their last value, whose release then comes after them."""
    count = told.share.size // size
    children = np.arange(told.share.size).reshape(count, size)
    return _without(told, children, (0.0, epsilon, epsilon), error)


def _without_first(told: _Quotients, size: int, epsilon: float, error: float) -> _Quotients:
    """Of the windows without their first value, whose release then comes before them."""
    children = np.ascontiguousarray(np.arange(told.share.size).reshape(size, -1).transpose())
    return _without(told, children, (epsilon, 0.0, epsilon), error)


def _without(
    told: _Quotients, children: Ints, epsilons: tuple[float, float, float], error: float
) -> _Quotients:
    rows, share = _conditional(told.share[children])
    groups, alive = np.arange(len(children)), told.share > 0
    parts = (
        averaged(apart, (children, groups), rows, alive, epsilon, error)
        for apart, epsilon in zip((told.past, told.future, told.both), epsilons, strict=True)
    )
    return _Quotients(share, *parts)


def _lesser(one: _Quotients, other: _Quotients) -> _Quotients:
    """Two bounds of the same windows."""
    return _Quotients(
        one.share,
        np.minimum(one.past, other.past),
        np.minimum(one.future, other.future),
        np.minimum(one.both, other.both),
    )


def _conditional(joint: Floats) -> tuple[Floats, Floats]:
    """Rows of a table as distributions, and their sums; a row that cannot occur is even."""
    sums = joint.sum(axis=1, keepdims=True)
    # Of what cannot occur nothing is asked; any row will do.
    rows = np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), 1 / joint.shape[1])
    return np.asarray(rows), np.asarray(sums.ravel())


def _contexts(chain: MarkovChain, epsilons: Floats) -> Iterator[tuple[int, float, _Quotients]]:
    """What is told of every place of a context that begins with a release.

    Returns:
        The first moment, a bound on relative errors of conditional shares, and what is told.
    """
    size, order, count = chain.size, chain.order, epsilons.size
    # Moments after the last one have values, but no releases.
    padded = np.concatenate([epsilons, np.zeros(order)])
    futures, rows = _futures(chain, padded, count), chain.transition()
    turn = np.arange(size**order).reshape((size,) * order).transpose().ravel()
    share, told = chain.initial.ravel(), np.zeros_like(futures[0])
    lifts: list[Floats] = []
    largest = [0.0]
    for first in range(count):
        # A share is a sum of products with those before it: its relative error grows evenly.
        error = 4 * (first + order + 2) * (size + 8) * UNIT
        if first:
            occurred = share[turn] > 0
            cube = (share[:, None] * rows).reshape((size,) * (order + 1))
            back, share = _conditional(cube.transpose().reshape(-1, size))
            share = share[turn]
            told = _one_value_on(told, back, occurred, float(padded[first - 1]), error)
            lifts = [_lifted(back), *lifts[: order - 1]]
            if first >= order > 1:
                spread = padded[first - order : first].sum() + largest[first - order]
                told = np.minimum(told, _carried(lifts, spread, error))
            largest.append(float(told.max()))
        past = told[np.ix_(turn, turn)]
        yield first, error, _Quotients(share, past, futures[first], past + futures[first])


def _one_value_on(
    apart: Floats, rows: Floats, alive: Bools, epsilon: float, error: float
) -> Floats:
    """What is told of every two contexts from that of the contexts one value on."""
    contexts, size = rows.shape
    children = np.arange(contexts).reshape(-1, size)
    groups = np.arange(contexts) % len(children)
    exact = np.ascontiguousarray(rows)
    return averaged(apart, (children, groups), exact, alive, epsilon, error)


def _futures(chain: MarkovChain, padded: Floats, count: int) -> Floats:
    """What is told of every two contexts through all releases after them, at every place."""
    size, order, rows = chain.size, chain.order, chain.transition()
    error, lifts = 2 * (size + 8) * UNIT, [_lifted(rows)] * order
    futures = np.zeros((count, size**order, size**order))
    every = np.ones(size**order, dtype=np.bool_)  # a future follows any context
    for first in range(count - 2, -1, -1):
        later, end = futures[first + 1], first + order
        told = _one_value_on(later, rows, every, float(padded[end]), error)
        if order > 1:
            spread = padded[end : end + order].sum()
            spread += futures[end].max() if end < count else 0.0
            told = np.minimum(told, _carried(lifts, spread, error))
        futures[first] = told
    return futures


def _lifted(rows: Floats) -> Floats:
    """From contexts to the contexts one value on."""
    contexts, size = rows.shape
    lifted = np.zeros((contexts, contexts))
    for place, row in enumerate(rows):
        start = (place * size) % contexts
        lifted[place, start : start + size] = row
    return lifted


def _carried(lifts: list[Floats], spread: float, error: float) -> float:
    """What is told of a context through the next one that shares no value with it.

    One value at a time, what is told of contexts that differ in one value counts once for each
    value that they go on to differ in; here all of it counts once.
    """
    table = functools.reduce(portable.dot, lifts)
    table = table / table.sum(axis=1, keepdims=True)
    more = 2 * len(lifts) * (error + len(table) * UNIT)
    return temporal_loss(table, spread * (1 + 4 * len(lifts) * UNIT)) + more
