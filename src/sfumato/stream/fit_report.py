"""What a fitted model rests on: how much was seen, how far it may be off, what is rare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import portable
from sfumato.core.alphabet import Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.models.fitting import start_weight
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain

_RARE = 0.01
"""Share of the history under which a symbol is called rare, in small alphabets."""
_CONFIDENCE = 0.95
_KNOWN_STARTS, _LONG = 0.5, 20
"""Share of the first belief that must rest on starts, and lengths from which it is looked at."""
_FEW_KEPT = 0.5
"""Share of the batches under which a library is said to keep few."""


@dataclass(frozen=True, slots=True)
class FitReport:
    """What a fitted model rests on.

    Attributes:
        streams: Number of streams in the history.
        rows: Number of values.
        symbols: Size of the alphabet.
        transitions: Number of transitions that were counted; of a library, from batch to batch.
        rare: Symbols that make up less than 1 % of the history, and less than a tenth of an
            even share.
        predictability: Share of the uncertainty about a value that its past takes away, 0 to 1.
        estimation_error: How much the leakage may be misjudged in a typical context because the
            chain is estimated, with 95 % confidence.
        warnings: What a careful user should know.
        patterns: How many patterns a library keeps; None for a chain.
        kept: Share of the batches in the history that are kept patterns; the others are taken
            for the nearest one.
        missing: Values that were missing in the history.
        clipped: Values beyond the range that were taken for its edge.
        rounding: Mean distance of a value from the middle of its bin or cell, which no release can
            make smaller; None for symbols.
        unit: What distances are in.

    References:
        [LIP, Cor. 7]
    """

    streams: int
    rows: int
    symbols: int
    transitions: int
    rare: tuple[Label, ...]
    predictability: float
    estimation_error: float
    warnings: tuple[str, ...]
    patterns: int | None = None
    kept: float | None = None
    missing: int = 0
    clipped: int = 0
    rounding: float | None = None
    unit: str = ""


def chain_report(chain: MarkovChain | PairChain, paths: Sequence[Ints], seen: Floats) -> FitReport:
    """What a chain rests on; `seen` is how often each context was."""
    symbols = _counted(paths, chain.size)
    share, transitions = symbols / symbols.sum(), int(seen.sum())
    error = _estimation_error(chain.size, seen, share)
    warnings = []
    if transitions == 0:
        warnings.append("no stream is longer than the order: the chain knows no transition")
    elif error > portable.log(2):
        warnings.append(
            f"the history is small for order {chain.order}: in a typical context the leakage may "
            f"be misjudged by {error:.2g} nats; a lower order or more history would help"
        )
    warnings += _few_starts(paths, chain.order)
    if isinstance(chain, PairChain):
        strength = 1 - float(portable.dot(seen, chain.entropies())) / max(seen.sum(), 1) / _entropy(
            share
        )
    else:
        strength = predictability(chain)
    return FitReport(
        streams=len(paths),
        rows=int(symbols.sum()),
        symbols=chain.size,
        transitions=transitions,
        rare=_rare(chain.alphabet.labels, share),
        predictability=strength,
        estimation_error=error,
        warnings=tuple(warnings),
    )


def _few_starts(paths: Sequence[Ints], order: int) -> list[str]:
    """A remark where the model begins more as streams go on than as they began."""
    streams = sum(len(path) >= order for path in paths)
    length = sum(map(len, paths)) / max(len(paths), 1)
    known = start_weight(streams, length)
    # A few values give no long run to speak of, and a warning for every toy table helps nobody.
    if known >= _KNOWN_STARTS or length < _LONG:
        return []
    number = f"{length:,.0f} values"
    has = f"it has {number}" if streams == 1 else f"they have {number} on average"
    return [
        f"only {streams} {'stream shows' if streams == 1 else 'streams show'} how a stream begins "
        f"({has}), so the model takes the first value of a stream to be "
        f"{1 - known:.0%} like any later one. If the streams that you will release "
        "begin in a special way (each day in bed, say), cut the history into such pieces, each "
        "with a stream name of its own, and fit again"
    ]


def library_report(library: PatternLibrary, paths: Sequence[Ints]) -> FitReport:
    """What a library rests on."""
    labels, width = library.alphabet.labels, library.width
    batches = [
        path[start : start + width] for path in paths for start in range(0, len(path), width)
    ]
    patterns = {tuple(row[row >= 0].tolist()) for row in library.patterns}
    kept = sum(tuple(batch.tolist()) in patterns for batch in batches) / len(batches)
    moves = len(batches) - len(paths)
    warnings = []
    if kept < _FEW_KEPT:
        warnings.append(
            f"only {kept:.0%} of the batches are kept patterns; the others are taken for the "
            "nearest one, which costs utility: keep more patterns, or take shorter batches"
        )
    error, share = math.nan, library.chain.stationary()
    if moves:
        error = _estimation_error(len(share), share * moves, share)
    symbols = _counted(paths, len(labels))
    return FitReport(
        streams=len(paths),
        rows=int(symbols.sum()),
        symbols=len(labels),
        transitions=moves,
        rare=_rare(labels, symbols / symbols.sum()),
        predictability=predictability(library.chain),
        estimation_error=error,
        warnings=tuple(warnings),
        patterns=len(library.patterns),
        kept=kept,
    )


def _counted(paths: Sequence[Ints], size: int) -> Floats:
    return np.bincount(np.concatenate(paths), minlength=size).astype(np.float64)


def _rare(labels: Sequence[Label], share: Floats) -> tuple[Label, ...]:
    few = np.flatnonzero(share < min(_RARE, 0.1 / len(labels)))
    return tuple(labels[place] for place in few.tolist())


def predictability(chain: MarkovChain) -> float:
    """Share of the entropy of a value that its `order` predecessors take away.

    Examples:
        >>> predictability(MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]]))
        0.0
    """
    context = chain.stationary()
    alone = _entropy(chain.following(Belief(context, axis=chain.order - 1)).marginal)
    given = float(portable.dot(context.ravel(), row_entropies(chain)))
    return max(0.0, 1 - given / alone) if alone > 0 else 0.0


def row_entropies(chain: MarkovChain) -> Floats:
    """Entropy of the next value in each context, without making the rows.

    Where a row knows nothing, its entries are those of the background times its weight: their
    sum is that of the whole background less the entries that the row knows.

    Examples:
        >>> row_entropies(MarkovChain.from_matrix([[0.5, 0.5], [0.9, 0.1]])).round(3)
        array([0.693, 0.325])
    """
    if isinstance(chain.known, np.ndarray):
        return np.asarray(-_x_log_x(chain.transition()).sum(axis=1))
    known, weight = chain.known, chain.backoff
    rows = np.repeat(np.arange(weight.size), np.diff(known.indptr))
    behind = weight[rows] * chain.background[known.indices]
    entries = (1 - weight[rows]) * known.data + behind
    alone = weight * _x_log_x(chain.background).sum() + _x_log_x(weight)
    changes = np.bincount(rows, _x_log_x(entries) - _x_log_x(behind), minlength=weight.size)
    return np.asarray(-(alone + changes))


def _x_log_x(values: Floats) -> Floats:
    return np.asarray(values * portable.log(np.where(values > 0, values, 1.0)))


def _entropy(probabilities: Floats) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * portable.log(positive)).sum())


def _estimation_error(size: int, seen: Floats, share: Floats) -> float:
    r"""$\ln(1 + \bar\Delta/(2c))$ with $\bar\Delta = \sqrt{2(|X| - \ln\beta)/n}$.

    where $n$ is how often the context of the median transition was seen and $c$ is the share of
    the median symbol: the corollary for a typical context and a typical symbol.
    """
    if seen.sum() == 0:
        return math.inf
    ordered = np.sort(seen)
    half = int(np.searchsorted(ordered.cumsum(), ordered.sum() / 2))
    samples = ordered[min(half, ordered.size - 1)]
    ranked = np.sort(share)
    middle = int(np.searchsorted(ranked.cumsum(), 0.5))
    typical = ranked[min(middle, size - 1)]
    spread = math.sqrt(2 * (size - portable.log(1 - _CONFIDENCE)) / samples)
    return portable.log1p(spread / (2 * float(typical)))
