r"""Series that are pushed away from any mean: Figures 12 and 13 of RTR.

$$Z_t = \rho Z_{t-1} + U_t + \eta t, \qquad Z_0 = 0, \quad \rho = .8, \quad U_t \sim N(0, 10)$$
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.colours import BLUE, DARK, GREY, ORANGE, RED
from sfumato.plots.figures import new_figure, save_figure
from sfumato.series.filter_banks import learned
from sfumato.series.paper_rule import paper_weight
from sfumato.studies.rtr.method_curves import FEW, Method
from sfumato.studies.rtr.one_lag_rule import Rule, mean_squares
from sfumato.studies.rtr.point_table import curve, records, table, wins
from sfumato.studies.rtr.series_drawings import LOOKS, Panel, draw_curves
from sfumato.studies.rtr.series_errors import WEIGHTS
from sfumato.studies.rtr.series_points import Budget, Error, SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict_of

CORRELATION, INNOVATION = 0.8, 10.0
PUSHES = (0.0, 0.01, 0.02, 0.03, 0.04, 0.05)
EACH = (1e-3, 1e-2, 1e-1)
"""Epsilon of a value; the paper names the first."""
_LENGTH, _RUNS = 1000, 60
_DEVIATION = math.sqrt(INNOVATION / (1 - CORRELATION**2))
_MINOR, _MAJOR = 1.1, 1.5
"""Factors on the error that count as a minor impact, and as a significant gain."""


def drifting(push: float, length: int, runs: int, draw: np.random.Generator) -> Floats:
    """Series, time by run."""
    found, last = np.empty((length, runs)), np.zeros(runs)
    for time in range(length):
        shock = math.sqrt(INNOVATION) * draw.standard_normal(runs)
        last = CORRELATION * last + shock + push * (time + 1)
        found[time] = last
    return found


def mean_path(push: float, length: int) -> Floats:
    """Means at times 1 to `length`, exactly.

    Examples:
        >>> mean_path(0.05, 3).round(3)
        array([0.05 , 0.14 , 0.262])
    """
    times, rho = np.arange(1.0, length + 1), CORRELATION
    return np.asarray(push * (times / (1 - rho) - rho * (1 - rho**times) / (1 - rho) ** 2))


def prepare(setting: Setting) -> Work:
    """Errors against the push at three budgets, and paths."""
    length, runs = (200, FEW) if setting.quick else (_LENGTH, _RUNS)

    def run(show: Callable[[int], None]) -> Findings:
        steps, points = Steps(show), list[SeriesPoint]()
        paths: dict[float, Floats] = {}
        for place, push in enumerate(PUSHES):
            draw = np.random.default_rng([setting.seed, place])
            paths[push] = drifting(push, length, runs, draw)
            for each in EACH:
                points += drift_points(paths[push], push, each, draw)
            steps()
        heads, rows = table(points)
        return Findings(
            title="root mean squared error in parts of a constant's, by the push",
            columns=heads,
            rows=rows,
            records=records(points),
            facts=facts(points, length),
            pictures={"paths": partial(_draw_paths, paths), "errors": partial(_draw, points)},
            claims=[path_claim(paths), *drift_claims(points)],
            captions={
                "paths": "RTR 12: three paths for each push, and their mean (dashed)",
                "errors": "RTR 13: errors against the push; silence dotted",
            },
        )

    return Work(len(PUSHES), run)


def drift_points(
    series: Floats, push: float, each: float, draw: np.random.Generator
) -> list[SeriesPoint]:
    """All methods on drifting series at one budget."""
    length, runs = series.shape
    budget = Budget(each * length, length)
    normals = draw.standard_normal((length, runs))
    asked = _asked(series, budget)
    rule = Rule(np.append(WEIGHTS, [[asked]], axis=1))
    released = rule.released(series, rule.noise(budget.ratio, length), normals)
    squares = mean_squares(released, series)
    noise = np.full(length, budget.deviation**2)
    seen = series + budget.deviation * normals
    bank = learned().begin(runs).update(seen, np.ones(length), noise)
    told = {
        Method.GAUSSIAN: Error(budget.deviation),
        Method.PAPER: Error.of_runs(squares[-1]),
        Method.BEST: Error.of_runs(squares[squares.mean(axis=1).argmin()]),
        Method.BANK: Error.of_runs(np.square(bank - series).mean(axis=0)),
    }
    silence = math.sqrt(float(series.var(axis=0).mean()))
    return [
        SeriesPoint(
            "13",
            f"epsilon = {each:g} T",
            "drifting",
            method,
            push,
            error.root,
            error.spread,
            silence,
            error.root / (math.sqrt(length) * 3 * _DEVIATION),
            budget.epsilon,
            budget.delta,
        )
        for method, error in told.items()
    ]


def _asked(series: Floats, budget: Budget) -> float:
    """The weight of the paper's theorems, for the series as they are: the mean over runs."""
    noise = budget.deviation**2
    return float(np.mean([paper_weight(run, noise) for run in series.T]))


