"""The picture of the ways to release a track."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure

if TYPE_CHECKING:
    from sfumato.studies.tracks.track_points import TrackPoint

_LOOKS = {
    "silence": (DARK, ":", ""),
    "planar Laplace": (ORANGE, "-", "o"),
    "planar Laplace, every N": (ORANGE, "-.", "v"),
    "predictive": (ORANGE, "--", "s"),
    "adaptive": (ORANGE, ":", "^"),
    "compensated noise (CAPP)": (GREEN, "--", "D"),
    "randomised response": (GREY, "-", "o"),
    "population division": (GREY, "--", "s"),
    "step-wise": (BLUE, ":", "o"),
    "bursts": (BLUE, "--", "s"),
    "far-sighted": (BLUE, "-", "o"),
    "clustered reports": (RED, "", "x"),
}
"""Colour, line and mark of each way: ours blue, planar noise orange, responses grey."""


def errors(points: Sequence[TrackPoint], path: str | Path) -> None:
    """Error of the receiver's best guess against leakage, one panel a set.

    Args:
        points: Of all sets.
        path: The picture.
    """
    names = list(dict.fromkeys(point.data for point in points))
    figure, panels = new_figure(3.4 * len(names), 4.4, columns=len(names))
    for axes, name in zip(panels if len(names) > 1 else [panels], names, strict=True):
        here = [point for point in points if point.data == name]
        _panel(axes, here)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("certified leakage, nats a value")
        axes.set_ylabel(f"error of the best guess, {here[0].unit}")
    first = panels[0] if len(names) > 1 else panels
    lines, words = first.get_legend_handles_labels()
    figure.legend(lines, words, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)


def _panel(axes: Any, points: Sequence[TrackPoint]) -> None:
    for way, (colour, line, mark) in _LOOKS.items():
        own = sorted((one for one in points if one.way == way), key=lambda one: one.cap)
        label = way if all(math.isfinite(one.sip) for one in own) else f"{way} (leakage unbounded)"
        axes.errorbar(
            [one.cap for one in own],
            [one.guessed for one in own],
            [2 * one.error for one in own],
            color=colour,
            linestyle=line,
            marker=mark,
            markersize=4,
            linewidth=1.5,
            elinewidth=0.7,
            label=label,
        )
    axes.set_xscale("log", base=2)
    caps = sorted({one.cap for one in points})
    axes.set_xticks(caps, [f"{cap:g}" for cap in caps])
    axes.set_ylim(bottom=0)
