"""The nine panels of `lip_numbers` as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, COLOURS, DARK, GREEN, GREY, RED
from sfumato.plots.panels import Lines, draw_panels, finish, plot, plot_all
from sfumato.plots.points import Point
from sfumato.studies.lip.lip_number_noise import DELTA, LATTICE
from sfumato.studies.lip.lip_numbers import DENSITIES, SWITCH, VALUES

_REDS = ("#e6a09b", "#d0685f", "#b3261e", "#7a120c")
"""One red for each value, the darker the farther from the mean."""
_ROWS = (("7a", "7b", "8"), ("9a", "9b", "9c"), ("10a", "10b", "10c"))
_SAMPLING = """
    | - | DARK | Prop. 2 (Def. 5)
    | -- | DARK | λ = δ (Cor. 9)
    | : | DARK | the best constant
"""
_TRUE_DELTAS = """
    Cor. 10, prior cut | - | RED | Cor. 10, prior cut at ±12
    Cor. 10, prior clamped | -- | RED | Cor. 10, prior clamped to ±12
    Cor. 10, on the lattice | : | RED | the same, outputs clamped too (0 from ε = .91 on)
    own scales | - | BLUE | own scales, certified together
"""
_ERRORS = """
    LDP | - | GREY | LDP
    LDP, best guess | -- | GREY |
    Cor. 10 | - | RED | Cor. 10 (not private below .91)
    Cor. 10, best guess | -- | RED |
    one scale | - | ORANGE | one scale
    one scale, best guess | -- | ORANGE |
    own scales | - | BLUE | own scales
    own scales, best guess | -- | BLUE |
"""
_OPTIMAL = """
    optimal, δ = 0 | - | GREEN | optimal channel, δ = 0
    quantile response, δ = 0 | -. | GREEN | response on quantiles, best guess, δ = 0
"""
_LAPLACE_RULES = """
    LDP | - | GREY | LDP, ΔX/ε
    Eq. 25 | - | RED | Eq. 25 as printed
    Eq. 25, first branch | -- | RED | Eq. 25, first branch
"""
_LAPLACE_SCALES = """
    least | - | ORANGE | least, outputs on the line
    least, three outputs | -- | ORANGE | least, three outputs
    own scales, X = 0 | - | BLUE | own scales, X = 0 (P = .433)
    own scales, X = 1 | -- | BLUE | own scales, X = 1 (P = .333)
    own scales, X = 2 | -. | BLUE | own scales, X = 2 (P = .233)
"""
_LAPLACE_ERRORS = """
    least, three outputs | - | ORANGE | least scale
    Eq. 26, largest α | -- | BLUE | Eq. 26 with the largest α
    own scales | - | BLUE | own scales
    optimal | - | GREEN | optimal channel
    say nothing | : | DARK | the best constant
