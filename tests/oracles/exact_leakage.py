"""Leakage of integer weights in exact rational arithmetic.

A float belief is taken as the rational number it is, and divided by its exact sum. Only the
last step, a logarithm, is not rational: it has 50 digits.
"""

from collections.abc import Sequence
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

DIGITS = 50
_SCALE = 1 << 400


def exact_ratios(weights: NDArray[np.int64], belief: Sequence[float]) -> list[Fraction]:
    """a(y|x) / P(y) for every x and every y of positive probability."""
    table = [[int(weight) for weight in row] for row in weights]
    share = [Fraction(float(mass)) for mass in belief]
    whole = sum(share)
    ratios: list[Fraction] = []
    for y in range(len(table[0])):
        mean = sum((b * row[y] for b, row in zip(share, table, strict=True)), Fraction(0)) / whole
        ratios.extend(row[y] / mean for row in table if mean)
    return ratios


def exact_information_leakage(weights: NDArray[np.int64], belief: Sequence[float]) -> mpmath.mpf:
    """max |log a(y|x)/P(y)|, infinite when a possible output is impossible for some x."""
    ratios = exact_ratios(weights, belief)
    least, most = min(ratios), max(ratios)
    return mpmath.mpf("inf") if least == 0 else max(_log(most), _log(1 / least))


def exact_local_leakage(weights: NDArray[np.int64]) -> mpmath.mpf:
    """max log a(y|x)/a(y|x'), infinite when an output is possible for some x only."""
    columns = [[int(weight) for weight in column] for column in np.transpose(weights)]
    used = [column for column in columns if any(column)]
    if any(min(column) == 0 for column in used):
        return mpmath.mpf("inf")
    return _log(max(Fraction(max(column), min(column)) for column in used))


def within(weights: NDArray[np.int64], belief: Sequence[float], epsilon: float) -> bool:
    """Whether every ratio lies in [e^-epsilon, e^epsilon]: whole numbers only, no rounding."""
    masses = [float(mass).as_integer_ratio() for mass in belief]
    common = max(denominator for _, denominator in masses)  # powers of two
    share = [numerator * (common // denominator) for numerator, denominator in masses]
    whole = sum(share)
    limit = _exponential_below(epsilon)
    for column in zip(*weights.tolist(), strict=True):
        mean = sum(b * weight for b, weight in zip(share, column, strict=True))
        most, least = max(column) * whole, min(column) * whole
        if most * _SCALE > limit * mean or mean * _SCALE > limit * least:
            return False
    return True


def within_locally(weights: NDArray[np.int64], epsilon: float) -> bool:
    """Whether no two entries of a column are further apart than a factor e^epsilon."""
    limit = _exponential_below(epsilon)
    return all(
        max(column) * _SCALE <= limit * min(column)
        for column in zip(*weights.tolist(), strict=True)
    )


def _exponential_below(epsilon: float) -> int:
    """A whole number at most e^epsilon times the scale; e^0 is exact, no other one is rational."""
    if epsilon == 0:
        return _SCALE
    with mpmath.workprec(600):
        return int(mpmath.floor(mpmath.exp(mpmath.mpf(epsilon)) * _SCALE)) - 1


def _log(ratio: Fraction) -> mpmath.mpf:
    with mpmath.workdps(DIGITS):
        return mpmath.log(mpmath.mpf(ratio.numerator) / mpmath.mpf(ratio.denominator))
