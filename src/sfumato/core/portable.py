"""The same last bit on every machine: elementary functions and products for Python and numpy.

Whatever decides a channel, a belief, a charge, a table of noise or a certificate is computed with
these, with the loops under them, or with what is exact or in fixed order anyway: `+ - * /`, square
roots, and sums of numpy. `tests/portability` refuses BLAS, LAPACK and the functions of numpy, scipy
and the system's library there, and runs every job on pretended processors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core import portable_angles as angles
from sfumato.core import portable_loops as loops
from sfumato.core import portable_normal as normal
from sfumato.core import portable_products as products
from sfumato.core.arrays import Floats

Several: TypeAlias = NDArray[np.floating[Any]] | Sequence[float] | Sequence[Sequence[float]]
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


def _of(value: Any, one: Callable[[float], float], each: Callable[[Floats], Floats]) -> Any:
    if isinstance(value, (float, int)):
        return one(float(value))
    numbers = np.ascontiguousarray(value, dtype=np.float64)
    return each(numbers.reshape(-1)).reshape(np.shape(value))


@overload
def exp(value: float) -> float: ...
@overload
def exp(value: Several) -> Floats: ...
def exp(value: Any) -> Any:
    """E to a power, within a unit in the last place.

    Examples:
        >>> exp(0.0), exp(np.array([0.0, 1.0]))
        (1.0, array([1.        , 2.71828183]))
    """
    return _of(value, loops.exp, loops.exp_each)


@overload
def exp2(value: float) -> float: ...
@overload
def exp2(value: Several) -> Floats: ...
def exp2(value: Any) -> Any:
    """2 to a power, within 2 units in the last place."""
    return _of(value, loops.exp2, loops.exp2_each)


@overload
def expm1(value: float) -> float: ...
@overload
def expm1(value: Several) -> Floats: ...
def expm1(value: Any) -> Any:
    """E to a power, less 1, within 2 units in the last place."""
    return _of(value, loops.expm1, loops.expm1_each)


@overload
def log(value: float) -> float: ...
@overload
def log(value: Several) -> Floats: ...
def log(value: Any) -> Any:
    """The natural logarithm, within a unit in the last place; that of 0 is minus infinity."""
    return _of(value, loops.log, loops.log_each)


@overload
def log1p(value: float) -> float: ...
@overload
def log1p(value: Several) -> Floats: ...
def log1p(value: Any) -> Any:
    """The logarithm of 1 more, within 2 units in the last place."""
    return _of(value, loops.log1p, loops.log1p_each)


@overload
def log2(value: float) -> float: ...
@overload
def log2(value: Several) -> Floats: ...
def log2(value: Any) -> Any:
    """The logarithm to the base 2, within 3 units in the last place; exact for powers of 2."""
    return _of(value, loops.log2, loops.log2_each)


@overload
def tanh(value: float) -> float: ...
@overload
def tanh(value: Several) -> Floats: ...
def tanh(value: Any) -> Any:
    """The hyperbolic tangent, within 5 units in the last place."""
    size = abs(value) if isinstance(value, (float, int)) else np.abs(value)
    less = expm1(-2 * size)
    found = -less / (2 + less)
    return (
        math.copysign(found, value) if isinstance(size, (float, int)) else np.copysign(found, value)
    )


@overload
def sinh(value: float) -> float: ...
@overload
def sinh(value: Several) -> Floats: ...
def sinh(value: Any) -> Any:
    """The hyperbolic sine, within 5 units in the last place."""
    size = abs(value) if isinstance(value, (float, int)) else np.abs(value)
    more = expm1(size)
    found = 0.5 * (more + more / (1 + more))
    return (
        math.copysign(found, value) if isinstance(size, (float, int)) else np.copysign(found, value)
    )


@overload
def erf(value: float) -> float: ...
@overload
def erf(value: Several) -> Floats: ...
def erf(value: Any) -> Any:
    """The error function, within 6 units in the last place."""
    return _of(value, normal.erf, normal.erf_each)


@overload
def normal_share(value: float) -> float: ...
@overload
def normal_share(value: Several) -> Floats: ...
def normal_share(value: Any) -> Any:
    """The normal distribution function, within 8 units in the last place, also in its tail."""
    return _of(value, normal.normal_share, normal.normal_share_each)


@overload
def log_normal_share(value: float) -> float: ...
@overload
def log_normal_share(value: Several) -> Floats: ...
def log_normal_share(value: Any) -> Any:
    """Its logarithm, within 16 units in the last place."""
    return _of(value, normal.log_normal_share, normal.log_normal_share_each)


@overload
def sine(value: float) -> float: ...
@overload
def sine(value: Several) -> Floats: ...
def sine(value: Any) -> Any:
    """The sine of an angle."""
    return _of(value, angles.sine, angles.sine_each)


@overload
def cosine(value: float) -> float: ...
@overload
def cosine(value: Several) -> Floats: ...
def cosine(value: Any) -> Any:
    """The cosine of an angle."""
    return _of(value, angles.cosine, angles.cosine_each)


@overload
def arc_sine(value: float) -> float: ...
@overload
def arc_sine(value: Several) -> Floats: ...
def arc_sine(value: Any) -> Any:
    """The angle of a sine."""
    return _of(value, angles.arc_sine, angles.arc_sine_each)


@overload
def power(base: float, exponent: float) -> float: ...
@overload
def power(base: Several, exponent: float) -> Floats: ...
def power(base: Any, exponent: float) -> Any:
    """A number that is not negative to any power; its error grows with the logarithm of the result.

    Examples:
        >>> round(power(8.0, 1 / 3), 12)
        2.0
    """
    return exp(exponent * log(base))


def solved(matrix: Floats, right: Floats) -> Floats:
    """The solution of a small square system; NaN if it is singular.

    Examples:
        >>> solved(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([1.0, 1.0]))
        array([0.5 , 0.25])
    """
    sides = np.ascontiguousarray(right, dtype=np.float64)
    found = products.solved(np.ascontiguousarray(matrix), sides.reshape(len(sides), -1))
    return found.reshape(sides.shape)


def log_gamma(value: float) -> float:
    """The logarithm of the gamma function of a positive number, to 1e-13 of itself or of 1.

    Examples:
        >>> round(log_gamma(5.0), 12), round(log_gamma(0.5), 12)
        (3.178053830348, 0.572364942925)
    """
    shift = 1.0
    while value < 16.0:
        shift, value = shift * value, value + 1.0
    square, more = 1.0 / (value * value), 0.0
    for coefficient in reversed(_STIRLING):
        more = more * square + coefficient
    main = (value - 0.5) * log(value) - value + 0.5 * log(2 * math.pi)
    return main + more / value - log(shift)


def geometric(first: float, last: float, count: int) -> Floats:
    """Numbers from one to another, each the same multiple of the one before it; both ends exact.

    Examples:
        >>> geometric(1.0, 100.0, 3)
        array([  1.,  10., 100.])
    """
    low, high = log(first), log(last)
    found = exp(low + (high - low) * (np.arange(count) / max(count - 1, 1)))
    found[0], found[-1] = first, last
    return found


def dot(left: ArrayLike, right: ArrayLike) -> Any:
    """The product of vectors and matrices, as `@` has it, summed in a fixed order.

    Examples:
        >>> dot([1.0, 2.0], [3.0, 4.0]), dot([1.0, 2.0], np.eye(2))
        (11.0, array([1., 2.]))
    """
    first = np.ascontiguousarray(left, dtype=np.float64)
    second = np.ascontiguousarray(right, dtype=np.float64)
    if first.shape[-1] != second.shape[0]:
        raise ValueError(f"shapes {first.shape} and {second.shape} do not fit")
    if second.ndim == 1:
        if first.ndim == 1:
            return products.inner(first, second)
        found = products.row_products(first.reshape(-1, second.size), second)
        return found.reshape(first.shape[:-1])
    if first.ndim == 1:
        return products.column_products(first, second)
    return products.product(first, second)


def raised(base: Floats, times: int) -> Floats:
    """Numbers to a small whole power: a product, factor by factor."""
    found = np.ones_like(base)
    for _ in range(times):
        found = found * base
    return found


def root(matrices: Floats) -> Floats:
    """Lower triangular roots of positive definite matrices: of one, or of several."""
    stack = np.ascontiguousarray(matrices, dtype=np.float64)
    if stack.ndim == 2:
        return products.root(stack)
    return np.array([products.root(each) for each in stack]).reshape(stack.shape)


def inverse(matrices: Floats) -> Floats:
    """Inverses of small matrices: of one, or of several along the first axis."""
    stack = np.ascontiguousarray(matrices, dtype=np.float64)
    unit = np.eye(stack.shape[-1])
    if stack.ndim == 2:
        return products.solved(stack, unit)
    return np.array([products.solved(each, unit) for each in stack]).reshape(stack.shape)


def log_determinant(matrices: Floats) -> Floats:
    """Logarithms of the determinants of positive definite matrices, along the first axes."""
    diagonal = np.diagonal(root(matrices), axis1=-2, axis2=-1)
    return np.asarray(2 * log(diagonal).sum(axis=-1))


def covariance(table: Floats) -> Floats:
    """The covariance of the columns of a table, unbiased.

    Examples:
        >>> covariance(np.array([[1.0, 2.0], [3.0, 6.0]]))
        array([[2., 4.],
               [4., 8.]])
    """
    off = table - table.mean(axis=0)
    return np.asarray(dot(off.T, off) / (len(table) - 1))


def settled(value: float) -> float:
    """A number that a library computed to its last bits, without those: the same everywhere.

    To nine digits. Where two machines differ in the last bit, these differ once in millions of
    values, and never where the arguments are whole numbers, which have been looked at.
    """
    return float(f"{value:.9g}")