"""
_EPSILON = "ε (nats)"
_ERROR = "mean absolute error"


def draw(points: Sequence[Point], path: str | Path) -> None:
    """Every panel, with the paper's numbering; a panel without points stays empty.

    References:
        [LIP, Fig. 7], [LIP, Fig. 8], [LIP, Fig. 9], [LIP, Fig. 10]
    """
    draw_panels(points, _ROWS, (17, 15), _painted, path)


def _painted(axes: Any, name: str, lines: Lines) -> None:
    axes.set_xlabel("δ" if name == "7b" else _EPSILON)
    _PAINTERS[name](axes, lines)


def _sampling(axes: Any, name: str, lines: Lines) -> None:
    for density, colour in zip(DENSITIES, COLOURS, strict=True):
        plot(axes, lines, f"{density.name}, Prop. 2", "-", colour, density.name)
        plot(axes, lines, f"{density.name}, λ = δ", "--", colour, None)
        plot(axes, lines, f"{density.name}, say nothing", ":", colour, None)
    plot_all(axes, {}, _SAMPLING)
    axes.set_ylim(bottom=0)
    title = {"7a": "sampling, δ = .01", "7b": "sampling, ε = 2"}[name]
    finish(axes, f"{name}: {title}", _ERROR, place="lower left" if name == "7a" else "best")


def _outage(axes: Any, lines: Lines) -> None:
    for value, colour in zip(VALUES, _REDS, strict=False):
        plot(axes, lines, f"LIP, X = {value:g}", "-", colour, f"LIP at ε, X = {value:g}")
    for level, colour in (("ε", BLUE), ("2ε", GREEN)):
        curve, words = f"LDP, {level}", f"classical bound at {level}"
        plot(axes, lines, curve, "-", colour, f"LDP at {level}")
        plot(axes, lines, f"{curve}, classical", "-", colour, words, width=4, alpha=0.35)
        words = f"its formula at {level}, not proven"
        plot(axes, lines, f"{curve}, classical, not proven", ":", colour, words)
    axes.set_yscale("log")
    axes.set_ylim(1e-8, 1e4)  # room for the legend
    _powers(axes, -8)
    title = "8: Gaussian noise 10, prior N(0, 5²), ΔX = 20"
    finish(axes, title, "δ", place="upper right", columns=2)


def _scales(axes: Any, lines: Lines) -> None:
    for value, colour in zip((*VALUES, LATTICE.high), _REDS, strict=True):
        words = f"Cor. 10, X = {value:g}"
        plot(axes, lines, words, "-", colour, words, marker="o")
    plot(axes, lines, "LDP", "-", GREY, "LDP, ΔX = 24", marker="o")
    plot(axes, lines, "LDP, classical", "--", GREY, "LDP, classical", marker="o")
    plot(axes, lines, "LDP, classical, not proven", ":", GREY, "the same, not proven", marker="o")
    plot(axes, lines, "one scale", "-", BLUE, "one scale, certified (clamped outputs)")
    for value, style in ((0.0, "--"), (LATTICE.high, "-.")):
        curve = f"own scales, X = {value:g}"
        plot(axes, lines, curve, style, BLUE, f"own scales, certified, X = {value:g}")
    axes.set_yscale("log")
    axes.set_ylim(top=900)  # room for the legend
    _plain_ticks(axes, (5, 10, 20, 50, 100, 200))
    finish(axes, "9a: noise for δ = 1e-4, prior N(0, 5²)", "standard deviation", columns=2)


def _true_deltas(axes: Any, lines: Lines) -> None:
    # Nothing is left to draw of a delta of 0 on this scale.
    seen = {curve: [point for point in line if point.y > 0] for curve, line in lines.items()}
    plot_all(axes, seen, _TRUE_DELTAS, marker="o")
    axes.axhline(DELTA, color=DARK, linewidth=0.8, linestyle=":", label="claimed")
    axes.set_yscale("log")
    axes.set_ylim(3e-5, 1)
    _powers(axes, -4)
    finish(axes, "9b: the δ that these scales have", "δ", place="center")


def _gaussian_errors(axes: Any, lines: Lines) -> None:
    plot_all(axes, lines, _ERRORS, marker="o")
    axes.plot([], [], "--", color=DARK, label="the same, then the best guess")
    plot_all(axes, lines, _OPTIMAL, marker="o")
    plot(axes, lines, "say nothing", ":", DARK, "the best constant")
    axes.set_ylim(0, 15)  # room for the legend
    finish(axes, "9c: errors on the lattice", _ERROR, place="upper right", columns=2)


def _laplace_scales(axes: Any, lines: Lines) -> None:
    plot_all(axes, lines, _LAPLACE_RULES + _LAPLACE_SCALES)
    axes.axvline(SWITCH, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_yscale("log")
    _plain_ticks(axes, (0.1, 0.2, 0.5, 1, 2, 5, 10))
    finish(axes, "10a: Laplace noise for three values", "scale")


def _laplace_errors(axes: Any, lines: Lines) -> None:
    plot_all(axes, lines, _LAPLACE_RULES + _LAPLACE_ERRORS)
    axes.axvline(SWITCH, color=GREY, linewidth=0.8, linestyle=":")
    axes.set_ylim(0, 1.1)  # room for the legend
    finish(axes, "10b: their errors, three outputs", _ERROR, place="upper right", columns=2)


def _constants(axes: Any, lines: Lines) -> None:
    plot(axes, lines, "largest α", "-", BLUE, "three outputs")
    axes.axhline(0, color=RED, linewidth=1.5, label="outputs on the line")
    finish(axes, "10c: largest constant that Eq. 26 can have", "α")


def _plain_ticks(axes: Any, values: Sequence[float]) -> None:
    axes.set_yticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()


def _powers(axes: Any, least: int) -> None:
    axes.set_yticks([10.0**power for power in range(least, 1)])
    axes.minorticks_off()


_PAINTERS = {
    "7a": lambda axes, lines: _sampling(axes, "7a", lines),
    "7b": lambda axes, lines: _sampling(axes, "7b", lines),
    "8": _outage,
    "9a": _scales,
    "9b": _true_deltas,
    "9c": _gaussian_errors,
    "10a": _laplace_scales,
    "10b": _laplace_errors,
    "10c": _constants,
}
