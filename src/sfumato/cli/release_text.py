"""What `sfumato release` says at its end: what was told, and what it is worth beside silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.stream.plan import Plan
    from sfumato.stream.release_report import ReleaseReport
    from sfumato.stream.release_spec import ReleaseSpec

_WORTH = 0.005
"""The least part of what silence loses that is worth a word: less is printed as 0 %."""


def told_report(report: dict[str, object]) -> dict[str, object]:
    """A report without what only releases for many chains have."""
    many = ("largest_estimate", "confidence", "expected_loss", "silent_loss")
    return {name: value for name, value in report.items() if name not in many or value is not None}


def many_chains(report: ReleaseReport, under: str) -> Iterator[str]:
    """The three numbers of a release for many chains."""
    from sfumato.core.guarantees import LDP, SIP

    if report.largest_estimate is None or report.confidence is None:
        return
    sure = "" if report.confidence == 1 else f" (true among them: {report.confidence:g})"
    yield (
        f"a stream leaked at most {SIP(report.largest_estimate)} under {under}, of what was "
        f"answered now; {SIP(report.largest_sip)} under the worst chain of the set{sure}; "
        f"{LDP(report.largest_ldp)} whatever is true"
    )


def worth(report: ReleaseReport, spec: ReleaseSpec, unit: str) -> Iterator[str]:
    """What a value loses, beside silence; nothing where that was not followed."""
    from sfumato.cli.loss_words import cost, errs

    under = "the model" if report.largest_estimate is None else "the estimate"
    if report.expected_loss is None or not report.silent_loss:
        if report.largest_estimate is not None:
            yield "what silence would lose is not known: nothing was learnt, or answered, yet"
        return
    better = 1 - report.expected_loss / report.silent_loss
    compared = (
        f"under {under} what left {errs(report.expected_loss, unit)}; a constant would "
        f"{cost(report.silent_loss, unit)}"
    )
    if better >= _WORTH:
        yield f"{compared}: {better:.0%} better than silence"
        return
    yield f"AS GOOD AS SILENT, OR WORSE: {compared}; {_remedy(spec)} may help"


def silent_forecast(rule: Plan, spec: ReleaseSpec, unit: str) -> Iterator[str]:
    """That the rule gains nothing over silence, where what left was not followed one by one."""
    from sfumato.cli.loss_words import cost
    from sfumato.stream.expected_worth import expected_worth

    predicted = expected_worth(rule)
    if predicted is None or not predicted[1]:
        return
    lost, silent = predicted
    if 1 - lost / silent < _WORTH:
        yield (
            "AS GOOD AS SILENT, OR WORSE: under the model the release is expected to "
            f"{cost(lost, unit)}; a constant would {cost(silent, unit)}. {_remedy(spec)} may help"
        )


def _remedy(spec: ReleaseSpec) -> str:
    if spec.budget is None:
        return "a larger --epsilon"
    if spec.per is not None:
        return "a larger --cap, a smaller --horizon or a larger --budget"
    return "a larger --budget" if spec.every else "bursts (--every auto) or a larger --budget"


def gone(count: int, missing: str) -> str:
    """How many values were missing, and what became of them."""
    became = {"drop": "left out", "skip": "passed over", "symbol": "released as a symbol"}
    return f"{count:,} values were missing and {became[missing]}; " if count else ""


def beyond(clipped: int) -> str:
    """How many values lay beyond the range, and what became of them."""
    return f"{clipped:,} values beyond the range were clipped to it; " if clipped else ""
