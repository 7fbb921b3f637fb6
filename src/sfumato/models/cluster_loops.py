"""Loops of a mixture of chains: beliefs one moment forward, and EM over recorded streams.

Sums run in the order of clusters and entries and are never regrouped: the same bits everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core.types import Array
from numba.extending import overload

from sfumato.core.arrays import Floats, Ints
from sfumato.core.compiled import njit
from sfumato.core.portable_loops import exp, log
from sfumato.models.chain_loops import Known, spread


def _rows_of(known: Known, first: int, size: int) -> Known:  # type: ignore[empty-body]
    """The rows of one cluster, of those of all clusters one below the other."""


def _dense_rows(known: Any, first: int, size: int) -> Any:
    return known[first : first + size]


def _sparse_rows(known: Any, first: int, size: int) -> Any:
    # Starts of CSR rows are places in the one list of entries, so a slice of them is enough.
    data, indices, starts = known
    return data, indices, starts[first : first + size + 1]


@overload(_rows_of)
def _rows_of_kind(known: Any, first: int, size: int) -> Any:
    return _dense_rows if isinstance(known, Array) else _sparse_rows


@njit(cache=True, nogil=True, error_model="numpy")
def advance_clusters(
    joint: Floats,
    known: Known,
    backoff: Floats,
    background: Floats,
    shares: Floats,
    change: float,
    moved: Floats,
) -> None:
    """Weights of the pairs (value, cluster) of the next moment; no term is ever subtracted.

    Args:
        joint: Weight of each pair, the clusters of one value in a run.
        known: Known rows of all clusters, one below the other.
        backoff: Weight of the background in each row, one row of numbers per cluster.
        background: Distribution that the rows of each cluster are mixed with.
        shares: How common each cluster is.
        change: Probability that the cluster is drawn anew before the move.
        moved: The result, up to a factor.
    """
    clusters, size = background.shape
    here, begun, after = np.empty(size), np.empty(size), np.empty(size)
    for value in range(size):
        here[value] = 0.0
        for cluster in range(clusters):
            here[value] += joint[value * clusters + cluster]
    for cluster in range(clusters):
        anew = change * shares[cluster]
        for value in range(size):
            stays = (1 - change) * joint[value * clusters + cluster]
            begun[value] = stays + anew * here[value]
        rows = _rows_of(known, cluster * size, size)
        spread(begun, rows, backoff[cluster], background[cluster], after)
        for value in range(size):
            moved[value * clusters + cluster] = after[value]


@njit(cache=True, nogil=True, error_model="numpy")
def shared_out(
    counts: Floats,
    places: Ints,
    starts: Ints,
    begins: Ints,
    moves: Floats,
    first: Floats,
    shares: Floats,
    parts: Floats,
    scores: Floats,
) -> None:
    """How probably each stream is of each cluster, and its log probability.

    Args:
        counts: How often each stream made each of its moves, stream after stream.
        places: Which move each of them is, a column of `moves`.
        starts: Where those of each stream begin, and the end.
        begins: The first value of each stream.
        moves: Log probability of each move that occurs, one row per cluster.
        first: Log probability of each first value, likewise.
        shares: Log share of each cluster.
        parts: Gets one row per stream: the probability of each cluster.
        scores: Gets the log probability of each stream.
    """
    clusters = shares.size
    logs = np.empty(clusters)
    for stream in range(begins.size):
        highest = -np.inf
        for cluster in range(clusters):
            total = shares[cluster] + first[cluster, begins[stream]]
            for place in range(starts[stream], starts[stream + 1]):
                total += counts[place] * moves[cluster, places[place]]
            logs[cluster] = total
            highest = max(highest, total)
        whole = 0.0
        for cluster in range(clusters):
            parts[stream, cluster] = exp(logs[cluster] - highest)
            whole += parts[stream, cluster]
        for cluster in range(clusters):
            parts[stream, cluster] /= whole
        scores[stream] = highest + log(whole)


@njit(cache=True, nogil=True, error_model="numpy")
def gathered(
    counts: Floats,
    places: Ints,
    starts: Ints,
    begins: Ints,
    parts: Floats,
    moves: Floats,
    first: Floats,
) -> None:
    """Add up moves and first values of streams that are shared out among clusters.

    Args:
        counts: As in `shared_out`; so are `places`, `starts` and `begins`.
        places: Which moves they are.
        starts: Where those of each stream begin.
        begins: First values.
        parts: The probability of each cluster, one row per stream.
        moves: Gets how often each move is expected in each cluster, one row per cluster.
        first: Gets how often streams of each cluster begin with each value.
    """
    for stream in range(begins.size):
        for cluster in range(parts.shape[1]):
            part = parts[stream, cluster]
            first[cluster, begins[stream]] += part
            for place in range(starts[stream], starts[stream + 1]):
                moves[cluster, places[place]] += part * counts[place]
