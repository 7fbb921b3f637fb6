r"""A mixture of chains from recorded streams, by EM over whole streams.

A stream is known by its first value and by how often it made each move. With the parts
$r_{mk} \propto w_k P_k(\text{stream } m)$, one pass is

$$P_k(j \mid i) \propto \sum_m r_{mk} c_{mij} + d_i (\tau P(j \mid i) + s u(j)), \qquad
w_k = \frac{\sum_m r_{mk} + 1}{M + K}$$

where $c_{mij}$ counts the moves of stream $m$, $P$ is the chain of all streams together (`common`)
with its smoothing $s$ and background $u$, $d_i$ is how many followers $i$ has in it, and $\tau$ is
`pull`: where a cluster was seen little, it does what everybody does, and one cluster alone is the
common chain. First values likewise. A pass never lowers the log probability of all streams plus
that of the prior which these pseudo-counts are.

References: [Cadez2003]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.clustered_chain import CHANGE, ClusteredChain
from sfumato.models.first_groups import first_groups
from sfumato.models.fitting import count_transitions, smoothed_parts, start_weight
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_counts import StreamCounts

_PASSES, _SETTLED = 300, 1e-6
"""Passes at most, and nats a stream that one may gain and be the last."""


@dataclass(frozen=True, slots=True, eq=False)
class FittedClusters:
    """A mixture that was fitted, and how that went.

    Attributes:
        chain: The mixture; clusters in order of their shares, the largest first.
        common: The chain of all streams together.
        parts: How probably each stream is of each cluster, one row per stream.
        objective: What was maximised, after each pass of the best start.
    """

    chain: ClusteredChain
    common: MarkovChain
    parts: Floats
    objective: tuple[float, ...]


def fit_clusters(
    alphabet: Alphabet,
    paths: Sequence[Ints],
    clusters: int,
    *,
    smoothing: float = 0.5,
    floor: float = 1e-6,
    pull: float = 1.0,
    change: float = CHANGE,
    progress: Progress | None = None,
) -> FittedClusters:
    """Fit a mixture of chains with full support to recorded streams.

    Args:
        alphabet: The symbols.
        paths: Places of the symbols of each stream, none empty.
        clusters: How many chains.
        smoothing: Of the common chain, as in `MarkovChain.fit`.
        floor: Least probability of any transition.
        pull: Pseudo-counts of the common chain in each row of a cluster, per follower.
        change: Probability that a stream changes its cluster at a step.
        progress: Called with the number of passes done so far.

    Examples:
        >>> stay, move = [np.zeros(9, np.int64), np.ones(9, np.int64)], [np.arange(9) % 2] * 2
        >>> found = fit_clusters(Alphabet.of_size(2), stay * 5 + move * 5, 2, pull=0.1)
        >>> found.chain.shares, [bool(chain.row(0)[0] > 0.9) for chain in found.chain.chains]
        (array([0.5, 0.5]), [False, True])
    """
    told = StreamCounts.of(paths, len(alphabet))
    counts = count_transitions(paths, told.size, 1)
    common = MarkovChain(alphabet, 1, *smoothed_parts(counts, 1, smoothing, floor))
    if checks.count("clusters", clusters) > told.streams:
        raise InvalidParameter("clusters", clusters, f"be at most the {told.streams} streams")
    pulls = checks.positive("pull", pull), smoothing
    search = _Search(told, common, clusters, pulls, progress)
    ends = [search.run(parts) for parts in search.beginnings()]
    best = max(range(len(ends)), key=lambda place: ends[place][1][-1])
    parts, objective = ends[best]
    parts = parts[:, np.argsort(-parts.sum(axis=0), kind="stable")]
    chains = tuple(search.chain(parts[:, cluster], floor) for cluster in range(clusters))
    shares = search.maximised(parts).shares
    return FittedClusters(ClusteredChain(shares, chains, change), common, parts, tuple(objective))


@dataclass(frozen=True, slots=True, eq=False)
class _Guess:
    """A mixture at the moves that occur, and how often each value is left: one row per cluster."""

    shares: Floats
    first: Floats
    moves: Floats
    left: Floats


class _Search:
    """Passes over the streams, and what mixtures were worth."""

    def __init__(
        self,
        told: StreamCounts,
        common: MarkovChain,
        clusters: int,
        pulls: tuple[float, float],
        progress: Progress | None,
    ) -> None:
        self._told, self._common, self._clusters, self._pull = told, common, clusters, pulls
        self._progress, self._passes = progress, 0
        sources, followers = np.divmod(told.pairs, told.size)
        self._sources = sources
        pull, smoothing = pulls
        self._followers = np.bincount(sources, minlength=told.size).astype(np.float64)
        self._pulls = (pull + smoothing) * self._followers
        each = pull * _entries(common, sources, followers)
        # Pseudo-counts of each move that occurs; the others have theirs, and nobody made them.
        self._extra = self._followers[sources] * (each + smoothing * common.background[followers])
        spent = np.bincount(sources, self._extra, minlength=told.size)
        self._others = np.maximum(self._pulls - spent, 0.0)
        self._start_pull = pull * float(np.unique(told.begins).size)

    def beginnings(self) -> list[Floats]:
        """Streams in groups: by what they show, by how they move, and by draws of both."""
        told = self._told
        if self._clusters == 1:
            return [np.ones((told.streams, 1))]
        shown, stays = told.shown, told.stays[:, None]
        looks = [shown, np.hstack([shown, stays]), stays]
        # Streams of one kind may show the same symbols: the last groups are drawn.
        found = [self._grouped(look, seed) for seed, look in enumerate(looks)]
        drawn = np.random.RandomState(len(looks)).uniform(size=(told.streams, self._clusters))
        return [*found, drawn / drawn.sum(axis=1, keepdims=True)]

    def _grouped(self, looks: Floats, seed: int) -> Floats:
        coins = np.random.RandomState(seed)
        groups = first_groups(np.ascontiguousarray(looks), self._clusters, coins)
        # Not quite sure of the groups: a cluster that got none can still be found.
        return 0.9 * np.eye(self._clusters)[groups] + 0.1 / self._clusters

    def run(self, parts: Floats) -> tuple[Floats, list[float]]:
        """Passes until nothing is gained: the last parts, and what was maximised."""
        worths: list[float] = []
        for _ in range(_PASSES):
            guess = self.maximised(parts)
            parts, scores = shared(self._told, guess.shares, guess.first, guess.moves)
            worths.append(float(scores.sum()) + self._prior(guess))
            self._passes += 1
            if self._progress:
                self._progress(self._passes)
            if len(worths) > 1 and worths[-1] - worths[-2] <= _SETTLED * self._told.streams:
                break
        return parts, worths

    def maximised(self, parts: Floats) -> _Guess:
        """The mixture under which streams in these parts are most probable, smoothed."""
        moves, first = self._gathered(parts)
        people = parts.sum(axis=0)
        seen = np.stack([self._by_source(row) for row in moves])
        drawn = (moves + self._extra) / (seen + self._pulls)[:, self._sources]
        begun = (first + self._start_pull * self._common.initial) / (people + self._start_pull)[
            :, None
        ]
        shares = (people + 1) / (people.sum() + people.size)
        return _Guess(shares, begun, drawn, seen + self._pulls)

    def chain(self, parts: Floats, floor: float) -> MarkovChain:
        """The chain of one cluster, with the floor and the background of the common one."""
        told, common = self._told, self._common
        moves, first = self._gathered(np.ascontiguousarray(parts[:, None]))
        seen = self._by_source(moves[0])
        total = np.maximum(seen + self._pulls, np.finfo(np.float64).tiny)
        pull, smoothing = (part * self._followers / total for part in self._pull)
        # Own moves and those that everybody makes, both without the background.
        behind = _known(common, *np.divmod(told.pairs, told.size))
        known = moves[0] / total[self._sources]
        known += (pull * (1 - common.backoff))[self._sources] * behind
        least = floor / float(common.background.min())
        backoff = np.maximum(pull * common.backoff + smoothing, least)
        rows = sparse.csr_array(
            sparse.coo_array(
                (known, np.divmod(told.pairs, told.size)), shape=(told.size, told.size)
            )
        )
        sums = np.asarray(rows.sum(axis=1)).ravel()
        scaled = sparse.csr_array(rows * (1 / np.where(sums > 0, sums, 1.0))[:, None])
        dense = isinstance(common.known, np.ndarray)
        own = replace(
            common,
            known=scaled.toarray() if dense else scaled,
            backoff=np.where(sums > 0, backoff, 1.0),
        )
        return replace(own, initial=self._initial(parts, first[0]))

    def _initial(self, parts: Floats, first: Floats) -> Floats:
        """How streams of a cluster begin, drawn towards its long run as `fit` does."""
        told, people = self._told, float(parts.sum())
        values = float((parts * told.lengths).sum())
        shown = np.asarray((told.symbols * parts[:, None]).sum(axis=0)).ravel()
        known = start_weight(people, values / max(people, 1e-300))
        begun = known * first / max(people, 1e-300) + (1 - known) * shown / max(values, 1e-300)
        weight = people + values / max(people, 1e-300)
        pulled = self._start_pull / (weight + self._start_pull)
        mixed = (1 - pulled) * begun + pulled * self._common.initial
        return np.asarray(mixed / mixed.sum())

    def _gathered(self, parts: Floats) -> tuple[Floats, Floats]:
        from sfumato.models.cluster_loops import gathered

        told, clusters = self._told, parts.shape[1]
        moves, first = np.zeros((clusters, told.pairs.size)), np.zeros((clusters, told.size))
        gathered(*told.of_streams, parts, moves, first)
        return moves, first

    def _by_source(self, moves: Floats) -> Floats:
        found = np.bincount(self._sources, moves, minlength=self._told.size)
        return np.asarray(found, dtype=np.float64)

    def _prior(self, guess: _Guess) -> float:
        """Log density of the prior that the pseudo-counts are, up to a constant."""
        rows = portable.log(guess.moves) * self._extra
        first = portable.log(guess.first) * (self._start_pull * self._common.initial)
        shares = portable.log(guess.shares)
        # Moves that nobody made have their pseudo-counts, and what is left of each row.
        unseen = portable.log(np.where(self._others > 0, guess.left, 1.0)) * self._others
        prior = float(first.sum()) + float(shares.sum()) - float(unseen.sum())
        return float(rows.sum()) + prior


def shared(
    told: StreamCounts, shares: Floats, first: Floats, moves: Floats
) -> tuple[Floats, Floats]:
    """How probably each stream is of each cluster, and its log probability."""
    from sfumato.models.cluster_loops import shared_out

    parts, scores = np.empty((told.streams, shares.size)), np.empty(told.streams)
    logs = (portable.log(moves), portable.log(first), portable.log(shares))
    shared_out(*told.of_streams, *logs, parts, scores)
    return parts, scores


def stream_scores(chain: ClusteredChain | MarkovChain, told: StreamCounts) -> Floats:
    """Log probability of each stream, each keeping its cluster (`change` aside).

    Examples:
        >>> fair = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
        >>> stream_scores(fair, StreamCounts.of([np.array([0, 1])], 2)).round(3)
        array([-1.386])
    """
    chains = chain.chains if isinstance(chain, ClusteredChain) else (chain,)
    shares = chain.shares if isinstance(chain, ClusteredChain) else np.ones(1)
    places = np.divmod(told.pairs, told.size)
    moves = np.stack([_entries(one, *places) for one in chains])
    first = np.stack([one.initial for one in chains])
    return shared(told, shares, first, moves)[1]


def _entries(chain: MarkovChain, sources: Ints, followers: Ints) -> Floats:
    """Probabilities of some moves."""
    weight = chain.backoff[sources]
    behind = weight * chain.background[followers]
    return np.asarray((1 - weight) * _known(chain, sources, followers) + behind)


def _known(chain: MarkovChain, sources: Ints, followers: Ints) -> Floats:
    """Known parts of some moves."""
    return np.asarray(chain.known[sources, followers]).ravel()
