"""Argument checks: one door, one wording."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter

Choice = TypeVar("Choice", bound=StrEnum)
# Weights of 2^-62 resolve ratios up to e^42; beyond that a budget promises nothing.
MAX_EPSILON = 40.0
SUM_TOLERANCE = 1e-9
# A product of a belief and a 62-bit weight must stay clear of the subnormal numbers.
MIN_PROBABILITY = 1e-200


def finite(name: str, value: float, *, at_least: float = 0.0) -> float:
    """Return `value` as a float, or say that it must be finite and not too small.

    Examples:
        >>> finite("loss", 0.5)
        0.5
    """
    if not (math.isfinite(value) and value >= at_least):
        raise InvalidParameter(name, value, f"be finite and at least {at_least:g}")
    return float(value)


def positive(name: str, value: float) -> float:
    """Return `value` as a float, or say that it must be finite and greater than 0."""
    if not (math.isfinite(value) and value > 0):
        raise InvalidParameter(name, value, "be finite and greater than 0")
    return float(value)


def epsilon(name: str, value: float) -> float:
    """Return a privacy budget that a mechanism can be designed for."""
    positive(name, value)
    if value > MAX_EPSILON:
        raise InvalidParameter(name, value, f"be at most {MAX_EPSILON:g}")
    return float(value)


def leakage(name: str, value: float) -> float:
    """Return an amount of leakage: at least 0, and infinite when nothing is protected."""
    if math.isnan(value) or value < 0:
        raise InvalidParameter(name, value, "be at least 0")
    return float(value)


def fraction(name: str, value: float) -> float:
    """Return a probability in [0, 1]."""
    if not 0 <= value <= 1:
        raise InvalidParameter(name, value, "lie in [0, 1]")
    return float(value)


def proper_fraction(name: str, value: float) -> float:
    """Return a number strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InvalidParameter(name, value, "lie strictly between 0 and 1")
    return float(value)


def count(name: str, value: int, *, at_least: int = 1, at_most: int | None = None) -> int:
    """Return a whole number that is large enough, and not too large for any memory."""
    integral = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integral or value < at_least:
        raise InvalidParameter(name, value, f"be a whole number of at least {at_least}")
    if at_most is not None and value > at_most:
        raise InvalidParameter(name, value, f"be at most {at_most:,}")
    return int(value)


def numbers(name: str, value: ArrayLike) -> Floats:
    """Return finite numbers as floats, or say that they must be; none is quoted.

    Examples:
        >>> numbers("values", [1, 2.5])
        array([1. , 2.5])
    """
    given = _array(name, value, "be finite numbers")
    if not np.all(np.isfinite(given)):
        raise InvalidParameter(name, "something else", "be finite numbers")
    return given


def _array(name: str, value: ArrayLike, rule: str) -> Floats:
    """Numbers as an array: rows of different lengths, or what is no number, are none."""
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(name, "something else", rule) from None


def read_only(array: Floats) -> Floats:
    """Return a read-only copy that nobody else can write to."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def probabilities(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Return a read-only probability vector; zeros are allowed."""
    vector = _array(name, value, "be a vector with at least one entry")
    if vector.ndim != 1 or vector.size == 0:
        raise InvalidParameter(name, vector.shape, "be a vector with at least one entry")
    if size is not None and vector.size != size:
        raise InvalidParameter(name, vector.size, f"have {size} entries")
    _stochastic_rows(name, vector[None, :])
    return read_only(vector)


def belief(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Return a read-only probability vector with full support.

    Examples:
        >>> belief("belief", [0.5, 0.25, 0.25])
        array([0.5 , 0.25, 0.25])
    """
    vector = probabilities(name, value, size)
    if vector.min() < MIN_PROBABILITY:
        raise InvalidParameter(
            f"{name}[{int(vector.argmin())}]",
            float(vector.min()),
            f"be at least {MIN_PROBABILITY:g}: the guarantee covers possible values only, "
            "so give every symbol a floor",
        )
    return vector


def row_stochastic(name: str, value: ArrayLike, columns: int | None = None) -> Floats:
    """Return a read-only matrix whose rows are probability vectors."""
    matrix = _array(name, value, "be a matrix")
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidParameter(name, matrix.shape, "be a matrix")
    if columns is not None and matrix.shape[1] != columns:
        raise InvalidParameter(name, matrix.shape, f"have {columns} columns")
    _stochastic_rows(name, matrix)
    return read_only(matrix)


def _stochastic_rows(name: str, matrix: Floats) -> None:
    if not np.all(matrix >= 0):
        raise InvalidParameter(name, float(np.min(matrix)), "have no negative or NaN entry")
    sums = matrix.sum(axis=1)
    wrong = np.flatnonzero(~(np.abs(sums - 1.0) <= SUM_TOLERANCE))
    if wrong.size:
        row = int(wrong[0])
        place = name if len(matrix) == 1 else f"{name} row {row}"
        raise InvalidParameter(place, float(sums[row]), f"sum to 1 within {SUM_TOLERANCE:g}")


def loss_matrix(name: str, value: ArrayLike, size: int | None = None) -> Floats:
    """Return a read-only square matrix of finite, non-negative losses."""
    matrix = np.asarray(value, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise InvalidParameter(name, matrix.shape, "be a square matrix")
    if size is not None and matrix.shape[0] != size:
        raise InvalidParameter(name, matrix.shape, f"be {size} by {size}, like the belief")
    if not (np.all(np.isfinite(matrix)) and np.all(matrix >= 0)):
        raise InvalidParameter(name, float(np.min(matrix)), "be finite and nowhere negative")
    return read_only(matrix)


def positive_definite(name: str, value: ArrayLike) -> Floats:
    """A symmetric matrix all of whose eigenvalues are positive."""
    given = np.atleast_2d(numbers(name, value))
    if given.ndim != 2 or given.shape[0] != given.shape[1]:
        raise InvalidParameter(name, given.shape, "be a square matrix")
    scale = np.sqrt(np.maximum(np.diag(given), 0.0))
    if not scale.min() > 0:
        raise InvalidParameter(name, float(np.diag(given).min()), "have a positive diagonal")
    scaled = given / np.outer(scale, scale)
    if np.abs(scaled - scaled.T).max() > 1e-9:
        raise InvalidParameter(name, "another one", "be symmetric")
    from sfumato.core.portable_products import eigen

    least = float(eigen(np.ascontiguousarray(scaled))[0][0])
    if not least > 1e-12:
        rule = "be positive definite (its least eigenvalue, at unit diagonal, was got)"
        raise InvalidParameter(name, least, rule)
    return read_only(0.5 * (given + given.T))


def choice(name: str, kind: type[Choice], value: str) -> Choice:
    """One of some named things, or what they are."""
    try:
        return kind(value)
    except ValueError:
        raise InvalidParameter(name, value, f"be one of {', '.join(kind)}") from None
