"""From a table of recorded streams to a model, with a report of what it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Label
from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.progress import Progress
from sfumato.models.encoding import (
    DEGREES,
    Bins,
    Encoding,
    Grid,
    Raw,
    StreamModel,
    Symbols,
    apart,
    check_degrees,
    number,
    text,
)
from sfumato.models.fitting import count_transitions, smoothed_parts
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.pair_chain import PairChain
from sfumato.tables.cells import MISSING_SYMBOL, Missing, missing_rows, read_each, stream_name
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Table

_PAIRS_BEYOND = 4_000_000
"""Contexts of order 2 beyond which only those that occur are kept: a belief takes 32 MB."""
_RARE = 0.01
_CONFIDENCE = 0.95
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


@dataclass(frozen=True, slots=True)
class Cut:
    """How numbers become symbols: `bins`, or a grid of `columns` by `rows`; or not at all.

    Attributes:
        bins: Bins of equal width.
        columns: Columns of a grid.
        rows: Its rows.
        ranges: What bins, or columns and rows, are cut from; numbers beyond it are clipped. If not
            given, the range of the history, and numbers beyond it are outside the alphabet.
        unit: What distances are in: `degrees` for longitude and latitude, or any word.
    """

    bins: int | None = None
    columns: int | None = None
    rows: int | None = None
    ranges: tuple[tuple[float, float], ...] = ()
    unit: str = ""


AS_IT_IS = Cut()


def fit_table(
    history: Table,
    *,
    stream: str = "stream",
    values: tuple[str, ...] = ("value",),
    order: int = 1,
    smoothing: float = 0.5,
    floor: float = 1e-6,
    cut: Cut = AS_IT_IS,
    batch: int | None = None,
    patterns: int = 1000,
    missing: Missing = Missing.REFUSE,
    progress: Progress | None = None,
) -> tuple[StreamModel, FitReport]:
    """Fit a chain, or a library of patterns, to a table with one row per value.

    Args:
        history: The table; rows of different streams may be interleaved.
        stream: Column that tells streams apart.
        values: Column of the value; two columns for a grid.
        order: How many past values the next one depends on.
        smoothing: Pseudo-counts per follower that a context has.
        floor: Least probability of any transition.
        cut: How numbers become symbols.
        batch: Fit a library of patterns of so many successive values.
        patterns: How many patterns to keep.
        missing: What becomes of a missing value: refuse; drop, so that its neighbours follow each
            other; symbol, one of its own; skip, so that its neighbours do not.
        progress: Called with the number of rows read so far.
    """
    if checks.count("order", order) > 1 and batch is not None:
        raise InvalidParameter("order", order, "be 1 for a library: patterns follow patterns")
    names, paths, raws = _read(history, stream, values, progress)
    raws, absent = _without_missing(raws, missing, cut, history.path)
    try:
        encoding = _encoding(raws, cut, history.path)
    except InvalidParameter as problem:
        raise BadTable(history.path, None, str(problem)) from problem
    except BadTable as problem:
        # Rows were counted without the missing ones.
        rows = np.flatnonzero(~absent) + 1
        row = None if problem.row is None else int(rows[problem.row - 1])
        raise BadTable(history.path, row, problem.rule) from None
    if cut.unit == DEGREES:
        check_degrees(encoding)
    codes = np.full(sum(map(len, paths)), -1, dtype=np.int64)
    codes[~absent] = _codes(raws, encoding, history.path)
    by_stream = _followed([codes[np.array(path)] for path in paths], missing)
    size = len(encoding.alphabet)
    seen_in_table = (int(absent.sum()), *_distances(raws, encoding, cut.unit))
    if batch is not None:
        model, report = _fit_library(
            encoding, by_stream, (stream, values), (batch, patterns), (smoothing, floor)
        )
        return replace(model, unit=cut.unit), _with_table(report, seen_in_table, cut)
    chain: MarkovChain | PairChain
    if order == 2 and size**2 > _PAIRS_BEYOND:
        chain, seen = PairChain.of_places(encoding.alphabet, by_stream, smoothing, floor)
    else:
        counts = count_transitions(by_stream, size, order)
        parts = smoothed_parts(counts, order, smoothing, floor)
        chain = MarkovChain(encoding.alphabet, order, *parts)
        seen = np.asarray(counts.moves.sum(axis=1)).ravel()
    moves = int(seen.sum())
    model = StreamModel(chain, encoding, stream, values, moves, cut.unit)
    symbols = np.bincount(codes[codes >= 0], minlength=size).astype(np.float64)
    report = _report(chain, symbols, seen, len(names), moves)
    return model, _with_table(report, seen_in_table, cut)


def _without_missing(
    raws: list[list[Raw]], missing: Missing, cut: Cut, source: str
) -> tuple[list[list[Raw]], Bools]:
    """The cells that hold something, and which rows do not."""
    rows = missing_rows(*raws)
    absent = np.zeros(len(raws[0]), dtype=np.bool_)
    match missing:
        case Missing.REFUSE:
            return raws, absent
        case Missing.SYMBOL:
            if cut.bins is not None or len(raws) > 1:
                rule = "be refuse, drop or skip with bins or a grid, whose symbols have places"
                raise InvalidParameter("--missing", missing.value, rule)
            gone = set(rows)
            named = [MISSING_SYMBOL if row in gone else cell for row, cell in enumerate(raws[0])]
            return [named], absent
        case Missing.DROP | Missing.SKIP:
            absent[rows] = True
            kept = [
                [cell for cell, gone in zip(column, absent, strict=True) if not gone]
                for column in raws
            ]
            if not kept[0]:
                raise BadTable(source, None, "at least one value must not be missing")
            return kept, absent
        case _:
            assert_never(missing)


def _followed(paths: list[Ints], missing: Missing) -> list[Ints]:
    """Values that follow each other: a gap is closed, or parts what stands around it."""
    if missing is Missing.SKIP:
        cuts = [np.split(path, np.flatnonzero(path < 0)) for path in paths]
        paths = [part for parts in cuts for part in parts]
    closed = [path[path >= 0] for path in paths]
    return [path for path in closed if path.size]


def _distances(raws: list[list[Raw]], encoding: Encoding, unit: str) -> tuple[int, float | None]:
    """How many values lie beyond the range, and how far values are from the middles of bins."""
    middles = encoding.alphabet.coordinates
    if isinstance(encoding, Symbols) or middles is None:
        return 0, None
    points = list(zip(*raws, strict=True))
    clipped = sum(encoding.outside(*point) for point in points)
    codes = [encoding.alphabet.index(encoding.encode(*point)) for point in points]
    where = np.array([encoding.places(*point) for point in points])
    return clipped, float((apart(where, middles[codes], unit) / len(points)).sum())


def _with_table(report: FitReport, table: tuple[int, int, float | None], cut: Cut) -> FitReport:
    missing, clipped, rounding = table
    unit = "km" if cut.unit == DEGREES else cut.unit
    return replace(report, missing=missing, clipped=clipped, rounding=rounding, unit=unit)


def _fit_library(
    encoding: Encoding,
    paths: list[Ints],
    columns: tuple[str, tuple[str, ...]],
    kept: tuple[int, int],
    smoothing: tuple[float, float],
) -> tuple[StreamModel, FitReport]:
    labels, (width, most), (pseudo, floor) = encoding.alphabet.labels, kept, smoothing
    checks.count("--batch", width)
    checks.count("--patterns", most, at_least=width)
    told = [[labels[place] for place in path] for path in paths]
    library = PatternLibrary.fit(
        told, width=width, most=most, alphabet=encoding.alphabet, smoothing=pseudo, floor=floor
    )
    batches = [
        path[start : start + width] for path in paths for start in range(0, len(path), width)
    ]
    known = {tuple(row[row >= 0].tolist()) for row in library.patterns}
    share = sum(tuple(batch.tolist()) in known for batch in batches) / len(batches)
    moves = len(batches) - len(paths)
    model = StreamModel(library, encoding, *columns, moves)
    warnings = []
    if share < _FEW_KEPT:
        warnings.append(
            f"only {share:.0%} of the batches are kept patterns; the others are taken for the "
            "nearest one, which costs utility: keep more patterns, or take shorter batches"
        )
    symbols = np.bincount(np.concatenate(paths), minlength=len(labels))
    rare = symbols / symbols.sum() < min(_RARE, 0.1 / len(labels))
    return model, FitReport(
        streams=len(paths),
        rows=int(symbols.sum()),
        symbols=len(labels),
        transitions=moves,
        rare=tuple(labels[i] for i in np.flatnonzero(rare)),
        predictability=predictability(library.chain),
        estimation_error=math.nan if moves == 0 else _library_error(library, moves),
        warnings=tuple(warnings),
        patterns=len(library.patterns),
        kept=share,
    )


def _library_error(library: PatternLibrary, moves: int) -> float:
    share = library.chain.stationary()
    return _estimation_error(len(share), share * moves, share)


def _read(
    history: Table, stream: str, values: tuple[str, ...], progress: Progress | None
) -> tuple[dict[str, int], list[list[int]], list[list[Raw]]]:
    """Stream names, the rows of each stream in order, and the raw columns."""
    names: dict[str, int] = {}
    paths: list[list[int]] = []
    raws: list[list[Raw]] = [[] for _ in values]
    for chunk in history.chunks([stream, *values]):
        for offset, owner in enumerate(chunk.columns[stream]):
            name = stream_name(owner, stream, history.path, chunk.first + offset)
            place = names.setdefault(name, len(names))
            if place == len(paths):
                paths.append([])
            paths[place].append(chunk.first + offset - 1)
        for column, name in zip(raws, values, strict=True):
            column.extend(chunk.columns[name])
        if progress:
            progress(chunk.first + len(chunk) - 1)
    if not names:
        raise BadTable(history.path, None, "the table must have at least one row")
    return names, paths, raws


def _encoding(raws: list[list[Raw]], cut: Cut, source: str) -> Encoding:
    if len(raws) == 2:
        if cut.columns is None or cut.rows is None:
            raise InvalidParameter("cut", "no grid", "give the columns and rows of a grid")
        xs, ys = (_numbers(column, source) for column in raws)
        if not cut.ranges:
            return Grid.covering(xs, ys, cut.columns, cut.rows)
        if len(cut.ranges) != 2:
            raise InvalidParameter("--range", cut.ranges, "be two ranges for a grid")
        grid = Grid.covering(*cut.ranges, cut.columns, cut.rows)
        return Grid(grid.x_edges, grid.y_edges, clip=True)
    if cut.bins is not None:
        numbers = _numbers(raws[0], source)
        if not cut.ranges:
            return Bins.covering(numbers, cut.bins)
        return Bins(Bins.covering(cut.ranges[0], cut.bins).edges, clip=True)
    if cut.ranges or cut.unit:
        raise InvalidParameter("--range and --units", "names", "come with --bins or --grid")
    return Symbols.of(read_each(raws[0], text, source))


def _numbers(column: list[Raw], source: str) -> list[float]:
    return read_each(column, number, source)


def _codes(raws: list[list[Raw]], encoding: Encoding, source: str) -> Ints:
    index = encoding.alphabet.index
    try:
        return np.array([index(encoding.encode(*point)) for point in zip(*raws, strict=True)])
    except UnknownSymbol as problem:
        raise BadTable(source, None, str(problem)) from None


def _report(
    chain: MarkovChain | PairChain,
    symbols: Floats,
    seen: Floats,
    streams: int,
    transitions: int,
) -> FitReport:
    share = symbols / symbols.sum()
    labels = chain.alphabet.labels
    rare = tuple(labels[i] for i in np.flatnonzero(share < min(_RARE, 0.1 / chain.size)))
    error = _estimation_error(chain.size, seen, share)
    warnings = []
    if transitions == 0:
        warnings.append("no stream is longer than the order: the chain knows no transition")
    elif error > math.log(2):
        warnings.append(
            f"the history is small for order {chain.order}: in a typical context the leakage may "
            f"be misjudged by {error:.2g} (LIP Cor. 7); a lower order or more history would help"
        )
    rows = int(symbols.sum())
    if isinstance(chain, PairChain):
        strength = 1 - float(seen @ chain.entropies()) / max(seen.sum(), 1) / _entropy(share)
    else:
        strength = predictability(chain)
    return FitReport(streams, rows, chain.size, transitions, rare, strength, error, tuple(warnings))


def predictability(chain: MarkovChain) -> float:
    """Share of the entropy of a value that its `order` predecessors take away.

    Examples:
        >>> predictability(MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]]))
        0.0
    """
    context = chain.stationary()
    alone = _entropy(chain.following(Belief(context, axis=chain.order - 1)).marginal)
    given = float(context.ravel() @ row_entropies(chain))
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
    return np.asarray(values * np.log(np.where(values > 0, values, 1.0)))


def _entropy(probabilities: Floats) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())


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
    spread = math.sqrt(2 * (size - math.log(1 - _CONFIDENCE)) / samples)
    return math.log1p(spread / (2 * typical))
