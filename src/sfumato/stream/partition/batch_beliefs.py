r"""Belief about the next few values, as one distribution over batches.

The belief about a batch follows from the belief about its first value and the chain,
$\beta(o) = b(x_1) \prod_i P(x_i \mid x_{i-1})$; and what an output tells about a batch tells
through its last values alone about everything later. So the state of a stream stays a belief about
its next value, whatever the length of the batches.

References:
    [SIP, Eqs. 20, 21 and 29]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain


@dataclass(frozen=True, slots=True, eq=False)
class BatchBelief:
    """Joint distribution of the next values, and of the past ones that a chain still looks at.

    Attributes:
        chain: How values follow each other.
        joint: Axes: values before those asked about, the values asked about, later ones.
        width: How many values the batch has.
        before: The belief it was made from.
        drift: Bound on the rounding error of `joint`, as a log ratio.

    Examples:
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> unrolled(sticky, Belief(np.array([0.5, 0.5])), 2).masses
        array([0.45, 0.05, 0.1 , 0.4 ])
    """

    chain: MarkovChain
    joint: Floats
    width: int
    before: Belief
    drift: float

    @property
    def masses(self) -> Floats:
        """Probability of each batch, the first value most significant."""
        return np.asarray(self.joint.sum(axis=(0, 2)))

    @property
    def error(self) -> float:
        """Bound on the log ratio of `masses` to the exact ones, up to a common factor."""
        summed = int(self.joint.shape[0] * self.joint.shape[2])
        return self.drift + (summed - 1) * UNIT

    def after(self, likelihood: Floats) -> Belief:
        """Belief about the value after the batch, given the likelihood of each batch."""
        chain, order = self.chain, self.chain.order
        told = self.joint * likelihood[None, :, None]
        drift = self.drift + 4 * UNIT
        axis = self.before.axis + self.width
        shape = (chain.size,) * order
        if axis < order:
            # The chain's first values are known jointly: nothing has to be carried on.
            return Belief((told / told.sum()).reshape(shape), axis, drift + 2 * UNIT)
        last = told.reshape(-1, chain.size**order)
        summed = Belief(last.sum(axis=0).reshape(shape), order - 1, drift + (len(last) - 1) * UNIT)
        return chain.following(summed)


def unrolled(chain: MarkovChain, belief: Belief, width: int, recalled: int = 0) -> BatchBelief:
    """Belief about the next `width` values, together with `recalled` of those before them."""
    size, order = chain.size, chain.order
    missing = width - (order - belief.axis)
    joint, drift = belief.joint.ravel(), belief.drift
    if missing > 0:
        transition = chain.transition()
        for _ in range(missing):
            joint = (joint.reshape(-1, len(transition))[:, :, None] * transition).ravel()
            # A row may be off by its sum, an entry by four roundings, the product by one.
            drift += (4 * size + 6) * UNIT
    asked = size ** (recalled + width)
    shape = (size ** (belief.axis - recalled), asked, size ** max(0, -missing))
    return BatchBelief(chain, joint.reshape(shape), width, belief, drift)


def chain_of_batches(chain: MarkovChain, width: int) -> MarkovChain:
    """The chain of whole batches: its symbols are the batches of `width` values, in their order.

    Its probabilities are products of `width` others, each off by at most `4 * size + 6` roundings.
    Carrying a belief over all batches allows for `6 * size**width + 16`, of which sums need
    `size**width + 4`: the rest is more than `width * (4 * size + 6)`.

    Examples:
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> chain_of_batches(sticky, 2).transition()[1]
        array([0.18, 0.02, 0.16, 0.64])
    """
    if chain.order > width:
        raise InvalidParameter("width", width, f"be at least the order of the chain, {chain.order}")
    size, transition = chain.size, chain.transition()
    contexts = len(transition)
    rows, codes = transition, np.arange(contexts)[:, None] * size + np.arange(size)
    for _ in range(width - 1):
        rows = (rows[:, :, None] * transition[codes % contexts]).reshape(contexts, -1)
        codes = (codes[:, :, None] * size + np.arange(size)).reshape(contexts, -1) % size**width
    last = np.arange(size**width) % contexts
    return MarkovChain(
        alphabet=Alphabet.of_size(size**width),
        order=1,
        initial=unrolled(chain, chain.first(), width).masses,
        known=rows[last],
        backoff=np.zeros(size**width),
        background=np.full(size**width, 1 / size**width),
    )
