"""Estimates from the outputs of a channel that are right on average whatever is true."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats

# Least singular value that counts, against the largest; and what an exact solution may be off.
_RANK, _EXACT = 1e-10, 1e-8


def unbiased_weights(rows: Floats, marginal: Floats, wanted: Floats) -> Floats | None:
    r"""Weights of outputs whose mean is a function of the truth, whatever that is.

    $$\sum_y a(y \mid x)\, g(y) = h(x) \quad \text{for every } x$$

    where $a$ is `rows`, $h$ a column of `wanted` and $g$ the result. Of all such weights they are
    those of least variance where outputs follow `marginal`.

    Args:
        rows: Probabilities of a channel: row = true symbol, column = output.
        marginal: Distribution of the outputs.
        wanted: Functions of the truth, a column each.

    Returns:
        A row per output, a column per function; None where outputs do not tell enough.

    Examples:
        >>> unbiased_weights(np.array([[0.75, 0.25], [0.25, 0.75]]), np.full(2, 0.5), np.eye(2))
        array([[ 1.5, -0.5],
               [-0.5,  1.5]])
    """
    scale = np.sqrt(marginal)
    found = np.linalg.lstsq(rows / scale, wanted, rcond=_RANK)[0] / scale[:, None]
    exact = np.abs(rows @ found - wanted).max() <= _EXACT * max(1.0, float(np.abs(wanted).max()))
    return found if exact else None
