r"""People differ: each stream follows one of a few chains, and nobody is told which.

The hidden state is the pair (cluster, value). A stream draws its cluster with the public `shares`
and keeps it; with the small probability `change` it draws it anew before a move:

$$P(k', x' \mid k, x) = \big((1 - \delta) 1_{k = k'} + \delta w_{k'}\big)\, P_{k'}(x' \mid x)$$

where $w$ is `shares`, $\delta$ is `change` and $P_k$ is `chains[k]`. The adversary's belief is over
both, so what outputs tell about the cluster changes what he expects of the values to come.

**The certificate covers both.** Let $Z_t = (K_t, X_t)$ be the hidden states and $a_t$ the channel
of step $t$, a function of earlier outputs. It looks at the value alone: $a_t(y \mid k, x) = a_t(y
\mid x)$. Given $y_1^{t-1}$ the output of step $t$ has the marginal $P_t(y) = \sum_x b_t(x) a_t(y
\mid x)$ with $b_t(x) = \sum_k b_t(k, x)$, so

$$\log \frac{P(y_1^T \mid z_1^T)}{P(y_1^T)} = \sum_t \log \frac{a_t(y_t \mid x_t)}{P_t(y_t)},$$

and each term is at most what step $t$ was charged: the leakage of $a_t$ about the *value* under the
marginal $b_t$. The sum therefore bounds what all outputs tell about the whole sequence of values
*and* clusters, and, since the ratio of a function of them is a mean of such ratios, about one
value, the cluster of the person, or both. It presumes that the belief is that of the mixture. A
belief under the common chain, or one that draws the cluster anew at each step, has other marginals,
and its charges bound nothing for an adversary who knows that people differ.

`change` must be positive: the belief of a cluster is then never below `change` times its share.
Without it, evidence against a cluster would add up until its belief is no float any more, and no
later evidence could bring it back, as it would for an exact adversary.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.core.randomness import Randomness, sampled
from sfumato.models.markov import MarkovChain

CHANGE = 1e-6
"""How probably a stream changes its cluster at a step, unless somebody says otherwise."""

_LEAST_CHANGE = 1e-12
_LEAST_SHARE = 1e-12


@dataclass(frozen=True, eq=False)
class ClusteredChain:
    """A mixture of chains of order 1, each stream following one of them.

    Attributes:
        shares: How common each cluster is; none is next to 0.
        chains: Their chains, over one alphabet, each with full support.
        change: Probability that a stream draws its cluster anew before a move.

    Examples:
        >>> stays = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> moves = MarkovChain.from_matrix([[0.1, 0.9], [0.9, 0.1]])
        >>> people = ClusteredChain([0.5, 0.5], (stays, moves))
        >>> told = people.first().update(np.array([1.0, 0.0]))
        >>> people.following(told).marginal
        array([0.5, 0.5])
        >>> again = people.following(told).update(np.array([1.0, 0.0]))
        >>> people.clusters(again), people.following(again).marginal
        (array([0.9, 0.1]), array([0.82, 0.18]))
    """

    stored_later: ClassVar[bool] = True

    shares: Floats
    chains: tuple[MarkovChain, ...]
    change: float = CHANGE
    order: int = field(init=False, default=1)

    def __post_init__(self) -> None:
        if not self.chains:
            raise InvalidParameter("chains", 0, "be at least one")
        shares = checks.probabilities("shares", self.shares, len(self.chains))
        if not shares.min() >= _LEAST_SHARE:
            # What is drawn anew must be a float that rounds like others: see the module.
            rule = f"be at least {_LEAST_SHARE:g} each"
            raise InvalidParameter("shares", float(shares.min()), rule)
        if not _LEAST_CHANGE <= self.change < 1:
            rule = f"be at least {_LEAST_CHANGE:g} and less than 1"
            raise InvalidParameter("change", self.change, rule)
        first = self.chains[0]
        for chain in self.chains:
            if chain.order != 1 or chain.alphabet != first.alphabet:
                rule = "be of order 1 and have the same symbols"
                raise InvalidParameter("chains", f"one of order {chain.order}", rule)
            if isinstance(chain.known, np.ndarray) != isinstance(first.known, np.ndarray):
                raise InvalidParameter("chains", "some sparse", "be all dense or all sparse")
        # Only what is off by more than rounding is scaled: what is read back stays as it was.
        whole = shares.sum()
        off = abs(whole - 1) > 4 * shares.size * UNIT
        object.__setattr__(self, "shares", checks.read_only(shares / whole if off else shares))

    @property
    def alphabet(self) -> Alphabet:
        """The values a stream can take."""
        return self.chains[0].alphabet

    @property
    def size(self) -> int:
        """Number of symbols."""
        return self.chains[0].size

    @property
    def floor(self) -> float:
        """A least probability of any transition."""
        return min(chain.floor for chain in self.chains)

    @property
    def full_support(self) -> bool:
        """Whether every value is possible at every moment, in every cluster."""
        return all(chain.full_support for chain in self.chains)

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the model."""
        own = (chain.fingerprint for chain in self.chains)
        return digest("clusters", self.shares, self.change, *own)

    @cached_property
    def _runs(self) -> Ints:
        count = len(self.chains)
        runs = np.arange(0, self.size * count + 1, count, dtype=np.int64)
        runs.setflags(write=False)
        return runs

    @cached_property
    def _rows(self) -> tuple[Any, Floats, Floats, Floats, float]:
        """Rows of all clusters one below the other, as the loops take them."""
        backoff = np.stack([chain.backoff for chain in self.chains])
        background = np.stack([chain.background for chain in self.chains])
        known: Any
        if isinstance(self.chains[0].known, np.ndarray):
            known = np.concatenate([chain.known for chain in self.chains])
        else:
            rows = sparse.csr_array(sparse.vstack([chain.known for chain in self.chains]))
            known = (rows.data, rows.indices, rows.indptr)
        return known, backoff, background, self.shares, self.change

    def first(self) -> Belief:
        """Belief about cluster and first value, before anything is released."""
        initial = np.stack([chain.initial for chain in self.chains], axis=1)
        # A product and the share's own division.
        return Belief((initial * self.shares).ravel(), 0, 4 * UNIT, self._runs)

    def following(self, belief: Belief) -> Belief:
        """Belief about cluster and next value, given the belief about the current ones."""
        from sfumato.models.cluster_loops import advance_clusters

        moved = np.empty(belief.joint.size)
        advance_clusters(belief.joint, *self._rows, moved)
        # A sum over clusters, one over symbols of a few roundings each, and a division.
        rounding = (6 * self.size + 2 * len(self.chains) + 24) * UNIT
        return Belief(moved / moved.sum(), 0, belief.drift + rounding, self._runs)

    def clusters(self, belief: Belief) -> Floats:
        """Distribution of the cluster under a belief."""
        return checks.read_only(belief.joint.reshape(self.size, -1).sum(axis=0))

    def hidden_moves(self) -> tuple[Floats, Ints]:
        """The chain of hidden states, for whoever infers them, and the symbol each shows.

        Examples:
            >>> one = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
            >>> ClusteredChain([1.0], (one,)).hidden_moves()[0]
            array([[0.9, 0.1],
                   [0.2, 0.8]])
        """
        count, size = len(self.chains), self.size
        keeps = (1 - self.change) * np.eye(count) + self.change * self.shares
        moves = np.stack([chain.transition() for chain in self.chains], axis=2)
        # Axes: value, cluster, next value, next cluster.
        whole = moves[:, None, :, :] * keeps[None, :, None, :]
        return whole.reshape(size * count, size * count), np.repeat(np.arange(size), count)

    def sample(self, length: int, randomness: Randomness) -> Ints:
        """Draw a sequence of symbol places, for simulations."""
        words = randomness.words(3 * checks.count("length", length)).reshape(length, 3)
        changes = sampled(np.array([1 - self.change, self.change]), words[:, 0])
        clusters = sampled(self.shares, words[:, 1])
        cluster, path = int(clusters[0]), list[int]()
        for moment in range(length):
            if changes[moment]:
                cluster = int(clusters[moment])
            chain = self.chains[cluster]
            row = chain.row(path[-1]) if path else chain.initial
            path.append(int(sampled(row, words[moment, 2:])[0]))
        return np.array(path, dtype=np.int64)
