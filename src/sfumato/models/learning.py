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

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, as_guess, even, maximised, order_of
from sfumato.models.fitting import start_weight
from sfumato.models.markov import MarkovChain
from sfumato.models.output_sums import OutputSums, sums_of

SMOOTHING = 0.1
FLOOR = 1e-6
_SETTLED = 1e-4
"""Nats that three passes together may still gain when learning ends."""
_TINY = 1e-300
_STAYING = (0.0, 0.4, 0.8)
"""How much values may stay in the chains that learning may begin with."""


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
    outputs: Emissions | OutputSums,
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
        outputs: What they told; or sums over it, wherever it lies.
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
    sums = sums_of(outputs)
    if len(alphabet) != sums.symbols:
        raise InvalidParameter("alphabet", len(alphabet), f"have {sums.symbols} symbols")
    checks.count("order", order, at_least=0)
    checks.positive("floor", floor)
    pseudo = checks.finite("smoothing", smoothing)
    search = _Search(sums, order, pseudo, progress)
    guess, settled = search.run(_start(sums, order), checks.count("most", most))
    chain = as_chain(guess, alphabet, sums.streams, sums.values, floor)
    score = sums.score(as_guess(chain))
    return LearntChain(chain, order, guess, score, tuple(search.told), settled)


def _start(sums: OutputSums, order: int) -> Guess:
    """Where to begin: with even rows, or with values that stay, whatever outputs speak for most.

    Even rows alone are a place from which weak outputs lead nowhere for long.
    """
    plain = even(sums.symbols, max(order, 1))
    if order == 0:
        return plain
    contexts, symbols = plain.moves.shape
    same = np.tile(np.eye(symbols), (contexts // symbols, 1))
    starts = [plain._replace(moves=(1 - stay) * plain.moves + stay * same) for stay in _STAYING]
    return max(starts, key=sums.score)


def as_chain(
    guess: Guess, alphabet: Alphabet, streams: int, values: int, floor: float
) -> MarkovChain:
    """A chain with full support, whose beginning is drawn towards the long run as `fit` does."""
    shape = (len(alphabet),) * order_of(guess, len(alphabet))
    chain = MarkovChain.from_matrix(guess.moves, guess.initial.reshape(shape), alphabet, floor)
    weight = start_weight(streams, values / streams)
    mixed = weight * chain.initial + (1 - weight) * chain.stationary()
    return MarkovChain.from_matrix(guess.moves, mixed / mixed.sum(), alphabet, floor)


class _Search:
    """Passes over the outputs, and what chains were worth."""

    def __init__(
        self, sums: OutputSums, order: int, smoothing: float, progress: Progress | None
    ) -> None:
        self._sums, self._order, self._smoothing = sums, order, smoothing
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
        counts = self._sums.passed(guess)
        self._passes += 1
        if self._progress:
            self._progress(self._passes)
        worth = counts.score
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
