"""Figures, drawn without a screen: one function a picture, data in, file out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_up
from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.store.files import whole

if TYPE_CHECKING:
    from sfumato.column.column_certificate import Spread
    from sfumato.record.disclosure import Curve, DisclosureReport
    from sfumato.series.series_compare import Comparison
    from sfumato.stream.batch_widths import WidthForecast
    from sfumato.stream.forecast import CurvePoint, PlanReport
    from sfumato.stream.price_frontier import Frontier
    from sfumato.temporal.loss_function import LossFunction
    from sfumato.temporal.over_time import TemporalLeakage

PICTURES = (".png", ".svg", ".pdf")
_NO_DATES = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
COLOURS = {
    "optimal": BLUE,
    "step-wise": BLUE,
    "calibrated": ORANGE,
    "calibrated, best guess": "#f0b48a",
    "randomized-response": GREY,
    "published": RED,
    "truth": DARK,
}
NAMES = {
    "step-wise": "Sfumato (step-wise)",
    "calibrated": "calibrated randomised response",
    "calibrated, best guess": "the same, then the best guess",
    "randomized-response": "randomised response",
}


def loss_curve(points: Sequence[CurvePoint], loss: str, path: str | Path) -> None:
    """Expected loss against the leakage allowed per step, for each method."""
    figure, axes = new_figure(6.4, 4.0)
    budgets = [point.epsilon for point in points]
    for method, name in NAMES.items():
        values = [point.losses[method] for point in points]
        axes.plot(budgets, values, marker="o", color=COLOURS[method], label=name)
    nothing = points[0].losses["say nothing"]
    axes.axhline(nothing, color="#bbbbbb", linestyle=":", label="say nothing")
    axes.set_xscale("log")
    axes.set_xticks(budgets, [shown_up(budget) for budget in budgets])
    axes.minorticks_off()
    axes.set_xlabel("leakage allowed per step (SIP, nats)")
    axes.set_ylabel(f"expected {loss} loss per value")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def frontier_curve(edge: Frontier, report: PlanReport, loss: str, path: str | Path) -> None:
    """Loss against what is leaked on average: far-sighted streams at several prices of a nat."""
    figure, axes = new_figure(6.4, 4.0)
    line = sorted(edge.points, key=lambda point: point.charge)
    charges, losses = [point.charge for point in line], [point.loss for point in line]
    axes.plot(charges, losses, marker="o", color=BLUE, label="far-sighted, by price of a nat")
    near = edge.step_wise
    axes.plot([near.charge], [near.loss], "s", color=DARK, label=NAMES["step-wise"])
    for row in report.methods:
        if row.method in ("calibrated", "randomized-response"):
            guessed = row.loss if row.remapped_loss is None else row.remapped_loss
            label = f"{NAMES[row.method]}, then the best guess"
            axes.plot([row.sip], [guessed], "^", color=COLOURS[row.method], label=label)
    axes.axhline(report.methods[-1].loss, color="#bbbbbb", linestyle=":", label="say nothing")
    axes.set_xlabel("mean leakage of a value (SIP, nats)")
    axes.set_ylabel(f"expected {loss} loss per value")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def loss_of_widths(rows: Sequence[WidthForecast], loss: str, path: str | Path) -> None:
    """Expected loss against the length of batches, with the time that a batch takes."""
    figure, panels = new_figure(9.6, 3.8, columns=2)
    widths = [row.width for row in rows]
    for axes, values, label in (
        (panels[0], [row.loss for row in rows], f"expected {loss} loss per value"),
        (panels[1], [1e3 * row.seconds for row in rows], "milliseconds per batch"),
    ):
        axes.plot(widths, values, marker="o", color=COLOURS["optimal"])
        axes.set_xticks(widths, [str(width) for width in widths])
        axes.set_xlabel("values that leave together")
        axes.set_ylabel(label)
    panels[0].set_ylim(bottom=0)
    panels[1].set_yscale("log")
    save_figure(figure, path)


def tracks(
    places: Sequence[str],
    truth: Sequence[str],
    released: Sequence[str | None],
    recovered: Sequence[str],
    path: str | Path,
) -> None:
    """Where a person was, what was told, and what a receiver makes of it, side by side."""
    figure, panels = new_figure(12.6, 3.8, columns=3)
    height = {place: number for number, place in enumerate(places)}
    hours = [step / 2 for step in range(len(truth))]
    for axes, track, name, colour in (
        (panels[0], truth, "where she was", COLOURS["truth"]),
        (panels[1], released, "what was released", COLOURS["optimal"]),
        (panels[2], recovered, "what the receiver infers from it", GREEN),
    ):
        known = [(hour, height[p]) for hour, p in zip(hours, track, strict=True) if p is not None]
        axes.step(*zip(*known, strict=True), where="post", color=colour, linewidth=1.4)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("hour")
        axes.set_yticks(range(len(places)), places, fontsize=8)
        axes.set_ylim(-0.5, len(places) - 0.5)
        axes.set_xticks(range(0, int(hours[-1]) + 7, 12))
    for axes in panels[1:]:
        axes.set_yticklabels([])
    save_figure(figure, path)


def counts_by_hour(places: Sequence[str], tables: Mapping[str, Floats], path: str | Path) -> None:
    """How many people were where at each hour of the day: a panel for each way to know it.

    Args:
        places: Names of the places.
        tables: What each panel is called, and its numbers: a row per hour, a column per place.
        path: The picture.
    """
    figure, panels = new_figure(12.6, 3.8, columns=len(tables))
    most = max(float(table.max()) for table in tables.values())
    image = None
    for axes, (name, table) in zip(panels, tables.items(), strict=True):
        image = axes.imshow(table.T, aspect="auto", origin="lower", cmap="Blues", vmin=0, vmax=most)
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("hour of the day")
        axes.set_xticks(range(0, len(table), 6))
        axes.set_yticks(range(len(places)), places, fontsize=8)
    for axes in panels[1:]:
        axes.set_yticklabels([])
    figure.colorbar(image, ax=panels, label="people", fraction=0.02)
    save_figure(figure, path)


def leakage_over_time(
    sip: Sequence[float], ldp: Sequence[float], budget: float, path: str | Path
) -> None:
    """What one stream has leaked so far, under both certificates, against its budget."""
    figure, axes = new_figure(6.4, 3.6)
    axes.plot(_sums(sip), color=COLOURS["optimal"], label="under the model (SIP)")
    axes.plot(_sums(ldp), color=COLOURS["calibrated"], label="whatever the model (LDP)")
    axes.axhline(budget, color=COLOURS["published"], linestyle="--", label="SIP budget")
    axes.set_xlabel("step")
    axes.set_ylabel("leakage so far (nats)")
    axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def published_leakage(claimed: float, true: Sequence[float], path: str | Path) -> None:
    """The claim of the published rule and what it really leaks at each step."""
    figure, axes = new_figure(6.4, 3.6)
    axes.plot(true, color=COLOURS["published"], label="true leakage of the published rule")
    axes.fill_between(range(len(true)), claimed, true, color=COLOURS["published"], alpha=0.15)
    axes.axhline(claimed, color=COLOURS["truth"], linestyle="--", label="what it claims")
    axes.set_xlabel("step")
    axes.set_ylabel("leakage of the step (SIP, nats)")
    axes.set_ylim(0, 1.25 * max(true))
    axes.legend(frameon=False, fontsize=8, loc="upper right")
    save_figure(figure, path)


_FEW_LABELS = 24


def prior_and_released(spread: Spread, column: str, path: str | Path) -> None:
    """What is known of a column, and what was told of it.

    Shares of symbols; of numbers the shares up to each point, since few points may be told.
    """
    figure, axes = new_figure(6.8, 3.8)
    curves = [
        ("prior", COLOURS["truth"], spread.prior),
        ("released", COLOURS["optimal"], spread.released),
    ]
    if isinstance(spread.places, tuple):
        places = range(len(spread.places))
        for shift, (name, colour, shares) in zip((-0.2, 0.2), curves, strict=True):
            axes.bar([place + shift for place in places], shares, 0.4, color=colour, label=name)
        if spread.expected is not None:
            where = [place + 0.2 for place in places]
            colour = COLOURS["calibrated"]
            axes.scatter(where, spread.expected, s=14, color=colour, label="released, expected")
        crowded = len(spread.places) > _FEW_LABELS
        axes.set_xticks(places, spread.places, rotation=90 if crowded else 0, fontsize=8)
        axes.set_ylabel("share of the values")
    else:
        for name, colour, shares in curves:
            axes.step(spread.places, _sums(shares), where="post", color=colour, label=name)
        axes.set_ylabel("share of the values up to here")
        axes.set_ylim(0, 1.02)
    axes.set_xlabel(column)
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def leakage_of_moments(
    told: TemporalLeakage, losses: Sequence[LossFunction], path: str | Path
) -> None:
    """What every release leaks of its moment, and how leakage carries over to the next one."""
    figure, panels = new_figure(9.6, 3.8, columns=2)
    times = range(1, len(told.epsilons) + 1)
    for name, values, colour, style in (
        ("by itself", told.epsilons, GREY, ":"),
        ("through the past (BPL)", told.backward, COLOURS["optimal"], "-"),
        ("through the future (FPL)", told.forward, COLOURS["calibrated"], "-"),
        ("through both (TPL)", told.total, COLOURS["published"], "-"),
    ):
        panels[0].plot(times, values, style, color=colour, label=name)
    panels[0].set_xlabel("release")
    panels[0].set_ylabel("leakage of its moment (nats)")
    most = 1.25 * float(told.total.max())
    levels = [most * step / 200 for step in range(201)]
    panels[1].plot(levels, levels, ":", color="#bbbbbb", label="all of it")
    for name, loss, colour in zip(
        ("backward", "forward"), losses, (COLOURS["optimal"], COLOURS["calibrated"]), strict=True
    ):
        panels[1].plot(levels, [loss(level) for level in levels], color=colour, label=name)
    panels[1].set_xlabel("leakage of a moment (nats)")
    panels[1].set_ylabel("of which told of the moment beside it")
    for axes, top in zip(panels, (1.4 * float(told.total.max()) or None, None), strict=True):
        axes.set_ylim(0, top)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    save_figure(figure, path)


_UNITS = {
    "user level": BLUE,
    "w-event level": ORANGE,
    "event level": GREY,
    "event level, whole value": "#d0d0d0",
}


def compared_methods(found: Comparison, series: Sequence[float], path: str | Path) -> None:
    """Errors of all methods beside silence, and one release of the best online at user level."""
    figure, panels = new_figure(11.0, 4.8, columns=2)
    ranked = [one for one in found.outcomes if one.unit in _UNITS][::-1]
    names = [one.method + ("*" if one.helped else "") for one in ranked]
    panels[0].barh(names, [one.rmse for one in ranked], color=[_UNITS[one.unit] for one in ranked])
    panels[0].set_xscale("log")
    panels[0].set_xlabel("root mean squared error")
    panels[0].axvline(found.silence, color=DARK, linestyle=":", label="a constant")
    for unit, colour in _UNITS.items():
        panels[0].barh(names[:1], [0] * len(names[:1]), color=colour, label=unit)
    panels[0].legend(frameon=False, fontsize=8, loc="upper right")
    panels[1].plot(series, color=COLOURS["truth"], linewidth=0.9, label="true series")
    users = [one for one in ranked if one.online and one.unit == "user level"] or ranked
    if users:
        best = min(users, key=lambda one: one.rmse)
        label = f"released ({best.method})"
        told = found.examples[best.method]
        panels[1].plot(told, color=COLOURS["optimal"], linewidth=1.1, label=label)
    panels[1].set_xlabel("moment")
    panels[1].legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def released_series(
    told: Sequence[float | None], name: str, error: float | None, path: str | Path
) -> None:
    """A released series, with the error that is expected of it; no true value."""
    figure, axes = new_figure(8.0, 3.6)
    values = [float("nan") if value is None else value for value in told]
    colour = COLOURS["optimal"]
    axes.plot(values, color=colour, linewidth=1.1, label=f"released {name}")
    if error is not None:
        ends = [[value + side * error for value in values] for side in (-1, 1)]
        axes.fill_between(range(len(values)), *ends, color=colour, alpha=0.2, linewidth=0)
    axes.set_xlabel("moment")
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def disclosure_curves(curves: Sequence[Curve], report: DisclosureReport, path: str | Path) -> None:
    """How often attackers find all columns, as the noise grows, for every shape of noise."""
    figure, axes = new_figure(6.8, 4.2)
    known = report.coupling != "none"
    sizes = [factor * report.sigma[0] for factor in curves[0].factors]
    colours = (BLUE, ORANGE, GREEN, GREY)
    for curve, colour in zip(curves, colours, strict=True):
        axes.plot(sizes, curve.deltas, "-o", color=colour, markersize=3.5, label=curve.noise)
        if known:
            axes.plot(sizes, curve.alone, ":", color=colour)
    if known:
        axes.plot([], [], ":", color=DARK, label="attacker knows nothing")
    if report.delta_before is not None:
        axes.axhline(report.delta_before, color="#bbbbbb", label="a guess, nothing published")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:.3g}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel(f"standard deviation of the noise on {report.columns[0]}")
    axes.set_ylabel("probability that all columns are found")
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def _sums(values: Iterable[float]) -> list[float]:
    total, sums = 0.0, []
    for value in values:
        total += value
        sums.append(total)
    return sums


def new_figure(width: float, height: float, columns: int = 1, rows: int = 1) -> tuple[Any, Any]:
    """A figure without a screen, and its panels side by side; a single one by itself."""
    try:
        import matplotlib.figure
    except ImportError:
        raise InvalidParameter("picture", None, "have matplotlib installed to be drawn") from None
    figure = matplotlib.figure.Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots(rows, columns)
    for one in getattr(axes, "flat", [axes]):
        one.spines[["top", "right"]].set_visible(False)
        one.tick_params(labelsize=8)
    return figure, axes


def save_figure(figure: Any, path: str | Path, dpi: int = 150) -> None:
    """Write a picture whole or not at all; the same picture is the same bytes."""
    import matplotlib

    ending = Path(path).suffix.lower()
    if ending not in PICTURES:
        raise InvalidParameter("picture", str(path), f"end in {', '.join(PICTURES)}")
    with whole(path) as aside, matplotlib.rc_context({"svg.hashsalt": "sfumato"}):
        figure.savefig(aside, dpi=dpi, metadata=_NO_DATES.get(ending))
