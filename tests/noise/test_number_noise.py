"""Noise on a lattice: exact in fractions, and the sampler against masses of many digits."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import Address, Randomness, seeded
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.long_weights import weight_limbs
from sfumato.noise.number_noise import TableNoise, on_lattice, series_lattice

Floats = NDArray[np.float64]

SENSITIVITIES = [1.0, 0.1, 1 / 3, 0.7, 3.0, 1e-7, 1e7, 1 + 2.0**-52, 2.0**-460, 1e140]
WHOLE = 2**62


def places_by_fractions(value: float, step: float) -> int:
    """The nearest whole number of steps; halves go up."""
    return math.floor(Fraction(value) / Fraction(step) + Fraction(1, 2))


def weights_of(cumulative: NDArray[np.int64]) -> list[int]:
    return [int(part) for part in np.diff(cumulative, prepend=np.int64(0))]


def rounded_normal(deviation: float, reach: int) -> list[mpmath.mpf]:
    """Masses of -reach, ..., reach: the cells of a normal distribution; the ends take the tails."""
    with mpmath.workdps(40):
        size = mpmath.mpf(deviation)
        tails = [mpmath.ncdf((mpmath.mpf(place) - 0.5) / size) for place in range(-reach, 1)]
        left = [tails[1]] + [after - before for before, after in itertools.pairwise(tails[1:])]
        return [*left, 1 - 2 * tails[-1], *reversed(left)]


def total_variation(weights: list[int], masses: list[mpmath.mpf]) -> float:
    with mpmath.workdps(40):
        pairs = zip(weights, masses, strict=True)
        return float(sum(abs(mpmath.mpf(weight) / WHOLE - mass) for weight, mass in pairs) / 2)


def p_value(drawn: Floats, deviation: float) -> float:
    """Chi-square of whole numbers against a rounded normal distribution, in some 40 cells."""
    edges = np.unique(np.rint(deviation * stats.norm.ppf(np.linspace(0.025, 0.975, 39)))) + 0.5
    shares = np.diff(np.concatenate([[0.0], stats.norm.cdf(edges / deviation), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, drawn), minlength=shares.size)
    return float(stats.chisquare(counts, shares * drawn.size).pvalue)


# The lattice ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("spread", [1e-3, 0.5, 1.0, 7.3, 1e5])
def test_steps_cover_the_sensitivity_and_hardly_more(sensitivity: float, spread: float) -> None:
    step, steps = series_lattice(sensitivity, spread * sensitivity)
    assert math.frexp(step)[0] == 0.5
    assert Fraction(sensitivity) <= steps * Fraction(step)
    assert float(steps * Fraction(step)) <= 1.01 * sensitivity * (1 + 1e-15)
    assert step <= spread * sensitivity / 64 or step <= sensitivity
    assert 64 * Fraction(step) <= Fraction(spread * sensitivity) * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("inflated", [0.5, 0.05, 0.01, 0.005, 0.001, 1e-6])
@pytest.mark.parametrize("sensitivity", [0.1, 1 / 3, 0.7, 1 + 2.0**-52])
def test_steps_cover_the_sensitivity_whatever_inflation_is_allowed(
    sensitivity: float, inflated: float
) -> None:
    step, steps = series_lattice(sensitivity, 100.0, inflated)
    assert Fraction(sensitivity) <= steps * Fraction(step)


@given(
    sensitivity=st.sampled_from(SENSITIVITIES),
    spread=st.sampled_from([0.01, 1.0, 300.0]),
    where=st.floats(-1e6, 1e6),
    part=st.floats(0, 1),
    sign=st.sampled_from([-1, 1]),
)
def test_values_within_the_sensitivity_are_never_more_than_steps_apart(
    sensitivity: float, spread: float, where: float, part: float, sign: int
) -> None:
    step, steps = series_lattice(sensitivity, spread * sensitivity)
    one = where * sensitivity
    other = one + sign * part * sensitivity
    assume(abs(Fraction(one) - Fraction(other)) <= Fraction(sensitivity))
    here, there = (int(place) for place in on_lattice([one, other], step))
    assert abs(here - there) <= steps
    assert here == places_by_fractions(one, step)
    assert there == places_by_fractions(other, step)


@given(
    exponent=st.integers(-60, 60),
    whole=st.integers(-(2**40), 2**40),
    nudge=st.integers(-3, 3),
    halved=st.sampled_from([0.0, 0.5]),
)
def test_rounding_is_exact_around_halves_and_wholes(
    exponent: int, whole: int, nudge: int, halved: float
) -> None:
    step = 2.0**exponent
    value = (whole + halved) * step
    for _ in range(abs(nudge)):
        value = math.nextafter(value, math.copysign(math.inf, nudge))
    assert int(on_lattice(value, step)) == places_by_fractions(value, step)


@pytest.mark.parametrize("value", [5e-324, -5e-324, 2.0**-1060, -(2.0**-1060), 0.0, -0.0])
@pytest.mark.parametrize("step", [2.0**-600, 1.0, 2.0**600])
def test_subnormal_values_lie_at_0(value: float, step: float) -> None:
    assert int(on_lattice(value, step)) == 0


def test_halves_go_up() -> None:
    told = on_lattice([0.5, -0.5, 1.5, -1.5, 0.5 - 2.0**-54, -0.5 - 2.0**-53], 1.0)
    assert told.tolist() == [1.0, 0.0, 2.0, -1.0, 0.0, -1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "4711.5x", None])
def test_values_that_are_no_numbers_are_refused_unquoted(bad: object) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        on_lattice([1.0, bad], 0.5)  # type: ignore[arg-type]
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize("value", [4711e13, -4711e13, 4711e300])
@pytest.mark.parametrize("sensitivity", [1.0, 1e-7])
def test_huge_values_are_refused_unquoted_and_nothing_is_drawn(
    value: float, sensitivity: float
) -> None:
    coins, untouched = seeded(1), seeded(1)
    for noise in (
        GaussianNoise.at(sensitivity, 4 * sensitivity),
        LaplaceNoise.at(sensitivity, 0.5),
    ):
        with pytest.raises(InvalidParameter) as refusal:
            noise.perturb([value], coins)
        assert "4711" not in str(refusal.value) and "4.711" not in str(refusal.value)
    assert coins.word() == untouched.word()


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, 1e-300])
def test_impossible_sensitivities_are_refused(bad: float) -> None:
    with pytest.raises(InvalidParameter):
        GaussianNoise.at(bad, 1.0)
    with pytest.raises(InvalidParameter):
        LaplaceNoise.at(bad, 1.0)


def test_noise_that_is_tiny_against_the_sensitivity_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="larger against the sensitivity"):
        GaussianNoise.at(1e9, 1e-9)


# Laplace ----------------------------------------------------------------------------------------


def exact_step_leakage(noise: LaplaceNoise) -> mpmath.mpf:
    """Largest log quotient of neighbouring probabilities of a geometric number, from integers."""
    table = noise.noise.weights
    steepest = np.argsort(table[1:] / table[:-1])[:50]  # floats find where, fractions how much
    weights = [int(weight) for weight in (table[0], table[-1])]
    ratios = {Fraction(int(table[place]), int(table[place + 1])) for place in steepest}
    across = Fraction(weights[-1] * WHOLE, weights[0] * noise.noise.repeat)
    worst = max(ratios | {across})
    with mpmath.workdps(50):
        return mpmath.log(mpmath.mpf(worst.numerator) / worst.denominator)


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 40.0])
def test_laplace_leakage_is_exact_and_within_the_budget(sensitivity: float, epsilon: float) -> None:
    noise = LaplaceNoise.at(sensitivity, epsilon)
    exact = noise.steps * exact_step_leakage(noise)
    assert Fraction(sensitivity) <= noise.steps * Fraction(noise.step)
    assert exact <= noise.leakage.epsilon <= epsilon
    assert noise.leakage <= PureDP(epsilon)
    assert noise.leakage.epsilon >= 0.999999 * epsilon
    assert noise.leakage.epsilon <= float(exact) * (1 + 1e-9)


@pytest.mark.parametrize("sensitivity", [1.0, 0.1, 1e7])
def test_laplace_variance_is_that_of_the_law(sensitivity: float) -> None:
    noise = LaplaceNoise.at(sensitivity, 0.5)
    assert noise.variance == pytest.approx(8 * sensitivity**2, rel=0.03)


@pytest.mark.statistical
def test_laplace_sampler_has_its_own_scale_and_no_other() -> None:
    noise = LaplaceNoise.at(0.1, 1.0)
    drawn = noise.perturb(np.zeros(40_000), seeded(3))
    scale = 0.1 * noise.steps * noise.step / 0.1
    # Jitter within a cell makes the lattice continuous; it is fine against the scale.
    smooth = drawn + noise.step * (np.random.default_rng(1).random(drawn.size) - 0.5)
    values = [stats.kstest(smooth, stats.laplace(scale=scale * off).cdf) for off in (0.7, 1, 1.3)]
    assert values[1].pvalue > 1e-3
    assert max(values[0].pvalue, values[2].pvalue) < 1e-9


# Gaussian ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", SENSITIVITIES)
@pytest.mark.parametrize("size", [0.2, 1.0, 4.0, 77.7])
def test_gaussian_ratio_is_never_below_sensitivity_over_deviation(
    sensitivity: float, size: float
) -> None:
    deviation = size * sensitivity
    noise = GaussianNoise.at(sensitivity, deviation)
    exact = Fraction(sensitivity) / Fraction(deviation)
    assert exact <= Fraction(noise.ratio)
    assert Fraction(noise.deviation) * Fraction(noise.step) == Fraction(deviation)
    # Whole steps cost little, unless the noise is so wide that a table must stay short.
    assert noise.ratio <= (1.0101 if size <= 4 else 1.06) * float(exact)


def exact_weights(noise: TableNoise) -> list[Fraction]:
    """Every weight in full, as a part of all."""
    digits = weight_limbs(noise.shares()).astype(object)
    whole = [sum(int(d) << 31 * p for p, d in enumerate(one[::-1])) for one in digits.T]
    return [Fraction(weight, 1 << 31 * len(digits)) for weight in whole]


def cell_mass(place: int, deviation: float) -> mpmath.mpf:
    near, far = (mpmath.mpf(abs(place)) - 0.5) / deviation, (abs(place) + 0.5) / deviation
    return mpmath.ncdf(-near) - mpmath.ncdf(-mpmath.mpf(far))


@pytest.mark.parametrize(
    ("sensitivity", "deviation"), [(1.0, 4.0), (1.0, 300.0), (1 / 3, 2.0), (5.0, 1.0), (12.0, 1.0)]
)
def test_every_weight_is_its_mass_of_the_rounded_normal_but_for_a_tiny_factor(
    sensitivity: float, deviation: float
) -> None:
    noise = GaussianNoise.at(sensitivity, deviation)
    weights = exact_weights(noise)
    assert sum(weights) == 1 and len(weights) == 2 * noise.reach + 1
    with mpmath.workdps(300):
        for place in {0, 1, -1, noise.reach, -noise.reach, *range(-noise.reach, noise.reach, 151)}:
            weight = weights[place + noise.reach]
            mass = cell_mass(place, noise.deviation)
            told = mpmath.mpf(weight.numerator) / weight.denominator
            assert abs(mpmath.log(told / mass)) <= noise.error < 1e-11
        # What may come from a value so far away is in the table, but for the slack.
        outside = 2 * mpmath.ncdf(-(noise.reach - noise.steps + 0.5) / noise.deviation)
        assert outside <= noise.slack < 1e-21


@pytest.mark.parametrize("noise", [GaussianNoise.at(1.0, 4.0), GaussianNoise.at(3.0, 0.5)])
def test_coins_are_compared_with_the_first_digits_of_the_weights(noise: GaussianNoise) -> None:
    sums = list(itertools.accumulate(exact_weights(noise)))
    assert noise._cumulative.tolist() == [math.floor(end * WHOLE) for end in sums]


class Given:
    """Coins that were chosen by hand."""

    simulated, addressed = True, False

    def __init__(self, coins: list[int]) -> None:
        self.coins = coins

    def words(self, count: int) -> NDArray[np.uint64]:
        taken, self.coins = self.coins[:count], self.coins[count:]
        assert len(taken) == count
        return np.array([coin << 2 for coin in taken], dtype=np.uint64)

    def word(self) -> int:
        return int(self.words(1)[0])

    def at(self, address: Address) -> Randomness:
        return self


@pytest.mark.parametrize("noise", [GaussianNoise.at(1.0, 4.0), GaussianNoise.at(3.0, 0.5)])
@pytest.mark.parametrize("first", ["lowest", "highest", "boundary"])
def test_a_coin_that_the_first_digits_leave_open_is_settled_by_all_of_them(
    noise: GaussianNoise, first: str
) -> None:
    rng, table = np.random.default_rng(3), noise._cumulative
    sums = list(itertools.accumulate(exact_weights(noise)))
    coin = {"lowest": 0, "highest": WHOLE - 1, "boundary": int(table[noise.reach])}[first]
    more = len(weight_limbs(noise.shares())) // 2 - 1
    for _ in range(20):
        # Small ones as well, which reach cells of a tiny mass.
        rest = [int(rng.integers(0, WHOLE)) >> int(rng.integers(0, 62)) for _ in range(more)]
        drawn = sum(c * Fraction(1, WHOLE ** (i + 1)) for i, c in enumerate([coin, *rest]))
        cell = sum(end <= drawn for end in sums) - noise.reach
        assert noise.perturb([0.0], Given([coin, *rest]))[0] == noise.step * cell
        assert noise.perturb_one(0.0, Given([coin, *rest])) == noise.step * cell


def test_gaussian_table_is_the_rounded_normal_up_to_a_hair() -> None:
    noise = GaussianNoise.at(1.0, 4.0)
    weights = weights_of(noise._cumulative)
    assert total_variation(weights, rounded_normal(noise.deviation, len(weights) // 2)) < 1e-12
    off = rounded_normal(noise.deviation * 1.0001, len(weights) // 2)
    assert total_variation(weights, off) > 1e-6


def test_gaussian_variance_counts_the_rounding() -> None:
    noise = GaussianNoise.at(1.0, 4.0)
    weights = weights_of(noise._cumulative)
    reach = len(weights) // 2
    second = sum(weight * (place - reach) ** 2 for place, weight in enumerate(weights)) / WHOLE
    assert noise.variance == pytest.approx(noise.step**2 * second, rel=1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(("sensitivity", "deviation"), [(1.0, 4.0), (0.1, 30.0), (7.0, 0.5)])
def test_gaussian_sampler_has_its_own_deviation_and_no_other(
    sensitivity: float, deviation: float
) -> None:
    noise = GaussianNoise.at(sensitivity, deviation)
    drawn = noise.perturb(np.zeros(20_000), seeded(5)) / noise.step
    assert p_value(drawn, deviation / noise.step) > 1e-3
    assert p_value(drawn, 1.3 * deviation / noise.step) < 1e-9
    assert p_value(drawn, 0.7 * deviation / noise.step) < 1e-9


@pytest.mark.parametrize("value", [0.0, 0.123456789, -1e6 / 3, 2.0**30 + 0.1])
def test_outputs_lie_on_one_lattice_whatever_the_value(value: float) -> None:
    for noise in (GaussianNoise.at(0.1, 2.0), LaplaceNoise.at(0.1, 0.7)):
        told = noise.perturb(np.full(500, value), seeded(7))
        assert all(Fraction(x) % Fraction(noise.step) == 0 for x in told.tolist())
        # The same coins give the same noise: what differs is the place of the value alone.
        centred = told / noise.step - places_by_fractions(value, noise.step)
        assert np.array_equal(centred, noise.perturb(np.zeros(500), seeded(7)) / noise.step)


def test_noise_keeps_the_shape_of_the_values() -> None:
    for noise in (GaussianNoise.at(1.0, 2.0), LaplaceNoise.at(1.0, 1.0)):
        told = noise.perturb(np.zeros((3, 5)), seeded(1))
        assert told.shape == (3, 5) and np.unique(told).size > 8
        assert noise.perturb(np.zeros((0,)), seeded(1)).shape == (0,)


@pytest.mark.parametrize("size", [1e140, 1e-140])
def test_variance_of_very_large_and_small_noise_is_a_positive_number(size: float) -> None:
    assert 0 < GaussianNoise.at(size, 4 * size).variance <= math.inf
    assert 0 < LaplaceNoise.at(size, 0.5).variance <= math.inf
