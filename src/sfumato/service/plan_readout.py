"""Loss against budget for the model of a release, computed aside while the page looks on.

One thread of its own tries one budget after another on streams drawn from the model, those asked
for last first; nobody waits for it, and a budget that takes too long is given up and says so.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from sfumato.core.budgets import Budget, Geometric, Horizon, PerPeriod, PerStep, Window
from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.core.guarantees import SIP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.models.library import PatternLibrary
from sfumato.service.fleet_documents import PlanDocument, PlanPoint
from sfumato.service.moment_readouts import job_of
from sfumato.service.readable_release import Rules, StreamRules
from sfumato.solver.design_methods import Method
from sfumato.stream.forecast import PlanReport, forecast
from sfumato.stream.plan import Plan
from sfumato.stream.release_trials import Forecast, sighted_way
from sfumato.stream.silence import Silence

MOST_POINTS, LENGTH, STREAMS = 16, 40, 6
SECONDS = 20.0
"""After which the trials of one budget are given up."""
_KEPT, _WAITING = 512, 64
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
_SURE = 2.0
"""Standard errors of an interval."""
_LITTLE = 1e-3
"""A loss that is smaller than silence's by no more than this part is no better."""
_REMARK = (
    "step by step at its best, on streams drawn from the model; intervals are two standard errors"
)
_SAME = "this release works so itself"
_BATCHES = "this release works in batches, which the curve does not show"
_OTHER = "this release is {}: its own point is tried as it is served, and is not on the curve"
_CAPPED = "the cap whatever the model stays what it is, and binds large budgets"


class _Overdue(Exception):
    """The trials of a budget took too long."""


class _Asked(NamedTuple):
    """One budget for one plan."""

    plan: str
    epsilon: float
    served: bool = False


class PlanDesk(Guarded):
    """Budgets that were asked about, and what is known of them; safe in threads.

    Args:
        seconds: After which the trials of one budget are given up.
    """

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._points: OrderedDict[_Asked, PlanPoint] = OrderedDict()
        self._waiting: list[tuple[Plan, _Asked]] = []
        self._worker: threading.Thread | None = None
        self._closed = threading.Event()

    def document(
        self, rules: Rules, release: str, epsilons: Sequence[float] | None
    ) -> PlanDocument:
        """What is known so far; what is not is computed from now on, the last of them first.

        Raises:
            InvalidParameter: If too many budgets are asked for, or one is no leakage.
        """
        document = PlanDocument(release=release, job=job_of(rules))
        if not isinstance(rules, StreamRules):
            why = "loss against budget is known for streams of symbols (job release) alone"
            return msgspec.structs.replace(document, unavailable=why)
        plan = step_wise(rules.plan)
        if plan is None:
            why = "the loss of whole batches is not forecast; that of single values is"
            return msgspec.structs.replace(document, unavailable=why)
        own = per_step(plan.budget)
        asked = list(dict.fromkeys(epsilons or (factor * own for factor in _FACTORS)))
        if len(asked) > MOST_POINTS:
            rule = f"be no more than {MOST_POINTS} numbers"
            raise InvalidParameter("epsilon", f"{len(asked)} of them", rule)
        for epsilon in asked:
            if not 0 < epsilon <= 100:
                raise InvalidParameter("epsilon", epsilon, "be above 0 and at most 100 nats")
        assert isinstance(plan.loss, Loss)
        silence = Silence(plan.model, plan.loss)
        constant = math.fsum(silence.at(moment)[1] for moment in range(LENGTH)) / LENGTH
        points = sorted(
            (self._point(plan, epsilon) for epsilon in asked), key=lambda one: one.epsilon
        )
        served, words = self._served(rules.plan, own)
        known = served or next((one for one in points if one.epsilon == own), None)
        return msgspec.structs.replace(
            document,
            served=served,
            served_method=rules.plan.method.value,
            served_remark=words,
            remarks=_beside_silence(known, constant),
            epsilon=own,
            length=LENGTH,
            streams=STREAMS,
            unit=rules.unit,
            silence=constant,
            points=points,
            remark=_REMARK if plan.budget.ldp is None else f"{_REMARK}; {_CAPPED}",
        )

    def _served(self, plan: Plan, own: float) -> tuple[PlanPoint | None, str]:
        """The release itself, where the curve does not show it, and how the two differ."""
        if plan.in_batches or not isinstance(plan.loss, Loss):
            return None, _BATCHES
        if plan.method is Method.OPTIMAL and plan.policy is None and plan.memory == 1:
            return None, _SAME
        method = plan.method.value if plan.method is not Method.OPTIMAL else "step-wise"
        how = method if plan.policy is None else f"{method}, by its compiled policy"
        return self._point(plan, own, served=True), _OTHER.format(how)

    @guarded
    def _point(self, plan: Plan, epsilon: float, *, served: bool = False) -> PlanPoint:
        """What is known of one budget; if nothing is, somebody begins."""
        asked = _Asked(plan.fingerprint, epsilon, served)
        # Whoever asks again still looks at it: it comes before what others asked for since.
        self._waiting.sort(key=lambda one: one[1] == asked)
        if asked not in self._points and not self._closed.is_set():
            self._points[asked] = PlanPoint(epsilon=epsilon, status="computing")
            while len(self._points) > _KEPT:
                self._points.popitem(last=False)
            self._waiting.append((plan, asked))
            if len(self._waiting) > _WAITING:  # who still wants the oldest asks for it again
                del self._points[self._waiting.pop(0)[1]]
            if self._worker is None:
                # Nobody waits for it at the end: what it computes can be computed again.
                self._worker = threading.Thread(target=self._work, name="plans", daemon=True)
                self._worker.start()
        return self._points.get(asked, PlanPoint(epsilon=epsilon, status="unknown"))

    def _work(self) -> None:
        """Try budgets until none waits, the one asked for last first: somebody looks at it now."""
        try:
            while (turn := self._next()) is not None:
                self._compute(*turn)
        except BaseException:
            # Whatever broke it is told by the thread; the next who asks begins another.
            self._give_up()
            raise

    @guarded
    def _next(self) -> tuple[Plan, _Asked] | None:
        if not self._waiting or self._closed.is_set():
            self._worker = None
            return None
        return self._waiting.pop()

    @guarded
    def _give_up(self) -> None:
        self._worker = None
        for asked, point in list(self._points.items()):
            if point.status == "computing":
                self._points[asked] = PlanPoint(epsilon=point.epsilon, status="unknown")
        self._waiting.clear()

    def _compute(self, plan: Plan, asked: _Asked) -> None:
        until = time.monotonic() + self._seconds

        def watch(_: int) -> None:
            if self._closed.is_set() or time.monotonic() > until:
                raise _Overdue

        try:
            if asked.served:
                point = _served_point(asked.epsilon, plan, watch)
            else:
                scaled = replace(plan, budget=scaled_to(plan.budget, asked.epsilon))
                found = forecast(
                    scaled, length=LENGTH, streams=STREAMS, rivals=(Method.OPTIMAL,), progress=watch
                )
                point = _point_of(asked.epsilon, found, found.methods[0])
        except _Overdue:
            point = PlanPoint(epsilon=asked.epsilon, status="too slow")
        except SfumatoError:
            # Whatever a forecast cannot do for this model, the page goes on without the point.
            point = PlanPoint(epsilon=asked.epsilon, status="unknown")
        self._keep(asked, point)

    @guarded
    def _keep(self, asked: _Asked, point: PlanPoint) -> None:
        self._points[asked] = point

    def close(self) -> None:
        """Stop computing; what is known stays readable."""
        self._closed.set()
        worker = self._worker
        if worker is not None:
            worker.join(timeout=self._seconds)


