"""People differ, as a table and sentences that the numbers decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict

from sfumato.studies.streams import people_differ as study
from sfumato.studies.streams.people_differ import PeoplePoint
from sfumato.studies.study import Findings, Setting, Work

_COLUMNS = (
    "data, model (chains)|predicted, nats a value|more|loss, total|more|loss, cap (charge)|more|"
    "charged, stream|leaked to who knows clusters|most beyond the charge|silent"
)


def prepare(setting: Setting) -> Work:
    """The demo's town and real sequences, one row for each model; quick: the town alone."""
    tasks = study.TASKS[:1] if setting.quick else study.TASKS

    def run(show: Callable[[int], None]) -> Findings:
        points = study.people_points(tasks, setting, progress=show)
        return Findings(
            title="on people that no model has seen; more: beside one chain, +- two errors",
            columns=_COLUMNS.split("|"),
            rows=[_row(point) for point in points],
            records=[asdict(point) for point in points],
            facts=facts(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            pictures={},
        )

    return Work(3 * len(tasks), run)


def _row(point: PeoplePoint) -> list[str]:
    return [
        f"{point.data}: {point.model} ({point.clusters})",
        f"{point.predicted:.3f}",
        f"{point.predicted_more:+.3f} +- {2 * point.predicted_error:.3f}",
        f"{point.loss:.3f} {point.unit}",
        f"{point.loss_more:+.3f} +- {2 * point.loss_error:.3f}",
        f"{point.capped:.3f} ({point.capped_charge:.2f})",
        f"{point.capped_more:+.3f} +- {2 * point.capped_error:.3f}",
        f"{point.stated:.2f}",
        f"{point.leaked:.2f}",
        f"{point.worst:+.2f}",
        f"{point.silent:.3f}",
    ]


def facts(points: Sequence[PeoplePoint]) -> list[str]:
    """What follows for each set: whether clusters predict more, and lose less."""
    found = []
    for point in points:
        if point.model != study.MIXTURE:
            continue
        first = next(one for one in points if (one.data, one.model) == (point.data, study.ONE))
        if point.clusters == 1:
            found.append(f"{point.data}: streams held out speak for one kind of people")
            continue
        told = _compared(point.predicted_more, point.predicted_error, "predict more", "less")
        lost = _compared(-point.loss_more, point.loss_error, "lose less", "more")
        found.append(
            f"{point.data}: {point.clusters} clusters {told} than one chain, and {lost} at the "
            f"same total ({-point.loss_more / first.loss:+.1%} of its loss saved); a stream "
            f"released by one chain leaked up to {first.worst:.2f} nats more than stated to who "
            "knows the clusters"
        )
    return found


def _compared(gain: float, error: float, better: str, worse: str) -> str:
    verb = better.split()[0]
    if not abs(gain) > 2 * error:
        return f"{verb} no more and no less"
    return better if gain > 0 else f"{verb} {worse}"
