"""Two-sided geometric noise: exact on its integers, then the sampler, three-sided."""

import itertools
import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato import keyed, secure, seeded
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.randomness import Address, Domain
from sfumato.noise.geometric import DiscreteLaplace

WHOLE = 2**62
EXACT = [0.05, 0.3, 0.5, 1.0, 2.5, 6.0, 7.0, 15.0, 40.0]


class ExactNoise:
    """The probabilities that the integers stand for, as the rational numbers that they are.

    A one-sided number is `K j + r`: `r` with weight `w_r`, and `j` blocks, each with the chance
    `repeat`. Of the difference of two of them the sum over `j` is geometric, in closed form.
    """

    def __init__(self, noise: DiscreteLaplace) -> None:
        self.weights = [int(weight) for weight in noise.weights]
        self.repeat = Fraction(noise.repeat, WHOLE)
        self.size = len(self.weights)
        self._around: dict[int, Fraction] = {}

    def one_sided(self, number: int) -> Fraction:
        block, rest = divmod(number, self.size)
        return Fraction(self.weights[rest], WHOLE) * self.repeat**block * (1 - self.repeat)

    def __call__(self, number: int) -> Fraction:
        block, rest = divmod(abs(number), self.size)
        return (1 - self.repeat) / (1 + self.repeat) * self.repeat**block * self._met(rest)

    def _met(self, rest: int) -> Fraction:
        """Sum over remainders of the product of weights so far apart, around the block."""
        if rest not in self._around:
            edge, table = self.size - rest, self.weights
            inside = sum(table[r] * table[r + rest] for r in range(edge))
            across = sum(table[r] * table[r - edge] for r in range(edge, self.size))
            self._around[rest] = (inside + self.repeat * across) / Fraction(WHOLE) ** 2
        return self._around[rest]


def logarithm(ratio: Fraction) -> Any:
    with mpmath.workdps(60):
        return mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)


# The kernel ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EXACT)
def test_all_probabilities_sum_to_one_exactly(epsilon: float) -> None:
    exact = ExactNoise(DiscreteLaplace.at(epsilon))
    assert sum(exact.weights) == WHOLE
    blocks = (1 - exact.repeat) * Fraction(1) / (1 - exact.repeat)
    assert blocks == 1
    # Right of 0 every block is `repeat` times the one before it.
    right = sum(exact(number) for number in range(exact.size)) / (1 - exact.repeat)
    assert 2 * right - exact(0) == 1


def test_the_closed_form_is_the_convolution() -> None:
    exact = ExactNoise(DiscreteLaplace.at(2.5))
    for number in (0, 1, 2, 3, 7):
        summed = sum(exact.one_sided(k) * exact.one_sided(k + number) for k in range(60))
        assert float(summed) == pytest.approx(float(exact(number)), rel=1e-12)
        assert exact(number) == exact(-number)


@pytest.mark.parametrize("epsilon", EXACT)
@pytest.mark.parametrize("shift", [1, 2, 3, 4, 5])
def test_no_output_tells_two_values_apart_by_more_than_the_leakage(
    epsilon: float, shift: int
) -> None:
    noise = DiscreteLaplace.at(epsilon)
    exact, claimed = ExactNoise(noise), noise.leakage(shift).epsilon
    # Beyond two blocks everything repeats with one factor.
    span = 3 * exact.size + 2 * shift
    ratios = [exact(n) / exact(n + shift) for n in range(-span, span + 1)]
    worst = logarithm(max(max(ratios), 1 / min(ratios)))
    assert worst <= claimed <= worst * (1 + mpmath.mpf(10) ** -9) + 1e-12


@pytest.mark.parametrize("epsilon", EXACT)
def test_the_noise_falls_from_its_middle_on(epsilon: float) -> None:
    exact = ExactNoise(DiscreteLaplace.at(epsilon))
    told = [exact(number) for number in range(3 * exact.size + 2)]
    assert all(one > other for one, other in itertools.pairwise(told))


@given(st.floats(0.02, 20.0))
def test_leakage_is_just_under_what_was_asked_for(epsilon: float) -> None:
    noise = DiscreteLaplace.at(epsilon)
    assert noise.leakage(1) <= PureDP(epsilon)
    assert noise.leakage(1).epsilon >= epsilon - 1e-9
    assert noise.leakage(2) <= PureDP(2 * epsilon)


@given(st.floats(20.0, 40.0))
def test_beyond_twenty_whole_weights_are_coarse_and_err_on_the_safe_side(epsilon: float) -> None:
    noise = DiscreteLaplace.at(epsilon)
    assert noise.leakage(1) <= PureDP(epsilon)
    assert noise.leakage(1).epsilon >= epsilon - 0.06


