"""What recorded sequences say about a chain: counts, smoothed, with a stated floor."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter

Rows: TypeAlias = Floats | sparse.csr_array

# A belief is an array over contexts: this many take 400 MB.
MAX_CONTEXTS = 50_000_000
# Chains with at most this many transition probabilities are kept dense.
DENSE_CELLS = 250_000


@dataclass(frozen=True, slots=True)
class Counts:
    """What a history says about a chain, ready to be added up over many parts.

    Attributes:
        starts: How often each `order`-tuple opens a sequence (flat places).
        moves: How often each (context, next value) occurs.
        symbols: How often each value occurs.
        sequences: How many sequences were counted.
    """

    starts: Floats
    moves: sparse.csr_array
    symbols: Floats
    sequences: int


def context_count(size: int, order: int) -> int:
    """Number of contexts, if a belief over them fits into memory."""
    # An order of billions is refused before a number of billions of digits is made of it.
    short = min(checks.count("order", order), MAX_CONTEXTS.bit_length())
    contexts: int = size**short
    if contexts > MAX_CONTEXTS or (size == 1 and order > short):
        rule = f"keep the number of contexts, {size}**order, at most {MAX_CONTEXTS:,}"
        if order == 2:
            rule += "; `PairChain` keeps only those that occur"
        raise InvalidParameter("order", order, rule)
    return contexts


def count_transitions(sequences: Iterable[Ints], size: int, order: int) -> Counts:
    """Count starts, moves and symbols. A sequence shorter than `order` counts its symbols only."""
    contexts = context_count(size, order)
    starts, symbols, total = np.zeros(contexts), np.zeros(size), 0
    moves = sparse.csr_array((contexts, size), dtype=np.float64)
    pending: list[Ints] = []
    held = 0
    for path in sequences:
        total += 1
        symbols += np.bincount(path, minlength=size)
        if len(path) < order:
            continue
        codes = _context_codes(path, size, order)
        starts[codes[0]] += 1
        pending.append(np.stack([codes[:-1], path[order:]]))
        held += len(path)
        # Moves are tallied in parts: a history may be larger than memory, its counts are not.
        if held > 2_000_000:
            moves, pending, held = moves + _tally(pending, contexts, size), [], 0
    return Counts(starts, sparse.csr_array(moves + _tally(pending, contexts, size)), symbols, total)


def smoothed_parts(
    counts: Counts, order: int, smoothing: float, floor: float
) -> tuple[Floats, Rows, Floats, Floats]:
    """Turn counts into the parts of a chain with full support: initial, known, backoff, background.

    The background lies halfway between the overall distribution of symbols and the even one. A
    context seen `c` times with `d` different followers is mixed with it at weight `s / (c + s)`
    with `s = smoothing * d`, as if it had been seen `s` times more with typical followers, and
    at least as much as lifts every transition to `floor`. (Counting the followers that occur,
    not all symbols, keeps a large alphabet from drowning what a context is known to do.)
    """
    size = counts.symbols.size
    checks.finite("smoothing", smoothing)
    if not 0 < floor < 1 / (2 * size):
        raise InvalidParameter("floor", floor, f"be greater than 0 and less than 1/{2 * size}")
    if counts.symbols.sum() == 0:
        raise InvalidParameter("sequences", 0, "hold at least one value")
    background = 0.5 * counts.symbols / counts.symbols.sum() + 0.5 / size
    least = floor / background.min()
    seen = np.asarray(counts.moves.sum(axis=1)).ravel()
    followers = np.diff(counts.moves.indptr)
    backoff = np.maximum(pulled(seen, smoothing * followers), least)
    first = np.array(counts.starts.sum())
    start = np.maximum(pulled(first, smoothing * np.count_nonzero(counts.starts)), least)
    observed = counts.starts / max(counts.starts.sum(), 1.0)
    initial = (1 - start) * observed + start * _product(background, order)
    return initial.reshape((size,) * order), _rows(counts.moves, seen), backoff, background


def pulled(seen: Floats, pseudo: ArrayLike) -> Floats:
    """Weight of the background in a row seen `seen` times; all of it when never seen."""
    extra = np.asarray(pseudo, dtype=np.float64)
    return np.where(seen > 0, extra / np.maximum(seen + extra, 1.0), 1.0)


def _rows(moves: sparse.csr_array, seen: Floats) -> Rows:
    scaled = sparse.csr_array(moves * (1 / np.maximum(seen, 1.0))[:, None])
    return scaled.toarray() if np.prod(scaled.shape) <= DENSE_CELLS else scaled


def _product(background: Floats, order: int) -> Floats:
    joint = np.ones(1)
    for _ in range(order):
        joint = np.outer(joint, background).ravel()
    return joint


def _context_codes(path: Ints, size: int, order: int) -> Ints:
    """Number of each window of `order` values, the oldest most significant."""
    codes = np.zeros(len(path) - order + 1, dtype=np.int64)
    for lag in range(order):
        codes = codes * size + path[lag : len(path) - order + 1 + lag]
    return codes


def _tally(pending: list[Ints], contexts: int, size: int) -> sparse.csr_array:
    if not pending:
        return sparse.csr_array((contexts, size), dtype=np.float64)
    rows, columns = np.concatenate(pending, axis=1)
    ones = np.ones(rows.size)
    return sparse.csr_array(sparse.coo_array((ones, (rows, columns)), shape=(contexts, size)))
