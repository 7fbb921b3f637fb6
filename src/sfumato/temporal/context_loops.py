r"""Loops over all pairs of contexts of a chain: how much releases tell them apart.

A likelihood of releases is a product of functions of single values, each with a largest quotient
$e^\epsilon$. Given a context it is a mean over the value that comes next,

$$G(c) = \sum_x P(x \mid c)\, h(x)\, G'(cx),$$

where $cx$ is the context one value on. For two contexts write $\psi(x) = h(x) G'(c'x)$, whose
quotients are bounded, and $G'(cx) \le e^{r_x} G'(c'x)$ by what is known one value on. Then

$$\frac{G(c)}{G(c')} \le \max_\psi \frac{\sum_x P(x|c) e^{r_x} \psi(x)}{\sum_x P(x|c') \psi(x)},$$

which is reached where $\psi$ takes its two ends only.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, expm1, log

_UNIT = 2.0**-53
# Beyond this e**alpha leaves the floats.
_BEYOND = 700.0


@njit(cache=True)
def largest_quotient(top: Floats, bottom: Floats, spread: float) -> float:
    """Log of the largest quotient of two sums, weighted by a function that spreads so far.

    Dinkelbach's iteration: at a level the best function is large where `top` is over that multiple
    of `bottom`. Rounded up.
    """
    if spread > _BEYOND:
        rate = 0.0
    elif spread > 0.0:
        rate = exp(-spread) / -expm1(-spread)
    else:
        rate = np.inf
    over, under = top.sum(), bottom.sum()
    if under == 0.0:
        return np.inf
    level = over / under
    while not np.isinf(rate):
        high, low = rate * over, rate * under
        for place in range(top.size):
            if top[place] > level * bottom[place]:
                high += top[place]
                low += bottom[place]
        if low == 0.0:
            return np.inf if high > 0.0 else log(level)
        if not high / low > level * (1 + 4 * _UNIT):
            level = max(level, high / low)
            break
        level = high / low
    error = (6 * top.size + 24) * _UNIT
    return float(log(level) + error + 4 * _UNIT * abs(log(level)))


@njit(cache=True)
def _aside(apart: Floats, one: int, others: Ints, alive: Bools, epsilon: float, way: int) -> float:
    """Bound for a value that only one of two tuples can have: by the nearest that the other has."""
    least = np.inf
    for other in others:
        if alive[other]:
            told = apart[one, other] if way == 0 else apart[other, one]
            least = min(least, told + epsilon)
    return least


@njit(cache=True)
def averaged(
    apart: Floats, tree: tuple[Ints, Ints], rows: Floats, alive: Bools, epsilon: float, error: float
) -> Floats:
    """What is told of every two tuples of values, from what is told of tuples with one value more.

    Args:
        apart: Bound on the log quotient of the likelihoods of some releases, for every two of the
            tuples with one value more.
        tree: Their places, by group and the value; the group of each tuple, for tuples of one
            group have the same children.
        rows: Distribution of the value given each tuple.
        alive: Which of the tuples with one value more can occur: of the others nothing is said.
        epsilon: Leakage of the value's own release, which is told from now on.
        error: Bound on the relative error of two rows.
    """
    children, groups = tree
    count, size = rows.shape
    kinds = len(children)
    blunt = np.zeros((kinds, kinds))
    for first in range(kinds):
        for second in range(kinds):
            for i in range(size):
                for j in range(size):
                    one, other = children[first, i], children[second, j]
                    if alive[one] and alive[other]:
                        told = apart[one, other] + (0.0 if i == j else epsilon)
                        blunt[first, second] = max(blunt[first, second], told)
    found = np.zeros((count, count))
    top, bottom, near = np.empty(size), np.empty(size), np.empty(size)
    for first in range(count):
        for second in range(count):
            here, there = groups[first], groups[second]
            bound = blunt[here, there]
            if first == second or bound == 0.0:
                continue
            for way in range(2):
                # The function that spreads is that of the second tuple, then that of the first;
                # a value that it is not defined for is given its largest, or its least, value.
                for value in range(size):
                    one, other = children[here, value], children[there, value]
                    near[value] = 0.0
                    if alive[one] and alive[other]:
                        near[value] = apart[one, other]
                    elif alive[one] and way == 0:
                        near[value] = _aside(apart, one, children[there], alive, epsilon, 0)
                    elif alive[other] and way == 1:
                        near[value] = _aside(apart, other, children[here], alive, epsilon, 1)
                most = near.max()
                for value in range(size):
                    less = min(most - near[value], _BEYOND)
                    top[value], bottom[value] = rows[first, value], rows[second, value]
                    if way == 0:
                        top[value] *= exp(-less)
                    else:
                        bottom[value] *= exp(less)
                spread = blunt[there, there] if way == 0 else blunt[here, here]
                bound = min(bound, most + error + largest_quotient(top, bottom, spread))
            found[first, second] = max(0.0, bound * (1 + 4 * _UNIT))
    return found
