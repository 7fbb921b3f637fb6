"""Schedules that no command offers."""

from __future__ import annotations

import numpy as np
from scipy import optimize

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from tests.oracles.processes import Process

_LONGEST = 400


def sampled(length: int, every: int) -> Floats:
    """Only every so many-th value is measured.

    Examples:
        >>> sampled(5, 2)
        array([1., 0., 1., 0., 1.])
    """
    weights = np.zeros(checks.count("length", length))
    weights[:: checks.count("every", every)] = 1.0
    return weights


def least_error(model: Process, length: int, noise_variance: float) -> Floats:
    r"""The schedule whose filtered series of a known first-order process has the least error.

    The sum of squares is that of a constant schedule whose noise has the given variance. Where
    the process is stationary the best schedule is nearly even but for its ends: the first value
    is worth more, since nothing is known before it, and the last ones less, since nothing
    follows that they would help.

    Args:
        model: The process, of order 1.
        length: Number of values, at most 400.
        noise_variance: That of a measurement under a constant schedule.

    Examples:
        >>> process = Process.first_order(0.0, 0.9, 1.0)
        >>> shares = least_error(process, 20, 4.0)
        >>> float(np.square(shares).sum()), bool(shares[0] > shares[-1])
        (20.0, True)

    References:
        [RTR, Sec. 4]
    """
    size = checks.count("length", length)
    if model.order != 1 or size > _LONGEST:
        rule = f"be of order 1, for at most {_LONGEST} values"
        raise InvalidParameter("model", (model.order, size), rule)
    unit = 1 / checks.positive("noise_variance", noise_variance)
    pull, fresh = float(model.coefficients[0]) ** 2, model.innovation

    def errors(logs: Floats) -> tuple[float, Floats]:
        share = np.exp(logs - logs.max())
        precision = size * unit * share / share.sum()
        prior, posterior = np.empty(size), np.empty(size)
        before = model.variance
        for time in range(size):
            prior[time] = before
            posterior[time] = 1 / (1 / before + precision[time])
            before = pull * posterior[time] + fresh
        slopes, later = np.empty(size), 0.0
        for time in range(size - 1, -1, -1):
            # What a smaller error here is worth, here and through all that follows.
            later = 1 + later * pull if time < size - 1 else 1.0
            slopes[time] = -later * posterior[time] ** 2
            later *= (posterior[time] / prior[time]) ** 2
        slopes = slopes * precision
        return float(posterior.sum()), slopes - share / share.sum() * slopes.sum()

    found = optimize.minimize(errors, np.zeros(size), jac=True, method="L-BFGS-B")
    share = np.exp(found.x - found.x.max())
    return np.asarray(np.sqrt(size * share / share.sum()))
