r"""Backward transition matrices: from the value of a moment to that of the moment before.

$$P^B_t(i, j) = \Pr(X_{t-1} = j \mid X_t = i) = \frac{\pi_{t-1}(j)\, P(j, i)}{\pi_t(i)}$$

where $P$ is the forward matrix and $\pi_t$ the distribution at time $t$. It changes over time until
the process is stationary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter


def backward_matrix(forward: ArrayLike, before: ArrayLike) -> Floats:
    """The backward matrix of one step.

    A value that cannot occur after the step has the distribution before it as its row: nothing
    is said about the impossible.

    Args:
        forward: Row is the earlier value.
        before: Distribution of the earlier value.

    Examples:
        >>> backward_matrix([[0.8, 0.2], [0.1, 0.9]], [0.5, 0.5])
        array([[0.88888889, 0.11111111],
               [0.18181818, 0.81818182]])

    References:
        [TPL, Sec. 3.1]
    """
    rows = checks.row_stochastic("forward", forward)
    share = checks.probabilities("before", before, len(rows))
    # Bayes' rule: the later value is the row from now on.
    joint = (share[:, None] * rows).T
    sums = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(sums > 0, joint / np.where(sums > 0, sums, 1.0), share))


def transition_counts(
    paths: Sequence[Sequence[int]], size: int, *, smoothing: float = 0.0
) -> tuple[Floats, Floats]:
    """Backward and forward matrices from sequences of symbol places.

    Args:
        paths: The sequences.
        size: Number of symbols.
        smoothing: Added to every count; where a row has none at all it is even.

    Examples:
        >>> backward, forward = transition_counts([[0, 0, 1, 0]], 2)
        >>> forward
        array([[0.5, 0.5],
               [1. , 0. ]])

    References:
        [TPL, Sec. 3.1 and Eq. 28]
    """
    counts = np.full((checks.count("size", size), size), checks.finite("smoothing", smoothing))
    for path in paths:
        places = np.asarray(path, dtype=np.int64)
        if places.size and not (places.min() >= 0 and places.max() < size):
            raise InvalidParameter("paths", "other symbols", f"hold places in range({size})")
        np.add.at(counts, (places[:-1], places[1:]), 1.0)
    return _normalised(counts.T), _normalised(counts)


def _normalised(counts: Floats) -> Floats:
    sums = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1 / len(counts))
    return np.asarray(np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), even))
