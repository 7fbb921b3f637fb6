"""The ten panels of `lip_discrete` as one picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, COLOURS, DARK, GREY, ORANGE
from sfumato.plots.panels import Lines, draw_panels, finish, plot, plot_all
from sfumato.plots.points import Point
from sfumato.studies.lip.lip_discrete import BUDGETS, NAMES, ORDERS, SAMPLED_BUDGETS, SETS

_STYLES = {"bound": "--", "worst": "-", "optimal": ":"}
_ROWS = (("2a", "2b", "4a", "4b"), ("5a", "5b", "5c"), ("6a", "6b", "6c"))
_GRID = 12
"""Columns that the panels of a row share: four take three each, three take four."""
_BITS = """
    LDP | - | GREY | LDP
    LIP | - | BLUE | LIP
    MIL | - | ORANGE | MIL
    MIP | - | GREEN | MIP
"""
_BOUNDS = """
    η + ε | - | BLUE | η + ε
    η + ε, c = P_min | : | BLUE | the same with c = P_min: not proven
    2ε | - | GREY | 2ε
    ln((e^ε - 1 + p)/p) | - | ORANGE | ln((e^ε − 1 + p)/p)
    Eq. 19, 99 % | -- | RED | true leakage of Eq. 19, 99 %
    Eq. 19, median | - | RED | its median
"""
_LABELS = {
    "2": "leakage under the prior (ε, nats)",
    "4": "probability of a flip (q)",
    "5": "releases",
    "6": "samples",
}


def draw(points: Sequence[Point], path: str | Path) -> None:
    """Every panel, with the paper's numbering; a panel without points stays empty.

    References:
        [LIP, Figs. 2, 4, 5 and 6]
    """
    wide = [[name for name in row for _ in range(_GRID // len(row))] for row in _ROWS]
    draw_panels(points, wide, (16, 13), _painted, path)


def _painted(axes: Any, name: str, lines: Lines) -> None:
    axes.set_xlabel(_LABELS[name[0]])
    _PAINTERS[name[0]](axes, name, lines)


def _implied(axes: Any, name: str, lines: Lines) -> None:
    told = {"2a": "model-free leakage (nats)", "2b": "log quotient of posteriors (nats)"}
    title = {"2a": "what ε-LIP implies: LDP", "2b": "what ε-LIP implies: two posteriors"}
    for prior, colour in (("one rare", ORANGE), ("even", BLUE)):
        words = {"one rare": "(.01, .33, .33, .33)", "even": "(.25, .25, .25, .25)"}[prior]
        plot(axes, lines, f"{prior}, exact", "-", colour, f"{words}, exact", width=4, alpha=0.45)
        plot(axes, lines, f"{prior}, bound", "--", _shade(colour), f"{words}, bound")
    if name == "2a":
        ends = [0, 5]
        axes.plot(ends, ends, ":", color=GREY, linewidth=1, label="ε and 2ε")
        axes.plot(ends, [0, 10], ":", color=GREY, linewidth=1)
    finish(axes, f"{name}: {title[name]}", told[name])


def _binary(axes: Any, name: str, lines: Lines) -> None:
    plot_all(axes, lines, _BITS)
    one = {"4a": ".5", "4b": ".2"}[name]
    finish(axes, f"{name}: a bit, 1 with probability {one}", "leakage (nats)")


def _releases(axes: Any, name: str, lines: Lines) -> None:
    groups = {
        "5a": list(NAMES.values()),
        "5b": [" or ".join(NAMES[prior] for prior in priors) for priors in SETS],
        "5c": [", then ".join(NAMES[prior] for prior in order) for order in ORDERS],
    }[name]
    link = ";" if name == "5c" else ","
    for group, colour in zip(groups, COLOURS, strict=True):
        axes.plot([], [], color=colour, label=group)
        for epsilon, mark in zip(BUDGETS, ("o", "^"), strict=True):
            for kind, style in _STYLES.items():
                curve = f"{group}{link} ε = {epsilon:g}, {kind}"
                plot(axes, lines, curve, style, colour, None, marker=mark)
    kinds = {"bound": "the paper's bound", "worst": "worst channel", "optimal": "optimal channel"}
    for kind, words in kinds.items():
        if name != "5c" or kind != "optimal":
            axes.plot([], [], _STYLES[kind], color=DARK, label=words)
    for epsilon, mark in zip(BUDGETS, ("o", "^"), strict=True):
        axes.plot([], [], mark, color=DARK, markersize=4, label=f"ε = {epsilon:g}")
    if name == "5c":
        axes.set_xticks([1, 2, 3])
    title = {"5a": "one value", "5b": "one value, sets of priors", "5c": "independent values"}[name]
    finish(axes, f"{name}: {title}", "leakage of all releases (nats)")


def _estimated(axes: Any, name: str, lines: Lines) -> None:
    axes.set_xscale("log")
    if name == "6c":
        axes.set_yscale("log")
        plot(axes, lines, "bound", "-", DARK, "bound (Cor. 7)")
        plot(axes, lines, "c = P_min", ":", DARK, "the same with c = P_min: not proven")
        for epsilon, colour in zip(SAMPLED_BUDGETS.values(), COLOURS, strict=False):
            for part, style in (("99 %", "--"), ("median", "-")):
                curve = f"ε = {epsilon:g}, {part}"
                plot(axes, lines, curve, style, colour, curve, marker="o")
        finish(axes, "6c: estimate against truth, Eq. 19", "discrepancy of the leakage (nats)")
        return
    plot_all(axes, lines, _BOUNDS)
    epsilon = SAMPLED_BUDGETS[name]
    axes.axhline(epsilon, color=DARK, linewidth=0.8, linestyle=":", label="ε")
    axes.set_ylim(top=7.5 * epsilon if name == "6a" else 3 * epsilon)  # room for the legend
    finish(axes, f"{name}: bounds of Eq. 12, ε = {epsilon:g}, P(0) = .3", "leakage (nats)")


def _shade(colour: str) -> str:
    """A darker colour for a line on top of another."""
    return {ORANGE: "#8a3f10", BLUE: "#0b3c61"}[colour]


_PAINTERS = {"2": _implied, "4": _binary, "5": _releases, "6": _estimated}
