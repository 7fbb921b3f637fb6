"""What left, stream by stream: read from released tables, or taken from events."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import OUTCOMES, Event
from sfumato.core.periods import Period
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import Unreadable
from sfumato.models.stream_model import StreamModel
from sfumato.stream.audit_ledger import When
from sfumato.stream.audit_rows import read_signal, released_symbol
from sfumato.stream.input_rows import period_of, phase_of
from sfumato.stream.name_order import name_key
from sfumato.tables.cells import Time
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import Chunk, Table

_CODES = {outcome.value: code for code, outcome in enumerate(OUTCOMES)}
_NONE = -1
_NO_PERIOD = -(2**63)
"""Periods before 1970 have numbers below 0."""


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedTracks:
    """Values of many streams, one stream after another, each in the order of its moments.

    Attributes:
        streams: Names of the streams.
        starts: Where the values of each begin, and the end.
        places: Places in the alphabet of the symbols that left; -1 for none.
        outcomes: What left, as places in `OUTCOMES`.
        began: The moment at which the batch of each value began; its own if it left alone.
        signals: Which output of its channel left, where a row says so; -1 where the symbol tells.
        rows: Number of the row that each came from, over all tables.
        source: What messages call the tables.
        phases: The phase of each value where it follows from its time; None if none was read.
        periods: The period of the budget that each value lies in; None if none was read.
    """

    streams: tuple[str, ...]
    starts: Ints
    places: Ints
    outcomes: Ints
    began: Ints
    signals: Ints
    rows: Ints
    source: str = "events"
    phases: Ints | None = None
    periods: Ints | None = None

    @property
    def moments(self) -> Ints:
        """The moment of each value, counted from 0 in its stream."""
        lengths = np.diff(self.starts)
        return np.arange(len(self.places)) - np.repeat(self.starts[:-1], lengths)

    def batches(self, stream: int) -> Iterator[tuple[int, int]]:
        """Where each batch of a stream begins, and how many values it has."""
        start, stop = int(self.starts[stream]), int(self.starts[stream + 1])
        edges = np.flatnonzero(np.diff(self.began[start:stop])) + 1
        bounds = [start, *(edges + start).tolist(), stop]
        for first, following in pairwise(bounds):
            if following > first:
                yield first, following - first

    def by_name(self) -> ReleasedTracks:
        """The same streams in the order of their names (`name_order`), whoever wrote them how.

        Examples:
            >>> from sfumato import LDP, SIP
            >>> from sfumato.core.events import Outcome
            >>> names = ("ann", "bob", "cid")
            >>> left = [Event(one, 0, Outcome.RELEASED, one, SIP(0.2), LDP(0.3)) for one in names]
            >>> ReleasedTracks.of(left, Alphabet(names)).by_name().places
            array([2, 0, 1])
        """
        order = sorted(range(len(self.streams)), key=lambda one: name_key(self.streams[one]))
        lengths = np.diff(self.starts)[order]
        starts = np.append(0, np.cumsum(lengths))
        own = np.repeat(self.starts[:-1][order] - starts[:-1], lengths) + np.arange(starts[-1])
        return ReleasedTracks(
            tuple(self.streams[one] for one in order),
            starts,
            self.places[own],
            self.outcomes[own],
            self.began[own],
            self.signals[own],
            self.rows[own],
            self.source,
            None if self.phases is None else self.phases[own],
            None if self.periods is None else self.periods[own],
        )

    def value_phases(self, cycle: Cycle) -> Ints:
        """The phase of every value under a model that changes with time.

        Raises:
            InvalidParameter: If phases follow from times that were not read.

        Examples:
            >>> from sfumato import LDP, SIP
            >>> from sfumato.core.events import Outcome
            >>> left = [Event("ann", k, Outcome.RELEASED, 0, SIP(0.2), LDP(0.3)) for k in range(3)]
            >>> ReleasedTracks.of(left, Alphabet([0, 1])).value_phases(Cycle.of("2"))
            array([0, 1, 0])
        """
        if cycle.in_turn:
            return np.array([cycle.turn(moment) for moment in self.moments.tolist()])
        if self.phases is None or self.phases.min(initial=0) < 0:
            rule = f"come with their times: the model has {cycle}"
            raise InvalidParameter("values", "without times", rule)
        return self.phases

    def refusal(self, row: int, rule: str) -> BadTable:
        """What is raised where a row breaks a rule."""
        return BadTable(self.source, row if row >= 0 else None, rule)

    @classmethod
    def of(
        cls, events: Mapping[str, Sequence[Event]] | Sequence[Event], alphabet: Alphabet
    ) -> ReleasedTracks:
        """The events of some streams, each from its first moment on.

        Examples:
            >>> from sfumato import LDP, SIP
            >>> from sfumato.core.events import Outcome
            >>> left = [Event("ann", 0, Outcome.RELEASED, "home", SIP(0.2), LDP(0.3))]
            >>> ReleasedTracks.of(left, Alphabet(["home", "work"])).places
            array([0])
        """
        given = events.values() if isinstance(events, Mapping) else [events]
        found = _Rows()
        for number, event in enumerate(one for stream in given for one in stream):
            place = _NONE if event.released is None else alphabet.index(event.released)
            began = event.sequence if event.batch is None else event.batch
            signal = getattr(event, "signal", None)
            code = _CODES[event.outcome.value]
            phase = _NONE if event.phase is None else event.phase
            moment = (event.sequence, place, code, began, _NONE if signal is None else signal)
            period = _NO_PERIOD if event.period is None else event.period
            found.add(event.stream, (*moment, phase, period), number + 1)
        return found.sorted("events")


def read_tracks(
    tables: Table | Sequence[Table],
    model: StreamModel,
    signal: str = "signal",
    time: str | None = None,
    period: Period | None = None,
) -> ReleasedTracks:
    r"""Read what `release` wrote: a file, or several in the order in which they were written.

    A row that only says again what was said before, as a retry does, is passed over.

    Args:
        tables: What `release` wrote.
        model: How it is read.
        signal: The column, if there is one, that says which output of its channel left; "version"
            for a release that learns, where it says which version a value left under.
        time: The column of times that left, under a model whose phases follow from them, or a
            budget whose periods do.
        period: The periods of time that the budget is for, if it is for such.

    Raises:
        BadTable: If a row is not as a release writes it, or a stream does not begin at 0.

    Examples:
        >>> import sfumato as sf
        >>> from sfumato.tables.readers import Table
        >>> folder = getfixture("tmp_path")
        >>> live, private = (Table.at(str(folder / name)) for name in ("live.csv", "private.csv"))
        >>> _ = (folder / "live.csv").write_text("stream,value\n" + 20 * "ann,home\nann,work\n")
        >>> model, _ = sf.stream.fit_table(live)
        >>> plan = sf.Plan(model.chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(model.alphabet))
        >>> _ = sf.stream.release_table(live, private, model, plan)
        >>> list(read_tracks(private, model).streams)
        ['ann']
    """
    found, done = _Rows(), 0
    several = [tables] if isinstance(tables, Table) else list(tables)
    if not several:
        raise InvalidParameter("released", "no file", "be at least one")
    when = When.under(model.cycle, period)
    if when.asked and time is None:
        because = f"the model has {model.cycle}"
        if period is not None:
            because = f"the budget is for each {period}"
        rule = f"be named, as in the plan of the release: {because}"
        raise InvalidParameter("the column of times", None, rule)
    times = [time] if when.asked and time is not None else []
    wanted = [model.stream, "sequence", "released", "outcome", *times]
    for table in several:
        symbols: dict[Any, int] = {None: _NONE, "": _NONE}
        last = 0
        for chunk in table.chunks(wanted, optional=["batch", signal]):
            _read(chunk, table.path, model, (signal, *times), when, symbols, found, done)
            last = chunk.first + len(chunk) - 1
        done += last
    return found.sorted(", ".join(table.path for table in several))


def _read(
    chunk: Chunk,
    path: str,
    model: StreamModel,
    names: tuple[str, ...],
    when: When,
    symbols: dict[Any, int],
    found: _Rows,
    before: int,
) -> None:
    """The rows of a chunk; the numbers of rows of earlier files come before its own."""
    columns, blank, (signal, *times) = chunk.columns, [None] * len(chunk), names
    cells = zip(
        columns[model.stream],
        columns["sequence"],
        columns["released"],
        columns["outcome"],
        columns.get("batch", blank),
        columns.get(signal, blank),
        columns[times[0]] if times else blank,
        strict=True,
    )
    for offset, (stream, sequence, released, outcome, batch, output, time) in enumerate(cells):
        row = chunk.first + offset
        try:
            moment, code = int(sequence), _CODES[outcome]
            began = moment if batch in (None, "") else int(batch)
            named = read_signal(output)
        except (ValueError, TypeError, KeyError):
            rule = f"outcome, sequence, batch and {signal} must be as the release wrote them"
            raise BadTable(path, row, rule) from None
        column = _NONE if named is None else named
        place = symbols.get(released)
        if place is None:
            try:
                place = model.alphabet.index(released_symbol(released, model))
            except (UnknownSymbol, Unreadable) as problem:
                raise BadTable(path, row, str(problem)) from None
            symbols[released] = place
        cells_of_row = (moment, place, code, began, column, *_when(time, when, path, row))
        found.add(str(stream), cells_of_row, before + row)


def _when(cell: object, when: When, path: str, row: int) -> tuple[int, int]:
    """The phase, and the period of the budget, that the time of a row lies in."""
    if not when.asked:
        return _NONE, _NO_PERIOD
    try:
        time = Time.of(cell)
        return (
            _NONE if when.cycle is None else phase_of(when.cycle, time),
            _NO_PERIOD if when.period is None else period_of(when.period, time),
        )
    except Unreadable as problem:
        raise BadTable(path, row, f"the time {problem}".replace("the time the", "the")) from None


class _Rows:
    """Rows as they come, in columns of whole numbers."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._streams, self._numbers = array("q"), array("q")
        self._cells = array("q")

    def add(self, stream: str, cells: tuple[int, ...], number: int) -> None:
        self._streams.append(self._names.setdefault(stream, len(self._names)))
        self._numbers.append(number)
        self._cells.extend(cells)

    def sorted(self, source: str) -> ReleasedTracks:
        """The same, stream by stream and moment by moment."""
        streams = np.array(self._streams, dtype=np.int64)
        cells = np.array(self._cells, dtype=np.int64).reshape(-1, 7)
        numbers = np.array(self._numbers, dtype=np.int64)
        if not streams.size:
            raise BadTable(source, None, "there must be at least one row")
        order = np.lexsort((numbers, cells[:, 0], streams))
        streams, cells, numbers = streams[order], cells[order], numbers[order]
        same = (np.diff(streams) == 0) & (np.diff(cells[:, 0]) == 0)
        differs = same & (cells[1:] != cells[:-1]).any(axis=1)
        if differs.any():
            row = int(numbers[1:][differs].min())
            raise BadTable(source, row, "a moment must say again what was said of it before")
        kept = np.append(True, ~same)
        streams, cells, numbers = streams[kept], cells[kept], numbers[kept]
        starts = np.append(0, np.cumsum(np.bincount(streams, minlength=len(self._names))))
        due = np.arange(len(streams)) - np.repeat(starts[:-1], np.diff(starts))
        wrong = np.flatnonzero(cells[:, 0] != due)
        if wrong.size:
            rule = f"the sequence number must be {due[wrong[0]]}; "
            rule += "a stream that goes on needs the files before this one"
            raise BadTable(source, int(numbers[wrong[0]]), rule)
        _, places, outcomes, began, signals, phases, periods = cells.T.copy()
        return ReleasedTracks(
            tuple(self._names),
            starts,
            places,
            outcomes,
            began,
            signals,
            numbers,
            source,
            phases if (phases != _NONE).any() else None,
            periods if (periods != _NO_PERIOD).all() else None,
        )
