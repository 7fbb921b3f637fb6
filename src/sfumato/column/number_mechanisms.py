r"""The least noise for a number within a budget, certified on the lattice that is sampled.

One scale for all values, as in the textbook, or one for each value: those where the prior is
dense need less. Scales that depend on the value cannot be found one by one, because the
output marginal that each is measured against is a mixture over all of them. They are found
together: given a marginal, each value takes the scale of least error that fits under it; the
marginal moves towards the one these scales give; and the scales of every round are stretched by
one factor until the exact certificate holds.
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
from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.loss import Loss, Measure
from sfumato.core.numerics import UNIT
from sfumato.core.search import boundary, geometric, least_above
from sfumato.noise.densities import local_gaussian_delta
from sfumato.noise.lattice import Lattice, Noise
from sfumato.solver.optimal import optimal

MOST_POINTS_EACH = 256
"""Most points with a scale of their own; more would fill the memory with candidates."""
_HALVINGS = 48
_CANDIDATES, _ROUNDS = 64, 24
_NARROWEST, _WIDEST = 0.02, 5.0
"""Candidates for a value's own scale, as parts of the one scale that would do for all."""


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


def least_noise(
    noise: Noise, lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float = 0.0
) -> NumberDesign:
    """The least scale, one for all values, that keeps the budget under the prior.

    Outputs are clamped to the interval of the lattice. That bounds all ratios, so that even
    Gaussian noise has a pure guarantee.

    Args:
        noise: The shape of the noise.
        lattice: Where values and outputs lie.
        prior: Probability of each point, full support.
        epsilon: Leakage allowed under the prior.
        delta: Probability with which it may be more.

    Examples:
        >>> ages = Lattice(0.0, 100.0, 41)
        >>> found = least_noise(Noise.LAPLACE, ages, np.full(41, 1 / 41), epsilon=1.0)
        >>> found.lip.epsilon <= 1.0, float(found.scales[0])  # 100 without a prior
        (True, 57.42)

    References:
        [LIP, Thm. 5 and Thm. 6]
    """
    belief, budget, allowed = _arguments(lattice, prior, epsilon, delta)
    scale = _least_factor(
        lambda size: Channel.from_probabilities(lattice.noisy(noise, size)),
        (lattice.step, local_scale(noise, lattice.width, budget, allowed)),
        belief,
        LIP(budget, allowed),
    )
    scales = np.full(lattice.count, scale)
    return _noise_design(noise, lattice, scales, belief, LIP(budget, allowed))


def least_noise_each(
    noise: Noise, lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float = 0.0
) -> NumberDesign:
    """Scales of their own for all values, certified together; never worse than one scale.

    Examples:
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> one = least_noise(Noise.LAPLACE, ages, bell / bell.sum(), epsilon=2.0)
        >>> each = least_noise_each(Noise.LAPLACE, ages, bell / bell.sum(), epsilon=2.0)
        >>> one.cost, each.cost, each.lip.epsilon <= 2.0
        (4.437, 3.489, True)

    References:
        [LIP, Cor. 10 and Eq. 26]
    """
    if lattice.count > MOST_POINTS_EACH:
        rule = f"have at most {MOST_POINTS_EACH} points for scales of their own"
        raise InvalidParameter("lattice", lattice.count, rule)
    best = least_noise(noise, lattice, prior, epsilon, delta)
    belief, budget, allowed = _arguments(lattice, prior, epsilon, delta)
    if best.scales is None or best.channel.is_constant:
        return best
    sizes = best.scales[0] * np.geomspace(_NARROWEST, _WIDEST, _CANDIDATES)
    tables = np.stack([lattice.noisy(noise, size) for size in sizes])
    errors = (tables * _distances(lattice)).sum(axis=2)
    marginal = belief @ lattice.noisy(noise, best.scales) / belief.sum()
    tried: set[bytes] = set()
    for _ in range(_ROUNDS):
        chosen = _fitting(tables, errors, marginal, math.exp(budget), allowed)
        told = belief @ tables[chosen, np.arange(lattice.count)] / belief.sum()
        marginal = 0.5 * (marginal + told)
        if chosen.tobytes() in tried:
            break
        tried.add(chosen.tobytes())
        found = _stretched(noise, lattice, sizes[chosen], belief, LIP(budget, allowed))
        if found is not None and found.cost < best.cost:
            best = found
    return best


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
    belief, budget, allowed = _arguments(lattice, prior, epsilon, delta)
    share, size = belief / belief.sum(), lattice.count

    def rows(hidden: float) -> Channel:
        kept = 1 - min(hidden, 1.0)
        return Channel.from_probabilities(kept * np.eye(size) + (1 - kept) * share)

    hidden = _least_factor(rows, (UNIT, 1.0), belief, LIP(budget, allowed))
    return number_design(rows(hidden), lattice, None, belief, LIP(budget, allowed))


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
    belief, budget, _ = _arguments(lattice, prior, epsilon, 0.0)
    loss = Loss.between(Measure.ABSOLUTE, lattice.points[:, None])
    channel = optimal(belief, loss, budget, ldp=ldp).channel
    return number_design(channel, lattice, None, belief, LIP(budget))


