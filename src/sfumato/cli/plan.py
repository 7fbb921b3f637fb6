"""`sfumato plan`: what a release would cost and leak, before anything is released."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato._numerics import shown_up
from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say, table

if TYPE_CHECKING:
    from sfumato.jobs.plan import CurvePoint
    from sfumato.jobs.spec import ReleaseSpec
    from sfumato.models.encoding import StreamModel

_STEPS = 100
_PICTURES = (".png", ".pdf", ".svg")


def plan(
    model: options.Model,
    loss: options.Loss = None,
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    horizon: options.Horizon = None,
    window: options.Window = None,
    ldp: options.Ldp = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps to simulate; the horizon, or 100.", show_default=False)
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(help="Compare batches of these lengths instead, as 1,2,3,5,10."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the simulation.")] = 1,
    plot: Annotated[
        str | None, typer.Option(help="Also draw loss against budget into this PNG, PDF or SVG.")
    ] = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare ways to release before releasing: expected loss, both leakages, and the rivals.

    Streams are drawn from the model and released in a simulation. `calibrated` is randomised
    response that leaks as much to the same adversary; `randomized-response` has the budget as its
    model-free leakage. `guessed` is the loss after the receiver's best guess of the truth.

    With --batch, values that leave together are compared with values that leave at once, at equal
    budget: what waiting saves, how long a value waits, and how long a batch takes to compute.

    \b
    Examples:
      sfumato plan --model city.model --epsilon 0.5
      sfumato plan --model city.model --budget 10 --horizon 50 --loss euclidean --plot loss.png
      sfumato plan --model city.model --epsilon 0.5 --batch 1,2,3,5,10
    """
    from sfumato.errors import InvalidParameter
    from sfumato.jobs.plan import curve, forecast
    from sfumato.jobs.spec import ReleaseSpec

    if plot and Path(plot).suffix.lower() not in _PICTURES:
        raise InvalidParameter("--plot", plot, f"end in {', '.join(_PICTURES)}")
    read = options.load_model(model)
    spec = ReleaseSpec(
        epsilon=epsilon, budget=budget, horizon=horizon, window=window, ldp=ldp, loss=loss
    )
    count = steps or horizon or _STEPS
    if batch is not None:
        _compare_widths(spec, read, batch, count, seed, plot, as_json, quiet)
        return
    rule = spec.instant(read)
    with progress("simulating", 3 * count, quiet or as_json) as show:
        rows = forecast(rule, steps=count, seed=seed, progress=show)
    points = []
    if plot or as_json:
        with progress("drawing the curve", 15 * count, quiet or as_json) as show:
            points = curve(rule, steps=count, seed=seed, progress=show)
    if plot:
        _draw(points, str(loss), plot)
    if as_json:
        print_json({"methods": [asdict(r) for r in rows], "curve": [asdict(p) for p in points]})
        return
    table(
        f"expected {loss} loss and leakage per value over {count} steps",
        ["method", "loss", "guessed", "SIP", "LDP", "constant"],
        [
            [
                row.method,
                f"{row.loss:.4g}",
                "" if row.remapped_loss is None else f"{row.remapped_loss:.4g}",
                shown_up(row.sip, 4),
                shown_up(row.ldp, 4),
                f"{row.constant:.0%}",
            ]
            for row in rows
        ],
    )
    if plot:
        say(f"{plot}: loss against budget")


def _compare_widths(
    spec: ReleaseSpec,
    model: StreamModel,
    batch: str,
    steps: int,
    seed: int,
    plot: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    import msgspec

    from sfumato.errors import InvalidParameter
    from sfumato.jobs.widths import forecast_widths

    words = batch.split(",")
    if not all(word.strip().isdecimal() and word.isascii() for word in words):
        raise InvalidParameter("--batch", batch, "be whole numbers, as 1,2,3,5,10")
    widths = [int(word) for word in words]
    rule = msgspec.structs.replace(spec, batch=max(widths)).batched(model)
    with progress("simulating", steps * len(widths), quiet or as_json) as show:
        rows = forecast_widths(rule, widths, steps=steps, seed=seed, progress=show)
    if plot:
        from sfumato.studies.figures import loss_of_widths

        loss_of_widths(rows, str(spec.loss), plot)
    if as_json:
        print_json({"batches": [asdict(row) for row in rows]})
        return
    table(
        f"expected {spec.loss} loss and leakage per value over {steps} values",
        ["batch", "loss", "gap", "SIP", "LDP", "waits for", "at most", "ms a batch", "parts"],
        [
            [
                str(row.width),
                f"{row.loss:.4g}",
                "" if row.gap is None else f"{row.gap:.2g}",
                shown_up(row.sip, 4),
                shown_up(row.ldp, 4),
                f"{row.mean_delay:g}",
                f"{row.longest_delay:g}",
                f"{1e3 * row.seconds:.3g}",
                f"{row.parts:,}" + ("" if row.exact else " boxes"),
            ]
            for row in rows
        ],
    )
    if plot:
        say(f"{plot}: loss against the length of batches")


def _draw(points: list[CurvePoint], loss: str, path: str) -> None:
    from sfumato.studies.figures import loss_curve

    loss_curve(points, loss, path)
