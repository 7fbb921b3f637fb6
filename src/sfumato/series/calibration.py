"""The noise of each measurement of a series, for a budget of all of them together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable, search
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.noise.curves import gaussian_ratio
from sfumato.noise.number_noise import NumberNoise
from sfumato.series.series_release import Unit

Noise = TypeVar("Noise")
Noises = tuple[NumberNoise | None, ...]

# Of the scale of a noise whose curve is not the Gaussian one: a ten-millionth.
_HALVINGS = 24
# Deviations in sensitivities beyond which no noise is tried.
_MOST_SCALE = 1e9
# Whole steps make sensitivities larger, by a hundredth as a rule, and so must the noise be.
_STRETCHES = (1 + 2.0**-40, *np.linspace(1.001, 1.02, 20).tolist(), 1.04, 1.12, 1.6)
_LEAST_SHARE, _MOST_SHARES, _STRIDE = 1e-4, 64, 0.05


def calibrated(
    kind: type[NumberNoise],
    widths: Floats,
    shares: Floats,
    epsilon: float,
    delta: float,
    unit: Unit,
) -> Noises:
    """The least noise of a kind that keeps a budget.

    Args:
        kind: Of noise.
        widths: Sensitivity of each value.
        shares: How precisely each is measured, relative to the others; 0 for not at all.
        epsilon: Budget of all measurements that one person may be in.
        delta: Budget; not used by pure noise.
        unit: Whether a person may be in every value, or in one of them.
    """
    if kind.pure:
        whole = float(shares.max() if unit is Unit.EVENT else shares.sum())
        # A hair less: leakages are rounded up, and must still add up to the budget.
        each = checks.positive("epsilon", epsilon) * shares / whole * (1 - 2.0**-40)
        return _each(kind.at, widths, each)
    total = float(shares.max() if unit is Unit.EVENT else math.sqrt(np.square(shares).sum()))
    least = total / gaussian_ratio(epsilon, delta)

    def noises(scale: float) -> Noises:
        return _each(lambda width, share: kind.at(width, width * scale / share), widths, shares)

    def kept(scale: float) -> bool:
        return promised(noises(scale), delta, unit).epsilon <= epsilon

    if kind.scaled_by_curve:
        for stretch in _STRETCHES:
            if kept(least * stretch):
                return noises(least * stretch)
        raise InvalidParameter("sensitivity", "such", "be held by the lattice of the noise")
    # Other curves lie above the Gaussian one, so its scale is where the search begins.
    scale = search.least_above(kept, least, _MOST_SCALE * total, steps=_HALVINGS)
    if math.isinf(scale):
        raise InvalidParameter("epsilon", epsilon, "be larger for this noise")
    return noises(scale)


def check_one_kind(noises: Sequence[NumberNoise]) -> type[NumberNoise]:
    """The one kind of some noises, or say that they must be of one."""
    kinds = {type(noise) for noise in noises}
    if len(kinds) != 1:
        raise InvalidParameter("noises", f"{len(kinds)} kinds", "be of one kind")
    return kinds.pop()


def promised(noises: Sequence[NumberNoise | None], delta: float, unit: Unit) -> PureDP | ApproxDP:
    """The guarantee of all measurements together, or of the worst one alone."""
    used = [noise for noise in noises if noise is not None]
    if unit is Unit.USER:
        return check_one_kind(used).together(Counter(used), delta)
    alone = [noise.together(Counter([noise]), delta) for noise in dict.fromkeys(used)]
    return max(alone, key=lambda one: one.epsilon)


def _each(
    make: Callable[[float, float], Noise], widths: Floats, shares: Floats
) -> tuple[Noise | None, ...]:
    """The noise of each measurement; equal ones are one object."""
    pairs = list(zip(widths.tolist(), shares.tolist(), strict=True))
    made = {pair: make(*pair) for pair in set(pairs) if pair[1] > 0}
    return tuple(made.get(pair) for pair in pairs)


def shares_of(length: int | None, schedule: ArrayLike | None) -> Floats:
    """How precisely each value is measured, relative to the others."""
    if schedule is None:
        if length is None:
            raise InvalidParameter("length", None, "be given, or a schedule")
        return np.ones(checks.count("length", length))
    shares = checks.numbers("schedule", schedule)
    if shares.ndim != 1 or shares.size == 0 or shares.min() < 0 or shares.max() <= 0:
        rule = "be numbers of at least 0, not all of them 0"
        raise InvalidParameter("schedule", shares.shape, rule)
    if length is not None and length != shares.size:
        raise InvalidParameter("length", length, f"be {shares.size}, as long as the schedule")
    return _snapped(shares)


def _snapped(shares: Floats) -> Floats:
    """The same with few different numbers, since each needs a table of its own.

    Many are moved to a grid of a twentieth; less than a ten-thousandth of the largest is none.
    """
    used = np.where(shares < _LEAST_SHARE * shares.max(), 0.0, shares)
    if np.unique(used).size <= _MOST_SHARES:
        return used
    logs = portable.log(np.where(used > 0, used, 1.0) / shares.max()) / _STRIDE
    return np.where(used > 0, shares.max() * portable.exp(_STRIDE * np.round(logs)), 0.0)


def for_each(name: str, value: float | ArrayLike, count: int) -> Floats:
    """One number for all values, or one for each; greater than 0."""
    given = checks.numbers(name, value)
    if given.shape not in ((), (count,)):
        raise InvalidParameter(name, given.shape, f"be one number or {count}")
    if float(given.min()) <= 0:
        raise InvalidParameter(name, float(given.min()), "be greater than 0")
    return np.broadcast_to(given, (count,))
