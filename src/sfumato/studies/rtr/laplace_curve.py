r"""What Laplace noise on every value of a series promises together, exactly.

Pure budgets add up, and so the paper compares $T$ draws of Laplace noise at $T \epsilon_0$ with
Gaussian noise at a $\delta$ above 0: most of the distance between the two is that of adding up.
Here both are judged by one $(\epsilon, \delta)$. The curve of one draw,

$$\delta(\epsilon) = 1 - e^{(\epsilon - \epsilon_0)/2}, \qquad |\epsilon| \le \epsilon_0,$$

is drawn through points of a grid, straight in $e^\epsilon$, which lies above it since the curve is
convex: so what the points promise together, their losses convolved, is a bound, and a tight one.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from sfumato.core import search
from sfumato.core.arrays import Floats

_CELLS = 16
"""Of the grid between 0 and the leakage of a draw; twice as many move epsilon by a thousandth."""
_ROUNDING = 1e-13
"""What the transform may be wrong by; added to delta."""
_STEPS = 40


def composed_delta(each: float, count: int, epsilon: float) -> float:
    """The delta at which so many draws of Laplace noise keep an epsilon; a bound.

    Args:
        each: Pure leakage of one draw.
        count: Draws.
        epsilon: The level.

    Examples:
        >>> composed_delta(0.1, 1, 0.05), 1 - math.exp(-0.025)
        (0.0246..., 0.0246...)
    """
    return _delta(*_composed(count, each), epsilon)


def composed_epsilon(each: float, count: int, delta: float) -> float:
    """The least epsilon at a delta.

    Examples:
        >>> composed_epsilon(0.01, 1000, 1e-7) < 0.2 * 1000 * 0.01
        True
    """
    losses, chances = _composed(count, each)
    most = count * each * (1 + 1e-9)
    return search.least_above(
        lambda epsilon: _delta(losses, chances, epsilon) <= delta, 1e-9, most, steps=_STEPS
    )


@lru_cache(maxsize=256)
def laplace_share(epsilon: float, delta: float, count: int) -> float:
    """The largest pure leakage of each of so many draws that together keep a budget.

    Examples:
        >>> laplace_share(1.0, 1e-7, 100)  # a hundredth of the whole would be .01
        0.021...
    """
    most = max(epsilon, 1e-12) * (1 + 4 / _CELLS)
    least = epsilon / count * (1 - 1e-9)
    low, high = math.log(least), math.log(most)
    for _ in range(_STEPS // 2):
        middle = (low + high) / 2
        kept = composed_delta(math.exp(middle), count, epsilon) <= delta
        low, high = (middle, high) if kept else (low, middle)
    return math.exp(low)


def _delta(losses: Floats, chances: Floats, epsilon: float) -> float:
    first = int(np.searchsorted(losses, epsilon, side="right"))
    gone = -np.expm1(epsilon - losses[first:])
    return min(1.0, float(chances[first:] @ gone) + _ROUNDING)


def _composed(count: int, each: float) -> tuple[Floats, Floats]:
    """Losses on the grid after so many draws, and their chances."""
    single = _single(each)
    size = count * (single.size - 1) + 1
    wide = 1 << (size - 1).bit_length()
    powers = np.fft.rfft(single, wide) ** count
    chances = np.maximum(np.fft.irfft(powers, wide)[:size], 0.0)
    step = each / _CELLS
    losses = step * np.arange(-count * _CELLS, size - count * _CELLS, dtype=np.float64)
    return losses, np.asarray(chances, np.float64)


def _single(each: float) -> Floats:
    """Chances of the losses of one draw, from the kinks of the straightened curve."""
    step = each / _CELLS
    losses = step * np.arange(-_CELLS, _CELLS + 1)
    chances = np.exp((losses - each) / 2) * math.tanh(step / 4)
    # At the ends: the half of the draws beyond either value, and half a cell.
    end = 1 / (1 + math.exp(-step / 2))
    chances[0], chances[-1] = math.exp(-each) * end, end
    return np.asarray(chances)
