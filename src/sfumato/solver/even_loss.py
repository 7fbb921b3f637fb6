r"""The optimum when every wrong symbol costs the same, in closed form.

With $k = e^\epsilon$, $s = 1/(k+1)$ and the program of `programs`, a channel gains

$$\sum_y \tfrac1k P(y) b(y) + (1 - \tfrac1k)\, b(y)\, g(y,y), \qquad
  g(y,y) \le \min(1,\; (k+1) P(y),\; P(y)/b(y))$$

over the best constant loss of 1. The right side is concave in each $P(y)$: its slope is
$b(y)/k + (k - 1/k) \min(b(y), s)$ up to $P(y) = \max(b(y), s)$ and $b(y)/k$ beyond. So the most
that can be gained is a fractional knapsack: likely symbols first, each up to $\max(b, s)$, until
more of the likeliest is worth as much. The bound is met when the symbols that are left can take
up what the chosen outputs must release besides.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.solver.grouped import Grouped


def solve_even(belief: Floats, wrong: float, epsilon: float) -> Grouped | None:
    """The optimal channel and its prices; None where the bound is not met."""
    k = portable.exp(epsilon)
    order = np.argsort(-belief, kind="stable")
    likely = belief[order]
    room = np.maximum(likely, 1 / (k + 1))
    slopes = likely / k + (k - 1 / k) * np.minimum(likely, 1 / (k + 1))
    worthwhile = int((slopes > likely[0] / k).sum())
    count = min(int(np.searchsorted(room.cumsum(), 1 - 1e-12)) + 1, worthwhile)
    marginal = room[:count].copy()
    excess = marginal.sum() - 1
    marginal[-1 if excess > 0 else 0] -= excess
    rows = None if count == belief.size else _rows(likely[:count], marginal, k)
    if rows is None:
        return None
    groups = np.full(belief.size, count)
    groups[order[:count]] = np.arange(count)
    least = float(slopes[count - 1] if excess > 0 else likely[0] / k)
    return Grouped(groups, rows, order[:count], wrong * _prices(belief, least, k))


def _rows(belief: Floats, marginal: Floats, k: float) -> Floats | None:
    """Rows of the chosen symbols, and at the end the one that all others share."""
    last, left = len(belief) - 1, 1 - belief.sum()
    right = np.minimum(1.0, marginal * np.minimum(k + 1, 1 / belief))
    spare = np.maximum(marginal - belief * right, 0.0)
    # The symbol chosen last is told in part; the rest of its row goes to the other outputs.
    moved = belief[last] * (1 - right[last])
    full = spare[:last].sum()
    if left <= 1e-12 or moved > full or spare[last] > left * (k + 1) * marginal[last]:
        return None
    shares = np.zeros((len(belief) + 1, len(belief)))
    np.fill_diagonal(shares, right)
    others = spare[:last] / full if full > 0 else spare[:last]
    shares[last, :last] = (1 - right[last]) * others
    shares[-1, :last] = (full - moved) * others
    shares[-1, last] = spare[last]
    shares[-1] /= left
    rows = marginal / k + (1 - 1 / k) * shares
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _prices(belief: Floats, slope: float, k: float) -> Floats:
    """Prices at which every chosen output is worth the least slope that is used."""
    high = (k - 1 / k) * np.minimum(belief, 1 / (k + 1))
    return np.asarray(np.minimum((slope - belief / k) / high, 1.0))
