"""What an audit looks at, batch by batch: each check is an object of its own.

The walk (`audit_walk.py`) finds out what the plan must have done where a batch was said, and shows
it to every check; at the end each writes what it found into the report.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.events import Event
from sfumato.core.numerics import sum_up
from sfumato.core.state import StreamState
from sfumato.models.stream_model import StreamModel
from sfumato.stream.audit_loops import (
    information_gain,
    information_gains,
    sums_in_turn,
    worst_window,
)
from sfumato.stream.audit_report import AuditReport
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.composition import composed
from sfumato.stream.fleet_answers import RELEASED
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.output_log import OutputLog
from sfumato.stream.partition.batch_loss import BatchLoss
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.patterns import Patterns, WholeBatches
from sfumato.stream.plan import Observed, Plan
from sfumato.stream.true_values import RealisedLoss, Truth
from sfumato.stream.value_exposure import ValueExposure
from sfumato.tables.cells import Time

DELTA = 1e-6
"""Failure probability of the composed leakage that an audit reports beside the plain sum."""


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch that left, and what the plan says of it; a value is a batch of one.

    Attributes:
        state: Where the stream stood.
        due: What the plan must have done where this was said.
        following: Where the stream stands after it.
        design: The channel that it came from; None where nothing new left.
        output: Which output of that channel it is.
        truths: The true values; None each where they are not known.
        rows: Their numbers in the file; none for what stands in the ledger alone.
        times: Those of the values, where a check asks for them; None where one cannot be read.
    """

    state: StreamState
    due: Sequence[Event]
    following: StreamState
    design: StepDesign | None
    output: int | None
    truths: Sequence[Truth | None]
    rows: Sequence[int] = ()
    times: Sequence[Time | None] = ()

    @classmethod
    def of(
        cls,
        state: StreamState,
        seen: Observed,
        truths: Sequence[Truth | None] | None = None,
        rows: Sequence[int] = (),
        times: Sequence[Time | None] = (),
    ) -> CheckedBatch:
        """What was seen of a batch, with its true values where they are known."""
        known = [None] * len(seen.events) if truths is None else truths
        return cls(state, *seen, known, rows, times)

    @property
    def stream(self) -> str:
        """Whose it is."""
        return self.state.stream

    def true_places(self, plan: Plan) -> list[int] | None:
        """The places of the true symbols; None where one is not known, or is no symbol."""
        places = [
            -1 if truth is None else plan.model.alphabet.place(truth.symbol)
            for truth in self.truths
        ]
        return None if min(places) < 0 else places


class Check(Protocol):
    """One thing that an audit finds out."""

    def see(self, batch: CheckedBatch) -> None:
        """Look at one more batch; those of a stream come in order."""

    def finish(self, report: AuditReport) -> None:
        """Write down what was found."""


class Totals:
    """What each stream leaked, in all, in a step and in a window."""

    def __init__(self, plan: Plan, report: AuditReport, window: int | None) -> None:
        self._plan, self._report, self._window = plan, report, window
        self._windows: dict[str, deque[float]] = {}
        self._lengths: dict[str, Counter[int]] = {}
        self._bounds: dict[tuple[tuple[int, int], ...], float] = {}

    def see(self, batch: CheckedBatch) -> None:
        """Account for a batch."""
        due, stream = batch.due, batch.stream
        entry = self._report.streams[stream]
        entry.steps += len(due)
        entry.sip, entry.ldp = batch.following.ledger.sip, batch.following.ledger.ldp
        entry.worst_step = max(entry.worst_step, due[-1].sip.epsilon)
        if (period := batch.following.period) is not None:
            entry.worst_period = max(entry.worst_period or 0.0, period.ledger.sip)
        if self._plan.in_batches:
            self._lengths.setdefault(stream, Counter())[len(due)] += 1
        if self._window:
            # A batch stands at its last value, and counts in windows that begin in it.
            longest = self._window + self._plan.width - 1
            recent = self._windows.setdefault(stream, deque(maxlen=longest))
            recent.extend(event.sip.epsilon for event in due)
            reach = self._window + len(due) - 1
            entry.worst_window = max(entry.worst_window or 0.0, sum_up(list(recent)[-reach:]))

    def covers(self, columns: CheckedColumns) -> bool:
        """Sums are all it has to say."""
        return True

    def see_columns(self, columns: CheckedColumns) -> None:
        """Account for many rows."""
        charges = columns.followed.charges[columns.order, 0]
        worst = np.maximum.reduceat(charges, columns.starts).tolist() if len(columns) else []
        spent = columns.spent[columns.streams].tolist()
        told = zip(columns.owners(), columns.counts.tolist(), spent, worst, strict=True)
        for stream, steps, (sip, ldp), most in told:
            entry = self._report.streams[stream]
            entry.steps += steps
            entry.sip, entry.ldp = sip, ldp
            entry.worst_step = max(entry.worst_step, most)
        if self._window:
            for stream, start, count in columns.parts():
                self._add_windows(stream, charges[start : start + count], self._window)

    def _add_windows(self, stream: str, charges: Floats, window: int) -> None:
        """The worst window that ends at one of some successive rows."""
        entry = self._report.streams[stream]
        recent = self._windows.setdefault(stream, deque(maxlen=window))
        before = min(len(recent), window - 1)
        values = np.array([*list(recent)[len(recent) - before :], *charges.tolist()])
        recent.extend(charges.tolist())
        entry.worst_window = worst_window(values, before, window, entry.worst_window or 0.0)

    def finish(self, report: AuditReport) -> None:
        """Compose what was fixed in advance."""
        for stream, entry in report.streams.items():
            entry.composed = min(entry.sip, self._composed(stream, entry.steps))

    def _composed(self, stream: str, steps: int) -> float:
        """Bound that fails with probability `DELTA`; a budget per step only is fixed in advance."""
        if not isinstance(self._plan.budget, PerStep):
            return math.inf
        lengths = tuple(sorted(self._lengths.get(stream, Counter()).items()))
        if not self._plan.in_batches:
            lengths = ((1, steps),) if steps else ()
        if lengths not in self._bounds:
            each = self._plan.budget.sip.epsilon
            fixed = [each * length for length, times in lengths for _ in range(times)]
            self._bounds[lengths] = composed(fixed, DELTA).epsilon if fixed else 0.0
        return self._bounds[lengths]


