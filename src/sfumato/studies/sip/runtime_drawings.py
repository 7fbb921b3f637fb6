"""Time per released value against alphabet, order, batch and length of the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.plots.colours import BLUE, GREEN, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure
from sfumato.plots.points import MeasuredPoint

_PANELS = {
    "alphabet": "symbols",
    "order": "order of the chain (6 symbols)",
    "batch": "values of a batch (4 symbols)",
    "length": "values of the sequence",
}


def draw(points: Sequence[MeasuredPoint], path: str | Path) -> None:
    """A panel for each thing that grows."""
    figure, panels = new_figure(14.0, 3.9, columns=len(_PANELS))
    curves = dict.fromkeys(point.curve for point in points)
    colours = dict(zip(curves, (GREY, RED, ORANGE, BLUE, GREEN, "#8e5ba6"), strict=True))
    for axes, (name, abscissa) in zip(panels, _PANELS.items(), strict=True):
        for curve, colour in colours.items():
            line = [p for p in points if (p.figure, p.curve) == (name, curve)]
            if line:
                axes.errorbar(
                    [point.x for point in line],
                    [point.y for point in line],
                    [2 * point.error for point in line],
                    color=colour,
                    marker="o",
                    markersize=3.5,
                    capsize=2,
                )
        axes.set_yscale("log")
        if name in ("alphabet", "length"):
            axes.set_xscale("log", base=2)
        else:
            axes.set_xticks(sorted({point.x for point in points if point.figure == name}))
            axes.yaxis.set_minor_formatter("")
        axes.set_xlabel(abscissa)
    for curve, colour in colours.items():
        panels[0].plot([], [], "-o", color=colour, markersize=3.5, label=curve)
    panels[0].set_ylabel("time per value, smallest k-RR = 1")
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=8)
    save_figure(figure, path)
