r"""Markov chains of any order on a finite alphabet.

The transition matrix is kept as known rows plus a background:

$$P(x \mid c) = (1 - \lambda_c)\, S(x \mid c) + \lambda_c\, u(x)$$

where $c$ is the context (the last $m$ values), $S$ is `known` (dense, or sparse with few entries
a row), $\lambda_c$ is `backoff[c]` and $u$ is `background`. Smoothing, a floor that gives full
support and unseen contexts are all of this form, the time reversal of such a chain is again of
this form, and a belief is carried forward in time proportional to the entries of $S$.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.numerics import UNIT
from sfumato.core.randomness import Randomness, sampled
from sfumato.models.fitting import Rows, context_count, count_transitions, smoothed_parts
from sfumato.models.histories import recorded_paths
from sfumato.models.stationary import stationary_carried, stationary_dense


@dataclass(frozen=True, slots=True, eq=False)
class MarkovChain:
    """A chain of order `order`; see the module for the form of its transition matrix.

    Attributes:
        alphabet: The values a stream can take.
        order: How many past values the next one depends on.
        initial: Joint distribution of the first `order` values, one axis each.
        known: One row per context, oldest value most significant: dense or CSR.
        backoff: Weight of the background in each row.
        background: Distribution that every row is mixed with.

    Examples:
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> sticky.stationary()
        array([0.667, 0.333])
        >>> sticky.following(Belief(np.array([1.0, 0.0]))).marginal
        array([0.9, 0.1])
    """

    alphabet: Alphabet
    order: int
    initial: Floats
    known: Rows
    backoff: Floats
    background: Floats

    def __post_init__(self) -> None:
        size, order = len(self.alphabet), self.order
        contexts = context_count(size, order)
        initial = np.asarray(self.initial, dtype=np.float64)
        if initial.shape != (size,) * order:
            raise InvalidParameter("initial", initial.shape, f"have shape {(size,) * order}")
        checks.probabilities("initial", initial.ravel())
        background = checks.probabilities("background", self.background, size)
        # Rows with different weights of a background that is off would be off by different factors.
        background = background / _off(background.sum(), size, np.bool_(True))
        backoff = np.asarray(self.backoff, dtype=np.float64)
        if backoff.shape != (contexts,) or not np.all((backoff >= 0) & (backoff <= 1)):
            raise InvalidParameter("backoff", backoff.shape, f"be {contexts} numbers in [0, 1]")
        object.__setattr__(self, "initial", checks.read_only(initial))
        object.__setattr__(self, "known", _known_rows(self.known, contexts, size, backoff))
        object.__setattr__(self, "backoff", checks.read_only(backoff))
        object.__setattr__(self, "background", checks.read_only(background))

    @classmethod
    def from_matrix(
        cls,
        transition: ArrayLike | sparse.sparray,
        initial: ArrayLike | None = None,
        alphabet: Alphabet | None = None,
        floor: float = 0.0,
    ) -> Self:
        """A chain from its transition matrix: row = context, column = next value.

        Args:
            transition: `size**order` rows of `size` probabilities; dense or sparse.
            initial: Distribution of the first value, or for order m the joint one of the
                first m; the stationary one if not given.
            alphabet: The symbols; 0, 1, ... if not given.
            floor: Least probability that every transition shall have. It is mixed in evenly.
        """
        known = _as_rows(transition)
        contexts, size = known.shape
        order = _order(contexts, size)
        mixed = checks.finite("floor", floor) * size
        if mixed >= 1:
            raise InvalidParameter("floor", floor, f"be less than 1/{size}")
        uniform = np.full(size, 1.0 / size)
        chain = cls(
            alphabet=alphabet or Alphabet.of_size(size),
            order=order,
            initial=np.full((size,) * order, 1.0 / contexts),
            known=known,
            backoff=np.full(contexts, mixed),
            background=uniform,
        )
        if initial is None:
            return replace(chain, initial=chain.stationary())
        start = np.asarray(initial, dtype=np.float64)
        return replace(chain, initial=(1 - mixed) * start + mixed / start.size)

    @classmethod
    def fit(
        cls,
        sequences: Iterable[Sequence[Label]] | Any,
        *,
        stream: str | None = None,
        value: str | None = None,
        alphabet: Alphabet | None = None,
        order: int = 1,
        smoothing: float = 0.5,
        floor: float = 1e-6,
    ) -> Self:
        """Fit a chain with full support to many recorded sequences.

        Args:
            sequences: Recorded sequences of symbols, one per stream; or a frame (polars, pandas,
                pyarrow) with one row per value, in order.
            stream: Column of a frame that tells streams apart.
            value: Column of a frame that holds the values.
            alphabet: The symbols; those that occur, sorted, if not given.
            order: How many past values the next one depends on.
            smoothing: Pseudo-counts per follower that a context has, spread like the symbols
                at large.
            floor: Least probability of any transition, greater than 0: values that the
                history calls impossible do happen.

        Examples:
            >>> chain = MarkovChain.fit([["a", "a", "b"], ["b", "b", "a"]])
            >>> chain.alphabet.labels, chain.full_support
            (('a', 'b'), True)
        """
        paths = recorded_paths(sequences, stream, value)
        if alphabet is None:
            alphabet = Alphabet.occurring(paths)
        size, order = len(alphabet), checks.count("order", order)
        counts = count_transitions((alphabet.indices(path) for path in paths), size, order)
        return cls(alphabet, order, *smoothed_parts(counts, order, smoothing, floor))

    @property
    def size(self) -> int:
        """Number of symbols."""
        return len(self.alphabet)

    @property
    def floor(self) -> float:
        """Least probability of any transition; 0 when some are impossible."""
        known = self.known
        if isinstance(known, np.ndarray):
            return float(self.transition().min())
        least = self.backoff * self.background.min()
        # Where a follower is not known, only the background leads to it.
        for row in np.flatnonzero(np.diff(known.indptr) == self.size):
            least[row] = self.row(int(row)).min()
        return float(least.min())

    @property
    def fingerprint(self) -> str:
        """Identifies the model."""
        rows, *mixed = self.loop_rows
        known = (rows,) if isinstance(rows, np.ndarray) else rows
        name = self.alphabet.fingerprint
        return digest("markov", name, self.order, self.initial, *mixed, *known)

    @property
    def full_support(self) -> bool:
        """Whether every value is possible at every moment."""
        return self.floor > 0 and bool(self.initial.min() > 0)

    def transition(self) -> Floats:
        """The whole matrix, dense: row = context, column = next value."""
        known = self.known if isinstance(self.known, np.ndarray) else self.known.toarray()
        mixed = (1 - self.backoff)[:, None] * known + np.outer(self.backoff, self.background)
        return checks.read_only(mixed)

    def first(self) -> Belief:
        """Belief about the first value, before anything is released."""
        return Belief(self.initial, axis=0)

    def following(self, belief: Belief) -> Belief:
        """Belief about the next value, given the belief about the current one."""
        moved = np.array(belief.joint.reshape(1, -1))
        moment, drift = np.array([belief.axis]), np.array([belief.drift])
        self.carrier(moved, moment, drift, np.zeros(1, dtype=np.int64), np.empty(moved.size))()
        axis = min(belief.axis + 1, self.order - 1)
        return Belief(moved.reshape(belief.joint.shape), axis, float(drift[0]))

    def carrier(
        self, joints: Floats, moments: Ints, drifts: Floats, which: Ints, work: Floats
    ) -> Callable[[], None]:
        """What carries the joints of many streams, one row each, one moment forward in place.

        Args:
            joints: Rows of `size**order` weights, oldest value most significant.
            moments: Which value of each stream is current.
            drifts: Bound on the rounding error of each joint, as a log ratio.
            which: The rows to carry.
            work: Work space, as long as a row.
        """
        from sfumato.models.chain_loops import advance

        return partial(advance, joints, moments, drifts, which, *self.loop_rows, work)

    def spread(self, weights: Floats) -> Floats:
        """Weights of contexts, carried one moment forward; their sum stays the same."""
        from sfumato.models.chain_loops import spread

        moved = np.empty(weights.size)
        spread(weights, *self.loop_rows, moved)
        return moved

    def expect(self, values: Floats, weights: Floats, least: float = 0.0) -> Floats:
        """Mean of `values` one moment later, for contexts of a weight above `least`; else 0."""
        from sfumato.models.chain_loops import expect

        means = np.empty(values.size)
        expect(values, weights, least, *self.loop_rows, means)
        return means

    @property
    def loop_rows(self) -> tuple[Any, Floats, Floats]:
        """Known rows, backoff and background, as the loops take them."""
        known = self.known
        rows = known if isinstance(known, np.ndarray) else (known.data, known.indices, known.indptr)
        return rows, self.backoff, self.background

    def lifted(self, order: int) -> MarkovChain:
        """The same process, told as a chain that looks back on more values.

        Examples:
            >>> MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]]).lifted(2).transition()
            array([[0.9, 0.1],
                   [0.2, 0.8],
                   [0.9, 0.1],
                   [0.2, 0.8]])
        """
        more = checks.count("order", order, at_least=self.order) - self.order
        times = context_count(self.size, order) // len(self.backoff)
        if not more:
            return self
        joint = self.initial.ravel()
        for _ in range(more):
            joint = (joint.reshape(-1, len(self.backoff))[:, :, None] * self.transition()).ravel()
        dense = isinstance(self.known, np.ndarray)
        known = np.tile(self.known, (times, 1)) if dense else sparse.vstack([self.known] * times)
        return replace(
            self,
            order=order,
            initial=joint.reshape((self.size,) * order),
            known=known if dense else sparse.csr_array(known),
            backoff=np.tile(self.backoff, times),
        )

    def stationary(self, tolerance: float = 1e-14, max_steps: int = 200_000) -> Floats:
        """Distribution of `order` successive values that one step leaves unchanged.

        It also exists for periodic chains; a chain with several closed classes has many, and
        one of them is returned.
        """
        # A dense system of this size is solved at once; factors of a sparse one fill up.
        if self.order == 1 and self.size <= 2_000:
            return stationary_dense(self.transition())
        if self.order == 1 and self.backoff.min() > 0 and not isinstance(self.known, np.ndarray):
            return stationary_carried(self.spread, self.background)
        shape = (self.size,) * self.order
        belief = Belief(np.full(shape, 1.0 / self.size**self.order), self.order - 1)
        for _ in range(max_steps):
            # Half a step: a periodic chain would go round for ever.
            moved = 0.5 * (belief.joint + self.following(belief).joint)
            if np.abs(moved - belief.joint).sum() <= tolerance:
                return checks.read_only(moved)
            belief = replace(belief, joint=moved)
        raise SolverFailed(f"the stationary distribution did not settle in {max_steps} steps")

    def reversed(self) -> MarkovChain:
        r"""The same stationary process told backwards.

        $$P(X_{t-1} = i \mid X_t = j) = \pi_i P_{ij} / \pi_j$$

        where $\pi$ is the stationary distribution, and likewise for longer contexts. At order 1
        the reversal of known rows plus background is of that form again, so a sparse chain stays
        sparse; a chain of higher order becomes dense.
        """
        weight = self.stationary()
        if self.order > 1:
            return self._reversed_dense(weight)
        # A symbol that is never reached may have any past: its row is all background below.
        arrived = np.maximum(weight, np.finfo(np.float64).tiny)
        mixed = weight * self.backoff
        backoff = np.minimum(mixed.sum() * self.background / arrived, 1.0)
        background = mixed / mixed.sum() if mixed.sum() > 0 else self.background
        flows = sparse.csr_array(self.known) * (weight * (1 - self.backoff))[:, None]
        turned = sparse.csr_array(flows.T)
        sums = np.asarray(turned.sum(axis=1))
        scaled = sparse.csr_array(turned * (1 / np.where(sums > 0, sums, 1.0))[:, None])
        backoff = np.where(sums > 0, backoff, 1.0)
        known = scaled.toarray() if isinstance(self.known, np.ndarray) else scaled
        return replace(self, initial=weight, known=known, backoff=backoff, background=background)

    def _reversed_dense(self, weight: Floats) -> MarkovChain:
        shape = (self.size,) * (self.order + 1)
        joint = (weight.reshape(-1, 1) * self.transition()).reshape(shape)
        told_backwards = joint.transpose().reshape(-1, self.size)
        sums = told_backwards.sum(axis=1, keepdims=True)
        known = np.where(sums > 0, told_backwards / np.where(sums > 0, sums, 1.0), 1 / self.size)
        return replace(self, initial=weight.transpose(), known=known, backoff=np.zeros(len(known)))

    def sample(self, length: int, randomness: Randomness) -> Ints:
        """Draw a sequence of symbol places, for simulations."""
        checks.count("length", length)
        words = randomness.words(length + 1)
        context = int(sampled(self.initial.ravel(), words[:1])[0])
        path = list(np.unravel_index(context, self.initial.shape))[:length]
        tails = self.size ** (self.order - 1)
        for word in words[1 : max(1, length + 1 - self.order)]:
            drawn = int(sampled(self.row(context), np.array([word]))[0])
            path.append(np.int64(drawn))
            context = (context % tails) * self.size + drawn
        return np.array(path, dtype=np.int64)

    def row(self, context: int) -> Floats:
        """Distribution of the next value in one context (its flat number)."""
        known = self.known[[context]]
        row = known if isinstance(known, np.ndarray) else known.toarray()
        weight = self.backoff[context]
        return np.asarray((1 - weight) * row[0] + weight * self.background)


def _as_rows(transition: ArrayLike | sparse.sparray) -> Rows:
    if sparse.issparse(transition):
        return sparse.csr_array(transition, dtype=np.float64)
    matrix = np.asarray(transition, dtype=np.float64)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidParameter("transition", matrix.shape, "be a matrix")
    return matrix


def _order(contexts: int, size: int) -> int:
    order, rows = 1, size
    while rows < contexts and size > 1:
        order, rows = order + 1, rows * size
    if rows != contexts:
        raise InvalidParameter(
            "transition", (contexts, size), "have as many rows as a power of its columns"
        )
    return order


def _known_rows(known: Rows, contexts: int, size: int, backoff: Floats) -> Rows:
    """Check the known rows; a row that the background replaces may be empty."""
    if known.shape != (contexts, size):
        raise InvalidParameter("transition", known.shape, f"have shape {(contexts, size)}")
    if isinstance(known, np.ndarray):
        used = backoff < 1
        if used.any():
            checks.row_stochastic("transition", known[used])
        return checks.read_only(known / _off(known.sum(axis=1), size, used)[:, None])
    rows = known.astype(np.float64, copy=True)
    rows.sum_duplicates()
    if rows.nnz and not np.all(rows.data >= 0):
        raise InvalidParameter("transition", float(rows.data.min()), "have no negative entry")
    sums = np.asarray(rows.sum(axis=1)).ravel()
    wrong = np.flatnonzero((np.abs(sums - 1) > checks.SUM_TOLERANCE) & (backoff < 1))
    if wrong.size:
        place, total = f"transition row {wrong[0]}", float(sums[wrong[0]])
        raise InvalidParameter(place, total, f"sum to 1 within {checks.SUM_TOLERANCE:g}")
    rows.data /= np.repeat(_off(sums, size, backoff < 1), np.diff(rows.indptr))
    for part in (rows.data, rows.indices, rows.indptr):
        part.setflags(write=False)
    return rows


def _off(sums: Floats | np.float64, size: int, used: Bools | np.bool_) -> Floats:
    """Sums of rows that are off by more than rounding; 1 for the others, which stay as they are."""
    wrong = used & (np.abs(sums - 1) > 4 * size * UNIT)
    return np.where(wrong, sums, 1.0)
