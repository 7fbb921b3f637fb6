"""Findings of a study whose numbers are points of curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict

from sfumato.core.printed import shown_up
from sfumato.plots.points import Point
from sfumato.studies.study import Drawing, Findings

Curves = dict[tuple[str, str], list[Point]]
"""Points by figure and curve."""


def curves_of(points: Iterable[Point]) -> Curves:
    """The points of each curve, in their order."""
    curves: Curves = {}
    for point in points:
        curves.setdefault((point.figure, point.curve), []).append(point)
    return curves


def curve_findings(
    points: list[Point],
    facts: list[str],
    pictures: Mapping[str, Drawing],
    shown: Iterable[Point] | None = None,
) -> Findings:
    """Ends of every curve, in the order of the points, or of those that are shown."""
    rows = []
    for (figure, curve), line in curves_of(shown or points).items():
        ends = [shown_up(number, 4) for end in (line[0], line[-1]) for number in (end.x, end.y)]
        rows.append([f"{figure} {curve}", *ends])
    return Findings(
        title="ends of every curve",
        columns=["figure and curve", "first x", "y", "last x", "y"],
        rows=rows,
        records=[asdict(point) for point in points],
        facts=facts,
        pictures=dict(pictures),
    )
