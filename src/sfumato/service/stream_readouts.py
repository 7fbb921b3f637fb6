"""Readouts of job `release`: budget, certificate, belief and recovered values of a stream."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import Budget, Horizon, PerPeriod, PerStep, Window, what_is_left
from sfumato.core.bursts import Bursts, WindowBursts
from sfumato.core.ledger import Ledger
from sfumato.core.numerics import sum_up
from sfumato.core.printed import shown_up
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.service.followed_streams import FollowedStream
from sfumato.service.readable_release import StreamRules, plain
from sfumato.service.stream_documents import (
    Amount,
    BeliefDocument,
    BudgetDocument,
    CertificateDocument,
    RecoveredDocument,
    RecoveredValue,
    WindowStep,
)
from sfumato.store.codec import from_bytes
from sfumato.store.protocol import Position
from sfumato.stream.lifetime import one_value_bound

_SYMBOLS = 48
"""Symbols that a heat strip shows at most: more are no longer told apart on a screen."""


def state_of(rules: StreamRules, stream: str, position: Position | None) -> StreamState:
    """Where a stream stands: as it was stored, or before its first value."""
    if position is None:
        return rules.plan.begin(stream)
    state = from_bytes(position.state, StreamState)
    rules.plan.check_own(state)
    return state


def budget(
    rules: StreamRules, release: str, stream: str, position: Position | None
) -> BudgetDocument:
    """What a stream has spent and may still spend."""
    plan, state = rules.plan, state_of(rules, stream, position)
    ledger, rule = state.ledger, rules.plan.budget
    due = plan.allowance(ledger, plan.width)
    limits = [_finite(limit) for limit in rule.limits.tolist()]
    chain = plan.model if isinstance(plan.model, MarkovChain) else None
    bound = one_value_bound(chain, rule, None, plan.width)
    amounts = [
        Amount(
            spent=spent,
            limit=limit if not isinstance(rule, PerStep) else None,
            left=left_of(rule, ledger, part),
            next=share,
        )
        for part, (spent, limit, share) in enumerate(
            zip((ledger.sip, ledger.ldp), limits, (due.sip, due.ldp), strict=True)
        )
    ]
    first = state.sequence - len(ledger.recent)
    return BudgetDocument(
        release=release,
        stream=stream,
        job="release",
        answers=state.sequence,
        rule=words(rule),
        steps=steps_of(rule),
        steps_left=max(0, rule.steps - ledger.count) if isinstance(rule, Horizon) else None,
        exhausted=due.exhausted,
        model=amounts[0],
        model_free=amounts[1],
        in_window=[
            WindowStep(sequence=first + place, sip=charge.sip, ldp=charge.ldp)
            for place, charge in enumerate(ledger.recent)
        ],
        one_value=_finite(bound.sip.epsilon),
        one_value_rule=bound.rule,
    )


def left_of(rule: Budget, ledger: Ledger, part: int) -> float | None:
    """What is left of a limit now; None where there is none, or each step has its own."""
    limit = float(rule.limits[part])
    if math.isinf(limit) or isinstance(rule, PerStep):
        return None
    spent = (ledger.sip, ledger.ldp)[part]
    if isinstance(rule, WindowBursts):
        return None  # every burst finds the same share; what others spent is not kept
    if isinstance(rule, Window):
        spent = sum_up([(charge.sip, charge.ldp)[part] for charge in ledger.recent])
    if isinstance(rule, Horizon) and ledger.count >= rule.steps:
        return 0.0  # what was not spent in time is not handed on
    return what_is_left(limit, spent)


def steps_of(rule: Budget) -> int | None:
    """Steps that a limit is for."""
    match rule:
        case Horizon():
            return rule.steps
        case Window():
            return rule.width
        case _:
            return None


def words(rule: Budget) -> str:
    """A budget as people say it.

    Examples:
        >>> from sfumato.core.guarantees import SIP
        >>> words(Horizon(SIP(10.0), 50))
        '10 nats over 50 steps'
    """
    amount = f"{shown_up(rule.sip.epsilon)} nats"
    match rule:
        case PerStep():
            said = f"{amount} at every step"
        case Bursts():
            said = f"{amount} over {rule.steps:,} steps, spent every {rule.every} steps"
        case Horizon():
            said = f"{amount} over {rule.steps:,} steps"
        case WindowBursts():
            said = f"{amount} in any {rule.width:,} successive steps, spent every {rule.every}"
        case Window():
            said = f"{amount} in any {rule.width:,} successive steps"
        case PerPeriod():
            said = f"{amount} in each {rule.period}"
        case _:
            said = f"{amount} for ever, each step a part of what is left"
    if rule.ldp is None:
        return said
    return f"{said}; whatever the model, {shown_up(rule.ldp.epsilon)} nats"


def certificate(
    followed: FollowedStream, release: str, answers: int, head: str
) -> CertificateDocument:
    """What a stream leaked, in the words of `audit`."""
    found, report = followed.audit(), followed.report
    told = [
        f"in this release all outputs leaked at most {shown_up(found.sip)} nats about the whole "
        "stream, if values move as the model says",
        f"and at most {shown_up(found.ldp)} nats however they move",
        f"about any one value this release told at most {shown_up(found.one_value)} nats "
        "under the model",
    ]
    return CertificateDocument(
        release=release,
        stream=followed.stream,
        job="release",
        answers=answers,
        checked=followed.followed,
        passed=report.passed,
        problems=list(report.problems),
        sip=found.sip,
        ldp=found.ldp,
        composed=_finite(found.composed),
        worst_step=found.worst_step,
        worst_window=found.worst_window,
        one_value=found.one_value,
        guarantees=told,
        head=head,
    )


def belief(
    followed: FollowedStream, release: str, answers: int, last: int, columns: int
) -> BeliefDocument:
    """The belief right after each output, for the last moments; columns are means of several."""
    recovery, labels = followed.recovery(), followed.rules.plan.model.alphabet.labels
    document = BeliefDocument(
        release=release, stream=followed.stream, answers=answers, followed=followed.followed
    )
    if recovery is None:
        why = followed.unlisted or "nothing was released yet"
        return msgspec.structs.replace(document, unavailable=why)
    rows = recovery.posterior(followed.stream, lag=0)
    first = max(0, len(rows) - last)
    shown = rows[first:]
    width = -(-len(shown) // columns)
    starts = np.arange(0, len(shown), width)
    means = np.add.reduceat(shown, starts, axis=0) / np.diff([*starts, len(shown)])[:, None]
    chosen = _most_believed(means)
    return msgspec.structs.replace(
        document,
        symbols=[plain(labels[place]) for place in chosen.tolist()],
        others=len(labels) - len(chosen),
        width=width,
        steps=(starts + first).tolist(),
        probabilities=np.rint(means[:, chosen] * 10_000).astype(int).tolist(),
    )


def recovered(
    followed: FollowedStream, release: str, answers: int, last: int, cover: float
) -> RecoveredDocument:
    """Best guess and credible set of the last values, given everything that left."""
    recovery, labels = followed.recovery(), followed.rules.plan.model.alphabet.labels
    document = RecoveredDocument(
        release=release,
        stream=followed.stream,
        answers=answers,
        followed=followed.followed,
        cover=cover,
    )
    if recovery is None:
        why = followed.unlisted or "nothing was released yet"
        return msgspec.structs.replace(document, unavailable=why)
    found = recovery.values(cover=cover)
    values = [
        RecoveredValue(
            sequence=place,
            released=plain(followed.events[place].released),
            guess=plain(labels[found.guesses[place]]),
            probability=float(found.probabilities[place]),
            loss=float(found.losses[place]),
            credible=[plain(labels[one]) for one in found.credible(place).tolist()],
        )
        for place in range(max(0, len(found.guesses) - last), len(found.guesses))
    ]
    return msgspec.structs.replace(document, values=values)


def symbols_of(rules: StreamRules) -> list[str | int | float | None]:
    """The symbols of a model, as a document has them."""
    return [plain(label) for label in rules.plan.model.alphabet.labels]


def _most_believed(means: Floats) -> Ints:
    """The symbols that are shown, in the order of the alphabet."""
    if means.shape[1] <= _SYMBOLS:
        return np.arange(means.shape[1])
    return np.sort(np.argsort(-means.sum(axis=0), kind="stable")[:_SYMBOLS])


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value
