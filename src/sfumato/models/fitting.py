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

    @property
    def mean_length(self) -> float:
        """Values of a sequence, on average."""
        return float(self.symbols.sum()) / max(self.sequences, 1)


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

    How streams begin is smoothed likewise, and before that drawn towards the long run
    (`start_weight`).
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
    # Where no stream is as long as the order, nothing is known of how one begins.
    begun = float(counts.starts.sum())
    weight = np.array(begun + counts.mean_length if begun else 0.0)
    start = np.maximum(pulled(weight, smoothing * np.count_nonzero(counts.starts)), least)
    initial = (1 - start) * _beginnings(counts, seen) + start * _product(background, order)
    return initial.reshape((size,) * order), _rows(counts.moves, seen), backoff, background


def start_weight(streams: float, length: float) -> float:
    r"""How much of the first belief is how streams began; the rest is the long run.

    $$m / (m + L)$$

    where $m$ is the number of `streams` and $L$ their mean `length`: the long run counts as many
    starts as a stream has values. Many short streams know how streams begin. A few long ones do
    not, since each began once: what is released may well begin where they went on, and if it is as
    long as they are, its beginning matters little.

    Examples:
        >>> start_weight(27, 3), start_weight(1, 99)
        (0.9, 0.01)
    """
    return streams / (streams + length) if streams else 0.0


def _beginnings(counts: Counts, seen: Floats) -> Floats:
    """Contexts that streams began with, drawn towards those that occur at large."""
    streams = float(counts.starts.sum())
    weight, begun = start_weight(streams, counts.mean_length), counts.starts / max(streams, 1.0)
    # Contexts of one value are the values themselves; longer ones are counted where they end.
    often = counts.symbols if seen.size == counts.symbols.size else seen
    return weight * begun + (1 - weight) * often / often.sum() if often.sum() else begun


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
