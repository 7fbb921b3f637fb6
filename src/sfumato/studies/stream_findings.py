"""The studies of streams as tables, sentences and pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.studies.catalogue import Findings, Study
    from sfumato.studies.stream_caps import CapPoint
    from sfumato.studies.stream_totals import TotalPoint

_WAYS = ("step-wise", "far-sighted", "far-sighted, no dearer")
_LARGE = 0.5
"""Share of a loss from which the gap to the bound is called large."""


def stream_totals(folder: str | None = None, *, quick: bool = False) -> Study:
    """How well a total is spent on real sequences.

    Args:
        folder: That holds the files; without one, the demo's town alone.
        quick: Fewer streams.
    """
    from sfumato.studies import stream_drawings
    from sfumato.studies import stream_totals as study
    from sfumato.studies.catalogue import Findings, Study

    def run(show: Callable[[int], None]) -> Findings:
        points = study.total_points(_folder(folder), quick=quick, progress=show)
        records = [asdict(one) | {"rival": one.rival, "behind": one.behind} for one in points]
        columns = (
            "data, total / values|silence|evenly|bursts, N sought|best N in hindsight|"
            "own channel held|k-RR held|k-RR, best guess|on the model|bound|gap"
        )
        return Findings(
            title="loss per value on people the model has not seen; rivals' N in hindsight",
            columns=columns.split("|"),
            rows=[_total_row(point) for point in points],
            records=records,
            facts=_total_facts(points),
            pictures={"": partial(stream_drawings.totals, points)},
        )

    return Study(len(study.TASKS), run)


def _folder(folder: str | None) -> Path | None:
    return None if folder is None else Path(folder)


def _total_row(point: TotalPoint) -> list[str]:
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
        *_bounded(point.modelled, point.bound),
    ]


def _bounded(loss: float, bound: float | None) -> tuple[str, str]:
    if bound is None:
        return "", ""
    return f"{bound:.3f}", f"{1 - bound / loss:.0%}" if loss > 0 else ""


def _total_facts(points: Sequence[TotalPoint]) -> list[str]:
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


def stream_caps(folder: str | None = None, *, quick: bool = False) -> Study:
    """What a cap per step is worth, step-wise and far-sighted.

    Args:
        folder: That holds the files; without one, bits and the demo's town.
        quick: Fewer streams, bits and activities alone.
    """
    from sfumato.studies import stream_caps as study
    from sfumato.studies import stream_drawings
    from sfumato.studies.catalogue import Findings, Study

    def run(show: Callable[[int], None]) -> Findings:
        points = study.cap_points(_folder(folder), quick=quick, progress=show)
        return Findings(
            title="loss per value (mean charge of a step)",
            columns=["data, cap", *_WAYS, "bound", "gap"],
            rows=[_cap_row(point) for point in points],
            records=[asdict(point) for point in points],
            facts=_cap_facts(points),
            pictures={"": partial(stream_drawings.caps, points)},
        )

    sets = len(study.STAYS) + (1 if quick else len(study.SOURCES))
    return Study(sets * len(study.CAPS), run)


def _cap_row(point: CapPoint) -> list[str]:
    thrifty = ""
    if point.thrifty is not None:
        thrifty = f"{point.thrifty:.3f} ({point.thrifty_charge:.2f})"
    return [
        f"{point.data}, {point.cap:g}",
        f"{point.step_wise:.3f} ({point.step_charge:.2f})",
        f"{point.far_sighted:.3f} ({point.far_charge:.2f})",
        thrifty,
        *_bounded(point.far_sighted, point.bound),
    ]


def _cap_facts(points: Sequence[CapPoint]) -> list[str]:
    saved = [1 - point.far_sighted / point.step_wise for point in points]
    return [
        f"far-sighted steps lose {min(saved):.0%} to {max(saved):.0%} less than step-wise ones "
        "under the same cap, and leak what the cap allows",
        "under a cap per step the bound counts every output as if it confirmed the earlier ones: "
        "it is far below what can be reached, and gaps are large",
    ]


def greedy_release() -> Study:
    """Why a greedy release wastes its budget: one sticky bit."""
    from sfumato.studies import greedy, stream_drawings
    from sfumato.studies.catalogue import Findings, Study

    def run(show: Callable[[int], None]) -> Findings:
        story = greedy.greedy_story()
        show(1)
        ways = {way.name: way for way in story.ways}
        return Findings(
            title=f"{story.total:g} nats over {greedy.VALUES} values of a bit that stays with "
            f"{greedy.STAY:g}",
            columns=["way", "share wrong", "nats spent"],
            rows=[[way.name, f"{way.loss:.3f}", f"{way.spent:.2f}"] for way in story.ways],
            records=[
                {"way": way.name, "value": moment, "wrong": wrong, "charged": charged}
                for way in story.ways
                for moment, (wrong, charged) in enumerate(
                    zip(way.losses, way.charges, strict=True), start=1
                )
            ],
            facts=[
                f"a greedy step of {story.total / greedy.VALUES:g} nats is a constant once the "
                f"rarer bit is believed in with less than {story.silent_below:.3f}: it spends "
                f"{ways['greedy'].spent:.2f} of {story.total:g} nats",
                f"bursts every {story.every} values make {ways['bursts'].loss:.3f} wrong; nothing "
                f"within the total makes less than {story.bound:.3f}",
            ],
            pictures={"": partial(stream_drawings.greedy, story)},
        )

    return Study(1, run)
