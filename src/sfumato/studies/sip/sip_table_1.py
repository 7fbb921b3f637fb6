"""Table I of SIP: what the notions promise, and how long a value takes, measured.

References:
    [SIP, Tab. I]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

import numpy as np

from sfumato.plots.points import MeasuredPoint
from sfumato.studies.sip import release_runtime as runtime
from sfumato.studies.sip.release_runtime import (
    CERTIFIED,
    LDP,
    MIP,
    PREDICTION,
    PUBLISHED,
    PUFFERFISH,
    Sizes,
    runtime_points,
)
from sfumato.studies.sip.runtime_drawings import draw
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict

_SLACK = 0.35
"""By how much a measured power may differ from a whole one."""
_NOTIONS = (
    # notion, composes, worst case, uses the correlation, online, claimed, panel and curve
    ("LDP", "yes", "yes", "no", "yes", "O(n)", "alphabet", LDP),
    ("Pufferfish", "if Markov", "yes", "yes", "no", "O(T^3 n^3)", "length", PUFFERFISH),
    ("MIP", "no", "no, average", "yes", "yes", "O(n^(2T))", "length", MIP),
    ("SIP, published", "yes", "yes", "yes", "yes", "O(n)", "alphabet", PUBLISHED),
    ("SIP, certified", "yes", "yes", "yes", "yes", "-", "alphabet", CERTIFIED),
    ("SIP, in batches", "yes", "yes", "yes", "in batches", "O(n^(2w))", "batch", CERTIFIED),
)


def prepare(setting: Setting) -> Work:
    """All sizes, or few of them."""
    sizes = runtime.QUICK if setting.quick else Sizes()
    return Work(sizes.steps, partial(_run, sizes, setting.seed))


def _run(sizes: Sizes, seed: int, show: Callable[[int], None]) -> Findings:
    points = runtime_points(sizes, seed, show)
    return Findings(
        title="notions as the paper has them; time per value, measured in parts of the smallest "
        "randomised response of this run",
        columns=[
            "notion",
            "composes",
            "worst case",
            "uses correlation",
            "online",
            "claimed",
            "smallest",
            "largest",
            "growth",
        ],
        rows=[_row(points, *row) for row in _NOTIONS],
        records=[asdict(point) for point in points],
        facts=[
            "times are measured: another run gives others, and a busy machine larger ones",
            "MIP and Pufferfish are not released by here: their times are those of the joint table "
            "and of the search for a quilt, which come before any release",
        ],
        pictures={"time-per-value": partial(draw, points)},
        claims=claims(points),
        captions={"time-per-value": "SIP Table I, measured: time per released value"},
    )


def line(points: Sequence[MeasuredPoint], panel: str, curve: str) -> list[MeasuredPoint]:
    """A curve, by growing size."""
    chosen = [p for p in points if (p.figure, p.curve) == (panel, curve)]
    return sorted(chosen, key=lambda point: point.x)


def power(points: Sequence[MeasuredPoint]) -> float:
    """With which power of the size the time grows at the upper end: slope of logarithms.

    Examples:
        >>> made = [MeasuredPoint("a", "b", x, 3 * x**2, 0.0) for x in (8.0, 16.0, 32.0)]
        >>> round(power(made), 6)
        2.0
    """
    upper = points[-3:]
    sizes, times = (np.log([getattr(point, name) for point in upper]) for name in ("x", "y"))
    return float(np.polyfit(sizes, times, 1)[0])


def factor(points: Sequence[MeasuredPoint]) -> float:
    """By how much the time of all values together grows with each unit of size, upper end."""
    before, last = points[-2:]
    grown = (last.y * last.x) / (before.y * before.x)
    return float(grown ** (1 / (last.x - before.x)))


def _row(points: Sequence[MeasuredPoint], *row: str) -> list[str]:
    *said, panel, curve = row
    found = line(points, panel, curve)
    if panel == "batch" or curve == MIP:
        growth = f"x {factor(found):.1f} per value"
    else:
        growth = f"{'T' if panel == 'length' else 'n'}^{power(found):.1f}"
    ends = [f"{point.y:.3g} ({point.x:g})" for point in (found[0], found[-1])]
    return [*said, *ends, growth]


def claims(points: Sequence[MeasuredPoint]) -> list[Claim]:
    """What the table says of complexity, judged by growth."""
    free, rule = (power(line(points, "alphabet", curve)) for curve in (LDP, PUBLISHED))
    moves = power(line(points, "alphabet", PREDICTION))
    flat = power(line(points, "length", PUBLISHED))
    quilts = power(line(points, "length", PUFFERFISH)) + 1
    joint, batch = factor(line(points, "length", MIP)), factor(line(points, "batch", CERTIFIED))
    size = runtime._BATCH_SIZE
    return [
        _claim("a value under LDP takes O(n)", f"n^{free:.2f}", free <= 1 + _SLACK),
        _claim(
            "a value under SIP takes O(n)",
            f"Algorithm 1 n^{rule:.2f}, its prediction through the chain alone n^{moves:.2f}",
            max(rule, moves) <= 1 + _SLACK,
            "erratum 5: the prediction is O(n^2)",
        ),
        _claim(
            "a value under SIP takes as long however long the sequence is",
            f"T^{flat:.2f}",
            abs(flat) <= _SLACK,
        ),
        _claim(
            "MIP takes O(n^(2T)) for a sequence of T values",
            f"each further bit takes {joint:.2f} times as long; n^2 is 4",
            abs(math.log(joint / 4)) <= 2 * _SLACK,
        ),
        _claim(
            "Pufferfish takes O(T^3 n^3)",
            f"the search for quilts takes T^{quilts:.2f} for a whole sequence, value by value",
            quilts <= 3 + _SLACK,
        ),
        _claim(
            "a batch of w values takes O(n^(2w))",
            f"each further value takes {batch:.1f} times as long; n^2 is {size**2}",
            batch <= size**2 * math.exp(2 * _SLACK),
            "the paper counts one pass over the parameters; the best channel takes many",
        ),
    ]


def _claim(claimed: str, seen: str, holds: bool, reason: str = "") -> Claim:
    return Claim("SIP Table I", claimed, seen, verdict(holds), "" if holds else reason)
