"""Pictures of the studies of streams: totals, caps per step, and why greed wastes a budget."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE
from sfumato.plots.figures import new_figure, save_figure

if TYPE_CHECKING:
    from sfumato.studies.streams.greedy import GreedyStory
    from sfumato.studies.streams.habits import HabitPoint
    from sfumato.studies.streams.stream_caps import CapPoint
    from sfumato.studies.streams.stream_totals import TotalPoint

_HEIGHT = 0.19


def totals(points: Sequence[TotalPoint], path: str | Path) -> None:
    """Losses in parts of the loss of silence, one group of bars a set; the bound as a mark."""
    figure, axes = new_figure(9.2, 0.62 * len(points) + 1.6)
    names = [f"{point.data}\n{point.total:g} nats, {point.values} values" for point in points]
    ways = (
        ("evenly", GREY, [point.evenly for point in points]),
        ("k-RR every N, best N in hindsight", ORANGE, [_response(point) for point in points]),
        ("bursts, N sought on the model", BLUE, [point.bursts for point in points]),
    )
    for place, (name, colour, losses) in enumerate(ways):
        where = [row + (1 - place) * -_HEIGHT for row in range(len(points))]
        shares = [loss / point.silence for loss, point in zip(losses, points, strict=True)]
        axes.barh(where, shares, _HEIGHT, color=colour, label=name)
    bounds = [
        (point.bound / point.silence, row)
        for row, point in enumerate(points)
        if point.bound is not None
    ]
    if bounds:
        axes.plot(*zip(*bounds, strict=True), "|", color=DARK, markersize=16, label="proven bound")
    axes.axvline(1.0, color=DARK, linestyle=":", linewidth=1)
    axes.set_yticks(range(len(points)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("loss on people the model has not seen, in parts of the loss of saying nothing")
    figure.legend(loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    save_figure(figure, path)


def _response(point: TotalPoint) -> float:
    return min(point.response_held, point.response_guessed)


def habits(points: Sequence[HabitPoint], path: str | Path) -> None:
    """Loss against what is predicted: one panel a set, one point a model, with two errors."""
    names = list(dict.fromkeys(point.data for point in points))
    figure, panels = new_figure(3.6 * len(names), 3.4, columns=len(names))
    for axes, name in zip(panels if len(names) > 1 else [panels], names, strict=True):
        here = [point for point in points if point.data == name]
        for point, colour in zip(here, (GREY, ORANGE, BLUE, GREEN, DARK), strict=False):
            axes.errorbar(
                point.predicted,
                point.loss,
                xerr=2 * point.predicted_error,
                yerr=2 * point.loss_error,
                fmt="o",
                color=colour,
                label=point.model,
            )
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("predicted, nats a value")
        axes.set_ylabel(f"loss at the same total ({here[0].unit})")
        axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def caps(points: Sequence[CapPoint], path: str | Path) -> None:
    """Loss against mean charge: an arrow from the step-wise optimum to the far-sighted one."""
    names = list(dict.fromkeys(point.data for point in points))
    figure, panels = new_figure(3.1 * len(names), 3.4, columns=len(names))
    for axes, name in zip(panels if len(names) > 1 else [panels], names, strict=True):
        here = [point for point in points if point.data == name]
        for point in here:
            ends = ((point.step_charge, point.step_wise), (point.far_charge, point.far_sighted))
            style = {"arrowstyle": "->", "color": GREY}
            axes.annotate("", ends[1], ends[0], arrowprops=style)
            axes.text(point.far_charge, point.far_sighted, f" cap {point.cap:g}", fontsize=8)
        marks = (
            ("step-wise", ORANGE, [(point.step_charge, point.step_wise) for point in here]),
            ("far-sighted", BLUE, [(point.far_charge, point.far_sighted) for point in here]),
            ("far-sighted, nats priced", GREEN, _thrifty(here)),
        )
        for label, colour, places in marks:
            if places:
                axes.plot(*zip(*places, strict=True), "o", color=colour, label=label)
        axes.set_title(name, fontsize=9)
        axes.set_xlabel("mean charge of a step (nats)")
        axes.set_xlim(0, 1.3 * max(point.far_charge for point in here))
        axes.set_ylim(0, 1.2 * max(point.step_wise for point in here))
    first = panels[0] if len(names) > 1 else panels
    first.set_ylabel("loss per value")
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    save_figure(figure, path)


def _thrifty(points: Sequence[CapPoint]) -> list[tuple[float, float]]:
    return [
        (point.thrifty_charge, point.thrifty)
        for point in points
        if point.thrifty is not None and point.thrifty_charge is not None
    ]


def greedy(story: GreedyStory, path: str | Path) -> None:
    """One sticky bit: how often what leaves is wrong, moment by moment, and what it cost."""
    figure, panels = new_figure(9.6, 4.2, columns=2)
    colours = {"greedy": GREY, "far-sighted": GREEN, "bursts": BLUE}
    for way in story.ways:
        words = f"{way.name}: {way.loss:.3f} wrong"
        axes, colour = panels[0], colours[way.name]
        axes.plot(range(1, len(way.losses) + 1), way.losses, color=colour, linewidth=2, label=words)
        spent = [sum(way.charges[: moment + 1]) for moment in range(len(way.charges))]
        panels[1].step(
            range(1, len(spent) + 1), spent, where="mid", color=colour, linewidth=2, label=way.name
        )
    panels[0].set_ylabel("chance that the released bit is wrong")
    panels[0].set_ylim(0, 0.56)
    panels[1].set_ylabel("nats charged so far, on average")
    panels[1].axhline(story.total, color=DARK, linestyle=":", linewidth=1)
    panels[1].text(1, story.total, "the total", fontsize=10, va="bottom")
    panels[0].axhline(story.bound, color=DARK, linestyle=":", linewidth=1)
    words = f"dotted: no release within the total is below {story.bound:.3f} on average"
    panels[0].text(50, 0.012, words, fontsize=9, ha="right")
    for axes in panels:
        axes.set_xlabel("value")
        axes.tick_params(labelsize=10)
        axes.legend(frameon=False, fontsize=10, loc="best")
    save_figure(figure, path)
