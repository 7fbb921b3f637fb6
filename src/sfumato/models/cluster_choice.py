"""How many kinds of people there are: the number of chains that predicts streams held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.cluster_fitting import fit_clusters, stream_scores
from sfumato.models.order_choice import HeldOut
from sfumato.models.stream_counts import StreamCounts

TRIED = (1, 2, 3, 4, 6, 8, 12, 16)
"""Numbers of clusters that are tried, in turn, until more of them gain nothing."""
_FOLDS = 3
"""Every stream is held out once, by a fit to the other two thirds."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterChoice:
    """How well mixtures that were fitted to other streams predict each stream.

    Attributes:
        scores: For each number of clusters that was tried, the log probability of each stream.
        lengths: How many values each stream has.
    """

    scores: dict[int, Floats]
    lengths: Floats

    @property
    def clusters(self) -> int:
        """The number to take: the first that no larger one beats by two standard errors."""
        chosen, *others = sorted(self.scores)
        for number in others:
            gain, error = self.gain(number, chosen)
            chosen = number if gain > 2 * error else chosen
        return chosen

    def gain(self, clusters: int, others: int = 1) -> tuple[float, float]:
        """Nats that a value gains on average over fewer clusters, and the standard error."""
        apart = HeldOut(self.scores, self.lengths, self.scores[others])
        return apart.gain(self.scores[clusters], self.scores[others])


def choose_clusters(
    alphabet: Alphabet,
    paths: Sequence[Ints],
    tried: Sequence[int] = TRIED,
    *,
    smoothing: float = 0.5,
    floor: float = 1e-6,
    progress: Progress | None = None,
) -> ClusterChoice:
    """Hold every stream out once, and ask mixtures of several sizes how probable it is.

    Numbers are tried in rising order; after one that gains less than two standard errors over the
    best so far, none is tried that is larger.

    Args:
        alphabet: The symbols.
        paths: Places of the symbols of each stream, none empty.
        tried: Numbers of clusters, 1 among them.
        smoothing: As in `fit_clusters`.
        floor: As in `fit_clusters`.
        progress: Called with the number of fits done so far.

    Examples:
        >>> stay, move = [np.zeros(9, np.int64), np.ones(9, np.int64)], [np.arange(9) % 2] * 2
        >>> choose_clusters(Alphabet.of_size(2), (stay + move) * 6).clusters
        2
    """
    most, asked = len(paths) // _FOLDS, sorted(tried)
    if asked[min(1, len(asked) - 1)] > most:
        rule = (
            f"be at most a third of the number of streams, which is {len(paths)}: every third one "
            "is held out; with so few, fit one chain (without clusters)"
        )
        raise InvalidParameter("clusters", asked[min(1, len(asked) - 1)], rule)
    choice, done = ClusterChoice({}, np.array([len(path) for path in paths], dtype=np.float64)), 0
    folds = np.arange(len(paths)) % _FOLDS
    for number in (number for number in asked if number <= most):
        scores = np.empty(len(paths))
        for fold in range(_FOLDS):
            seen = [path for path, own in zip(paths, folds, strict=True) if own != fold]
            apart = [path for path, own in zip(paths, folds, strict=True) if own == fold]
            found = fit_clusters(alphabet, seen, number, smoothing=smoothing, floor=floor)
            scores[folds == fold] = stream_scores(
                found.chain, StreamCounts.of(apart, len(alphabet))
            )
            done += 1
            if progress:
                progress(done)
        choice.scores[number] = scores
        if number > 1 and choice.clusters != number:
            break
    return choice
