"""Pictures of leakage over time: TPL Figures 3, 4, 5 and 7."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, COLOURS, DARK, GREY, RED
from sfumato.plots.panels import Lines, draw_panels, finish, plot, plot_all
from sfumato.plots.points import Point
from sfumato.studies.tpl.leakage_over_time import (
    ACCUMULATIONS,
    BUDGET,
    DEGREES,
    RELEASES,
    SIZES,
    SPANS,
)
from sfumato.studies.tpl.smoothed_matrices import Reading

_GRID = 12
_THREE = """
    identity | - | RED | identity
    (.8, .2; 0, 1) | - | BLUE | (.8, .2; 0, 1)
    no correlation | - | DARK | no correlation
"""
_KINDS = {"3a": "through the past (BPL)", "3b": "through the future (FPL)", "3c": "whole (TPL)"}
_READINGS = (Reading.CELL, Reading.FIFTIETH)


def draw_examples(points: Sequence[Point], path: str | Path) -> None:
    """Examples 2 to 5: leakage of ten releases, a loss function, suprema.

    References:
        [TPL, Fig. 3], [TPL, Fig. 4], [TPL, Fig. 5]
    """
    rows = (("3a", "3b", "3c"), ("5a", "5b", "5c", "5d"))
    wide = [[name for name in row for _ in range(_GRID // len(row))] for row in rows]
    for row in wide:  # the loss function stands to the right of both rows
        row += ["4"] * (_GRID // 3)
    draw_panels(points, wide, (17, 7.5), _painted_example, path)


def draw_degrees(points: Sequence[Point], path: str | Path) -> None:
    """Degrees of correlation, by Equation 28 as printed and as the paper's picture has it.

    References:
        [TPL, Fig. 7]
    """
    panels = [[f"{figure}, {reading}" for figure in SPANS] for reading in _READINGS]
    moved = [
        replace(point, figure=f"{point.figure}, {reading}")
        for point in points
        for reading in _READINGS
        if point.curve.startswith(f"{reading};")
    ]
    draw_panels(moved, panels, (12, 8), _painted_degrees, path)


def _painted_example(axes: Any, name: str, lines: Lines) -> None:
    painter = {"3": _releases, "4": _function, "5": _supremum}[name[0]]
    painter(axes, name, lines)


def _releases(axes: Any, name: str, lines: Lines) -> None:
    plot_all(axes, lines, _THREE, marker="o")
    axes.set_ylim(0, 1.45 * BUDGET * RELEASES)
    axes.set_xlabel("moment")
    finish(axes, f"{name}: {_KINDS[name]}, ε = {BUDGET:g}", "leakage (nats)")


def _function(axes: Any, name: str, lines: Lines) -> None:
    for curve in lines:
        if curve.startswith("rows "):
            plot(axes, lines, curve, "-", GREY, None, width=1)
    plot(axes, lines, "loss function", "-", BLUE, "loss function", width=3, alpha=0.7)
    plot(axes, lines, "transition points", " ", DARK, "a pair changes its piece", marker="o")
    plot(axes, lines, "change of pair", " ", RED, "the top changes its pair", marker="*")
    axes.set_xlabel("leakage beside it (nats)")
    finish(axes, f"{name}: loss function of Example 4", "loss (nats)")


def _supremum(axes: Any, name: str, lines: Lines) -> None:
    (case,) = (case for case in ACCUMULATIONS if case.panel == name)
    plot(axes, lines, "leakage", "-", BLUE, "leakage")
    bounded = all(math.isfinite(point.y) for point in lines["supremum"])
    if bounded:
        plot(axes, lines, "supremum", "--", DARK, "supremum")
    axes.set_xlabel("releases")
    axes.set_ylim(bottom=0)
    (q, p), (d, r) = case.rows
    told = f"{name}: ({q:g}, {p:g}; {d:g}, {r:g}), ε = {case.epsilon:g}"
    finish(axes, told if bounded else f"{told}\nno supremum", "leakage (nats)")


def _painted_degrees(axes: Any, name: str, lines: Lines) -> None:
    figure, reading = name.split(", ", 1)
    settings = [(s, SIZES[0], "-") for s in DEGREES] + [(DEGREES[0], SIZES[1], "--")]
    colours = dict(zip(DEGREES, COLOURS, strict=True))
    for s, size, style in settings:
        curve = f"{reading}; s = {s:g}, n = {size}"
        words = f"s = {s:g}, n = {size}"
        plot(axes, lines, curve, style, colours[s], words)
    axes.set_xlabel("releases")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylim(0, {"7a": 12.0, "7b": 8.0}[figure])
    finish(axes, f"{figure}: ε = {SPANS[figure][0]:g}, {reading}", "leakage through the past")
