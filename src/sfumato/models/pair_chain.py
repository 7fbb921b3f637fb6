r"""A chain that looks back on two values, over the pairs that occur.

The matrix of a chain of order 2 on 10,000 cells has $10^{12}$ entries, and a belief about pairs of
values $10^8$. A history of a million steps knows a few hundred thousand pairs. So the hidden state
is the current value together with the one before it *if that pair occurs in the history and the
step between them was a known one*, and the current value alone else:

- with a small probability $\rho$ a value from the background, which gives every value its floor;
- else from a pair $(w, x)$, with probability $1 - \mu_{wx}$ a follower it is known to have;
- else, as from $x$ alone: with probability $1 - \lambda_x$ a follower $y$ that $x$ is known to
  have, and the state is the pair $(x, y)$;
- else a value from the background, and the state is that value alone: the past is forgotten.

This is a hidden Markov model with as many states as pairs and symbols. A belief is carried forward
in time in proportion to what the history knows, and all its terms are positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

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
from sfumato.models.fitting import count_transitions, pulled, smoothed_parts
from sfumato.models.histories import recorded_paths
from sfumato.models.markov import MarkovChain


@dataclass(frozen=True, eq=False)
class PairChain:
    """A chain of order 2 over the pairs that occur, with a chain of order 1 behind it.

    Attributes:
        single: The chain of order 1; sparse. Its known followers are the pairs.
        rows: Known followers of each pair, in the order of `single`'s entries: CSR.
        forgets: Probability with which a pair acts as its second value alone would.
        reset: Probability of a value from the background, whatever the past.

    Examples:
        >>> paths = [[0, 1, 0, 2] * 5, [2, 0, 1, 0] * 5]
        >>> chain = PairChain.fit(paths)
        >>> chain.size, chain.pairs, chain.full_support
        (3, 4, True)
        >>> after = chain.following(chain.first().update(np.array([0.0, 1.0, 0.0])))
        >>> after.update(np.array([1.0, 0.0, 0.0])).marginal
        array([1., 0., 0.])
    """

    single: MarkovChain
    rows: sparse.csr_array
    forgets: Floats
    reset: float
    order: int = field(init=False, default=2)

    def __post_init__(self) -> None:
        if self.single.order != 1:
            raise InvalidParameter("single", self.single.order, "be a chain of order 1")
        checks.proper_fraction("reset", self.reset)
        known = self._known
        forgets = np.asarray(self.forgets, dtype=np.float64)
        if forgets.shape != (known.nnz,) or not np.all((forgets >= 0) & (forgets <= 1)):
            raise InvalidParameter("forgets", forgets.shape, f"be {known.nnz} numbers in [0, 1]")
        object.__setattr__(self, "forgets", checks.read_only(forgets))
        object.__setattr__(self, "rows", self._checked(self.rows, known))

    def _checked(self, rows: sparse.csr_array, known: sparse.csr_array) -> sparse.csr_array:
        """Rows of pairs: probabilities, of followers that the second value is known to have."""
        if rows.shape != (known.nnz, self.size):
            raise InvalidParameter("rows", rows.shape, f"have shape {(known.nnz, self.size)}")
        checked = rows.astype(np.float64, copy=True)
        checked.sum_duplicates()
        sums = np.asarray(checked.sum(axis=1)).ravel()
        used = self.forgets < 1
        off = np.abs(sums - 1) > checks.SUM_TOLERANCE
        if np.any(checked.data < 0) or np.any(used & off):
            raise InvalidParameter("rows", "another sum", "be nowhere negative and sum to 1")
        # Off by rounding only, or made exact, so that no row weighs more than another.
        checked.data /= np.repeat(np.where(used, sums, 1.0), np.diff(checked.indptr))
        for part in (checked.data, checked.indices, checked.indptr):
            part.setflags(write=False)
        return checked

    @classmethod
    def fit(
        cls,
        sequences: Any,
        *,
        stream: str | None = None,
        value: str | None = None,
        alphabet: Alphabet | None = None,
        smoothing: float = 0.5,
        floor: float = 1e-6,
    ) -> Self:
        """Fit it to recorded sequences, or to a frame; arguments as in `MarkovChain.fit`."""
        paths = recorded_paths(sequences, stream, value)
        if alphabet is None:
            alphabet = Alphabet.occurring(paths)
        codes = [alphabet.indices(path) for path in paths]
        return cls.of_places(alphabet, codes, smoothing, floor)[0]

    @classmethod
    def of_places(
        cls, alphabet: Alphabet, paths: Sequence[Ints], smoothing: float, floor: float
    ) -> tuple[Self, Floats]:
        """Fit it to sequences of places; also tells how often each pair was followed."""
        size = len(alphabet)
        counts = count_transitions(paths, size, 1)
        initial, known, backoff, background = smoothed_parts(counts, 1, smoothing, floor)
        sparse_known = sparse.csr_array(known)
        sparse_known.sum_duplicates()
        single = MarkovChain(alphabet, 1, initial, sparse_known, backoff, background)
        pairs = _pair_numbers(sparse_known)
        moves = [
            np.stack([pairs(path[:-2], path[1:-1]), path[2:]]) for path in paths if len(path) > 2
        ]
        first, then = np.concatenate([np.zeros((2, 0), dtype=np.int64), *moves], axis=1)
        shape, ones = (sparse_known.nnz, size), np.ones(first.size)
        seen = sparse.csr_array(sparse.coo_array((ones, (first, then)), shape=shape))
        times = np.asarray(seen.sum(axis=1)).ravel()
        forgets = pulled(times, smoothing * np.diff(seen.indptr))
        scaled = sparse.csr_array(seen * (1 / np.maximum(times, 1.0))[:, None])
        return cls(single, scaled, forgets, floor / float(background.min())), times

    @property
    def alphabet(self) -> Alphabet:
        """The values a stream can take."""
        return self.single.alphabet

    @property
    def size(self) -> int:
        """Number of symbols."""
        return self.single.size

    @property
    def pairs(self) -> int:
        """Number of pairs that are known."""
        return int(self.forgets.size)

    @property
    def floor(self) -> float:
        """A least probability of any transition."""
        return self.reset * float(self.single.background.min())

    @property
    def full_support(self) -> bool:
        """Whether every value is possible at every moment."""
        return self.floor > 0 and bool(self.single.initial.min() > 0)

    @cached_property
    def fingerprint(self) -> str:
        """Identifies the model."""
        rows = self.rows
        parts = (rows.data, rows.indices, rows.indptr, self.forgets)
        return digest("contexts", self.single.fingerprint, self.reset, *parts)

    @cached_property
    def _known(self) -> sparse.csr_array:
        known = sparse.csr_array(self.single.known)
        known.sum_duplicates()
        return known

    @cached_property
    def _states(self) -> _States:
        return _States.of(self._known, self.rows, self.forgets)

    def first(self) -> Belief:
        """Belief about the first value, before anything is released."""
        joint = np.zeros(self.pairs + self.size)
        joint[self._states.runs[:-1]] = self.single.initial
        return Belief(joint, runs=self._states.runs)

    def following(self, belief: Belief) -> Belief:
        """Belief about the next value, given the belief about the current one."""
        from sfumato.models.pair_state_loops import advance_pairs

        states, single = self._states, self.single
        moved = np.empty(belief.joint.size)
        behind = (single.backoff, single.background, self.reset)
        advance_pairs(belief.joint, *states.arrays, *behind, moved)
        # No entry is a sum of more terms than the longest run and the symbols together have.
        rounding = (6 * (states.longest + self.size) + 32) * UNIT
        return Belief(moved / moved.sum(), 0, belief.drift + rounding, self._states.runs)

    def entropies(self) -> Floats:
        """Entropy of the next value after each pair, in the order of `rows`."""
        from sfumato.models.pair_state_loops import pair_entropies

        states, single = self._states, self.single
        runs, data, _, starts, forgets, single_data, _, single_starts = states.arrays
        entropy = pair_entropies(
            runs,
            data,
            states.followers,
            starts,
            forgets,
            single_data,
            self._known.indices.astype(np.int64),
            single_starts,
            single.backoff,
            single.background,
            self.reset,
        )
        return np.asarray(entropy[states.arrays[6]])

    def hidden_moves(self) -> tuple[sparse.csr_array, Floats, Floats, Ints]:
        """The chain of hidden states, for whoever infers them: known moves, and the rest.

        Returns:
            Known moves as rows that sum to 1, the weight of the background in each state, the
            background over states, and the symbol that each state shows.
        """
        runs, data, targets, starts, forgets, one, single_targets, single_starts = (
            self._states.arrays
        )
        shown = np.repeat(np.arange(self.size), np.diff(runs))
        shape = (shown.size, shown.size)
        pairs = sparse.csr_array((data, targets, starts), shape=shape)
        alone = sparse.csr_array((one, single_targets, single_starts), (self.size, shown.size))
        forgot = (1 - self.reset) * forgets
        backoff = self.reset + forgot * self.single.backoff[shown]
        told = sparse.diags_array((1 - self.reset) * (1 - forgets)) @ pairs
        kept = told + sparse.diags_array(forgot * (1 - self.single.backoff[shown])) @ alone[shown]
        whole = np.maximum(1 - backoff, np.finfo(np.float64).tiny)
        background = np.zeros(shown.size)
        background[runs[:-1]] = self.single.background
        return sparse.csr_array(sparse.diags_array(1 / whole) @ kept), backoff, background, shown

    def sample(self, length: int, randomness: Randomness) -> Ints:
        """Draw a sequence of symbol places, for simulations."""
        checks.count("length", length)
        belief, path = self.first(), []
        for word in randomness.words(length):
            path.append(int(sampled(belief.marginal, np.array([word]))[0]))
            belief = self.following(belief.update(np.eye(1, self.size, path[-1])[0]))
        return np.array(path, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _States:
    """The hidden states in the order of a belief: symbol by symbol, that without a pair first."""

    runs: Ints
    longest: int
    followers: Ints
    arrays: tuple[Ints, Floats, Ints, Ints, Floats, Floats, Ints, Ints]

    @classmethod
    def of(cls, known: sparse.csr_array, rows: sparse.csr_array, forgets: Floats) -> _States:
        size, last = known.shape[0], known.indices.astype(np.int64)
        # Pairs sorted by their second value; each run begins with the state without a pair.
        order = np.argsort(last, kind="stable")
        ends = np.bincount(last, minlength=size).cumsum() + np.arange(1, size + 1)
        runs = np.append(0, ends).astype(np.int64)
        state = np.empty(last.size, dtype=np.int64)
        state[order] = np.arange(last.size) + last[order] + 1
        places = _pair_numbers(known)
        owner = np.repeat(last, np.diff(rows.indptr))
        targets = state[places(owner, rows.indices.astype(np.int64))]
        # The followers of each state, empty for those without a pair.
        lengths = np.zeros(last.size + size, dtype=np.int64)
        lengths[state] = np.diff(rows.indptr)
        starts = np.append(0, lengths.cumsum()).astype(np.int64)
        moved = np.concatenate(
            [np.arange(rows.indptr[pair], rows.indptr[pair + 1]) for pair in order]
            or [np.zeros(0, dtype=np.int64)]
        )
        runs.setflags(write=False)
        acts = np.ones(lengths.size)
        acts[state] = forgets
        return cls(
            runs=runs,
            longest=int(np.diff(runs).max()),
            followers=rows.indices.astype(np.int64)[moved],
            arrays=(
                runs,
                rows.data[moved],
                targets[moved],
                starts,
                acts,
                known.data,
                state,
                known.indptr.astype(np.int64),
            ),
        )


def _pair_numbers(known: sparse.csr_array) -> Any:
    """A function from pairs of values to their places among the known ones."""
    size = known.shape[0]
    owners = np.repeat(np.arange(size), np.diff(known.indptr))
    keys = owners * size + known.indices

    def number(first: Ints, second: Ints) -> Ints:
        wanted = first * size + second
        places = np.searchsorted(keys, wanted)
        # A search never fails: what it lands on must be what was sought.
        if np.any(places >= keys.size) or np.any(keys[np.minimum(places, keys.size - 1)] != wanted):
            raise InvalidParameter(
                "rows", "another follower", "lead to pairs that the chain of order 1 knows"
            )
        return np.asarray(places)

    return number
