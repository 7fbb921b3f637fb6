"""Post-processing is free: let the receiver guess best from what he was told.

On small alphabets the guess is the best of all symbols. Beyond that it is found without the
matrix of the loss: in closed form where every error costs the same, or a squared distance; exactly
for randomised response; and else by descent from symbol to symbol, as a mean distance is
convex. The cost of the guess is exact in every case.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.loss import Loss, Measure, as_loss
from sfumato.core.response_channel import ResponseChannel
from sfumato.solver.design_result import Design, measured

if TYPE_CHECKING:
    from scipy.spatial import KDTree

_AROUND = 32
"""Nearest symbols that a descent looks at from where it stands."""
_BLOCK = 256
"""Rows of a loss that are computed together."""


def remapped(design: Design, belief: ArrayLike, loss: Loss | ArrayLike) -> Design:
    """The same channel followed by the best guess of the truth from each output.

    Examples:
        >>> from sfumato.solver.closed_form import randomized_response
        >>> noisy = randomized_response([0.9, 0.1], [[0, 1], [1, 0]], epsilon=1.0)
        >>> round(noisy.cost, 3), round(remapped(noisy, [0.9, 0.1], [[0, 1], [1, 0]]).cost, 3)
        (0.269, 0.1)
    """
    prior = checks.belief("belief", belief)
    return Guesser(as_loss(loss, prior.size)).remapped(design, prior)


class Guesser:
    """Best guesses under one loss; what they need to know of it is computed once.

    Args:
        loss: What a guess costs.
    """

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    @cached_property
    def _tree(self) -> KDTree:
        """The places of the symbols, ready to be searched."""
        from scipy.spatial import KDTree

        return KDTree(self._loss.places)

    def remapped(self, design: Design, belief: ArrayLike) -> Design:
        """The same channel followed by the best guess of the truth from each output."""
        prior = checks.belief("belief", belief)
        if isinstance(design.channel, ResponseChannel):
            guesses = self._after_response(design.channel, prior)
        else:
            guesses = self._after_rows(design.channel, prior)
        merged = design.channel.merged(guesses.tolist())
        return measured(merged, prior, self._loss, design.lower_bound)

    def _after_rows(self, channel: Channel, prior: Floats) -> Ints:
        """The best guess after each output of a channel with few of them."""
        return self.best(prior[:, None] * channel.probabilities, channel.outputs)

    def best(self, posterior: Floats, begin: Ints) -> Ints:
        """The best guess under each of some distributions.

        Args:
            posterior: One column for each, up to a factor.
            begin: Symbols that a search may begin at, one for each.
        """
        loss = self._loss
        if loss.storable:
            return np.asarray((portable.dot(posterior.T, loss.matrix)).argmin(axis=1))
        if loss.all_alike:
            return np.asarray(posterior.argmax(axis=0))
        assert loss.places is not None
        means = portable.dot(posterior.T, loss.places) / posterior.sum(axis=0)[:, None]
        if loss.measure is Measure.SQUARED:
            return self._nearest(means)
        return self._descended(posterior, loss.places, begin, self._nearest(means))

    def _nearest(self, points: Floats) -> Ints:
        """The symbol nearest to each point: for squared distances, of a mean, the best guess."""
        return np.asarray(self._tree.query(points)[1], dtype=np.int64)

    def _descended(self, posterior: Floats, places: Floats, begin: Ints, middle: Ints) -> Ints:
        """From the better of an output and the posterior mean, step by step to neighbours."""
        guesses, tried = begin, np.unique(np.concatenate([begin, middle]))
        while True:
            costs = portable.dot(posterior.T, self._loss.columns(tried))
            better = tried[costs.argmin(axis=1)]
            if (better == guesses).all():
                return guesses
            guesses = better
            around = self._tree.query(places[guesses], k=_AROUND)[1]
            # The neighbours of one guess may suit another output too; those tried stay in.
            tried = np.unique(np.concatenate([guesses, np.asarray(around).ravel()]))

    def _after_response(self, channel: ResponseChannel, prior: Floats) -> Ints:
        r"""The best guess after each output of a response.

        After output $y$ a guess $z$ loses $s(y) M(z) + e \sum_{t(x) = y} b(x) D(x, z)$, with $M$
        the mean loss of a constant. Let $z^*$ be the best constant. Distances obey the triangle
        inequality, so where $e\,q(y) \le s(y) \min_z (M(z) - M(z^*)) / D(z, z^*)$, with $q(y)$
        the mass that $y$ stands for, $z^*$ stays the best guess; rows are looked at for the others.
        """
        loss, (shared, extra, target) = self._loss, channel.parts()
        if loss.measure is Measure.SQUARED and not loss.storable:
            return self._nearest(_means_after_response(channel, prior, loss))
        means = loss.means(prior)
        best = int(means.argmin())
        guesses = np.full(shared.size, best)
        stood = extra * np.bincount(target, prior, minlength=shared.size)
        moved = np.flatnonzero(stood > shared * _least_slope(means, best, loss))
        place = np.full(shared.size, -1)
        place[moved] = np.arange(moved.size)
        standing = np.flatnonzero(place[target] >= 0)
        standing = standing[np.argsort(place[target[standing]], kind="stable")]
        groups = place[target[standing]]
        for start in range(0, moved.size, _BLOCK):
            end = min(start + _BLOCK, moved.size)
            own = slice(*np.searchsorted(groups, [start, end]))
            costs = np.outer(shared[moved[start:end]], means)
            rows = extra * prior[standing[own], None] * loss.rows(standing[own])
            np.add.at(costs, groups[own] - start, rows)
            guesses[moved[start:end]] = costs.argmin(axis=1)
        return guesses


def _least_slope(means: Floats, best: int, loss: Loss) -> float:
    """How fast the mean loss grows at least with the distance from the best constant."""
    if loss.measure in (None, Measure.SQUARED):
        return 0.0  # a table need not obey the triangle inequality: every row is looked at
    far = loss.columns([best])[:, 0]
    apart = far > 0
    return float(((means - means[best])[apart] / far[apart]).min()) if apart.any() else 0.0


def _means_after_response(channel: ResponseChannel, prior: Floats, loss: Loss) -> Floats:
    """The posterior mean place after each output."""
    shared, extra, target = channel.parts()
    assert loss.places is not None
    weight = shared * prior.sum() + extra * np.bincount(target, prior, minlength=shared.size)
    means = np.outer(shared, portable.dot(prior, loss.places))
    for axis in range(loss.places.shape[1]):
        own = np.bincount(target, prior * loss.places[:, axis], minlength=shared.size)
        means[:, axis] += extra * own
    return np.asarray(means / weight[:, None])
