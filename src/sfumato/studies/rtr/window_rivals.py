"""Budgets spread over windows, and the binary tree, at user level: Figures 7 and 8 of RTR.

A window of budget absorption and distribution is the whole series here, and a tree must protect
all values of a person together: the promise of the other methods. What they were made for, windows
of a few values and one value at a time, is another promise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.series.rivals.tree import BinaryTree, Told
from sfumato.series.rivals.windowed import BudgetAbsorption, BudgetDistribution, Windowed
from sfumato.studies.data.series_data import HOURS, hourly_traffic
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.method_curves import FEW, Method, Task
from sfumato.studies.rtr.point_table import curve, records, table, wins
from sfumato.studies.rtr.series_drawings import LOOKS, Look, Panel, draw_curves
from sfumato.studies.rtr.series_points import Budget, Error, SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict_of

_RATIOS = (0.1, 0.2, 0.5, 1.0, 2.0)
_RUNS = 10
"""As in the paper."""
_WINDOWS: dict[str, type[Windowed]] = {
    "budget absorption": BudgetAbsorption,
    "budget distribution": BudgetDistribution,
}
_TREE, _NORMAL_TREE = "binary tree", "binary tree, Gaussian noise"
_SHARED = (Method.GAUSSIAN, Method.LAPLACE, Method.BEST, Method.BANK)
_COLOURS = {"budget absorption": "#7b5aa6", "budget distribution": "#e07b39"}


def prepare(setting: Setting) -> Work:
    """Errors against the epsilon of a value under Laplace noise, as the paper draws them."""
    data = hourly_traffic(setting)
    values = data.values[: 7 * HOURS] if setting.quick else data.values
    runs = FEW if setting.quick else _RUNS
    ratios = _RATIOS[1::2] if setting.quick else _RATIOS

    def run(show: Callable[[int], None]) -> Findings:
        steps, points = Steps(show), list[SeriesPoint]()
        for ratio in ratios:
            budget = Budget.with_noise(ratio * float(values.std()), values.size)
            points += rival_points(data.name, values, budget, runs, setting.seed)
            steps()
        heads, rows = table(points)
        return Findings(
            title="root mean squared error in parts of a constant's, by epsilon of a value",
            columns=heads,
            rows=rows,
            records=records(points),
            facts=facts(values),
            pictures={"windows": partial(_draw, points)},
            claims=[*window_claims(points), *tree_claims(points)],
            stand_ins=[data.name] if data.stand_in else [],
            captions={"windows": "RTR 7 (left) and RTR 8 (right), all at user level"},
        )

    return Work(len(ratios), run)


def rival_points(
    name: str, values: Floats, budget: Budget, runs: int, seed: int
) -> list[SeriesPoint]:
    """All methods of both figures at one budget."""
    total, x = budget.matched_epsilon, budget.matched_epsilon / values.size
    seen = errors.measured(values, budget, runs, np.random.default_rng(seed))
    _, best, _ = errors.rule_errors(values, seen, budget)
    shared = {
        Method.GAUSSIAN: (Error(budget.deviation), budget.epsilon, budget.delta),
        Method.LAPLACE: (errors.laplace_error(budget, total), total, 0.0),
        Method.BEST: (best, budget.epsilon, budget.delta),
        Method.BANK: (errors.bank_error(values, seen, budget), budget.epsilon, budget.delta),
    }
    windows = {
        kind: (window_error(method, values, total, runs, seed), total, 0.0)
        for kind, method in _WINDOWS.items()
    }
    trees = {
        _TREE: (tree_error(values.size, total), total, 0.0),
        _NORMAL_TREE: (normal_tree_error(budget), budget.epsilon, budget.delta),
    }
    return [
        Task(figure, name, values, HOURS).point(panel, method, x, *told)
        for figure, panel, own in (("7", "windows", windows), ("8", "trees", trees))
        for method, told in (shared | own).items()
    ]


def window_error(
    method: type[Windowed], values: Floats, epsilon: float, runs: int, seed: int
) -> Error:
    """Of a method with one window over the whole series: user level."""
    made = method(1.0, epsilon, values.size)
    squares = [
        float(
            np.square(
                made.release(values, seeded(100 * seed + run), Purpose.SIMULATION) - values
            ).mean()
        )
        for run in range(runs)
    ]
    return Error.of_runs(np.array(squares))


def tree_error(length: int, epsilon: float) -> Error:
    """Of values told by a tree of Laplace noise, all values of a person protected together.

    She may be in every value, and each lies in a node of every level: the budget of a value, which
    is that of the event level, is a share of the whole.
    """
    tree = BinaryTree.at(1.0, 1.0, length)
    nodes = float(tree.variances().mean()) / tree.noise.variance
    scale = tree.levels * length / epsilon
    return Error(math.sqrt(2 * nodes) * scale)


def normal_tree_error(budget: Budget) -> Error:
    """Of the same with Gaussian noise, whose sensitivity is a Euclidean norm over all nodes."""
    tree = BinaryTree.at(1.0, 1.0, budget.length)
    nodes = float(tree.variances().mean()) / tree.noise.variance
    squares = sum((budget.length >> level) * 4**level for level in range(tree.levels))
    return Error(math.sqrt(nodes * squares) * budget.sensitivity / budget.ratio)


def window_claims(points: list[SeriesPoint]) -> list[Claim]:
    """What the paper says of Figure 7."""
    rule, laplace = (curve(points, name, "windows") for name in (Method.BEST, Method.LAPLACE))
    rivals = {name: curve(points, name, "windows") for name in _WINDOWS}
    ahead = {name: wins(rule, line) for name, line in rivals.items()}
    behind = {name: wins(laplace, line) for name, line in rivals.items()}
    noise = wins(rule, laplace)
    told = "; ".join(
        f"{name} {', '.join(f'{point.of_silence:.3g}' for point in line)}"
        for name, line in {Method.BEST: rule, Method.LAPLACE: laplace, **rivals}.items()
    )
    return [
        Claim(
            "RTR 7",
            "the rule errs less than budget absorption, budget distribution and Laplace noise",
            f"errors in parts of a constant's, the most private first: {told}",
            verdict_of([*noise, *(won for line in ahead.values() for won in line)]),
        ),
        Claim(
            "RTR 7",
            "both may err more than Laplace noise",
            "; ".join(f"{name} at {sum(line)} of {len(line)}" for name, line in behind.items()),
            verdict_of(any(line) for line in behind.values()),
        ),
    ]


def tree_claims(points: list[SeriesPoint]) -> list[Claim]:
    """What the paper says of Figure 8."""
    rule, laplace, tree, normal = (
        curve(points, name, "trees") for name in (Method.BEST, Method.LAPLACE, _TREE, _NORMAL_TREE)
    )
    times = tree[0].error / laplace[0].error
    return [
        Claim(
            "RTR 8",
            "the rule errs far less than the tree, and so does Laplace noise",
            f"the tree errs {times:.1f} times as much as Laplace noise at every budget; with "
            f"Gaussian noise {normal[0].error / laplace[0].error:.1f} times",
            verdict_of([*wins(rule, tree), *wins(laplace, tree)]),
        )
    ]


def facts(values: Floats) -> list[str]:
    """What the tree is made for, and what the window is."""
    size = values.size
    sums = BinaryTree.at(1.0, 1.0, size, told=Told.SUMS)
    told = float(sums.variances().mean()) / sums.noise.variance
    tree, added = sums.levels * math.sqrt(told), math.sqrt((size + 1) / 2)
    return [
        f"a window is the whole series ({size} values): the promise of the other curves; a shorter "
        "one promises less",
        f"a tree is made for running sums: of those it errs {tree / added:.2f} times as much as "
        "sums of independent Laplace noise, at user level",
    ]


def _draw(points: list[SeriesPoint], path: Path) -> None:
    looks = {
        **{name: LOOKS[name] for name in _SHARED},
        **{name: Look(colour, "--") for name, colour in _COLOURS.items()},
        _TREE: Look("#8c6d46", "--"),
        _NORMAL_TREE: Look("#8c6d46", ":"),
    }
    titles = {"windows": "7: windows over the whole series", "trees": "8: binary trees"}
    panels = [
        Panel(title, [p for p in points if p.panel == name], "epsilon of a value, Laplace noise")
        for name, title in titles.items()
    ]
    draw_curves(panels, looks, path, columns=2)
