"""Pictures of attacks: how often the adversary is right, how far off he is, what he gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.colours import BLUE, DARK, GREY, ORANGE
from sfumato.plots.figures import new_figure, save_figure


@dataclass(frozen=True, slots=True, eq=False)
class AttackPicture:
    """What is drawn of an attack on tracks.

    Attributes:
        shares: Name, what is expected and what was measured (None if it was not) of each bar.
        errors: The adversary's expected error at each moment.
        blind: The same had nothing left.
        gains: What each stream told at least, and what is certified for it.
        unit: Of the errors.
        people: What was attacked to tell whose it is, how often that was right, its lower and its
            upper bound, and chance; none if nobody asked.
    """

    shares: Sequence[tuple[str, float, float | None]]
    errors: Floats
    blind: Floats
    gains: Sequence[tuple[float, float]]
    unit: str
    people: Sequence[tuple[str, float, float, float, float]] = ()


def attacked_tracks(drawn: AttackPicture, path: str | Path) -> None:
    """Right guesses, errors over time, gains beside certificates, and whose streams are."""
    columns = 4 if drawn.people else 3
    figure, panels = new_figure(4.2 * columns, 3.6, columns=columns)
    _shares(panels[0], drawn)
    _errors(panels[1], drawn)
    _gains(panels[2], drawn)
    if drawn.people:
        _people(panels[3], drawn.people)
    save_figure(figure, path)


def _shares(axes: Any, drawn: AttackPicture) -> None:
    places = np.arange(len(drawn.shares))
    axes.bar(places - 0.2, [one[1] for one in drawn.shares], 0.38, color=BLUE, label="expected")
    measured = [(place, one[2]) for place, one in enumerate(drawn.shares) if one[2] is not None]
    if measured:
        spots, heights = zip(*measured, strict=True)
        axes.bar(np.array(spots) + 0.2, heights, 0.38, color=ORANGE, label="beside the truth")
    axes.set_xticks(places, [one[0] for one in drawn.shares], fontsize=8)
    axes.set_ylim(0, 1)
    axes.set_title("how often the adversary is right", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def _errors(axes: Any, drawn: AttackPicture) -> None:
    moments = np.arange(len(drawn.errors))
    axes.plot(moments, drawn.blind, "--", color=GREY, label="without outputs")
    axes.plot(moments, drawn.errors, color=BLUE, label="with all outputs")
    axes.set_ylim(0, 1.25 * max(float(np.max(drawn.errors)), float(np.max(drawn.blind)), 1e-9))
    axes.set_xlabel("moment")
    axes.set_title(f"his expected error{f' ({drawn.unit})' if drawn.unit else ''}", fontsize=10)
    axes.legend(fontsize=8, frameon=False)


def _gains(axes: Any, drawn: AttackPicture) -> None:
    axes.set_title("what each stream told", fontsize=10)
    axes.set_xlabel("certified, at most (nats)")
    axes.set_ylabel("realised, at least (nats)")
    if not drawn.gains:
        return
    realised, certified = zip(*drawn.gains, strict=True)
    most = max(*realised, *certified, 1e-9) * 1.05
    axes.plot([0, most], [0, most], color=DARK, linewidth=0.8)
    axes.plot(certified, realised, "o", color=BLUE, markersize=4)
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)


def _people(axes: Any, people: Sequence[tuple[str, float, float, float, float]]) -> None:
    places = np.arange(len(people))[::-1]
    names, shares, lows, highs, chances = zip(*people, strict=True)
    middle = np.array(shares)
    reach = np.abs(np.stack([middle - lows, np.array(highs) - middle]))
    axes.barh(places, middle, 0.6, color=BLUE, xerr=reach, ecolor=DARK, capsize=2)
    axes.plot(chances, places, "|", color=ORANGE, markersize=14, markeredgewidth=2)
    axes.set_yticks(places, names, fontsize=7)
    axes.set_xlim(0, 1)
    axes.set_xlabel("share of streams (orange: by chance)")
    axes.set_title("owners among the first guesses", fontsize=10)


def attacked_series(
    released: Sequence[float | None], values: Floats, errors: Floats, name: str, path: str | Path
) -> None:
    """What left of a series, and what the adversary makes of it; no true value."""
    figure, axes = new_figure(8.0, 3.6)
    moments = np.arange(len(values))
    left = [float("nan") if value is None else value for value in released]
    axes.plot(moments, left, color=GREY, linewidth=0.9, label=f"released {name}")
    axes.plot(moments, values, color=BLUE, linewidth=1.3, label="best guess, two standard errors")
    ends = (values - 2 * errors, values + 2 * errors)
    axes.fill_between(moments, *ends, color=BLUE, alpha=0.2, linewidth=0)
    axes.set_xlabel("moment")
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)
