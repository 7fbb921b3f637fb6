"""Pictures of ways to release real streams: losses at true leakages, and gaze on a screen."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sfumato.plots.colours import DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.sip.compared_releases import SILENCE, Released, by_curve

_OURS = ("#9cc9e6", GREEN, "#5ba3d0", "#1b6ca8", "#0b3c61")
_RIVALS = (GREY, "#5f5f5f", ORANGE, RED, "#c9a227", "#8e5ba6")
_MARKERS = "ovs^DPX*"


def losses_at_true_leakage(
    points: Sequence[Released], ordinate: str, ours: Sequence[str], path: str | Path
) -> None:
    """Loss against true leakage, a panel for each order of the chain."""
    orders, marks = sorted({point.order for point in points}), _marks(points, ours)
    figure, panels = new_figure(5.4 * len(orders) + 1.2, 5.2, columns=len(orders))
    for axes, order in zip(panels if len(orders) > 1 else [panels], orders, strict=True):
        _losses(axes, [point for point in points if point.order == order], marks)
        axes.set_xlabel("true leakage per value under the chain (SIP, nats)")
        if len(orders) > 1:
            axes.set_title(f"chain of order {order}", fontsize=10)
    first = panels[0] if len(orders) > 1 else panels
    first.set_ylabel(ordinate)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)


def _marks(points: Sequence[Released], ours: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each curve, the same in all panels."""
    mine, others = iter(_OURS), iter(_RIVALS)
    names = [name for name in by_curve(points) if name != SILENCE]
    return {
        name: (next(mine) if name in ours else next(others), _MARKERS[number % len(_MARKERS)])
        for number, name in enumerate(names)
    }


def _losses(axes: Any, points: Sequence[Released], marks: Mapping[str, tuple[str, str]]) -> None:
    curves = by_curve(points)
    nothing = curves.pop(SILENCE)[0]
    axes.axhline(nothing.loss, color=DARK, linestyle=":", linewidth=1, label=SILENCE)
    for name, line in curves.items():
        colour, marker = marks[name]
        bounded = all(math.isfinite(point.leakage) for point in line)
        leaked = [point.leakage if bounded else point.epsilon for point in line]
        axes.errorbar(
            leaked,
            [point.loss for point in line],
            [2 * point.error for point in line],
            color=colour,
            linestyle="-" if bounded else "--",
            marker=marker,
            markersize=4.5,
            linewidth=1.4,
            capsize=2,
            elinewidth=0.7,
            label=name if bounded else f"{name} (leaks ∞)",
        )
        if any(abs(point.received - point.loss) > 1e-4 for point in line):
            axes.plot(leaked, [point.received for point in line], ":", color=colour, linewidth=1.2)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
