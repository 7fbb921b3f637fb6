"""Every draw of a keyed release, held against its key alone: without the true values.

A key fixes the coin of each draw. Whatever the true value was, what left must be what that coin
gives for one of the values that there are: an output that was chosen, or drawn with another coin,
is mostly none of those. Which value it was stays unknown here, so a releaser that took the coin of
the key and a false value is not found; `replayed_coins` finds him, with the true values.
"""

from __future__ import annotations

import numpy as np

from sfumato.core.purpose import Fallback
from sfumato.core.randomness import Randomness
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport, Kind
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.plan import Plan


class PossibleDraws:
    """Notes what left and is no draw of a key, whatever the true value: a check of an audit.

    Args:
        plan: The rule of the release.
        coins: Those of the key.

    Attributes:
        rows: Rows whose draws the key makes for some value.
    """

    def __init__(self, plan: Plan, coins: Randomness) -> None:
        self._plan, self._coins = plan, coins
        self._others = 0
        self.rows = 0

    def see(self, batch: CheckedBatch) -> None:
        """Look at one batch; where nothing new left, nothing was drawn."""
        if batch.design is None or batch.output is None:
            return
        first = batch.due[0]
        place = batch.stream, batch.state.sequence, first.phase, first.period
        word = self._coins.at(self._plan.address(*place)).words(1)
        channel = batch.design.design.channel
        drawn = channel.draw(np.arange(channel.size), np.repeat(word, channel.size))
        if batch.output in drawn.tolist():
            self.rows += len(batch.due)
        else:
            self._others += len(batch.due)

    def covers(self, columns: CheckedColumns) -> bool:
        """Whether nothing was drawn: without true values, channels of many rows are not kept."""
        return not columns.followed.tells.any()

    def see_columns(self, columns: CheckedColumns) -> None:
        """Nothing was drawn for these."""

    def finish(self, report: AuditReport) -> None:
        """Write down how many draws are those of the key, and that others are not."""
        report.possible = self.rows
        if not self._others:
            return
        if self._plan.on_unknown is Fallback.SUBSTITUTE:
            # In the place of a value outside the alphabet another one is drawn, with a coin more.
            told = "draws with the key: they may stand for values outside the alphabet"
            report.unchecked.append(f"{self._others:,} {told}")
        else:
            told = "rows left that the key draws for no value at all"
            report.note_all(f"{self._others:,} {told}", Kind.COINS)
