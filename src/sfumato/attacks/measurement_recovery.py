"""Measurements behind released estimates: what a filter hides of them, which is nothing.

A live series releases estimates, each a function of all measurements until then. The filter is
public, so its steps can be undone one by one: the measurement is the one with which the filter says
what was released. Whoever attacks a series works on its measurements, whatever filter came after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.series.filters import Filter
from sfumato.series.realtime import Realtime

_WIDEST = 1e9
"""How many deviations of the noise from the estimate a measurement is sought."""
_ROUNDS = 200


def recovered_measurements(released: Sequence[float | None], method: Realtime) -> Floats:
    """The measurement of each time, from the estimates that left.

    Args:
        released: What left; None where nothing did.
        method: How it was released, with its filter.

    Returns:
        One for each value; not a number where nothing was measured.

    Raises:
        InvalidParameter: If no measurement explains what left: the filter was another one.

    Examples:
        >>> from sfumato.core.purpose import Purpose
        >>> from sfumato.core.randomness import seeded
        >>> method = Realtime.gaussian(1.0, epsilon=1.0, delta=1e-6, length=5)
        >>> left = method.release(np.arange(5.0), seeded(1), Purpose.SIMULATION)
        >>> found = recovered_measurements(left.tolist(), method)
        >>> again = method.memory()
        >>> weights, noise = method.weights[:5], method.variances[:5]
        >>> bool(np.allclose(again.update(found[:, None], weights, noise)[:, 0], left))
        True
    """
    if len(released) > method.most:
        raise InvalidParameter("released", len(released), f"be at most {method.most} values")
    running, found = method.memory(), np.full(len(released), np.nan)
    for time, value in enumerate(released):
        weight, noise = method.weights.item(time), method.noises[time]
        if value is None or noise is None:
            running.skip(weight) if value is None else running.one(math.nan, 0.0, 1.0)
            continue
        found[time] = _undone(running, float(value), weight, noise.variance, time)
        running.one(found.item(time), weight, noise.variance)
    return found


def _undone(running: Filter, value: float, weight: float, variance: float, time: int) -> float:
    """The measurement after which a filter says a value: by halving, since estimates follow it."""

    def said(measured: float) -> float:
        return deepcopy(running).one(measured, weight, variance) - value

    width = math.sqrt(variance)
    low, high = value - width, value + width
    while said(low) > 0 or said(high) < 0:
        width *= 4
        low, high = value - width, value + width
        if width > _WIDEST * math.sqrt(variance):
            rule = f"be what this method can release; value {time + 1} is not"
            raise InvalidParameter("released", "another", rule)
    low_gap, high_gap = said(low), said(high)
    for _ in range(_ROUNDS):
        # Straight through both ends, or the middle where that hardly moves an end.
        share = low_gap / (low_gap - high_gap) if low_gap != high_gap else 0.5
        guess = low + min(max(share, 0.05), 0.95) * (high - low)
        gap = said(guess)
        if gap == 0 or high - low <= 1e-12 * max(abs(low), abs(high), width):
            return guess
        if gap < 0:
            low, low_gap = guess, gap
        else:
            high, high_gap = guess, gap
    return (low + high) / 2
