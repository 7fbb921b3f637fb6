r"""Releases of salaries: LIP Figure 12 on people whom the prior was not fitted to.

Half of the people have told theirs; a mixture of two normals is fitted to these, as in the paper.
All mechanisms are made for that prior on a lattice, to which values and outputs are clamped, and
are judged by the mean absolute error of the other half's true salaries, exact but for who is in
which half. All depend on the interval: they are judged on that of all salaries, and on the one
that is best for each in hindsight.

"Cor. 10" and "Prop. 2" are the paper's rules as published. Their delta, and everybody's, is
computed from the channel in the stronger form (errata 26, N1, N14); that of Cor. 10 with unbounded
outputs, as it is published.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sfumato.column.approximate_leakage import approximate_leakage, leakage_within
from sfumato.column.noise_scales import paper_sampling_rate
from sfumato.column.number_error import TrueNumbers
from sfumato.column.number_mechanisms import (
    NumberDesign,
    guessed,
    optimal_number,
    sampling,
)
from sfumato.column.quantile_response import quantile_response
from sfumato.column.scaled_noise import least_noise, least_noise_each, local_noise
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LIP
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.lattice import Lattice, Noise
from sfumato.studies.lip.lip_number_noise import mixture_deltas

HIGHEST = 200_000.0
"""Two in a thousand earn more."""
POINTS, COMPONENTS = 101, 2
ALL, BEST = "all salaries", "best in hindsight"
"""Intervals on which mechanisms are judged."""
SILENCE, OPTIMAL, QUANTILES = "silence", "optimal, δ = 0", "quantile response, δ = 0"
SAMPLING, CERTIFIED_SAMPLING = "sampling, Prop. 2", "sampling, certified"
OTHER_FIT = "sampling, Prop. 2, one normal"
GAUSSIAN_LDP, ONE_SCALE, OWN_SCALES = "Gaussian, LDP", "Gaussian, one scale", "Gaussian, own scales"
COROLLARY = "Gaussian, Cor. 10"
GUESSED = ", best guess"
CERTIFIED = (CERTIFIED_SAMPLING, GAUSSIAN_LDP, ONE_SCALE, OWN_SCALES, OPTIMAL, QUANTILES)
# The least of a prior on a lattice: half a person for each point.
_SMOOTHED = 0.5
_HALVINGS, _OUTPUTS, _FAR = 26, 1201, 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Town:
    """What is known of salaries, and those of the others.

    Attributes:
        told: Of the people who told theirs.
        others: Of the people who release.
    """

    told: Floats
    others: Floats

    @classmethod
    def halved(cls, gross: Floats, seed: int) -> Town:
        """Half of the people, drawn anew, have told."""
        order = np.random.default_rng(seed).permutation(gross.size)
        half = gross.size // 2
        return cls(gross[order[:half]], gross[order[half:]])


@dataclass(frozen=True, slots=True)
class Outcome:
    """One mechanism on one half of the people.

    Attributes:
        error: Mean absolute error in dollars.
        delta: What it leaks beyond epsilon under the prior.
        told: Its leakage at that delta under the other half's own distribution, which the prior
            is an estimate of.
    """

    error: float
    delta: float
    told: float


@dataclass(frozen=True, slots=True, eq=False)
class _Place:
    """A lattice, the prior on it, and the others' salaries on it."""

    lattice: Lattice
    prior: Floats
    truth: TrueNumbers
    shares: Floats

    @classmethod
    def of(cls, town: Town, mixture: GaussianMixture, high: float) -> _Place:
        lattice = Lattice(0.0, high, POINTS)
        counts = np.bincount(lattice.places(town.others), minlength=POINTS) + _SMOOTHED
        truth = TrueNumbers.of_values(lattice, town.others)
        return cls(lattice, mixture.masses(lattice.cuts), truth, counts / counts.sum())

    def outcome(self, channel: Channel, budget: LIP) -> Outcome:
        """What a channel misses by and leaks here."""
        return Outcome(
            self.truth.error(channel),
            approximate_leakage(channel, self.prior, budget.epsilon).delta,
            leakage_within(channel, self.shares, budget.delta).epsilon,
        )

    def published(self, scales: Floats, budget: LIP) -> Outcome:
        """Noise with given scales: error with clamped outputs, delta with unbounded ones."""
        channel = Channel.from_probabilities(self.lattice.noisy(Noise.GAUSSIAN, scales))
        masses, points = self.prior, self.lattice.points
        delta = float(mixture_deltas(masses, points, scales, budget.epsilon).max())
        return replace(self.outcome(channel, budget), delta=delta)


