"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato import _checks
from sfumato.accounting.allocation import PerStep
from sfumato.accounting.composition import composed
from sfumato.accounting.events import Event, Outcome
from sfumato.errors import InvalidParameter, UnknownSymbol
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import Chunk, Table
from sfumato.guarantees import LDP, SIP
from sfumato.jobs import Progress
from sfumato.jobs.fit import stream_name
from sfumato.models.encoding import Grid, StreamModel, Symbols, Unreadable
from sfumato.store.sqlite import LedgerMismatch, SqliteStore
from sfumato.streaming.instant import InstantPlan, InstantState

_TOLERANCE = 1e-9
_SHOWN = 20
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
        loss: Realised loss, summed (only against the true values).
        gain: Realised information gain: log of how much likelier the true sequence became.
    """

    steps: int = 0
    sip: float = 0.0
    ldp: float = 0.0
    composed: float = 0.0
    worst_step: float = 0.0
    worst_window: float | None = None
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
        mean_loss: Realised loss per released value, against the true values.
    """

    rows: int = 0
    streams: dict[str, StreamAudit] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    problem_count: int = 0
    withheld: int = 0
    mean_loss: float | None = None

    @property
    def passed(self) -> bool:
        """Whether everything fits."""
        return self.problem_count == 0

    def note(self, row: int, rule: str) -> None:
        """Remember a problem."""
        self.problem_count += 1
        if len(self.problems) < _SHOWN:
            self.problems.append(f"row {row}: {rule}")


