r"""Whole sequences at once, for small models: every notion side by side.

A release over $T$ steps is a channel from sequences to sequences. For a handful of symbols and
steps it can be written down in full, and every notion of privacy be read off it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.models.markov import MarkovChain

Policy = Callable[[tuple[int, ...]], Channel]
"""The channel of the next step, given the symbols released so far."""

_MAX_CELLS = 20_000_000
"""Numbers of a whole table: 160 MB."""


@dataclass(frozen=True, slots=True, eq=False)
class SequenceTable:
    """A release of `length` values in full.

    Attributes:
        size: Number of symbols.
        length: Number of steps.
        prior: Probability of each true sequence, the first value most significant.
        rows: Probability of each output sequence (column) given each true one (row).

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> table = tabulate(chain, lambda released: noisy, length=2)
        >>> table.local_leakage()
        2.1972246
        >>> table.information_leakage() < 2 * 0.6931472 + 1e-6
        False
    """

    size: int
    length: int
    prior: Floats
    rows: Floats

    def information_leakage(self) -> float:
        """Sequence information leakage (SIL) by its definition.

        References:
            [SIP, Def. 1]
        """
        ratios = self.rows / (portable.dot(self.prior, self.rows))
        if ratios.min() == 0.0:
            return math.inf
        return float(np.abs(portable.log(ratios)).max())

    def local_leakage(self) -> float:
        """Model-free leakage of the whole sequence.

        References:
            [SIP, Def. 4]
        """
        return _largest_quotient(self.rows)

    def mutual_information(self) -> float:
        """Mutual information of the true and the released sequence, in nats.

        References:
            [SIP, Def. 6]
        """
        joint = self.prior[:, None] * self.rows
        ratios = self.rows / (portable.dot(self.prior, self.rows))
        logs = portable.log(np.where(ratios > 0, ratios, 1.0))
        return max(0.0, float((joint * logs).sum()))

    def pufferfish_leakage(self) -> float:
        """Local Pufferfish leakage with "the value at time t is x" as the secrets.

        The largest log quotient of the probabilities of an output sequence given two different
        values at one moment, the rest of the sequence following the model.

        References:
            [SIP, Def. 5]
        """
        joint = self.prior[:, None] * self.rows
        shape = (self.size,) * self.length
        worst = 0.0
        for moment in range(self.length):
            # Sum over all other moments: what an output sequence says about this one alone.
            cube = np.moveaxis(joint.reshape(*shape, -1), moment, 0).reshape(
                self.size, -1, joint.shape[1]
            )
            mass = np.moveaxis(self.prior.reshape(shape), moment, 0).reshape(self.size, -1)
            given = cube.sum(axis=1) / mass.sum(axis=1)[:, None]
            worst = max(worst, _largest_quotient(given))
        return worst


def tabulate(chain: MarkovChain, policy: Policy, length: int) -> SequenceTable:
    """Write down the release of `length` values in full.

    Args:
        chain: How the true values are correlated; full support.
        policy: The channel of the next step, given the symbols released so far.
        length: Number of steps.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
        >>> tabulate(chain, lambda released: noisy, length=2).prior.round(2).ravel()
        array([0.45, 0.05, 0.05, 0.45])
    """
    size, steps = chain.size, checks.count("length", length)
    if (size**steps) ** 2 > _MAX_CELLS:
        raise InvalidParameter("length", length, f"keep {size}**(2*length) under {_MAX_CELLS:,}")
    if not chain.full_support:
        raise InvalidParameter("chain.floor", chain.floor, "be greater than 0")
    columns: list[Floats] = []

    def extend(released: tuple[int, ...], likelihood: Floats) -> None:
        if len(released) == steps:
            columns.append(likelihood)
            return
        channel = policy(released)
        for output in channel.outputs:
            extend(
                (*released, int(output)),
                np.outer(likelihood, channel.likelihood(int(output))).ravel(),
            )

    extend((), np.ones(1))
    return SequenceTable(size, steps, _sequence_prior(chain, steps), np.stack(columns, axis=1))


def _sequence_prior(chain: MarkovChain, length: int) -> Floats:
    if length <= chain.order:
        axes = tuple(range(length, chain.order))
        return np.asarray(chain.initial.sum(axis=axes)).ravel()
    prior = chain.initial.ravel()
    transition = chain.transition()
    contexts = len(transition)
    for _ in range(length - chain.order):
        prior = (prior.reshape(-1, contexts)[:, :, None] * transition).ravel()
    return prior


def _largest_quotient(rows: Floats) -> float:
    least = rows.min(axis=0)
    if least.min() == 0.0:
        return math.inf
    return float(portable.log(rows.max(axis=0) / least).max())