def test_no_difference_leaks_nothing() -> None:
    assert DiscreteLaplace.at(1.0).leakage(0) == PureDP(0.0)
    with pytest.raises(InvalidParameter, match="sensitivity"):
        DiscreteLaplace.at(1.0).leakage(-1)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, 1e-6, 2e-6, math.nan, math.inf, 41.0])
def test_a_budget_that_is_too_small_or_none_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        DiscreteLaplace.at(epsilon)


@pytest.mark.parametrize(
    ("weights", "repeat"),
    [
        ([WHOLE - 1], 5),
        ([WHOLE, 0], 5),
        ([WHOLE + 1, -1], 5),
        ([[WHOLE]], 5),
        ([WHOLE], 0),
        ([WHOLE], WHOLE),
    ],
)
def test_weights_that_are_no_distribution_are_refused(weights: Any, repeat: int) -> None:
    with pytest.raises(InvalidParameter):
        DiscreteLaplace(np.array(weights, dtype=np.int64), repeat)


def test_weights_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        DiscreteLaplace.at(1.0).weights[0] = 1


# The sampler --------------------------------------------------------------------------------------


def chi_square(drawn: Any, epsilon: float) -> float:
    """How likely draws are at least this far from the noise of a given epsilon."""
    exact = ExactNoise(DiscreteLaplace.at(epsilon))
    edge = 0
    while 2 * sum(float(exact(n)) for n in range(edge + 1, edge + 40)) * drawn.size > 50:
        edge += 1
    chances = [float(exact(number)) for number in range(-edge, edge + 1)]
    seen = [int((drawn == number).sum()) for number in range(-edge, edge + 1)]
    chances.append(1 - sum(chances))
    seen.append(drawn.size - sum(seen))
    return float(stats.chisquare(seen, np.array(chances) * drawn.size).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.3, 0.5, 1.0, 3.0, 8.0])
def test_draws_are_those_of_the_true_epsilon_and_of_no_other(epsilon: float) -> None:
    drawn = DiscreteLaplace.at(epsilon).draw(60_000, seeded(1))
    assert chi_square(drawn, epsilon) > 1e-4
    assert chi_square(drawn, 0.7 * epsilon) < 1e-9
    assert chi_square(drawn, 1.3 * epsilon) < 1e-6


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.02, 0.3, 1.0, 3.0])
def test_draws_have_mean_zero_and_the_variance_that_is_told(epsilon: float) -> None:
    noise = DiscreteLaplace.at(epsilon)
    drawn = noise.draw(100_000, seeded(2)).astype(np.float64)
    ratio = math.exp(-epsilon)
    wanted = 2 * ratio / (1 - ratio) ** 2
    assert noise.variance == pytest.approx(wanted, rel=1e-9)
    assert abs(drawn.mean()) < 5 * math.sqrt(wanted / drawn.size)
    fourth = float((drawn**4).mean())
    assert abs(drawn.var() - wanted) < 5 * math.sqrt((fourth - wanted**2) / drawn.size)


@pytest.mark.statistical
def test_draws_reach_beyond_the_table_in_both_directions() -> None:
    noise = DiscreteLaplace.at(1.0)
    drawn = noise.draw(200_000, seeded(3))
    assert drawn.max() > noise.weights.size
    assert drawn.min() < -noise.weights.size


def test_the_same_coins_draw_the_same_noise() -> None:
    noise, coins = DiscreteLaplace.at(0.4), keyed(b"sixteen bytes or more")
    first = noise.draw(50, coins.at(Address(Domain.SERIES, "plan", "u", 3)))
    assert np.array_equal(first, noise.draw(50, coins.at(Address(Domain.SERIES, "plan", "u", 3))))
    assert not np.array_equal(
        first, noise.draw(50, coins.at(Address(Domain.SERIES, "plan", "u", 4)))
    )
    assert not np.array_equal(
        first, noise.draw(50, coins.at(Address(Domain.SERIES, "plan", "v", 3)))
    )


def test_as_many_whole_numbers_are_drawn_as_were_asked_for() -> None:
    noise = DiscreteLaplace.at(0.4)
    for count in (0, 1, 7):
        drawn = noise.draw(count, secure())
        assert drawn.shape == (count,)
        assert drawn.dtype == np.int64
    with pytest.raises(InvalidParameter, match="count"):
        noise.draw(-1, secure())


# Found broken -------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1e-5, 1e-4, 1e-3, 3e-3, 8e-3])
def test_small_budgets_are_not_leaked_over_either(epsilon: float) -> None:
    noise = DiscreteLaplace.at(epsilon)
    assert noise.leakage(1) <= PureDP(epsilon)
    assert noise.leakage(2) <= PureDP(2 * epsilon)
