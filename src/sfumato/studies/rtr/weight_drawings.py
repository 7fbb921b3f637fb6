"""Pictures of the study of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.studies.rtr.series_drawings import PURPLE, Look, Panel, draw_curves
from sfumato.studies.rtr.series_points import SeriesPoint
from sfumato.studies.rtr.weight_claims import (
    BANK,
    CONSTANT,
    HONEST,
    KALMAN,
    KNOWN,
    LEARNT,
    LINEAR,
    NOISE,
    RHOS,
    THEOREM,
    UNSAFE,
    Privacy,
)


def draw_weights(points: Sequence[SeriesPoint], path: Path) -> None:
    """Figure 9 above, a curve a correlation; Figure 10 below, for the largest of them."""
    colours = dict(zip(RHOS, (GREY, GREEN, ORANGE, PURPLE, RED), strict=True))
    looks = {f"published, correlation {rho:g}": Look(c) for rho, c in colours.items()}
    looks |= {
        NOISE: Look(DARK, "-", ""),
        LEARNT: Look(RED),
        KNOWN: Look(RED, "--"),
        THEOREM: Look(GREY, "--", ""),
        BANK: Look(BLUE, "-", ""),
        KALMAN: Look(BLUE, ":", ""),
    }
    panels = []
    for privacy in Privacy:
        own = [
            replace(p, method=f"published, {p.series}")
            for p in points
            if p.figure == "9" and p.panel == privacy
        ]
        noise = [p for p in points if p.figure == "10" and p.panel == privacy and p.method == NOISE]
        panels.append(Panel(f"9, {privacy}", own + noise, "weight of the true value"))
    for privacy in Privacy:
        name = f"correlation {RHOS[-1]:g}"
        own = [p for p in points if (p.figure, p.panel, p.series) == ("10", privacy, name)]
        panels.append(Panel(f"10, {privacy}, {name}", own, "weight of the true value"))
    draw_curves(panels, looks, path, columns=2)


def draw_falling(points: Sequence[SeriesPoint], path: Path) -> None:
    """Figure 11, a panel a budget."""
    own = [p for p in points if p.figure == "11"]
    panels = [
        Panel(
            f"{name} (epsilon {here[0].epsilon:.2g})",
            here,
            "factor of the squared weights",
            logarithmic=False,
        )
        for name in dict.fromkeys(p.panel for p in own)
        if (here := [p for p in own if p.panel == name])
    ]
    looks = {
        NOISE: Look(DARK, "-", ""),
        LEARNT: Look(RED),
        CONSTANT: Look(RED, ":", ""),
    }
    draw_curves(panels, looks, path)


def draw_calibration(points: Sequence[SeriesPoint], path: Path) -> None:
    """Linear and non-linear calibration."""
    own = [p for p in points if p.panel == "calibration"]
    looks = {LINEAR: Look(RED), HONEST: Look(BLUE), UNSAFE: Look(GREY, "--")}
    panel = Panel("calibration with the estimate", own, "weight of the true value")
    draw_curves([panel], looks, path, columns=1)
