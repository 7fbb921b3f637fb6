"""What left at each moment of a stream and what it leaked, whatever the job.

Series and temporal releases have no belief and no policy: their budgets and certificates follow
from their charges alone, and stand here too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sfumato.core.numerics import add_up, sum_up
from sfumato.core.printed import shown_up
from sfumato.core.state import SeriesState
from sfumato.series.realtime_run import series_remarks
from sfumato.service.fleet_documents import StreamLine
from sfumato.service.readable_release import Rules, SeriesRules, StreamRules, TemporalRules, plain
from sfumato.service.stream_documents import (
    Amount,
    BudgetDocument,
    CertificateDocument,
    LeakageDocument,
    LeakagePoint,
    Promise,
)
from sfumato.service.stream_readouts import symbols_of, words
from sfumato.store.codec import from_bytes
from sfumato.store.protocol import Answer, Position
from sfumato.temporal.over_time import TemporalLeakage, temporal_leakage
from sfumato.temporal.temporal_plan import TemporalState

NATS = "nats"


def promise_of(rules: Rules) -> Promise | None:
    """The guarantee of a series; None for jobs whose charges say what leaked.

    What a ledger charges a series is in units of its noise: it adds up to a guarantee of the whole
    series, and is no leakage of one value. It is not shown.
    """
    if not isinstance(rules, SeriesRules):
        return None
    found = rules.method.guarantee
    return Promise(epsilon=found.epsilon, delta=found.delta, level=rules.method.unit.value)


def rule_words(rules: Rules) -> str:
    """The budget of any job, as people say it."""
    match rules:
        case StreamRules():
            return words(rules.plan.budget)
        case SeriesRules():
            return f"{_promised(rules)} for {rules.spec.length:,} values"
        case TemporalRules():
            steps = rules.spec.steps
            over = "for ever" if steps is None else f"over {steps:,} releases"
            return f"{shown_up(rules.spec.alpha)} nats of any one moment, {over}"


def leakage(
    rules: Rules, release: str, stream: str, answers: Sequence[Answer], last: int
) -> LeakageDocument:
    """The last moments of a stream, from all of its answers."""
    over_time, adds = _over_time(rules, stream, answers), not isinstance(rules, SeriesRules)
    points, sip, ldp = [], 0.0, 0.0
    for place, answer in enumerate(answers):
        sip, ldp = add_up(sip, answer.leakage), add_up(ldp, answer.model_free)
        if place >= len(answers) - last:
            sums = (sip, ldp) if adds else None
            points.append(_point(answer, sums, over_time, place))
    return LeakageDocument(
        release=release,
        stream=stream,
        job=job_of(rules),
        unit=NATS,
        answers=len(answers),
        symbols=symbols_of(rules) if isinstance(rules, StreamRules) else _symbols(rules),
        points=points,
        promise=promise_of(rules),
    )


def line_of(rules: Rules, standing: Position) -> StreamLine:
    """A stream in a list; what the job does not add up is left out."""
    sip = standing.leakage if isinstance(rules, StreamRules) else None
    ldp = None if isinstance(rules, SeriesRules) else standing.model_free
    return StreamLine(stream=standing.stream, answers=standing.sequence, sip=sip, ldp=ldp)


def job_of(rules: Rules) -> str:
    """The job of some rules."""
    match rules:
        case StreamRules():
            return "release"
        case SeriesRules():
            return "realtime"
        case TemporalRules():
            return "temporal"


def budget(
    rules: SeriesRules | TemporalRules, release: str, stream: str, position: Position | None
) -> BudgetDocument:
    """What a series, or a temporal stream, has spent and may still spend."""
    count = 0 if position is None else position.sequence
    spent = 0.0 if position is None else position.leakage
    if isinstance(rules, SeriesRules):
        length, total = rules.spec.length, rules.method.guarantee.epsilon
        left = length - count
        # The noise of all values is fixed in advance: values are what runs out.
        return BudgetDocument(
            release=release,
            stream=stream,
            job="realtime",
            answers=count,
            rule=rule_words(rules),
            steps=length,
            steps_left=max(0, left),
            exhausted=left <= 0,
            model=Amount(),
            model_free=Amount(limit=total),
            one_value=total,
            one_value_rule="differential privacy of all values, whatever the model",
            promise=promise_of(rules),
        )
    plan = rules.spec.plan(stream)
    state = plan.begin(stream) if position is None else from_bytes(position.state, TemporalState)
    allowance, alpha, steps = plan.account(state).allowance, rules.spec.alpha, rules.spec.steps
    gone = allowance <= 0.0
    return BudgetDocument(
        release=release,
        stream=stream,
        job="temporal",
        answers=count,
        rule=rule_words(rules),
        steps=steps,
        steps_left=None if steps is None else max(0, steps - count),
        exhausted=gone,
        model=Amount(spent=state.past, limit=alpha, next=allowance),
        model_free=Amount(spent=spent),
        one_value=alpha,
        one_value_rule="the budgets leave room for all correlated moments",
    )


def certificate(
    rules: SeriesRules | TemporalRules,
    release: str,
    stream: str,
    answers: Sequence[Answer],
    position: Position,
    head: str,
) -> CertificateDocument:
    """What a series, or a temporal stream, leaked: computed again from its charges."""
    charges, remarks = [answer.leakage for answer in answers], list[str]()
    total: float | None = sum_up(charges)
    worst: float | None = max(charges, default=0.0)
    if isinstance(rules, SeriesRules):
        told = [f"in this release {_promised(rules)}, whatever the model"]
        one, fits = rules.method.guarantee.epsilon, len(answers) <= rules.spec.length
        problem = f"it must have at most {rules.spec.length:,} values"
        total, worst, remarks = None, None, _remarks(rules, answers, position)
    else:
        assert total is not None
        over_time = _over_time(rules, stream, answers)
        one = 0.0 if over_time is None else over_time.event.alpha
        told = [
            f"in this release any one moment leaked at most {shown_up(one)} nats "
            "under the matrices",
            f"the whole stream leaked at most {shown_up(total)} nats, whatever the matrices",
        ]
        fits, problem = one <= rules.spec.alpha, "a moment leaked more than alpha"
    return CertificateDocument(
        release=release,
        stream=stream,
        job=job_of(rules),
        unit=NATS,
        answers=len(answers),
        checked=len(answers),
        passed=fits,
        problems=[] if fits else [problem],
        sip=total,
        ldp=total,
        worst_step=worst,
        one_value=one,
        guarantees=told,
        head=head,
        promise=promise_of(rules),
        remarks=remarks,
    )


def _remarks(rules: SeriesRules, answers: Sequence[Answer], position: Position) -> list[str]:
    """What `sfumato realtime` would say of these values: that a constant may be as near.

    The memory of a filter is a function of noisy measurements, which the guarantee is for.
    """
    released = [None if one.released is None else float(one.released) for one in answers]
    risk = None
    if rules.filtered is not None:
        memory = rules.filtered.memory()
        memory.restore(from_bytes(position.state, SeriesState).arrays)
        risk = rules.filtered.risk(memory, released)
    return series_remarks(released, risk)


def _promised(rules: SeriesRules) -> str:
    """Differential privacy of a series, in words."""
    promise = rules.method.guarantee
    slack = f", except with probability {shown_up(promise.delta)}" if promise.delta else ""
    amount = f"{shown_up(promise.epsilon)} nats of differential privacy"
    return f"{amount} at {rules.method.unit.value}{slack}"


def _over_time(rules: Rules, stream: str, answers: Sequence[Answer]) -> TemporalLeakage | None:
    """What correlation lets out of each moment of a temporal stream; None for other jobs."""
    if not isinstance(rules, TemporalRules) or not answers:
        return None
    charges = np.array([answer.leakage for answer in answers])
    return temporal_leakage(charges, *rules.spec.losses(stream))


def _point(
    answer: Answer,
    sums: tuple[float, float] | None,
    over_time: TemporalLeakage | None,
    place: int,
) -> LeakagePoint:
    directions: list[float | None] = [None] * 3
    if over_time is not None:
        arrays = (over_time.backward, over_time.forward, over_time.total)
        directions = [_finite(float(array[place])) for array in arrays]
    return LeakagePoint(
        sequence=answer.sequence,
        time=answer.time,
        released=plain(answer.released),
        outcome=answer.outcome,
        sip=None if sums is None else answer.leakage,
        ldp=None if sums is None else answer.model_free,
        total_sip=None if sums is None else sums[0],
        total_ldp=None if sums is None else sums[1],
        backward=directions[0],
        forward=directions[1],
        total=directions[2],
    )


def _symbols(rules: SeriesRules | TemporalRules) -> list[str | int | float | None]:
    return [] if isinstance(rules, SeriesRules) else list(rules.spec.symbols)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