class Exposure:
    """What all outputs told about any one value, and what the receiver's best guesses lose."""

    def __init__(self, model: StreamModel, plan: Plan, losses: RealisedLoss) -> None:
        self._told: ValueExposure | OutputLog = OutputLog(model)
        if plan.in_batches:
            self._told = ValueExposure(model, plan)
        if isinstance(plan, LearningPlan):
            self._told.give_up()  # what is true of one value holds under no single model
        self._losses = losses

    def see(self, batch: CheckedBatch) -> None:
        """Remember how likely every batch made what left."""
        design, likelihood = batch.design, None
        if design is not None and not design.design.channel.is_constant:
            if not isinstance(design.partition, Patterns | WholeBatches):
                self._told.give_up()
            if batch.output is not None:
                likelihood = design.design.channel.likelihood(batch.output)
        self._told.add(batch.stream, batch.truths, likelihood)

    def covers(self, columns: CheckedColumns) -> bool:
        """It only remembers."""
        return True

    def see_columns(self, columns: CheckedColumns) -> None:
        """The same for many rows."""
        assert isinstance(self._told, OutputLog)  # batches come one by one
        self._told.add_columns(columns)

    def finish(self, report: AuditReport) -> None:
        """Follow the outputs of each stream forth and back."""
        exact, report.recovered_loss = self._told.finish(self._losses, report.streams)
        for stream, entry in report.streams.items():
            entry.one_value = min(entry.sip, entry.ldp, exact.get(stream, math.inf))


class Losses:
    """What outputs cost beside the true values, and how much likelier they made them."""

    def __init__(self, plan: Plan, report: AuditReport, losses: RealisedLoss) -> None:
        self._plan, self._report, self._losses = plan, report, losses

    def see(self, batch: CheckedBatch) -> None:
        """Account for what a batch cost, and for what it told about the truth."""
        for event in batch.due:
            self._losses.tell(event)
        entry = self._report.streams[batch.stream]
        for event, truth in zip(batch.due, batch.truths, strict=True):
            cost = None if truth is None else self._losses.add(event, truth)
            if cost is not None:
                entry.loss = (entry.loss or 0.0) + cost
        places, design = batch.true_places(self._plan), batch.design
        if design is None or places is None:
            return
        assert batch.output is not None  # `observe` saw that the channel releases it
        gained = 0.0  # whatever is true, a constant says the same
        if not design.design.channel.is_constant:
            told, masses = design.design.channel.likelihood(batch.output), design.partition.masses
            gained = information_gain(masses, told, design.partition.cell(places))
        entry.gain = (entry.gain or 0.0) + gained
        if isinstance(self._plan.loss, BatchLoss) and self._plan.loss.each is None:
            # A loss of whole batches: it is known of those that left.
            left = self._plan.model.alphabet.indices([event.released for event in batch.due])
            loss = float(self._plan.loss.between(np.array([places, left])).matrix[0, 1])
            entry.loss = (entry.loss or 0.0) + loss
            self._losses.add_batch(loss, len(batch.due))

    def covers(self, columns: CheckedColumns) -> bool:
        """Sums are all it has to say."""
        return True

    def see_columns(self, columns: CheckedColumns) -> None:
        """Account for what many rows cost, and for what they told about the truth."""
        self._losses.tell_places(columns.left.released)
        if columns.truths is None:
            return
        left, followed = columns.left, columns.followed
        lost = self._losses.add_columns(columns.sequences, left.released, columns.truths)
        places = columns.truths.places(self._plan.model.alphabet)
        # Released rows of symbols gain, be it nothing.
        gains = np.where((left.outcomes == RELEASED) & (places >= 0), 0.0, np.nan)
        rows = np.flatnonzero(followed.tells & (places >= 0))
        gains[rows] = information_gains(followed.masses[rows], followed.told[rows], places[rows])
        entries = [self._report.streams[stream] for stream in columns.owners()]
        for name, amounts in (("loss", lost), ("gain", gains)):
            before = [getattr(entry, name) for entry in entries]
            totals = np.array([np.nan if one is None else one for one in before])
            sums_in_turn(amounts[columns.order], columns.starts, columns.counts, totals)
            for entry, total in zip(entries, totals.tolist(), strict=True):
                setattr(entry, name, None if math.isnan(total) else total)

    def finish(self, report: AuditReport) -> None:
        """Losses per value."""
        losses = self._losses
        report.compared, report.never = losses.compared, losses.never
        report.mean_loss, report.silent_loss = losses.mean, losses.mean_of_silence
