"""The study of leakage over time: TPL Figures 3, 4, 5 and 7."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sfumato.plots.points import Point
from sfumato.studies.curve_findings import curve_findings
from sfumato.studies.study import Findings, Setting, Work
from sfumato.studies.tpl import leakage_drawings, leakage_over_time
from sfumato.studies.tpl.leakage_claims import leakage_claims

_FIGURES = (
    leakage_over_time.figure_3,
    leakage_over_time.figure_4,
    leakage_over_time.figure_5,
    leakage_over_time.figure_7,
)


def prepare(setting: Setting) -> Work:
    """Nothing is read and nothing is drawn at random: `setting` changes nothing."""
    return Work(len(_FIGURES), _run)


def _run(show: Callable[[int], None]) -> Findings:
    points: list[Point] = []
    for done, figure in enumerate(_FIGURES, 1):
        points.extend(figure())
        show(done)
    claims = leakage_claims(points)
    pictures = {
        "examples": partial(leakage_drawings.draw_examples, points),
        "degrees": partial(leakage_drawings.draw_degrees, points),
    }
    captions = {
        "examples": "Leakage of ten releases (3), a loss function (4), suprema (5)",
        "degrees": "Degrees of correlation (7): as printed, and as the paper's picture has them",
    }
    facts = [f"{claim.figure}: {claim.seen}" for claim in claims if claim.reason]
    return replace(curve_findings(points, facts, pictures), claims=claims, captions=captions)