def _served_point(epsilon: float, plan: Plan, watch: Progress) -> PlanPoint:
    """A release as it is served: its method, its policy, its own budget."""
    if plan.sight is not None:  # a far-sighted plan comes first by itself
        found = forecast(plan, length=LENGTH, streams=STREAMS, rivals=(), progress=watch)
        return _point_of(epsilon, found, found.methods[0])
    own = sighted_way(plan, plan.method.value)
    rivals = (Method.OPTIMAL,)
    found = forecast(
        plan, length=LENGTH, streams=STREAMS, rivals=rivals, ways=(own,), progress=watch
    )
    return _point_of(epsilon, found, found.ways[0])


def _beside_silence(point: PlanPoint | None, silence: float) -> list[str]:
    """That the best constant may lose no more than the release does."""
    if point is None or point.loss is None or point.high is None:
        return []
    if point.high < silence * (1 - _LITTLE):
        return []
    lost = f"a value of this release loses {point.loss:.4g}, the best constant {silence:.4g}"
    return [f"a constant may do as well: {lost}"]


def _point_of(epsilon: float, found: PlanReport, best: Forecast) -> PlanPoint:
    error = best.loss_error if math.isfinite(best.loss_error) else 0.0
    floor = found.floor
    return PlanPoint(
        epsilon=epsilon,
        status="ready",
        loss=best.loss,
        low=max(0.0, best.loss - _SURE * error),
        high=best.loss + _SURE * error,
        best_guess=best.recovered_loss,
        floor=floor,
        charged=best.sip,
        model_free=best.ldp,
        total=best.total,
        one_value=found.one_value if math.isfinite(found.one_value) else None,
    )


def step_wise(plan: Plan) -> Plan | None:
    """The same release value by value, each step at its best; None where losses are of batches."""
    loss = plan.value_loss
    if loss is None or isinstance(plan.model, PatternLibrary):
        return None
    return replace(
        plan, loss=loss, width=1, memory=1, method=Method.OPTIMAL, policy=None, sight=None
    )


def per_step(budget: Budget) -> float:
    """What a budget gives a step on average.

    Examples:
        >>> per_step(Horizon(SIP(10.0), 50))
        0.2
    """
    match budget:
        case Horizon():
            return budget.sip.epsilon / budget.steps
        case Window():
            return budget.sip.epsilon / budget.width
        case PerStep():
            return budget.sip.epsilon
        case Geometric():
            return budget.sip.epsilon * (1 - budget.ratio)
        case PerPeriod():
            return min(budget.sip.epsilon / (budget.steps or 1), budget.most_at_once())


def scaled_to(budget: Budget, epsilon: float) -> Budget:
    """The same rule with so much for a step on average."""
    return replace(budget, sip=SIP(budget.sip.epsilon * (epsilon / per_step(budget))))
