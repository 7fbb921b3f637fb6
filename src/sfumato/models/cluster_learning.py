r"""Learn a mixture of chains from what left: EM over streams whose values and clusters are hidden.

As in `learning`, of each output only its likelihood under every symbol is used. One pass runs each
stream through the chain of each cluster; with the parts $r_{mk} \propto w_k P_k(y^{(m)})$,

$$N^k_{ij} = \sum_m r_{mk} E_k[\#\{i \to j\} \mid y^{(m)}], \qquad
P_k(j \mid i) \propto N^k_{ij} + s + s n P(j \mid i), \qquad w_k \propto 1 + \sum_m r_{mk}$$

where $P$ is the one chain that was learnt from all streams, $n$ the number of symbols and $s$ is
`smoothing`. It is a function of what left: learning costs no privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sfumato.core import checks, portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.models.clustered_chain import CHANGE, ClusteredChain
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import Guess, as_guess, chain_scores, expected
from sfumato.models.first_groups import first_groups
from sfumato.models.learning import FLOOR, SMOOTHING, LearntChain, as_chain, learn_chain
from sfumato.models.markov import MarkovChain

_SETTLED = 1e-3
"""Nats that a pass may still gain when learning ends."""
_FEW_PASSES = 12
"""Passes after which the best of the beginnings goes on alone."""


class _Mixture(NamedTuple):
    """Shares of clusters, and their chains as the loops take them."""

    shares: Floats
    chains: tuple[Guess, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LearntClusters:
    """A mixture that was learnt, and how that went.

    Attributes:
        chain: The mixture, with full support; the most common cluster first.
        common: The one chain of all streams.
        log_likelihood: Log probability of the outputs under `chain`, up to their own factors.
        objective: What was maximised, after each pass.
        converged: Whether it had settled.
    """

    chain: ClusteredChain
    common: LearntChain
    log_likelihood: float
    objective: tuple[float, ...]
    converged: bool


def learn_clusters(
    emissions: Emissions,
    alphabet: Alphabet,
    clusters: int,
    *,
    smoothing: float = SMOOTHING,
    floor: float = FLOOR,
    change: float = CHANGE,
    most: int = 300,
    progress: Progress | None = None,
) -> LearntClusters:
    """The mixture that makes what left most probable, smoothed.

    Args:
        emissions: What outputs told, one value each.
        alphabet: The symbols.
        clusters: How many chains.
        smoothing: Pseudo-counts of each value after each; as many again are the common chain's.
        floor: Least probability of any transition.
        change: Probability that a stream changes its cluster at a step.
        most: Passes after which learning ends all the same.
        progress: Called with the number of passes done so far.
    """
    if emissions.span > 1:
        rule = "tell of one value each: mixtures are not learnt from batches"
        raise InvalidParameter("released", f"outputs of {emissions.span} values", rule)
    if checks.count("clusters", clusters) > emissions.streams:
        rule = f"be at most the {emissions.streams} streams"
        raise InvalidParameter("clusters", clusters, rule)
    common = learn_chain(emissions, alphabet, smoothing=smoothing, floor=floor)
    search = _Search(emissions, common.guess, clusters, smoothing, progress)
    begun = [search.run(search.maximised(parts), _FEW_PASSES)[0] for parts in search.beginnings()]
    best = max(begun, key=lambda mixture: search.passed(mixture)[1])
    search.told.clear()
    found, settled = search.run(best, most)
    order = np.argsort(-found.shares, kind="stable")
    size = emissions.streams, len(emissions)
    chains = tuple(as_chain(found.chains[place], alphabet, *size, floor) for place in order)
    mixture = ClusteredChain(found.shares[order], chains, change)
    score = float(cluster_scores(emissions, mixture).sum())
    return LearntClusters(mixture, common, score, tuple(search.told), settled)


def cluster_scores(emissions: Emissions, chain: ClusteredChain | MarkovChain) -> Floats:
    """Log probability of the outputs of each stream, each keeping its cluster.

    Up to factors that are those of no chain, and to the rare changes of cluster.
    """
    if isinstance(chain, MarkovChain):
        return chain_scores(as_guess(chain), emissions)
    return _shared(emissions, _Mixture(chain.shares, tuple(map(as_guess, chain.chains))))[1]


def _shared(emissions: Emissions, mixture: _Mixture) -> tuple[Floats, Floats]:
    """How probably each stream is of each cluster, and the log probability of its outputs."""
    scores = np.stack([chain_scores(one, emissions) for one in mixture.chains], axis=1)
    logs = scores + portable.log(mixture.shares)
    highest = logs.max(axis=1)
    parts = portable.exp(logs - highest[:, None])
    whole = parts.sum(axis=1)
    return parts / whole[:, None], highest + portable.log(whole)


class _Search:
    """Passes over the outputs, and what mixtures were worth."""

    def __init__(
        self,
        emissions: Emissions,
        common: Guess,
        clusters: int,
        smoothing: float,
        progress: Progress | None,
    ) -> None:
        self._emissions, self._clusters, self._common = emissions, clusters, common
        self._progress, self._passes = progress, 0
        self._extra = smoothing * (1 + emissions.symbols * common.moves)
        self._starts = smoothing * (1 + emissions.symbols * common.initial)
        self.told: list[float] = []

    def beginnings(self) -> list[Floats]:
        """Streams in groups: by what their outputs speak for, by how these agree, and drawn."""
        streams, clusters = self._emissions.streams, self._clusters
        if clusters == 1:
            return [np.ones((streams, 1))]
        shown, agree = _looks(self._emissions)
        looks = [shown, np.hstack([shown, agree]), agree]
        groups = [
            first_groups(np.ascontiguousarray(look), clusters, np.random.RandomState(seed))
            for seed, look in enumerate(looks)
        ]
        drawn = np.random.RandomState(len(looks)).uniform(size=(streams, clusters))
        # Outputs are weak: groups are but a leaning.
        parts = [0.7 * np.eye(clusters)[own] + 0.3 / clusters for own in groups]
        return [*parts, drawn / drawn.sum(axis=1, keepdims=True)]

    def run(self, mixture: _Mixture, most: int) -> tuple[_Mixture, bool]:
        """Passes until nothing is gained."""
        for _ in range(most):
            following, worth = self.passed(mixture)
            self.told.append(worth)
            if len(self.told) > 1 and 0 <= worth - self.told[-2] <= _SETTLED:
                return following, True
            mixture = following
        return mixture, False

    def passed(self, mixture: _Mixture) -> tuple[_Mixture, float]:
        """The mixture after a pass, and what the one before it was worth."""
        parts, scores = _shared(self._emissions, mixture)
        self._passes += 1
        if self._progress:
            self._progress(self._passes)
        worth = float(scores.sum()) + float(portable.log(mixture.shares).sum())
        for chain in mixture.chains:
            worth += float((portable.log(chain.moves) * self._extra).sum())
            worth += float((portable.log(chain.initial) * self._starts).sum())
        return self.maximised(parts, mixture.chains), worth

    def maximised(self, parts: Floats, chains: Sequence[Guess] = ()) -> _Mixture:
        """The mixture for streams in these parts; values are expected under `chains`."""
        people = parts.sum(axis=0)
        known = chains or (self._common,) * self._clusters
        found = []
        for place, chain in enumerate(known):
            counts = expected(chain, self._emissions, shares=parts[:, place])
            moves, begun = counts.moves + self._extra, counts.starts + self._starts
            found.append(Guess(begun / begun.sum(), moves / moves.sum(axis=1, keepdims=True)))
        return _Mixture((people + 1) / (people.sum() + people.size), tuple(found))


def _looks(emissions: Emissions) -> tuple[Floats, Floats]:
    """What the outputs of each stream speak for on average, and how much successive ones agree."""
    symbols, streams = emissions.symbols, emissions.streams
    owners = np.repeat(np.arange(streams), np.diff(emissions.starts))
    tells = np.flatnonzero(emissions.begins >= 0)
    rows = emissions.told[emissions.begins[tells][:, None] + np.arange(symbols)]
    rows = rows / np.maximum(rows.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    shown, count = np.zeros((streams, symbols)), np.bincount(owners[tells], minlength=streams)
    np.add.at(shown, owners[tells], rows)
    next_to = (np.diff(tells) == 1) & (owners[tells][1:] == owners[tells][:-1])
    agree = (rows[1:] * rows[:-1]).sum(axis=1) * next_to
    both = np.bincount(owners[tells][1:], agree, minlength=streams)
    times = np.bincount(owners[tells][1:], next_to, minlength=streams)
    return shown / np.maximum(count, 1)[:, None], (both / np.maximum(times, 1))[:, None]
