r"""Mechanisms for a number, certified on the lattice that is sampled.

Noise of the least scale is in `scaled_noise`; here is what needs none: the channel of least error,
the truth told rarely, and the receiver's best guess from whatever was released.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.column.approximate_leakage import (
    approximate_leakage,
    leakage_within,
    local_leakage_within,
)
from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.loss import Loss, Measure
from sfumato.core.numerics import UNIT
from sfumato.core.search import boundary, geometric
from sfumato.noise.lattice import Lattice
from sfumato.solver.optimal_channel import optimal

# Enough for the last bits of a factor between powers of two.
_HALVINGS = 48


@dataclass(frozen=True, slots=True)
class NumberDesign:
    """A mechanism for numbers.

    Attributes:
        channel: From points to points of the lattice, in the integers that will be sampled.
        lattice: The points.
        scales: Scale of the noise at each point; None for mechanisms without one.
        cost: Expected absolute error under the prior, between points.
        lip: Its exact leakage under the prior: the least epsilon at the delta that was allowed.
        ldp: The same whatever the prior.
    """

    channel: Channel
    lattice: Lattice
    scales: Floats | None
    cost: float
    lip: LIP
    ldp: LDP


def optimal_number(
    lattice: Lattice, prior: ArrayLike, epsilon: float, *, ldp: float | None = None
) -> NumberDesign:
    """No additive noise at all: the channel of least expected absolute error within the budget.

    It is pure, and tells few different outputs: more would tell more than they are worth.

    Examples:
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> optimal_number(ages, bell / bell.sum(), epsilon=2.0).cost
        1.026

    References:
        [LIP, Eq. 18]
    """
    belief, budget = checked_budget(lattice, prior, epsilon, 0.0)
    loss = Loss.between(Measure.ABSOLUTE, lattice.points[:, None])
    channel = optimal(belief, loss, budget.epsilon, ldp=ldp).channel
    return number_design(channel, lattice, None, belief, budget)


def sampling(
    lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float = 0.0
) -> NumberDesign:
    r"""Release the value with some probability, and else a fresh draw from the prior.

    On a lattice that probability may be positive even without a delta:
    $\lambda \le (\delta + (k-1)\,b_{\min})/(1 - b_{\min})$, next to nothing on a fine one.

    Examples:
        >>> even = sampling(Lattice(0.0, 1.0, 2), [0.5, 0.5], epsilon=math.log(1.5))
        >>> even.channel.probabilities
        array([[0.6666, 0.3333],
               [0.3333, 0.6666]])

    References:
        [LIP, Prop. 2]
    """
    belief, budget = checked_budget(lattice, prior, epsilon, delta)
    share, size = belief / belief.sum(), lattice.count

    def rows(hidden: float) -> Channel:
        honest = 1 - min(hidden, 1.0)
        return Channel.from_probabilities(honest * np.eye(size) + (1 - honest) * share)

    hidden = least_factor(rows, (UNIT, 1.0), belief, budget)
    return number_design(rows(hidden), lattice, None, belief, budget)


def guessed(design: NumberDesign, prior: ArrayLike) -> NumberDesign:
    """The same mechanism followed by the best guess of the value from each output.

    A function of the output alone, so nothing more is told. Noise that is wide against the prior
    is worth little without it.

    Examples:
        >>> from sfumato.column.scaled_noise import least_noise
        >>> from sfumato.noise.lattice import Noise
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> noisy = least_noise(Noise.LAPLACE, ages, bell / bell.sum(), epsilon=2.0)
        >>> noisy.cost, guessed(noisy, bell / bell.sum()).cost
        (4.437, 2.679)
    """
    belief = checks.belief("prior", prior, design.lattice.count)
    posterior = belief[:, None] * design.channel.probabilities
    guesses = (portable.dot(posterior.T, distances(design.lattice))).argmin(axis=1)
    channel = design.channel.merged(guesses.tolist())
    return number_design(channel, design.lattice, design.scales, belief, design.lip)


def number_design(
    channel: Channel, lattice: Lattice, scales: Floats | None, belief: Floats, budget: LIP
) -> NumberDesign:
    """A channel on a lattice with its cost and certificates, for a budget that it keeps."""
    lip = leakage_within(channel, belief, budget.delta)
    # Halving ends a hair above the least level; a budget that is kept is none the less kept.
    if lip.epsilon > budget.epsilon:
        within = approximate_leakage(channel, belief, budget.epsilon).delta <= budget.delta
        lip = budget if within else lip
    per_point = (channel.probabilities * distances(lattice)[:, channel.outputs]).sum(axis=1)
    return NumberDesign(
        channel=channel,
        lattice=lattice,
        scales=scales,
        cost=float(portable.dot(belief, per_point) / belief.sum()),
        lip=lip,
        ldp=local_leakage_within(channel, budget.delta),
    )


def checked_budget(
    lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float
) -> tuple[Floats, LIP]:
    """A prior of the points and a budget, checked."""
    belief = checks.belief("prior", prior, lattice.count)
    allowed = checks.fraction("delta", delta)
    if allowed == 1.0:
        raise InvalidParameter("delta", delta, "be less than 1, which promises nothing")
    return belief, LIP(checks.epsilon("epsilon", epsilon), allowed)


def least_factor(
    channel_at: Callable[[float], Channel],
    between: tuple[float, float],
    belief: Floats,
    budget: LIP,
) -> float:
    """The least factor whose channel keeps the budget, by halving on a logarithmic scale."""

    def keeps(factor: float) -> bool:
        return approximate_leakage(channel_at(factor), belief, budget.epsilon).delta <= budget.delta

    low, high = between
    if not math.isfinite(high):
        high = 2 * low
    # What would do without clamping and rounding may just fail with them.
    for _ in range(_HALVINGS):
        if keeps(high):
            break
        low, high = high, 2 * high
    else:
        raise SolverFailed("no noise within the budget was found; nothing was released")
    while keeps(low) and low > UNIT * high:
        low /= 2
    return boundary(keeps, inside=high, outside=low, steps=_HALVINGS, middle=geometric)


def distances(lattice: Lattice) -> Floats:
    """How far apart each two points are."""
    return np.asarray(np.abs(lattice.points[:, None] - lattice.points))
