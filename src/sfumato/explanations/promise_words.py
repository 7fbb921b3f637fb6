"""What a release of streams promised, and what the certificate of any job says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sfumato.core.errors import CorruptData
from sfumato.core.guarantees import LDP, LIP, SIP, ApproxDP, PureDP, TemporalDP
from sfumato.core.numerics import sum_up
from sfumato.core.periods import Period
from sfumato.core.printed import shown_up
from sfumato.core.purpose import Purpose
from sfumato.explanations.amount_words import Amount, amount, factor
from sfumato.explanations.belief_words import belief_sentence
from sfumato.explanations.note_words import in_options
from sfumato.stream.period_rules import words
from sfumato.stream.release_spec import ReleaseSpec

SIMULATED = "A SIMULATION: its coins can be guessed; it protects nobody's values."
_NOTIONS: Mapping[str, type[LIP | LDP | PureDP | ApproxDP]] = {
    kind.__name__: kind for kind in (LIP, LDP, PureDP, ApproxDP)
}
_LOSSES = {
    "hamming": "every wrong value costs the same (hamming)",
    "absolute": "a value costs as much as it is off (absolute)",
    "squared": "a value costs the square of what it is off (squared)",
    "great-circle": "a value costs its distance from the true one in km (great-circle)",
    "euclidean": "a value costs its distance from the true one (euclidean)",
}


def loss_words(loss: object) -> str:
    """What a wrong value costs.

    Examples:
        >>> loss_words("hamming")
        'every wrong value costs the same (hamming)'
    """
    if not isinstance(loss, str):
        return "what a wrong value costs stands in a table of its own"
    return _LOSSES.get(loss, f"what a wrong value costs is measured by {loss}")


def plan_words(spec: ReleaseSpec) -> Iterator[str]:
    """The rules of a release of streams."""
    if spec.purpose != Purpose.RELEASE.value:
        yield SIMULATED
    one_by_one = "value by value" if spec.batch is None else f"in batches of {spec.batch}"
    yield f"The rules of a release of streams, {one_by_one}; {loss_words(spec.loss)}."
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
        yield f"Whatever an observer knows, it is also capped at {amount(LDP(spec.ldp))}."
    if spec.sealed is not None:
        streams = "1 stream" if spec.sealed.streams == 1 else f"{spec.sealed.streams:,} streams"
        yield f"It stands beside {spec.sealed.rows:,} rows of {streams}."


def _three(model: str, chains: str) -> str:
    return (
        f"Three numbers: SIP under {model}, SIP under {chains}, and LDP, which holds whatever is "
        "true. `audit` says all of them."
    )


def _cap_words(epsilon: float, width: int) -> Iterator[str]:
    together = "a value" if width == 1 else f"a batch of {width} values"
    at_once = SIP(sum_up([epsilon] * width))
    yield (
        f"What leaves for {together} may leak {amount(at_once)} given all that left before, "
        "for ever."
    )
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
    yield f"Together {over} of a stream may leak {amount(total)}."
    yield f"So an observer {belief_sentence(total, 'the true sequence')}."
    yield "All outputs tell at most as much of any one value; `audit` says how much they did."


def _period_words(spec: ReleaseSpec, period: Period) -> Iterator[str]:
    assert spec.budget is not None
    total, name = SIP(spec.budget), words(period)
    yield f"In each {name} of event time the values of a stream together may leak {amount(total)}."
    yield f"So an observer {belief_sentence(total, 'what was true in that time')}."
    if spec.cap is not None:
        yield f"A single value may leak {amount(SIP(spec.cap))} of it."
    yield (
        f"It begins anew with every {name}: around the moment between two a stream may leak twice "
        "as much, and what it leaks in all grows with the time that it lasts. Moments with a "
        "zone count in UTC."
    )


def certificate_words(document: Mapping[str, Any]) -> Iterator[str]:
    """The certificate of a table that left."""
    try:
        if document["purpose"] != Purpose.RELEASE.value:
            yield SIMULATED
        rows = document.get("rows", document.get("values"))
        yield f"The certificate of a table of {rows:,} rows that `sfumato {document['job']}` made."
        if document["job"] == "publish":
            yield from _published_words(document)
        for given in document["guarantees"]:
            yield from _guarantee_words(given)
        gain = document["gain"]
        if gain is not None:
            yield _worth(float(gain), document["job"])
        for remark in document["remarks"]:
            yield f"note: {in_options(remark)}"
    except (KeyError, TypeError, ValueError) as problem:
        raise CorruptData(f"the certificate lacks or mistypes a field ({problem})") from None


def _published_words(document: Mapping[str, Any]) -> Iterator[str]:
    """How near an attacker would have to come, and how far off what left is, column by column."""
    columns = zip(document["columns"], document["accuracy"], document["sigma"], strict=True)
    asked = [
        f"{name} within {float(accuracy):.4g} (noise of {float(sigma):.4g}, standard deviation)"
        for name, accuracy, sigma in columns
    ]
    yield f"An attacker has found a person if all of these are right: {', '.join(asked)}."
    guess = float(document["delta_before"])
    yield (
        f"Before anything was published a blind guess was right with probability {guess:.3g}; what "
        "publishing added is the difference to the numbers below."
    )


def _guarantee_words(given: Mapping[str, Any]) -> Iterator[str]:
    notion, scope = given["notion"], given["scope"]
    if notion == "Disclosure":
        yield (
            "The best attacker finds a person in all columns with probability at most "
            f"{shown_up(float(given['delta']))}, {scope.replace('against who ', 'if he ')}."
        )
        return
    if notion == "TemporalDP":
        yield from temporal_words(TemporalDP(float(given["alpha"])), scope)
        return
    promised = _NOTIONS[notion](float(given["epsilon"]), float(given["delta"]))
    yield f"At most {_scoped(promised, scope)}."
    if isinstance(promised, LIP | LDP):
        yield f"  So an observer {belief_sentence(promised, 'the true value of a person')}."
    else:
        yield f"  {presence_words(promised)}"


def _scoped(promised: Amount, scope: str) -> str:
    """An amount and whom it holds for; the failure probability stands last."""
    told, mark, failing = amount(promised).partition(", except")
    return f"{told} {scope}{mark}{failing}"


def temporal_words(promised: TemporalDP, scope: str) -> Iterator[str]:
    """What correlated releases tell together of one moment, or of a whole stream."""
    yield f"All rows together tell at most {amount(promised)} {scope}."
    yield (
        "  So what left changes the odds between any two values that a person may have had by at "
        f"most {factor(promised.alpha)}."
    )


def presence_words(promised: PureDP | ApproxDP) -> str:
    """What differential privacy of a series means for one who is in it, or not."""
    return (
        "So whether a person, or at event level one value of a person, is in it changes the odds "
        f"of what leaves by at most {factor(promised.epsilon)}, if nobody changes a value by more "
        "than the sensitivity that was declared."
    )


def _worth(gain: float, job: str) -> str:
    if gain <= 0:
        return "WORSE THAN SAYING NOTHING: one fixed value would be as near, and leak 0."
    if job == "realtime":
        return (
            f"Judged by what left, it is expected to be {100 * gain:.3g} % nearer than saying "
            "nothing (one fixed value); how near it truly is, `realtime` told its owner alone."
        )
    return f"It is {100 * gain:.3g} % nearer than saying nothing (one fixed value)."
