"""A series whose every answer is kept in a ledger: a retry draws nothing anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.core.state import SeriesState
from sfumato.series.calendar import moments
from sfumato.series.memory import Memory
from sfumato.series.realtime import Realtime
from sfumato.series.series_methods import AnyMethod
from sfumato.series.series_release import SeriesEvent
from sfumato.series.series_spec import SeriesSpec
from sfumato.store.ledgered_run import Group, LedgeredRun, StateKind
from sfumato.store.protocol import Again, Answer, Identity, Job, LedgerMismatch
from sfumato.store.sqlite import SqliteStore

JOB = Job("realtime", "method, budget, sensitivity, length, range or process")
# Rows that are committed together: a commit waits for the disk.
_GROUP = 4096


@dataclass(frozen=True, slots=True)
class SeriesLedger:
    """Where answers are kept, and what tells the rows of an input apart.

    Attributes:
        path: The ledger file; it is made if it does not exist.
        source: Name of the input.
        series: Name of the series in the ledger.
        identity: Whether rows are known by an event id, by their time, or by source and row.
        keys: Event ids or times of the rows; not used for rows.
        again: What an input that was answered before holds now.
    """

    path: Path
    source: str
    series: str
    identity: Identity = Identity.ROW
    keys: Sequence[str] = ()
    again: Again = Again.REFUSE

    def ids(self, label: str, count: int) -> list[str]:
        """What tells each row from all others of the ledger."""
        if self.identity is Identity.EVENT:
            return list(self.keys)
        if self.identity is Identity.TIME:
            return [f"{self.series}@{key}" for key in self.keys]
        return [f"{label}:{row}" for row in range(1, count + 1)]


def ledger_plan(method: AnyMethod, spec: SeriesSpec, purpose: Purpose) -> str:
    """What a ledger is for: the method and the purpose, and the range that answers lie in."""
    return digest(JOB.name, method.plan(purpose), repr(spec.interval))


def rules_document(method: AnyMethod, spec: SeriesSpec, purpose: Purpose) -> dict[str, Any]:
    """The public rules of a release, from which an audit makes its noise again."""
    estimate = method.estimate.name if isinstance(method, Realtime) else None
    return {
        "job": JOB.name,
        "sensitivity": spec.sensitivity,
        "epsilon": spec.epsilon,
        "delta": spec.delta,
        "length": spec.length,
        "window": spec.window,
        "method": spec.method,
        "unit": spec.unit,
        "weight": spec.weight,
        "interval": None if spec.interval is None else list(spec.interval),
        "estimate": estimate,
        "purpose": purpose.value,
        "plan": ledger_plan(method, spec, purpose),
    }


def ledgered(
    method: AnyMethod,
    spec: SeriesSpec,
    values: Sequence[float | None],
    ledger: SeriesLedger,
    randomness: Randomness,
    purpose: Purpose,
) -> tuple[list[SeriesEvent], Memory, AnyMethod]:
    """Answers for all rows: those that were answered before as they were, the others committed.

    Returns:
        What leaves for each row, the memory after the last of them, and the method.

    Raises:
        LedgerMismatch: If the ledger is that of another plan, a row is not the one that was
            answered before, or new rows stand before old ones.
    """
    if method.secret:
        rule = "be one whose memory tells nothing, to come with a ledger"
        raise InvalidParameter("method", spec.method, rule)
    rules = msgspec.json.encode(rules_document(method, spec, purpose)).decode()
    plan = ledger_plan(method, spec, purpose)
    with SqliteStore(ledger.path, plan, job=JOB, rules=rules) as store:
        source = store.begin(ledger.source, ledger.identity, ledger.again)
        # Another ledger has other coins, also with the same key: two releases would tell more.
        name = f"{ledger.series} {store.front.id.hex()}"
        coins = method.own_coins(randomness, name, purpose)
        kind: StateKind[SeriesState] = StateKind(
            SeriesState, lambda _: method.start(coins), lambda s: s.time, lambda s: (s.spent, 0.0)
        )
        run = LedgeredRun(store, source, kind)
        ids = ledger.ids(source.label, len(values))
        answers = run.earlier(ids)
        old = _old_rows(run, ledger, answers, ids, values)
        begun = run.state(ledger.series)
        if begun.time + len(values) - old > spec.length:
            rule = f"have at most {spec.length} values, as many as the budget is for"
            raise InvalidParameter("series", begun.time + len(values) - old, rule)
        if isinstance(method, Realtime):
            # Phases of the calendar are those of these rows, of which some or all are new.
            method = replace(method, estimate=method.estimate.later(begun.time - old))
        for start in range(old, len(values), _GROUP):
            rows = range(start, min(start + _GROUP, len(values)))
            with run.group() as group:
                fresh = _answered(method, spec, ledger, group, coins, [values[row] for row in rows])
                tagged = [
                    replace(
                        answer,
                        id=ids[row],
                        source=source.label,
                        place=row + 1,
                        time=ledger.keys[row] if ledger.identity is Identity.TIME else None,
                        tag=run.tag(ids[row], ledger.series, values[row]),
                    )
                    for row, answer in zip(rows, fresh[0], strict=True)
                ]
                group.add(tagged, ledger.series, fresh[1])
            answers |= {answer.id: answer for answer in tagged}
        if ledger.again is Again.RESUME:
            run.check_complete()
        memory = method.restored(run.state(ledger.series), coins)
    events = [answers[id_] for id_ in ids]
    return [SeriesEvent(e.sequence, _float(e), e.leakage) for e in events], memory, method


def _answered(
    method: AnyMethod,
    spec: SeriesSpec,
    ledger: SeriesLedger,
    group: Group[SeriesState],
    coins: StreamCoins,
    values: Sequence[float | None],
) -> tuple[list[Answer], SeriesState]:
    """Answers of new rows, as they will leave, and the state after them."""
    events, state = method.step(group.state(ledger.series), values, coins)
    answers = [
        Answer(
            id="",
            source="",
            place=0,
            stream=ledger.series,
            sequence=event.sequence,
            outcome=event.outcome.value,
            released=spec.within(event.released),
            leakage=event.charge,
            model_free=0.0,
        )
        for event in events
    ]
    return answers, state


def _old_rows(
    run: LedgeredRun[SeriesState],
    ledger: SeriesLedger,
    answers: dict[str, Answer],
    ids: list[str],
    values: Sequence[float | None],
) -> int:
    """How many rows were answered before: the first ones, each with the value that it had."""
    if len(set(ids)) < len(ids):
        raise LedgerMismatch("rows of one input must differ in what they are known by")
    old = sum(id_ in answers for id_ in ids)
    if any(id_ not in answers for id_ in ids[:old]):
        raise LedgerMismatch("new rows must come after those that were answered before")
    for id_, value in zip(ids[:old], values, strict=False):
        run.check_retry(answers[id_], ledger.series, run.tag(id_, ledger.series, value))
    last = run.last_time(ledger.series) if ledger.identity is Identity.TIME else None
    if last is not None and old < len(ids):
        moments([last, ledger.keys[old]], ledger.source)  # refuses a time that goes back
    return old


def _float(answer: Answer) -> float | None:
    return None if answer.released is None else float(answer.released)
