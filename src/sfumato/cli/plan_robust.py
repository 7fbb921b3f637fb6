"""`sfumato plan --robust`: what a guarantee for every chain near the model costs."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from sfumato.cli.console import print_json, print_legend, print_line, progress, table
from sfumato.cli.loss_words import error, part
from sfumato.cli.plan_text import columns_in_words
from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from sfumato.cli.plan_command import PlanOptions
    from sfumato.models.stream_model import StreamModel
    from sfumato.stream.release_spec import ReleaseSpec

_STREAMS = 6
_COLUMNS = {
    "within R": "the budget is kept for every chain whose probabilities are off by at most R each",
    "over the set": "SIP if the worst of these chains is what the observer knows, on average",
    "worst step": "the same of the value that told most",
}


def plan_robust(given: PlanOptions, typed: ReleaseSpec, model: StreamModel, length: int) -> None:
    """Compare releases for the model alone, for chains near it, and for whatever is true."""
    from msgspec import structs

    from sfumato.cli.plan_widths import loss_name
    from sfumato.core import checks
    from sfumato.solver.design_methods import Method, method_named
    from sfumato.stream.model_loss import unit_of
    from sfumato.stream.release_defaults import with_method
    from sfumato.stream.robust_forecast import forecast_robust

    _check(given)
    assert given.robust is not None  # or nobody would have come here
    radius = checks.positive("--robust", given.robust)
    spec = structs.replace(typed, robust=radius)
    if given.way.method is None:
        spec = with_method(spec, model, None)
    else:
        spec = structs.replace(spec, method=method_named("--method", given.way.method).value)
    plan, many = spec.instant(model), given.streams or _STREAMS
    tried = (6 + (plan.method is Method.FAR_SIGHTED)) * length * many
    with progress("simulating", tried, given.shown.no_progress) as show:
        found = forecast_robust(
            plan, radius, length=length, streams=many, seed=given.seed, progress=show
        )
    name, unit = loss_name(spec, model), unit_of(spec.loss_for(model), model)
    if given.shown.as_json:
        releases = [asdict(one) for one in found]
        print_json({"robust": radius, "loss": name, "unit": unit, "releases": releases})
        return
    table(
        f"what a value loses and tells, on average over {many} streams of {length:g} values drawn "
        "from the model",
        ["release", "loss", "+-", "SIP", "over the set", "worst step", "LDP", "better"],
        [
            [
                one.name,
                f"{one.loss:.4g}",
                error(2 * one.loss_error, one.loss),
                *(shown_up(value, 4) for value in (one.sip, one.over_set)),
                *(shown_up(value, 4) for value in (one.worst_step, one.ldp)),
                f"{one.better:.0%}",
            ]
            for one in found
        ],
    )
    if not given.shown.quiet:
        told = columns_in_words(name, unit)
        print_legend({column: told[column] for column in ("loss", "+-", "SIP")})
        print_legend(_COLUMNS | {column: told[column] for column in ("LDP", "better")})
    alone, free = found[0], found[-1]
    own = next(one for one in found if one.promised and one.radius == radius)
    print_line(
        f"made for the model alone a step leaks up to SIP({shown_up(alone.worst_step, 5)}) under "
        f"some chain within {radius:g}; kept for all of them the budget costs "
        f"{part(own.loss, unit)} instead of {part(alone.loss, unit)}, and "
        f"{part(free.loss, unit)} without a model"
    )


def _check(given: PlanOptions) -> None:
    """Refuse what would be ignored."""
    from sfumato.core.errors import InvalidParameter

    asked = {
        "--batch": given.batch,
        "--history": given.history,
        "--plot": given.plot,
        "--thrift": given.way.thrift,
        "--every": given.spread.every,
        "--first": given.spread.first,
        "--cap": given.spread.cap,
        "--frontier": given.frontier or None,
    }
    for name, value in asked.items():
        if value is not None:
            raise InvalidParameter(name, value, "not come with --robust")
