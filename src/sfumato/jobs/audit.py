"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.accounting.composition import ledger_composition
from sfumato.accounting.events import Event, Outcome
from sfumato.errors import InvalidParameter, SfumatoError, UnknownSymbol
from sfumato.formats.problems import BadTable
from sfumato.formats.readers import Chunk, Table
from sfumato.guarantees import LDP, SIP
from sfumato.models.encoding import StreamModel, Unreadable
from sfumato.store.sqlite import SqliteStore
from sfumato.streaming.instant import InstantPlan, InstantState

Progress = Callable[[int], None]
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
        composed: Leakage under the model that is passed with probability at most 1e-6.
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
    audit = _Audit(released.path, model, plan, against is not None, window)
    columns = [model.stream, "sequence", "released", "outcome", "sip", "ldp"]
    truths = None if against is None else _truths(against, model)
    for chunk in released.chunks(columns):
        for offset in range(len(chunk)):
            fields = {name: chunk.columns[name][offset] for name in columns}
            audit.row(chunk.first + offset, fields, truths)
        if progress:
            progress(chunk.first + len(chunk) - 1)
    if truths is not None and next(truths, None) is not None:
        audit.report.note(audit.report.rows, "the true table must not have more rows")
    if ledger is not None:
        _compare(ledger, plan, audit)
    return audit.finished()


class _Audit:
    def __init__(
        self, path: str, model: StreamModel, plan: InstantPlan, against: bool, window: int | None
    ) -> None:
        self._path = path
        self._model = model
        self._plan = plan
        self._against = against
        self._width = window
        self._windows: dict[str, deque[float]] = {}
        self.states: dict[str, InstantState] = {}
        self.report = AuditReport()
        self._loss, self._released = 0.0, 0

    def row(
        self, row: int, fields: dict[str, Any], truths: Iterator[tuple[str, object]] | None
    ) -> None:
        """Check one row against what the plan must have done."""
        self.report.rows += 1
        stream = str(fields[self._model.stream])
        state = self.states.get(stream) or self._plan.begin(stream)
        entry = self.report.streams.setdefault(stream, StreamAudit())
        try:
            told = self._event(row, stream, fields)
            if told.sequence != state.sequence:
                self.report.note(row, f"the sequence number must be {state.sequence}")
            if told.outcome is not Outcome.RELEASED and self._plan.prepare(state) is not None:
                self.report.withheld += 1
            due, following = self._plan.observe(state, told.released, told.outcome)
        except (InvalidParameter, UnknownSymbol) as problem:
            self.report.note(row, str(problem))
            return
        self._compare(row, told, due)
        if truths is not None:
            self._realised(row, stream, state, due, truths, entry)
        self._charge(stream, entry, due, following)
        self.states[stream] = following

    def _event(self, row: int, stream: str, fields: dict[str, Any]) -> Event:
        """The row as an event, in the types of the alphabet."""
        try:
            outcome = Outcome(fields["outcome"])
            sequence = int(fields["sequence"])
            sip, ldp = float(fields["sip"]), float(fields["ldp"])
        except (ValueError, TypeError):
            rule = "outcome, sequence, sip and ldp must be as the release wrote them"
            raise BadTable(self._path, row, rule) from None
        label = fields["released"]
        if label in (None, ""):
            label = None
        elif isinstance(self._model.chain.alphabet.labels[0], int):
            label = int(label)
        return Event(stream, sequence, outcome, label, SIP(sip), LDP(ldp))

    def _compare(self, row: int, told: Event, due: Event) -> None:
        for name in ("sip", "ldp"):
            said, true = getattr(told, name).epsilon, getattr(due, name).epsilon
            if not math.isclose(said, true, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
                self.report.note(row, f"{name} must be {true:.9g}; the table says {said:.9g}")

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
        row: int,
        stream: str,
        state: InstantState,
        due: Event,
        truths: Iterator[tuple[str, object]],
        entry: StreamAudit,
    ) -> None:
        owner, symbol = next(truths, (None, None))
        if owner != stream:
            rule = "the true table must have the same streams, row by row"
            raise BadTable(self._path, row, rule)
        prepared = self._plan.prepare(state)
        if due.outcome is not Outcome.RELEASED or prepared is None:
            return
        alphabet = self._model.chain.alphabet
        output = alphabet.index(due.released)
        try:
            truth = alphabet.index(symbol)
        except UnknownSymbol:
            return
        likelihood = prepared.channel.likelihood(output)
        gained = math.log(likelihood[truth] / float(state.belief.marginal @ likelihood))
        loss = float(self._plan.loss.matrix[truth, output])
        entry.gain = (entry.gain or 0.0) + gained
        entry.loss = (entry.loss or 0.0) + loss
        self._loss, self._released = self._loss + loss, self._released + 1

    def finished(self) -> AuditReport:
        for stream, state in self.states.items():
            self.report.streams[stream].composed = ledger_composition(state.ledger, DELTA).epsilon
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
        try:
            yield str(owner), model.encoding.encode(*value)
        except Unreadable as problem:
            raise BadTable(table.path, chunk.first + offset, f"the value {problem}") from None


def _compare(ledger: str | Path, plan: InstantPlan, audit: _Audit) -> None:
    """Every moment of the ledger is in the table's recomputed states, with the same spend."""
    if not Path(ledger).is_file():
        raise SfumatoError(f"{ledger}: the ledger must exist; it does not")
    with SqliteStore(ledger, plan.fingerprint) as store:
        for stream, state in audit.states.items():
            kept = store.state(stream)
            if kept is None:
                audit.report.note(audit.report.rows, f"stream {stream!r} must be in the ledger")
            elif kept.sequence == state.sequence and not np.isclose(
                kept.ledger.sip, state.ledger.sip, rtol=_TOLERANCE, atol=_TOLERANCE
            ):
                audit.report.note(
                    audit.report.rows,
                    f"the ledger says stream {stream!r} spent {kept.ledger.sip:.9g}; "
                    f"the table gives {state.ledger.sip:.9g}",
                )
            elif kept.sequence < state.sequence:
                audit.report.note(
                    audit.report.rows, f"the ledger has fewer events of stream {stream!r}"
                )
