r"""How the weight of the published rule is chosen: Figures 9 to 11 of RTR, and Section 7.

Series of first order with variance 1 and several correlations, at strict and at lax privacy; known
and learnt parameters; weights that fall by one factor; and the non-linear calibration
$w z + (1 - w)\sqrt{z \hat z}$, whose noise the paper leaves open.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.noise.curves import gaussian_epsilon
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filter_banks import learned
from sfumato.series.filters import kalman
from sfumato.studies.data.series_data import HOURS, daily_rentals, hourly_traffic
from sfumato.studies.rtr import weight_claims, weight_drawings
from sfumato.studies.rtr.method_curves import FEW, Task
from sfumato.studies.rtr.nonlinear_rule import calibrated_releases
from sfumato.studies.rtr.one_lag_rule import Known, Rule, mean_squares
from sfumato.studies.rtr.point_table import records, table
from sfumato.studies.rtr.series_errors import WEIGHTS, rule_errors
from sfumato.studies.rtr.series_points import DELTA, Budget, Error, SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.rtr.weight_claims import (
    BANK,
    CONSTANT,
    HONEST,
    KALMAN,
    KNOWN,
    LEARNT,
    LINEAR,
    NOISE,
    RHOS,
    THEOREM,
    UNSAFE,
    Privacy,
)
from sfumato.studies.study import Findings, Setting, Work

_LENGTH, _RUNS = 1000, 40
_STRICT, _LAX = 4.0, 0.3
"""Deviations of independent noise; that of the series is 1."""
_SENSITIVITY = 0.02
"""The most that a person changes a value of such a series."""
_GEOMETRIC = (0.97, 0.975, 0.98, 0.985, 0.99, 0.9925, 0.995, 0.9975, 0.999, 0.9995, 1.0)
_GEOMETRIC_NOISE = (2.0, 0.5, 0.1)
_COMBINED = (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0)
_COMBINED_NOISE = 0.5


def first_order(rho: float, length: int, runs: int, draw: np.random.Generator) -> Floats:
    """Series of mean 0 and variance 1, time by run."""
    found, last = np.empty((length, runs)), draw.standard_normal(runs)
    for time in range(length):
        found[time] = last
        last = rho * last + math.sqrt(1 - rho * rho) * draw.standard_normal(runs)
    return found


def prepare(setting: Setting) -> Work:
    """Errors against the weight, the factor of falling weights, and the kind of calibration."""
    length, runs = (250, FEW) if setting.quick else (_LENGTH, _RUNS)
    traffic, bikes = hourly_traffic(setting), daily_rentals(setting)
    hours = traffic.values[: 10 * HOURS] if setting.quick else traffic.values

    def run(show: Callable[[int], None]) -> Findings:
        steps, points = Steps(show), list[SeriesPoint]()
        for rho in RHOS:
            draw = np.random.default_rng([setting.seed, round(100 * rho)])
            points += correlation_points(rho, length, runs, draw)
            steps()
        draw = np.random.default_rng([setting.seed, 11])
        task = Task("11", traffic.name, hours, HOURS)
        for ratio in _GEOMETRIC_NOISE:
            points += geometric_points(task, ratio, runs, draw)
            steps()
        points += combined_points(Task("Sec. 7", bikes.name, bikes.values, 7), runs, draw)
        steps()
        heads, rows = table([p for p in points if p.figure == "11"])
        return Findings(
            title="falling weights: errors in parts of a constant's, by the factor",
            columns=heads,
            rows=rows,
            records=records(points),
            facts=weight_claims.facts(points),
            pictures={
                "weights": partial(weight_drawings.draw_weights, points),
                "falling": partial(weight_drawings.draw_falling, points),
                "calibration": partial(weight_drawings.draw_calibration, points),
            },
            claims=weight_claims.claims(points),
            stand_ins=[data.name for data in (traffic, bikes) if data.stand_in],
            captions={
                "weights": "RTR 9 (above) and RTR 10 (below): series of first order, variance 1",
                "falling": "RTR 11: squared weights that fall by one factor, on traffic",
                "calibration": "RTR Sec. 7: the non-linear calibration, on bikes by day",
            },
        )

    return Work(len(RHOS) + len(_GEOMETRIC_NOISE) + 1, run)


def _points(
    figure: str,
    panel: str,
    series: str,
    told: Sequence[tuple[str, float, Error]],
    budget: Budget,
) -> list[SeriesPoint]:
    """Points of series of variance 1; the paper's largest value is three deviations here."""
    length = math.sqrt(budget.length)
    return [
        SeriesPoint(
            figure, panel, series, method, x, error.root, error.spread, 1.0,
            error.root / (3 * length), budget.epsilon, budget.delta,
        )
        for method, x, error in told
    ]  # fmt: skip


