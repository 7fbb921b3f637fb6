r"""How precisely each value of a series is measured, relative to the others.

The privacy of Gaussian measurements depends on the sum of the squares of these numbers alone, so
they may be spread over time as one likes; 0 is no measurement.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats


def constant(length: int) -> Floats:
    """Every value counts alike.

    Examples:
        >>> constant(3)
        array([1., 1., 1.])
    """
    return np.ones(checks.count("length", length))


def geometric(length: int, ratio: float) -> Floats:
    """Weights that fall by one factor: $w_t^2 = r^{t-1}$, so that even an endless sum is bounded.

    Examples:
        >>> geometric(3, 0.25)
        array([1.  , 0.5 , 0.25])

    References:
        [RTR, Sec. 5]
    """
    factor = checks.proper_fraction("ratio", ratio)
    return np.asarray(factor ** (0.5 * np.arange(checks.count("length", length))))
