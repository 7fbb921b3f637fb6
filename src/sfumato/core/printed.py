"""Numbers as people read them: a bound that is printed is still a bound.

Apart from other arithmetic, since commands print before anything heavy is loaded.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any


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


def finite(value: Any) -> Any:
    """The same document with texts for infinite numbers, which JSON lacks.

    Examples:
        >>> finite({"bound": [0.5, math.inf]})
        {'bound': [0.5, 'inf']}
    """
    match value:
        case dict():
            return {str(key): finite(item) for key, item in value.items()}
        case list() | tuple():
            return [finite(item) for item in value]
        case float() if not math.isfinite(value):
            return str(value)
        case _:
            return value
