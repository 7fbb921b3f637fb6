r"""Learn while streams go on: each block of new outputs moves the chain a little, and is forgotten.

$$S_k = (1 - \gamma_k) S_{k-1} + \gamma_k \bar N_k, \qquad \gamma_k = k^{-0.6}$$

where $\bar N_k$ is what is expected of the hidden values of block $k$, a value, under the chain
before it, and the chain is the best one for $S_k$ (stepwise EM); this is done a few times for each
block, each time from the same $S_{k-1}$. What is remembered are these sums
and where each stream stands: functions of what left alone, of a size that does not grow with time.

References: [Cappe2009]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, even, expected, maximised
from sfumato.models.learning import FLOOR, SMOOTHING
from sfumato.models.markov import MarkovChain

_SLOWING = -0.6
"""Power by which later blocks count less: between 1/2, where noise would stay, and 1."""
_PASSES, _FIRST_PASSES = 4, 100
"""Passes over a block, and over the first one, whose sums are all that later ones begin with."""


@dataclass(frozen=True, slots=True, eq=False)
class LearnerState:
    """All that a learner remembers: what anybody could compute from what left.

    Attributes:
        alphabet: The symbols.
        initial: How streams begin under the chain so far.
        moves: Its transitions, order 1.
        starts: How often streams began with each symbol, as a share of all values.
        followed: How often each symbol followed each, likewise.
        blocks: How many blocks were learnt from.
        values: How many values they had.
        names: Streams that were seen.
        beliefs: What is known of the last value of each, a row a stream.
        smoothing: Pseudo-counts of each value after each context.
        floor: Least probability of a transition in `chain`.

    Examples:
        >>> state = LearnerState.begin(Alphabet.of_size(2))
        >>> near, far = np.array([0.9, 0.1]), np.array([0.1, 0.9])
        >>> for _ in range(20):
        ...     block = Emissions.of_rows([np.array([near] * 5 + [far] * 5)])
        ...     state = state.learnt(block, ["ann"])
        >>> state.values, bool(state.chain.transition()[0, 0] > 0.7)
        (200, True)
    """

    alphabet: Alphabet
    initial: Floats
    moves: Floats
    starts: Floats
    followed: Floats
    blocks: int
    values: int
    names: tuple[str, ...]
    beliefs: Floats
    smoothing: float = SMOOTHING
    floor: float = FLOOR

    def __post_init__(self) -> None:
        size = len(self.alphabet)
        checks.row_stochastic("moves", self.moves, size)
        checks.probabilities("initial", self.initial, size)
        if self.beliefs.shape != (len(self.names), size):
            raise InvalidParameter("beliefs", self.beliefs.shape, "have a row for every stream")
        for name in ("initial", "moves", "starts", "followed", "beliefs"):
            object.__setattr__(self, name, checks.read_only(getattr(self, name)))

    @classmethod
    def begin(cls, alphabet: Alphabet, smoothing: float = SMOOTHING, floor: float = FLOOR) -> Self:
        """Nothing has left, nothing is known."""
        size = len(alphabet)
        initial, moves = even(size, 1)
        none, square = np.zeros(size), np.zeros((size, size))
        beliefs = np.empty((0, size))
        return cls(alphabet, initial, moves, none, square, 0, 0, (), beliefs, smoothing, floor)

    @property
    def chain(self) -> MarkovChain:
        """The chain so far, with full support."""
        return MarkovChain.from_matrix(self.moves, self.initial, self.alphabet, self.floor)

    def learnt(self, block: Emissions, names: list[str]) -> LearnerState:
        """The state after new outputs of some streams; those that are known go on.

        Args:
            block: What the new outputs told, value by value.
            names: The stream of each; none twice.
        """
        if len(names) != block.streams or len(set(names)) != len(names):
            raise InvalidParameter("names", len(names), f"be {block.streams} different streams")
        if block.symbols != len(self.alphabet) or block.span > 1:
            raise InvalidParameter("block", block.symbols, "be of single values of this alphabet")
        if not len(block):
            return self
        known = {name: place for place, name in enumerate(self.names)}
        seen = np.array([float(name in known) for name in names])
        before = np.array(
            [self.beliefs[known[name]] if name in known else self.initial for name in names]
        )
        blocks, total = self.blocks + 1, self.values + len(block)
        weight = portable.power(float(blocks), _SLOWING)
        guess = Guess(self.initial, self.moves)
        for _ in range(_PASSES if self.blocks else _FIRST_PASSES):
            counts = expected(guess, block, seen, before)
            starts = (1 - weight) * self.starts + weight * counts.starts / len(block)
            followed = (1 - weight) * self.followed + weight * counts.moves / len(block)
            whole = counts._replace(starts=starts * total, moves=followed * total)
            guess = maximised(whole, self.smoothing, 1)
        everyone = known | {
            name: len(known) + place
            for place, name in enumerate(name for name in names if name not in known)
        }
        beliefs = np.empty((len(everyone), len(self.alphabet)))
        beliefs[: len(self.names)] = self.beliefs
        beliefs[[everyone[name] for name in names]] = counts.after
        return LearnerState(
            self.alphabet,
            *guess,
            starts,
            followed,
            blocks,
            total,
            tuple(everyone),
            beliefs,
            self.smoothing,
            self.floor,
        )
