"""Curves of Gaussian noise in many digits: what a budget allows of ratios and concentration."""

from collections.abc import Callable

import mpmath


def curve(ratio: float, epsilon: float) -> mpmath.mpf:
    """Delta of the Gaussian mechanism, with 60 digits (Balle and Wang, Theorem 8)."""
    with mpmath.workdps(60):
        mu, eps = mpmath.mpf(ratio), mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - eps / mu) - mpmath.exp(eps) * mpmath.ncdf(-mu / 2 - eps / mu)


def least_log_delta(rho: float, epsilon: float) -> mpmath.mpf:
    """Minimum over the order, by golden section on a convex function, in 40 digits."""
    with mpmath.workdps(40):
        r, eps = mpmath.mpf(rho), mpmath.mpf(epsilon)

        def log_delta(log_order: mpmath.mpf) -> mpmath.mpf:
            a = 1 + mpmath.exp(log_order)
            return (a - 1) * (a * r - eps) - mpmath.log(a - 1) + a * mpmath.log1p(-1 / a)

        low, high = mpmath.mpf(-8), mpmath.mpf(14)
        golden = (mpmath.sqrt(5) - 1) / 2
        for _ in range(90):
            left, right = high - golden * (high - low), low + golden * (high - low)
            if log_delta(left) < log_delta(right):
                high = right
            else:
                low = left
        return log_delta((low + high) / 2)


def allowed_squares(epsilon: float, delta: float) -> float:
    """The sum of squared ratios whose curve passes a budget."""
    return _largest(lambda squares: curve(float(mpmath.sqrt(squares)), epsilon) <= delta)


def allowed_concentration(epsilon: float, delta: float) -> float:
    """The concentrated privacy that a budget allows."""
    return _largest(lambda rho: least_log_delta(rho, epsilon) <= mpmath.log(delta))


def _largest(kept: Callable[[float], bool]) -> float:
    """The largest number up to 10 that keeps a rule, by halving."""
    low, high = 0.0, 10.0
    for _ in range(45):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low
