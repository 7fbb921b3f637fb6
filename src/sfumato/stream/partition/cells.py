r"""A partition of batches: what a release looks at, and the channel on its cells.

A mechanism for batches acts on a function $g(o)$ of the batch. If the adversary's probability of
each value of $g$ is known exactly, the leakage about the batch is exactly the leakage about
$g$: for a batch $o$, $\Pr(o \mid r)/\Pr(o) = a(r \mid g(o))/P(r)$. The *cells* of the partition are
the values of $g$: every pattern may be a cell of its own, or many may share one.
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
from sfumato.core.ledger import FREE, Charge
from sfumato.core.loss import Loss
from sfumato.core.numerics import up
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design


class Partition(Protocol):
    """A function of a batch, with the adversary's belief about its value."""

    @property
    def masses(self) -> Floats:
        """Probability of each cell."""

    @property
    def error(self) -> float:
        """Bound on the log ratio of `masses` to the exact ones, up to a common factor."""

    def cell(self, places: Sequence[int]) -> int:
        """The cell that a batch of symbol places belongs to."""

    def after(self, likelihood: Floats) -> Belief:
        """Belief about what follows the batch, given the likelihood of each cell."""


@dataclass(frozen=True, slots=True, eq=False)
class StepDesign:
    """The channel of a step: from the cells of a batch to released batches.

    Attributes:
        partition: What the channel looks at.
        design: The channel with its expected loss and both certificates; its outputs are rows of
            `patterns`.
        patterns: The batches that can be released, one row of symbol places each.
        exact: Whether the program over all batches was solved, on patterns or on what the loss
            looks at, so that `design.gap` is about the best of all channels.
        drift: Rounding error of the stream's belief that the partition does not know of, since
            streams with other histories share it; None where it does.
    """

    partition: Partition
    design: Design
    patterns: Ints
    exact: bool
    drift: float | None = None

    @property
    def charge(self) -> Charge:
        """Exact leakage under the exact belief; the model-free one bounds it too."""
        if self.design.channel.is_constant:
            return FREE
        # A certificate under a belief that is off by `error` is off by twice that at most.
        rounding = 2 * self.partition.error
        if self.drift is not None:
            rounding = up(2 * (self.partition.error + self.drift))
        sip, ldp = self.design.sip.epsilon, self.design.ldp.epsilon
        return Charge(min(up(sip + rounding) if rounding else sip, ldp), ldp)

    def after(self, output: int) -> Belief:
        """Belief after an output of the channel."""
        informed = self.partition.after(self.design.channel.likelihood(output))
        return informed if not self.drift else replace(informed, drift=informed.drift + self.drift)

    def output(self, places: Ints, signal: int | None = None) -> int | None:
        """The output of the channel that releases a batch; None if none does.

        Where several do, the signal says which; without one it is the first.
        """
        possible = self.design.channel.outputs
        same = possible[(self.patterns[possible] == places).all(axis=1)]
        if signal is not None:
            return signal if signal in same else None
        return int(same[0]) if same.size else None


def solved(
    partition: Partition,
    patterns: Ints,
    loss: Loss,
    method: Method,
    epsilon: float,
    ldp: float | None,
    *,
    exact: bool = True,
) -> StepDesign:
    """The certified channel on the cells of a partition, each released as one of `patterns`."""
    found = design(method, partition.masses, loss, epsilon, ldp=ldp)
    return StepDesign(partition, found, patterns, exact=exact)


def muted(found: StepDesign) -> StepDesign:
    """The same design with its likeliest output as a constant, which tells nothing."""
    channel, masses = found.design.channel, found.partition.masses
    likeliest = int(channel.outputs[np.argmax(channel.marginal(masses / masses.sum()))])
    constant = Channel.constant(channel.size, 0)
    fixed = Channel(constant.weights, [likeliest])
    silent = replace(found.design, channel=fixed, lower_bound=None, sip=SIP(0.0), ldp=LDP(0.0))
    return replace(found, design=silent)
