"""What recorded sequences say about a chain that changes with the phase, and how phases share it.

A history cut into 24 hours says little of each. So the known rows of a phase are drawn towards
those of all phases together: as if the latter had been seen `sharing` times in each row. Backoff
and background are those of the chain without phases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.fitting import (
    MAX_CONTEXTS,
    Counts,
    Rows,
    count_transitions,
    pulled,
    smoothed_parts,
    start_weight,
)

_DENSE = 4_000_000
"""Up to so many probabilities the rows of all phases are kept dense: 32 MB."""
_SHARINGS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2.0**16)
"""Weights of all phases together that are tried: the last one leaves phases no say."""


@dataclass(frozen=True, slots=True)
class PhaseCounts:
    """What a history says, phase by phase.

    Attributes:
        together: Without phases.
        moves: How often each (phase of the next value, value, next value) occurs; one row for each
            phase and value, one phase below the other.
        starts: How often each value opens a sequence in each phase.
        symbols: How often each value occurs in each phase.
    """

    together: Counts
    moves: sparse.csr_array
    starts: Floats
    symbols: Floats

    @property
    def phases(self) -> int:
        """How many phases there are."""
        return len(self.starts)


def count_by_phase(
    paths: Sequence[Ints], phases: Sequence[Ints], size: int, count: int
) -> PhaseCounts:
    """Count moves by the phase in which they end."""
    if size * count > MAX_CONTEXTS:
        rule = f"keep symbols times phases at most {MAX_CONTEXTS:,}"
        raise InvalidParameter("phases", count, rule)
    if [len(path) for path in paths] != [len(own) for own in phases]:
        raise InvalidParameter("phases", "others", "be one for each value")
    shape = (count * size, size)
    empty = np.zeros((2, 0), dtype=np.int64)
    used = [(path, own) for path, own in zip(paths, phases, strict=True) if len(path)]
    if used and not 0 <= min(own.min() for _, own in used) <= max(o.max() for _, o in used) < count:
        raise InvalidParameter("phases", "another", f"lie from 0 to {count - 1}")
    ends = [np.stack([own[1:] * size + path[:-1], path[1:]]) for path, own in used]
    rows, columns = np.concatenate([empty, *ends], axis=1)
    first = [own[0] * size + path[0] for path, own in used]
    seen = [own * size + path for path, own in used]
    moves = sparse.coo_array((np.ones(rows.size), (rows, columns)), shape=shape)
    return PhaseCounts(
        together=count_transitions(paths, size, 1),
        moves=sparse.csr_array(moves),
        starts=np.bincount(np.array(first, dtype=np.int64), minlength=count * size)
        .astype(np.float64)
        .reshape(count, size),
        symbols=np.bincount(np.concatenate([empty[0], *seen]), minlength=count * size)
        .astype(np.float64)
        .reshape(count, size),
    )


def shared_parts(
    counts: PhaseCounts, smoothing: float, floor: float, sharing: float | None
) -> tuple[Floats, Rows, Floats, Floats]:
    """The parts of a chain with full support: initial, known, backoff, background.

    Args:
        counts: What the history says.
        smoothing: Pseudo-counts per follower that a context has.
        floor: Least probability of any transition.
        sharing: What all phases together count in each; chosen by `best_sharing` if None.
    """
    initial, known, backoff, background = smoothed_parts(counts.together, 1, smoothing, floor)
    if counts.phases == 1:
        return initial[None, :], known, backoff, background
    weight = best_sharing(counts) if sharing is None else checks.positive("sharing", sharing)
    return (
        _starts(counts, (initial, background), weight, smoothing, floor),
        _rows(counts, sparse.csr_array(known), weight),
        np.tile(backoff, counts.phases),
        background,
    )


def best_sharing(counts: PhaseCounts) -> float:
    r"""The weight of all phases together under which each transition is best predicted by the rest.

    $$\sum_{h,x,y} c_{hxy} \log
        \frac{c_{hxy} - 1 + \kappa (c_{xy} - 1)/(c_x - 1)}{c_{hx} - 1 + \kappa}$$

    where $c_{hxy}$ are the moves from $x$ to $y$ in phase $h$, $c_{xy}$ and $c_x$ their sums, and
    $\kappa$ is what is sought. A move that was seen once in all is left to the background, under
    every $\kappa$ alike.
    """
    together = sparse.csr_array(counts.together.moves)
    size, moves = together.shape[0], counts.moves.tocoo()
    if not moves.nnz:
        return _SHARINGS[-1]
    values, nexts = moves.row % size, moves.col
    seen = np.asarray(together.sum(axis=1)).ravel()[values]
    rows = np.asarray(counts.moves.sum(axis=1)).ravel()[moves.row]
    pairs = np.asarray(together[values, nexts]).ravel()
    kept = pairs > 1
    if not kept.any():
        return _SHARINGS[-1]
    own, rows, others = moves.data[kept], rows[kept], (pairs[kept] - 1) / (seen[kept] - 1)
    told = [
        float((own * portable.log((own - 1 + weight * others) / (rows - 1 + weight))).sum())
        for weight in _SHARINGS
    ]
    return _SHARINGS[int(np.argmax(told))]


def _rows(counts: PhaseCounts, known: sparse.csr_array, weight: float) -> Rows:
    """Known rows of every phase: its own moves, and those of all phases at a weight."""
    own = np.asarray(counts.moves.sum(axis=1)).ravel()
    behind = sparse.vstack([known] * counts.phases, format="csr")
    mixed = (counts.moves + behind * weight) * (1 / (own + weight))[:, None]
    # A value that was never followed has an empty row, which the background replaces.
    rows = sparse.csr_array(mixed)
    return rows.toarray() if np.prod(rows.shape) <= _DENSE else rows


def _starts(
    counts: PhaseCounts, parts: tuple[Floats, Floats], weight: float, smoothing: float, floor: float
) -> Floats:
    """How streams begin in each phase: as they did in it, as values are in it, and as at large."""
    begun, seen, (initial, background) = counts.starts, counts.symbols, parts
    streams, length = begun.sum(axis=1), counts.together.mean_length
    long_run = (seen + weight * initial) / (seen.sum(axis=1) + weight)[:, None]
    own = np.array([start_weight(float(count), length) for count in streams])[:, None]
    mixed = own * begun / np.maximum(streams, 1.0)[:, None] + (1 - own) * long_run
    pseudo = smoothing * np.count_nonzero(begun, axis=1)
    least = floor / background.min()
    pull = np.maximum(pulled(streams + length, pseudo), least)[:, None]
    return np.asarray((1 - pull) * mixed + pull * background)
