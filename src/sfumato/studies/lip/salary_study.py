"""The study of salaries: LIP Figure 12 with verdicts and a picture."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.models.mixture import GaussianMixture
from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.panels import Lines, draw_panels, finish, plot
from sfumato.plots.points import MeasuredPoint, Point
from sfumato.studies.data.people_data import Salaries, salaries
from sfumato.studies.lip.salary_release import (
    ALL,
    BEST,
    CERTIFIED,
    CERTIFIED_SAMPLING,
    COMPONENTS,
    COROLLARY,
    GAUSSIAN_LDP,
    GUESSED,
    HIGHEST,
    ONE_SCALE,
    OPTIMAL,
    OTHER_FIT,
    OWN_SCALES,
    QUANTILES,
    SAMPLING,
    SILENCE,
    Outcome,
    Town,
    outcomes,
)
from sfumato.studies.standard_error import standard_error
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict_of

_SLIGHT = 0.05
"""Part by which errors may differ for an influence to be slight."""
_BINS = 50
_SCALES = (ONE_SCALE, OWN_SCALES)
_STYLES = {
    SAMPLING: ("-", GREEN),
    CERTIFIED_SAMPLING: ("--", GREEN),
    GAUSSIAN_LDP: ("-", GREY),
    ONE_SCALE: ("-", ORANGE),
    OWN_SCALES: ("-", BLUE),
    COROLLARY: (":", BLUE),
    f"{ONE_SCALE}{GUESSED}": ("--", ORANGE),
    f"{OWN_SCALES}{GUESSED}": ("--", BLUE),
    OPTIMAL: ("-", RED),
    QUANTILES: ("--", RED),
}


@dataclass(frozen=True, slots=True)
class SalaryPoint:
    """One mechanism at one budget, the mean over halves of the people.

    Attributes:
        mechanism: Its name.
        epsilon: The budget.
        delta: Probability with which it may be more.
        interval: That of all salaries, or the one that was best for this mechanism in hindsight.
        error: Mean absolute error in dollars, of people whom the prior was not fitted to.
        spread: Standard error of that, from half to half.
        true_delta: The largest delta of its channels at epsilon under the prior.
        held_out_epsilon: The largest leakage at delta under the distribution of those who release.
    """

    mechanism: str
    epsilon: float
    delta: float
    interval: str
    error: float
    spread: float
    true_delta: float
    held_out_epsilon: float


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is computed.

    Attributes:
        epsilons: The budgets.
        deltas: Their deltas.
        highs: Ends of the intervals that are tried; that of all salaries is one of them.
        halves: How often half of the people are drawn anew.
    """

    epsilons: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    deltas: tuple[float, ...] = (1e-4, 1e-3, 1e-2)
    highs: tuple[float, ...] = (100_000.0, HIGHEST)
    halves: int = 3


QUICK = Effort((1.0, 4.0), (1e-4, 1e-2), (100_000.0, HIGHEST), 2)


def prepare(setting: Setting) -> Work:
    """Gross salaries; made-up ones without real data."""
    effort, read = QUICK if setting.quick else Effort(), salaries(setting)
    steps = effort.halves * len(effort.epsilons) * len(effort.deltas)
    return Work(steps, partial(_run, read, effort, setting.seed))


def salary_points(
    gross: Floats, effort: Effort, seed: int, progress: Callable[[int], None] | None = None
) -> list[SalaryPoint]:
    """All curves of Figure 12, and those beside them.

    References:
        [LIP, Fig. 12]
    """
    found: dict[tuple[str, float, float, str], list[Outcome]] = {}
    towns = [Town.halved(gross, seed + half) for half in range(effort.halves)]
    work = itertools.product(towns, effort.deltas, effort.epsilons)
    for done, (town, delta, epsilon) in enumerate(work, 1):
        for name, interval, one in outcomes(town, epsilon, delta, effort.highs):
            found.setdefault((name, epsilon, delta, interval), []).append(one)
        if progress:
            progress(done)
    return [
        SalaryPoint(
            name,
            epsilon,
            delta,
            interval,
            float(np.mean([one.error for one in ones])),
            standard_error([one.error for one in ones]),
            max(one.delta for one in ones),
            max(one.told for one in ones),
        )
        for (name, epsilon, delta, interval), ones in found.items()
    ]


