"""Ten private sequences of each method, as the paper shows them (Figures 6 and 16 to 19)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.filter_banks import learned
from sfumato.series.rivals.fast import Fast, best_process_variance
from sfumato.studies.rtr import series_errors as errors
from sfumato.studies.rtr.laplace_curve import composed_epsilon
from sfumato.studies.rtr.method_curves import Method, Task
from sfumato.studies.rtr.one_lag_rule import Rule
from sfumato.studies.rtr.point_table import better
from sfumato.studies.rtr.series_points import Budget, Error, SeriesPoint
from sfumato.studies.study import Claim, verdict_of

SEQUENCES = 10
"""Of each method, as in the paper."""


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot of sequences.

    Attributes:
        figure: In the paper.
        panel: What its privacy is.
        budget: Of Gaussian noise.
        pure: Sum of the pure budgets of Laplace noise.
    """

    figure: str
    panel: str
    budget: Budget
    pure: float

    @classmethod
    def same_epsilon(cls, figure: str, each: float, length: int) -> Plot:
        """The same epsilon for all, pure budgets added up; so much for each value."""
        panel = f"epsilon = {each:.3g} T"
        return cls(figure, panel, Budget(each * length, length), each * length)

    @classmethod
    def same_variance(cls, figure: str, variance: float, length: int) -> Plot:
        """Gaussian and Laplace noise of one variance."""
        budget = Budget.with_noise(variance**0.5, length)
        return cls(figure, f"variance {variance:.3g}", budget, budget.matched_epsilon)

    @property
    def pure_kept(self) -> tuple[float, float]:
        """What Laplace noise really keeps, at the delta of the others."""
        each = self.pure / self.budget.length
        return composed_epsilon(each, self.budget.length, self.budget.delta), self.budget.delta


def sequences(values: Floats, plot: Plot, seed: int) -> dict[str, Floats]:
    """Ten releases of each method, time by run."""
    budget, size = plot.budget, values.size
    seen = errors.measured(values, budget, SEQUENCES, np.random.default_rng([seed, 7]))
    ones, noise = np.ones(size), np.full(size, budget.deviation**2)
    _, _, weight = errors.rule_errors(values, seen, budget)
    rule = Rule(np.array([[weight]]))
    normals = (seen - values[:, None]) / budget.deviation
    published = rule.released(values, rule.noise(budget.ratio, size), normals)[:, 0]
    laplace = LaplaceNoise.at(budget.sensitivity, plot.pure / size)
    walk = best_process_variance(values, budget.sensitivity, plot.pure)
    fast = Fast.at(budget.sensitivity, plot.pure, size, process_variance=walk)
    coins = [seeded(1000 * seed + run) for run in range(SEQUENCES)]
    return {
        Method.GAUSSIAN: seen,
        Method.LAPLACE: np.stack([laplace.perturb(values, coin) for coin in coins], axis=1),
        Method.FAST: np.stack(
            [fast.release(values, coin, Purpose.SIMULATION) for coin in coins], axis=1
        ),
        Method.BEST: published,
        Method.BANK: learned().begin(SEQUENCES).update(seen, ones, noise),
    }


def sequence_points(task: Task, plot: Plot, found: dict[str, Floats]) -> list[SeriesPoint]:
    """How far the sequences are from the truth; x is the epsilon that is claimed."""
    pure = plot.pure_kept
    return [
        task.point(
            plot.panel,
            method,
            plot.budget.epsilon,
            Error.of_runs(np.square(runs - task.values[:, None]).mean(axis=0)),
            *(
                pure
                if method in (Method.LAPLACE, Method.FAST)
                else (plot.budget.epsilon, plot.budget.delta)
            ),
        )
        for method, runs in found.items()
    ]


def sequence_claim(
    figure: str, points: Sequence[SeriesPoint], claimed: str, rivals: Sequence[str]
) -> Claim:
    """Whether the rule's sequences are nearer to the truth than those of its rivals."""
    panels = dict.fromkeys((point.series, point.panel) for point in points)
    won, said = list[bool](), list[str]()
    for series, panel in panels:
        here = {p.method: p for p in points if (p.series, p.panel) == (series, panel)}
        rule = here[Method.BEST]
        won += [better(rule, here[rival]) for rival in rivals]
        told = ", ".join(f"{method} {point.of_silence:.3g}" for method, point in here.items())
        said.append(f"{panel}: {told}")
    useless = [p for p in points if p.method == Method.BEST and p.of_silence >= 1]
    reason = "" if all(won) else "a filter of all measurements is nearer: erratum 14"
    if useless:
        reason += ("; " if reason else "") + "where the rule errs more than a constant, so do they"
    seen = f"errors in parts of a constant's; {'; '.join(said)}"
    return Claim(figure, claimed, seen, verdict_of(won), reason)


Released = dict[str, dict[str, Floats]]
"""By panel and method."""


def all_sequences(
    task: Callable[[str], Task], plots: Sequence[Plot], seed: int
) -> tuple[list[SeriesPoint], Released]:
    """Sequences of some plots on one series."""
    points, released = list[SeriesPoint](), Released()
    for plot in plots:
        here = task(plot.figure)
        found = sequences(here.values, plot, seed)
        points += sequence_points(here, plot, found)
        released[f"{plot.figure}: {plot.panel}"] = found
    return points, released
