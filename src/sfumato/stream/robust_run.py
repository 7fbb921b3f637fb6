"""One pass over a source whose budget is kept for many chains: three numbers, and its worth."""

from __future__ import annotations

from dataclasses import replace

from sfumato.core.information_leakage import information_leakage
from sfumato.core.loss import Loss
from sfumato.core.numerics import add_up
from sfumato.core.randomness import Randomness
from sfumato.core.state import StreamState
from sfumato.store.ledgered_run import Group, LedgeredRun
from sfumato.stream.input_rows import RowChecks, RowReader
from sfumato.stream.plan import Plan
from sfumato.stream.release_report import ReleaseReport
from sfumato.stream.row_run import Leaving, RowRun
from sfumato.stream.silence import Silence


class RobustRowRun(RowRun):
    """The same answers; beside them what they leak under the model, and what they cost."""

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
        self._estimates: dict[str, float] = {}
        self._cost = self._silent = 0.0
        self._steps = 0

    def _complete(self, stream: str, released: Leaving, group: Group[StreamState]) -> None:
        state = group.state(stream)
        found = self._plan.prepare(state, 1)
        super()._complete(stream, released, group)
        silent = self._silence.at(state.sequence)[1]
        self._steps += 1
        self._silent += silent
        if found is None:
            self._cost += silent  # nothing left: the receiver guesses as if told nothing
            return
        self._cost += found.design.cost
        channel, told = found.design.channel, 0.0
        if not channel.is_constant:
            told = information_leakage(channel, state.belief.marginal).epsilon
        under = min(told, found.charge.sip)
        self._estimates[stream] = add_up(self._estimates.get(stream, 0.0), under)

    def report(self, *, interrupted: bool) -> ReleaseReport:
        """What was done, with the numbers of a release for many chains."""
        whole, chains = super().report(interrupted=interrupted), self._plan.robust
        assert chains is not None  # or nobody would have come here
        return replace(
            whole,
            largest_estimate=max(self._estimates.values(), default=0.0),
            confidence=chains.confidence,
            expected_loss=self._cost / self._steps if self._steps else None,
            silent_loss=self._silent / self._steps if self._steps else None,
        )
