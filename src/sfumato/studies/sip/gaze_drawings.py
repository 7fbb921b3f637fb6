"""Tracks of gaze on a screen, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.figures import new_figure, save_figure
from sfumato.studies.data.gaze_data import Grid

if TYPE_CHECKING:
    from sfumato.studies.sip.sip_figure_7 import Track

_SPREAD = 0.55
"""Part of a cell over which moments at the same place are spread, so that all can be seen."""


def tracks_on_screen(
    tracks: Mapping[str, Track], places: Floats, grid: Grid, path: str | Path
) -> None:
    """A panel for each way: cells in the order of time, early dark and late bright."""
    figure, panels = new_figure(2.75 * len(tracks), 2.9, columns=len(tracks))
    for axes, (way, track) in zip(panels, tracks.items(), strict=True):
        _screen(axes, places[track.places], grid)
        apart = track.distances.mean()
        axes.set_title(way if not apart else f"{way}\noff by {apart:.3f}", fontsize=9)
    save_figure(figure, path)


def _screen(axes: Any, points: Floats, grid: Grid) -> None:
    shift = np.random.default_rng(0).uniform(-0.5, 0.5, points.shape) * _SPREAD
    spread = points + shift / (grid.columns, grid.lines)
    axes.plot(*spread.T, color="#b8b8b8", linewidth=0.4, zorder=1)
    axes.scatter(
        *spread.T,
        c=np.arange(len(points)),
        cmap="plasma",
        s=9,
        linewidths=0,
        vmax=1.1 * len(points),
    )
    axes.set_xticks(np.arange(grid.columns + 1) / grid.columns, [])
    axes.set_yticks(np.arange(grid.lines + 1) / grid.lines, [])
    axes.grid(color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.set_xlim(0, 1)
    axes.set_ylim(1, 0)
    axes.set_aspect(0.75)
    axes.spines[["top", "right"]].set_visible(True)
