"""What a cap per step is worth, step-wise and far-sighted, as a table, sentences and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from sfumato.studies.streams import stream_caps as study
from sfumato.studies.streams import stream_drawings
from sfumato.studies.streams.stream_caps import CapPoint
from sfumato.studies.streams.totals_study import bounded
from sfumato.studies.study import Findings, Setting, Work

_WAYS = ("step-wise", "far-sighted", "far-sighted, no dearer")


def prepare(setting: Setting) -> Work:
    """Bits, and every set; quick: bits and activities alone."""

    def run(show: Callable[[int], None]) -> Findings:
        points = study.cap_points(setting, progress=show)
        return Findings(
            title="loss per value (mean charge of a step)",
            columns=["data, cap", *_WAYS, "bound", "gap"],
            rows=[_row(point) for point in points],
            records=[asdict(point) for point in points],
            facts=_facts(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            pictures={"caps": partial(stream_drawings.caps, points)},
        )

    sets = len(study.STAYS) + (1 if setting.quick else len(study.SOURCES))
    return Work(sets * len(study.CAPS), run)


def _row(point: CapPoint) -> list[str]:
    thrifty = ""
    if point.thrifty is not None:
        thrifty = f"{point.thrifty:.3f} ({point.thrifty_charge:.2f})"
    return [
        f"{point.data}, {point.cap:g}",
        f"{point.step_wise:.3f} ({point.step_charge:.2f})",
        f"{point.far_sighted:.3f} ({point.far_charge:.2f})",
        thrifty,
        *bounded(point.far_sighted, point.bound),
    ]


def _facts(points: Sequence[CapPoint]) -> list[str]:
    saved = [1 - point.far_sighted / point.step_wise for point in points]
    return [
        f"far-sighted steps lose {min(saved):.0%} to {max(saved):.0%} less than step-wise ones "
        "under the same cap, and leak what the cap allows",
        "under a cap per step the bound counts every output as if it confirmed the earlier ones: "
        "it is far below what can be reached, and gaps are large",
    ]
