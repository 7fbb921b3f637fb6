"""From a table of recorded streams to a model, with a report of what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.progress import Progress
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import (
    DEGREES,
    Bins,
    Encoding,
    Grid,
    Raw,
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
from sfumato.models.periodic import PeriodicChain
from sfumato.models.stream_model import StreamModel
from sfumato.models.value_chains import ValueChain
from sfumato.stream.cluster_report import fit_mixture
from sfumato.stream.fit_report import FitReport, chain_report, library_report
from sfumato.stream.periodic_fit import check_cycle, periodic_report, row_phases
from sfumato.tables.cells import MISSING_SYMBOL, Missing, missing_rows, read_each, stream_name
from sfumato.tables.problems import BadTable, EmptyTable
from sfumato.tables.readers import Table

_PAIRS_BEYOND = 4_000_000
"""Contexts of order 2 beyond which only those that occur are kept: a belief takes 32 MB."""


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
    clusters: int | str | None = None,
    missing: Missing = Missing.REFUSE,
    cycle: Cycle | None = None,
    time: str | None = None,
    progress: Progress | None = None,
) -> tuple[StreamModel, FitReport]:
    r"""Fit a chain, a mixture of chains or a library of patterns to a table, one row per value.

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
        clusters: Fit a mixture of so many chains, each stream following one of them; "auto" for
            as many as predict streams held out.
        missing: What becomes of a missing value: refuse; drop, so that its neighbours follow each
            other; symbol, one of its own; skip, so that its neighbours do not.
        cycle: Fit a chain that changes with time, with these phases.
        time: Column of the times that phases follow from; none where values have them in turn.
        progress: Called with the number of rows read so far.

    Examples:
        >>> from sfumato.tables.readers import Table
        >>> path = getfixture("tmp_path") / "history.csv"
        >>> _ = path.write_text("stream,value\n" + 20 * "ann,home\nann,home\nann,work\n")
        >>> model, report = fit_table(Table.at(str(path)))
        >>> model.alphabet.labels, report.rows
        (('home', 'work'), 60)
    """
    if checks.count("order", order) > 1 and batch is not None:
        raise InvalidParameter("order", order, "be 1 for a library: patterns follow patterns")
    check_cycle(cycle, time, order, batch)
    if clusters is not None:
        _check_clusters(clusters, order, batch, missing, cycle)
    columns = values if time is None else (*values, time)
    names, paths, raws = read_history(history, stream, columns, progress)
    times = None if time is None else raws.pop()
    raws, absent = _without_missing(raws, missing, cut, history.path)
    try:
        encoding = encoding_of(raws, cut, history.path)
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
    places = _followed(
        [np.where(codes[path] < 0, -1, path) for path in map(np.array, paths)], missing
    )
    by_stream = [codes[path] for path in places]
    chain: ValueChain | PatternLibrary | PeriodicChain
    report: FitReport
    if cycle is not None:
        cycle, phases = row_phases(cycle, times, paths, history.path)
        own = [phases[path] for path in places]
        chain = PeriodicChain.of_places(encoding.alphabet, cycle, by_stream, own, smoothing, floor)
        asked = (smoothing, floor)
        report = replace(periodic_report(chain, by_stream, own, asked), streams=len(names))
    elif clusters is not None:
        chain, report = fit_mixture(encoding, by_stream, clusters, (smoothing, floor))
    elif batch is not None:
        checks.count("--batch", batch)
        checks.count("--patterns", patterns, at_least=batch)
        chain, report = _fit_library(encoding, by_stream, (batch, patterns), (smoothing, floor))
    else:
        chain, report = _fit_chain(encoding, by_stream, order, (smoothing, floor))
        report = replace(report, streams=len(names))
    model = StreamModel(chain, encoding, stream, values, report.transitions, cut.unit)
    clipped, rounding = _distances(raws, encoding, cut.unit)
    return model, replace(
        report,
        missing=int(absent.sum()),
        clipped=clipped,
        rounding=rounding,
        unit="km" if cut.unit == DEGREES else cut.unit,
    )


def uniform_model(
    cut: Cut,
    symbols: Sequence[str] | None = None,
    *,
    stream: str = "stream",
    values: tuple[str, ...] = ("value",),
) -> StreamModel:
    """A model without a history: every value as likely as any other, whatever came before.

    Args:
        cut: How numbers become symbols, with the ranges that they are cut from; or
        symbols: the symbols themselves.
        stream: Column that tells streams apart.
        values: Column of the value; two columns for a grid.

    Examples:
        >>> start = uniform_model(AS_IT_IS, ["home", "work"])
        >>> start.single_values.transition()
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    cells = cut.bins is not None or cut.columns is not None
    if (symbols is not None) == cells:
        raise InvalidParameter("--uniform", None, "come with --values, or with --bins or --grid")
    if cells and not cut.ranges:
        raise InvalidParameter("--range", None, "be given with --uniform: there is no history")
    # Cells are cut from ranges alone; no raw value is needed.
    raws: list[list[Raw]] = [list(symbols)] if symbols is not None else [[] for _ in values]
    encoding = encoding_of(raws, cut, "--values")
    size = len(encoding.alphabet)
    chain = MarkovChain.from_matrix(
        np.full((size, size), 1 / size), np.full(size, 1 / size), encoding.alphabet
    )
    return StreamModel(chain, encoding, stream, values, 0, cut.unit)


