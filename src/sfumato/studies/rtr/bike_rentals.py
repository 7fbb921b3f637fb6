"""Rented bikes by hour and by day: Figures 15 to 19 of RTR."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sfumato.studies.data.series_data import HOURS, SeriesData, daily_rentals, hourly_rentals
from sfumato.studies.rtr.method_claims import method_claims
from sfumato.studies.rtr.method_curves import FEW, RUNS, Method, Task, curve_points
from sfumato.studies.rtr.point_table import curve, records, table
from sfumato.studies.rtr.private_sequences import Plot, Released, all_sequences, sequence_claim
from sfumato.studies.rtr.series_drawings import draw_methods, draw_sequences
from sfumato.studies.rtr.series_points import SeriesPoint
from sfumato.studies.rtr.study_steps import Steps
from sfumato.studies.study import Claim, Findings, Setting, Work

_SHOWN = {"hour": 7 * HOURS, "day": 365}
"""Values of each series that a picture of sequences shows."""
_QUICK = 21 * HOURS
_EACH = {"hour": (2e-2, 1.3e-2), "day": (2e-3, 1e-4)}
"""Epsilon of a value in Figures 16 and 18."""
_VARIANCES = {"hour": (5e3, 1.18e4), "day": (5e5, 2e8)}
"""Of Laplace noise in Figures 17 and 19."""
_FIGURES = {"hour": ("16", "17"), "day": ("18", "19")}


def prepare(setting: Setting) -> Work:
    """Errors against epsilon on both series, and private sequences at the paper's budgets."""
    read = {"hour": hourly_rentals(setting), "day": daily_rentals(setting)}
    tasks = {name: _task(data, setting) for name, data in read.items()}
    runs = FEW if setting.quick else RUNS // 2

    def run(show: Callable[[int], None]) -> Findings:
        step = Steps(show)
        points: list[SeriesPoint] = []
        for task in tasks.values():
            points += curve_points(task, runs, setting.seed, step)
        shown: list[SeriesPoint] = []
        released: dict[str, Released] = {}
        for name, task in tasks.items():
            own, released[name] = all_sequences(_at(task), plots(name, task), setting.seed)
            shown += own
            step()
        heads, rows = table(points)
        claims = [
            claim for task in tasks.values() for claim in method_claims("RTR 15", points, task.name)
        ]
        return Findings(
            title="errors in parts of a constant's, by epsilon of the whole series",
            columns=heads,
            rows=rows,
            records=records([*points, *shown]),
            facts=facts(shown),
            pictures={
                **{f"methods-{n}": partial(draw_methods, points, tasks[n].name) for n in tasks},
                **{
                    f"sequences-{name}": partial(
                        draw_sequences,
                        tasks[name].values[: _SHOWN[name]],
                        released[name],
                        unit=f"bikes by {name}",
                    )
                    for name in tasks
                },
            },
            claims=[*claims, *_sequence_claims(shown)],
            stand_ins=[data.name for data in read.values() if data.stand_in],
            captions={
                **{f"methods-{n}": f"RTR 15: {tasks[n].name}" for n in tasks},
                "sequences-hour": "RTR 16 and 17: the first week; mean and range of ten releases",
                "sequences-day": "RTR 18 and 19: the year; mean and range of ten releases",
            },
        )

    return Work(sum(len(task.ratios) for task in tasks.values()) + len(tasks), run)


def _task(data: SeriesData, setting: Setting) -> Task:
    size = _QUICK if setting.quick else data.values.size
    phases = None if data.phases is None else data.phases[:size]
    return Task("15", data.name, data.values[:size], data.period, phases)


def _at(task: Task) -> Callable[[str], Task]:
    return lambda figure: replace(task, figure=figure)


def plots(name: str, task: Task) -> list[Plot]:
    """The paper's budgets for the sequences of one series."""
    same, equal = _FIGURES[name]
    size = task.values.size
    return [
        *(Plot.same_epsilon(same, each, size) for each in _EACH[name]),
        *(Plot.same_variance(equal, variance, size) for variance in _VARIANCES[name]),
    ]


def _sequence_claims(shown: list[SeriesPoint]) -> list[Claim]:
    claimed = "sequences of the rule are nearer to the truth than those of noise and FAST"
    rivals = (Method.GAUSSIAN, Method.LAPLACE, Method.FAST)
    figures = sorted({point.figure for point in shown})
    return [
        sequence_claim(f"RTR {name}", [p for p in shown if p.figure == name], claimed, rivals)
        for name in figures
    ]


def facts(shown: list[SeriesPoint]) -> list[str]:
    """What follows from the numbers."""
    said = [
        "one person changes a count by 1, as in the paper; who rents twice in an hour or a day "
        "changes it by more"
    ]
    for figure in sorted({point.figure for point in shown}):
        here = [point for point in shown if point.figure == figure]
        for laplace in curve(here, Method.LAPLACE):
            own = [p for p in curve(here, Method.GAUSSIAN) if p.panel == laplace.panel]
            said.append(
                f"Fig. {figure}, {laplace.panel}: Gaussian noise keeps epsilon "
                f"{own[0].epsilon:.3g}, Laplace noise {laplace.epsilon:.3g}, both at delta "
                f"{laplace.delta:g}; their errors are {own[0].of_silence:.3g} and "
                f"{laplace.of_silence:.3g} of a constant's"
            )
    return said
