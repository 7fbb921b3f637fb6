"""Floating-point arithmetic that errs on the safe side.

Every certificate is an upper bound. Sums and products of non-negative floats have a small
*relative* error that is known in advance: a sum of `n` terms is right within `n * UNIT`,
whatever the order. So a bound costs one multiplication more than the plain value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.core import portable

# Largest relative error of one rounding.
UNIT = 2.0**-53


def up(value: float) -> float:
    """Return the next float above.

    Examples:
        >>> up(1.0) > 1.0
        True
    """
    return math.nextafter(value, math.inf)


def add_up(left: float, right: float) -> float:
    """Return a sum that is never below the exact one, and exact when a term is 0.

    Examples:
        >>> add_up(0.1, 0.2) >= 0.3, add_up(0.1, 0.0)
        (True, 0.1)
    """
    if left == 0.0 or right == 0.0:
        return left + right
    return up(left + right)


def sum_up(terms: Sequence[float]) -> float:
    """Return the least float that is not below the exact sum.

    Examples:
        >>> sum_up([0.1] * 10), sum_up([0.5, 0.25])
        (1.0000000000000002, 0.75)
    """
    nearest = math.fsum(terms)
    # What is left of the exact sum has the right sign, for `fsum` rounds once.
    return up(nearest) if math.isfinite(nearest) and math.fsum((*terms, -nearest)) > 0 else nearest


def log_up(value: float, relative_error: float = 0.0) -> float:
    r"""Return an upper bound of $\log v$ for every $v$ near `value`.

    $$\log v \le \log \hat v + \log(1 + \eta) \le \log \hat v + \eta$$

    where $\hat v$ is `value` and $\eta$ is `relative_error` plus the error of the logarithm
    itself (one unit in the last place, doubled for safety).

    Examples:
        >>> log_up(1.0)  > 0.0
        True
    """
    if value == 0.0:
        return -math.inf
    if math.isinf(value):
        return math.inf
    logarithm = portable.log(value)
    return up(logarithm + 4 * UNIT * abs(logarithm) + relative_error * (1 + 4 * UNIT) + 2 * UNIT)


def expected_error(terms: int) -> float:
    """Relative error of a weighted mean of `terms` non-negative floats.

    Covers the conversion of each 62-bit weight, the product, both sums (the mean divides by the
    sum of the weights) and the division.
    """
    return (2 * terms + 8) * UNIT
