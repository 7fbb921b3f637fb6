"""Every draw of a keyed release once more, for whoever has the key and the true values.

A key fixes every coin: what left for a true value is a function of key, plan, stream and sequence
number. So one coin that was turned round shows, with certainty. That the key was drawn at random,
and not sought among many, nothing shows but a commitment that was published before the data.

What stands in the ledger alone has no true value here, so it is not drawn again, and neither is a
batch whose channel looks back at such a value. The report says how many draws were repeated.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.arrays import Ints
from sfumato.core.errors import SfumatoError
from sfumato.core.events import Outcome
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Domain, Randomness, words_at
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport, Kind, ReplayReport
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.draw_loops import draw
from sfumato.stream.fleet_answers import RELEASED, SKIPPED
from sfumato.stream.plan import Plan

_UNKNOWN = object()
"""In place of a true value that is not at hand."""


class ReplayedCoins:
    """Draws every batch again, and notes those that left otherwise: a check of an audit.

    Args:
        plan: The rule of the release.
        coins: Those of the key.

    Attributes:
        rows: Rows that were drawn again.
    """

    def __init__(self, plan: Plan, coins: Randomness) -> None:
        self._plan, self._coins = plan, coins
        self._known: dict[str, list[object]] = {}
        self._others: list[tuple[int, str]] = []
        self.rows = 0
        self._without_truth = self._without_past = 0

    def see(self, batch: CheckedBatch) -> None:
        """Draw a batch again; one without true values cannot be drawn."""
        symbols = [_UNKNOWN if truth is None else truth.symbol for truth in batch.truths]
        recalled: list[object] = []
        if self._plan.memory > 1:
            before = self._known.setdefault(batch.stream, [])
            recalled = before[len(before) - self._plan.recalled(batch.state) :]
            before += symbols
        if _UNKNOWN in symbols:
            self._without_truth += len(symbols)
            return
        if _UNKNOWN in recalled:
            self._without_past += len(symbols)
            return
        self.rows += len(symbols)
        if batch.due[0].outcome is Outcome.SKIPPED and symbols[0] in (None, MISSING_SYMBOL):
            return  # a moment without a value: nothing was drawn
        try:
            when = batch.due[0].phase, batch.due[0].period
            events, _ = self._plan.step(batch.state, symbols, self._coins, recalled, *when)
        except SfumatoError:
            self._note(batch, "the plan refuses this value, and something left for it")
            return
        for due, drawn in zip(batch.due, events, strict=True):
            if (due.released, due.outcome, due.signal) != (
                drawn.released,
                drawn.outcome,
                drawn.signal,
            ):
                self._note(batch, "what left is not what the key draws for the true value")
                return

    def covers(self, columns: CheckedColumns) -> bool:
        """Whether every row is what the key draws; else they are drawn one by one."""
        truths, left, plan = columns.truths, columns.left, self._plan
        if truths is None:
            return True
        if plan.memory > 1:
            return False
        places = truths.places(plan.model.alphabet)
        known = places >= 0
        followed, new = columns.followed, left.outcomes == RELEASED
        silent = ~new & ~(followed.withheld & known)
        silent &= (left.outcomes != SKIPPED) | truths.are(None, MISSING_SYMBOL)
        # A constant says what it says.
        constant = new & ~followed.tells & (known | (plan.on_unknown is Fallback.SUBSTITUTE))
        if not (silent | constant | (followed.tells & known)).all():
            return False
        return self._drawn_so(columns, np.flatnonzero(followed.tells), places)

    def _drawn_so(self, columns: CheckedColumns, rows: Ints, places: Ints) -> bool:
        """Whether the key draws what left in some rows, given their true symbols."""
        assert self._plan.policy is not None  # without one, rows come one by one
        here = (Domain.STREAM, self._plan.fingerprint, columns.names)
        owners, moments = columns.left.streams[rows], columns.sequences[rows]
        words = words_at(self._coins, *here, owners, moments)
        kept = columns.followed.channels.chosen[rows] >= 0
        channels = columns.followed.channels.of(rows[kept])
        # In a copy of the room for columns: those that left stay what they are.
        ready: Any = tuple(channels._replace(columns=np.full(int(kept.sum()), -1)))
        draw(self._plan.policy.tables, ready, places[rows[kept]], words[kept])
        if (ready[6] != channels.columns).any():
            return False
        for at, word in zip(rows[~kept].tolist(), words[~kept], strict=True):
            design, output = columns.followed.solved[at]
            drawn = design.design.channel.draw([int(places[at])], np.array([word]))
            if int(drawn[0]) != output:
                return False
        return True

    def see_columns(self, columns: CheckedColumns) -> None:
        """Count rows that were drawn again; those without true values cannot be."""
        if columns.truths is None:
            self._without_truth += len(columns)
        else:
            self.rows += len(columns)

    def _note(self, batch: CheckedBatch, rule: str) -> None:
        self._others.append((batch.rows[-1], rule))

    def finish(self, report: AuditReport) -> None:
        """Write down the rows that left otherwise, and how many were drawn again at all."""
        for row, rule in self._others:
            report.note_all(f"row {row}: {rule}", Kind.COINS)
        seen = self.rows + self._without_truth + self._without_past
        # Rows that cannot be read, or follow such a one, were never seen.
        unread = max(report.rows - report.repeated + report.only_in_ledger - seen, 0)
        due, sound = seen + unread + report.left_out, Kind.LEDGER.value not in report.problem_kinds
        report.replayed = ReplayReport(self.rows, due, self.rows == due and sound)
        for count, why in (
            (self._without_truth, "stand in the ledger alone, without their true values"),
            (self._without_past, "come from channels that look back at values not given"),
            (unread, "are of rows that cannot be verified"),
        ):
            if count:
                report.unchecked.append(f"{count:,} draws with the key: they {why}")
        if not sound:
            report.unchecked.append("draws with the key that stand in the ledger: it is not sound")
