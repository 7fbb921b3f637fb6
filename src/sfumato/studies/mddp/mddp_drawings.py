"""The four panels of `mddp` as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE
from sfumato.plots.panels import Lines, draw_panels, finish, plot, plot_all
from sfumato.plots.points import Point
from sfumato.studies.mddp.tied_columns import JOINT_SHAPES, SIGMA_JOINT, SIGMA_TIED, TIED_SHAPES

_TITLES = {
    "2a": f"2a: height and weight tied by an equation, uniform noise, σ = {SIGMA_TIED:g}",
    "2b": f"2b: the same, three noises of σ = {SIGMA_TIED:g}",
    "2c": f"2c: weight and pressure jointly normal, uniform noise, σ = {SIGMA_JOINT:g}",
    "2d": f"2d: the same, three noises of σ = {SIGMA_JOINT:g}",
}
_SINGLE = {
    "2a": """
    bound of Thm. 3 | -- | GREY | bound on γ (Thm. 3)
    γ | - | BLUE | γ, the paper's rate
    on the equation, best attacker | - | RED | people on the equation: best attacker
    on the equation, paper's attacker | -- | RED | the same: the paper's attacker
    people, best attacker | - | GREEN | people themselves: best attacker
    people, paper's attacker | -- | GREEN | the same: the paper's attacker
    γ without correlation | : | BLUE | γ without correlation
    """,
    "2c": """
    best attacker | - | RED | best attacker (exact)
    were they independent | -- | GREEN | the same, were they independent
    bound of Thm. 4 | -- | GREY | "upper bound" of Thm. 4
    without correlation | : | BLUE | δ without correlation, ε²/(3σ²)
    """,
}
_STYLES = {
    "2b": {"γ": (":", "γ, the paper's rate"), "best attacker": ("-", "best attacker")},
    "2d": {
        "best attacker": ("-", "best attacker"),
        "without correlation": (":", "δ without correlation"),
    },
}
_SHAPES = {"2b": TIED_SHAPES, "2d": JOINT_SHAPES}
_LOOKS = {
    "uniform": (BLUE, "independent uniform"),
    "gaussian": (ORANGE, "Gaussian"),
    "laplace": (GREEN, "Laplace"),
    "ball": (DARK, "ball"),
}
_ORDINATES = {
    "2a": "rate or probability",
    "2b": "rate or probability",
    "2c": "probability (δ), as a multiple of ε²/(3σ²)",
    "2d": "probability (δ), as a multiple of ε²/(3σ²)",
}
_RELATIVE = ("2c", "2d")
_TICKS = (0.5, 1, 2, 4, 8)
_DECADES = (0.01, 0.1, 1)


def draw(points: Sequence[Point], units: tuple[str, str], path: str | Path) -> None:
    """Every panel, with the paper's numbering; a panel without points stays empty.

    Args:
        points: Of all panels.
        units: Of heights and weights.
        path: The picture.

    References:
        [MDDP, Fig. 2]
    """

    def paint(axes: Any, name: str, lines: Lines) -> None:
        both = f"{units[0]} and {units[1]}" if name in ("2a", "2b") else "kg and mmHg"
        axes.set_xlabel(f"accuracy ε ({both})")
        _painted(axes, name, lines)

    draw_panels(points, (("2a", "2b"), ("2c", "2d")), (13, 10), paint, path)


def _painted(axes: Any, name: str, lines: Lines) -> None:
    shown = _relative(lines) if name in _RELATIVE else lines
    if name in _SINGLE:
        plot_all(axes, shown, _SINGLE[name], marker="o")
    else:
        _noises(axes, name, shown)
    if name in _RELATIVE:
        axes.set_xscale("log")
        axes.set_xticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axes.minorticks_off()
    if name == "2a":
        axes.set_yscale("log")
        axes.set_yticks(_DECADES, [f"{tick:g}" for tick in _DECADES])
    else:
        axes.set_ylim(bottom=0)  # in (c) and (d) the legend goes below the lines
    place, columns = ("lower left", 2) if name in _RELATIVE else ("best", 1)
    finish(axes, _TITLES[name], _ORDINATES[name], place=place, columns=columns)


def _noises(axes: Any, name: str, lines: Lines) -> None:
    for shape in _SHAPES[name]:
        colour, word = _LOOKS[shape]
        axes.plot([], [], color=colour, label=word)
        for kind, (style, _) in _STYLES[name].items():
            plot(axes, lines, f"{shape}, {kind}", style, colour, None, marker="o")
    for style, words in _STYLES[name].values():
        axes.plot([], [], style, color=GREY, label=words)


def _relative(lines: Lines) -> Lines:
    """Every probability as a multiple of that of independent uniform noise, without correlation."""
    return {
        curve: [replace(point, y=point.y / (point.x**2 / (3 * SIGMA_JOINT**2))) for point in line]
        for curve, line in lines.items()
    }
