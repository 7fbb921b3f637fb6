"""Discrete Gaussian and binomial noise against exact probabilities."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.noise.binomial_noise import BinomialNoise
from sfumato.noise.gaussian_noise import DiscreteGaussianNoise
from tests.noise.test_number_noise import exact_weights
from tests.oracles.paper_bounds import paper_binomial_delta

WHOLE = 2**62


@cache
def discrete_gaussian(deviation: float, reach: int) -> list[mpmath.mpf]:
    """Probabilities of -reach, ..., reach; the sum runs three times as far."""
    with mpmath.workdps(40):
        size = mpmath.mpf(deviation)
        half = [mpmath.exp(-((mpmath.mpf(k) / size) ** 2) / 2) for k in range(3 * reach)]
        whole = 2 * sum(half) - 1
        near = [part / whole for part in half[: reach + 1]]
        return [*reversed(near[1:]), *near]


def binomial(place: int, trials: int) -> Fraction:
    if abs(place) > trials:
        return Fraction(0)
    return Fraction(math.comb(2 * trials, trials + place), 4**trials)


def exact_binomial_delta(trials: int, steps: int, growth: Fraction) -> Fraction:
    """Sum of max(P(k) - e^eps P(k + steps), 0), all of it, in whole numbers."""
    row = [1]
    for place in range(2 * trials):
        row.append(row[-1] * (2 * trials - place) // (place + 1))
    there = [*row[steps:], *[0] * steps]
    times, parts = growth.numerator, growth.denominator
    gaps = (parts * one - times * other for one, other in zip(row, there, strict=True))
    return Fraction(sum(gap for gap in gaps if gap > 0), parts * 4**trials)


def growth_of(epsilon: float) -> tuple[Fraction, Fraction]:
    """A rational number under e^eps, and one over it."""
    with mpmath.workdps(50):
        scaled = int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * mpmath.mpf(10) ** 40))
    return Fraction(scaled, 10**40), Fraction(scaled + 1, 10**40)


def made(trials: int, steps: int) -> BinomialNoise:
    """Binomial noise of so few trials that every sum can be done in fractions."""
    return BinomialNoise(1.0, steps, trials)


# Discrete Gaussian ------------------------------------------------------------------------------


@pytest.mark.parametrize(("sensitivity", "deviation"), [(1.0, 4.0), (0.1, 0.5), (3.0, 1.0)])
def test_every_weight_is_its_discrete_gaussian_mass_but_for_a_tiny_factor(
    sensitivity: float, deviation: float
) -> None:
    noise = DiscreteGaussianNoise.at(sensitivity, deviation)
    weights = exact_weights(noise)
    assert sum(weights) == 1
    with mpmath.workdps(120):
        masses = discrete_gaussian(noise.deviation, noise.reach)
        for weight, mass in list(zip(weights, masses, strict=True))[::37]:
            told = mpmath.mpf(weight.numerator) / weight.denominator
            assert abs(mpmath.log(told / mass)) <= noise.error < 1e-11
        inner = masses[noise.steps : len(masses) - noise.steps]
        assert 1 - sum(inner) <= noise.slack < 1e-21


@pytest.mark.parametrize("deviation", [0.5, 0.8, 1.5, 4.0])
@pytest.mark.parametrize("apart", [1, 2, 3])
@pytest.mark.parametrize("order", [1.01, 1.5, 2.0, 5.0, 20.0])
def test_discrete_gaussian_keeps_its_concentrated_privacy(
    deviation: float, apart: int, order: float
) -> None:
    noise = DiscreteGaussianNoise(1.0, apart, deviation)
    with mpmath.workdps(60):
        size, a = mpmath.mpf(deviation), mpmath.mpf(order)
        reach = range(-200, 201)
        weight = {k: mpmath.exp(-((k / size) ** 2) / 2) for k in range(-210, 211)}
        whole = sum(weight.values())
        moments = sum(weight[k] ** a * weight[k - apart] ** (1 - a) for k in reach)
        divergence = mpmath.log(moments / whole) / (a - 1)
        # A sum that is cut can only be less; it is all but tight on a fine lattice.
        assert divergence <= noise.charge * a * (1 + mpmath.mpf(10) ** -12)
    assert noise.charge >= Fraction(apart) ** 2 / (2 * Fraction(deviation) ** 2)


@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 1 / 3, 1e-7, 1e7])
def test_concentrated_privacy_counts_whole_steps(sensitivity: float) -> None:
    noise = DiscreteGaussianNoise.at(sensitivity, 9 * sensitivity)
    true = (Fraction(sensitivity) / Fraction(9 * sensitivity)) ** 2 / 2
    assert true <= Fraction(noise.charge) <= true * Fraction(10202, 10_000)


@pytest.mark.statistical
def test_discrete_gaussian_sampler_has_its_own_deviation_and_no_other() -> None:
    noise = DiscreteGaussianNoise.at(1.0, 4.0)
    drawn = noise.perturb(np.full(20_000, 3.0), seeded(5)) / noise.step - 3.0 / noise.step
    places = np.arange(-4000, 4001)
    values = []
    for off in (0.7, 1.0, 1.3):
        pmf = np.exp(-0.5 * (places / (noise.deviation * off)) ** 2)
        cells = np.clip(places // 40, -10, 10)
        shares = np.bincount(cells + 10, weights=pmf / pmf.sum())
        counts = np.bincount((np.clip(drawn // 40, -10, 10) + 10).astype(int), minlength=21)
        values.append(float(stats.chisquare(counts, shares * drawn.size).pvalue))
    assert values[1] > 1e-3 and max(values[0], values[2]) < 1e-9


# Binomial ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("trials", [1, 2, 7, 40])
@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_binomial_delta_is_the_exact_one_and_never_below(
    trials: int, steps: int, epsilon: float
) -> None:
    least, most = growth_of(epsilon)
    found = Fraction(made(trials, steps).delta(epsilon))
    exact = exact_binomial_delta(trials, steps, most)
    assert found >= exact
    assert found <= exact_binomial_delta(trials, steps, least) + Fraction(1, 10**9)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.6])
def test_binomial_delta_of_a_made_noise_is_never_below_the_exact_one(epsilon: float) -> None:
    noise = BinomialNoise.at(64.0, 64.0)
    assert (noise.step, noise.trials) == (1.0, 8192)
    exact = exact_binomial_delta(noise.trials, noise.steps, growth_of(epsilon)[1])
    assert exact <= Fraction(noise.delta(epsilon)) <= exact * (1 + Fraction(1, 10**6))


def log_binomial(place: int, trials: int) -> mpmath.mpf:
    above = mpmath.loggamma(trials + place + 1) + mpmath.loggamma(trials - place + 1)
    return mpmath.loggamma(2 * trials + 1) - above - 2 * trials * mpmath.log(2)


@pytest.mark.parametrize("variance", [1.0, 100.0, 1e4, 1e6])
def test_every_weight_is_its_binomial_mass_but_for_a_tiny_factor(variance: float) -> None:
    noise = BinomialNoise.at(1.0, math.sqrt(variance))
    weights = exact_weights(noise)
    assert sum(weights) == 1
    places = sorted({0, 1, noise.reach, *range(0, noise.reach, max(1, noise.reach // 60))})
    with mpmath.workdps(120):
        for place in places:
            weight = weights[noise.reach - place]
            told = mpmath.mpf(weight.numerator) / weight.denominator
            apart = mpmath.log(told) - log_binomial(place, noise.trials)
            assert abs(apart) <= noise.error < 1e-7


def test_a_table_that_holds_every_place_has_no_slack() -> None:
    assert made(7, 3).slack == 0.0
    assert 0 < BinomialNoise.at(1.0, 10.0).slack < 1e-21


def test_a_finite_epsilon_is_found_wherever_there_is_one() -> None:
    noise = BinomialNoise.at(3.0, 0.7)
    epsilon = noise.epsilon(5e-4)
    assert epsilon == pytest.approx(22.554, abs=1e-3)
    with mpmath.workdps(60):
        masses = {k: mpmath.exp(log_binomial(k, noise.trials)) for k in range(-2600, 2601)}
        growth = mpmath.exp(mpmath.mpf(epsilon))
        over = (masses[k] - growth * masses.get(k + noise.steps, 0) for k in range(-2200, 2200))
        exact = sum(part for part in over if part > 0)
        assert exact <= noise.delta(epsilon) <= 5e-4
        assert exact > 4.99e-4
    assert made(3, 7).epsilon(5e-4) == math.inf  # values so far apart share no output


@pytest.mark.parametrize("variance", [0.3, 1.0, 9.0])
def test_the_delta_of_binomial_noise_falls_as_epsilon_rises(variance: float) -> None:
    noise = BinomialNoise.at(1.0, math.sqrt(variance))
    told = [noise.delta(0.5 * level) for level in range(200)]
    assert told == sorted(told, reverse=True)


@pytest.mark.parametrize("variance", [1e6, 3e6, 1e8, 1e10])
def test_binomial_delta_of_many_trials_is_exact_and_never_below_the_exact_one(
    variance: float,
) -> None:
    """At epsilon 0 it is the mass of the middle places: P(0), for steps of 1."""
    noise = BinomialNoise.at(1.0, math.sqrt(variance))
    assert noise.steps == 1
    with mpmath.workdps(50):
        exact = mpmath.exp(log_binomial(0, noise.trials))
        assert exact <= noise.delta(0.0) <= exact * (1 + mpmath.mpf(10) ** -6)


@pytest.mark.parametrize("trials", [40, 200])
@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_published_bound_with_whole_steps_holds(trials: int, steps: int, epsilon: float) -> None:
    exact = exact_binomial_delta(trials, steps, growth_of(epsilon)[1])
    assert exact <= Fraction(paper_binomial_delta(made(trials, steps), epsilon))


def test_published_bound_with_a_fractional_sensitivity_understates() -> None:
    """A mixture is rounded to a whole number: two of them .3 apart may land 1 apart."""
    trials, epsilon, apart = 200, 0.2, 0.3
    share = (2 * trials + 1) / (math.exp(epsilon / apart) + 1)
    assert 1 <= apart + share <= trials + 1
    claimed = math.exp(-((trials - apart + 1 - share) ** 2) / trials)
    true = exact_binomial_delta(trials, 1, growth_of(epsilon)[1])
    assert Fraction(claimed) < true / 2
    assert paper_binomial_delta(made(trials, 1), epsilon) >= true


@pytest.mark.parametrize("sensitivity", [0.3, 1.0, 2.5, 1 / 3])
def test_binomial_steps_are_whole_and_cover_a_weighted_sensitivity(sensitivity: float) -> None:
    noise = BinomialNoise.at(sensitivity, 10.0)
    assert isinstance(noise.steps, int)
    assert Fraction(sensitivity) <= noise.steps * Fraction(noise.step)
    assert noise.variance >= 100.0


@pytest.mark.statistical
def test_binomial_sampler_has_its_own_deviation_and_no_other() -> None:
    noise = BinomialNoise.at(1.0, 10.0)
    drawn = noise.perturb(np.zeros(20_000), seeded(9)) / noise.step
    values = []
    for off in (0.7, 1.0, 1.3):
        law = stats.binom(2 * round(noise.trials * off**2), 0.5)
        centre = round(noise.trials * off**2)
        edges = np.arange(-200, 201, 20)
        shares = np.diff(np.concatenate([[0.0], law.cdf(edges + centre), [1.0]]))
        counts = np.bincount(np.searchsorted(edges, drawn), minlength=shares.size)
        values.append(float(stats.chisquare(counts, shares * drawn.size).pvalue))
    assert values[1] > 1e-3 and max(values[0], values[2]) < 1e-9


@pytest.mark.parametrize("value", [0.0, 1 / 3, -12345.678])
def test_outputs_lie_on_one_lattice_whatever_the_value(value: float) -> None:
    for noise in (DiscreteGaussianNoise.at(1.0, 4.0), BinomialNoise.at(1.0, 4.0)):
        told = noise.perturb(np.full(300, value), seeded(7))
        assert all(Fraction(x) % Fraction(noise.step) == 0 for x in told.tolist())
        place = math.floor(Fraction(value) / Fraction(noise.step) + Fraction(1, 2))
        alone = noise.perturb(np.zeros(300), seeded(7))
        assert np.array_equal(told / noise.step - place, alone / noise.step)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_impossible_sizes_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter):
        DiscreteGaussianNoise.at(1.0, bad)
    with pytest.raises(InvalidParameter):
        BinomialNoise.at(1.0, bad)
    with pytest.raises(InvalidParameter):
        BinomialNoise.at(bad, 1.0)


def test_huge_values_are_refused_unquoted() -> None:
    for noise in (DiscreteGaussianNoise.at(1.0, 4.0), BinomialNoise.at(1.0, 4.0)):
        with pytest.raises(InvalidParameter) as refusal:
            noise.perturb([4711e14], seeded(1))
        assert "4711" not in str(refusal.value)
