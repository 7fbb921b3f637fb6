"""Randomised response whose support follows the chain: a rival, and what it really leaks.

At each moment only the values that can follow the previous true one are answered with. That makes
the alphabet of a step small, and gives the previous value away whenever two values have
different followers: an answer that cannot follow a value rules it out for good.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage


def temporal_response(transition: ArrayLike, epsilon: float) -> list[Channel]:
    r"""One channel for each previous value: randomised response among its followers.

    Args:
        transition: Row is the previous value.
        epsilon: Model-free leakage of a step *if the previous value were public*.

    Examples:
        >>> channels = temporal_response([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]], 1.0)
        >>> [channel.outputs.tolist() for channel in channels]
        [[0, 1], [0, 1, 2], [1, 2]]

    References:
        [SIP, Sec. VI-B]
    """
    rows = _square(transition)
    odds = math.exp(checks.epsilon("epsilon", epsilon) * (1 - 2.0**-40))
    channels = []
    for row in rows:
        support = np.flatnonzero(row > 0)
        table = np.full((len(rows), support.size), 1 / support.size)
        inside = np.ones((support.size, support.size))
        np.fill_diagonal(inside, odds)
        table[support] = inside / inside.sum(axis=1, keepdims=True)
        channels.append(Channel.from_probabilities(table, support))
    return channels


def temporal_response_leakage(
    transition: ArrayLike, prior: ArrayLike, epsilon: float
) -> tuple[LIP, LDP]:
    """What two successive answers really leak of the two values, exactly.

    Args:
        transition: Row is the previous value.
        prior: Distribution of the first value, which is answered by plain randomised response.
        epsilon: Leakage claimed for each answer.

    Returns:
        Leakage under the chain, and whatever the chain; infinite where two values that can occur
        have different followers.

    Examples:
        >>> temporal_response_leakage([[0.5, 0.5, 0], [0.2, 0.3, 0.5], [0, 0.5, 0.5]], [1/3]*3, 1)
        (LIP(epsilon=inf, delta=0.0), LDP(epsilon=inf, delta=0.0))
        >>> alike = temporal_response_leakage([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5], 1.0)
        >>> alike[1].epsilon
        2.000000
    """
    rows = _square(transition)
    share = checks.belief("prior", prior, len(rows))
    size = len(rows)
    first = temporal_response(np.full((1, size), 1 / size).repeat(size, axis=0), epsilon)[0]
    second = temporal_response(rows, epsilon)
    joint = share[:, None] * rows
    pairs = [(i, j) for i in range(size) for j in range(size) if joint[i, j] > 0]
    table = np.zeros((len(pairs), size * size))
    for place, (i, j) in enumerate(pairs):
        after = np.zeros(size)
        after[second[i].outputs] = second[i].probabilities[j]
        table[place] = np.outer(first.probabilities[i], after).ravel()
    both = Channel.from_probabilities(table)
    belief = np.array([joint[pair] for pair in pairs])
    return information_leakage(both, belief / belief.sum()), local_leakage(both)


def _square(transition: ArrayLike) -> Floats:
    rows = checks.row_stochastic("transition", transition)
    if rows.shape[0] != rows.shape[1]:
        raise InvalidParameter("transition", rows.shape, "be a square matrix")
    return rows
