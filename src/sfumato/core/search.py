r"""Where a rule that holds on one side of a place ceases to hold: the one search of the package.

Every calibration asks the same question: the largest budget that is still kept, the least noise
that is enough. The rule is a predicate, monotone in a number. Two ends are known, one *inside* at
which it holds and one *outside* at which it does not, in either order; halving brings them
together. The laws, whatever the predicate does:

- what is returned is the inside end as it was given, or a number at which the rule was seen to
  hold: a search that is cut short, or a predicate that wavers by rounding, costs some sharpness and
  never the promise;
- no search goes on for ever: halving stops at neighbouring floats, at the tolerance or after
  `steps`, and an end that is sought by doubling is given up beyond `most`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypedDict, Unpack

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats

Rule = Callable[[float], bool]
Middle = Callable[[float, float], float]

# Halvings at most: 60 reach neighbouring floats, unless the ends are many powers of two apart.
STEPS = 200


def arithmetic(one: float, other: float) -> float:
    """Halfway, without overflow."""
    return 0.5 * one + 0.5 * other


def geometric(one: float, other: float) -> float:
    """Halfway in logarithms: for a scale of which not even the power of ten is known."""
    return math.sqrt(one * other)


class Halving(TypedDict, total=False):
    """How two ends are brought together: to neighbouring floats, if nothing else stops it.

    Attributes:
        relative: How near the ends need to be, as a part of the larger one.
        absolute: The same, as a distance.
        steps: Halvings at most, for a rule that is costly to ask.
        middle: Where to look between the ends.
    """

    relative: float
    absolute: float
    steps: int
    middle: Middle


def narrowed(
    holds: Rule, inside: float, outside: float, **how: Unpack[Halving]
) -> tuple[float, float]:
    """Both ends, brought together.

    Args:
        holds: The rule.
        inside: Where it holds; this is taken for granted.
        outside: Where it does not, above or below; it is never returned as the inside end.
        **how: What ends the search.

    Examples:
        >>> narrowed(lambda x: x * x <= 2.0, 1.0, 2.0)
        (1.414213562373095, 1.4142135623730951)
    """
    relative, absolute = how.get("relative", 0.0), how.get("absolute", 0.0)
    middle = how.get("middle", arithmetic)
    for _ in range(how.get("steps", STEPS)):
        apart = abs(outside - inside)
        if apart <= absolute or apart <= relative * max(abs(inside), abs(outside)):
            break
        between = middle(inside, outside)
        # The ends are neighbours: a middle that rounds to one of them brings nothing nearer.
        if not min(inside, outside) < between < max(inside, outside):
            break
        if holds(between):
            inside = between
        else:
            outside = between
    return inside, outside


def boundary(holds: Rule, inside: float, outside: float, **how: Unpack[Halving]) -> float:
    """The last place at which a rule holds, going from inside to outside; see `narrowed`.

    Examples:
        >>> boundary(lambda x: x * x >= 2.0, inside=2.0, outside=0.0)
        1.4142135623730951
    """
    return narrowed(holds, inside, outside, **how)[0]


def largest(holds: Rule, most: float, *, steps: int = STEPS) -> float:
    """The largest number from 0 to `most` that keeps a rule; 0 if none is seen to.

    Examples:
        >>> largest(lambda x: 3 * x <= 1.0, 1.0), largest(lambda x: True, 1.0)
        (0.3333333333333333, 1.0)
    """
    return most if holds(most) else boundary(holds, 0.0, most, steps=steps)


def largest_above(holds: Rule, start: float, most: float, *, steps: int = STEPS) -> float:
    """The largest number that keeps a rule, looked for by doubling from `start` up to `most`.

    0 if none is seen to keep it.

    Examples:
        >>> largest_above(lambda x: x <= 100.0, 1.0, 1e6)
        100.0
    """
    inside, outside = doubled(lambda value: not holds(value), start, most)
    return inside if math.isinf(outside) else boundary(holds, inside, outside, steps=steps)


def least_above(
    holds: Rule, start: float, most: float, *, outside: float = 0.0, **how: Unpack[Halving]
) -> float:
    """The least number that keeps a rule, looked for by doubling from `start` up to `most`.

    Infinite if none up to `most` is seen to keep it; `outside` is one of which that is known.

    Examples:
        >>> least_above(lambda x: x >= 100.0, 1.0, 1e6), least_above(lambda x: False, 1.0, 1e6)
        (100.0, inf)
    """
    below, inside = doubled(holds, start, most, before=outside)
    return inside if math.isinf(inside) else boundary(holds, inside, below, **how)


def doubled(
    changes: Rule, start: float, most: float, *, before: float = 0.0
) -> tuple[float, float]:
    """Successive doublings of a number, the last one `most`, between which a rule begins to hold.

    The first is `before` if it holds at the start; the second is infinite if it never holds.
    """
    low, high = before, min(checks.positive("start", start), most)
    while not changes(high):
        if high >= most:
            return high, math.inf
        low, high = high, min(2 * high, most)
    return low, high


def boundaries(
    holds: Callable[[Floats], Bools], inside: Floats, outside: Floats, *, steps: int = STEPS
) -> tuple[Floats, Floats]:
    """Both ends of many searches at once, each brought to neighbouring floats; see `narrowed`.

    Examples:
        >>> boundaries(lambda x: x * x <= [2.0, 9.0], np.ones(2), np.full(2, 5.0))[0]
        array([1.41421356, 3.        ])
    """
    for _ in range(steps):
        between = 0.5 * inside + 0.5 * outside
        if np.all((between == inside) | (between == outside)):
            break
        good = holds(between)
        inside, outside = np.where(good, between, inside), np.where(good, outside, between)
    return inside, outside
