"""Looking points up: what claims, tables and pictures ask of the numbers of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sfumato.studies.rtr.series_points import SeriesPoint

_SURE = 2.0
"""Standard errors that two methods must be apart to be told apart."""


def curve(
    points: Iterable[SeriesPoint],
    method: str,
    panel: str | None = None,
    series: str | None = None,
) -> list[SeriesPoint]:
    """The points of one curve, from the left."""
    found = [
        point
        for point in points
        if point.method == method
        and panel in (None, point.panel)
        and series in (None, point.series)
    ]
    return sorted(found, key=lambda point: point.x)


def better(one: SeriesPoint, other: SeriesPoint) -> bool:
    """Whether a method errs less than another, by more than chance explains."""
    return other.error - one.error > _SURE * math.hypot(one.spread, other.spread)


def wins(ours: Sequence[SeriesPoint], theirs: Sequence[SeriesPoint]) -> list[bool]:
    """Whether one curve is clearly below another, point by point."""
    return [better(one, other) for one, other in zip(ours, theirs, strict=True)]


def records(points: Iterable[SeriesPoint]) -> list[dict[str, Any]]:
    """One flat record a point."""
    return [asdict(point) | {"of_silence": point.of_silence} for point in points]


def table(points: Sequence[SeriesPoint]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: a row for each curve, a column for each x, errors in those of silence."""
    xs = sorted({point.x for point in points})
    rows: dict[tuple[str, str, str, str], dict[float, str]] = {}
    for point in points:
        head = (point.figure, point.series, point.panel, point.method)
        sure = f" +- {point.spread / point.silence:.2g}" if point.spread else ""
        rows.setdefault(head, {})[point.x] = f"{point.of_silence:.3g}{sure}"
    heads = ["figure", "series", "by", "method", *(f"{x:.3g}" for x in xs)]
    return heads, [[*head, *(cells.get(x, "") for x in xs)] for head, cells in rows.items()]
