"""Panels of Figures 3 and 4 of SIP: what the correlation of two bits does to their noise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure

if TYPE_CHECKING:
    from sfumato.studies.sip.sip_figures_3_4 import Line

_COLOURS = (BLUE, ORANGE, GREEN)
_PANELS = (
    ("noise_correlation", "correlation of the noises"),
    ("noise_information", "mutual information of the noises (nats)"),
    ("second_noise", "noise at time 2: share of flipped bits"),
)


def draw(lines: Sequence[Line], path: str | Path) -> None:
    """Four panels against the correlation of the data, for one figure."""
    figure, panels = new_figure(14.0, 4.0, columns=4)
    colours = {epsilon: _COLOURS[n] for n, epsilon in enumerate(_budgets(lines))}
    for axes, (name, ordinate) in zip(panels, _PANELS, strict=False):
        for line in lines:
            published = line.method == "published"
            axes.plot(
                [point.data_correlation for point in line.points],
                [getattr(point, name) for point in line.points],
                "--" if published else "-",
                color=colours[line.epsilon],
                linewidth=1.1 if published else 1.6,
                label=f"{'published' if published else 'certified'}, ε = {line.epsilon:g}",
            )
        axes.set_title(ordinate, fontsize=9)
    _leakages(panels[3], lines)
    for axes in panels:
        axes.set_xlabel("correlation of the two bits")
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    handles, labels = panels[0].get_legend_handles_labels()
    handles += (more := panels[3].get_legend_handles_labels())[0]
    figure.legend(
        handles, labels + more[1], loc="outside lower center", ncols=5, frameon=False, fontsize=8
    )
    save_figure(figure, path)


def _budgets(lines: Sequence[Line]) -> list[float]:
    return sorted({line.epsilon for line in lines})


def _leakages(axes: Any, lines: Sequence[Line]) -> None:
    """Least leakage at bounded noise, after the published first step at the middle budget."""
    budgets = _budgets(lines)
    middle = budgets[len(budgets) // 2]
    [line] = [one for one in lines if one.method == "published" and one.epsilon == middle]
    for name, label, colour, style in (
        ("correlated_leakage", "knows output 1, worse output", RED, "-"),
        ("correlated_mean_leakage", "knows output 1, mean", DARK, "-"),
        ("independent_leakage", "ignores output 1, as claimed", GREY, "--"),
        ("independent_true_leakage", "ignores output 1, true", GREY, "-"),
    ):
        axes.plot(
            [point.data_correlation for point in line.points],
            [getattr(point, name) for point in line.points],
            style,
            color=colour,
            label=label,
        )
    axes.set_title("least leakage at time 2, noise ≤ .1 (nats)", fontsize=9)
    axes.set_ylim(bottom=0)