def _run(read: Salaries, effort: Effort, seed: int, show: Callable[[int], None]) -> Findings:
    points = salary_points(read.gross, effort, seed, show)
    table = {(p.mechanism, p.delta, p.epsilon): p for p in points if p.interval == ALL}
    names = dict.fromkeys(p.mechanism for p in points)
    return Findings(
        title="mean absolute error in thousand dollars by epsilon, interval of all salaries; in "
        "brackets: true delta where it is over the one that is claimed",
        columns=["delta, mechanism", *(f"{epsilon:g}" for epsilon in effort.epsilons)],
        rows=[
            [f"{delta:g} {name}", *(_cell(table[name, delta, e]) for e in effort.epsilons)]
            for delta in effort.deltas
            for name in names
        ],
        records=[asdict(point) for point in points],
        facts=salary_facts(points),
        pictures={
            "errors": partial(draw, [p for p in points if p.interval == ALL], read.gross),
            "best-interval": partial(draw, [p for p in points if p.interval == BEST], read.gross),
        },
        claims=salary_claims(points),
        stand_ins=["salaries"] if read.stand_in else [],
        captions={
            "errors": "Fits of the prior, and errors of people who were not fitted to",
            "best-interval": "The same, every mechanism on the interval that is best for it",
        },
    )


def _cell(point: SalaryPoint) -> str:
    over = f" ({point.true_delta:.2g})" if point.true_delta > point.delta else ""
    return f"{point.error / 1000:.1f}{over}"


Found = dict[tuple[str, float, float, str], SalaryPoint]
"""Points by mechanism, epsilon, delta and interval."""


def salary_claims(points: Sequence[SalaryPoint]) -> list[Claim]:
    """What the paper says of Figure 12, and what the other half of the people say."""
    found: Found = {(p.mechanism, p.epsilon, p.delta, p.interval): p for p in points}
    budgets = list(dict.fromkeys((p.epsilon, p.delta) for p in points))
    fits = [
        abs(found[OTHER_FIT, e, d, ALL].error / found[SAMPLING, e, d, ALL].error - 1)
        for e, d in budgets
    ]
    extra = max(found[OTHER_FIT, e, d, ALL].true_delta / d for e, d in budgets)
    own = won(found, OWN_SCALES, GAUSSIAN_LDP)
    free, sampled = won(found, GAUSSIAN_LDP, ONE_SCALE), won(found, GAUSSIAN_LDP, SAMPLING)
    return [
        _small_delta(found, min(delta for _, delta in budgets)),
        Claim(
            "LIP 12",
            "another fit of the density hardly changes the error of sampling, but what leaks",
            f"errors differ by at most {max(fits):.1%} between one normal and {COMPONENTS}; the "
            f"delta of the former is up to {extra:.0f} times the one that is claimed",
            verdict_of([max(fits) < _SLIGHT, extra > 1]),
        ),
        Claim(
            "LIP 12",
            "Gaussian noise for LDP errs more than noise with own scales",
            f"in {sum(own)} of {len(own)} cases",
            verdict_of(own),
        ),
        Claim(
            "LIP 12",
            "Gaussian noise for LDP errs less than one scale for LIP, and than sampling",
            f"in {sum(free)} and {sum(sampled)} of {len(own)} cases",
            verdict_of(free + sampled),
            ""
            if all(free + sampled)
            else "what keeps a budget whatever the prior keeps it under this one: the least scale "
            "for LIP is never larger (erratum N44)",
        ),
        _published(points),
    ]


def won(
    found: Found, first: str, second: str, delta: float | None = None, interval: str | None = None
) -> list[bool]:
    """Whether the first errs less, at every budget and interval, or at those that are asked for."""
    return [
        point.error < found[second, e, d, where].error
        for (name, e, d, where), point in found.items()
        if name == first and delta in (None, d) and interval in (None, where)
    ]


def _small_delta(found: Found, delta: float) -> Claim:
    told, every = [], []
    for interval in (ALL, BEST):
        parts = {name: won(found, name, SAMPLING, delta, interval) for name in _SCALES}
        every += [one for held in parts.values() for one in held]
        counted = ", ".join(f"{name} {sum(h)} of {len(h)}" for name, h in parts.items())
        told.append(f"interval {interval}: {counted}")
    epsilon = min(e for _, e, d, _ in found if d == delta)
    example = ", ".join(
        f"{name} {found[name, epsilon, delta, ALL].error / 1000:.1f} "
        f"({found[name, epsilon, delta, BEST].error / 1000:.1f})"
        for name in (SAMPLING, *_SCALES, SILENCE, OPTIMAL)
    )
    return Claim(
        "LIP 12",
        "for a small delta Gaussian noise has less error than sampling",
        f"less at delta {delta:g}, {'; '.join(told)}. Epsilon {epsilon:g}, thousand dollars (best "
        f"interval): {example}",
        verdict_of(every),
        ""
        if all(every)
        else "noise must hide the rarest salary of the interval, while a draw from the prior errs "
        "by the mean difference of two salaries whatever epsilon (erratum N44)",
    )


