"""Figures 2 and 4 to 10 of LIP as a table, sentences and pictures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sfumato.core.printed import shown_up
from sfumato.plots.points import Point
from sfumato.studies.curve_findings import Curves, curve_findings, curves_of
from sfumato.studies.lip import (
    lip_discrete,
    lip_discrete_drawings,
    lip_numbers,
    lip_numbers_drawings,
)
from sfumato.studies.lip.lip_claims import symbol_claims
from sfumato.studies.lip.lip_formula_claims import formula_claims
from sfumato.studies.lip.lip_number_claims import number_claims
from sfumato.studies.study import Findings, Setting, Work

_FIGURES = 8


def prepare(setting: Setting) -> Work:
    """Eight figures."""

    def run(show: Callable[[int], None]) -> Findings:
        discrete: list[Point] = []
        numbers: list[Point] = []
        repetitions = 20 if setting.quick else lip_discrete.REPETITIONS
        figures: list[tuple[list[Point], Callable[[], list[Point]]]] = [
            (discrete, lip_discrete.figure_2),
            (discrete, lip_discrete.figure_4),
            (discrete, lip_discrete.figure_5),
            (discrete, partial(lip_discrete.figure_6, setting.seed, repetitions)),
            (numbers, lip_numbers.figure_7),
            (numbers, lip_numbers.figure_8),
            (numbers, lip_numbers.figure_9),
            (numbers, lip_numbers.figure_10),
        ]
        for done, (points, figure) in enumerate(figures, start=1):
            points.extend(figure())
            show(done)
        pictures = {
            "symbols": partial(lip_discrete_drawings.draw, discrete),
            "numbers": partial(lip_numbers_drawings.draw, numbers),
        }
        points = [*discrete, *numbers]
        curves = curves_of(points)
        claims = [*symbol_claims(curves), *formula_claims(curves), *number_claims(curves)]
        return replace(curve_findings(points, _facts(curves), pictures), claims=claims)

    return Work(_FIGURES, run)


def _facts(curves: Curves) -> list[str]:
    def near(figure: str, curve: str, x: float) -> Point:
        return min(curves[figure, curve], key=lambda point: abs(point.x - x))

    last = curves["6a", "Eq. 19, median"][-1]
    bound = curves["6a", "η + ε"][-1]
    cut = near("9b", "Cor. 10, prior cut", 1.0)
    errors = {
        name: near("9c", name, 3.0)
        for name in ("optimal, δ = 0", "own scales", "one scale", "say nothing")
    }
    told = ", ".join(f"{name} {point.y:.3g}" for name, point in errors.items())
    worse = [
        point.x
        for point in curves["7a", "Unif(0, 1), Prop. 2"]
        if point.y > near("7a", "Unif(0, 1), say nothing", point.x).y
    ]
    laplace = [near("10b", name, 1.0) for name in ("Eq. 25, first branch", "own scales", "optimal")]
    return [
        f"6a: the rule of Eq. 19 leaks {shown_up(last.y, 4)} where {shown_up(bound.y, 4)} is "
        f"promised ({last.x:,.0f} samples)",
        f"7a: sampling is worse than telling one constant up to epsilon {max(worse):.2f} "
        "(uniform values)",
        f"9b: the scales of Cor. 10 claim delta 1e-4; at epsilon {cut.x:g} it is "
        f"{shown_up(cut.y, 3)}",
        f"9c: mean error at epsilon {errors['one scale'].x:g}: {told}",
        f"10b: mean error at epsilon {laplace[0].x:g}: Eq. 25 {laplace[0].y:.3f}, own scales "
        f"{laplace[1].y:.3f}, optimal {laplace[2].y:.3f}",
    ]
