"""Check a released table from public things alone: what it leaked, and whether it says so."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.events import Event, Outcome
from sfumato.core.progress import Progress
from sfumato.core.state import StreamState
from sfumato.models.encoding import Grid, StreamModel, Unreadable
from sfumato.stream.audit_ledger import Coverage, LedgerSide
from sfumato.stream.audit_report import AuditReport, StreamAudit
from sfumato.stream.audit_walk import AuditRow, AuditWalk
from sfumato.stream.partition.batch_loss import BatchLoss
from sfumato.stream.partition.patterns import Patterns, WholeBatches
from sfumato.stream.plan import Plan
from sfumato.stream.realised_loss import Truth
from sfumato.stream.true_values import Truths
from sfumato.stream.value_exposure import ToldBatches, ToldValues
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table

_OPEN = (Outcome.RELEASED, Outcome.SKIPPED)
"""What does not look like a value outside the alphabet."""


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
    if isinstance(model.encoding, Grid):
        columns += ["x", "y"]
    tables = [released] if isinstance(released, Table) else list(released)
    true = [against] if isinstance(against, Table) else against
    truths = None if true is None else Truths(true, model, missing)
    audit: AuditWalk
    if plan.in_batches:
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
    audit: AuditWalk, table: Table, columns: Sequence[str], progress: Progress | None
) -> None:
    done = audit.report.rows
    audit.begin()
    for chunk in table.chunks(columns, optional=["event"]):
        for offset in range(len(chunk)):
            fields = {name: column[offset] for name, column in chunk.columns.items()}
            audit.row(AuditRow(chunk.first + offset, fields))
        if progress:
            progress(done + chunk.first + len(chunk) - 1)
    audit.rest()


class _InstantAudit(AuditWalk):
    """Row by row."""

    def __init__(self, *audit: Any) -> None:
        super().__init__(*audit)
        self._told = ToldValues(self._model)

    def _about_one_value(self, stream: str) -> float:
        return self._told.about_one_value(stream)

    def row(self, row: AuditRow) -> None:
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
        self, state: StreamState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], StreamState]:
        return self._plan.observe(state, [told[0].released], told[0].outcome)

    def _notice(self, state: StreamState, due: Sequence[Event]) -> Floats | None:
        super()._notice(state, due)
        likelihood = self._likelihood(state, due[0])
        self._told.add(state.stream, likelihood)
        return likelihood

    def _likelihood(self, state: StreamState, due: Event) -> Floats | None:
        """How likely the output was under each symbol; None where nothing was released."""
        prepared = self._plan.prepare(state) if due.outcome is Outcome.RELEASED else None
        if prepared is None:
            return None
        return prepared.design.channel.likelihood(self._model.alphabet.index(due.released))

    def _gain(self, state: StreamState, truth: Truth, likelihood: Floats | None) -> None:
        if likelihood is None or truth.symbol not in self._model.alphabet:
            return
        place = self._model.alphabet.index(truth.symbol)
        gained = math.log(likelihood[place] / float(state.belief.marginal @ likelihood))
        self._gained(state.stream, gained)


class _BatchedAudit(AuditWalk):
    """Batch by batch: rows of a stream are held until the next batch begins."""

    def __init__(self, *audit: Any) -> None:
        super().__init__(*audit)
        self._held: dict[str, list[tuple[AuditRow, Event]]] = {}
        self._told = ToldBatches(self._model, self._plan.memory)

    def _about_one_value(self, stream: str) -> float:
        return self._told.about_one_value(stream)

    def _notice(self, state: StreamState, due: Sequence[Event]) -> Floats | None:
        super()._notice(state, due)
        found = None
        if due[0].outcome is Outcome.RELEASED:
            found = self._plan.prepare(state, len(due))
        told = None
        if found is not None and not found.design.channel.is_constant:
            if not isinstance(found.partition, Patterns | WholeBatches):
                self._told.give_up()
            output = found.output(self._model.alphabet.indices([one.released for one in due]))
            told = None if output is None else found.design.channel.likelihood(output)
        self._told.add(state.stream, len(due), told)
        return None

    def row(self, row: AuditRow) -> None:
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
        self, state: StreamState, told: Sequence[Event]
    ) -> tuple[Sequence[Event], StreamState]:
        if len({event.outcome for event in told}) > 1:
            raise Unreadable("the values of a batch must have one outcome")
        return self._plan.observe(state, [event.released for event in told], told[0].outcome)

    def _gain(self, state: StreamState, due: Sequence[Event], truths: Sequence[Truth]) -> None:
        found = self._plan.prepare(state, len(due))
        places = [self._model.alphabet.place(truth.symbol) for truth in truths]
        if due[0].outcome is not Outcome.RELEASED or found is None or min(places) < 0:
            return
        told = self._model.alphabet.indices([event.released for event in due])
        output = found.output(told)
        assert output is not None  # `observe` saw that the channel releases it
        likelihood, masses = found.design.channel.likelihood(output), found.partition.masses
        expected = float(masses @ likelihood / masses.sum())
        gained = math.log(likelihood[found.partition.cell(places)] / expected)
        self._gained(state.stream, gained)
        if isinstance(self._plan.loss, BatchLoss) and self._plan.loss.each is None:
            # A loss of whole batches: it is known of those that left.
            loss = float(self._plan.loss.between(np.array([places, told])).matrix[0, 1])
            entry = self.report.streams[state.stream]
            entry.loss = (entry.loss or 0.0) + loss
            self._batch_loss, self._in_batches = (
                self._batch_loss + loss,
                self._in_batches + len(due),
            )


def _whole(value: object) -> int:
    try:
        return int(value)  # type: ignore[call-overload, no-any-return]
    except (ValueError, TypeError):
        raise Unreadable("batch must be the sequence number at which the batch began") from None
