"""What audits of values and of batches share: a walk along streams, files and the ledger."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.numerics import shown_up
from sfumato.core.state import StreamState
from sfumato.models.encoding import StreamModel, Symbols, Unreadable
from sfumato.stream.audit_ledger import Coverage, LedgerSide, event_of
from sfumato.stream.audit_report import AuditReport, StreamAudit
from sfumato.stream.composition import composed
from sfumato.stream.plan import Plan
from sfumato.stream.realised_loss import Realised, Truth
from sfumato.stream.true_values import Truths

_TOLERANCE = 1e-9
DELTA = 1e-6
"""Failure probability of the composed leakage that an audit reports beside the plain sum."""


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row of the released table."""

    number: int
    fields: dict[str, Any]


class AuditWalk(ABC):
    """What audits of values and of batches share."""

    def __init__(
        self,
        model: StreamModel,
        plan: Plan,
        window: int | None,
        truths: Truths | None,
    ) -> None:
        self._model = model
        self._plan = plan
        self._width = window
        self._truths = truths
        self._windows: dict[str, deque[float]] = {}
        self._states: dict[str, StreamState] = {}
        self.report = AuditReport()
        self.ledger: LedgerSide | None = None
        self.skips = False
        self._began: dict[str, int] = {}
        self._said: dict[str, array[int]] = {}
        self._lengths: dict[str, Counter[int]] = {}
        self._bounds: dict[tuple[tuple[int, int], ...], float] = {}
        self._realised = Realised(model, plan.value_loss)
        self._batch_loss, self._in_batches = 0.0, 0

    @abstractmethod
    def row(self, row: AuditRow) -> None:
        """Check one row against what the plan must have done, and the ledger says it did."""

    def rest(self) -> None:  # noqa: B027 - nothing is left of values
        """Check what could not be checked before the end of a file."""

    @abstractmethod
    def _observed(
        self, state: StreamState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], StreamState]:
        """What the plan must have done where this was told, and the state after it."""

    def _notice(self, state: StreamState, due: Sequence[Event]) -> Floats | None:
        """Remember what left, and how likely each symbol made it where it is about one symbol."""
        for event in due:
            self._realised.tell(event)
        return None

    def begin(self) -> None:
        """Begin a file; what others said before it may be said again in it."""
        self._began = {stream: state.sequence for stream, state in self._states.items()}

    def end(self, coverage: Coverage) -> None:
        """Check what the ledger holds beyond the files, and itself."""
        if self.ledger is None:
            return
        self.report.ledger_head = self.ledger.head
        for problem in self.ledger.problems:
            self.report.note_ledger(problem)
        for stream, moments in self.ledger.streams():
            self._catch_up(stream, moments)
        self.report.only_in_ledger = self.ledger.alone.total()
        for source, missing in self.ledger.missing(coverage):
            rows = self.report.rows
            self.report.note(rows, f"the ledger holds {missing} events more of {source!r}")

    def _catch_up(self, stream: str, moment: int) -> None:
        """Let a stream do what the ledger says it did before a moment."""
        if self.ledger is None:
            return
        self.report.streams.setdefault(stream, StreamAudit())
        for told in self.ledger.before(stream, self._state(stream).sequence, moment):
            state = self._state(stream)
            try:
                due, following = self._observed(state, told)
            except (InvalidParameter, UnknownSymbol, Unreadable) as problem:
                self.report.note_ledger(f"stream {stream!r}, moment {told[0].sequence}: {problem}")
                return
            for event, each in zip(told, due, strict=True):
                self._compare(self.report.rows, event, each, "the ledger")
            self._notice(state, due)
            self._charge(stream, due, following)

    def _said_before(self, row: AuditRow, told: Event, state: StreamState) -> bool:
        """Whether a row only says again what was said before; what is wrong with it is noted.

        A retry gets its old answer: in another file than the first or, where an id or the ledger
        tells that it is one, in the same.
        """
        if not 0 <= told.sequence < state.sequence:
            return False
        if self.ledger is None:
            may = "event" in row.fields or told.sequence < self._began.get(told.stream, 0)
            if not may or self._said[told.stream][told.sequence] != _fingerprint(told):
                return False
            self.report.repeated += 1
            return True
        answer = self.ledger.moment(told.stream, told.sequence)
        if answer is None:
            return False
        self.report.repeated += 1
        self._compare(row.number, told, event_of(answer), "the table")
        return True

    def _remember(self, told: Sequence[Event]) -> None:
        """Keep a little of what was said, to know a retry; the ledger knows it all."""
        if self.ledger is None:
            said = self._said.setdefault(told[0].stream, array("q"))
            said.extend(map(_fingerprint, told))

    def _state(self, stream: str) -> StreamState:
        return self._states.get(stream) or self._plan.begin(stream)

    def _fits(self, row: AuditRow, told: Event, due: Event) -> None:
        """Compare a row, and the ledger, with what was due."""
        self._compare(row.number, told, due, "the table")
        self._check_place(row.number, told, row.fields)
        if self.ledger is not None:
            self._compare_ledger(row.number, due, row.fields.get("event"), self.ledger)

    def _out_of_turn(self, state: StreamState) -> str:
        rule = f"the sequence number must be {state.sequence}"
        if self.ledger is None and state.sequence == 0:
            rule += "; a stream that goes on needs the files before this one, or the ledger"
        return rule

    def _check_skip(self, told: Event) -> None:
        if told.outcome is Outcome.SKIPPED and not self.skips:
            raise Unreadable("a release never skips a row, unless its rules say --missing skip")

    def _event(self, stream: str, fields: dict[str, Any]) -> Event:
        """The row as an event, in the types of the alphabet."""
        try:
            outcome = Outcome(fields["outcome"])
            sequence = int(fields["sequence"])
            sip, ldp = SIP(float(fields["sip"])), LDP(float(fields["ldp"]))
        except (ValueError, TypeError):
            raise Unreadable(
                "outcome, sequence, sip and ldp must be as the release wrote them"
            ) from None
        label = fields["released"]
        if label in (None, ""):
            return Event(stream, sequence, outcome, None, sip, ldp)
        if isinstance(self._model.alphabet.labels[0], int):
            label = Symbols(self._model.alphabet).encode(label)
        if label not in self._model.alphabet:
            raise UnknownSymbol(len(self._model.alphabet), "the released value")
        return Event(stream, sequence, outcome, label, sip, ldp)

    def _compare(self, row: int, told: Event, due: Event, who: str) -> None:
        if told.released != due.released or told.outcome is not due.outcome:
            self.report.note(row, f"{who} must say what was released, and nothing else")
        if told.batch != due.batch:
            self.report.note(row, f"{who} must say that the batch began at {due.batch}")
        for name in ("sip", "ldp"):
            said, true = getattr(told, name).epsilon, getattr(due, name).epsilon
            if not math.isclose(said, true, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                shown = shown_up(true, 9), shown_up(said, 9)
                self.report.note(row, f"{name} must be {shown[0]}; {who} says {shown[1]}")

    def _check_place(self, row: int, told: Event, fields: dict[str, Any]) -> None:
        """In a grid, x and y are the centre of the released cell, or empty."""
        places = self._model.alphabet.coordinates
        if "x" not in fields or places is None:
            return
        given = [fields[name] for name in ("x", "y")]
        due: list[float | None] = [None, None]
        if told.released is not None:
            due = places[self._model.alphabet.index(told.released)].tolist()
        read = [None if value in (None, "") else _float(value) for value in given]
        if read != due:
            self.report.note(row, "x and y must be the centre of the released cell")

    def _compare_ledger(self, row: int, due: Event, id_: object, ledger: LedgerSide) -> None:
        kept = ledger.moment(due.stream, due.sequence)
        if kept is None:
            self.report.note(row, "the ledger must hold this event")
            return
        self._compare(row, event_of(kept), due, "the ledger")
        if id_ is not None and str(id_) != kept.id:
            self.report.note(row, "the event id must be the one in the ledger")

    def _charge(self, stream: str, due: Sequence[Event], following: StreamState) -> None:
        """Account for a value, or for the values of a batch."""
        entry = self.report.streams[stream]
        entry.steps += len(due)
        entry.sip, entry.ldp = following.ledger.sip, following.ledger.ldp
        entry.worst_step = max(entry.worst_step, due[-1].sip.epsilon)
        self._lengths.setdefault(stream, Counter())[len(due)] += 1
        if self._width:
            # A batch stands at its last value, and counts in windows that begin in it.
            longest = self._width + self._plan.width - 1
            recent = self._windows.setdefault(stream, deque(maxlen=longest))
            recent.extend(event.sip.epsilon for event in due)
            reach = self._width + len(due) - 1
            entry.worst_window = max(entry.worst_window or 0.0, math.fsum(list(recent)[-reach:]))
        self._states[stream] = following

    def _cost(self, stream: str, due: Sequence[Event], truths: Sequence[Truth]) -> None:
        """Account for what a value, or the values of a batch, cost."""
        entry = self.report.streams[stream]
        for event, truth in zip(due, truths, strict=True):
            cost = self._realised.add(event, truth)
            if cost is not None:
                entry.loss = (entry.loss or 0.0) + cost

    def _gained(self, stream: str, gain: float) -> None:
        """Account for what a release told about the truth."""
        entry = self.report.streams[stream]
        entry.gain = (entry.gain or 0.0) + gain

    def _composed(self, stream: str) -> float:
        """Bound that fails with probability `DELTA`; a budget per step only is fixed in advance."""
        if not isinstance(self._plan.budget, PerStep):
            return math.inf
        lengths = tuple(sorted(self._lengths.get(stream, Counter()).items()))
        if lengths not in self._bounds:
            each = self._plan.budget.sip.epsilon
            fixed = [each * length for length, times in lengths for _ in range(times)]
            self._bounds[lengths] = composed(fixed, DELTA).epsilon if fixed else 0.0
        return self._bounds[lengths]

    @abstractmethod
    def _about_one_value(self, stream: str) -> float:
        """What all outputs told about one value; infinite where it is not known."""

    def finished(self) -> AuditReport:
        """What was found."""
        for stream, entry in self.report.streams.items():
            entry.composed = min(entry.sip, self._composed(stream))
            entry.one_value = min(entry.sip, entry.ldp, self._about_one_value(stream))
        cost = self._realised
        self.report.compared, self.report.never = cost.count + self._in_batches, cost.never
        if cost.count:
            self.report.mean_loss = cost.loss / cost.count
            self.report.silent_loss = cost.silent / cost.count
        elif self._in_batches:
            self.report.mean_loss = self._batch_loss / self._in_batches
        return self.report


def _fingerprint(told: Event) -> int:
    """Eight bytes of what a row says."""
    return hash((told.released, told.outcome, told.sip, told.ldp, told.batch))


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return math.nan
