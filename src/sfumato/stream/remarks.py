"""What a careful user should be told about a plan, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sfumato.core import portable
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.stream.forecast import PlanReport
    from sfumato.stream.release_trials import Difference

ABSURD = 10.0
"""A total beyond this lets probabilities change by a factor of 22,000: next to no promise."""
_NAMED = 5
"""Symbols that are named before the rest is only counted."""
_DIGITS = 6.0
"""Digits up to which a factor is written out."""


def factor_text(epsilon: float) -> str:
    """What a leakage means: by how much the probability of what is true may change.

    Examples:
        >>> factor_text(0.5), factor_text(10.0), factor_text(6137.0)
        ('a factor of 1.65', 'a factor of 22,100', 'a factor of 10^2666')
    """
    if math.isinf(epsilon):
        return "any factor"
    if epsilon <= _DIGITS * portable.log(10):
        factor = float(shown_up(portable.exp(epsilon) * (1 + 1e-12), 3))
        return f"a factor of {factor:,.{0 if factor >= 100 else 2}f}"
    return f"a factor of 10^{math.ceil(epsilon / portable.log(10))}"


def large_total(sip: float) -> str | None:
    """What to say of what a whole stream leaked; None if it is not much.

    Examples:
        >>> large_total(0.5) is None, large_total(120.0)[:13]
        (True, 'A LARGE TOTAL')
    """
    if sip <= ABSURD:
        return None
    return (
        f"A LARGE TOTAL: a whole stream leaked up to SIP({shown_up(sip, 5)}): the probability of "
        f"what is true may have changed by {factor_text(sip)}"
    )


def phases_assumed(column: str) -> tuple[str, ...]:
    """What a release under a model that changes with time takes for granted of its times.

    Examples:
        >>> phases_assumed("when")[0][:28]
        "whether times (column 'when'"
    """
    return (
        f"whether times (column {column!r}) depend on the values: they are taken for public, and "
        "what they tell beyond the model is in no certificate",
    )


def nothing_told(ldp: float) -> str | None:
    """What to say of a release of which nothing can be learnt; None if something can.

    Examples:
        >>> nothing_told(0.5) is None, nothing_told(0.0)[:12]
        (True, 'NOTHING TOLD')
    """
    if ldp > 0:
        return None
    return (
        "NOTHING TOLD: no released value depends on a true one, a constant would do as well; "
        "`sfumato plan` shows what a larger budget buys"
    )


def remarks(report: PlanReport, differences: Sequence[Difference]) -> tuple[str, ...]:
    """Warnings that follow from a report, the gravest first."""
    found = []
    best, silence = report.methods[0], report.methods[-1]
    pairs = {(one.less, one.more): one for one in differences}
    saved = pairs.get((best.method, silence.method))
    lost = f"a value of this release loses {best.loss:.4g}, a constant {silence.loss:.4g}"
    if saved is None or saved.by <= 1e-6 * silence.loss:
        remedy = "give it more budget, longer batches, or release nothing"
        found.append(f"NO BETTER THAN SILENCE: {lost}; {remedy}")
    elif not saved.sure:
        found.append(
            f"NOT SHOWN TO BE BETTER THAN SILENCE on {report.streams} streams: {lost}, and the "
            f"difference has a standard error of {saved.error:.2g}; try more --streams"
        )
    if report.total > ABSURD:
        found.append(
            f"A LARGE TOTAL: a stream of {report.length:g} values may leak "
            f"SIP({shown_up(report.total)}) in all: the probability of what is true may change by "
            f"{factor_text(report.total)}; --budget with --horizon keeps a total"
        )
    if report.one_value > ABSURD:
        found.append(
            f"about one value all outputs may tell up to SIP({shown_up(report.one_value)}), by "
            f"{report.one_value_rule}: {factor_text(report.one_value)}"
        )
    found += _equal(differences, best.method, silence.method, report.streams)
    guessed = [row for row in report.methods[1:-2] if row.remapped_loss is not None]
    for row in guessed:
        sure = best.loss * (1 - 1e-6) - 2 * best.loss_error
        if row.remapped_loss is not None and row.remapped_loss < sure:
            found.append(
                f"{row.method} followed by the receiver's best guess loses less than "
                f"{best.method}: {row.remapped_loss:.4g}"
            )
    found += _recovered(report)
    if best.never:
        some = ", ".join(str(label) for label in best.never[:_NAMED])
        more = ", ..." if len(best.never) > _NAMED else ""
        found.append(f"symbols that are never released: {some}{more} ({len(best.never):,})")
    return tuple(found)


def _recovered(report: PlanReport) -> list[str]:
    """Rivals of which a receiver who waits for all outputs makes more."""
    best, rivals = report.methods[0], report.methods[1:-2]
    if best.recovered_loss is None:
        return []
    own = best.recovered_loss
    losses = [(row.method, row.recovered_loss) for row in rivals]
    return [
        f"once all outputs are known (recovered), {method} loses less than {best.method}: "
        f"{loss:.4g} instead of {own:.4g}"
        for method, loss in losses
        if loss is not None and loss < own - 2 * best.loss_error
    ]


def _equal(differences: Sequence[Difference], best: str, silence: str, streams: int) -> list[str]:
    unsure = [
        one
        for one in differences
        if best in (one.less, one.more) and silence not in (one.less, one.more) and not one.sure
    ]
    return [
        f"{one.less} and {one.more} cannot be told apart on {streams} streams: "
        f"they differ by {one.by:.2g} with a standard error of {one.error:.2g}"
        for one in unsure
    ]
