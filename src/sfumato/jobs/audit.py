"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from array import array
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato._numerics import shown_up
from sfumato.accounting.allocation import PerStep
from sfumato.accounting.composition import composed
from sfumato.accounting.events import Event, Outcome
from sfumato.alphabet import Label
from sfumato.design.parts import BatchDesign, Believed, Patterns
from sfumato.errors import InvalidParameter, UnknownSymbol
from sfumato.formats.missing import MISSING_SYMBOL, Missing, is_missing
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import Chunk, Table
from sfumato.guarantees import LDP, SIP
from sfumato.jobs import Progress
from sfumato.jobs.audit_ledger import Coverage, LedgerSide
from sfumato.jobs.fit import stream_name
from sfumato.jobs.realised import Realised, Truth
from sfumato.jobs.told import ToldBatches, ToldValues
from sfumato.models.encoding import Grid, StreamModel, Symbols, Unreadable
from sfumato.streaming.batched_plan import BatchedPlan
from sfumato.streaming.instant import InstantPlan, InstantState

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_SHOWN = 20
_OPEN = (Outcome.RELEASED, Outcome.SKIPPED)
"""What does not look like a value outside the alphabet."""
DELTA = 1e-6
"""Failure probability of the composed leakage that an audit reports beside the plain sum."""


@dataclass(slots=True)
class StreamAudit:
    """What one stream leaked, recomputed.

    Attributes:
        steps: Moments of the stream.
        sip: Leakage under the model, summed.
        ldp: Model-free leakage, summed.
        composed: Leakage under the model that is passed with probability at most 1e-6: below the
            sum where a budget per step was fixed in advance.
        worst_step: Largest leakage of one step under the model.
        worst_window: Largest leakage of any window of the asked width; None without one.
        one_value: What all outputs together told about any one value: the largest change of the
            adversary's belief about it, over all moments and symbols, as a log ratio. Budgets per
            step or window do not bound it. Exact where it fits into memory, and batches can be
            listed; else the sum of all steps, which is a bound.
        loss: Realised loss, summed (only against the true values).
        gain: Realised information gain: log of how much likelier the true sequence became.
    """

    steps: int = 0
    sip: float = 0.0
    ldp: float = 0.0
    composed: float = 0.0
    worst_step: float = 0.0
    worst_window: float | None = None
    one_value: float = 0.0
    loss: float | None = None
    gain: float | None = None


@dataclass(slots=True)
class AuditReport:
    """The outcome of an audit.

    Attributes:
        rows: Rows checked.
        streams: What each stream leaked.
        problems: What does not fit, the first few, each with its row.
        problem_count: How many there are in all.
        withheld: Rows that released nothing although the budget was not gone: a value
            outside the alphabet, which everybody can see.
        mean_loss: Realised loss per value, against the true values as they were: repeated values
            count, and withheld ones cost what the guess of somebody does who was told nothing.
        silent_loss: What the best constant of each moment would have lost, per value.
        compared: Values that this is about.
        never: Symbols that were never released.
        repeated: Rows that say again what an earlier file, or the ledger, says: retries.
        only_in_ledger: Events of the ledger that are in none of the files; they are checked too.
        ledger_head: Stands for all rows of the ledger; compare it with one written down before.
    """

    rows: int = 0
    streams: dict[str, StreamAudit] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    withheld: int = 0
    mean_loss: float | None = None
    silent_loss: float | None = None
    compared: int = 0
    never: tuple[Label, ...] = ()
    repeated: int = 0
    only_in_ledger: int = 0
    ledger_head: str | None = None

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0

    def note(self, row: int, rule: str) -> None:
        """Remember a problem."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"row {row}: {rule}")

    def note_ledger(self, rule: str) -> None:
        """Remember a problem of the ledger."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"the ledger: {rule}")


