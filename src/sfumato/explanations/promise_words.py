"""What a release promised, and what of it has been spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.core import portable
from sfumato.core.errors import CorruptData
from sfumato.core.guarantees import LDP, LIP, SIP
from sfumato.core.numerics import sum_up
from sfumato.core.periods import Period
from sfumato.core.printed import shown_up
from sfumato.core.purpose import Purpose
from sfumato.explanations.belief_words import belief_sentence
from sfumato.explanations.note_words import in_options
from sfumato.store.ledger_check import LedgerReport
from sfumato.stream.period_rules import words
from sfumato.stream.release_spec import ReleaseSpec

_SIMULATED = "A SIMULATION: its coins can be guessed; it protects nobody's values."


def plan_words(spec: ReleaseSpec) -> Iterator[str]:
    """The rules of a release of streams."""
    if spec.purpose != Purpose.RELEASE.value:
        yield _SIMULATED
    one_by_one = "value by value" if spec.batch is None else f"in batches of {spec.batch}"
    yield f"The rules of a release of streams, {one_by_one}; a wrong value costs: {spec.loss}."
    if spec.epsilon is not None:
        yield from _cap_words(spec.epsilon, spec.batch or 1)
    elif spec.budget is not None:
        yield from _total_words(spec)
    if spec.learn is not None:
        yield (
            "It started from nothing: values leave by randomised response, which leaks no more "
            "than that whatever is true, until what left has told enough; then the cap is kept for "
            f"every chain not ruled out (confidence {spec.learn.confidence:g}). OUTPUT.versions "
            "says when that was, if ever."
        )
        yield _three("the last estimate", "every chain that is left, at that confidence")
    if spec.robust is not None:
        yield (
            f"It is kept for {spec.robust_words}, not for the model alone: the SIP of its rows is "
            "that under the worst of them."
        )
        yield _three("the model", spec.robust_words)
    if spec.time is not None and spec.per is not None:
        yield (
            f"Its periods, and the phases of a model that changes with time, follow from column "
            f"{spec.time!r}, which is taken for public and to depend on the values no more than "
            "the model says."
        )
    elif spec.time is not None:
        yield (
            f"Its model changes with time: phases follow from column {spec.time!r}, which is taken "
            "for public and to depend on the values no more than the model says."
        )
    if spec.ldp is not None:
        yield f"Whatever an observer knows, it is also capped at {LDP(spec.ldp)}."
    if spec.sealed is not None:
        yield f"It stands beside {spec.sealed.rows:,} rows of {spec.sealed.streams:,} streams."
    yield "next: sfumato audit TABLE --model MODEL computes all of this again"


def _three(model: str, chains: str) -> str:
    return (
        f"Three numbers: SIP under {model}, SIP under {chains}, and LDP, which holds whatever is "
        "true. `audit` says all of them."
    )


def _cap_words(epsilon: float, width: int) -> Iterator[str]:
    together = "a value" if width == 1 else f"a batch of {width} values"
    at_once = SIP(sum_up([epsilon] * width))
    yield f"What leaves for {together} may leak {at_once} given all that left before, for ever."
    truth = "the true value" if width == 1 else "the true values"
    yield f"So, when it leaves: an observer {belief_sentence(at_once, truth)}."
    yield (
        "Later values tell of it too, and what a whole stream leaks grows with its length: a cap "
        "on each value is no total. For a total, release with --budget and --horizon."
    )


def _total_words(spec: ReleaseSpec) -> Iterator[str]:
    assert spec.budget is not None
    total = SIP(spec.budget)
    if spec.per is not None:
        yield from _period_words(spec, Period(spec.per))
        return
    over = (
        f"all {spec.horizon:,} values" if spec.horizon else f"any {spec.window:,} values in a row"
    )
    yield f"Together {over} of a stream may leak {total}."
    yield f"So an observer {belief_sentence(total, 'the true sequence')}."
    yield "All outputs tell at most as much of any one value; `audit` says how much they did."


def _period_words(spec: ReleaseSpec, period: Period) -> Iterator[str]:
    assert spec.budget is not None
    total, name = SIP(spec.budget), words(period)
    yield f"In each {name} of event time the values of a stream together may leak {total}."
    yield f"So an observer {belief_sentence(total, 'what was true in that time')}."
    if spec.cap is not None:
        yield f"A single value may leak {SIP(spec.cap)} of it."
    yield (
        f"It begins anew with every {name}: around the moment between two a stream may leak twice "
        "as much, and what it leaks in all grows with the time that it lasts. Moments with a "
        "zone count in UTC."
    )


def ledger_words(report: LedgerReport) -> Iterator[str]:
    """What a ledger holds."""
    yield (
        f"The ledger of a {report.job}: {report.rows:,} answers of {report.streams:,} streams, "
        "with what each leaked. It holds no true value. The same event again gets its old answer."
    )
    if report.job == "release":
        most = SIP(report.largest_leakage)
        yield (
            f"No stream has leaked more than {most} in all under the model, or "
            f"{LDP(report.largest_model_free)} whatever the model."
        )
        yield f"So an observer {belief_sentence(most, 'the true sequence')}."
    else:
        yield f"The most that is charged is {shown_up(report.largest_leakage)}."
    whole = "Everything in it fits." if report.passed else "It is NOT whole: see `ledger check`."
    yield f"{whole} Write its head down elsewhere: {report.head}"
    yield "next: sfumato audit TABLE --model MODEL --ledger FILE"


def certificate_words(document: Mapping[str, Any]) -> Iterator[str]:
    """The certificate of a table that left."""
    try:
        if document["purpose"] != Purpose.RELEASE.value:
            yield _SIMULATED
        rows = document.get("rows", document.get("values"))
        yield f"The certificate of a `sfumato {document['job']}` of {rows:,} rows."
        if document["job"] == "publish":
            yield from _published_words(document)
        for given in document["guarantees"]:
            yield from _guarantee_words(given)
        gain = document["gain"]
        if gain is not None:
            yield _worth(float(gain), foreseen=document["job"] == "realtime")
        for remark in document["remarks"]:
            yield f"note: {in_options(remark)}"
    except (KeyError, TypeError, ValueError) as problem:
        raise CorruptData(f"the certificate lacks or mistypes a field ({problem})") from None
    yield "next: sfumato verify FILE computes again what can be checked, and names what cannot"


def _published_words(document: Mapping[str, Any]) -> Iterator[str]:
    """How near an attacker would have to come, and how far off what left is, column by column."""
    columns = zip(document["columns"], document["accuracy"], document["sigma"], strict=True)
    asked = [
        f"{name} within {float(accuracy):.4g} (noise of {float(sigma):.4g}, standard deviation)"
        for name, accuracy, sigma in columns
    ]
    yield f"An attacker has found a person who has all of: {', '.join(asked)}."
    guess = float(document["delta_before"])
    yield (
        f"Before anything was published a blind guess did with probability {guess:.3g}; what was "
        "added by publishing is the difference to the numbers below."
    )


def _guarantee_words(given: Mapping[str, Any]) -> Iterator[str]:
    notion, scope, delta = given["notion"], given["scope"], float(given["delta"])
    if notion == "Disclosure":
        yield (
            "The best attacker finds all columns of a person so nearly with probability at most "
            f"{shown_up(delta)}, {scope}."
        )
        return
    amount = float(given["epsilon"])
    failing = f", but with probability {shown_up(delta)}" if delta else ""
    yield f"{notion}({shown_up(amount)}) {scope}{failing}."
    if notion in ("LIP", "LDP"):
        kind = LIP(amount) if notion == "LIP" else LDP(amount)
        yield f"  So an observer {belief_sentence(kind, 'the true value of a person')}."
    else:
        yield (
            "  So whether a person, or at event level one value of a person, is in it changes the "
            f"odds of what leaves by at most {_factor(amount)}, if nobody changes a value by more "
            "than the sensitivity that was declared."
        )


def _factor(amount: float) -> str:
    return f"a factor of {shown_up(portable.exp(min(amount, 700.0)), 3)}"


def _worth(gain: float, *, foreseen: bool) -> str:
    if gain <= 0:
        return "WORSE THAN SAYING NOTHING: one fixed value would be as near, and leak 0."
    if foreseen:
        return (
            f"Judged by what left, it is expected to be {100 * gain:.3g} % nearer than saying "
            "nothing (one fixed value); how near it truly is, `realtime` told its owner alone."
        )
    return f"It is {100 * gain:.3g} % nearer than saying nothing (one fixed value)."