def outcomes(
    town: Town, epsilon: float, delta: float, highs: tuple[float, ...]
) -> Iterator[tuple[str, str, Outcome]]:
    """Every mechanism at one budget, on the interval of all salaries and on its best one."""
    budget = LIP(epsilon, delta)
    silent = Outcome(float(np.abs(town.others - np.median(town.told)).mean()), 0.0, 0.0)
    found: dict[str, dict[float, Outcome]] = {SILENCE: {HIGHEST: silent}}
    mixture, normal = (
        GaussianMixture.fit(town.told, components=count) for count in (COMPONENTS, 1)
    )
    for high in highs:
        place = _Place.of(town, mixture, high)
        other = _Place.of(town, normal, high).prior
        for name, channel in _channels(place, other, budget):
            found.setdefault(name, {})[high] = place.outcome(channel, budget)
        for name, design in _gaussians(place, budget):
            found.setdefault(name, {})[high] = place.outcome(design.channel, budget)
            told = guessed(design, place.prior).channel
            found.setdefault(f"{name}{GUESSED}", {})[high] = place.outcome(told, budget)
        scales = corollary_scales(mixture, place.lattice.points, epsilon, delta)
        found.setdefault(COROLLARY, {})[high] = place.published(scales, budget)
    for name, tried in found.items():
        yield name, ALL, tried[HIGHEST]
        yield name, BEST, min(tried.values(), key=lambda one: one.error)


def _channels(place: _Place, other: Floats, budget: LIP) -> Iterator[tuple[str, Channel]]:
    lattice, prior, epsilon = place.lattice, place.prior, budget.epsilon
    rate = paper_sampling_rate(epsilon, budget.delta)
    yield SAMPLING, _sampled(prior, rate)
    yield OTHER_FIT, _sampled(other, rate)
    yield CERTIFIED_SAMPLING, sampling(lattice, prior, epsilon, budget.delta).channel
    yield OPTIMAL, optimal_number(lattice, prior, epsilon).channel
    yield QUANTILES, quantile_response(lattice, prior, epsilon).channel


def _sampled(prior: Floats, rate: float) -> Channel:
    """The truth with some probability, and else a draw from a prior."""
    share = prior / prior.sum()
    return Channel.from_probabilities(rate * np.eye(share.size) + (1 - rate) * share)


def _gaussians(place: _Place, budget: LIP) -> Iterator[tuple[str, NumberDesign]]:
    given = (Noise.GAUSSIAN, place.lattice, place.prior, budget.epsilon, budget.delta)
    yield GAUSSIAN_LDP, local_noise(*given)
    yield ONE_SCALE, least_noise(*given)
    yield OWN_SCALES, least_noise_each(*given)


def corollary_scales(
    mixture: GaussianMixture, values: Floats, epsilon: float, delta: float
) -> Floats:
    """The deviation that Cor. 10 asks for at each value, of all values by halving together.

    It takes the output marginal to be the prior blurred by this one deviation, and outputs to be
    unbounded.

    Examples:
        >>> from sfumato.models.mixture import GaussianMixture
        >>> corollary_scales(GaussianMixture.normal(0.0, 5.0), np.array([0.0, 12.0]), 1.0, 1e-4)
        array([11.54, 41.16])

    References:
        [LIP, Cor. 10]
    """
    k, spread = math.exp(epsilon), float(mixture.deviations.max())
    low, high = np.full(values.size, 1e-3 * spread), np.full(values.size, 1e3 * spread)
    for _ in range(_HALVINGS):
        scale = np.sqrt(low * high)
        reach = _FAR * np.hypot(scale, spread)
        left = np.minimum(values, mixture.means.min()) - reach
        right = np.maximum(values, mixture.means.max()) + reach
        outputs = np.linspace(left, right, _OUTPUTS, axis=1)
        own = _bell(outputs, values, scale)
        overall = sum(
            weight * _bell(outputs, np.full(values.size, mean), np.hypot(deviation, scale))
            for weight, mean, deviation in zip(
                mixture.weights, mixture.means, mixture.deviations, strict=True
            )
        )
        over = np.maximum(own - k * overall, 0).sum(axis=1)
        under = np.maximum(overall - k * own, 0).sum(axis=1)
        kept = np.maximum(over, under) * (right - left) / (_OUTPUTS - 1) <= delta
        low, high = np.where(kept, low, scale), np.where(kept, scale, high)
    return high


def _bell(outputs: Floats, means: Floats, deviations: Floats) -> Floats:
    standard = (outputs - means[:, None]) / deviations[:, None]
    return np.asarray(np.exp(-0.5 * standard**2) / (deviations[:, None] * math.sqrt(2 * math.pi)))
