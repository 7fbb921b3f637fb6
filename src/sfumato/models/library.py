r"""A correlation library: patterns of successive values, and by counting, which follows which.

For click streams a chain of single values is too poor and one of batches too large: most of the
$|X|^w$ batches never occur. The library keeps the patterns that occur most, maps every batch to
the kept pattern nearest to it, and counts which kept pattern follows which. What the adversary
knows is then a chain of kept patterns with full support, and a release acts on the kept pattern
alone, so its leakage about the batch is exactly its leakage about the pattern.

Patterns of every length up to the width are kept, for streams do not end at the end of a batch. The
length of a batch is public and comes from outside: which patterns follow which is learnt for each
length by itself, so that a length tells nothing about the patterns before it.

References:
    [SIP, Sec. VI-B]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from sfumato.core import checks, limits
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.markov import MarkovChain


@dataclass(frozen=True, slots=True, eq=False)
class PatternLibrary:
    """Kept patterns, and a chain that says how they follow each other.

    Attributes:
        alphabet: The values a stream can take.
        patterns: One row of symbol places per kept pattern; -1 after the end of a short one.
        chain: A chain on the rows of `patterns`, full support; what it says about the length of
            the next pattern is not used.

    Examples:
        >>> clicks = [["home", "news", "home", "news"], ["home", "shop", "home", "news", "shop"]]
        >>> library = PatternLibrary.fit(clicks, width=2)
        >>> len(library.patterns), library.full_support
        (3, True)
        >>> library.alphabet.labels[library.patterns[0][1]]
        'news'
    """

    alphabet: Alphabet
    patterns: Ints
    chain: MarkovChain
    _reached: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        patterns = np.array(self.patterns, dtype=np.int64)
        if patterns.ndim != 2 or len(patterns) != self.chain.size or self.chain.order != 1:
            rule = "be one row per symbol of a chain of order 1"
            raise InvalidParameter("patterns", patterns.shape, rule)
        filled = patterns >= 0
        lengths = filled.sum(axis=1)
        tidy = (filled == (np.arange(patterns.shape[1]) < lengths[:, None])).all()
        if not tidy or patterns.min() < -1 or patterns.max() >= len(self.alphabet):
            raise InvalidParameter("patterns", "others", "hold places of symbols, then -1 only")
        if set(lengths.tolist()) != set(range(1, patterns.shape[1] + 1)):
            rule = "have a pattern of every length up to the width"
            raise InvalidParameter("patterns", "lengths missing", rule)
        if len(np.unique(patterns, axis=0)) != len(patterns):
            raise InvalidParameter("patterns", "one twice", "be different")
        patterns.setflags(write=False)
        object.__setattr__(self, "patterns", patterns)
        object.__setattr__(self, "_reached", self._lengths_after())

    def _lengths_after(self) -> Floats:
        """What the chain says about the length of the next pattern, after each and at first."""
        chain, shares = self.chain, np.empty((len(self.patterns) + 1, self.width))
        for length in range(1, self.width + 1):
            rows = self.of_length(length)
            inside = np.zeros(len(self.patterns))
            inside[rows] = 1.0
            shares[:-1, length - 1] = chain.expect(inside, np.ones(len(self.patterns)))
            shares[-1, length - 1] = chain.initial[rows].sum()
        return checks.read_only(shares)

    @classmethod
    def fit(
        cls,
        sequences: Iterable[Sequence[Label]],
        *,
        width: int,
        most: int = 1000,
        alphabet: Alphabet | None = None,
        smoothing: float = 0.5,
        floor: float = 1e-6,
    ) -> Self:
        """Learn a library from recorded sequences.

        Args:
            sequences: Recorded sequences of symbols, one per stream.
            width: Values of a batch.
            most: How many patterns to keep: those that occur most, and one of each length.
            alphabet: The symbols; those that occur, sorted, if not given.
            smoothing: Pseudo-counts per follower that a pattern has.
            floor: Least probability that a kept pattern has after any other.
        """
        paths = list(sequences)
        if alphabet is None:
            alphabet = Alphabet.occurring(paths)
        size = checks.count("width", width, at_most=limits.BATCH)
        streams = [_cut(alphabet.indices(path).tolist(), size) for path in paths]
        counts = Counter(pattern for stream in streams for pattern in stream)
        commonest = _commonest(counts, size, checks.count("most", most, at_least=size))
        rows = np.array([[*pattern, *[-1] * (size - len(pattern))] for pattern in commonest])
        place = {pattern: _nearest(rows, pattern) for pattern in counts}
        coded = [[place[pattern] for pattern in stream] for stream in streams]
        numbers = Alphabet.of_size(len(rows))
        chain = MarkovChain.fit(coded, alphabet=numbers, smoothing=smoothing, floor=floor)
        return cls(alphabet, rows, chain)

    @property
    def width(self) -> int:
        """Values of a whole batch."""
        return int(self.patterns.shape[1])

    @property
    def fingerprint(self) -> str:
        """Identifies the library."""
        return digest("library", self.alphabet.fingerprint, self.patterns, self.chain.fingerprint)

    @property
    def full_support(self) -> bool:
        """Whether every kept pattern is possible at every moment."""
        return self.chain.full_support

    def first(self) -> Belief:
        """Belief about the pattern before the first batch: none, which has the last place."""
        none = np.zeros(len(self.patterns) + 1)
        none[-1] = 1.0
        return Belief(none)

    def of_length(self, length: int) -> Ints:
        """Places of the kept patterns of a length."""
        return np.flatnonzero((self.patterns >= 0).sum(axis=1) == length)

    def nearest(self, batch: Sequence[int]) -> int:
        """Place of the kept pattern of that length that differs least; the commonest such."""
        return _nearest(self.patterns, tuple(batch))

    def ahead(self, belief: Belief, length: int) -> tuple[Floats, float]:
        """Probabilities of the kept patterns of a length, and a bound on their error.

        Args:
            belief: Belief about the last pattern.
            length: Values of the next batch.
        """
        weights = belief.joint / self._reached[:, length - 1]
        spread = self.chain.spread(weights[:-1]) + weights[-1] * self.chain.initial
        masses = spread[self.of_length(length)]
        # Each row is divided by a sum, multiplied, and added to the others.
        error = belief.drift + (8 * len(self.patterns) + 32) * UNIT
        return masses / masses.sum(), error

    def after(self, masses: Floats, length: int, likelihood: Floats, drift: float) -> Belief:
        """Belief about the pattern of a batch of a known length, given the likelihood of each.

        Args:
            masses: Probabilities of the kept patterns of that length.
            length: Values of the batch.
            likelihood: That of what was released, for each of them.
            drift: The bound on the error of `masses`.
        """
        joint = np.zeros(len(self.patterns) + 1)
        joint[self.of_length(length)] = masses * likelihood
        return Belief(joint / joint.sum(), 0, drift + 6 * UNIT)


def _cut(path: list[int], width: int) -> list[tuple[int, ...]]:
    return [tuple(path[start : start + width]) for start in range(0, len(path), width)]


def _commonest(counts: Counter[tuple[int, ...]], width: int, most: int) -> list[tuple[int, ...]]:
    """The commonest patterns, the commonest first; at least one of every length."""
    ranked = sorted(counts, key=lambda pattern: (-counts[pattern], pattern))
    if not ranked:
        raise InvalidParameter("sequences", 0, "hold at least one value")
    needed = []
    for length in range(1, width + 1):
        longest = next((one for one in ranked if len(one) == length), None)
        # A length that never occurs gets the commonest pattern, cut or repeated.
        needed.append(longest or tuple(np.resize(ranked[0], length).tolist()))
    others = [pattern for pattern in ranked if pattern not in needed]
    chosen = [*needed, *others[: most - width]]
    return sorted(chosen, key=lambda pattern: (-counts[pattern], pattern))


def _nearest(rows: Ints, batch: tuple[int, ...]) -> int:
    length = len(batch)
    same = (rows[:, :length] == np.array(batch)).sum(axis=1)
    fits = rows[:, length - 1] >= 0
    if length < rows.shape[1]:
        fits = fits & (rows[:, length] < 0)
    # The first of equals is the commonest, for rows are in that order.
    return int(np.where(fits, same, -1).argmax())
