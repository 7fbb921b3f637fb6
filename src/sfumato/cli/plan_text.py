"""What `sfumato plan` says: its tables, what their columns mean, and what follows from them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sfumato.cli.console import print_legend, print_line, say, table
from sfumato.cli.loss_words import WRONG, cost, error, errs
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.cli.plan_bursts import SoughtBursts
    from sfumato.cli.plan_command import PlanOptions
    from sfumato.stream.batch_widths import WidthForecast
    from sfumato.stream.forecast import PlanReport
    from sfumato.stream.release_trials import Forecast


def loss_and_leakage(row: Forecast | WidthForecast, beside: list[str]) -> list[str]:
    """What several tables say: the loss, its error and numbers beside it, and both leakages."""
    return [
        f"{row.loss:.4g}",
        error(2 * row.loss_error, row.loss),
        *beside,
        *(shown_up(leakage, 4) for leakage in (row.sip, row.ldp)),
    ]


def show_tables(
    report: PlanReport, given: PlanOptions, found: SoughtBursts | None, loss: str, unit: str
) -> None:
    """The tables: methods, and where a total is spent; what their columns and rows mean."""
    from sfumato.cli.plan_bursts import beaten_by, recommended

    where = f"of {given.history}" if given.history else "drawn from the model"
    table(
        f"what a value loses and tells, on average over {report.streams} streams of "
        f"{report.length:g} values {where}",
        ["method", *_COLUMNS],
        [[row.method, *_cells(row)] for row in report.methods],
    )
    if not given.shown.quiet:
        print_legend({**columns_in_words(loss, unit), **_rows_in_words(report)})
    if found is None:
        return
    even, silence = report.methods[0], report.methods[-1]
    rows = [replace(even, method="evenly"), *report.ways, silence]
    table(
        "the same total in bursts, on the same streams",
        ["spent", *_COLUMNS],
        [[row.method, *_cells(row)] for row in rows],
    )
    if not given.shown.quiet:
        print_legend(_SPENT)
    print_line(recommended(found, report, unit))
    if (rival := beaten_by(report)) is not None:
        say(f"warning: {rival}")


_COLUMNS = ["loss", "+-", "guessed", "recovered", "SIP", "LDP", "constant", "better"]
_METHODS = {
    "far-sighted": "ours, the least loss of the whole stream: what is told now helps later values",
    "step-wise": "ours, the least loss of each value by itself",
    "calibrated": "randomised response that tells an observer who knows the model as much",
    "randomized-response": "the textbook's; the budget is its LDP",
    "no privacy": "the true values",
    "say nothing": "one fixed value, which tells nothing",
}
_SPENT = {
    "every N": "ours, speaking once in N values; in between the best guess leaves, which tells "
    "nothing",
    "calibrated every N": "randomised response once in N values; in between the best guess "
    "(guessed), or what left last (held)",
}


def columns_in_words(loss: str, unit: str) -> dict[str, str]:
    """What the columns mean that tables of plans have."""
    share = "the share of values that are wrong (0.4 is 40 %)" if unit == WRONG else ""
    return {
        "loss": share or f"{loss} loss of a value{f', in {unit}' if unit else ''}",
        "+-": "twice the standard error of the loss: other streams would give another one, mostly "
        "within this",
        "guessed": "the loss after the receiver's best guess from each output",
        "recovered": "the loss after his best guess from all outputs of a stream (`recover`)",
        "SIP": "what a value tells an observer who knows the model, in nats: a probability changes "
        "by a factor of at most e^SIP",
        "LDP": "the same whatever the observer knows",
        "constant": "the share of outputs that tell nothing",
        "better": "the share of the loss of saying nothing that is saved; at 0% or below, say "
        "nothing instead",
    }


def _rows_in_words(report: PlanReport) -> dict[str, str]:
    there = [row.method for row in report.methods]
    return {name: told for name, told in _METHODS.items() if name in there}


def _cells(row: Forecast) -> list[str]:
    after = (row.remapped_loss, row.recovered_loss)
    numbers = loss_and_leakage(row, ["" if loss is None else f"{loss:.4g}" for loss in after])
    return [*numbers, f"{row.constant:.0%}", f"{row.better:.0%}"]


def in_words(report: PlanReport, unit: str, found: SoughtBursts | None) -> list[str]:
    """What follows from a report, in sentences."""
    from sfumato.stream.remarks import ABSURD, factor_text

    best, silence = report.methods[0], report.methods[-1]
    seen = "" if best.one_value is None else f"; in these streams up to {shown_up(best.one_value)}"
    spent = " where the total is spent evenly" if found else ""
    keep = "" if report.total <= ABSURD else ". THAT IS MUCH: --budget with --horizon keeps a total"
    least = []
    if report.floor is not None:
        nearest = min(row.loss for row in (best, *report.ways[: 1 if found else 0]))
        above = _above(nearest, report.floor)
        least = [
            "whatever is released within this budget, value by value, must at least "
            f"{cost(report.floor, unit)} (a proven floor); the best above loses {above}"
        ]
    return [
        f"a constant would {cost(silence.loss, unit)}; {best.method} saves {best.better:.0%} of "
        f"that{spent}, give or take {2 * best.better_error:.0%}",
        *_bought(report, unit),
        *least,
        f"a whole stream may leak SIP({shown_up(report.total)}): the probability of what is true "
        f"may change by {factor_text(report.total)}{keep}",
        f"about any one value all outputs together may tell SIP({shown_up(report.one_value)}) "
        f"({report.one_value_rule}){seen}",
    ]


def _above(loss: float, floor: float) -> str:
    """How much more a loss is than the least that is possible, as a person would say it."""
    if floor <= 0:
        return "more"
    ratio = loss / floor
    return f"{ratio:.2g} times that" if ratio >= 2 else f"{ratio - 1:.0%} more"


def _bought(report: PlanReport, unit: str) -> list[str]:
    """What far sight buys, and with how much of the cap."""
    first, second, *_ = report.methods
    if first.method != "far-sighted":
        return []
    return [
        f"far-sighted {errs(first.loss, unit)} and leaks {shown_up(first.sip, 4)} nats a value; "
        f"step-wise {errs(second.loss, unit)} and leaks {shown_up(second.sip, 4)}: both keep the "
        "cap, and --thrift leaks less of it (--frontier shows prices)"
    ]
