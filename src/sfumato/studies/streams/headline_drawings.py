"""The picture of the paper's headline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.streams.headline import OURS, SILENCE, HeadlinePoint

_COLOURS = dict(zip((*OURS, SILENCE), (BLUE, GREEN, ORANGE, GREY), strict=True))
_APART = 0.03
"""Curves stand so far beside each other that their error bars can be told apart, in octaves."""


def factors(points: Sequence[HeadlinePoint], path: str | Path) -> None:
    """How many times as much the rival loses, against the cap; one panel a set."""
    names = list(dict.fromkeys(point.data for point in points))
    figure, panels = new_figure(3.0 * len(names), 3.5, columns=len(names))
    for axes, name in zip(panels if len(names) > 1 else [panels], names, strict=True):
        for place, (way, colour) in enumerate(_COLOURS.items()):
            line = [point for point in points if point.data == name and point.way == way]
            caps = [point.cap * 2 ** (_APART * (place - 1)) for point in line]
            high = [point.factor for point in line]
            low = [point.factor - point.least for point in line]
            up = [point.most - point.factor for point in line]
            label = f"{way} of {line[0].width}" if line[0].width > 1 else way
            axes.errorbar(
                caps, high, [low, up], fmt="o-", color=colour, markersize=3.5, capsize=2,
                linewidth=1.3, label=label,
            )  # fmt: skip
        axes.axhline(2.0, color=DARK, linestyle="--", linewidth=1)
        axes.axhline(1.0, color=DARK, linestyle=":", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ticks = sorted({point.cap for point in points})
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        top = max(point.most for point in points if point.data == name and point.way in OURS)
        marks = [mark for mark in (0.5, 1, 2, 5, 10, 20, 50, 100) if mark <= 1.3 * top]
        axes.set_yticks(marks, [f"{mark:g}" for mark in marks])
        axes.minorticks_off()
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("nats per value, certified", fontsize=8)
        axes.legend(frameon=False, fontsize=7)
    first = panels[0] if len(names) > 1 else panels
    first.set_ylabel(
        "loss of k-RR with the best guess\n(batches: that waits), in parts of the loss", fontsize=8
    )
    save_figure(figure, path)
