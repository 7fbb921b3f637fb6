"""The experiments of the papers by name: what is computed, what is printed, what is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from sfumato.core.printed import shown_up

if TYPE_CHECKING:
    from pathlib import Path

    from sfumato.plots.points import BatchPoint, Point
    from sfumato.studies.sip_batches import Comparison

    Curves = dict[tuple[str, str], list[Point]]


@dataclass(frozen=True, slots=True)
class Findings:
    """What a study found.

    Attributes:
        title: Above the table.
        columns: Heads of the table.
        rows: The table that is printed.
        records: All numbers, one flat record each, for the CSV and JSON files.
        facts: Sentences that say what follows from them.
        pictures: What follows the name of the study in the name of a picture, and how it is drawn.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    records: list[dict[str, Any]]
    facts: list[str]
    pictures: dict[str, Callable[[Path], None]]


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment: how many steps it takes, and how to run it."""

    steps: int
    run: Callable[[Callable[[int], None]], Findings]


def sip_figure_5(epsilons: tuple[float, ...] | None = None, branches: int | None = None) -> Study:
    """Figure 5 of SIP.

    Args:
        epsilons: Budgets per value; those of the study if not given.
        branches: Most beliefs followed at once; as many as the study does if not given.
    """
    from sfumato.plots.figures import batch_losses
    from sfumato.studies import sip_batches

    budgets = epsilons or sip_batches.EPSILONS

    def run(show: Callable[[int], None]) -> Findings:
        points = sip_batches.batch_points(
            epsilons=budgets, branches=branches or sip_batches.BRANCHES, progress=show
        )
        done = len(points)
        points += sip_batches.sighted_points(
            epsilons=budgets,
            branches=branches or sip_batches.BRANCHES,
            progress=lambda more: show(done + more),
        )
        compared = [
            pair
            for setting in sip_batches.SETTINGS
            for epsilon in budgets
            for pair in sip_batches.compare_widths(setting, epsilon)
        ]
        kink = sip_batches.compare_widths(
            sip_batches.SETTINGS[0], sip_batches.KINK, (5, 6), horizon=30
        )
        return Findings(
            title="expected share of wrong bits; (true leakage per value where it is over epsilon)",
            columns=["curve", *(f"{epsilon:g}" for epsilon in budgets)],
            rows=_rows(points),
            records=[asdict(point) for point in points],
            facts=_facts(points, compared, kink[0]),
            pictures={"": partial(batch_losses, points)},
        )

    curves = len(sip_batches.CURVES) + 1
    return Study(len(sip_batches.SETTINGS) * len(budgets) * curves, run)


_LIP_FIGURES = 8


def lip_figures() -> Study:
    """Figures 2 and 4 to 10 of LIP."""
    from sfumato.studies import (
        lip_discrete,
        lip_discrete_drawings,
        lip_numbers,
        lip_numbers_drawings,
    )

    def run(show: Callable[[int], None]) -> Findings:
        discrete: list[Point] = []
        numbers: list[Point] = []
        figures: list[tuple[list[Point], Callable[[], list[Point]]]] = [
            (discrete, lip_discrete.figure_2),
            (discrete, lip_discrete.figure_4),
            (discrete, lip_discrete.figure_5),
            (discrete, lip_discrete.figure_6),
            (numbers, lip_numbers.figure_7),
            (numbers, lip_numbers.figure_8),
            (numbers, lip_numbers.figure_9),
            (numbers, lip_numbers.figure_10),
        ]
        for done, (points, figure) in enumerate(figures, start=1):
            points.extend(figure())
            show(done)
        pictures = {
            "": partial(lip_discrete_drawings.draw, discrete),
            "-numbers": partial(lip_numbers_drawings.draw, numbers),
        }
        points = [*discrete, *numbers]
        return _curve_findings(points, _lip_facts(_curves(points)), pictures)

    return Study(_LIP_FIGURES, run)


def mddp_figures(data: str | None = None) -> Study:
    """Figure 2 of MDDP.

    Args:
        data: The table of cardiovascular disease; made-up people if not given.
    """
    from sfumato.studies import mddp, mddp_drawings, mddp_people

    people = mddp_people.simulated_people() if data is None else mddp_people.read_people(data)
    tied, joint = len(mddp.TIED_ACCURACIES), len(mddp.JOINT_ACCURACIES)

    def run(show: Callable[[int], None]) -> Findings:
        points = mddp.tied_points(people, progress=show)
        points += mddp.joint_points(people, progress=lambda done: show(tied + done))
        said = mddp.facts(people, points)
        show(tied + joint + 1)
        pictures = {"": partial(mddp_drawings.draw, points, people.units)}
        by_figure = sorted(points, key=lambda point: point.figure)
        return _curve_findings(points, said, pictures, shown=by_figure)

    return Study(tied + joint + 1, run)


def _curves(points: Iterable[Point]) -> Curves:
    curves: Curves = {}
    for point in points:
        curves.setdefault((point.figure, point.curve), []).append(point)
    return curves


def _curve_findings(
    points: list[Point],
    facts: list[str],
    pictures: Mapping[str, Callable[[Path], None]],
    shown: Iterable[Point] | None = None,
) -> Findings:
    """Ends of every curve, in the order of the points, or of those that are shown."""
    rows = []
    for (figure, curve), line in _curves(shown or points).items():
        ends = [shown_up(number, 4) for end in (line[0], line[-1]) for number in (end.x, end.y)]
        rows.append([f"{figure} {curve}", *ends])
    return Findings(
        title="ends of every curve",
        columns=["figure and curve", "first x", "y", "last x", "y"],
        rows=rows,
        records=[asdict(point) for point in points],
        facts=facts,
        pictures=dict(pictures),
    )


def _lip_facts(curves: Curves) -> list[str]:
    def near(figure: str, curve: str, x: float) -> Point:
        return min(curves[figure, curve], key=lambda point: abs(point.x - x))

    last = curves["6a", "Eq. 19, median"][-1]
    bound = curves["6a", "η + ε"][-1]
    cut = near("9b", "Cor. 10, prior cut", 1.0)
    errors = {
        name: near("9c", name, 3.0)
        for name in ("optimal, δ = 0", "own scales", "one scale", "say nothing")
    }
    told = ", ".join(f"{name} {point.y:.3g}" for name, point in errors.items())
    worse = [
        point.x
        for point in curves["7a", "Unif(0, 1), Prop. 2"]
        if point.y > near("7a", "Unif(0, 1), say nothing", point.x).y
    ]
    laplace = [near("10b", name, 1.0) for name in ("Eq. 25, first branch", "own scales", "optimal")]
    return [
        f"6a: the rule of Eq. 19 leaks {shown_up(last.y, 4)} where {shown_up(bound.y, 4)} is "
        f"promised ({last.x:,.0f} samples)",
        f"7a: sampling is worse than telling one constant up to epsilon {max(worse):.2f} "
        "(uniform values)",
        f"9b: the scales of Cor. 10 claim delta 1e-4; at epsilon {cut.x:g} it is "
        f"{shown_up(cut.y, 3)}",
        f"9c: mean error at epsilon {errors['one scale'].x:g}: {told}",
        f"10b: mean error at epsilon {laplace[0].x:g}: Eq. 25 {laplace[0].y:.3f}, own scales "
        f"{laplace[1].y:.3f}, optimal {laplace[2].y:.3f}",
    ]


def _stream_totals(folder: str | None = None, *, quick: bool = False) -> Study:
    from sfumato.studies.stream_findings import stream_totals

    return stream_totals(folder, quick=quick)


def _stream_caps(folder: str | None = None, *, quick: bool = False) -> Study:
    from sfumato.studies.stream_findings import stream_caps

    return stream_caps(folder, quick=quick)


def _greedy_release() -> Study:
    from sfumato.studies.stream_findings import greedy_release

    return greedy_release()


STUDIES: dict[str, Callable[[], Study]] = {
    "sip-figure-5": sip_figure_5,
    "lip-figures": lip_figures,
    "mddp-figures": mddp_figures,
    "stream-totals": _stream_totals,
    "stream-caps": _stream_caps,
    "greedy-release": _greedy_release,
}
"""Every study by name; what it imports waits until it is asked for."""

FROM_DATA: dict[str, Callable[[str], Study]] = {
    "mddp-figures": mddp_figures,
    "stream-totals": _stream_totals,
    "stream-caps": _stream_caps,
}
"""Those that can read real data: a table of people, or a folder of sequences."""

QUICK: dict[str, Callable[..., Study]] = {
    "stream-totals": _stream_totals,
    "stream-caps": _stream_caps,
}
"""Those that can be had with fewer streams."""


_SEEN = 1e-3
"""Differences of losses that thinning cannot make."""


def _rows(points: list[BatchPoint]) -> list[list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for point in points:
        over = f" ({shown_up(point.leakage, 3)})" if point.leakage > point.epsilon else ""
        cells = rows.setdefault((point.setting, point.curve), [])
        cells.append(f"{point.loss:.4g}{over}")
        if point.curve == "calibrated":
            guess = rows.setdefault((point.setting, "calibrated, best guess"), [])
            guess.append(f"{point.guessed_loss:.4g}")
    return [[f"({setting}) {curve}", *cells] for (setting, curve), cells in rows.items()]


def _facts(points: list[BatchPoint], compared: list[Comparison], kink: Comparison) -> list[str]:
    from sfumato.studies.sip_batches import CERTIFIED

    kept = all(p.leakage <= p.epsilon for p in points if p.curve in CERTIFIED)
    worst = max(
        (p for p in points if p.curve == "published"),
        key=lambda point: point.leakage / point.epsilon,
    )
    dearer = [pair for pair in compared if pair.dearer]
    guessed = {(p.setting, p.epsilon): p.guessed_loss for p in points if p.curve == "calibrated"}
    beaten = [
        f"({p.setting}) {p.epsilon:g}"
        for p in points
        if p.curve == "instantaneous" and guessed[p.setting, p.epsilon] < p.loss - _SEEN
    ]
    return [
        f"certified curves leak at most epsilon per value: {'yes' if kept else 'NO'}",
        f"the published rule claims {worst.epsilon:g} and leaks up to {shown_up(worst.leakage, 4)} "
        f"in setting ({worst.setting})",
        f"exactly, over 6 values: wider batches (1, 2, 3, 6) lose more in {len(dearer)} of "
        f"{len(compared)} comparisons",
        f"yet width is no promise: at epsilon {kink.epsilon:.4f} on independent bits, "
        f"batches of {kink.narrow} lose {kink.narrow_loss:.5f}, batches of {kink.wide} lose "
        f"{kink.wide_loss:.5f}",
        "calibrated randomised response and a best guess lose less than the step-by-step optimum "
        f"at: {', '.join(beaten) or 'no budget'}",
        *_sighted_facts(points),
    ]


def _sighted_facts(points: list[BatchPoint]) -> list[str]:
    """What foresight saves, and how far it is from the bound."""
    losses = {(p.curve, p.setting, p.epsilon): p.loss for p in points}
    saved = {
        (setting, epsilon): 1 - loss / losses["instantaneous", setting, epsilon]
        for (curve, setting, epsilon), loss in losses.items()
        if curve == "far-sighted"
    }
    (setting, epsilon), most = max(saved.items(), key=lambda item: item[1])
    loss, bound = (losses[curve, setting, epsilon] for curve in ("far-sighted", "bound"))
    return [
        f"far-sighted steps lose up to {most:.1%} less than step-by-step ones, at ({setting}) "
        f"{epsilon:g}: {loss:.4f}, where nothing value by value is below {bound:.4f}"
    ]
