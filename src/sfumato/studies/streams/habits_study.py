"""Do habits help, as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from sfumato.studies.streams import habits as study
from sfumato.studies.streams import stream_drawings
from sfumato.studies.streams.habits import HabitPoint, HabitTask
from sfumato.studies.study import Findings, Setting, Work

_COLUMNS = (
    "data, model|predicted, nats a value|more|loss, total|more|loss, cap (charge)|more|silent|"
    "to who knows hours"
)


def prepare(setting: Setting) -> Work:
    """The demo's town and a household, one row for each model."""
    return habit_work(study.TASKS, setting)


def habit_work(tasks: tuple[HabitTask, ...], setting: Setting) -> Work:
    """Some sets, one row for each model."""

    def run(show: Callable[[int], None]) -> Findings:
        points = study.habit_points(tasks, setting, progress=show)
        return Findings(
            title="on people (or days) that no model has seen; more: beside the first model",
            columns=_COLUMNS.split("|"),
            rows=[_row(point) for point in points],
            records=[asdict(point) for point in points],
            facts=_facts(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            pictures={"habits": partial(stream_drawings.habits, points)},
        )

    return Work(sum(len(study.MODELS) + len(task.more) for task in tasks), run)


def _row(point: HabitPoint) -> list[str]:
    return [
        f"{point.data}: {point.model}",
        f"{point.predicted:.3f}",
        f"{point.predicted_more:+.3f} +- {2 * point.predicted_error:.3f}",
        f"{point.loss:.3f}",
        f"{point.loss_more:+.3f} +- {2 * point.loss_error:.3f}",
        f"{point.capped:.3f} ({point.capped_charge:.2f})",
        f"{point.capped_more:+.3f} +- {2 * point.capped_error:.3f}",
        f"{point.silent:.3f} {point.unit}",
        f"{point.exposed:.2f} of {point.total:g}",
    ]


def _facts(points: Sequence[HabitPoint]) -> list[str]:
    """What follows, in words that the numbers decide."""
    facts = []
    for point in points[1:]:
        if point.model == points[0].model:
            continue
        first = next(one for one in points if one.data == point.data)
        told = _compared(point.predicted_more, point.predicted_error, "predicts more", "less")
        lost = _compared(-point.loss_more, point.loss_error, "loses less", "more")
        share = -point.loss_more / first.loss
        facts.append(
            f"{point.data}: {point.model} {told}, and {lost} at the same total ({share:+.1%} of "
            f"the loss of {first.model} saved)"
        )
    return facts


def _compared(gain: float, error: float, better: str, worse: str) -> str:
    if abs(gain) <= 2 * error:
        return f"{better.split()[0]} as much"
    return better if gain > 0 else f"{better.split()[0]} {worse}"
