"""What was promised by the rules of a series or of correlated streams, and by a ledger of any job.

Ledgers of `realtime` and `temporal release` hold the rules that their promise follows from; what
is charged to a row is in the unit of its mechanism, which is no promise, and is not told here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.core.guarantees import LDP, SIP, TemporalDP
from sfumato.core.purpose import Purpose
from sfumato.explanations.amount_words import amount
from sfumato.explanations.belief_words import belief_sentence
from sfumato.explanations.promise_words import SIMULATED, presence_words, temporal_words
from sfumato.series.series_audit import read_rules
from sfumato.store.ledger_check import LedgerReport
from sfumato.temporal.temporal_spec import TemporalSpec, parse_spec

_MOMENT = "of any single moment of a person"


def temporal_plan_words(spec: TemporalSpec) -> Iterator[str]:
    """The rules of a release of correlated streams."""
    if spec.purpose != Purpose.RELEASE.value:
        yield SIMULATED
    what = {"counts": "counts of people", "response": "a person's own value"}[spec.mechanism]
    columns = ", ".join(spec.values)
    yield f"The rules of a release of {what} ({columns}) to which people belong over time."
    yield from temporal_words(TemporalDP(spec.alpha), _MOMENT)
    if spec.steps is None:
        yield "Streams are endless: each row gets what leaves room for all that may follow."
    else:
        yield f"The budgets are for {spec.steps:,} rows of each stream, and there can be no more."
    yield (
        "It holds for an observer who knows how a person's values follow each other: the matrices "
        "that it was made with stand in it."
    )


def series_rules_words(rules: dict[str, Any], where: str) -> Iterator[str]:
    """The rules of a series of numbers."""
    spec, method, purpose = read_rules(rules, where)
    if purpose is not Purpose.RELEASE:
        yield SIMULATED
    yield f"All values of a series together leak at most {amount(method.guarantee)}, {method.unit}."
    yield presence_words(method.guarantee)
    yield f"The budget is for {spec.length:,} values of a series (method {spec.method})."


def ledger_words(report: LedgerReport, rules: str | None, where: str) -> Iterator[str]:
    """What a ledger holds, and what its job promised.

    Args:
        report: What was found in it.
        rules: Those that it was begun with, if it holds them.
        where: What messages call it.
    """
    job = {"temporal": "temporal release"}.get(report.job, report.job)
    streams = "1 stream" if report.streams == 1 else f"{report.streams:,} streams"
    yield (
        f"The ledger of `sfumato {job}`: {report.rows:,} answers of {streams}, with what was "
        "charged for each. It holds no true value. The same event again gets its old answer."
    )
    yield from _promised(report, rules, where)
    whole = "Everything in it fits." if report.passed else "It is NOT whole: see `ledger check`."
    yield f"{whole} Write its head down elsewhere: {report.head}"


def _promised(report: LedgerReport, rules: str | None, where: str) -> Iterator[str]:
    match report.job, rules:
        case "realtime", str():
            yield from series_rules_words(_decoded(rules, where), where)
        case "temporal", str():
            spec = parse_spec(rules.encode(), where)
            yield from temporal_words(TemporalDP(spec.alpha), _MOMENT)
        case (("realtime" | "temporal"), _):
            yield "Its rules do not stand in it: the plan or certificate beside the table has them."
        case _:
            most, free = SIP(report.largest_leakage), LDP(report.largest_model_free)
            yield (
                f"No stream has leaked more than {amount(most)} in all to an observer who knows "
                f"the model, or {amount(free)} whatever he knows."
            )
            yield f"So an observer {belief_sentence(most, 'the true sequence')}."


def _decoded(rules: str, where: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(rules, type=dict[str, Any])
    except msgspec.MsgspecError as problem:
        raise CorruptData(f"{where}: the rules of the series are damaged: {problem}") from None
