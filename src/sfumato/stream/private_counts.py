r"""Counts of transitions under differential privacy of whole people, and a chain from them.

Of each person at most $K$ transitions are counted, drawn by secure coins, and where his stream
began. Adding or removing a person with everything he did then moves the table of transitions by at
most $K$ in all, and that of beginnings by 1, whichever transitions were drawn. Every cell of both,
also one that nobody visited, gets two-sided geometric noise of its own. The rest is a function of
noisy counts: rows are made non-negative with their sums kept, smoothed, and given a floor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InsecureRandomness, InvalidParameter
from sfumato.core.numerics import add_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.models.fitting import Counts, smoothed_parts
from sfumato.models.markov import MarkovChain
from sfumato.models.private_history import PrivateHistory
from sfumato.noise.geometric import DiscreteLaplace

CONTRIBUTION = 20
"""Transitions counted of one person, if nobody says. The noise grows with it as what is counted
does, so it is best about as long as streams are: which only what is public may decide."""
_STARTS = 0.1
"""Part of the budget for beginnings: one a person, where transitions are many."""
_MOST_SYMBOLS = 1024
"""All pairs of symbols get noise: a million of them."""


@dataclass(frozen=True, slots=True)
class PrivacySpec:
    """What a private fit may leak about a person.

    Attributes:
        epsilon: In all.
        contribution: Most transitions that are counted of one person.
        purpose: `SIMULATION` admits coins that can be guessed; the model then says so.
    """

    epsilon: float
    contribution: int = CONTRIBUTION
    purpose: Purpose = Purpose.RELEASE

    def __post_init__(self) -> None:
        checks.epsilon("epsilon", self.epsilon)
        checks.count("contribution", self.contribution)

    def noises(self) -> tuple[DiscreteLaplace, DiscreteLaplace]:
        """The noise of transitions and that of beginnings."""
        moves = DiscreteLaplace.at((1 - _STARTS) * self.epsilon / self.contribution)
        return moves, DiscreteLaplace.at(_STARTS * self.epsilon)

    def certificate(self, unit: str) -> PrivateHistory:
        """What a model keeps that is fitted so."""
        moves, starts = self.noises()
        told = moves.leakage(self.contribution).epsilon, starts.leakage(1).epsilon
        scales = (1 / moves.step, 1 / starts.step)
        simulated = self.purpose is Purpose.SIMULATION
        return PrivateHistory(add_up(*told), unit, self.contribution, *scales, simulated)


def counted(people: Iterable[list[Ints]], size: int, most: int, coins: Randomness) -> Counts:
    """What is counted of people before any noise: at most so many transitions of each.

    Args:
        people: Of each person, runs of successive values, as places of symbols.
        size: Number of symbols.
        most: Transitions counted of one person, drawn evenly from all of his.
        coins: Which of them.
    """
    moves, starts, persons = np.zeros((size, size)), np.zeros(size), 0
    for runs in people:
        persons += 1
        pairs = [np.stack([run[:-1], run[1:]], axis=1) for run in runs if run.size > 1]
        steps = np.concatenate(pairs) if pairs else np.empty((0, 2), dtype=np.int64)
        if len(steps) > most:
            # The least of random words are a draw without replacement; ties have no chance.
            steps = steps[np.argsort(coins.words(len(steps)), kind="stable")[:most]]
        np.add.at(moves, (steps[:, 0], steps[:, 1]), 1.0)
        first = next((run[0] for run in runs if run.size), None)
        if first is not None:
            starts[first] += 1
    return Counts(starts, sparse.csr_array(moves), moves.sum(axis=0) + starts, persons)


def private_chain(
    people: Iterable[list[Ints]],
    alphabet: Alphabet,
    privacy: PrivacySpec,
    coins: Randomness,
    *,
    smoothing: float = 0.5,
    floor: float = 1e-6,
) -> tuple[MarkovChain, float]:
    """A chain of order 1 that keeps a promise to each person it was fitted to.

    Args:
        people: Of each person, runs of successive values, as places of symbols.
        alphabet: The symbols: public, not those that happen to occur.
        privacy: What may leak about a person.
        coins: Of the draw and the noise; fresh ones for every fit.
        smoothing: Pseudo-counts per follower that a symbol has, and per mean size of the noise.
        floor: Least probability of any transition.

    Returns:
        The chain, and about how many transitions it rests on, noise included.

    Raises:
        InsecureRandomness: If the coins can be guessed and this is no simulation.

    Examples:
        >>> from sfumato.core.randomness import secure
        >>> stays = [[np.array([0] * 15 + [1] * 15)] for _ in range(500)]
        >>> chain, _ = private_chain(stays, Alphabet.of_size(2), PrivacySpec(1.0), secure())
        >>> bool(chain.transition()[0, 0] > 0.7), chain.full_support
        (True, True)
    """
    size = len(alphabet)
    if size > _MOST_SYMBOLS:
        rule = f"have at most {_MOST_SYMBOLS:,} symbols: every pair of them gets noise"
        raise InvalidParameter("alphabet", f"{size:,} symbols", rule)
    moves, starts = noisy_counts(people, size, privacy, coins)
    scale = 1 / privacy.noises()[0].step
    return _chain(moves, starts, alphabet, scale, smoothing, floor)


def noisy_counts(
    people: Iterable[list[Ints]], size: int, privacy: PrivacySpec, coins: Randomness
) -> tuple[Floats, Floats]:
    """All that is learnt of people: transitions and beginnings, each cell with its own noise.

    Raises:
        InsecureRandomness: If the coins can be guessed and this is no simulation.
    """
    if coins.simulated and privacy.purpose is not Purpose.SIMULATION:
        raise InsecureRandomness("a private fit")
    exact = counted(people, size, privacy.contribution, coins)
    for_moves, for_starts = privacy.noises()
    moves = exact.moves.toarray() + for_moves.draw(size * size, coins).reshape(size, size)
    starts = exact.starts + for_starts.draw(size, coins)
    return moves, starts


def _chain(
    moves: Floats, starts: Floats, alphabet: Alphabet, scale: float, smoothing: float, floor: float
) -> tuple[MarkovChain, float]:
    """A chain from noisy counts; nothing here looks at a person."""
    cleared = np.array([without_negatives(row) for row in moves])
    began, total = without_negatives(starts), float(cleared.sum())
    if total == 0:
        cleared = np.ones_like(cleared)  # nothing but noise is left: the even chain
    if began.sum() == 0:
        began = np.ones_like(began)
    # A row is pulled to values at large as if so much noise had been seen of them there.
    share = cleared.sum(axis=0) / cleared.sum()
    padded = sparse.csr_array(cleared + smoothing * scale * share)
    counts = Counts(began, padded, cleared.sum(axis=0) + began, max(int(began.sum()), 1))
    return MarkovChain(alphabet, 1, *smoothed_parts(counts, 1, smoothing, floor)), total


def without_negatives(noisy: Floats) -> Floats:
    """The nearest counts that are not negative and have the same sum; all 0 if that is below 0.

    Setting negative counts to 0 alone would add half of the noise to every cell that is empty.

    Examples:
        >>> without_negatives(np.array([10.0, -4.0, 2.0]))
        array([8., 0., 0.])
    """
    total = float(noisy.sum())
    if total <= 0:
        return np.zeros_like(noisy)
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, noisy.size + 1)
    last = int(np.flatnonzero(falling > excess)[-1])
    return np.asarray(np.maximum(noisy - excess[last], 0.0))
