"""Floating-point arithmetic that errs on the safe side.

Every certificate is an upper bound. Sums and products of non-negative floats have a small
*relative* error that is known in advance: a sum of `n` terms is right within `n * UNIT`,
whatever the order. So a bound costs one multiplication more than the plain value.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

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


def shown_up(value: float, digits: int = 6) -> str:
    """A number for people, rounded up in the last digit: what is printed is still a bound.

    Examples:
        >>> shown_up(1.8736622607277769), shown_up(1.0), shown_up(0.49999999999999)
        ('1.87367', '1', '0.5')
    """
    return _shown(value, digits, ROUND_CEILING)


def shown_down(value: float, digits: int = 6) -> str:
    """A number for people, rounded down in the last digit.

    Examples:
        >>> shown_down(0.2984079)
        '0.298407'
    """
    return _shown(value, digits, ROUND_FLOOR)


def _shown(value: float, digits: int, rounding: str) -> str:
    if not math.isfinite(value):
        return str(value)
    # The shortest text of a float stands for it: 0.1 is shown as 0.1, and read back as itself.
    short = Context(prec=digits, rounding=rounding).create_decimal(Decimal(repr(float(value))))
    # Through a float for its neat form, except where floats are too coarse to hold the digits.
    return f"{float(short):.{digits}g}" if value == 0 or abs(value) > 1e-300 else str(short)


def expected_error(terms: int) -> float:
    """Relative error of a weighted mean of `terms` non-negative floats.

    Covers the conversion of each 62-bit weight, the product, both sums (the mean divides by the
    sum of the weights) and the division.
    """
    return (2 * terms + 8) * UNIT
