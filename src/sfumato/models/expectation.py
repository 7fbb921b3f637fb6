"""What is expected of hidden values under a chain, given what outputs told about them.

The pass of EM over outputs that `learning` and other learners repeat. Over whole streams its sums
are of a fixed point, so that they are the same in any order and in any parts of the streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.fixed_sums import FixedSum
from sfumato.models.emissions import Emissions
from sfumato.models.markov import MarkovChain

CELLS = 4_000_000
"""Probabilities of a chain, told in contexts as long as an output: 32 MB."""


class Guess(NamedTuple):
    """A chain as the loops take it.

    Attributes:
        initial: Probability of each context to begin with.
        moves: Probability of each value after each context.
    """

    initial: Floats
    moves: Floats


class Expected(NamedTuple):
    """What is expected of hidden values, given what left.

    Attributes:
        starts: How often streams began with each context.
        moves: How often each value followed each context.
        scores: Log probability of the outputs of each stream.
        after: Weights of contexts at the end of each stream.
    """

    starts: Floats
    moves: Floats
    scores: Floats
    after: Floats


class Counted(NamedTuple):
    """What one pass over outputs finds, over all streams.

    Attributes:
        starts: How often streams began with each context.
        moves: How often each value followed each context.
        score: Log probability of all outputs.
    """

    starts: Floats
    moves: Floats
    score: float


class PassSums(NamedTuple):
    """What a pass over some streams finds; sums of parts are those of the whole, to the bit.

    Attributes:
        begun: How often streams began with each context, by how many of its values there are.
        followed: How often each value followed each context.
        score: Log probability of the outputs.
    """

    begun: FixedSum
    followed: FixedSum
    score: FixedSum

    @classmethod
    def added(cls, several: Sequence[PassSums]) -> PassSums:
        """Those of all parts."""
        return cls(*(FixedSum.added(own) for own in zip(*several, strict=True)))

    def counted(self, symbols: int, order: int) -> Counted:
        """Counts of a chain, from those of contexts that may be longer."""
        counts = _narrowed(self.begun.value(), self.followed.value(), symbols, order)
        return Counted(*counts, float(self.score.value()))


def even(symbols: int, order: int) -> Guess:
    """A chain about which nothing is known."""
    contexts = symbols**order
    return Guess(np.full(contexts, 1 / contexts), np.full((contexts, symbols), 1 / symbols))


def as_guess(chain: MarkovChain) -> Guess:
    """A chain as the loops take it."""
    return Guess(chain.initial.ravel(), np.array(chain.transition()))


def log_likelihoods(emissions: Emissions, chain: MarkovChain) -> Floats:
    """Log probability of the outputs of each stream, up to factors that are those of no chain."""
    return chain_scores(as_guess(chain), emissions)


def value_scores(guess: Guess, emissions: Emissions) -> Floats:
    """Log probability of each output given those of its stream before it, up to its own factor."""
    from sfumato.models import learning_loops

    wide, scores = _lifted(guess, emissions), np.empty(len(emissions))
    told = emissions.begins, emissions.reaches, emissions.told
    span = order_of(wide, emissions.symbols)
    learning_loops.step_scores(wide.moves, told, emissions.starts, wide.initial, span, scores)
    return _possible(scores)


def chain_scores(guess: Guess, emissions: Emissions) -> Floats:
    """The same of a chain as the loops take it."""
    from sfumato.models import learning_loops

    wide = _lifted(guess, emissions)
    scores = np.empty(emissions.streams)
    told = emissions.begins, emissions.reaches, emissions.told
    span = order_of(wide, emissions.symbols)
    learning_loops.log_likelihoods(wide.moves, told, emissions.starts, wide.initial, span, scores)
    return _possible(scores)


def expected(
    guess: Guess,
    emissions: Emissions,
    seen: Floats | Ints | None = None,
    before: Floats | None = None,
    shares: Floats | None = None,
) -> Expected:
    """What is expected of hidden values under a chain, given all outputs.

    Args:
        guess: The chain.
        emissions: What outputs told.
        seen: How many values of each stream came before these; none if not given.
        before: Weights of contexts at the end of those.
        shares: How much of each stream counts; all of it if not given.
    """
    from sfumato.models import learning_loops

    wide, count = _lifted(guess, emissions), emissions.streams
    contexts, symbols = wide.moves.shape
    span, order = order_of(wide, symbols), order_of(guess, symbols)
    after = np.repeat(wide.initial[None], count, axis=0) if before is None else np.array(before)
    past = np.zeros(count, dtype=np.int64) if seen is None else seen.astype(np.int64)
    begun, followed = np.zeros((span, contexts)), np.zeros((contexts, symbols))
    scores, told = np.empty(count), (emissions.begins, emissions.reaches, emissions.told)
    parts = np.ones(count) if shares is None else np.ascontiguousarray(shares)
    where = (wide.moves, told, emissions.starts, past, after, parts)
    learning_loops.expected_counts(*where, span, begun, followed, scores)
    starts, moves = _narrowed(begun, followed, symbols, order)
    return Expected(starts, moves, _possible(scores), after)


def pass_sums(guess: Guess, emissions: Emissions) -> PassSums:
    """What is expected of whole streams under a chain, in sums that can be added up in any order.

    Args:
        guess: The chain.
        emissions: What outputs told.
    """
    from sfumato.models import learning_loops

    wide = _lifted(guess, emissions)
    contexts, symbols = wide.moves.shape
    span = order_of(wide, symbols)
    begun, followed = FixedSum.zeros((span, contexts)), FixedSum.zeros((contexts, symbols))
    scores, told = (
        np.empty(emissions.streams),
        (emissions.begins, emissions.reaches, emissions.told),
    )
    where = (wide.moves, told, emissions.starts, wide.initial, span)
    learning_loops.fixed_counts(*where, begun.cells, followed.cells, scores)
    return PassSums(begun, followed, FixedSum.of(_possible(scores)))


def maximised(counts: Expected | Counted, smoothing: float, order: int) -> Guess:
    """The chain under which expected counts are most probable, smoothed."""
    starts, moves = counts.starts, counts.moves
    if order == 0:
        # One distribution for every value, the first one too.
        whole = starts + moves.sum(axis=0) + smoothing
        row = whole / whole.sum()
        return Guess(row, np.repeat(row[None], row.size, axis=0))
    pulled, begun = moves + smoothing, starts + smoothing
    seen = pulled.sum(axis=1, keepdims=True)
    rows = np.where(seen > 0, pulled / np.where(seen > 0, seen, 1.0), 1 / moves.shape[1])
    total = begun.sum()
    return Guess(begun / total if total > 0 else np.full_like(begun, 1 / begun.size), rows)


def _lifted(guess: Guess, emissions: Emissions) -> Guess:
    """The same chain in contexts at least as long as an output reaches."""
    return lifted(guess, emissions.span)


def lifted(guess: Guess, span: int) -> Guess:
    """The same chain in contexts of at least `span` values."""
    (contexts, symbols), joint = guess.moves.shape, guess.initial
    span = max(span, order_of(guess, symbols))
    if symbols ** (span + 1) > CELLS:
        rule = f"have at most {CELLS:,} combinations with the values before it"
        raise InvalidParameter("value", f"{symbols}^{span + 1}", rule)
    while joint.size < symbols**span:
        joint = (joint.reshape(-1, contexts)[:, :, None] * guess.moves).ravel()
    return Guess(joint, np.tile(guess.moves, (joint.size // contexts, 1)))


def _narrowed(begun: Floats, followed: Floats, symbols: int, order: int) -> tuple[Floats, Floats]:
    """Counts of starts and moves of a chain from those of contexts that are longer."""
    span, contexts = begun.shape
    moves = followed.reshape(-1, symbols**order, symbols).sum(axis=0)
    # Values within the first context follow each other too, where a stream has so many.
    for place in range(order, span):
        shape = (-1, symbols**order, symbols, symbols ** (span - place - 1))
        moves += begun[place:].sum(axis=0).reshape(shape).sum(axis=(0, 3))
    starts = begun.sum(axis=0).reshape(symbols**order, contexts // symbols**order)
    return starts.sum(axis=1), moves


def order_of(guess: Guess, symbols: int) -> int:
    """How many values a context of a chain has."""
    order, contexts = 1, symbols
    while contexts < guess.initial.size and symbols > 1:
        order, contexts = order + 1, contexts * symbols
    return order


def _possible(scores: Floats) -> Floats:
    if not np.isfinite(scores).all():
        rule = "be possible under some chain; nothing could be learnt"
        raise InvalidParameter("released", "another", rule)
    return scores
