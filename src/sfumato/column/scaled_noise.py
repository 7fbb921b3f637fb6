r"""The least noise for a number within a budget, certified on the lattice that is sampled.

One scale for all values, as in the textbook, or one for each value: those where the prior is
dense need less. Scales that depend on the value cannot be found one by one, because the
output marginal that each is measured against is a mixture over all of them. They are found
together: given a marginal, each value takes the scale of least error that fits under it; the
marginal moves towards the one these scales give; and the scales of every round are stretched by
one factor until the exact certificate holds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sfumato.column.noise_scales import local_scale
from sfumato.column.number_mechanisms import (
    NumberDesign,
    checked_budget,
    distances,
    least_factor,
    number_design,
)
from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.guarantees import LIP
from sfumato.noise.lattice import Lattice, Noise

# Most points with a scale of their own; more would fill the memory with candidates.
MOST_POINTS_EACH = 256
_CANDIDATES, _ROUNDS = 64, 24
# Candidates for a value's own scale, as parts of the one scale that would do for all.
_NARROWEST, _WIDEST = 0.02, 5.0


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
    belief, budget = checked_budget(lattice, prior, epsilon, delta)
    scale = least_factor(
        lambda size: Channel.from_probabilities(lattice.noisy(noise, size)),
        (lattice.step, local_scale(noise, lattice.width, budget.epsilon, budget.delta)),
        belief,
        budget,
    )
    scales = np.full(lattice.count, scale)
    return _noise_design(noise, lattice, scales, belief, budget)


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
    belief, budget = checked_budget(lattice, prior, epsilon, delta)
    if best.scales is None or best.channel.is_constant:
        return best
    sizes = best.scales[0] * portable.geometric(_NARROWEST, _WIDEST, _CANDIDATES)
    tables = np.stack([lattice.noisy(noise, size) for size in sizes])
    errors = (tables * distances(lattice)).sum(axis=2)
    marginal = portable.dot(belief, lattice.noisy(noise, best.scales)) / belief.sum()
    tried: set[bytes] = set()
    for _ in range(_ROUNDS):
        chosen = _fitting(tables, errors, marginal, portable.exp(budget.epsilon), budget.delta)
        released = portable.dot(belief, tables[chosen, np.arange(lattice.count)]) / belief.sum()
        marginal = 0.5 * (marginal + released)
        if chosen.tobytes() in tried:
            break
        tried.add(chosen.tobytes())
        tried_design = _stretched(noise, lattice, sizes[chosen], belief, budget)
        if tried_design is not None and tried_design.cost < best.cost:
            best = tried_design
    return best


def local_noise(
    noise: Noise, lattice: Lattice, prior: ArrayLike, epsilon: float, delta: float = 0.0
) -> NumberDesign:
    """The rival without a prior: the textbook scale for the width of the interval.

    Examples:
        >>> ages = Lattice(0.0, 100.0, 41)
        >>> float(local_noise(Noise.LAPLACE, ages, np.full(41, 1 / 41), epsilon=1.0).scales[0])
        100.0
    """
    belief, budget = checked_budget(lattice, prior, epsilon, delta)
    if noise is Noise.GAUSSIAN and budget.delta == 0.0:
        raise InvalidParameter("delta", delta, "be positive: unbounded Gaussian noise is not pure")
    scales = np.full(lattice.count, local_scale(noise, lattice.width, budget.epsilon, budget.delta))
    return _noise_design(noise, lattice, scales, belief, budget)


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

    def channel_at(factor: float) -> Channel:
        return Channel.from_probabilities(lattice.noisy(noise, factor * scales))

    try:
        factor = least_factor(channel_at, (0.5, 1.0), belief, budget)
    except SolverFailed:
        return None
    return _noise_design(noise, lattice, factor * scales, belief, budget)


def _noise_design(
    noise: Noise, lattice: Lattice, scales: Floats, belief: Floats, budget: LIP
) -> NumberDesign:
    channel = Channel.from_probabilities(lattice.noisy(noise, scales))
    return number_design(channel, lattice, checks.read_only(scales), belief, budget)