def _fit_chain(
    encoding: Encoding, paths: list[Ints], order: int, smoothing: tuple[float, float]
) -> tuple[MarkovChain | PairChain, FitReport]:
    size = len(encoding.alphabet)
    chain: MarkovChain | PairChain
    if order == 2 and size**2 > _PAIRS_BEYOND:
        chain, seen = PairChain.of_places(encoding.alphabet, paths, *smoothing)
    else:
        counts = count_transitions(paths, size, order)
        chain = MarkovChain(encoding.alphabet, order, *smoothed_parts(counts, order, *smoothing))
        seen = np.asarray(counts.moves.sum(axis=1)).ravel()
    return chain, chain_report(chain, paths, seen)


def _check_clusters(
    clusters: int | str, order: int, batch: int | None, missing: Missing, cycle: Cycle | None
) -> None:
    """Refuse what a mixture of chains is not fitted to."""
    for name, given, plain in (
        ("--order", order, 1),
        ("--batch", batch, None),
        ("--period", None if cycle is None else cycle.period, None),
        ("--missing", missing.value, missing.value if missing is not Missing.SKIP else None),
    ):
        if given != plain:
            rule = f"not come with --clusters {clusters}: whole streams follow chains of order 1"
            raise InvalidParameter(name, given, rule)


def _fit_library(
    encoding: Encoding, paths: list[Ints], size: tuple[int, int], smoothing: tuple[float, float]
) -> tuple[PatternLibrary, FitReport]:
    labels, (width, most), (pseudo, floor) = encoding.alphabet.labels, size, smoothing
    library = PatternLibrary.fit(
        [[labels[place] for place in path] for path in paths],
        width=width,
        most=most,
        alphabet=encoding.alphabet,
        smoothing=pseudo,
        floor=floor,
    )
    return library, library_report(library, paths)


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


def read_history(
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
        raise EmptyTable(history.path, None, "the table must have at least one row")
    return names, paths, raws


def encoding_of(raws: list[list[Raw]], cut: Cut, source: str) -> Encoding:
    """The symbols that occur in some columns, or bins and cells over the range of their numbers."""
    if len(raws) == 2:
        if cut.columns is None or cut.rows is None:
            raise InvalidParameter("cut", "no grid", "give the columns and rows of a grid")
        xs, ys = (read_each(column, number, source) for column in raws)
        if not cut.ranges:
            return Grid.covering(xs, ys, cut.columns, cut.rows)
        if len(cut.ranges) != 2:
            raise InvalidParameter("--range", cut.ranges, "be two ranges for a grid")
        grid = Grid.covering(*cut.ranges, cut.columns, cut.rows)
        return Grid(grid.x_edges, grid.y_edges, clip=True)
    if cut.bins is not None:
        numbers = read_each(raws[0], number, source)
        if not cut.ranges:
            return Bins.covering(numbers, cut.bins)
        return Bins(Bins.covering(cut.ranges[0], cut.bins).edges, clip=True)
    if cut.ranges or cut.unit:
        raise InvalidParameter("--range and --units", "names", "come with --bins or --grid")
    return Symbols.of(read_each(raws[0], text, source))


def _codes(raws: list[list[Raw]], encoding: Encoding, source: str) -> Ints:
    index = encoding.alphabet.index
    try:
        return np.array([index(encoding.encode(*point)) for point in zip(*raws, strict=True)])
    except UnknownSymbol as problem:
        raise BadTable(source, None, str(problem)) from None
