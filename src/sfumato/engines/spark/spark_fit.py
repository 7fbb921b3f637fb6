"""A model from the streams of a frame: whole numbers are counted, the rest is the local fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from sfumato.core import checks, limits
from sfumato.core.arrays import Bools, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.engines.spark.column_names import column, mapped
from sfumato.engines.spark.rising_order import RisingOrder
from sfumato.engines.spark.stream_frames import StreamColumns, check_together, gathered
from sfumato.engines.spark.worker_failures import without_values
from sfumato.models.encoding import Encoding, Unreadable, is_missing, number, text
from sfumato.models.fitting import Counts, context_count, smoothed_parts
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.stream.column_values import Irregular, encoded_values
from sfumato.stream.fit_model import AS_IT_IS, Cut, encoding_of
from sfumato.tables.batches import Batch, Column
from sfumato.tables.cells import MISSING_SYMBOL, Missing
from sfumato.tables.problems import BadTable

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_MOVES, _STARTS, _SYMBOLS, _SEQUENCES = range(4)
_TALLIED = "kind long, code long, times long"
_HELD = 1 << 20
"""Different moves that a worker holds before it sends what it has counted."""


def fit(
    frame: DataFrame,
    *,
    order: str,
    stream: str = "stream",
    value: str | tuple[str, ...] = "value",
    chain_order: int = 1,
    smoothing: float = 0.5,
    floor: float = 1e-6,
    cut: Cut = AS_IT_IS,
    missing: str = "refuse",
    partitions: int | None = None,
) -> StreamModel:
    """Fit a chain to the streams of a frame: just the model that `sfumato fit` makes of its rows.

    The frame is read twice: for the values that occur, or their range, and for what follows what.

    Args:
        frame: One row per value; rows in any order.
        order: Column of times or numbers that gives the rows of a stream their order.
        stream: Column that tells streams apart.
        value: Column of the value; two columns for a grid.
        chain_order: How many past values the next one depends on.
        smoothing: Pseudo-counts per follower that a context has.
        floor: Least probability of any transition.
        cut: How numbers become symbols.
        missing: What becomes of a missing value, as in `fit_table`.
        partitions: Parts that streams are shared out to; by the size of the frame if not given.

    Raises:
        InvalidParameter: If the columns are not there, or the chain would not fit into memory.

    Examples:
        With a session at hand, `spark`:

        ```python
        import secrets
        import sfumato as sf
        rows = [("ann", time, "home" if time % 5 else "work") for time in range(40)]
        frame = spark.createDataFrame(rows, ["user", "time", "cell"])
        model = sf.spark.fit(frame, order="time", stream="user", value="cell")
        assert model.alphabet.labels == ("home", "work")
        ```
    """
    values = (value,) if isinstance(value, str) else value
    rule = checks.choice("missing", Missing, missing)
    columns = StreamColumns(stream, order, values)
    columns.check(frame)
    encoding = _encoding(frame, values, cut, rule)
    context_count(len(encoding.alphabet), chain_order)
    rows = columns.arranged(frame, partitions)
    worker = _Tallying(to_bytes(_bare(encoding)), stream, order, values, chain_order, rule)
    found = mapped(rows, worker, _TALLIED).groupBy("kind", "code").sum("times").toArrow()
    counts = _counts(found, len(encoding.alphabet), chain_order)
    parts = smoothed_parts(counts, chain_order, smoothing, floor)
    chain = MarkovChain(encoding.alphabet, chain_order, *parts)
    return StreamModel(chain, encoding, stream, values, int(counts.moves.sum()), cut.unit)


def _bare(encoding: Encoding) -> StreamModel:
    """An encoding on its way: with a model that says nothing."""
    size = len(encoding.alphabet)
    even = np.full(size, 1 / size)
    parts = (even, np.zeros((size, size)), np.ones(size), even)
    names = tuple("xy"[: encoding.inputs])
    return StreamModel(MarkovChain(encoding.alphabet, 1, *parts), encoding, "stream", names)


def _encoding(frame: DataFrame, values: tuple[str, ...], cut: Cut, missing: Missing) -> Encoding:
    """The symbols of the values that occur, or bins and cells over their range."""
    numbers = cut.bins is not None or len(values) > 1
    if numbers and missing is Missing.SYMBOL:
        rule = "be refuse, drop or skip with bins or a grid, whose symbols have places"
        raise InvalidParameter("missing", missing.value, rule)
    seen = mapped(
        frame.select(*map(column, values)),
        _Seeing(values, missing, numbers=numbers),
        "word string, low double, high double, axis int",
    )
    if not numbers:
        words = seen.select("word").distinct().limit(limits.SYMBOLS + 1).toArrow()["word"]
        raws: list[list[Any]] = [words.to_pylist()]
    else:
        ends = seen.groupBy("axis").agg({"low": "min", "high": "max"}).orderBy("axis").toArrow()
        pairs = zip(ends["min(low)"].to_pylist(), ends["max(high)"].to_pylist(), strict=True)
        raws = [list(pair) for pair in pairs]
    if not raws or not raws[0]:
        raise InvalidParameter("frame", "no value", "have at least one value")
    return encoding_of(raws, cut, "the frame")


class _Seeing:
    """The different words of a partition, or the range of its numbers; for `mapInArrow`."""

    def __init__(self, values: tuple[str, ...], missing: Missing, *, numbers: bool) -> None:
        self._values, self._missing, self._numbers = values, missing, numbers

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        names = ["word", "low", "high", "axis"]
        with without_values():
            for batch in gathered(parts):
                columns = [batch.columns[name] for name in self._values]
                kept = self._kept(columns)
                found = [list(self._read(one, kept)) for one in columns]
                if self._numbers:
                    ends = [(min(own), max(own), axis) for axis, own in enumerate(found) if own]
                    rows: list[tuple[Any, ...]] = [(None, *end) for end in ends]
                else:
                    rows = [(word, None, None, None) for word in found[0]]
                kinds = [pa.string(), pa.float64(), pa.float64(), pa.int32()]
                cells = zip(*rows, strict=True) if rows else [[]] * 4
                arrays = [pa.array(list(one), kind) for one, kind in zip(cells, kinds, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, names=names)

    def _kept(self, columns: list[Column]) -> Bools:
        """Rows that hold something in each of their columns."""
        kept = np.ones(len(columns[0]), dtype=np.bool_)
        if self._missing in (Missing.DROP, Missing.SKIP):
            for one in columns:
                codes, words = one.coded()
                gone = np.array([is_missing(word) for word in words], dtype=np.bool_)
                kept &= ~gone[codes]
        return kept

    def _read(self, one: Column, kept: Bools) -> Iterator[Any]:
        codes, words = one.coded()
        try:
            for place in np.unique(codes[kept]).tolist():
                word = words[place]
                if self._missing is Missing.SYMBOL and is_missing(word):
                    yield MISSING_SYMBOL
                else:
                    yield number(word) if self._numbers else text(word)
        except Unreadable as problem:
            raise BadTable("the frame", None, f"the value {problem}") from None


@dataclass(slots=True)
class _Tail:
    """What the next rows must know of those before: the last values of a sequence.

    Attributes:
        stream: Whose they are.
        codes: Its last values, as many as a context has at most.
        length: How many values it has had.
    """

    stream: str | None = None
    codes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    length: int = 0


class _Tallying:
    """How often what follows what in a partition; for `mapInArrow`."""

    def __init__(
        self,
        encoding: bytes,
        stream: str,
        order: str,
        values: tuple[str, ...],
        chain_order: int,
        missing: Missing,
    ) -> None:
        self._bytes, self._stream, self._order = encoding, stream, order
        self._values, self._chain_order, self._missing = values, chain_order, missing

    def __call__(self, parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with without_values():
            encoding = from_bytes(self._bytes, StreamModel).encoding
            tally, tail = _Tally(len(encoding.alphabet), self._chain_order), _Tail()
            rising = RisingOrder(self._order)
            for batch in gathered(parts):
                tail = self._add(tally, tail, rising, batch, encoding)
                if tally.held > _HELD:
                    yield tally.emptied()
            yield tally.emptied()

    def _add(
        self, tally: _Tally, tail: _Tail, rising: RisingOrder, batch: Batch, encoding: Encoding
    ) -> _Tail:
        owners, names = batch.columns[self._stream].coded()
        try:
            words = [text(name) for name in names]
            columns = [batch.columns[name] for name in self._values]
            found = encoded_values(encoding, self._missing, columns)
        except (Unreadable, Irregular):
            rule = "stream and value must not be empty, nor of another kind than the others"
            raise BadTable("the frame", None, rule) from None
        check_together(words, owners, tail.stream)
        rising.check(batch.columns[self._order], words, owners)
        apart = np.diff(owners, prepend=owners[0]) != 0
        apart[0] = tail.stream != words[0]
        present = found.cells >= 0
        if self._missing is Missing.SKIP:
            # A gap parts what stands around it, also where it ends one batch of rows.
            apart[1:] |= ~present[:-1]
            apart[0] |= tail.length < 0
        elif not present.all():
            apart = _first_of_each(owners, present, apart)
        ended = tally.add(found.cells[present], apart[present], tail) if present.any() else tail
        own = owners == owners[-1]
        if not (present & own).any() and (len(words) > 1 or tail.stream != words[0]):
            ended = _Tail()  # the last stream has had no value yet
        if self._missing is Missing.SKIP and not present[-1]:
            ended = _Tail(length=-1)
        ended.stream = words[-1]
        return ended


def _first_of_each(owners: Ints, present: Bools, apart: Bools) -> Bools:
    """Where streams begin, if rows without a value are left out."""
    moved = np.zeros_like(apart)
    began = np.cumsum(apart)
    rows = np.flatnonzero(present)
    _, first = np.unique(began[rows], return_index=True)
    starts = rows[first]
    moved[starts] = began[starts] > 0
    return moved


class _Tally:
    """Counts of moves, starts, symbols and sequences, as whole numbers."""

    def __init__(self, size: int, order: int) -> None:
        self._size, self._order = size, order
        self._parts: list[tuple[int, Ints, Ints]] = []
        self.held = 0

    def add(self, codes: Ints, apart: Bools, tail: _Tail) -> _Tail:
        """Count some successive values, of which some begin a sequence."""
        size, order = self._size, self._order
        starts = np.flatnonzero(apart)
        before = np.zeros(len(codes), dtype=np.int64)
        before[starts] = starts
        ranks = np.arange(len(codes)) - np.maximum.accumulate(before)
        goes_on = ~np.logical_or.accumulate(apart)
        ranks[goes_on] += max(tail.length, 0)
        known = np.concatenate([tail.codes, codes])
        shift = len(tail.codes)
        self._note(_SYMBOLS, codes)
        self._note(_SEQUENCES, np.zeros(int((ranks == 0).sum()), dtype=np.int64))
        for kind, lag, rows in (
            (_STARTS, 0, np.flatnonzero(ranks == order - 1)),
            (_MOVES, 1, np.flatnonzero(ranks >= order)),
        ):
            context = np.zeros(len(rows), dtype=np.int64)
            for back in range(order - 1 + lag, lag - 1, -1):
                context = context * size + known[rows + shift - back]
            self._note(kind, context * size + codes[rows] if kind == _MOVES else context)
        return _Tail(None, known[-order:].copy(), int(ranks[-1]) + 1)

    def _note(self, kind: int, codes: Ints) -> None:
        found, times = np.unique(codes, return_counts=True)
        self._parts.append((kind, found, times))
        self.held += len(found)

    def emptied(self) -> pa.RecordBatch:
        """What was counted since, as rows."""
        import pyarrow as pa

        none = np.empty(0, dtype=np.int64)
        kinds = [np.full(len(codes), kind, dtype=np.int64) for kind, codes, _ in self._parts]
        columns = (
            np.concatenate([none, *kinds]),
            np.concatenate([none, *(codes for _, codes, _ in self._parts)]),
            np.concatenate([none, *(times for *_, times in self._parts)]),
        )
        self._parts, self.held = [], 0
        arrays = [pa.array(one, pa.int64()) for one in columns]
        return pa.RecordBatch.from_arrays(arrays, names=["kind", "code", "times"])


def _counts(found: Any, size: int, order: int) -> Counts:
    """What all workers have counted."""
    kinds, codes, times = (found[name].to_numpy() for name in ("kind", "code", "sum(times)"))
    contexts = size**order
    starts, symbols = np.zeros(contexts), np.zeros(size)
    starts[codes[kinds == _STARTS]] = times[kinds == _STARTS]
    symbols[codes[kinds == _SYMBOLS]] = times[kinds == _SYMBOLS]
    rows, followers = np.divmod(codes[kinds == _MOVES], size)
    counted = times[kinds == _MOVES].astype(np.float64)
    moves = sparse.coo_array((counted, (rows, followers)), shape=(contexts, size))
    return Counts(
        starts,
        sparse.csr_array(sparse.csr_array((contexts, size)) + sparse.csr_array(moves)),
        symbols,
        int(times[kinds == _SEQUENCES].sum()),
    )
