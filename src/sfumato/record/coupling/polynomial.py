"""The polynomial of some columns that is nearest to another, written as an equation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import combinations_with_replacement

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.portable_products import least_squares
from sfumato.record.coupling.expressions import LONGEST, quoted

Term = tuple[int, ...]
"""The factors of a term, by the places of their features; some more than once."""

_MOST_DEGREE = 9
_MOST_TERMS = 200


def fitted_polynomial(
    columns: Mapping[str, Floats], target: str, features: Sequence[str], degree: int
) -> tuple[str, float]:
    """An equation in centred features by least squares, and the deviation that it leaves.

    Args:
        columns: Those of the target and the features, as long as each other.
        target: What the polynomial gives.
        features: What it is a polynomial of.
        degree: Largest sum of exponents in a term; 1 to 9.

    Examples:
        >>> height = np.arange(160.0, 181.0, 5.0)
        >>> fitted_polynomial({"h": height, "w": 0.5 * height - 15}, "w", ["h"], 1)[0]
        'w = 70 + 0.49999...*(h - 170)'
    """
    _check(columns, target, features, degree)
    values = np.stack([columns[name] for name in features])
    # Centred and scaled: powers of raw columns would lose their digits to each other.
    centres = [_centre(column) for column in values]
    values = values - np.array(centres)[:, None]
    scales = np.abs(values).max(axis=1)
    powers = [
        term
        for total in range(degree + 1)
        for term in combinations_with_replacement(range(len(features)), total)
    ]
    unit = float(np.abs(columns[target]).max())
    weights, residual = _fitted(values / scales[:, None], columns[target] / unit, powers)
    with np.errstate(all="ignore"):
        weights = unit * weights / [np.prod(scales[list(term)]) for term in powers]
    if not np.all(np.isfinite(weights)):
        rule = "be of a scale that floats can hold"
        raise InvalidParameter("records", f"{values.shape[1]} rows", rule)
    shown = [_centred(name, centre) for name, centre in zip(features, centres, strict=True)]
    terms = [_term(weight, term, shown) for weight, term in zip(weights, powers, strict=True)]
    text = f"{quoted(target)} = {_digits(weights[0])}{''.join(terms[1:])}"
    if len(text) > LONGEST:
        rule = f"be lower: the equation would have more than {LONGEST} characters"
        raise InvalidParameter("degree", degree, rule)
    return text, unit * residual


def _check(
    columns: Mapping[str, Floats], target: str, features: Sequence[str], degree: int
) -> None:
    if checks.count("degree", degree) > _MOST_DEGREE:
        raise InvalidParameter("degree", degree, f"be at most {_MOST_DEGREE}")
    if not features or len({target, *features}) <= len(features):
        rule = "be at least one attribute, each named once and not the target"
        raise InvalidParameter("features", list(features), rule)
    for name, column in columns.items():
        with np.errstate(over="ignore"):
            width = np.ptp(column) if column.size else 0.0
        if not 0 < width < np.inf:
            rule = "hold at least two different values, not too far apart"
            raise InvalidParameter(f"records[{name!r}]", f"{column.size} values", rule)
    rows, terms = columns[target].size, math.comb(len(features) + degree, degree)
    if terms > _MOST_TERMS:
        rule = f"be lower: {terms} terms are more than {_MOST_TERMS}"
        raise InvalidParameter("degree", degree, rule)
    if rows <= terms:
        rule = f"have more rows than the polynomial has terms, {terms}"
        raise InvalidParameter("records", f"{rows} rows", rule)


def _fitted(values: Floats, target: Floats, powers: Sequence[Term]) -> tuple[Floats, float]:
    """The weight of each term, and the standard deviation of what they leave."""
    design = np.stack([np.prod(values[list(term)], axis=0) for term in powers], axis=1)
    rows, terms = design.shape
    rank = int(np.linalg.matrix_rank(design))
    if rank < terms:
        rule = f"have values different enough to tell the {terms} terms of the polynomial apart"
        raise InvalidParameter("records", f"{rows} rows", rule)
    weights = least_squares(design, target)
    left = target - portable.dot(design, weights)
    return weights, math.sqrt(float(portable.dot(left, left)) / (rows - terms))


def _centre(column: Floats) -> float:
    """A short number near the middle of a column."""
    low, high = float(column.min()), float(column.max())
    digits = 2 - Decimal(high - low).adjusted()
    return round(0.5 * low + 0.5 * high, digits)


def _centred(name: str, centre: float) -> str:
    if not centre:
        return quoted(name)
    return f"({quoted(name)} {'-' if centre > 0 else '+'} {_digits(abs(centre))})"


def _term(weight: float, term: Term, shown: Sequence[str]) -> str:
    text = f" {'-' if weight < 0 else '+'} {_digits(abs(weight))}"
    for place in dict.fromkeys(term):
        power = term.count(place)
        text += f"*{shown[place]}**{power}" if power > 1 else f"*{shown[place]}"
    return text


def _digits(number: float) -> str:
    """All of them, and no point without digits behind it."""
    return repr(float(number)).removesuffix(".0")
