r"""Learn a chain from what left: EM with emissions that are known and change from step to step.

Hidden values $x_1, x_2, \dots$ follow a chain; of each output only $\ell_t(x) = a_t(y_t \mid x)$ is
used, how likely each symbol was to make it under the channel that made it. One pass finds

$$N_{cx} = E[\#\{t : \text{context } c \text{ is followed by } x\} \mid y], \qquad
P(x \mid c) \leftarrow \frac{N_{cx} + s}{\sum_{x'} (N_{cx'} + s)}$$

where $N$ is `moves`, $s$ is `smoothing`, and likewise for how streams begin. A pass never lowers

$$\log P(y \mid \text{chain}) + s \sum_{c,x} \log P(x \mid c) + s \sum_c \log P(c)$$

which is what is maximised. Everything here is a function of what left: learning costs no privacy.

References: [Baum1970], [Varadhan2008]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.emissions import Emissions
from sfumato.models.fitting import start_weight
from sfumato.models.markov import MarkovChain

CELLS = 4_000_000
"""Probabilities of a chain, told in contexts as long as an output: 32 MB."""
SMOOTHING = 0.1
FLOOR = 1e-6
_SETTLED = 1e-4
"""Nats that three passes together may still gain when learning ends."""
_TINY = 1e-300
_STAYING = (0.0, 0.4, 0.8)
"""How much values may stay in the chains that learning may begin with."""


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


@dataclass(frozen=True, slots=True, eq=False)
class LearntChain:
    """A chain that was learnt, and how that went.

    Attributes:
        chain: The chain, with full support.
        order: 0 where values were taken for independent: then all rows of the chain are the same.
        guess: The same before starts were drawn towards the long run, and before the floor.
        log_likelihood: Log probability of the outputs under `chain`, up to their own factors.
        objective: What was maximised, after each pass.
        converged: Whether it had settled.
    """

    chain: MarkovChain
    order: int
    guess: Guess
    log_likelihood: float
    objective: tuple[float, ...]
    converged: bool


def learn_chain(
    emissions: Emissions,
    alphabet: Alphabet,
    *,
    order: int = 1,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    most: int = 500,
    progress: Progress | None = None,
) -> LearntChain:
    """The chain that makes what left most probable, smoothed.

    Args:
        emissions: What outputs told.
        alphabet: The symbols.
        order: How many past values the next one depends on; 0 for values that are independent.
        smoothing: Pseudo-counts of each value after each context.
        floor: Least probability of any transition, mixed in evenly at the end.
        most: Passes over the outputs after which learning ends all the same.
        progress: Called with the number of passes done so far.

    Examples:
        >>> near, far = np.array([0.9, 0.1]), np.array([0.1, 0.9])
        >>> stays = Emissions.of_rows([np.array([near] * 20 + [far] * 20)])
        >>> learn_chain(stays, Alphabet.of_size(2)).chain.transition().round(2)
        array([[0.95, 0.05],
               [0.01, 0.99]])
    """
    if len(alphabet) != emissions.symbols:
        raise InvalidParameter("alphabet", len(alphabet), f"have {emissions.symbols} symbols")
    checks.count("order", order, at_least=0)
    checks.positive("floor", floor)
    pseudo = checks.finite("smoothing", smoothing)
    search = _Search(emissions, order, pseudo, progress)
    guess, settled = search.run(_start(emissions, order), checks.count("most", most))
    chain = as_chain(guess, alphabet, emissions, floor)
    score = float(log_likelihoods(emissions, chain).sum())
    return LearntChain(chain, order, guess, score, tuple(search.told), settled)


def even(symbols: int, order: int) -> Guess:
    """A chain about which nothing is known."""
    contexts = symbols**order
    return Guess(np.full(contexts, 1 / contexts), np.full((contexts, symbols), 1 / symbols))


def _start(emissions: Emissions, order: int) -> Guess:
    """Where to begin: with even rows, or with values that stay, whatever outputs speak for most.

    Even rows alone are a place from which weak outputs lead nowhere for long.
    """
    plain = even(emissions.symbols, max(order, 1))
    if order == 0:
        return plain
    contexts, symbols = plain.moves.shape
    same = np.tile(np.eye(symbols), (contexts // symbols, 1))
    starts = [plain._replace(moves=(1 - stay) * plain.moves + stay * same) for stay in _STAYING]
    return max(starts, key=lambda start: float(chain_scores(start, emissions).sum()))


def as_chain(guess: Guess, alphabet: Alphabet, emissions: Emissions, floor: float) -> MarkovChain:
    """A chain with full support, whose beginning is drawn towards the long run as `fit` does."""
    shape = (len(alphabet),) * _order_of(guess, len(alphabet))
    chain = MarkovChain.from_matrix(guess.moves, guess.initial.reshape(shape), alphabet, floor)
    weight = start_weight(emissions.streams, len(emissions) / emissions.streams)
    mixed = weight * chain.initial + (1 - weight) * chain.stationary()
    return MarkovChain.from_matrix(guess.moves, mixed / mixed.sum(), alphabet, floor)


def log_likelihoods(emissions: Emissions, chain: MarkovChain) -> Floats:
    """Log probability of the outputs of each stream, up to factors that are those of no chain."""
    return chain_scores(Guess(chain.initial.ravel(), np.array(chain.transition())), emissions)


def value_scores(guess: Guess, emissions: Emissions) -> Floats:
    """Log probability of each output given those of its stream before it, up to its own factor."""
    from sfumato.models import learning_loops

    wide, scores = _lifted(guess, emissions), np.empty(len(emissions))
    told = emissions.begins, emissions.reaches, emissions.told
    span = _order_of(wide, emissions.symbols)
    learning_loops.step_scores(wide.moves, told, emissions.starts, wide.initial, span, scores)
    return _possible(scores)


def chain_scores(guess: Guess, emissions: Emissions) -> Floats:
    """The same of a chain as the loops take it."""
    from sfumato.models import learning_loops

    wide = _lifted(guess, emissions)
    scores = np.empty(emissions.streams)
    told = emissions.begins, emissions.reaches, emissions.told
    span = _order_of(wide, emissions.symbols)
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
    span, order = _order_of(wide, symbols), _order_of(guess, symbols)
    after = np.repeat(wide.initial[None], count, axis=0) if before is None else np.array(before)
    past = np.zeros(count, dtype=np.int64) if seen is None else seen.astype(np.int64)
    begun, followed = np.zeros((span, contexts)), np.zeros((contexts, symbols))
    scores, told = np.empty(count), (emissions.begins, emissions.reaches, emissions.told)
    parts = np.ones(count) if shares is None else np.ascontiguousarray(shares)
    where = (wide.moves, told, emissions.starts, past, after, parts)
    learning_loops.expected_counts(*where, span, begun, followed, scores)
    starts, moves = _narrowed(begun, followed, symbols, order)
    return Expected(starts, moves, _possible(scores), after)


def maximised(counts: Expected, smoothing: float, order: int) -> Guess:
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


class _Search:
    """Passes over the outputs, and what chains were worth."""

    def __init__(
        self, emissions: Emissions, order: int, smoothing: float, progress: Progress | None
    ) -> None:
        self._emissions, self._order, self._smoothing = emissions, order, smoothing
        self._progress, self._passes = progress, 0
        self.told: list[float] = []

    def run(self, guess: Guess, most: int) -> tuple[Guess, bool]:
        """Two passes, then a leap along them if that is no worse; until nothing is gained."""
        while self._passes < most:
            first, worth = self._passed(guess)
            self.told.append(worth)
            if len(self.told) > 1 and worth - self.told[-2] <= _SETTLED:
                return first, True
            second, least = self._passed(first)
            third, there = self._passed(_leap(guess, first, second))
            guess = third if there >= least else second
        return guess, False

    def _passed(self, guess: Guess) -> tuple[Guess, float]:
        """The chain after a pass, and what the one before it was worth."""
        counts = expected(guess, self._emissions)
        self._passes += 1
        if self._progress:
            self._progress(self._passes)
        worth = float(counts.scores.sum())
        if self._smoothing:
            rows = guess.moves if self._order else guess.initial
            known = portable.log(rows).sum() + bool(self._order) * portable.log(guess.initial).sum()
            worth += self._smoothing * float(known)
        return maximised(counts, self._smoothing, self._order), worth


def _leap(zeroth: Guess, first: Guess, second: Guess) -> Guess:
    """Further along the way of two passes, as far as they slowed down; in logarithms."""
    logs = [
        [portable.log(np.maximum(part, _TINY)) for part in one] for one in (zeroth, first, second)
    ]
    steps = [b - a for a, b in zip(logs[0], logs[1], strict=True)]
    bends = [c - b - step for b, c, step in zip(logs[1], logs[2], steps, strict=True)]
    length, bend = (sum(float((part * part).sum()) for part in parts) for parts in (steps, bends))
    if bend <= 0:
        return second
    far = max(float(np.sqrt(length / bend)), 1.0)
    found = [
        portable.exp(np.minimum(zero + 2 * far * step + far * far * turn, 0.0))
        for zero, step, turn in zip(logs[0], steps, bends, strict=True)
    ]
    initial, moves = (np.maximum(part, _TINY) for part in found)
    return Guess(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))


def _lifted(guess: Guess, emissions: Emissions) -> Guess:
    """The same chain in contexts at least as long as an output reaches."""
    return lifted(guess, emissions.span)


def lifted(guess: Guess, span: int) -> Guess:
    """The same chain in contexts of at least `span` values."""
    (contexts, symbols), joint = guess.moves.shape, guess.initial
    span = max(span, _order_of(guess, symbols))
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


def _order_of(guess: Guess, symbols: int) -> int:
    order, contexts = 1, symbols
    while contexts < guess.initial.size and symbols > 1:
        order, contexts = order + 1, contexts * symbols
    return order


def _possible(scores: Floats) -> Floats:
    if not np.isfinite(scores).all():
        rule = "be possible under some chain; nothing could be learnt"
        raise InvalidParameter("released", "another", rule)
    return scores
