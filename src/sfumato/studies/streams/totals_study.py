"""How well a total is spent on real sequences, as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from sfumato.studies.streams import stream_drawings
from sfumato.studies.streams import stream_totals as study
from sfumato.studies.streams.stream_totals import TotalPoint
from sfumato.studies.study import Findings, Setting, Work

_COLUMNS = (
    "data, total / values|silence|evenly|bursts, N sought|best N in hindsight|own channel held|"
    "k-RR held|k-RR, best guess|on the model|bound|gap"
)
_LARGE = 0.5
"""Share of a loss from which the gap to the bound is called large."""


def prepare(setting: Setting) -> Work:
    """Every set, one row for each total."""

    def run(show: Callable[[int], None]) -> Findings:
        points = study.total_points(setting, progress=show)
        records = [asdict(one) | {"rival": one.rival, "behind": one.behind} for one in points]
        return Findings(
            title="loss per value on people the model has not seen; rivals' N in hindsight",
            columns=_COLUMNS.split("|"),
            rows=[_row(point) for point in points],
            records=records,
            facts=_facts(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            pictures={"totals": partial(stream_drawings.totals, points)},
        )

    return Work(len(study.TASKS), run)


def _row(point: TotalPoint) -> list[str]:
    return [
        f"{point.data}, {point.total:g} / {point.values}",
        f"{point.silence:.3f}",
        f"{point.evenly:.3f}",
        f"{point.bursts:.3f} +- {2 * point.error:.3f} ({point.every})",
        f"{point.hindsight:.3f} ({point.hindsight_every})",
        f"{point.own_held:.3f} ({point.own_held_every})",
        f"{point.response_held:.3f} ({point.response_held_every})",
        f"{point.response_guessed:.3f} ({point.response_guessed_every})",
        f"{point.modelled:.3f}",
        *bounded(point.modelled, point.bound),
    ]


def bounded(loss: float, bound: float | None) -> tuple[str, str]:
    """A bound, and how far a loss is above it; nothing where none is known."""
    if bound is None:
        return "", ""
    return f"{bound:.3f}", f"{1 - bound / loss:.0%}" if loss > 0 else ""


def _facts(points: Sequence[TotalPoint]) -> list[str]:
    if not points:
        return []
    worst = max(points, key=lambda point: point.behind)
    name = f"{worst.data}, {worst.total:g} / {worst.values}"
    where = f"behind it by {worst.behind:.1%}" if worst.behind > 0 else "never behind it"
    loose = [
        f"{point.data} {point.total:g} / {point.values}"
        for point in points
        if point.bound is not None and point.bound < _LARGE * point.modelled
    ]
    return [
        "'every N and hold' at its best (k-RR or our own channel, N in hindsight, equal total): "
        f"bursts with N sought on the model are {where} ({name})",
        "bursts lose less than an even split on "
        f"{sum(point.bursts < point.evenly for point in points)} of {len(points)}",
        f"the bound leaves more than half of the loss open on: {', '.join(loose) or 'none'}",
    ]
