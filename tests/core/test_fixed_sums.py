"""Sums of a fixed point are those of exact rational arithmetic, in any order and any parts."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.fixed_sums import FixedSum

NUMBERS = st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=1, max_size=30)
_UNIT = Fraction(1, 2**52)


def exact(numbers: list[float]) -> Fraction:
    """The sum of numbers that were rounded to multiples of the unit, halves to even."""
    return sum((round(Fraction(number) / _UNIT) for number in numbers), 0) * _UNIT


@given(NUMBERS, st.randoms(use_true_random=False))
def test_sums_are_exact_in_any_order_and_any_parts(numbers: list[float], order: object) -> None:
    whole = FixedSum.of(np.array(numbers))
    assert abs(Fraction(float(whole.value())) - exact(numbers)) <= abs(exact(numbers)) / 2**53
    order.shuffle(numbers)  # type: ignore[attr-defined]
    half = len(numbers) // 2
    parts = [FixedSum.of(np.array(part)) for part in (numbers[:half], numbers[half:])]
    added = FixedSum.added(parts)
    assert (int(added.whole), int(added.parts)) == (int(whole.whole), int(whole.parts))


def test_many_numbers_do_not_overflow() -> None:
    found = FixedSum.of(np.full(10_000, 1 - 2.0**-52))
    assert (int(found.whole), int(found.parts)) == (9_999, 2**52 - 10_000)