def correlation_points(
    rho: float, length: int, runs: int, draw: np.random.Generator
) -> list[SeriesPoint]:
    """Figures 9 and 10 for one correlation: every weight, learnt and known parameters."""
    series, normals = first_order(rho, length, runs, draw), draw.standard_normal((length, runs))
    points, name = list[SeriesPoint](), f"correlation {rho:g}"
    for privacy, deviation in ((Privacy.STRICT, _STRICT), (Privacy.LAX, _LAX)):
        budget = Budget.with_noise(deviation, length, _SENSITIVITY)
        told: dict[str, list[tuple[str, float, Error]]] = {}
        for kind, rule in (
            (LEARNT, Rule(WEIGHTS)),
            (KNOWN, Rule(WEIGHTS, known=Known(0.0, 1.0, rho))),
        ):
            noise = rule.noise(budget.ratio, length, _SENSITIVITY)
            released = rule.released(series, noise, normals)
            squares = mean_squares(released, series)
            told[kind] = [
                (kind, weight, Error.of_runs(own))
                for weight, own in zip(WEIGHTS[0].tolist(), squares, strict=True)
            ]
        points += _points("9", privacy, name, told[LEARNT], budget)
        level = _level_errors(rho, series, deviation * normals, deviation**2)
        ends = (float(WEIGHTS[0, 0]), 1.0)
        beside = [(method, x, error) for method, error in level.items() for x in ends]
        theory = [(THEOREM, w, theorem_error(rho, deviation, w)) for w in WEIGHTS[0].tolist()]
        shown = [*told[LEARNT], *told[KNOWN], *theory, *beside]
        points += _points("10", privacy, name, shown, budget)
    return points


def theorem_error(rho: float, deviation: float, weight: float) -> Error:
    """What Theorem 6.1 says of the rule, of a series of variance 1."""
    noise = (weight * deviation) ** 2
    return Error(math.sqrt((1 - rho**2 / (1 + noise)) * (1 - weight) ** 2 + noise))


def _level_errors(rho: float, series: Floats, noise: Floats, variance: float) -> dict[str, Error]:
    """What does not depend on a weight."""
    length, runs = series.shape
    ones, variances = np.ones(length), np.full(length, variance)
    process = Autoregressive(0.0, [rho], 1 - rho**2)
    found = {
        name: estimate.begin(runs).update(series + noise, ones, variances)
        for name, estimate in ((BANK, learned()), (KALMAN, kalman(process)))
    }
    return {NOISE: Error(math.sqrt(variance))} | {
        name: Error.of_runs(np.square(own - series).mean(axis=0)) for name, own in found.items()
    }


def geometric_points(
    task: Task, ratio: float, runs: int, draw: np.random.Generator
) -> list[SeriesPoint]:
    """Figure 11 at one budget: squared weights that fall by one factor."""
    values, length = task.values, task.values.size
    budget = Budget.with_noise(ratio * float(values.std()), length)
    factors = np.array(_GEOMETRIC)
    weights = factors[None, :] ** (np.arange(length)[:, None] / 2)
    normals = draw.standard_normal((length, runs))
    panel = f"noise {ratio:g} of the deviation"
    own: list[tuple[str, float, Error]] = []
    rule = Rule(weights)
    released = rule.released(values, rule.noise(budget.ratio, length), normals)
    pairs = zip(_GEOMETRIC, mean_squares(released, values), strict=True)
    own += [(LEARNT, factor, Error.of_runs(each)) for factor, each in pairs]
    seen = values[:, None] + budget.deviation * normals
    _, best, _ = rule_errors(values, seen, budget)
    for factor in (_GEOMETRIC[0], 1.0):
        own.append((NOISE, factor, Error(budget.deviation)))
        own.append((CONSTANT, factor, best))
    kept = (budget.epsilon, budget.delta)
    return [task.point(panel, method, x, error, *kept) for method, x, error in own]


def combined_points(task: Task, runs: int, draw: np.random.Generator) -> list[SeriesPoint]:
    """The non-linear calibration of Section 7 beside the linear one, weight by weight."""
    values, length = task.values, task.values.size
    budget = Budget.with_noise(_COMBINED_NOISE * float(values.std()), length)
    normals = draw.standard_normal((length, runs))
    points = []
    for weight in _COMBINED:
        rule = Rule(np.array([[weight]]))
        linear = rule.released(values, rule.noise(budget.ratio, length), normals)
        safe, _ = calibrated_releases(values, weight, budget.ratio, normals, honest=True)
        unsafe, steps = calibrated_releases(values, weight, budget.ratio, normals, honest=False)
        # What it leaks where the noise is made for weight times sensitivity.
        ratio = budget.ratio * math.sqrt(float(np.square(steps / weight).mean(axis=0).max()))
        for method, found, epsilon in (
            (LINEAR, linear[:, 0], budget.epsilon),
            (HONEST, safe, budget.epsilon),
            (UNSAFE, unsafe, gaussian_epsilon(ratio, DELTA)),
        ):
            error = Error.of_runs(np.square(found - values[:, None]).mean(axis=0))
            told = (error, epsilon, DELTA)
            points.append(task.point("calibration", method, weight, *told))
    return points
