import math
from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.numerics import UNIT, add_up, expected_error, log_up, sum_up, up

positive = st.floats(min_value=1e-300, max_value=1e300)
near_one = st.floats(min_value=1 - 1e-6, max_value=1 + 1e-6)
weights = st.integers(0, 2**62)


def exact_log(value: Fraction) -> mpmath.mpf:
    with mpmath.workdps(50):
        return mpmath.log(mpmath.mpf(value.numerator) / mpmath.mpf(value.denominator))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_up_is_the_very_next_float(value: float) -> None:
    higher = up(value)
    assert higher > value
    middle = (Fraction(value) + Fraction(higher)) / 2 if math.isfinite(higher) else None
    assert middle is None or float(middle) in (value, higher)


@given(st.floats(0.0, 1e300), st.floats(0.0, 1e300))
def test_add_up_is_never_below_the_exact_sum(left: float, right: float) -> None:
    total = add_up(left, right)
    exact = Fraction(left) + Fraction(right)
    assert Fraction(total) >= exact
    assert Fraction(total) <= exact * (1 + Fraction(1, 2**51)) + 2 * Fraction(5e-324)
    assert total == add_up(right, left)


@given(st.floats(0.0, 1e300))
def test_adding_nothing_is_exact(value: float) -> None:
    assert add_up(value, 0.0) == value == add_up(0.0, value)


def test_what_is_infinite_stays_so() -> None:
    assert add_up(math.inf, 1.0) == math.inf
    assert add_up(math.inf, 0.0) == math.inf
    assert log_up(math.inf) == math.inf
    assert log_up(0.0) == -math.inf


@given(st.one_of(positive, near_one))
def test_log_up_is_an_upper_bound_and_a_close_one(value: float) -> None:
    bound, exact = log_up(value), exact_log(Fraction(value))
    assert exact <= bound <= exact + 1e-15 * (1 + abs(exact))


@given(st.one_of(positive, near_one), st.floats(0.0, 1e-9), st.floats(-1.0, 1.0))
def test_log_up_covers_every_value_within_the_stated_error(
    value: float, error: float, share: float
) -> None:
    bound = log_up(value, error)
    actual = Fraction(value) * (1 + Fraction(error) * Fraction(share))
    worst = exact_log(Fraction(value) * (1 + Fraction(error)))
    assert exact_log(actual) <= bound
    assert worst <= bound <= worst + 2 * error**2 + 1e-15 * (1 + abs(worst))


@given(st.lists(st.tuples(st.floats(1e-200, 1.0), weights), min_size=1, max_size=300))
def test_a_weighted_mean_is_as_exact_as_stated(terms: list[tuple[float, int]]) -> None:
    masses = np.array([mass for mass, _ in terms])
    table = np.array([weight for _, weight in terms], dtype=np.int64)
    computed = Fraction(float(masses @ table.astype(np.float64) / masses.sum()))
    parts = [(Fraction(mass), weight) for mass, weight in terms]
    whole = sum((mass for mass, _ in parts), Fraction(0))
    exact = sum((mass * weight for mass, weight in parts), Fraction(0)) / whole
    assert abs(computed - exact) <= Fraction(expected_error(len(terms))) * exact


def test_the_unit_is_the_largest_error_of_one_rounding() -> None:
    assert 1.0 + UNIT == 1.0
    assert 1.0 + UNIT * (1 + 2**-20) > 1.0


def test_some_plain_sums_fall_below_the_exact_ones() -> None:
    pairs = [(0.1 * i, 0.7 * j) for i in range(1, 20) for j in range(1, 20)]
    low = [(a, b) for a, b in pairs if Fraction(a + b) < Fraction(a) + Fraction(b)]
    assert low
    assert all(Fraction(add_up(a, b)) >= Fraction(a) + Fraction(b) for a, b in low)


@given(st.lists(st.floats(min_value=0, max_value=1e300), max_size=40))
def test_a_sum_is_the_least_float_that_is_not_below_the_exact_one(terms: list[float]) -> None:
    exact, total = sum(map(Fraction, terms), Fraction()), sum_up(terms)
    assert Fraction(total) >= exact
    assert total == 0 or Fraction(math.nextafter(total, 0)) < exact
