"""The picture of a test for drift: what bets against a model made, block by block."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core import portable
from sfumato.core.printed import shown_up
from sfumato.plots.colours import BLUE, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure

if TYPE_CHECKING:
    from sfumato.stream.drift import DriftReport


def capital_over_time(found: DriftReport, path: str | Path) -> None:
    """The capital of those who bet against the model, and where the alarm is raised."""
    figure, axes = new_figure(7.2, 3.8)
    tens = portable.log(10.0)
    ends = np.append(0, found.ends)
    made = np.append(0.0, found.log_capital) / tens
    axes.plot(ends, made, color=BLUE, label="bets against the model")
    label = f"alarm: a right model ever gets here with probability at most {shown_up(found.alpha)}"
    axes.axhline(found.threshold / tens, color=RED, linestyle="--", label=label)
    axes.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
    if found.since is not None:
        axes.axvline(found.since, color=ORANGE, label="most likely since here")
    axes.set_xlabel("values released, over all streams")
    axes.set_ylabel("capital, in powers of ten")
    axes.set_ylim(top=max(float(made.max()), found.threshold / tens) * 1.15)
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    save_figure(figure, path)
