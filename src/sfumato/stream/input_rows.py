"""The rows of a live table: who, when, what, and which of them may have an old answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from sfumato.core.alphabet import Label
from sfumato.core.errors import InvalidParameter
from sfumato.core.periods import Period
from sfumato.core.state import StreamState
from sfumato.models.cycle import Calendar, Cycle
from sfumato.models.encoding import Raw, Unreadable, clipped, is_missing, text
from sfumato.models.stream_model import StreamModel
from sfumato.store.chain import value_tag
from sfumato.store.ledgered_run import LedgeredRun
from sfumato.store.protocol import Answer, Identity, Input, LedgerMismatch
from sfumato.tables.cells import MISSING_SYMBOL, Late, Missing, Time
from sfumato.tables.input_groups import EventColumns, EventReader, EventRow, TimeOrder, until_broken
from sfumato.tables.pass_through import PassThrough
from sfumato.tables.problems import BadTable
from sfumato.tables.readers import STANDARD, Chunk


@dataclass(frozen=True, slots=True)
class Reading(EventColumns):
    """Which columns of a live table mean what, and which leave beside the answers.

    Attributes:
        keep: Columns that leave as they are: the time, and those in
        independent: columns that are declared to tell nothing of the values.
        missing: What becomes of a missing value.
        late: What becomes of a row that goes back in time.
    """

    keep: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()
    missing: Missing = Missing.REFUSE
    late: Late = Late.REFUSE

    def columns(self, model: StreamModel) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys([model.stream, *model.values, *self.names, *self.keep]))

    def check(self, model: StreamModel, period: Period | None = None) -> None:
        """Refuse columns that would let a value out, and rules that cannot be kept.

        Args:
            model: The model of the release.
            period: The periods of time that its budget is for, if it is for such.
        """
        if self.event is not None and self.event in model.values:
            rule = "not hold the values: ids are released"
            raise InvalidParameter("the event column", self.event, rule)
        if self.time is not None and self.time in (*model.values, model.stream):
            raise InvalidParameter("the time column", self.time, "hold times alone")
        self._check_kept(model)
        self._check_phases(model)
        if period is not None:
            self._check_times(f"the budget is for each {period}", "periods")
        if self.missing is Missing.SYMBOL and MISSING_SYMBOL not in model.alphabet:
            rule = f"come with a model that knows the symbol {MISSING_SYMBOL}: fit it so"
            raise InvalidParameter("missing", "symbol", rule)

    def _check_phases(self, model: StreamModel) -> None:
        """Refuse to leave anybody without the phases that a certificate rests on."""
        if model.cycle is None:
            return
        if model.cycle.in_turn:
            if self.missing is Missing.DROP:
                # The phase is the place in the stream: all values after it would get another's.
                rule = "not be drop: values have phases in turn, so a missing one has its own, too"
                raise InvalidParameter("missing (--missing)", self.missing.value, rule)
            return
        self._check_times(f"the model changes with time ({model.cycle})", "phases")

    def _check_times(self, because: str, read: str) -> None:
        """Refuse to leave an audit without the times that it reads phases or periods from."""
        if self.time is None:
            raise InvalidParameter("the time column (--time)", None, f"be given: {because}")
        if self.time not in self.keep:
            rule = f"name {self.time!r}: {read} are public, and an audit reads them from the times"
            raise InvalidParameter("keep", self.keep or None, rule)
        if self.late is not Late.REFUSE:
            rule = f"be refuse: {because}, and follows the order of times"
            raise InvalidParameter("late", self.late.value, rule)

    def _check_kept(self, model: StreamModel) -> None:
        beside = PassThrough.of(self.keep, self.independent, model.values)
        for name in beside.columns:
            if name in (model.stream, self.event):
                rule = "not name streams or events: they leave anyway"
                raise InvalidParameter("keep", name, rule)
        for name in beside.linked:
            if name != self.time:
                rule = (
                    "name the time column, or columns that you declare independent: what leaves "
                    "beside a value and tells of it is not in the certificate"
                )
                raise InvalidParameter("keep", name, rule)


@dataclass(frozen=True, slots=True)
class Row(EventRow):
    """One row.

    Attributes:
        symbol: The value; None if it is outside the alphabet.
        silent: Whether the value is missing and its moment passes.
        beside: Cells that leave beside the answer.
        tag: Keyed digest of the value.
        phase: That of its time, under a model that changes with time.
        period: That of its time, under a budget for periods of time.
    """

    symbol: Label | None
    silent: bool
    beside: tuple[str | None, ...]
    tag: bytes
    phase: int | None = None
    period: int | None = None


class RowReader:
    """Reads the rows of one input, chunk by chunk.

    Args:
        path: The input, for messages.
        model: How its values become symbols.
        reading: Which columns mean what.
        source: The input as the ledger knows it.
        period: The periods of time that the budget is for, if it is for such.

    Attributes:
        path: The input, for messages.
        model: How its values become symbols.
        missing: How many values were missing so far.
        clipped: How many lay beyond the range of the model and were taken for its edge.
    """

    def __init__(
        self,
        path: str,
        model: StreamModel,
        reading: Reading,
        source: Input,
        period: Period | None = None,
    ) -> None:
        self.path, self.model = path, model
        self._period = period
        self._reading = reading
        self._source = source
        self._events = EventReader(path, reading, source.label)
        self.missing = self.clipped = 0

    @property
    def shows_ids(self) -> bool:
        """Whether event ids leave beside the answers."""
        return self._reading.event is not None

    def read(self, chunk: Chunk) -> tuple[list[Row], BadTable | None]:
        """The rows up to the first that breaks a rule, and what it broke."""
        return until_broken(self._rows(chunk))

    def _rows(self, chunk: Chunk) -> Iterator[Row]:
        columns, reading = chunk.columns, self._reading
        values = zip(*(columns[name] for name in self.model.values), strict=True)
        for offset, value in enumerate(values):
            place = chunk.first + offset
            stream = self._events.cell(text, self.model.stream, chunk, offset)
            gone = any(is_missing(cell) for cell in value)
            if gone and reading.missing is not Missing.REFUSE:
                self.missing += 1
            if gone and reading.missing is Missing.DROP:
                continue
            time = self._events.time(chunk, offset)
            id_ = self._events.id(chunk, offset, stream, time)
            silent = gone and reading.missing is Missing.SKIP
            symbol = self._symbol(value, place, gone)
            tag = value_tag(self._source.secret, id_, stream, MISSING_SYMBOL if silent else symbol)
            beside = tuple(as_text(columns[name][offset]) for name in reading.keep)
            when = self._when(time, place)
            yield Row(id_, stream, place, time, symbol, silent, beside, tag, *when)

    def _when(self, time: Time | None, place: int) -> tuple[int | None, int | None]:
        """Phase and period of a row; None where there are none, or phases come in turn."""
        cycle, period = self.model.cycle, self._period
        try:
            return (
                None if cycle is None or cycle.in_turn else phase_of(cycle, time),
                None if period is None else period_of(period, time),
            )
        except Unreadable as problem:
            raise BadTable(self.path, place, str(problem)) from None

    def _symbol(self, value: tuple[Raw, ...], place: int, gone: bool) -> Label | None:
        if gone and self._reading.missing is Missing.SKIP:
            return None
        if gone and self._reading.missing is Missing.SYMBOL:
            return MISSING_SYMBOL
        try:
            symbol = self.model.encoding.encode(*value)
            self.clipped += symbol is not None and clipped(self.model.encoding, value)
            return symbol
        except Unreadable as problem:
            remedy = " (see --missing)" if gone else ""
            raise BadTable(self.path, place, f"the value {problem}{remedy}") from None


class RowChecks:
    """What must hold of a row besides its value, given the rows before it and the ledger.

    Args:
        path: The input, for messages.
        ledger: What was answered before.
        reading: Which columns mean what.
        remark: Told what a person should know.
        last_time: When the last row of a stream was; the ledger says it unless given.
        in_order: Whether rows that go back in time can never be taken: phases, or periods of the
            budget, follow from times.

    Attributes:
        live: Whether the rows come through a pipe; whoever sends them may send one again.
    """

    def __init__(
        self,
        path: str,
        ledger: LedgeredRun[StreamState],
        reading: Reading,
        remark: Callable[[str], None] | None,
        last_time: Callable[[str], str | None] | None = None,
        *,
        in_order: bool = False,
    ) -> None:
        self._path = path
        self._ledger = ledger
        self._reading = reading
        self._remark = remark
        self._in_order = in_order
        self.live = path == STANDARD
        advice = "sort the table"
        if not in_order:
            advice += ", or release rows as they come (--late accept)"
        self._order = TimeOrder(path, reading.time, last_time or ledger.last_time, advice)
        self._remarked: set[str] = set()

    def check_retry(self, answer: Answer, row: Row) -> None:
        """Refuse an old answer to another value or time, or to another row of this very input.

        Raises:
            BadTable: If the row is no retry; nothing is drawn for it either.
        """
        resumed = self._reading.identity is Identity.ROW
        # Whoever sends rows through a pipe may send one again; a table that has it twice is wrong.
        if self._ledger.answered_here(answer) and not (resumed or self.live):
            raise self.twice(answer.stream, answer.place, row)
        try:
            compared = self._ledger.check_retry(answer, row.stream, row.tag)
        except LedgerMismatch as problem:
            raise BadTable(self._path, row.place, str(problem)) from None
        if self._in_order and row.time is not None and answer.time not in (None, row.time.text):
            # The old answer would leave in a period, or phase, that it was not drawn in.
            rule = "this event id was answered before, for another time; send it with that time"
            raise BadTable(self._path, row.place, rule)
        if self._remark and not compared and answer.source not in self._remarked:
            self._remarked.add(answer.source)
            self._remark(
                f"{self._path}, row {row.place}: answered before; whether its value is the "
                "same cannot be told, because the key file of that run is gone"
            )

    def twice(self, stream: str, first: int, row: Row) -> BadTable:
        """What is wrong with a row whose event stands in an earlier row of the same input."""
        rule = f"an event id must occur once; it stands in row {first} too"
        if self._reading.identity is Identity.TIME:
            rule = f"a stream must have one row for each time; row {first} has it too"
        elif stream != row.stream:
            rule = "an event id must not occur in two streams"
        return BadTable(self._path, row.place, rule)

    def forget_times(self) -> None:
        """Ask anew for the last times of streams: other rows have come in between."""
        self._order.forget()

    def check_order(self, row: Row) -> None:
        """Refuse a row that goes back in time, unless it was said that some do."""
        self._order.check(row, late=self._reading.late is Late.ACCEPT)


def phase_of(cycle: Cycle, time: Time | None) -> int:
    """The phase of the time of a row, or the rule that was broken.

    Examples:
        >>> phase_of(Cycle.of("hour"), Time.of("2024-05-01T08:30"))
        8
    """
    if time is None:
        raise Unreadable("the time must be given")
    if not time.clock and cycle.calendar in (Calendar.HOUR, Calendar.HOUR_OF_WEEK):
        raise Unreadable("the time must say the hour: the model changes with it, and days have all")
    try:
        return cycle.at(time.value)
    except InvalidParameter as problem:
        raise Unreadable(f"the time must {problem.rule}") from None


def period_of(period: Period, time: Time | None) -> int:
    """The period of the time of a row, or the rule that was broken.

    Examples:
        >>> period_of(Period("day"), Time.of("1970-01-02T01:30+02:00"))
        0
    """
    if time is None:
        raise Unreadable("the time must be given")
    if not time.clock and period.needs_clock:
        raise Unreadable(f"the time must say the hour: the budget is for each {period}")
    try:
        return period.at(time.value)
    except InvalidParameter as problem:
        raise Unreadable(f"the time must {problem.rule}") from None


def as_text(cell: object) -> str | None:
    """A cell as text: what is kept looks alike in every format."""
    if cell is None:
        return None
    return cell.isoformat() if isinstance(cell, date) else str(cell)
