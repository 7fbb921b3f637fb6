r"""The paper's attacker on attributes that equations tie: rates, their bound, and estimates.

The paper narrows the noise of each attribute through the equations (`narrowing`), estimates all
attributes but one of each equation, the hardest, and infers that one. Its rate is the product of
the rates of the others (Definition 6 and Theorem 2). That takes it that an attribute within
$\varepsilon$ gives the inferred one within $\varepsilon$: true where the equation is no steeper
than 1. `coupled_disclosure` is the success of the best attacker on the curve itself.

References:
    [MDDP, Def. 6, Thm. 1, Thm. 2 and Thm. 3]
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.coupled_attack import attacked_rows
from sfumato.record.coupling.coupled_prior import CoupledPrior
from sfumato.record.coupling.coupling import Interval
from sfumato.record.vector_noise import VectorNoise, half_widths

_ROWS = 64
"""Published rows over which rates are averaged: each is narrowed anew, some milliseconds."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Successful disclosure rates, as means over what is published.

    Attributes:
        gamma: With the equations.
        gamma_without: With the domains of the attributes alone.
        inferred: The attribute that each equation gives, most often.
        gain: Relative gain from the equations.
        gain_bound: The paper's bound on it.
    """

    gamma: float
    gamma_without: float
    inferred: tuple[str, ...]
    gain: float
    gain_bound: float


def disclosure_rates(prior: CoupledPrior, noise: VectorNoise, accuracy: ArrayLike) -> Rates:
    r"""The paper's successful disclosure rate, with the equations and without.

    $$\gamma_i = \max_{\hat\theta} \frac{\int_{[\hat\theta - \varepsilon,
        \hat\theta + \varepsilon] \cap \Theta_i} f_{\theta_i}}{\int_{\Theta_i} f_{\theta_i}}$$

    where $\Theta_i$ is what the domain, the reach of the noise and the equations leave of the noise
    of attribute $i$. (Definition 6 does not cut the interval to $\Theta_i$ and so can exceed 1.)

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> from sfumato.record.coupling.coupling import FullCoupling
        >>> twice = FullCoupling.equation("b = a", {"a": (0, 10), "b": (0, 10)})
        >>> prior = CoupledPrior.of(["a", "b"], [twice])
        >>> rates = disclosure_rates(prior, noise_of("gaussian", 500.0, 2), 0.5)
        >>> rates.gamma, rates.gamma_without, rates.gain, rates.gain_bound
        (0.10, 0.010, 8.97, 9.0)
    """
    half = half_widths(noise, accuracy, len(prior.names))
    rows = attacked_rows(prior.cloud(half), noise, _ROWS, "rates")
    with_, without = [], []
    chosen: list[tuple[str, ...]] = []
    for row in rows:
        before = _reached(prior, noise, row)
        each, inferred = _inferred(prior, noise, half, row, _narrowed(prior, before))
        chosen.append(inferred)
        with_.append(math.prod(rate for name, rate in each.items() if name not in inferred))
        without.append(math.prod(_each_rate(prior, noise, half, row, before).values()))
    gamma, gamma_without = float(np.mean(with_)), float(np.mean(without))
    return Rates(
        gamma,
        gamma_without,
        max(set(chosen), key=chosen.count),
        gamma / gamma_without - 1,
        gain_bound(half, prior.limits, len(prior.couplings)),
    )


def gain_bound(half: Floats, domains: Floats, couplings: int) -> float:
    r"""The paper's bound on the relative gain of the rate: $(2 \varepsilon / M)^{-K} - 1$.

    where $M$ is the width of the domains, $K$ the number of equations. With domains and accuracies
    of their own the bound is that of the $K$ attributes with the most to gain.

    References:
        [MDDP, Thm. 3]
    """
    ratios = np.sort(np.diff(domains, axis=1)[:, 0] / (2 * half))[::-1]
    return float(np.prod(ratios[:couplings])) - 1


def equation_estimates(
    prior: CoupledPrior, noise: VectorNoise, accuracy: ArrayLike, published: ArrayLike
) -> Floats:
    """The paper's attacker: estimates of all attributes, one of each equation inferred.

    An attribute that is estimated is put where its own noise is likeliest within what domain and
    equations leave; the hardest of each equation is then solved for. Where there is no solution
    near, its own estimate stays.

    References:
        [MDDP, Thm. 2]
    """
    half = half_widths(noise, accuracy, len(prior.names))
    rows = np.atleast_2d(checks.numbers("published", published))
    place = {name: index for index, name in enumerate(prior.names)}
    found = np.empty_like(rows)
    for index, row in enumerate(rows):
        left = _narrowed(prior, _reached(prior, noise, row))
        _, inferred = _inferred(prior, noise, half, row, left)
        for axis, name in enumerate(prior.names):
            low, high = left[name]
            centre = min(low + half[axis], 0.5 * (low + high))
            found[index, axis] = min(max(row[axis], centre), low + high - centre)
        for coupling, target in zip(prior.couplings, inferred, strict=True):
            others = {n: found[index, place[n]] for n in coupling.attributes if n != target}
            roots = coupling.solutions(target, others)[0]
            roots = roots[np.isfinite(roots)]
            if roots.size:
                nearest = np.argmin(np.abs(roots - row[place[target]]))
                found[index, place[target]] = roots[nearest]
    return found


def _reached(prior: CoupledPrior, noise: VectorNoise, row: Floats) -> dict[str, Interval]:
    """Where each attribute may lie, by its domain and the reach of the noise."""
    reach = noise.form().reach
    found = {}
    for axis, name in enumerate(prior.names):
        low, high = prior.domains[name]
        first, last = max(low, row[axis] - reach[axis]), min(high, row[axis] + reach[axis])
        found[name] = (first, last) if first <= last else (low, high)
    return found


def _narrowed(prior: CoupledPrior, left: dict[str, Interval]) -> dict[str, Interval]:
    """What equations leave; all of it where no solution explains what was published."""
    after = dict(left)
    for coupling in prior.couplings:
        with suppress(InvalidParameter):
            after |= coupling.narrowed({name: left[name] for name in coupling.attributes})
    return after


def _inferred(
    prior: CoupledPrior,
    noise: VectorNoise,
    half: Floats,
    row: Floats,
    left: dict[str, Interval],
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The rate of each attribute alone, and the hardest of each equation, which is inferred."""
    each = _each_rate(prior, noise, half, row, left)
    return each, tuple(min(one.attributes, key=each.__getitem__) for one in prior.couplings)


def _each_rate(
    prior: CoupledPrior,
    noise: VectorNoise,
    half: Floats,
    row: Floats,
    left: dict[str, Interval],
) -> dict[str, float]:
    """The rate of each attribute alone, within what is left of it."""
    rates = {}
    for axis, name in enumerate(prior.names):
        low, high = left[name]
        first, last = row[axis] - high, row[axis] - low
        width = min(half[axis], 0.5 * (last - first))
        # An interval may be likeliest at 0, or at the edges of shells.
        edges = noise.form().edges * noise.sigma[axis]
        edges = np.concatenate([edges - width, edges, edges + width])
        centres = np.concatenate([[0.0], edges, -edges]).clip(first + width, last - width)
        possible = float(noise.axis_mass(axis, first, last))
        best = float(noise.axis_mass(axis, centres - width, centres + width).max())
        rates[name] = min(best / possible, 1.0) if possible > 0 else 1.0
    return rates