def path_claim(paths: dict[float, Floats]) -> Claim:
    """What the paper says of the mean and the variance of its paths."""
    push = max(paths)
    found, length = paths[push], paths[push].shape[0]
    exact = mean_path(push, length)
    sure = _DEVIATION / math.sqrt(found.shape[1])
    early = min(10, length) - 1
    line = push * (early + 1) / (1 - CORRELATION)
    means = found.mean(axis=1)
    straight = abs(means[early] - line) < 3 * sure and abs(exact[early] - line) < sure
    spread = float(found[-1].var(ddof=1))
    seen = (
        f"push {push:g}: mean {means[-1]:.1f} at the end (exactly {exact[-1]:.1f}, a line says "
        f"{push * length / (1 - CORRELATION):.1f}); {means[early]:.2f} at time {early + 1} "
        f"(exactly {exact[early]:.2f}, a line {line:.2f}); variance at the end {spread:.1f}"
    )
    near = abs(spread / _DEVIATION**2 - 1) < 4 * math.sqrt(2 / found.shape[1])
    claimed = "every value is normal with a mean on a line through 0 and variance 27.8"
    return Claim(
        "RTR 12",
        claimed,
        seen,
        verdict_of([bool(straight), near]),
        "erratum N19: the mean approaches a line from below, and lags behind it",
    )


def drift_claims(points: list[SeriesPoint]) -> list[Claim]:
    """What the paper says of Figure 13."""
    ahead, gains, impacts = list[bool](), list[float](), dict[float, float]()
    for each in EACH:
        panel = f"epsilon = {each:g} T"
        rule, noise = (curve(points, name, panel) for name in (Method.BEST, Method.GAUSSIAN))
        ahead += wins(rule, noise)
        gains += [other.error / one.error for one, other in zip(rule, noise, strict=True)]
        impacts[each] = rule[-1].error / rule[0].error
    told = ", ".join(f"{impact:.2f} at {each:g} T" for each, impact in impacts.items())
    strict, others = impacts[EACH[0]], [impacts[each] for each in EACH[1:]]
    return [
        Claim(
            "RTR 13",
            "the rule errs significantly less than independent noise, whatever the push",
            f"below it at {sum(ahead)} of {len(ahead)}; noise errs {min(gains):.2f} to "
            f"{max(gains):.1f} times as much",
            verdict_of([all(ahead), min(gains) > _MAJOR]),
            "" if min(gains) > _MAJOR else "where noise is small there is little to gain",
        ),
        Claim(
            "RTR 13",
            "the push has a minor impact, more where privacy is strict (epsilon = .001 T)",
            f"from no push to the largest the error of the rule grows by a factor of {told}",
            verdict_of([strict > max(others), *(factor < _MINOR for factor in others)]),
            "" if max(others) < _MINOR else "its weight must rise with the push, and noise with it",
        ),
    ]


def facts(points: list[SeriesPoint], length: int) -> list[str]:
    """What follows from the numbers."""
    said = []
    for each in EACH:
        panel = f"epsilon = {each:g} T"
        ends = {
            name: curve(points, name, panel)[-1]
            for name in (Method.PAPER, Method.BEST, Method.BANK, Method.GAUSSIAN)
        }
        told = ", ".join(f"{name} {point.error:.3g}" for name, point in ends.items())
        silence = ends[Method.BANK].silence
        said.append(
            f"epsilon = {each * length:g}, largest push: {told}; silence {silence:.3g}, noise of "
            f"Theorem 5.1 would claim {Budget(each * length, length).paper_epsilon:.3g}"
        )
    return said


def _draw(points: list[SeriesPoint], path: Path) -> None:
    panels = [
        Panel(f"{name} (over {_LENGTH} values)", own, "push eta", logarithmic=False, absolute=True)
        for name in dict.fromkeys(p.panel for p in points)
        if (own := [p for p in points if p.panel == name])
    ]
    names = (Method.GAUSSIAN, Method.PAPER, Method.BEST, Method.BANK)
    draw_curves(panels, {name: LOOKS[name] for name in names}, path)


def _draw_paths(paths: dict[float, Floats], path: Path) -> None:
    figure, axes = new_figure(6.4, 3.8)
    for colour, (push, found) in zip(
        (GREY, DARK, BLUE, ORANGE, RED, "#7b5aa6"), paths.items(), strict=False
    ):
        axes.plot(found[:, :3], color=colour, linewidth=0.6, alpha=0.6)
        axes.plot(mean_path(push, len(found)), "--", color=colour, label=f"push {push:g}")
    axes.set_xlabel("time")
    axes.set_ylabel("value")
    axes.legend(frameon=False, fontsize=8)
    save_figure(figure, path)
