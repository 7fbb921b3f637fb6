"""Losses as a person says them: shares of wrong values in per cent, distances in their unit."""

from __future__ import annotations

import math
from decimal import Decimal

WRONG = "wrong"
"""The unit of a loss that counts wrong values."""
_NOTHING = 1e-9
"""Part of a number below which an error is rounding alone."""
_NO_SHARE = 1e-12
"""Share of wrong values below which it is rounding alone."""


def amount(loss: float, unit: str, digits: int = 4) -> str:
    """A mean loss.

    Examples:
        >>> amount(0.6335, "wrong"), amount(2.13, "km"), amount(0.5, "")
        ('63.35 % wrong', '2.13 km', '0.5')
    """
    if unit == WRONG:
        return f"{_percent(loss, digits)} wrong"
    return f"{loss:.{digits}g} {unit}".rstrip()


def part(loss: float, unit: str, digits: int = 4) -> str:
    """The same, after `loses`.

    Examples:
        >>> part(0.6335, "wrong"), part(2.13, "km"), part(0.5, "")
        ('63.35 % of the values', '2.13 km a value', '0.5 a value')
    """
    if unit == WRONG:
        return f"{_percent(loss, digits)} of the values"
    return f"{amount(loss, unit, digits)} a value"


def cost(loss: float, unit: str, digits: int = 4) -> str:
    """The same, after `would`.

    Examples:
        >>> cost(0.6335, "wrong"), cost(2.13, "km"), cost(0.5, "")
        ('be wrong in 63.35 % of the values', 'be off by 2.13 km a value', 'lose 0.5 a value')
    """
    return f"{_verb(unit, 'be', 'lose')} {part(loss, unit, digits)}"


def errs(loss: float, unit: str, digits: int = 4) -> str:
    """The same as a sentence goes on: `the release ...`.

    Examples:
        >>> errs(0.6335, "wrong"), errs(2.13, "km"), errs(0.5, "")
        ('is wrong in 63.35 % of the values', 'is off by 2.13 km a value', 'loses 0.5 a value')
    """
    return f"{_verb(unit, 'is', 'loses')} {part(loss, unit, digits)}"


def _percent(share: float, digits: int) -> str:
    """A share of values; what is an error of rounding is none.

    Examples:
        >>> _percent(0.6335, 4), _percent(2.9e-16, 4), _percent(1e-6, 4)
        ('63.35 %', '0 %', '0.0001 %')
    """
    return f"{100 * share if abs(share) > _NO_SHARE else 0:.{digits}g} %"


def _verb(unit: str, be: str, lose: str) -> str:
    """What stands before an amount of this unit, by the forms of its two verbs."""
    if unit == WRONG:
        return f"{be} wrong in"
    return f"{be} off by" if unit else lose


def meaning(unit: str) -> str:
    """What a number of this loss is.

    Examples:
        >>> meaning("wrong"), meaning("km"), meaning("")
        ('the share of values that are wrong', 'in km, of a value', 'of a value')
    """
    if unit == WRONG:
        return "the share of values that are wrong"
    return f"in {unit}, of a value" if unit else "of a value"


def error(value: float, beside: float) -> str:
    """An error for a column of a table: two digits, never with an exponent, 0 if it is rounding.

    Args:
        value: The error.
        beside: The number that it is of.

    Examples:
        >>> error(0.0431, 0.5), error(4.3e-17, 0.5), error(5.23e-06, 0.8)
        ('0.043', '0', '0.0000052')
    """
    if value <= _NOTHING * abs(beside):
        return "0"
    return f"{Decimal(f'{value:.2g}'):f}" if math.isfinite(value) else str(value)
