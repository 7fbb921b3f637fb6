"""The channel of a batch: exact where its cells can be listed, on boxes of batches beyond."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter, SolverFailed
from sfumato.core.information_leakage import batch_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import Loss
from sfumato.models.markov import MarkovChain
from sfumato.solver.certify import certified, without_dust
from sfumato.solver.design_methods import Method
from sfumato.solver.design_result import measured
from sfumato.solver.grouped import Balance, balanced
from sfumato.solver.linear_programs import solve_capped
from sfumato.stream.partition.batch_loss import BatchLoss, Form, listed
from sfumato.stream.partition.boxes import Boxes
from sfumato.stream.partition.cells import StepDesign, solved
from sfumato.stream.partition.histograms import Histograms, histogram_count
from sfumato.stream.partition.patterns import Patterns

LISTED = 4096
"""Batches up to which each is a cell of its own."""
_BOXES, _MOST_BOXES, _CAPPED = 192, 1024, 32
"""Boxes for small and for large budgets, and where the model-free leakage is capped."""
_QUICK = 20_000
"""Contexts times values up to which a box is cheap, and twice as many are made."""
_OUTPUTS, _MOST_OUTPUTS = 48, 256
"""Released batches to choose from, for small and for large budgets."""
_ROUGH, _FINE = 0.02, 0.002
"""Relative gaps at which the first and the last solve stop."""
_NOTHING, _GENEROUS, _SOLVED = 1e-9, 8.0, 6.0
"""A budget below the first buys nothing; from a factor of the second the closed form is tried, and
beyond a budget of the third, where a solver would need thousands of outputs, nothing else."""
_UNUSED = 1e-6
"""Outputs of less probability are given up."""


def design_batch(
    chain: MarkovChain,
    belief: Belief,
    width: int,
    loss: BatchLoss,
    epsilon: float,
    *,
    ldp: float | None = None,
    method: Method = Method.OPTIMAL,
    recalled: int = 0,
    most: int = LISTED,
    boxes: int | None = None,
) -> StepDesign:
    """A certified channel for the next `width` values.

    Args:
        chain: How values follow each other.
        belief: Belief about the next value.
        width: Values of the batch.
        loss: What it costs to release one batch when another is true.
        epsilon: Budget for the leakage of the whole batch under the belief.
        ldp: Cap on its model-free leakage.
        method: How the channel is found, where batches are listed.
        recalled: Past values that the channel looks at, too.
        most: Batches up to which each is a cell of its own.
        boxes: How many boxes to make beyond that; more for larger budgets, if not given.

    Examples:
        >>> from sfumato.stream.partition.batch_loss import additive
        >>> from sfumato.core.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> found = design_batch(chain, chain.first(), 3, additive(hamming(chain.alphabet)), 1.5)
        >>> found.design.cost / 3, found.design.sip.epsilon <= 1.5
        (0.1607668, True)

    References:
        [SIP, Eq. 30]
    """
    check_design(chain.size, width, loss, method=method, recalled=recalled, most=most)
    if _by_histogram(loss, width, most) and method is Method.OPTIMAL and not recalled:
        assert loss.groups is not None
        histograms = Histograms(chain, belief, width, loss.groups)
        patterns = histograms.patterns()
        return solved(histograms, patterns, loss.between(patterns), method, epsilon, ldp)
    if chain.size ** (recalled + width) <= most:
        seen = listed(chain.size, recalled + width)[:, recalled:]
        cells = Patterns(chain, belief, width, recalled)
        found = solved(cells, seen, loss.between(seen), method, epsilon, ldp)
        return _without_recalled(found, listed(chain.size, width)) if recalled else found
    assert loss.each is not None
    return _on_boxes(chain, belief, width, loss.each, epsilon, ldp, boxes)


def _without_recalled(found: StepDesign, patterns: Ints) -> StepDesign:
    """Outputs that differ in what is recalled alone are one batch to everybody."""
    channel = found.design.channel
    channel = channel.merged((channel.outputs % len(patterns)).tolist())
    sip, ldp = batch_leakage(channel, found.partition.masses), local_leakage(channel)
    merged = replace(found.design, channel=channel, sip=sip, ldp=ldp)
    return replace(found, design=merged, patterns=patterns)


def check_design(
    size: int, width: int, loss: BatchLoss, *, method: Method, recalled: int, most: int
) -> None:
    """Refuse batches that can neither be listed nor be put into boxes or histograms."""
    if size ** (recalled + width) <= most:
        return
    few = _by_histogram(loss, width, most) or loss.form is Form.ADDITIVE
    if recalled or method is not Method.OPTIMAL or not few:
        what = "a loss that adds up over positions (or few histograms), 'optimal' and memory 1"
        rule = f"give at most {most} batches ({size}**width) without {what}"
        raise InvalidParameter("the length of a batch", width, rule)


def _by_histogram(loss: BatchLoss, width: int, most: int) -> bool:
    """Whether histograms are all that counts, and can be listed."""
    return loss.groups is not None and histogram_count(int(loss.groups.max()) + 1, width) <= most


def _on_boxes(
    chain: MarkovChain,
    belief: Belief,
    width: int,
    each: Loss,
    epsilon: float,
    ldp: float | None,
    count: int | None,
) -> StepDesign:
    # A model-free leakage of twice the budget holds anyway.
    active = ldp if ldp is not None and ldp < 2 * epsilon else None
    k = portable.exp(min(epsilon, 10.0))
    least = _BOXES if belief.joint.size * width > _QUICK else 2 * _BOXES
    most = _MOST_BOXES if epsilon > _SOLVED else _MOST_BOXES // 2
    wanted = count or int(np.clip(8 * k, least, most))
    boxes = Boxes(chain, belief, width, each, wanted if active is None else min(wanted, _CAPPED))
    outputs = int(np.clip(3 * k, _OUTPUTS, _MOST_OUTPUTS))
    told = np.unique(boxes.typical()[:outputs], axis=0)
    if min(epsilon, epsilon if ldp is None else ldp) < _NOTHING:
        return _finished(boxes, np.ones((len(boxes.masses), 1)), told[:1], epsilon, ldp)
    if epsilon > _SOLVED and active is None:
        return _finished(boxes, *_closed_form(boxes, epsilon), epsilon, ldp)
    for _ in range(2):
        rows = _solve(boxes, told, epsilon, active, _ROUGH)
        used = portable.dot(boxes.masses, rows) > _UNUSED
        told = np.unique(np.concatenate([told[used], _best(boxes, rows[:, used])]), axis=0)
    rows = _solve(boxes, told, epsilon, active, _FINE)
    found = _finished(boxes, rows, told, epsilon, ldp)
    if k <= _GENEROUS or active is not None:
        return found
    other = _finished(boxes, *_closed_form(boxes, epsilon), epsilon, ldp)
    return min(found, other, key=lambda one: one.design.cost)


def _closed_form(boxes: Boxes, epsilon: float) -> tuple[Floats, Ints]:
    """Where every group has the mass 1/(k+1), the best channel keeps it or forgets it.

    A large budget allows more groups than a solver likes; this needs none.
    """
    k = portable.exp(epsilon)
    groups, told = boxes.grouped(1 / (k + 1))
    mass = np.bincount(groups, boxes.masses / boxes.masses.sum())
    kept = np.tile(mass / k, (mass.size, 1)) + (1 - 1 / k) * np.eye(mass.size)
    return kept[groups], told


def _losses(boxes: Boxes, told: Ints) -> Floats:
    """Mean loss of each box for each released batch."""
    places = np.arange(told.shape[1])
    total = boxes.costs[:, places[None, :], told].sum(axis=2)
    return np.asarray(total / boxes.masses[:, None])


def _solve(boxes: Boxes, told: Ints, epsilon: float, ldp: float | None, tolerance: float) -> Floats:
    share, losses = boxes.masses / boxes.masses.sum(), _losses(boxes, told)
    if ldp is None:
        solved: Balance = balanced(share, losses, epsilon, tolerance)
        return solved.rows
    try:
        return solve_capped(share, losses, epsilon, ldp).rows
    except SolverFailed:
        # Extreme caps are too much for the solver; mixing brings any channel under them.
        return balanced(share, losses, min(epsilon, ldp), tolerance).rows


def _best(boxes: Boxes, rows: Floats) -> Ints:
    """For each output, the batch that is the best guess after it."""
    costs = boxes.costs
    found = portable.dot(rows.T, costs.reshape(len(costs), -1))
    return np.asarray(found.reshape(-1, *costs.shape[1:]).argmin(axis=2))


def _finished(
    boxes: Boxes, rows: Floats, told: Ints, epsilon: float, ldp: float | None
) -> StepDesign:
    share = boxes.masses / boxes.masses.sum()
    merged, kept = without_dust(rows, share, _losses(boxes, told), np.arange(len(told)))
    channel = certified(merged, boxes.masses, epsilon, ldp=ldp, outputs=kept)
    # The best guess after each output is released in its stead: that tells nothing more.
    guesses = _best(boxes, channel.probabilities)
    patterns, names = np.unique(guesses, axis=0, return_inverse=True)
    channel = channel.merged(names.ravel().tolist())
    released = np.take_along_axis(boxes.symbols, patterns.T, axis=1).T
    found = measured(channel, boxes.masses, _losses(boxes, patterns))
    return StepDesign(boxes, found, released, exact=False)