def guessed(design: NumberDesign, prior: ArrayLike) -> NumberDesign:
    """The same mechanism followed by the best guess of the value from each output.

    A function of the output alone, so nothing more is told. Noise that is wide against the prior
    is worth little without it.

    Examples:
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> noisy = least_noise(Noise.LAPLACE, ages, bell / bell.sum(), epsilon=2.0)
        >>> noisy.cost, guessed(noisy, bell / bell.sum()).cost
        (4.437, 2.679)
    """
    belief = checks.belief("prior", prior, design.lattice.count)
    posterior = belief[:, None] * design.channel.probabilities
    guesses = (posterior.T @ _distances(design.lattice)).argmin(axis=1)
    channel = design.channel.merged(guesses.tolist())
    return number_design(channel, design.lattice, design.scales, belief, design.lip)


def sampling_rate(epsilon: float, delta: float) -> float:
    r"""How often the sampling mechanism may tell the truth about a continuous value, as published.

    $$\lambda = \min\{\delta e^\epsilon,\ 1 - e^{-\epsilon} + \delta e^{-\epsilon}\}$$

    This satisfies the paper's Definition 5, whose first line forgives $e^\epsilon\delta$. A value
    that is told is given away: the stronger form that is meant by `LIP` here (both divergences
    at most $\delta$) allows $\lambda = \delta$.

    Examples:
        >>> sampling_rate(2.0, 0.01)
        0.07389056

    References:
        [LIP, Prop. 2]
    """
    budget = min(checks.leakage("epsilon", epsilon), 700.0)
    allowed, shrink = checks.fraction("delta", delta), math.exp(-budget)
    return min(1.0, allowed / shrink, 1 - shrink + allowed * shrink)


def local_noise(
    noise: Noise, lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float = 0.0
) -> NumberDesign:
    """The rival without a prior: the textbook scale for the width of the interval.

    Examples:
        >>> ages = Lattice(0.0, 100.0, 41)
        >>> float(local_noise(Noise.LAPLACE, ages, np.full(41, 1 / 41), epsilon=1.0).scales[0])
        100.0
    """
    belief, budget, allowed = _arguments(lattice, prior, epsilon, delta)
    if noise is Noise.GAUSSIAN and allowed == 0.0:
        raise InvalidParameter("delta", delta, "be positive: unbounded Gaussian noise is not pure")
    scales = np.full(lattice.count, local_scale(noise, lattice.width, budget, allowed))
    return _noise_design(noise, lattice, scales, belief, LIP(budget, allowed))


def local_scale(noise: Noise, width: float, epsilon: float, delta: float) -> float:
    """The least scale of unbounded noise with a model-free guarantee for values `width` apart.

    Laplace noise is pure whatever the delta. Gaussian noise is calibrated on its exact curve, and
    has none without a delta: infinite.

    Examples:
        >>> local_scale(Noise.GAUSSIAN, 1.0, 1.0, 1e-5)
        3.73063

    References:
        [Balle2018, Alg. 1]
    """
    checks.positive("width", width)
    checks.positive("epsilon", epsilon)
    checks.fraction("delta", delta)
    if noise is Noise.LAPLACE:
        return width / epsilon
    if delta == 0.0:
        return math.inf

    def enough(scale: float) -> bool:
        return local_gaussian_delta(width, scale, epsilon) <= delta

    return least_above(enough, width, math.inf, steps=_HALVINGS)


def prior_laplace_scale(width: float, epsilon: float, least: float) -> float:
    r"""The published scale of Laplace noise for a discrete prior: valid, by way of LDP.

    $$b = \frac{\Delta}{\ln\frac{e^\epsilon - p}{1 - p}}$$

    where $p$ is `least`, the smallest prior probability. The paper's second branch,
    $\Delta/\epsilon$ once $\epsilon \ge \ln(1/p)$, is never needed: it is only larger.
    `least_noise` finds the exact least scale.

    Examples:
        >>> prior_laplace_scale(1.0, 1.0, 0.25)
        0.8394865

    References:
        [LIP, Thm. 6]
    """
    mass = checks.proper_fraction("least", least)
    told = math.log1p(math.expm1(checks.epsilon("epsilon", epsilon)) / (1 - mass))
    return checks.positive("width", width) / told * (1 + 16 * UNIT)


