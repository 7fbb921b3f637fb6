"""One pass over a source that says what it is worth, and for many chains what it told."""

from __future__ import annotations

from dataclasses import replace

from sfumato.core.information_leakage import information_leakage
from sfumato.core.loss import Loss
from sfumato.core.numerics import add_up
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.store.ledgered_run import Group, LedgeredRun
from sfumato.stream.input_rows import Row, RowChecks, RowReader
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.row_run import Leaving, RowRun
from sfumato.stream.silence import Silence


class WorthRowRun(RowRun):
    """The same answers; beside them what they are expected to cost, and what silence would."""

    def __init__(
        self,
        reader: RowReader,
        checks: RowChecks,
        plan: Plan,
        ledger: LedgeredRun[StreamState],
        randomness: Randomness,
    ) -> None:
        super().__init__(reader, checks, plan, ledger, randomness)
        assert isinstance(plan.loss, Loss)  # values leave one by one
        self._silence = Silence(plan.model, plan.loss)
        self._cost = self._silent = 0.0
        self._steps = 0

    def _complete(self, stream: str, released: Leaving, group: Group[StreamState]) -> None:
        (row,), state = self._batches[stream].rows, group.state(stream)
        found = self._plan.prepare(state, 1, row.phase, row.period)
        super()._complete(stream, released, group)
        silent = self._unsaid(state, row)
        self._steps += 1
        self._silent += silent
        # Where nothing leaves, the receiver guesses as if told nothing.
        self._cost += silent if found is None else found.design.cost
        if found is not None:
            self._told(state, found)

    def _pass(self, row: Row, released: Leaving, group: Group[StreamState]) -> None:
        self._unsaid(group.state(row.stream), row)
        super()._pass(row, released, group)

    def _unsaid(self, state: StreamState, row: Row) -> float:
        """What the best constant of a moment is expected to lose."""
        phase = self._plan.phase(state, row.phase)
        return self._silence.at(state.sequence, phase, state.stream)[1]

    def _told(self, state: StreamState, found: StepDesign) -> None:
        """A value leaves by a channel, from a state."""

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done, and what it is worth."""
        return replace(
            super().report(interrupted=interrupted),
            expected_loss=self._cost / self._steps if self._steps else None,
            silent_loss=self._silent / self._steps if self._steps else None,
        )


class RobustRowRun(WorthRowRun):
    """The same where the budget is kept for many chains: also what leaks under the model."""

    def __init__(
        self,
        reader: RowReader,
        checks: RowChecks,
        plan: Plan,
        ledger: LedgeredRun[StreamState],
        randomness: Randomness,
    ) -> None:
        super().__init__(reader, checks, plan, ledger, randomness)
        self._estimates: dict[str, float] = {}

    def _told(self, state: StreamState, found: StepDesign) -> None:
        channel, told = found.design.channel, 0.0
        if not channel.is_constant:
            told = information_leakage(channel, state.belief.marginal).epsilon
        under = min(told, found.charge.sip)
        self._estimates[state.stream] = add_up(self._estimates.get(state.stream, 0.0), under)

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done, with the numbers of a release for many chains."""
        whole, chains = super().report(interrupted=interrupted), self._plan.robust
        assert chains is not None  # or nobody would have come here
        return replace(
            whole,
            largest_estimate=max(self._estimates.values(), default=0.0),
            confidence=chains.confidence,
        )
