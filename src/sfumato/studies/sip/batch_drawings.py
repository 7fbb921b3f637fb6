"""The picture of Figure 5 of SIP: losses on two binary chains, every way at its leakage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sfumato.core.printed import shown_up
from sfumato.plots.colours import DARK, GREEN, GREY
from sfumato.plots.figures import COLOURS, NAMES, new_figure, save_figure
from sfumato.plots.points import BatchPoint
from sfumato.studies.sip.sip_batches import FIXED

_BATCH_CURVES = (
    ("say nothing", "say nothing", "#bbbbbb", ""),
    ("randomised response, LDP", "randomized response", GREY, "v"),
    ("ToPS", "ToPS", "#8e5ba6", "P"),
    ("ToPL", "ToPL", "#c9a227", "X"),
    ("temporal LDP", "temporal LDP", "#5f5f5f", "^"),
    (NAMES["calibrated"], "calibrated", COLOURS["calibrated"], "s"),
    (NAMES["calibrated, best guess"], "calibrated", COLOURS["calibrated, best guess"], "s"),
    ("value by value (step-wise optimum)", "instantaneous", "#9cc9e6", "o"),
    ("value by value, far-sighted", "far-sighted", GREEN, "D"),
    ("bound for any release value by value", "bound", DARK, ""),
    ("batches of 2", "batches of 2", "#5ba3d0", "o"),
    ("batches of 3", "batches of 3", COLOURS["optimal"], "o"),
    ("batches of 5", "batches of 5", "#0b3c61", "o"),
)
_BATCH_TITLES = {"a": "(a) independent bits", "b": "(b) bits that stay with probability .9"}
_LEAST_SHOWN = 3e-4
_ALIKE = ("instantaneous", "calibrated", "published")


def batch_losses(points: Sequence[BatchPoint], path: str | Path) -> None:
    """Expected loss against the leakage allowed per value, one panel a chain.

    Rivals that promise something else stand at what they really leak under the chain. The numbers
    at the dashed line are what the published rule leaks where it claims the abscissa.
    """
    figure, panels = new_figure(10.4, 4.9, columns=2)
    for axes, setting in zip(panels, ("a", "b"), strict=True):
        here = [point for point in points if point.setting == setting]
        for name, curve, colour, marker in _BATCH_CURVES:
            style = ":" if curve in ("say nothing", "bound") else "-"
            told = _line(here, curve, guessed=name == NAMES["calibrated, best guess"])
            axes.plot(*told, style, color=colour, marker=marker, markersize=4, label=name)
        _published_line(axes, here)
        axes.set_title(_BATCH_TITLES[setting], fontsize=10)
        axes.set_xlabel("leakage per value (SIP, nats)")
        axes.set_xlim(left=0)
        axes.set_yscale("log")
        axes.set_ylim(_LEAST_SHOWN, 0.7)
    panels[0].set_ylabel("expected share of wrong bits")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save_figure(figure, path)


def _line(
    points: Sequence[BatchPoint], curve: str, *, guessed: bool = False
) -> tuple[list[float], list[float]]:
    chosen = [point for point in points if point.curve == curve]
    losses = [point.guessed_loss if guessed else point.loss for point in chosen]
    true = curve in FIXED
    return [point.leakage if true else point.epsilon for point in chosen], losses


def _published_line(axes: Any, points: Sequence[BatchPoint]) -> None:
    """The published rule, with what it really leaks wherever that is over its claim."""
    from matplotlib.patheffects import withStroke

    colour = COLOURS["published"]
    name = "published rule (number: its true leakage)"
    axes.plot(*_line(points, "published"), "--", color=colour, linewidth=1.6, label=name)
    for point in points:
        if point.curve != "published" or point.leakage <= point.epsilon * (1 + 1e-6):
            continue
        axes.annotate(
            shown_up(point.leakage, 3),
            (point.epsilon, point.loss),
            xytext=(-2, -3),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=8,
            color=colour,
            path_effects=[withStroke(linewidth=2.5, foreground="white")],
            zorder=5,
        )
    alike = zip(*(_line(points, curve)[1] for curve in _ALIKE), strict=True)
    if all(max(losses) - min(losses) < 1e-6 for losses in alike):
        said = "optimal, calibrated and\npublished are one rule\nhere: it leaks ε"
        place = {"ha": "left", "va": "bottom", "transform": axes.transAxes}
        axes.text(0.03, 0.04, said, fontsize=8, color=colour, **place)