def classical_scale(width: float, epsilon: float, delta: float) -> float:
    r"""The textbook scale of Gaussian noise, $\Delta\sqrt{2\ln(1.25/\delta)}/\epsilon$.

    Proven for epsilon up to 1 only, and refused beyond.

    Examples:
        >>> classical_scale(1.0, 1.0, 1e-5)
        4.8448

    References:
        [Dwork2014, Thm. A.1]
    """
    budget = checks.epsilon("epsilon", epsilon)
    if budget > 1:
        raise InvalidParameter("epsilon", epsilon, "be at most 1 for the classical scale")
    allowed = checks.proper_fraction("delta", delta)
    return checks.positive("width", width) * math.sqrt(2 * math.log(1.25 / allowed)) / budget


def _arguments(
    lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float
) -> tuple[Floats, float, float]:
    belief = checks.belief("prior", prior, lattice.count)
    allowed = checks.fraction("delta", delta)
    if allowed == 1.0:
        raise InvalidParameter("delta", delta, "be less than 1, which promises nothing")
    return belief, checks.epsilon("epsilon", epsilon), allowed


def _least_factor(
    made: Callable[[float], Channel], between: tuple[float, float], belief: Floats, budget: LIP
) -> float:
    """The least factor whose channel keeps the budget, by halving on a logarithmic scale."""

    def kept(factor: float) -> bool:
        return approximate_leakage(made(factor), belief, budget.epsilon).delta <= budget.delta

    low, high = between
    if not math.isfinite(high):
        high = 2 * low
    # What would do without clamping and rounding may just fail with them.
    for _ in range(_HALVINGS):
        if kept(high):
            break
        low, high = high, 2 * high
    else:
        raise SolverFailed("no noise within the budget was found; nothing was released")
    while kept(low) and low > UNIT * high:
        low /= 2
    return boundary(kept, inside=high, outside=low, steps=_HALVINGS, middle=geometric)


def _fitting(tables: Floats, errors: Floats, marginal: Floats, k: float, delta: float) -> Ints:
    """For each value the candidate of least error that fits under a marginal, or nearly does."""
    above = np.maximum(tables - k * marginal, 0).sum(axis=2)
    short = np.maximum(np.maximum(marginal - k * tables, 0).sum(axis=2), above)
    fits = short <= delta * (1 - 1e-3) + 1e-15
    cheapest = np.where(fits, errors, np.inf).argmin(axis=0)
    return np.asarray(np.where(fits.any(axis=0), cheapest, short.argmin(axis=0)))


def _stretched(
    noise: Noise, lattice: Lattice, scales: Floats, belief: Floats, budget: LIP
) -> NumberDesign | None:
    """The design with these scales, stretched just enough; None if none within reach is."""

    def made(factor: float) -> Channel:
        return Channel.from_probabilities(lattice.noisy(noise, factor * scales))

    try:
        factor = _least_factor(made, (0.5, 1.0), belief, budget)
    except SolverFailed:
        return None
    return _noise_design(noise, lattice, factor * scales, belief, budget)


def _noise_design(
    noise: Noise, lattice: Lattice, scales: Floats, belief: Floats, budget: LIP
) -> NumberDesign:
    channel = Channel.from_probabilities(lattice.noisy(noise, scales))
    return number_design(channel, lattice, checks.read_only(scales), belief, budget)


def number_design(
    channel: Channel, lattice: Lattice, scales: Floats | None, belief: Floats, budget: LIP
) -> NumberDesign:
    """A channel on a lattice with its cost and certificates, for a budget that it keeps."""
    lip = leakage_within(channel, belief, budget.delta)
    # Halving ends a hair above the least level; a budget that is kept is none the less kept.
    if lip.epsilon > budget.epsilon:
        kept = approximate_leakage(channel, belief, budget.epsilon).delta <= budget.delta
        lip = budget if kept else lip
    per_point = (channel.probabilities * _distances(lattice)[:, channel.outputs]).sum(axis=1)
    return NumberDesign(
        channel=channel,
        lattice=lattice,
        scales=scales,
        cost=float(belief @ per_point / belief.sum()),
        lip=lip,
        ldp=local_leakage_within(channel, budget.delta),
    )


def _distances(lattice: Lattice) -> Floats:
    return np.asarray(np.abs(lattice.points[:, None] - lattice.points))
