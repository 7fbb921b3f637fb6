r"""Releases of grades: what each mechanism loses on people it was not made from, and leaks.

All losses are the mean distance, in classes, between a true and a released grade, exact given the
truth. The leakage of every mechanism is computed under the same priors, those of an adversary who
predicts from all that is known of a student (`local`): so curves with different promises have one
unit. Beside the paper's mechanisms: silence, with and without looking at a student's features; the
best channel that an LDP budget allows under the local prior; k-ary response tuned to the same
leakage; and best guesses of the receiver, which are free.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.checks import MAX_EPSILON
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import Loss, Measure
from sfumato.core.randomness import Randomness
from sfumato.models.prior_sets import PriorList
from sfumato.noise.frequency import UnaryEncoding
from sfumato.solver.bounded_prior_channel import bounded_prior
from sfumato.solver.closed_form import paper_response, randomized_response
from sfumato.solver.optimal_channel import optimal
from sfumato.studies.lip.grade_knowledge import Knowledge

LOCAL, GLOBAL, BOUNDED = "LIP, local prior", "LIP, global prior", "LIP, bounded priors"
RESPONSE, TWICE = "k-RR, ε-LDP", "k-RR, 2ε-LDP"
BEST_LOCAL, BEST_TWICE = "best channel, ε-LDP", "best channel, 2ε-LDP"
TUNED, PUBLISHED = "k-RR tuned, best guess", "Eq. 19, local prior"
UNARY, UNARY_GUESSED = "OUE, one of its bits", "OUE, best guess"
RESPONSE_GUESSED = "k-RR, ε-LDP, best guess"
SILENCE, KNOWING_SILENCE = "silence", "silence, from features"
LEVELS = 9
"""Levels of a response that is tuned, between epsilon and twice that."""
DRAWS = 40
"""Reports of unary encoding that are drawn for each person."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One mechanism at one budget, over the people of one split.

    Attributes:
        loss: Mean distance between true and released classes.
        lip: Largest leakage under any person's local prior; NaN where it is not computed.
        ldp: Largest leakage whatever the prior.
    """

    loss: float
    lip: float
    ldp: float


Rule = Callable[[Knowledge, Loss, float, int], Channel]
"""Makes the channel of one person: all that is known, the loss, the budget, which person."""


def _own(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return optimal(known.local[person], loss, epsilon).channel


def _common(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return optimal(known.overall, loss, epsilon).channel


def _bounded(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return bounded_prior(PriorList(known.several[:, person]), loss, epsilon).channel


def _published(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return paper_response(known.local[person], loss, epsilon).channel


def _tuned(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    """The level of response with which the best guess is best within the leakage allowed."""
    prior = known.local[person]
    best, least = Channel.constant(known.size, int(medians(prior[None, :])[0])), math.inf
    for level in np.linspace(epsilon, 2 * epsilon, LEVELS).tolist():
        tried = guessed(randomized_response(prior, loss, level).channel, prior, loss)
        cost = tried.expected_loss(prior, loss)
        if cost < least and information_leakage(tried, prior).epsilon <= epsilon:
            best, least = tried, cost
    return best


def _response(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return randomized_response(known.overall, loss, epsilon).channel


def _response_guessed(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return guessed(_response(known, loss, epsilon, person), known.overall, loss)


def _twice(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return _response(known, loss, 2 * epsilon, person)


def _best_local(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    # Without a budget under the prior: what is left is the model-free one.
    return optimal(known.local[person], loss, min(2 * epsilon, MAX_EPSILON), ldp=epsilon).channel


def _best_twice(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return _best_local(known, loss, 2 * epsilon, person)


def _unary(known: Knowledge, loss: Loss, epsilon: float, person: int) -> Channel:
    return one_bit(known.size, epsilon)


RULES: dict[str, Rule] = {
    LOCAL: _own,
    GLOBAL: _common,
    BOUNDED: _bounded,
    RESPONSE: _response,
    TWICE: _twice,
    RESPONSE_GUESSED: _response_guessed,
    UNARY: _unary,
    BEST_LOCAL: _best_local,
    BEST_TWICE: _best_twice,
    TUNED: _tuned,
    PUBLISHED: _published,
}
SAME_FOR_ALL = frozenset({GLOBAL, RESPONSE, TWICE, RESPONSE_GUESSED, UNARY})
"""Rules whose channel does not depend on the person."""


def measured(known: Knowledge, name: str, epsilon: float) -> Measured:
    """What a mechanism loses on the true classes of all people, and leaks."""
    loss = Loss.between(Measure.ABSOLUTE, np.arange(known.size, dtype=np.float64)[:, None])
    losses, leakages, locals_ = [], [], []
    channel: Channel | None = None
    for person, true in enumerate(known.truth.tolist()):
        if channel is None or name not in SAME_FOR_ALL:
            channel = RULES[name](known, loss, epsilon, person)
            locals_.append(local_leakage(channel).epsilon)
        distances = np.abs(channel.outputs - true)
        losses.append(float((channel.probabilities[true] * distances).sum()))
        leakages.append(information_leakage(channel, known.local[person]).epsilon)
    return Measured(float(np.mean(losses)), max(leakages), max(locals_))


def unary_guessed(known: Knowledge, epsilon: float, randomness: Randomness) -> Measured:
    """Unary encoding, and the best guess from its report under the global prior; drawn."""
    encoding = UnaryEncoding.at(known.size, epsilon)
    truth = np.repeat(known.truth, DRAWS)
    bits = encoding.report(truth, randomness)
    wrong = encoding.shown[1]
    # A report of the true symbol is as likely as any; others differ by these factors.
    weights = known.overall * np.where(bits, 1 / wrong, 1 / (1 - wrong))
    return Measured(float(np.abs(medians(weights) - truth).mean()), math.nan, epsilon)


def silences(known: Knowledge) -> Iterator[tuple[str, Measured]]:
    """Nothing is released: one guess for all, or one for each from his features."""
    for name, guesses in (
        (SILENCE, np.repeat(medians(known.overall[None, :]), len(known.truth))),
        (KNOWING_SILENCE, medians(known.local)),
    ):
        yield name, Measured(float(np.abs(guesses - known.truth).mean()), 0.0, 0.0)


def guessed(channel: Channel, prior: Floats, loss: Loss) -> Channel:
    """The channel followed by the receiver's best guess under a prior."""
    posterior = prior[:, None] * channel.probabilities
    guesses = (posterior.T @ loss.matrix).argmin(axis=1)
    # Written out: a response channel is kept as its diagonal alone.
    plain = Channel(channel.weights, np.arange(channel.weights.shape[1]))
    return plain.merged(guesses.tolist())


def one_bit(size: int, epsilon: float) -> Channel:
    """Unary encoding of which one of the bits that are set is told, or any symbol if none is.

    A function of the report, so within the same model-free budget: no symmetric one tells the
    truth more often than k-ary response does.

    Examples:
        >>> one_bit(3, 1.0).probabilities.round(3)
        array([[0.467, 0.267, 0.267],
               [0.267, 0.467, 0.267],
               [0.267, 0.267, 0.467]])
    """
    wrong = UnaryEncoding.at(size, epsilon).shown[1]
    others = np.arange(size)
    chances = stats.binom.pmf(others, size - 1, wrong)
    kept = 0.5 * float((chances / (others + 1)).sum()) + 0.5 * float(chances[0]) / size
    rows = np.full((size, size), (1 - kept) / (size - 1))
    np.fill_diagonal(rows, kept)
    return Channel.from_probabilities(rows)


def medians(weights: Floats) -> Ints:
    """The place of the median of each row of weights."""
    sums = weights.cumsum(axis=1)
    return np.asarray((sums < 0.5 * sums[:, -1:]).sum(axis=1))
