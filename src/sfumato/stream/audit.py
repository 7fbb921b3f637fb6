"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.budgets import PerStep
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.progress import Progress
from sfumato.core.state import StreamState
from sfumato.models.encoding import Grid, StreamModel, Unreadable
from sfumato.stream.audit_ledger import Coverage, LedgerSide, event_of
from sfumato.stream.audit_report import AuditReport, StreamAudit
from sfumato.stream.audit_rows import AuditRow, differences, read_event, stands_in_its_cell
from sfumato.stream.composition import composed
from sfumato.stream.partition.batch_loss import BatchLoss
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.patterns import Patterns, WholeBatches
from sfumato.stream.plan import Plan
from sfumato.stream.recovered_loss import RecoveredLoss
from sfumato.stream.true_values import RealisedLoss, Truth, Truths
from sfumato.stream.value_exposure import ValueExposure
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table

_OPEN = (Outcome.RELEASED, Outcome.SKIPPED)
"""What does not look like a value outside the alphabet."""
_BROKEN = (InvalidParameter, UnknownSymbol, Unreadable)
DELTA = 1e-6
"""Failure probability of the composed leakage that an audit reports beside the plain sum."""


def audit_table(
    released: Table | Sequence[Table],
    model: StreamModel,
    plan: Plan,
    *,
    ledger: str | Path | None = None,
    coverage: Coverage = Coverage.INPUTS,
    against: Table | Sequence[Table] | None = None,
    missing: Missing = Missing.REFUSE,
    window: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Recompute the adversary's belief and the exact leakage of every row of a released table.

    Args:
        released: What `release_table` wrote: a file, or several in the order in which they were
            written; none of them for a ledger alone.
        model: The public model.
        plan: The public rule of the release.
        ledger: Compare with this ledger too, and check all of it. It is only read. What streams
            did before a file begins is taken from it.
        coverage: How much of the ledger the files must hold.
        against: The true values, row by row like the released ones, or for batches, those of each
            stream in order; stays on this machine.
        missing: What the release did with missing values.
        window: Also report the worst window of this many steps; a batch counts in every window
            that has one of its values.
        progress: Called with the number of rows checked so far.
    """
    if window is not None:
        checks.count("window", window)
    columns = [model.stream, "sequence", "released", "outcome", "sip", "ldp"]
    columns += ["x", "y"] if isinstance(model.encoding, Grid) else []
    columns += ["batch"] if plan.in_batches else []
    tables = [released] if isinstance(released, Table) else list(released)
    true = [against] if isinstance(against, Table) else against
    truths = None if true is None else Truths(true, model, missing)
    if not tables and ledger is None:
        raise InvalidParameter("released", "no file", "be some files, or come with a ledger")
    audit = _Audit(model, plan, window, truths, skips=missing is Missing.SKIP)
    with contextlib.ExitStack() as stack:
        if ledger is not None:
            audit.ledger = stack.enter_context(LedgerSide(ledger, plan.fingerprint))
        for table in tables:
            noted = len(audit.report.problems)
            _audit_file(audit, table, columns, progress)
            if len(tables) > 1:
                named = [f"{table.path}, {rule}" for rule in audit.report.problems[noted:]]
                audit.report.problems[noted:] = named
        audit.end(coverage)
    if truths is not None:
        truths.check_used_up()
    return audit.finished()


def _audit_file(
    audit: _Audit, table: Table, columns: Sequence[str], progress: Progress | None
) -> None:
    done = audit.report.rows
    audit.begin()
    for chunk in table.chunks(columns, optional=["event"]):
        for offset in range(len(chunk)):
            fields = {name: column[offset] for name, column in chunk.columns.items()}
            audit.row(chunk.first + offset, fields)
        if progress:
            progress(done + chunk.first + len(chunk) - 1)
    audit.rest()


class _Audit:
    """A walk along streams, files and the ledger, batch by batch; a value is a batch of one.

    Rows of a stream are held until their batch is complete, or the next one begins.
    """

    def __init__(
        self,
        model: StreamModel,
        plan: Plan,
        window: int | None,
        truths: Truths | None,
        *,
        skips: bool,
    ) -> None:
        self._model, self._plan = model, plan
        self._window, self._truths, self._skips = window, truths, skips
        self.report = AuditReport()
        self.ledger: LedgerSide | None = None
        self._held: dict[str, list[tuple[AuditRow, Truth | None]]] = {}
        self._states: dict[str, StreamState] = {}
        self._began: dict[str, int] = {}
        self._fingerprints: dict[str, array[int]] = {}
        self._windows: dict[str, deque[float]] = {}
        self._lengths: dict[str, Counter[int]] = {}
        self._bounds: dict[tuple[tuple[int, int], ...], float] = {}
        self._exposure = ValueExposure(model, plan)
        self._losses = RealisedLoss(model, plan.value_loss)
        self._recovered = RecoveredLoss(self._losses)

    def begin(self) -> None:
        """Begin a file; what others said before it may be said again in it."""
        self._began = {stream: state.sequence for stream, state in self._states.items()}

    def row(self, number: int, fields: dict[str, Any]) -> None:
        """Take a row; check the batch that it completes, and the one that it shows to be over."""
        self.report.rows += 1
        stream = str(fields[self._model.stream])
        self.report.streams.setdefault(stream, StreamAudit())
        truth = self._true_value(stream, number)
        try:
            event = read_event(stream, fields, self._model)
        except (UnknownSymbol, Unreadable) as problem:
            self.report.note(number, str(problem))
            return
        held = self._held.get(stream, [])
        if held and event.batch != held[0][0].event.batch:
            self._check(stream)
        self._held.setdefault(stream, []).append((AuditRow(number, fields, event), truth))
        if len(self._held[stream]) == self._plan.width:
            self._check(stream)

    def _true_value(self, stream: str, number: int) -> Truth | None:
        if self._truths is None:
            return None
        # Batches of several streams leave in another order than their values came in.
        ask = self._truths.of if self._plan.in_batches else self._truths.at
        return ask(stream, number)

    def rest(self) -> None:
        """Check what could not be checked before the end of a file."""
        for stream in list(self._held):
            self._check(stream)

    def _check(self, stream: str) -> None:
        """Check a batch against what the plan must have done, and the ledger says it did."""
        held = self._held.pop(stream)
        rows = [row for row, _ in held]
        events = [row.event for row in rows]
        try:
            self._catch_up(stream, events[0].sequence)
            state = self._state(stream)
            if all([self._said_before(row, state) for row in rows]):
                return
            self._check_turn(rows, state)
            if events[0].outcome is Outcome.SKIPPED and not self._skips:
                rule = "a release never skips a row, unless its rules say --missing skip"
                raise Unreadable(rule)
            if events[0].outcome not in _OPEN and self._plan.prepare(state, len(rows)):
                self.report.withheld += len(rows)
            due, following = self._observed(state, events)
        except _BROKEN as problem:
            self.report.note(rows[-1].number, str(problem))
            return
        for row, each in zip(rows, due, strict=True):
            self._compare(row, each)
        design = self._notice(state, due)
        self._recovered.add(stream, [truth for _, truth in held])
        truths = [truth for _, truth in held if truth is not None]
        if truths:
            self._add_losses(state, due, truths, design)
        self._charge(stream, due, following)
        if self.ledger is None:
            said = self._fingerprints.setdefault(stream, array("q"))
            said.extend(map(_fingerprint, events))

    def _check_turn(self, rows: Sequence[AuditRow], state: StreamState) -> None:
        """See whether a batch stands at the moments that are due."""
        first = state.sequence
        moments = list(range(first, first + len(rows)))
        right = [row.event.sequence for row in rows] == moments
        if self._plan.in_batches:
            if not right or rows[0].event.batch != first:
                raise Unreadable(f"the batch must have the sequence numbers from {first} on")
        elif not right:
            rule = f"the sequence number must be {first}"
            if self.ledger is None and first == 0:
                rule += "; a stream that goes on needs the files before this one, or the ledger"
            self.report.note(rows[0].number, rule)

    def _observed(
        self, state: StreamState, events: Sequence[Event]
    ) -> tuple[Sequence[Event], StreamState]:
        """What the plan must have done where this was said, and the state after it."""
        if len({event.outcome for event in events}) > 1:
            raise Unreadable("the values of a batch must have one outcome")
        return self._plan.observe(state, [event.released for event in events], events[0].outcome)

    def _said_before(self, row: AuditRow, state: StreamState) -> bool:
        """Whether a row only says again what was said before; what is wrong with it is noted.

        A retry gets its old answer: in another file than the first or, where an id or the ledger
        tells that it is one, in the same.
        """
        stream, moment = row.event.stream, row.event.sequence
        if not 0 <= moment < state.sequence:
            return False
        if self.ledger is None:
            may = "event" in row.fields or moment < self._began.get(stream, 0)
            if not may or self._fingerprints[stream][moment] != _fingerprint(row.event):
                return False
            self.report.repeated += 1
            return True
        answer = self.ledger.moment(stream, moment)
        if answer is None:
            return False
        self.report.repeated += 1
        for rule in differences(row.event, event_of(answer), "the table"):
            self.report.note(row.number, rule)
        return True

    def _compare(self, row: AuditRow, due: Event) -> None:
        """Compare a row, and the ledger, with what was due."""
        note = self.report.note
        for rule in differences(row.event, due, "the table"):
            note(row.number, rule)
        if not stands_in_its_cell(row, self._model):
            note(row.number, "x and y must be the centre of the released cell")
        if self.ledger is None:
            return
        answer = self.ledger.moment(due.stream, due.sequence)
        if answer is None:
            note(row.number, "the ledger must hold this event")
            return
        for rule in differences(event_of(answer), due, "the ledger"):
            note(row.number, rule)
        id_ = row.fields.get("event")
        if id_ is not None and str(id_) != answer.id:
            note(row.number, "the event id must be the one in the ledger")

    def _catch_up(self, stream: str, moment: int) -> None:
        """Let a stream do what the ledger says it did before a moment."""
        if self.ledger is None:
            return
        self.report.streams.setdefault(stream, StreamAudit())
        for events in self.ledger.before(stream, self._state(stream).sequence, moment):
            state = self._state(stream)
            try:
                due, following = self._observed(state, events)
            except _BROKEN as problem:
                where = f"stream {stream!r}, moment {events[0].sequence}"
                self.report.note_ledger(f"{where}: {problem}")
                return
            for event, each in zip(events, due, strict=True):
                for rule in differences(event, each, "the ledger"):
                    self.report.note(self.report.rows, rule)
            self._notice(state, due)
            self._recovered.add(stream, [None] * len(due))
            self._charge(stream, due, following)

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

    def _state(self, stream: str) -> StreamState:
        return self._states.get(stream) or self._plan.begin(stream)

    def _notice(self, state: StreamState, due: Sequence[Event]) -> StepDesign | None:
        """Remember what left, and how likely every batch made it; the channel that it came from."""
        for event in due:
            self._losses.tell(event)
        design = likelihood = None
        if due[0].outcome is Outcome.RELEASED:
            design = self._plan.prepare(state, len(due))
        if design is not None and not design.design.channel.is_constant:
            if not isinstance(design.partition, Patterns | WholeBatches):
                self._exposure.give_up()
            output = design.output(self._model.alphabet.indices([one.released for one in due]))
            likelihood = None if output is None else design.design.channel.likelihood(output)
        self._exposure.add(state.stream, len(due), likelihood)
        return design

    def _charge(self, stream: str, due: Sequence[Event], following: StreamState) -> None:
        """Account for a batch."""
        entry = self.report.streams[stream]
        entry.steps += len(due)
        entry.sip, entry.ldp = following.ledger.sip, following.ledger.ldp
        entry.worst_step = max(entry.worst_step, due[-1].sip.epsilon)
        self._lengths.setdefault(stream, Counter())[len(due)] += 1
        if self._window:
            # A batch stands at its last value, and counts in windows that begin in it.
            longest = self._window + self._plan.width - 1
            recent = self._windows.setdefault(stream, deque(maxlen=longest))
            recent.extend(event.sip.epsilon for event in due)
            reach = self._window + len(due) - 1
            entry.worst_window = max(entry.worst_window or 0.0, math.fsum(list(recent)[-reach:]))
        self._states[stream] = following

    def _add_losses(
        self,
        state: StreamState,
        due: Sequence[Event],
        truths: Sequence[Truth],
        design: StepDesign | None,
    ) -> None:
        """Account for what a batch cost, and for what it told about the truth."""
        entry = self.report.streams[state.stream]
        for event, truth in zip(due, truths, strict=True):
            cost = self._losses.add(event, truth)
            if cost is not None:
                entry.loss = (entry.loss or 0.0) + cost
        alphabet = self._model.alphabet
        places = [alphabet.place(truth.symbol) for truth in truths]
        if design is None or min(places) < 0:
            return
        left = alphabet.indices([event.released for event in due])
        output = design.output(left)
        assert output is not None  # `observe` saw that the channel releases it
        likelihood, masses = design.design.channel.likelihood(output), design.partition.masses
        expected = float(masses @ likelihood / masses.sum())
        gained = math.log(likelihood[design.partition.cell(places)] / expected)
        entry.gain = (entry.gain or 0.0) + gained
        if isinstance(self._plan.loss, BatchLoss) and self._plan.loss.each is None:
            # A loss of whole batches: it is known of those that left.
            loss = float(self._plan.loss.between(np.array([places, left])).matrix[0, 1])
            entry.loss = (entry.loss or 0.0) + loss
            self._losses.add_batch(loss, len(due))

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

    def finished(self) -> AuditReport:
        """What was found."""
        for stream, entry in self.report.streams.items():
            entry.composed = min(entry.sip, self._composed(stream))
            exact = self._exposure.about_one_value(stream)
            entry.one_value = min(entry.sip, entry.ldp, exact)
        losses = self._losses
        if self._exposure.chain is not None:
            told = self._exposure.outputs
            self.report.recovered_loss = self._recovered.mean(self._exposure.chain, told)
        self.report.compared, self.report.never = losses.compared, losses.never
        self.report.mean_loss, self.report.silent_loss = losses.mean, losses.mean_of_silence
        return self.report


def _fingerprint(event: Event) -> int:
    """Eight bytes of what a row says."""
    return hash((event.released, event.outcome, event.sip, event.ldp, event.batch))
