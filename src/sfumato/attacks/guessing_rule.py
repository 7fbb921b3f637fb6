r"""Which of two sources an output came from: the best guess, or none.

A coin chooses source A or B, the source gives an output, and a rule says A, B or nothing. If the
release keeps $\epsilon$, no rule is right with more than $e^\epsilon / (1 + e^\epsilon)$ of its
guesses, whatever it guesses at. So the share of right guesses is a lower bound on $\epsilon$. A
rule abstains where an output says little: fewer guesses, but surer ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from sfumato.core.arrays import Floats, Ints

_CELLS = 4096
"""Combinations of codes that a rule tells apart."""
_DOUBT = 0.02
"""Failure probability of the bounds that rules are compared by."""
_JOINED = 4
"""Parts of an output that a rule looks at together."""


@dataclass(frozen=True, slots=True)
class Stakes:
    """What a rule is chosen for.

    Attributes:
        delta: Of the promise that is tested.
        failure: Probability with which the bound may say too much.
    """

    delta: float
    failure: float


@dataclass(frozen=True, slots=True, eq=False)
class GuessingRule:
    """What is guessed for each combination of codes.

    Attributes:
        columns: The parts that are looked at, and how many codes each has.
        guesses: 1 for source A, -1 for source B, 0 for no guess; one entry a combination.
        promise: The bound that is expected of it.
    """

    columns: tuple[tuple[int, int], ...]
    guesses: Ints
    promise: float

    def __call__(self, codes: Ints) -> Ints:
        """The guess for each row of codes."""
        return self.guesses[joined(codes, self.columns)]


def joined(codes: Ints, columns: tuple[tuple[int, int], ...]) -> Ints:
    """Several columns of codes as one."""
    whole = np.zeros(len(codes), dtype=np.int64)
    for column, size in columns:
        whole = whole * size + codes[:, column]
    return whole


def best_rule(a: Ints, b: Ints, sizes: tuple[int, ...], stakes: Stakes) -> GuessingRule:
    """The rule that promises the most, from codes of outputs of each source.

    Parts are joined one by one, as long as that promises more. How sure a guess must be is chosen
    on other outputs than those that say what to guess: else rare outputs would look sure.
    """
    best = GuessingRule((), np.zeros(1, dtype=np.int64), 0.0)
    for _ in range(_JOINED):
        cells = len(best.guesses)
        taken = {column for column, _ in best.columns}
        tried = [
            _rule(a, b, (*best.columns, (column, size)), stakes)
            for column, size in enumerate(sizes)
            if column not in taken and cells * size <= _CELLS
        ]
        better = max(tried, key=lambda rule: rule.promise, default=best)
        if better.promise <= best.promise:
            return best
        best = better
    return best


def _rule(a: Ints, b: Ints, columns: tuple[tuple[int, int], ...], stakes: Stakes) -> GuessingRule:
    size = int(np.prod([size for _, size in columns]))
    own, other = joined(a, columns), joined(b, columns)
    # Every second output says what to guess, the others how sure it must be.
    learnt, doubt = _log_ratios(_counts(own[::2], size), _counts(other[::2], size))
    seen = _counts(own[1::2], size), _counts(other[1::2], size)
    best, least, side = 0.0, np.inf, 0
    for direction in (0,) if stakes.delta == 0 else (1, -1):
        score = (np.abs(learnt) if direction == 0 else direction * learnt) - doubt
        order = np.argsort(-score, kind="stable")
        promises = _promises(seen, learnt, order, direction, stakes)
        # A threshold takes in all outputs of the same score.
        ends = np.append(np.diff(score[order]) < 0, True)
        promises = np.where(ends & (score[order] > 0), promises, 0.0)
        place = int(promises.argmax())
        if promises[place] > best:
            best, least, side = float(promises[place]), float(score[order[place]]), direction
    guesses = np.sign(learnt).astype(np.int64)
    guesses[(np.abs(learnt) if side == 0 else side * learnt) - doubt < least] = 0
    return GuessingRule(columns, guesses, best)


def _counts(codes: Ints, size: int) -> Floats:
    return np.bincount(codes, minlength=size).astype(np.float64)


def _log_ratios(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """How much likelier each code is from A, and its standard error.

    Half an output more is counted each, so that nothing is certain.
    """
    ratios = np.log((a + 0.5) / (a.sum() + 1.0)) - np.log((b + 0.5) / (b.sum() + 1.0))
    return ratios, np.sqrt(1 / (a + 0.5) + 1 / (b + 0.5))


def _promises(
    seen: tuple[Floats, Floats], learnt: Floats, order: Ints, direction: int, stakes: Stakes
) -> Floats:
    """The bound that is to be expected if the surest codes, up to each one, are guessed at.

    Not of as many outputs as will be tested, but of those that were seen: a few of them that look
    sure by chance would promise too much.
    """
    a, b = (counts / max(counts.sum(), 1.0) for counts in seen)
    each = min(counts.sum() for counts in seen)
    if direction == 0:
        right = np.cumsum(np.where(learnt > 0, a, b)[order]) * each
        wrong = np.cumsum(np.where(learnt > 0, b, a)[order]) * each
        # Before anything was seen there is nothing to be sure of.
        sure = special.betaincinv(np.maximum(right, 1e-9), wrong + 1.0, _DOUBT)
        return np.asarray(np.where(right > 0, special.logit(sure), 0.0))
    first, second = (a, b) if direction == 1 else (b, a)
    return _bound_of_shares(np.cumsum(first[order]), np.cumsum(second[order]), each, stakes)


def _bound_of_shares(hits: Floats, misses: Floats, n: float, stakes: Stakes) -> Floats:
    r"""The bound from the shares of outputs of each source that fall into an event.

    $$\log \frac{p - \delta}{q}$$

    where $p$ is at its lower confidence bound and $q$ at its upper one, each of which fails with
    half of the probability.
    """
    half = _DOUBT / 2
    least = special.betaincinv(np.maximum(hits * n, 1e-9), (1 - hits) * n + 1, half)
    most = special.betainccinv(misses * n + 1, np.maximum((1 - misses) * n, 1e-9), half)
    with np.errstate(divide="ignore"):
        bounds = np.log(np.maximum(least - stakes.delta, 0.0)) - np.log(most)
    return np.asarray(np.maximum(bounds, 0.0))
