"""Where a total is best spent: what `sfumato plan` seeks, compares and recommends."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from sfumato.cli import options
from sfumato.cli.console import progress, say
from sfumato.cli.loss_words import amount, part

if TYPE_CHECKING:
    from sfumato.cli.plan_command import PlanOptions
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.forecast import PlanReport
    from sfumato.stream.release_spec import ReleaseSpec
    from sfumato.stream.release_trials import Way


class SoughtBursts(NamedTuple):
    """The bursts that lose least on the model, and what they are compared with."""

    every: int
    first: float
    ways: tuple[Way, ...]


def is_sought(given: PlanOptions, typed: ReleaseSpec, model: StreamModel) -> bool:
    """Whether to seek where the total is best spent."""
    from sfumato.stream.release_defaults import seeks_bursts

    if given.allowed.budget is None or given.batch is not None:
        return False
    return given.spread.every == "auto" or (
        given.spread.every is None and seeks_bursts(typed, model)
    )


def sought(typed: ReleaseSpec, model: StreamModel, given: PlanOptions) -> SoughtBursts:
    """Seek them, or take what was found before."""
    import msgspec

    from sfumato.solver.design_methods import Method
    from sfumato.stream.burst_search import rival_bursts
    from sfumato.stream.release_defaults import with_bursts
    from sfumato.stream.release_trials import Pause, Way

    capped = msgspec.structs.replace(typed, cap=given.spread.cap)
    with progress("seeking where to spend", None, given.shown.no_progress):
        best = with_bursts(capped, model, given.model, None if given.shown.no_progress else say)
        guessed, held = rival_bursts(typed.instant(model), seed=given.seed)
    rivals = [("guessed", guessed, Pause.GUESS), ("held", held, Pause.HOLD)]
    every, first = best.every or 1, best.first or 1.0
    ways = (
        Way(f"every {every}", best.chosen_method(), best.schedule()),
        *(
            Way(f"calibrated every {one.every}, {how}", Method.CALIBRATED, one.budget, pause)
            for how, one, pause in rivals
        ),
    )
    return SoughtBursts(every, first, ways)


def recommended(found: SoughtBursts, report: PlanReport, unit: str) -> str:
    """What to do, in words."""
    even, best, saved = report.methods[0], report.ways[0], report.saved
    if found.every == 1 or saved is None:
        return "what to do: spend the total evenly; no bursts lose less on the model"
    bursts = options.in_words(found.every, found.first)
    saves, unsure = (part(each, unit, 2) for each in (saved.by, 2 * saved.error))
    ours, evenly = (amount(each, unit) for each in (best.loss, even.loss))
    if saved.by <= 2 * saved.error:
        return (
            f"on the model the total is best spent {bursts}; on these streams that cannot be told "
            f"from an even split: {ours} and {evenly}, a difference of {saves}, give or take "
            f"{unsure}"
        )
    return (
        f"what to do: spend the total {bursts}: {ours} instead of {evenly}, a difference of "
        f"{saves}, give or take {unsure}"
    )


def beaten_by(report: PlanReport) -> str | None:
    """A word of warning if a simple rival lost less on these very streams; None if none did."""
    best, *rivals = report.ways
    rival = min(rivals, key=lambda row: row.loss)
    apart = math.hypot(best.loss_error, rival.loss_error)
    if min(best.loss, report.methods[0].loss) <= rival.loss + 2 * apart:
        return None
    return (
        f"A SIMPLE RIVAL LOSES LESS ON THESE STREAMS: {rival.method} {rival.loss:.4g}; the model "
        "does not fit them, often not how they begin: fit it to streams cut as these are"
    )
