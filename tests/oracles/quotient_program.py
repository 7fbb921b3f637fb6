"""The largest quotient that a bound on leakage under a prior allows, as the paper's programs."""

import itertools
import math

import numpy as np
from scipy.optimize import linprog

from tests.strategies import Floats

_TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def quotient_program(prior: Floats, epsilon: float, *, posterior: bool = False) -> float:
    """[LIP, Eqs. 9 and 10] as linear programs, scaled so that the lower of two ratios is 1."""
    size, k = prior.size, math.exp(epsilon)
    mean = np.tile(prior, (size, 1))
    sides = np.vstack([mean / k - np.eye(size), np.eye(size) - k * mean])
    best = -math.inf
    for low, high in itertools.permutations(range(size), 2):
        found = linprog(
            -np.eye(size)[high],
            sides,
            np.zeros(2 * size),
            np.eye(size)[[low]],
            [1.0],
            options=_TIGHT,
        )
        assert found.status == 0, found.message
        scale = prior[high] / prior[low] if posterior else 1.0
        best = max(best, math.log(-float(found.fun) * scale))
    return best
