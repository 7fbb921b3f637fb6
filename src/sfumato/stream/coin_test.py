"""Whether outputs are fair draws from their channels: for whoever has the true values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from sfumato.core.alphabet import MISSING_SYMBOL
from sfumato.core.arrays import Floats, Ints
from sfumato.core.events import Outcome
from sfumato.core.loss import Loss
from sfumato.core.purpose import Fallback
from sfumato.core.randomness import BITS
from sfumato.stream.audit_checks import CheckedBatch
from sfumato.stream.audit_report import AuditReport, CoinReport, Kind
from sfumato.stream.checked_columns import CheckedColumns
from sfumato.stream.coin_bets import WAYS, Bets
from sfumato.stream.coin_loops import unfair_ratios, unfair_rows
from sfumato.stream.drawn_rows import DrawnRows, fair_substitute
from sfumato.stream.fleet_answers import RELEASED, SKIPPED
from sfumato.stream.partition.batch_loss import BatchLoss
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan

_RANKS = 8
"""Into so many parts outputs are sorted by how near they are, to learn what a releaser prefers."""
_KEPT = 4096
"""True values whose losses are remembered."""


Owner = TypeVar("Owner", str, int)


class FairCoins:
    """Compares outputs with the channels of their true values, and finds values withheld.

    Given everything before, an honest output follows the row of its true value, exactly: those
    integers are what is sampled. `Bets` says how unlikely what left would be.
    """

    def __init__(self, plan: Plan, report: AuditReport, level: float) -> None:
        self._plan, self._report, self._bets = plan, report, Bets(level)
        self._ranks = np.full(_RANKS, 0.5)
        self._ratios = np.ones(len(WAYS))
        self._streams: dict[str, int] = {}
        self._values: dict[int, int] = {}
        self._rows = 0
        self._losses: dict[int, Floats] = {}
        self._drawn: DrawnRows | None = None

    def see(self, batch: CheckedBatch) -> None:
        """Look at one batch; one without true values cannot be looked at."""
        if not batch.rows or batch.truths[0] is None:
            return
        self._rows += len(batch.rows)
        places = batch.true_places(self._plan)
        if (rule := self._broken(batch, places)) is not None:
            self._report.note(batch.rows[-1], rule, Kind.VALUES)
        elif batch.design is not None and not batch.design.design.channel.is_constant:
            self._bet(batch, batch.design, places)

    def covers(self, columns: CheckedColumns) -> bool:
        """Whether no row breaks a rule whatever its coins, and each can come from its truth."""
        truths, left = columns.truths, columns.left
        if truths is None:
            return True
        places = truths.places(self._plan.model.alphabet)
        skipped = (left.outcomes == SKIPPED) & ~truths.are(MISSING_SYMBOL)
        withheld = columns.followed.withheld & (places >= 0)
        unknown = (left.outcomes == RELEASED) & (places < 0)
        if self._plan.on_unknown is Fallback.SUBSTITUTE:
            unknown &= False
        if (skipped | withheld | unknown).any():
            return False
        self._drawn = DrawnRows.of(self._plan, columns, places)
        return self._drawn.possible

    def see_columns(self, columns: CheckedColumns) -> None:
        """Look at many rows; those without true values cannot be looked at."""
        if columns.truths is None or self._drawn is None:
            return
        self._rows += len(columns)
        drawn, self._drawn = self._drawn, None
        if not len(drawn.rows):
            return
        ratios, nearest = np.ones((len(drawn.rows), len(WAYS))), np.empty(len(drawn.rows))
        loss = self._plan.value_loss
        assert loss is not None  # single values are not compared as batches
        used, which = np.unique(drawn.places, return_inverse=True)
        costs = np.zeros((len(used), len(self._plan.model.alphabet)))
        costs[used >= 0] = loss.rows(used[used >= 0])
        unfair_rows(
            *(drawn.fair, drawn.symbols, drawn.widths, drawn.columns),
            *(costs, which, columns.followed.before[drawn.rows]),
            *(self._ranks, ratios, nearest),
        )
        places = columns.left.streams[drawn.rows]
        streams = _numbered(places, self._streams, lambda place: columns.names[place])
        values = _numbered(drawn.places, self._values, int)
        self._bets.add_rows(columns.rows[drawn.rows], ratios, nearest, streams, values)

    def _broken(self, batch: CheckedBatch, places: list[int] | None) -> str | None:
        """The rule that a batch breaks whatever its coins: what was withheld, and what was not."""
        missing = [truth is not None and truth.symbol == MISSING_SYMBOL for truth in batch.truths]
        match batch.due[0].outcome:
            case Outcome.SKIPPED:
                return None if all(missing) else "a moment that has a value must not be skipped"
            case Outcome.RELEASED:
                if places is None and self._plan.on_unknown is not Fallback.SUBSTITUTE:
                    return "a value outside the alphabet must not be released as another"
            case Outcome.SUPPRESSED | Outcome.REPEATED:
                due, first = len(batch.due), batch.due[0]
                given = (batch.state, due, first.phase, first.period)
                if places is not None and self._plan.prepare(*given):
                    return "a value of the alphabet must not be withheld while there is budget"
        return None

    def _bet(self, batch: CheckedBatch, design: StepDesign, places: list[int] | None) -> None:
        channel, output = design.design.channel, batch.output
        assert output is not None  # `observe` saw that the channel releases it
        column = channel.column(output)
        released = design.patterns[channel.outputs]
        if places is None:
            fair = fair_substitute(design.partition.masses, channel)
            cell, losses = -1, np.zeros(fair.size)
        else:
            cell = design.partition.cell(places)
            fair = np.ldexp(channel.weights[cell].astype(np.float64), -BITS)
            losses = self._costs(places, released)
        if fair[column] <= 0.0:
            rule = "the output must be one that the true value can have"
            self._report.note(batch.rows[-1], rule, Kind.COINS)
            return
        alike = np.zeros(fair.size)
        if not self._plan.in_batches and batch.state.last is not None:
            alike = (released[:, 0] == batch.state.last).astype(np.float64)
        nearest = unfair_ratios(fair, losses, alike, column, self._ranks, self._ratios)
        stream = self._streams.setdefault(batch.stream, len(self._streams))
        value = self._values.setdefault(cell, len(self._values))
        self._bets.add(batch.rows[-1], self._ratios, nearest, stream, value)

    def _costs(self, places: list[int], released: Ints) -> Floats:
        """What each output would have cost."""
        loss = self._plan.loss
        if isinstance(loss, BatchLoss) and loss.each is None:
            return np.asarray(loss.between(np.vstack([places, released])).rows([0])[0, 1:])
        each = self._plan.value_loss
        assert each is not None  # a loss that looks at whole batches was treated above
        total = np.zeros(len(released))
        for position, place in enumerate(places):
            total += self._row(each, place)[released[:, position]]
        return total

    def _row(self, loss: Loss, place: int) -> Floats:
        if place not in self._losses:
            if len(self._losses) >= _KEPT:
                self._losses.clear()
            self._losses[place] = loss.rows([place])[0]
        return self._losses[place]

    def finish(self, report: AuditReport) -> None:
        """Say how unlikely what left would be under fair coins, and what would have been found."""
        bets = self._bets
        bets.settle()
        if not self._rows:
            return
        alarm = bets.crossed is not None
        suspicion = None
        if bets.crossed is not None:
            way, share = bets.likeliest()
            suspicion = f"a releaser that {way} in about {share:.0%} of the rows"
            many = f"10^{bets.best / math.log(10):.0f}"
            rule = (
                f"the outputs must be fair draws; they are {many} times likelier from {suspicion}"
            )
            report.note_all(rule, Kind.COINS)
        report.coins = CoinReport(
            level=bets.level,
            rows=self._rows,
            tested=bets.tested,
            log_e_value=bets.best,
            alarm=alarm,
            suspicion=suspicion,
            power=bets.power(self._rows),
        )


def _numbered(places: Ints, numbers: dict[Owner, int], name: Callable[[int], Owner]) -> Ints:
    """Number owners as they appear; those that have a number keep it."""
    used, first, which = np.unique(places, return_index=True, return_inverse=True)
    found = np.empty(len(used), dtype=np.int64)
    for place in np.argsort(first).tolist():
        found[place] = numbers.setdefault(name(int(used[place])), len(numbers))
    return found[which]
