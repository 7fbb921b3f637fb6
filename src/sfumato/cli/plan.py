"""`sfumato plan`: what a release would cost and leak, before anything is released."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import print_json, progress, say, table

if TYPE_CHECKING:
    from sfumato.jobs.plan import CurvePoint

_STEPS = 100
_PICTURES = (".png", ".pdf", ".svg")


def plan(
    model: options.Model,
    loss: options.Loss = "hamming",
    epsilon: options.Epsilon = None,
    budget: options.Budget = None,
    horizon: options.Horizon = None,
    window: options.Window = None,
    ldp: options.Ldp = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps to simulate; the horizon, or 100.", show_default=False)
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

    \b
    Examples:
      sfumato plan --model city.model --epsilon 0.5
      sfumato plan --model city.model --budget 10 --horizon 50 --loss euclidean --plot loss.png
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
    rule = spec.plan(read)
    count = steps or horizon or _STEPS
    with progress("simulating", 3 * count, quiet or as_json) as show:
        rows = forecast(rule, steps=count, seed=seed, progress=show)
    points = []
    if plot or as_json:
        with progress("drawing the curve", 15 * count, quiet or as_json) as show:
            points = curve(rule, steps=count, seed=seed, progress=show)
    if plot:
        _draw(points, loss, plot)
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
                f"{row.sip:.4g}",
                f"{row.ldp:.4g}",
                f"{row.constant:.0%}",
            ]
            for row in rows
        ],
    )
    if plot:
        say(f"{plot}: loss against budget")


def _draw(points: list[CurvePoint], loss: str, path: str) -> None:
    from sfumato.studies.figures import loss_curve

    loss_curve(points, loss, path)
