"""The ledger's side of an audit: what it says streams did, also beyond the files at hand."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np

from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import CorruptData
from sfumato.core.events import OUTCOMES, Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.periods import Period
from sfumato.models.cycle import Cycle
from sfumato.models.encoding import Unreadable
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Answer, Released
from sfumato.stream.input_rows import period_of, phase_of
from sfumato.stream.release_spec import JOB
from sfumato.tables.cells import Time

_CODES = {outcome.value: code for code, outcome in enumerate(OUTCOMES)}


class Coverage(StrEnum):
    """How much of a ledger the audited files must hold.

    Attributes:
        INPUTS: All of every input that they hold anything of: a day, or several.
        PART: Whatever it is.
        WHOLE: Everything.
    """

    INPUTS = "inputs"
    PART = "part"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class When:
    """What follows from the time of a value; nothing, for most releases.

    Attributes:
        cycle: What comes again under the model, if its phases follow from times.
        period: The periods that the budget is for, if it is for such.
    """

    cycle: Cycle | None = None
    period: Period | None = None

    @classmethod
    def under(cls, cycle: Cycle | None, period: Period | None) -> When:
        """What follows from times under a model and a budget; phases in turn do not."""
        return cls(None if cycle is None or cycle.in_turn else cycle, period)

    @property
    def asked(self) -> bool:
        """Whether times must be known at all."""
        return self.cycle is not None or self.period is not None

    def said(self, event: Event, time: Time | None) -> Event:
        """An event with its phase and period, or the rule that its time breaks."""
        cycle, period = self.cycle, self.period
        return replace(
            event,
            phase=None if cycle is None else phase_of(cycle, time),
            period=None if period is None else period_of(period, time),
        )


class LedgerSide:
    """A ledger that files are compared with; it is only read.

    Attributes:
        problems: What is wrong with the ledger itself; then nothing is taken from it.
        head: Stands for all of its rows.
        alone: How many events of each input were found in no file.
        when: What follows from the times of answers.
    """

    def __init__(
        self, ledger: str | Path | LedgerReader, plan: str, when: When | None = None
    ) -> None:
        self.when = when or When()
        self._closing = contextlib.ExitStack()
        if not isinstance(ledger, LedgerReader):
            ledger = self._closing.enter_context(LedgerReader(ledger, plan, JOB))
        self._ledger = ledger
        report = checked(self._ledger)
        self.problems, self.head = report.problems, report.head
        self._held: Counter[str] = Counter()
        self.alone: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def moment(self, stream: str, sequence: int) -> Answer | None:
        """What the ledger says of a moment that a file holds."""
        with contextlib.suppress(CorruptData):  # said already, among the problems
            answer = self._ledger.moment(stream, sequence)
            if answer is not None:
                self._held[answer.source] += 1
            return answer
        return None

    def before(self, stream: str, first: int, until: int) -> Iterator[list[Event]]:
        """What a stream did from one moment until another, batch by batch."""
        if self.problems or first >= until:
            return
        for _, batch in groupby(self._ledger.rest(stream, first), key=_batch):
            told = list(batch)
            if told[0].sequence >= until:
                return
            self.alone.update(answer.source for answer in told)
            yield [event_of(answer, self.when) for answer in told]

    def answers(self, spans: Iterable[tuple[str, int, int]]) -> list[Answer] | None:
        """What streams did between two moments each, stream after stream; None if one is missing.

        Args:
            spans: Each stream, the first moment and the one after the last.
        """
        found: list[Answer] = []
        for stream, first, until in spans:
            told = self._ledger.between(stream, first, until)
            if len(told) != until - first:
                return None
            found += told
        return found

    def times(self, events: Sequence[Event]) -> list[Time | None]:
        """When successive events of a stream happened; None where the ledger does not say."""
        stream, first = events[0].stream, events[0].sequence
        answers = self._ledger.between(stream, first, first + len(events))
        return [None if answer.time is None else Time.of(answer.time) for answer in answers]

    def hold(self, answers: Iterable[Answer]) -> None:
        """Count answers that the files hold, too."""
        self._held.update(answer.source for answer in answers)

    def streams(self) -> Iterator[tuple[str, int]]:
        """The streams, and how many moments each has."""
        return iter(()) if self.problems else iter(list(self._ledger.streams()))

    def missing(self, coverage: Coverage) -> Iterator[tuple[str, int]]:
        """The inputs of which files lack events that they must hold, and how many."""
        for source, count in self.alone.items():
            if coverage is Coverage.WHOLE or (coverage is Coverage.INPUTS and self._held[source]):
                yield source, count


def event_of(answer: Answer, when: When | None = None) -> Event:
    """What a stored answer says that happened; with what follows from its time."""
    try:
        outcome = Outcome(answer.outcome)
    except ValueError:
        raise CorruptData(
            f"the ledger holds an outcome of no release: {answer.outcome!r}"
        ) from None
    event = Event(
        answer.stream,
        answer.sequence,
        outcome,
        None if answer.released is None else symbol_of(answer.released),
        SIP(answer.leakage),
        LDP(answer.model_free),
        answer.batch,
        answer.signal,
    )
    if when is None or not when.asked:
        return event
    try:
        return when.said(event, None if answer.time is None else Time.of(answer.time))
    except Unreadable:
        told = "the ledger must hold the times that phases or periods follow from"
        raise CorruptData(told) from None


def symbol_of(released: Released) -> Label:
    """The symbol that left; a stream never releases other numbers than whole ones."""
    if not isinstance(released, str | int):
        raise CorruptData("the ledger of a stream must hold symbols; it holds other numbers")
    return released


def _batch(answer: Answer) -> int:
    return answer.sequence if answer.batch is None else answer.batch


class Said(NamedTuple):
    """What answers say, as arrays: places of symbols and outcomes, signals, both certificates."""

    released: Ints
    outcomes: Ints
    signals: Ints
    leakages: Floats


def said_by(answers: Sequence[Answer], alphabet: Alphabet) -> Said | None:
    """What stored answers say that single values did; None if one says what no release does."""
    symbols: dict[Released, int] = {None: -1}
    for released in {answer.released for answer in answers} - {None}:
        symbols[released] = alphabet.place(released)
        if symbols[released] < 0:
            return None
    try:
        codes = [_CODES[answer.outcome] for answer in answers]
    except KeyError:
        return None
    if any(answer.batch is not None for answer in answers):
        return None
    signals = [-1 if answer.signal is None else answer.signal for answer in answers]
    leakages = [(answer.leakage, answer.model_free) for answer in answers]
    return Said(
        released=np.array([symbols[answer.released] for answer in answers], dtype=np.int64),
        outcomes=np.array(codes, dtype=np.int64),
        signals=np.array(signals, dtype=np.int64),
        leakages=np.array(leakages, dtype=np.float64).reshape(-1, 2),
    )
