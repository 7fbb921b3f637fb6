r"""Parts: what a batched release looks at.

A mechanism for batches acts on a function $g(o)$ of the batch. If the adversary's probability of
each value of $g$ is known exactly, the leakage about the batch is exactly the leakage about
$g$: for a batch $o$, $\Pr(o \mid r)/\Pr(o) = a(r \mid g(o))/P(r)$. The *parts* of a batch are the
values of $g$; every pattern may be its own part, or many may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.information_leakage import batch_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design
from sfumato.stream.partition.batch_beliefs import unrolled
from sfumato.stream.partition.batch_loss import BatchLoss, listed


class Parts(Protocol):
    """A function of a batch, with the adversary's belief about its value."""

    @property
    def masses(self) -> Floats:
        """Probability of each part."""

    @property
    def error(self) -> float:
        """Bound on the log ratio of `masses` to the exact ones, up to a common factor."""

    def part(self, places: Sequence[int]) -> int:
        """The part that a batch of symbol places belongs to."""

    def after(self, likelihood: Floats) -> Belief:
        """Belief about what follows the batch, given the likelihood of each part."""


@dataclass(frozen=True, slots=True, eq=False)
class BatchDesign:
    """A channel from the parts of a batch to released batches.

    Attributes:
        parts: What the channel looks at.
        design: The channel with its expected loss and both certificates; its outputs are rows of
            `patterns`.
        patterns: The batches that can be released, one row of symbol places each.
        exact: Whether the program over all batches was solved, on patterns or on what the loss
            looks at, so that `design.gap` is about the best of all channels.
    """

    parts: Parts
    design: Design
    patterns: Ints
    exact: bool


def muted(found: BatchDesign) -> BatchDesign:
    """The same design with its likeliest output as a constant, which tells nothing."""
    channel, masses = found.design.channel, found.parts.masses
    likeliest = int(channel.outputs[np.argmax(channel.marginal(masses / masses.sum()))])
    constant = Channel.constant(channel.size, 0)
    fixed = Channel(constant.weights, [likeliest])
    silent = replace(found.design, channel=fixed, lower_bound=None, sip=SIP(0.0), ldp=LDP(0.0))
    return replace(found, design=silent)


class Patterns:
    """Every batch is a part of its own.

    Args:
        chain: How values follow each other.
        belief: Belief about the next value.
        width: Values of the batch.
        recalled: Past values that the channel looks at, too.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int, recalled: int = 0) -> None:
        self._batch = unrolled(chain, belief, width, recalled)
        self._size = chain.size
        self.masses: Floats = self._batch.masses
        self.error: float = self._batch.error

    def part(self, places: Sequence[int]) -> int:
        """Number of the batch; the first value, or the oldest recalled one, most significant."""
        return _code(places, self._size)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch."""
        return self._batch.after(likelihood)


class Believed:
    """Every batch is a part of its own, and the belief is about whole batches already.

    Args:
        chain: The chain of batches.
        belief: Belief about the next batch.
        symbols: How many symbols a value can take.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, symbols: int) -> None:
        self._chain, self._belief, self._symbols = chain, belief, symbols
        self.masses: Floats = belief.marginal
        self.error: float = belief.error

    def part(self, places: Sequence[int]) -> int:
        """Number of the batch, the first value most significant."""
        return _code(places, self._symbols)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the next batch."""
        return self._chain.following(self._belief.weighted(likelihood))


class Begun:
    """The first values of a batch that ends early, under a belief about whole batches.

    Args:
        chain: How values follow each other.
        belief: Belief about the next batch.
        width: Values of a whole batch.
        length: Values of this one.
    """

    def __init__(self, chain: MarkovChain, belief: Belief, width: int, length: int) -> None:
        # The next values that the chain looks back on, jointly; the first of them is current.
        joint = belief.joint.reshape((chain.size,) * width)
        later = tuple(range(chain.order, width))
        summed = chain.size ** (width - chain.order)
        first = Belief(joint.sum(axis=later), 0, belief.drift + summed * UNIT)
        self._chain, self._width = chain, width
        self._patterns = Patterns(chain, first, length)
        self.masses: Floats = self._patterns.masses
        self.error: float = self._patterns.error

    def part(self, places: Sequence[int]) -> int:
        """Number of the batch, the first value most significant."""
        return self._patterns.part(places)

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the next whole batch."""
        ahead = unrolled(self._chain, self._patterns.after(likelihood), self._width)
        masses = ahead.masses
        return Belief(masses / masses.sum(), 0, ahead.error + 2 * UNIT)


def design_patterns(
    chain: MarkovChain,
    belief: Belief,
    width: int,
    loss: BatchLoss,
    epsilon: float,
    *,
    ldp: float | None = None,
    method: Method = Method.OPTIMAL,
    recalled: int = 0,
) -> BatchDesign:
    """The channel on all batches: the program of the paper, solved and certified."""
    parts = Patterns(chain, belief, width, recalled)
    whole = listed(chain.size, recalled + width)[:, recalled:]
    found = design(method, parts.masses, loss.between(whole), epsilon, ldp=ldp)
    patterns = listed(chain.size, width)
    if recalled:
        # Outputs that differ in what is recalled alone are one batch to everybody.
        channel = found.channel.merged((found.channel.outputs % len(patterns)).tolist())
        sip, limit = batch_leakage(channel, parts.masses), local_leakage(channel)
        found = replace(found, channel=channel, sip=sip, ldp=limit)
    return BatchDesign(parts, found, patterns, exact=True)


def _code(places: Sequence[int], symbols: int) -> int:
    code = 0
    for place in places:
        code = code * symbols + place
    return code
