"""What an audit says, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from sfumato.cli.console import print_legend, print_line, shortened, table
from sfumato.cli.loss_words import amount, meaning
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.stream.audit_report import AuditReport, CoinReport, StreamAudit
    from sfumato.stream.audit_total import ToldTogether

_SHOWN, _NAMED = 10, 5
_LEGEND = {
    "SIP": "what the stream leaked in all to an observer who knows the model, in nats: the "
    "probability of the true sequence changed by a factor of at most e^SIP",
    "at 1e-6": "the same, passed with a probability of at most one in a million",
    "LDP": "the same whatever the observer knows, in nats",
    "worst step": "SIP of its most telling output",
    "window": "the most that any --window values in a row leaked, SIP",
    "period": "the most that it leaked in one period of the budget, SIP",
    "one value": "what all outputs together told about any single value, SIP",
    "loss": "what a value lost on average, beside the true ones: {loss}",
    "gain": "by how much the true sequence became likelier, as a logarithm (nats)",
}
"""What the columns after the stream and its steps mean, for people who have read no paper."""
_SOMETIMES = {
    "window": "worst_window",
    "period": "worst_period",
    "loss": "loss",
    "gain": "gain",
}
"""Columns that are shown where something stands in them."""


def print_report(report: AuditReport, unit: str, files: list[str], *, quiet: bool) -> None:
    """All that an audit found, but whether it passed.

    Args:
        report: What was found.
        unit: What losses are in.
        files: What was looked at.
        quiet: Whether columns need no explanation.
    """
    if report.promise is not None:
        for line in report.promise.lines():
            # As the option has it; documents have the name that is stored.
            print_line(shortened(line.replace("method optimal", "method step-wise")))
    # Without files it is the ledger that was followed, and its rows are the steps of its streams.
    steps = sum(entry.steps for entry in report.streams.values())
    rows = f"{report.rows:,} rows" if files else f"{steps:,} rows of the ledger"
    # Of streams that leaked as much, as far as is shown, the first names come first.
    order = sorted(report.streams.items(), key=lambda item: item[0])
    worst = sorted(order, key=lambda item: -float(shown_up(item[1].sip, 5)))[:_SHOWN]
    there = {
        column: text
        for column, text in _LEGEND.items()
        if column not in _SOMETIMES
        or any(getattr(entry, _SOMETIMES[column]) is not None for _, entry in worst)
    }
    table(
        f"{rows}, {len(order):,} stream{'s' * (len(order) != 1)}; those that leaked most",
        ["stream", "steps", *there],
        [
            [name, f"{entry.steps:,}", *(_cells(entry)[column] for column in there)]
            for name, entry in worst
        ],
    )
    if not quiet:
        print_legend({name: text.format(loss=meaning(unit)) for name, text in there.items()})
    for line in _in_words(report, unit):
        print_line(line)
    if report.withheld:
        print_line(f"{report.withheld:,} rows withheld although the budget was not gone")
    if report.repeated:
        print_line(f"{report.repeated:,} rows say again what was said before")
    if report.ledger_head is not None:
        alone = f"{report.only_in_ledger:,} events are in the ledger alone"
        print_line(f"{alone}; they were checked too")
        print_line(shortened(f"head of the ledger: {report.ledger_head}"))
    if report.replayed is not None:
        print_line(f"{report.replayed} with the key")
    if report.possible is not None:
        told = "draws are what the key draws for some value; for which, the true values would tell"
        print_line(f"{report.possible:,} {told}")
    for line in report.unchecked:
        print_line(f"not checked: {line}")
    where = f"{files[0]}, " if len(files) == 1 else ""
    for problem in report.problems:
        print_line(f"PROBLEM {where if problem.startswith('row ') else ''}{problem}")
    if report.problem_count > len(report.problems):
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in report.problem_kinds.items())
        print_line(f"{report.problem_count:,} problems in all: {kinds}")
    if report.problem_count and (doubt := _other_arithmetic()):
        print_line(doubt)


def _cells(entry: StreamAudit) -> dict[str, str]:
    """What stands in the columns of one stream."""
    return {
        "SIP": _bound(entry.sip),
        "at 1e-6": _bound(entry.composed),
        "LDP": _bound(entry.ldp),
        "worst step": _bound(entry.worst_step),
        "window": _bound(entry.worst_window),
        "period": _bound(entry.worst_period),
        "one value": _bound(entry.one_value),
        "loss": _number(None if entry.loss is None else entry.loss / entry.steps),
        "gain": _number(entry.gain),
    }


def print_together(told: Mapping[str, ToldTogether]) -> None:
    """What several releases of the same people told together."""
    worst = sorted(told.items(), key=lambda item: -item[1].sip)[:_SHOWN]
    table(
        f"all releases together, {len(told):,} streams; those that leaked most",
        ["stream", "releases", "SIP", "LDP"],
        [
            [name, f"{entry.releases:,}", _bound(entry.sip), _bound(entry.ldp)]
            for name, entry in worst
        ],
    )


def _in_words(report: AuditReport, unit: str) -> list[str]:
    """What the release cost and told, beside what a constant would have."""
    from sfumato.stream.remarks import factor_text, large_total

    said = []
    told = max((entry.one_value for entry in report.streams.values()), default=0.0)
    most = max((entry.sip for entry in report.streams.values()), default=0.0)
    if (much := large_total(most)) is not None:
        said.append(much)
    if told:
        said.append(
            "all outputs of a stream together told an observer who knows the model at most "
            f"SIP({shown_up(told, 5)}) about any one value: its probability changed by at most "
            f"{factor_text(told)}"
        )
    if report.mean_loss is not None:
        what = f"over {report.compared:,} values, repeated and withheld ones included"
        said.append(f"realised loss of a value: {amount(report.mean_loss, unit, 6)} {what}")
    if report.recovered_loss is not None:
        said.append(
            f"after recovery, by best guesses given all that left: "
            f"{amount(report.recovered_loss, unit, 6)} (sfumato recover)"
        )
    if report.mean_loss is not None and report.silent_loss is not None:
        better = 1 - report.mean_loss / report.silent_loss if report.silent_loss else 0.0
        said.append(
            f"the best constant, which tells nothing: {amount(report.silent_loss, unit, 6)}; the "
            f"release saved {better:.0%} of that"
        )
        if better <= 0:
            said.append("NO BETTER THAN SILENCE: saying nothing would have cost no more")
    if report.coins is not None:
        said += coin_lines(report.coins)
    if report.never:
        some = ", ".join(str(label) for label in report.never[:_NAMED])
        more = ", ..." if len(report.never) > _NAMED else ""
        said.append(f"symbols that were never released: {some}{more} ({len(report.never):,})")
    return said


def coin_lines(coins: CoinReport) -> list[str]:
    """Whether outputs are fair draws, and what would have been found if they were not."""
    if not coins.tested:
        return ["no row with a true value tosses coins: nothing to test"]
    value, alarm = math.exp(min(coins.log_e_value, 700)), 1 / coins.level
    said = [
        f"coins: {coins.tested:,} outputs beside their true values "
        f"{'are NO fair draws' if coins.alarm else 'look like fair draws'} (e-value {value:.3g}, "
        f"alarm at {alarm:,.0f}; an honest release is accused with probability at most "
        f"{coins.level:g})"
    ]
    found = [
        f"{_rounded(power.rows)} rows ({_rounded(power.low)} to {_rounded(power.high)}) if in "
        f"{power.share:.0%}"
        for power in coins.power
        if math.isfinite(power.rows)
    ]
    if found:
        said.append(
            "a releaser that gives the nearest possible output in some rows would be found after "
            f"about {', '.join(found)} of them; intervals hold in four of five cases"
        )
    return said


def _rounded(rows: float) -> str:
    """A number of rows with two digits."""
    return f"{float(f'{rows:.2g}'):,.0f}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _bound(value: float | None) -> str:
    return "" if value is None else shown_up(value, digits=5)


def _other_arithmetic() -> str | None:
    """What to say if this machine computes otherwise: solved differently is not tampered with."""
    from sfumato.core.arithmetic import as_tested

    if as_tested():
        return None
    return (
        "this machine gives other last bits than those on which the program was tested: channels "
        "may have been solved differently, not tampered with; audit on another machine, or with "
        "the versions of the release"
    )
