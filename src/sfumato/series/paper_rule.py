"""Measurements with noise by name, among them the rule as the paper has it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.noise.registry import NOISES
from sfumato.series.filter_banks import learned
from sfumato.series.filters import Estimate, one_lag
from sfumato.series.realtime import Realtime, RealtimeOptions
from sfumato.series.series_spec import SeriesSpec

# Simulations of each weight that is tried.
_TRIALS = 4
_LEAST_WEIGHT, _LARGE_WEIGHTS = 0.02, (0.85, 0.9, 0.94, 0.97, 0.985, 1.0)
# What geometric squared weights have fallen to at the end of the series.
_ENDS = (0.5, 0.1, 0.01)
# Seeds of trials begin here, away from those of the simulations that are reported.
_TRIAL_SEED = 10**6


def measured(spec: SeriesSpec, noise: str, estimate: Estimate | None = None) -> Realtime:
    """Measurements with a noise of that name, and after it the filter of the spec."""
    return _with(spec, noise, estimate or spec.estimate or learned())


def _with(
    spec: SeriesSpec,
    noise: str,
    estimate: Estimate,
    schedule: Floats | None = None,
    weight: float | Floats = 1.0,
) -> Realtime:
    pure = NOISES.named(noise).pure
    options = RealtimeOptions(
        epsilon=spec.pure(spec.together) if pure else spec.epsilon,
        delta=0.0 if pure else spec.delta,
        length=spec.length,
        schedule=schedule,
        weight=weight,
        estimate=estimate,
        unit=spec.level,
    )
    return Realtime.at(noise, spec.sensitivity, **options)


def paper_rule(spec: SeriesSpec) -> Realtime:
    """The paper's rule, with the weight that its own formulas ask for."""
    made = _with(spec, "gaussian", one_lag())
    weight = spec.weight
    if weight is None:
        weight = paper_weight(spec.true_series, float(made.variances[0]))
    return _with(spec, "gaussian", one_lag(), weight=weight)


def best_paper_rule(spec: SeriesSpec) -> Realtime:
    """The paper's rule, with the weight of least error; not private."""
    made = _with(spec, "gaussian", one_lag())
    asked = paper_weight(spec.true_series, float(made.variances[0]))
    tried = (*portable.geometric(_LEAST_WEIGHT, 0.8, 16), *_LARGE_WEIGHTS, asked)
    rules = [replace(made, weights=np.full(spec.length, w)) for w in tried]
    return _least(rules, spec.true_series)


def geometric_paper_rule(spec: SeriesSpec) -> Realtime:
    """The paper's rule, with weights that fall by one factor; not private.

    References:
        [RTR, Sec. 5]
    """
    times = np.arange(spec.length)
    # Squared weights fall by one factor, so that even an endless sum of them is bounded.
    falling = [portable.exp(portable.log(end) / spec.length * (0.5 * times)) for end in _ENDS]
    rules = [_with(spec, "gaussian", one_lag(), shares, shares) for shares in falling]
    return _least(rules, spec.true_series)


def paper_weight(series: Floats, noise: float) -> float:
    r"""The weight that the paper's own formulas ask for.

    Of the weights that condition (3) allows, $w > (1 - v)/(1 + v)$ with $v$ the variance of the
    noise of independent releases over that of the series, the one with the least error by Theorem
    6.1. Both look at the true series, and the theorem is not the error of the rule.

    References:
        [RTR, Thm. 6.1 and 6.2]
    """
    around = series - series.mean()
    variance = float(np.square(around).mean())
    if variance == 0.0:
        return _LEAST_WEIGHT
    linked = float(portable.dot(around[1:], around[:-1])) / (variance * series.size)
    # Condition (3): the least weight that the paper allows.
    least = max(0.0, (1 - noise / variance) / (1 + noise / variance))
    weights = np.linspace(least, 1.0, 200)[1:]
    unexplained = 1 - linked**2 * variance / (variance + weights**2 * noise)
    errors = variance * unexplained * (1 - weights) ** 2 + weights**2 * noise
    return float(weights[errors.argmin()])


def _least(rules: list[Realtime], values: Floats) -> Realtime:
    """The rule with the least error in some trials; not private."""
    table = np.repeat(values[:, None], _TRIALS, axis=1)

    def error(rule: Realtime) -> float:
        released = rule.release_many(table, seeded(_TRIAL_SEED), Purpose.SIMULATION)
        return float(np.square(released - table).mean())

    return min(rules, key=error)
