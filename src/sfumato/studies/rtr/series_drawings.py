"""Pictures of the studies of series: errors in parts of that of silence, and private sequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.core.arrays import Floats
from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.rtr.point_table import curve
from sfumato.studies.rtr.series_points import SeriesPoint

PURPLE, BROWN = "#7b5aa6", "#8c6d46"


@dataclass(frozen=True, slots=True)
class Look:
    """How a curve is drawn."""

    colour: str
    style: str = "-"
    marker: str = "o"


LOOKS: dict[str, Look] = {
    "Gaussian noise": Look(DARK, "-", ""),
    "Laplace noise": Look(GREEN, "-", ""),
    "published, weight of Thm 6.1 and 6.2": Look(RED, ":"),
    "published, best weight": Look(RED),
    "FAST": Look(ORANGE),
    "Fourier (needs all values)": Look(GREY, "--", ""),
    "Sfumato": Look(BLUE),
    "Sfumato with a period": Look(BLUE, "--"),
    "Sfumato, once complete": Look(PURPLE, "--", ""),
}
"""Methods that several pictures show; others bring their own."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One plot of a picture.

    Attributes:
        title: Above it.
        points: That it shows.
        label: Of the abscissa.
        logarithmic: Whether the abscissa is.
        absolute: Whether errors are drawn as they are, silence as a curve of its own.
    """

    title: str
    points: Sequence[SeriesPoint]
    label: str
    logarithmic: bool = True
    absolute: bool = False

    def height(self, point: SeriesPoint) -> float:
        """The ordinate of a point."""
        return point.error if self.absolute else point.of_silence

    @property
    def silence(self) -> list[tuple[float, float]]:
        """What a constant errs, from the left."""
        sure = {point.x: point.silence if self.absolute else 1.0 for point in self.points}
        return sorted(sure.items())


def draw_curves(
    panels: Sequence[Panel], looks: Mapping[str, Look], path: Path, *, columns: int = 3
) -> None:
    """Errors in parts of silence's, with two standard errors; the dotted line says nothing."""
    rows = -(-len(panels) // columns)
    wide = 4.1 * columns if columns > 1 else 5.6
    figure, grid = new_figure(wide, 0.8 + 3.3 * rows, columns=columns, rows=rows)
    places = list(getattr(grid, "flat", [grid]))
    for axes, panel in zip(places, panels, strict=False):
        _panel(axes, panel, looks)
    for axes in places[len(panels) :]:
        axes.set_visible(False)
    handles: dict[str, Any] = {}
    for axes in places[: len(panels)]:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside lower center",
        ncols=max(2, columns + 1) if columns > 1 else 2,
        frameon=False,
        fontsize=8,
    )
    save_figure(figure, path)


def _panel(axes: Any, panel: Panel, looks: Mapping[str, Look]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for method, look in looks.items():
        line = curve(panel.points, method)
        if not line:
            continue
        xs, ys = [point.x for point in line], [panel.height(point) for point in line]
        axes.plot(
            xs, ys, look.style, color=look.colour, marker=look.marker, markersize=3, label=method
        )
        reach = [2 * p.spread * panel.height(p) / p.error if p.error else 0.0 for p in line]
        if any(reach):
            low = [max(y - r, y / 50) for y, r in zip(ys, reach, strict=True)]
            high = [y + r for y, r in zip(ys, reach, strict=True)]
            axes.fill_between(xs, low, high, color=look.colour, alpha=0.18, linewidth=0)
    words = "silence (the best constant)"
    axes.plot(*zip(*panel.silence, strict=True), ":", color=GREY, linewidth=1.5, label=words)
    axes.set_yscale("log", subs=range(2, 10))
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())
    if panel.logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    shown = [panel.height(p) for p in panel.points if p.method in looks]
    quiet = max(error for _, error in panel.silence)
    axes.set_ylim(0.8 * min(0.6 * quiet, *shown), min(1.3 * max(1.2 * quiet, *shown), 15 * quiet))
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.label, fontsize=8)
    axes.set_ylabel("error" if panel.absolute else "error / that of silence", fontsize=8)
    axes.tick_params(labelsize=8)


def draw_methods(points: Sequence[SeriesPoint], name: str, path: Path) -> None:
    """All methods on one series by every yardstick."""
    panels = [
        Panel(
            yardstick,
            [p for p in points if p.panel == yardstick and p.series == name],
            "epsilon of the whole series",
        )
        for yardstick in dict.fromkeys(p.panel for p in points)
    ]
    draw_curves(panels, LOOKS, path)


def draw_sequences(
    truth: Floats, rows: Mapping[str, Mapping[str, Floats]], path: Path, *, unit: str
) -> None:
    """The truth, and the mean and the range of ten releases; a column a method, a row a setting.

    Args:
        truth: The values that are shown, the first of the series.
        rows: By setting and method, time by run.
        path: The picture.
        unit: Of the values.
    """
    methods = list(dict.fromkeys(method for row in rows.values() for method in row))
    size = (2.9 * len(methods), 0.4 + 2.3 * len(rows))
    figure, grid = new_figure(*size, columns=len(methods), rows=len(rows))
    reach = max(float(truth.max()), 1e-9)
    for place, (setting, row) in enumerate(rows.items()):
        for column, method in enumerate(methods):
            axes = grid[place, column] if len(rows) > 1 else grid[column]
            look = LOOKS.get(method, Look(GREY))
            colour = GREY if look.colour == DARK else look.colour  # the truth is dark
            runs, times = row[method][: truth.size], range(truth.size)
            axes.fill_between(
                times, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.3, linewidth=0
            )
            axes.plot(times, runs.mean(axis=1), color=colour, linewidth=0.9)
            axes.plot(times, truth, color=DARK, linewidth=0.8)
            axes.axhline(float(truth.mean()), color=GREY, linestyle=":", linewidth=1)
            axes.set_ylim(-0.6 * reach, 1.6 * reach)
            axes.tick_params(labelsize=7)
            if place == 0:
                axes.set_title(method, fontsize=8)
            if column == 0:
                axes.set_ylabel(f"{setting}\n{unit}", fontsize=7)
    save_figure(figure, path)