def _published(points: Sequence[SalaryPoint]) -> Claim:
    worst = {
        name: max(
            (p for p in points if (p.mechanism, p.interval) == (name, ALL)),
            key=lambda p: p.true_delta / p.delta,
        )
        for name in (COROLLARY, SAMPLING)
    }
    kept = [point.true_delta <= point.delta for point in worst.values()]
    told = "; ".join(
        f"{name}: {p.true_delta:.2g} for {p.delta:g} (epsilon {p.epsilon:g})"
        for name, p in worst.items()
    )
    return Claim(
        "LIP 12",
        "the published mechanisms keep the delta that they are drawn for",
        told,
        verdict_of(kept),
        "" if all(kept) else "errata 26, N1 and N14",
    )


def salary_facts(points: Sequence[SalaryPoint]) -> list[str]:
    """Against silence, and whether promises are kept."""
    silent = {(p.epsilon, p.delta): p.error for p in points if p.mechanism == SILENCE}
    paper = (SAMPLING, GAUSSIAN_LDP, *_SCALES, COROLLARY)
    worse = {
        interval: [
            p.error > silent[p.epsilon, p.delta]
            for p in points
            if p.mechanism in paper and p.interval == interval
        ]
        for interval in (ALL, BEST)
    }
    told = ", ".join(f"{sum(w)} of {len(w)} (interval {name})" for name, w in worse.items())
    certified = [p for p in points if p.mechanism in CERTIFIED]
    over = [p for p in certified if p.true_delta > p.delta]
    misfit = max(certified, key=lambda p: p.held_out_epsilon / p.epsilon)
    return [
        f"the paper's mechanisms err more than one constant for all in {told} cases",
        f"certified mechanisms over their delta under the prior: {len(over)} of {len(certified)}",
        "a prior that does not fit: under the distribution of the people who release they leak up "
        f"to {misfit.held_out_epsilon:.2f} at epsilon {misfit.epsilon:g} ({misfit.mechanism})",
    ]


def draw(points: Sequence[SalaryPoint], gross: Floats, path: str | Path) -> None:
    """The prior (a), and errors against epsilon for each delta.

    References:
        [LIP, Fig. 12]
    """
    deltas = list(dict.fromkeys(point.delta for point in points))
    lines: list[Point] = [
        MeasuredPoint(f"{p.delta:g}", p.mechanism, p.epsilon, p.error / 1000, p.spread / 1000)
        for p in points
    ]
    names = ["prior", *(f"{delta:g}" for delta in deltas)]
    rows = [names[:2], names[2:]] if len(names) == 4 else [names]
    size = (13, 10) if len(rows) == 2 else (17, 5)
    draw_panels(lines, rows, size, partial(_painted, gross), path)


def _painted(gross: Floats, axes: Any, name: str, lines: Lines) -> None:
    if name == "prior":
        within = gross[gross <= HIGHEST] / 1000
        axes.hist(within, _BINS, density=True, color=GREY, alpha=0.5, label="salaries")
        grid = np.linspace(0, HIGHEST, 400)
        for count, colour in ((1, DARK), (COMPONENTS, BLUE)):
            fitted = GaussianMixture.fit(gross, components=count)
            words = "one normal" if count == 1 else f"mixture of {count}"
            axes.plot(grid / 1000, 1000 * fitted.density(grid), color=colour, label=words)
        axes.set_xlabel("gross salary (thousand dollars)")
        finish(axes, "12a: the prior and its fits", "density")
        return
    for curve, (style, colour) in _STYLES.items():
        plot(axes, lines, curve, style, colour, curve)
    axes.axhline(lines[SILENCE][0].y, color=DARK, linewidth=4, alpha=0.4, label=SILENCE)
    axes.set_xlabel("epsilon (nats)")
    axes.set_ylim(0, 1.6 * max(point.y for point in lines[GAUSSIAN_LDP]))
    title = f"12: δ = {float(name):g}"
    finish(axes, title, "mean error (thousand dollars)", place="upper right", columns=2)