def audit_table(
    released: Table | Sequence[Table],
    model: StreamModel,
    plan: InstantPlan | BatchedPlan,
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
        _checks.count("window", window)
    columns = [model.stream, "sequence", "released", "outcome", "sip", "ldp"]
    if isinstance(model.encoding, Grid):
        columns += ["x", "y"]
    tables = [released] if isinstance(released, Table) else list(released)
    true = [against] if isinstance(against, Table) else against
    truths = None if true is None else _Truths(true, model, missing)
    audit: _Audit
    if isinstance(plan, BatchedPlan):
        audit = _BatchedAudit(model, plan, window, truths)
        columns.append("batch")
    else:
        audit = _InstantAudit(model, plan, window, truths)
    audit.skips = missing is Missing.SKIP
    if not tables and ledger is None:
        raise InvalidParameter("released", "no file", "be some files, or come with a ledger")
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
            audit.row(_Row(chunk.first + offset, fields))
        if progress:
            progress(done + chunk.first + len(chunk) - 1)
    audit.rest()


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the released table."""

    number: int
    fields: dict[str, Any]


class _Audit(ABC):
    """What audits of values and of batches share."""

    def __init__(
        self,
        model: StreamModel,
        plan: InstantPlan | BatchedPlan,
        window: int | None,
        truths: _Truths | None,
    ) -> None:
        self._model = model
        self._plan = plan
        self._width = window
        self._truths = truths
        self._windows: dict[str, deque[float]] = {}
        self._states: dict[str, InstantState] = {}
        self.report = AuditReport()
        self.ledger: LedgerSide | None = None
        self.skips = False
        self._began: dict[str, int] = {}
        self._said: dict[str, array[int]] = {}
        self._lengths: dict[str, Counter[int]] = {}
        self._bounds: dict[tuple[tuple[int, int], ...], float] = {}
        losses = plan.loss.each if isinstance(plan, BatchedPlan) else plan.loss
        self._realised = Realised(model, losses)
        self._batch_loss, self._in_batches = 0.0, 0

    @abstractmethod
    def row(self, row: _Row) -> None:
        """Check one row against what the plan must have done, and the ledger says it did."""

    def rest(self) -> None:  # noqa: B027 - nothing is left of values
        """Check what could not be checked before the end of a file."""

    @abstractmethod
    def _observed(
        self, state: InstantState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], InstantState]:
        """What the plan must have done where this was told, and the state after it."""

    def _notice(self, state: InstantState, due: Sequence[Event]) -> Floats | None:
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

    def _said_before(self, row: _Row, told: Event, state: InstantState) -> bool:
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
        self._compare(row.number, told, answer.event, "the table")
        return True

    def _remember(self, told: Sequence[Event]) -> None:
        """Keep a little of what was said, to know a retry; the ledger knows it all."""
        if self.ledger is None:
            said = self._said.setdefault(told[0].stream, array("q"))
            said.extend(map(_fingerprint, told))

    def _state(self, stream: str) -> InstantState:
        return self._states.get(stream) or self._plan.begin(stream)

    def _fits(self, row: _Row, told: Event, due: Event) -> None:
        """Compare a row, and the ledger, with what was due."""
        self._compare(row.number, told, due, "the table")
        self._check_place(row.number, told, row.fields)
        if self.ledger is not None:
            self._compare_ledger(row.number, due, row.fields.get("event"), self.ledger)

    def _out_of_turn(self, state: InstantState) -> str:
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
        self._compare(row, kept.event, due, "the ledger")
        if id_ is not None and str(id_) != kept.id:
            self.report.note(row, "the event id must be the one in the ledger")

    def _charge(self, stream: str, due: Sequence[Event], following: InstantState) -> None:
        """Account for a value, or for the values of a batch."""
        entry = self.report.streams[stream]
        entry.steps += len(due)
        entry.sip, entry.ldp = following.ledger.sip, following.ledger.ldp
        entry.worst_step = max(entry.worst_step, due[-1].sip.epsilon)
        self._lengths.setdefault(stream, Counter())[len(due)] += 1
        if self._width:
            # A batch stands at its last value, and counts in windows that begin in it.
            longest = self._plan.width if isinstance(self._plan, BatchedPlan) else 1
            recent = self._windows.setdefault(stream, deque(maxlen=self._width + longest - 1))
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


class _InstantAudit(_Audit):
    """Row by row."""

    _plan: InstantPlan

    def __init__(self, *audit: Any) -> None:
        super().__init__(*audit)
        self._told = ToldValues(self._model)

    def _about_one_value(self, stream: str) -> float:
        return self._told.about_one_value(stream)

    def row(self, row: _Row) -> None:
        self.report.rows += 1
        stream = str(row.fields[self._model.stream])
        truth = None if self._truths is None else self._truths.at(stream, row.number)
        self.report.streams.setdefault(stream, StreamAudit())
        try:
            told = self._event(stream, row.fields)
            self._catch_up(stream, told.sequence)
            state = self._state(stream)
            if self._said_before(row, told, state):
                return
            if told.sequence != state.sequence:
                self.report.note(row.number, self._out_of_turn(state))
            self._check_skip(told)
            if told.outcome not in _OPEN and self._plan.prepare(state) is not None:
                self.report.withheld += 1
            (due,), following = self._observed(state, [told])
        except (InvalidParameter, UnknownSymbol, Unreadable) as problem:
            self.report.note(row.number, str(problem))
            return
        self._fits(row, told, due)
        likelihood = self._notice(state, [due])
        if truth is not None:
            self._cost(stream, [due], [truth])
            self._gain(state, truth, likelihood)
        self._charge(stream, [due], following)
        self._remember([told])

    def _observed(
        self, state: InstantState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], InstantState]:
        due, following = self._plan.observe(state, told[0].released, told[0].outcome)
        return [due], following

    def _notice(self, state: InstantState, due: Sequence[Event]) -> Floats | None:
        super()._notice(state, due)
        likelihood = self._likelihood(state, due[0])
        self._told.add(state.stream, likelihood)
        return likelihood

    def _likelihood(self, state: InstantState, due: Event) -> Floats | None:
        """How likely the output was under each symbol; None where nothing was released."""
        prepared = self._plan.prepare(state) if due.outcome is Outcome.RELEASED else None
        if prepared is None:
            return None
        return prepared.channel.likelihood(self._model.alphabet.index(due.released))

    def _gain(self, state: InstantState, truth: Truth, likelihood: Floats | None) -> None:
        if likelihood is None or truth.symbol not in self._model.alphabet:
            return
        place = self._model.alphabet.index(truth.symbol)
        gained = math.log(likelihood[place] / float(state.belief.marginal @ likelihood))
        self._gained(state.stream, gained)


class _BatchedAudit(_Audit):
    """Batch by batch: rows of a stream are held until the next batch begins."""

    _plan: BatchedPlan

    def __init__(self, *audit: Any) -> None:
        super().__init__(*audit)
        self._held: dict[str, list[tuple[_Row, Event]]] = {}
        self._told = ToldBatches(self._model, self._plan.memory)

    def _about_one_value(self, stream: str) -> float:
        return self._told.about_one_value(stream)

    def _notice(self, state: InstantState, due: Sequence[Event]) -> Floats | None:
        super()._notice(state, due)
        found = None
        if due[0].outcome is Outcome.RELEASED:
            found = self._plan.prepare(state, len(due))
        told = None
        if found is not None and not found.design.channel.is_constant:
            if not isinstance(found.parts, Patterns | Believed):
                self._told.give_up()
            told = found.design.channel.likelihood(self._output(found, due))
        self._told.add(state.stream, len(due), told)
        return None

    def _output(self, found: BatchDesign, due: Sequence[Event]) -> int:
        """Which output of a channel a released batch is."""
        told = self._model.alphabet.indices([event.released for event in due])
        possible = found.design.channel.outputs
        return int(possible[(found.patterns[possible] == told).all(axis=1)][0])

    def row(self, row: _Row) -> None:
        self.report.rows += 1
        stream = str(row.fields[self._model.stream])
        self.report.streams.setdefault(stream, StreamAudit())
        try:
            told = self._event(stream, row.fields)
            batch = _whole(row.fields["batch"])
        except (UnknownSymbol, Unreadable) as problem:
            self.report.note(row.number, str(problem))
            return
        held = self._held.get(stream, [])
        if held and (batch != held[0][1].batch or len(held) == self._plan.width):
            self._check(stream)
        self._held.setdefault(stream, []).append((row, replace(told, batch=batch)))

    def rest(self) -> None:
        for stream in list(self._held):
            self._check(stream)

    def _check(self, stream: str) -> None:
        rows = self._held.pop(stream)
        last = rows[-1][0].number
        told = [event for _, event in rows]
        known = self._truths
        truths = [] if known is None else [known.of(stream, row.number) for row, _ in rows]
        try:
            self._catch_up(stream, told[0].sequence)
            state = self._state(stream)
            if all([self._said_before(row, event, state) for row, event in rows]):
                return
            moments = [state.sequence + offset for offset in range(len(rows))]
            if [event.sequence for event in told] != moments or told[0].batch != moments[0]:
                raise Unreadable(f"the batch must have the sequence numbers from {moments[0]} on")
            self._check_skip(told[0])
            if told[0].outcome not in _OPEN and self._plan.prepare(state, len(rows)):
                self.report.withheld += len(rows)
            due, following = self._observed(state, told)
        except (InvalidParameter, UnknownSymbol, Unreadable) as problem:
            self.report.note(last, str(problem))
            return
        for (row, event), each in zip(rows, due, strict=True):
            self._fits(row, event, each)
        self._notice(state, due)
        if truths:
            self._cost(stream, due, truths)
            self._gain(state, due, truths)
        self._charge(stream, due, following)
        self._remember(told)

    def _observed(
        self, state: InstantState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], InstantState]:
        if len({event.outcome for event in told}) > 1:
            raise Unreadable("the values of a batch must have one outcome")
        return self._plan.observe(state, [event.released for event in told], told[0].outcome)

    def _gain(self, state: InstantState, due: Sequence[Event], truths: Sequence[Truth]) -> None:
        found = self._plan.prepare(state, len(due))
        places = [self._model.alphabet.place(truth.symbol) for truth in truths]
        if due[0].outcome is not Outcome.RELEASED or found is None or min(places) < 0:
            return
        told = self._model.alphabet.indices([event.released for event in due])
        output = self._output(found, due)
        likelihood, masses = found.design.channel.likelihood(output), found.parts.masses
        expected = float(masses @ likelihood / masses.sum())
        gained = math.log(likelihood[found.parts.part(places)] / expected)
        self._gained(state.stream, gained)
        if self._plan.loss.each is None:
            # A loss of whole batches: it is known of those that left.
            loss = float(self._plan.loss.between(np.array([places, told])).matrix[0, 1])
            entry = self.report.streams[state.stream]
            entry.loss = (entry.loss or 0.0) + loss
            self._batch_loss, self._in_batches = (
                self._batch_loss + loss,
                self._in_batches + len(due),
            )


class _Truths:
    """The true symbols of each stream, in order; those read ahead are kept."""

    def __init__(self, tables: Sequence[Table], model: StreamModel, missing: Missing) -> None:
        self._path = ", ".join(table.path for table in tables)
        self._rows = (
            row
            for table in tables
            for chunk in table.chunks([model.stream, *model.values])
            for row in _chunk_truths(table, chunk, model, missing)
        )
        self._ahead: dict[str, deque[Truth]] = {}

    def at(self, stream: str, row: int) -> Truth:
        """The true symbol of the next row, which must be of that stream."""
        found = next(self._rows, ("", Truth(None)))
        if found[0] != stream:
            rule = "the true table must have the same streams, row by row"
            raise BadTable(self._path, row, rule)
        return found[1]

    def of(self, stream: str, row: int) -> Truth:
        """The next true symbol of a stream, wherever it stands."""
        waiting = self._ahead.setdefault(stream, deque())
        while not waiting:
            found = next(self._rows, None)
            if found is None:
                rule = "the true table must have the same values of each stream, in order"
                raise BadTable(self._path, row, rule)
            self._ahead.setdefault(found[0], deque()).append(found[1])
        return waiting.popleft()

    def check_used_up(self) -> None:
        """Refuse a true table with more values than were released."""
        if next(self._rows, None) is not None or any(self._ahead.values()):
            raise BadTable(self._path, None, "the true table must not have more rows")


def _fingerprint(told: Event) -> int:
    """Eight bytes of what a row says."""
    return hash((told.released, told.outcome, told.sip, told.ldp, told.batch))


def _whole(value: object) -> int:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (ValueError, TypeError):
        raise Unreadable("batch must be the sequence number at which the batch began") from None


def _chunk_truths(
    table: Table, chunk: Chunk, model: StreamModel, missing: Missing
) -> Iterator[tuple[str, Truth]]:
    values = zip(*(chunk.columns[name] for name in model.values), strict=True)
    for offset, (owner, value) in enumerate(zip(chunk.columns[model.stream], values, strict=True)):
        row = chunk.first + offset
        gone = missing is not Missing.REFUSE and any(is_missing(cell) for cell in value)
        if gone and missing is Missing.DROP:
            continue
        try:
            truth = Truth(MISSING_SYMBOL) if gone else Truth.of(model, value)
        except Unreadable as problem:
            raise BadTable(table.path, row, f"the value {problem}") from None
        yield stream_name(owner, model.stream, table.path, row), truth


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return math.nan