def audit_table(
    released: Table,
    model: StreamModel,
    plan: InstantPlan,
    *,
    ledger: str | Path | None = None,
    against: Table | None = None,
    window: int | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Recompute the adversary's belief and the exact leakage of every row of a released table.

    Args:
        released: What `release_table` wrote.
        model: The public model.
        plan: The public rule of the release.
        ledger: Compare with this ledger too.
        against: The true values, row by row like the released ones; stays on this machine.
        window: Also report the worst window of this many steps.
        progress: Called with the number of rows checked so far.
    """
    if window is not None:
        _checks.count("window", window)
    audit = _Audit(against.path if against else "", model, plan, window)
    columns = [model.stream, "sequence", "released", "outcome", "sip", "ldp"]
    if isinstance(model.encoding, Grid):
        columns += ["x", "y"]
    truths = None if against is None else _truths(against, model)
    with contextlib.ExitStack() as stack:
        store = None
        if ledger is not None:
            if not Path(ledger).is_file():
                raise LedgerMismatch(f"{ledger}: the ledger must exist; it does not")
            store = stack.enter_context(SqliteStore(ledger, plan.fingerprint))
        for chunk in released.chunks(columns, optional=["event"]):
            for offset in range(len(chunk)):
                fields = {name: column[offset] for name, column in chunk.columns.items()}
                audit.row(chunk.first + offset, fields, truths, store)
            if progress:
                progress(chunk.first + len(chunk) - 1)
        if store is not None and (missing := store.count() - audit.in_ledger) > 0:
            audit.report.note(audit.report.rows, f"the ledger holds {missing} events more")
    if against and truths and next(truths, None) is not None:
        raise BadTable(against.path, None, "the true table must not have more rows")
    return audit.finished()


class _Audit:
    def __init__(
        self, against: str, model: StreamModel, plan: InstantPlan, window: int | None
    ) -> None:
        self._against = against
        self._model = model
        self._plan = plan
        self._width = window
        self._windows: dict[str, deque[float]] = {}
        self._states: dict[str, InstantState] = {}
        self.report = AuditReport()
        self.in_ledger = 0
        self._bounds: dict[int, float] = {}
        self._loss, self._released = 0.0, 0

    def row(
        self,
        row: int,
        fields: dict[str, Any],
        truths: Iterator[tuple[str, object]] | None,
        store: SqliteStore | None,
    ) -> None:
        """Check one row against what the plan must have done, and the ledger says it did."""
        self.report.rows += 1
        stream = str(fields[self._model.stream])
        truth = None if truths is None else next(truths, ("", None))
        if truth is not None and truth[0] != stream:
            rule = "the true table must have the same streams, row by row"
            raise BadTable(self._against, row, rule)
        state = self._states.get(stream) or self._plan.begin(stream)
        entry = self.report.streams.setdefault(stream, StreamAudit())
        try:
            told = self._event(stream, fields)
            if told.sequence != state.sequence:
                self.report.note(row, f"the sequence number must be {state.sequence}")
            if told.outcome is not Outcome.RELEASED and self._plan.prepare(state) is not None:
                self.report.withheld += 1
            if told.outcome is Outcome.SKIPPED:
                raise Unreadable("a release never skips a row")
            due, following = self._plan.observe(state, told.released, told.outcome)
        except (InvalidParameter, UnknownSymbol, Unreadable) as problem:
            self.report.note(row, str(problem))
            return
        self._compare(row, told, due, "the table")
        self._check_place(row, told, fields)
        if store is not None:
            self._compare_ledger(row, due, fields.get("event"), store)
        if truth is not None:
            self._realised(state, due, truth[1], entry)
        self._charge(stream, entry, due, following)
        self._states[stream] = following

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
        if isinstance(self._model.chain.alphabet.labels[0], int):
            label = Symbols(self._model.chain.alphabet).encode(label)
        if label not in self._model.chain.alphabet:
            raise UnknownSymbol(self._model.chain.size, "the released value")
        return Event(stream, sequence, outcome, label, sip, ldp)

    def _compare(self, row: int, told: Event, due: Event, who: str) -> None:
        if told.released != due.released or told.outcome is not due.outcome:
            self.report.note(row, f"{who} must say what was released, and nothing else")
        for name in ("sip", "ldp"):
            said, true = getattr(told, name).epsilon, getattr(due, name).epsilon
            if not math.isclose(said, true, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                self.report.note(row, f"{name} must be {true:.9g}; {who} says {said:.9g}")

    def _check_place(self, row: int, told: Event, fields: dict[str, Any]) -> None:
        """In a grid, x and y are the centre of the released cell, or empty."""
        places = self._model.chain.alphabet.coordinates
        if "x" not in fields or places is None:
            return
        given = [fields[name] for name in ("x", "y")]
        due: list[float | None] = [None, None]
        if told.released is not None:
            due = places[self._model.chain.alphabet.index(told.released)].tolist()
        read = [None if value in (None, "") else _float(value) for value in given]
        if read != due:
            self.report.note(row, "x and y must be the centre of the released cell")

    def _compare_ledger(self, row: int, due: Event, id_: object, store: SqliteStore) -> None:
        kept = store.moment(due.stream, due.sequence)
        if kept is None:
            self.report.note(row, "the ledger must hold this event")
            return
        self.in_ledger += 1
        self._compare(row, kept.event, due, "the ledger")
        if id_ is not None and str(id_) != kept.id:
            self.report.note(row, "the event id must be the one in the ledger")

    def _charge(self, stream: str, entry: StreamAudit, due: Event, following: InstantState) -> None:
        entry.steps += 1
        entry.sip, entry.ldp = following.ledger.sip, following.ledger.ldp
        entry.worst_step = max(entry.worst_step, due.sip.epsilon)
        if self._width:
            recent = self._windows.setdefault(stream, deque(maxlen=self._width))
            recent.append(due.sip.epsilon)
            entry.worst_window = max(entry.worst_window or 0.0, math.fsum(recent))

    def _realised(
        self,
        state: InstantState,
        due: Event,
        symbol: object,
        entry: StreamAudit,
    ) -> None:
        prepared = self._plan.prepare(state)
        if due.outcome is not Outcome.RELEASED or prepared is None:
            return
        alphabet = self._model.chain.alphabet
        if symbol not in alphabet:
            return
        place, output = alphabet.index(symbol), alphabet.index(due.released)
        likelihood = prepared.channel.likelihood(output)
        gained = math.log(likelihood[place] / float(state.belief.marginal @ likelihood))
        loss = float(self._plan.loss.rows([place])[0, output])
        entry.gain = (entry.gain or 0.0) + gained
        entry.loss = (entry.loss or 0.0) + loss
        self._loss, self._released = self._loss + loss, self._released + 1

    def _composed(self, steps: int) -> float:
        """Bound that fails with probability `DELTA`; a budget per step only is fixed in advance."""
        if not isinstance(self._plan.budget, PerStep):
            return math.inf
        if steps not in self._bounds:
            fixed = [self._plan.budget.sip.epsilon] * steps
            self._bounds[steps] = composed(fixed, DELTA).epsilon
        return self._bounds[steps]

    def finished(self) -> AuditReport:
        for entry in self.report.streams.values():
            entry.composed = min(entry.sip, self._composed(entry.steps))
        if self._released:
            self.report.mean_loss = self._loss / self._released
        return self.report


def _truths(table: Table, model: StreamModel) -> Iterator[tuple[str, object]]:
    """Stream and true symbol of each row."""
    for chunk in table.chunks([model.stream, *model.values]):
        yield from _chunk_truths(table, chunk, model)


def _chunk_truths(table: Table, chunk: Chunk, model: StreamModel) -> Iterator[tuple[str, object]]:
    values = zip(*(chunk.columns[name] for name in model.values), strict=True)
    for offset, (owner, value) in enumerate(zip(chunk.columns[model.stream], values, strict=True)):
        row = chunk.first + offset
        try:
            symbol = model.encoding.encode(*value)
        except Unreadable as problem:
            raise BadTable(table.path, row, f"the value {problem}") from None
        yield stream_name(owner, model.stream, table.path, row), symbol


def _float(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (ValueError, TypeError):
        return math.nan
