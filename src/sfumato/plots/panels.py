"""Panels of a figure with lines of points: what the drawings of several studies share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sfumato.plots import colours
from sfumato.plots.figures import save_figure
from sfumato.plots.points import MeasuredPoint, Point

Lines = dict[str, list[Point]]
"""The points of a panel, curve by curve."""


def draw_panels(
    points: Sequence[Point],
    rows: Sequence[Sequence[str]],
    size: tuple[float, float],
    paint: Callable[[Any, str, Lines], None],
    path: str | Path,
) -> None:
    """Every panel, with the paper's numbering; a panel without points stays empty.

    Args:
        points: Of all panels.
        rows: Names of the panels, row by row; a name that is repeated makes a wide panel.
        size: Of the figure, in inches.
        paint: Draws one panel from its own lines.
        path: The picture.
    """
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=size, layout="constrained")
    grid: Any = [list(row) for row in rows]
    panels: dict[str, Any] = figure.subplot_mosaic(grid)
    lines: dict[tuple[str, str], list[Point]] = {}
    for point in points:
        lines.setdefault((point.figure, point.curve), []).append(point)
    for name, axes in panels.items():
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
        own = {curve: line for (where, curve), line in lines.items() if where == name}
        paint(axes, name, own)
    save_figure(figure, path, dpi=110)


def plot(
    axes: Any,
    lines: Lines,
    curve: str,
    style: str,
    colour: str,
    label: str | None,
    *,
    marker: str = "",
    width: float = 1.5,
    alpha: float = 1.0,
) -> None:
    """One curve, with bars of two standard errors; nothing where it has no points."""
    line = lines.get(curve, [])
    axes.plot(
        [point.x for point in line],
        [point.y for point in line],
        style,
        color=colour,
        label=label,
        marker=marker,
        markersize=3.5,
        linewidth=width,
        alpha=alpha,
    )
    if measured := [point for point in line if isinstance(point, MeasuredPoint)]:
        axes.errorbar(
            [point.x for point in measured],
            [point.y for point in measured],
            [2 * point.error for point in measured],
            fmt="none",
            ecolor=colour,
            elinewidth=0.8,
            capsize=2,
        )


def plot_all(axes: Any, lines: Lines, table: str, *, marker: str = "") -> None:
    """Several curves in order, one a line: `name | style | colour | words of the legend`."""
    for row in filter(str.strip, table.splitlines()):
        curve, style, colour, words = (cell.strip() for cell in row.split("|"))
        plot(axes, lines, curve, style, getattr(colours, colour), words or None, marker=marker)


def finish(axes: Any, title: str, ordinate: str, *, place: str = "best", columns: int = 1) -> None:
    """Title, ordinate and legend."""
    axes.set_title(title, fontsize=10)
    axes.set_ylabel(ordinate)
    axes.legend(frameon=False, fontsize=8, loc=place, ncols=columns)
