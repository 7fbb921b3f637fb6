"""The paper's headline, "more than twice", as a table, claims and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial

from sfumato.studies.streams import headline as study
from sfumato.studies.streams.headline import OURS, PLAIN, RIVAL, SILENCE, WAITING, HeadlinePoint
from sfumato.studies.streams.headline_drawings import factors
from sfumato.studies.study import Claim, Findings, Setting, Verdict, Work

TWICE = 2.0
_PLACE = "SIP abstract"
_REASON = "at equal leakage, with the receiver's best guess; erratum 8"


def prepare(setting: Setting) -> Work:
    """Four sets at every cap."""

    def run(show: Callable[[int], None]) -> Findings:
        points = study.headline_points(setting, show)
        return Findings(
            title="loss per value +- 2 standard errors over people; (how many times as much "
            f"{RIVAL} loses, with 95 % limits; beside batches the better of it and {WAITING})",
            columns=["data, cap per value", SILENCE, PLAIN, RIVAL, WAITING, *OURS],
            rows=_rows(points),
            records=[asdict(point) for point in points],
            facts=facts(points),
            pictures={"factors": partial(factors, points)},
            claims=claims(points),
            stand_ins=sorted({point.data for point in points if point.stand_in}),
            captions={
                "factors": "How many times as much calibrated randomised response with the "
                "receiver's best guess loses, at the same certified leakage per value; beside "
                "batches it waits as they do. Bars are 95 % limits over people, the dashed line is "
                "the paper's claim"
            },
        )

    caps = study.QUICK_CAPS if setting.quick else study.CAPS
    return Work(len(study.SAMPLES) * len(caps), run)


def _rows(points: Sequence[HeadlinePoint]) -> list[list[str]]:
    rows: dict[tuple[str, float], list[str]] = {}
    for point in points:
        cells = rows.setdefault((point.data, point.cap), [])
        cell = f"{point.loss:.3f} +- {2 * point.error:.3f}"
        if point.way in OURS:
            cell += f" ({point.factor:.2f}: {point.least:.2f} to {point.most:.2f})"
        cells.append(cell)
    return [[f"{name}, {cap:g}", *cells] for (name, cap), cells in rows.items()]


def claims(points: Sequence[HeadlinePoint]) -> list[Claim]:
    """Whether each way is more than twice as good, at every set and cap."""
    return [_claim(way, [point for point in points if point.way == way]) for way in OURS]


def _claim(way: str, points: Sequence[HeadlinePoint]) -> Claim:
    held = [point.factor > TWICE for point in points]
    sure = [point for point in points if point.least > TWICE]
    never = [point for point in points if point.most < TWICE]
    said = verdict_beyond_chance(points)
    best = max(points, key=lambda point: point.factor)
    worst = min(points, key=lambda point: point.factor)
    return Claim(
        _PLACE,
        f"{way}: more than twice as useful as what is based on LDP",
        f"the rival loses {worst.factor:.2f} ({worst.data}, {worst.cap:g}) to {best.factor:.2f} "
        f"({best.data}, {best.cap:g}) times as much; more than twice at {sum(held)} of "
        f"{len(points)}, beyond chance at {len(sure)}; beyond chance not so at {len(never)}",
        said,
        "" if said is Verdict.AGREES else _REASON,
    )


def verdict_beyond_chance(points: Sequence[HeadlinePoint]) -> Verdict:
    """Of "more than twice": what the limits say, not the factors alone.

    True beyond chance everywhere: agrees; at some points: in part. At none, it differs where it is
    beyond chance not so at any, and where all limits enclose 2 nothing is decided.
    """
    sure = [point.least > TWICE for point in points]
    if any(sure):
        return Verdict.AGREES if all(sure) else Verdict.PARTLY
    never = any(point.most < TWICE for point in points)
    return Verdict.DIFFERS if never else Verdict.UNDECIDED


def facts(points: Sequence[HeadlinePoint]) -> list[str]:
    """What follows, beside the claims."""
    kept = all(point.charge <= point.cap + 1e-9 for point in points)
    places: dict[tuple[str, float], dict[str, HeadlinePoint]] = {}
    for point in points:
        places.setdefault((point.data, point.cap), {})[point.way] = point
    plain = [ways[PLAIN].loss / ways["instantaneous"].loss for ways in places.values()]
    guess = [ways[PLAIN].loss / ways[RIVAL].loss for ways in places.values()]
    waiting = [ways[RIVAL].loss / ways[WAITING].loss for ways in places.values()]
    silent = [
        f"{name} {cap:g}"
        for (name, cap), ways in places.items()
        if ways[RIVAL].loss > ways[SILENCE].loss
    ]
    useless = sorted(
        {
            f"{point.way} on {point.data} {point.cap:g}"
            for point in points
            if point.way in OURS and point.loss > places[point.data, point.cap][SILENCE].loss
        }
    )
    return [
        f"no way leaks more than its cap per value: {'yes' if kept else 'NO'}",
        f"as it leaves, without a guess, randomised response loses {min(plain):.2f} to "
        f"{max(plain):.2f} times as much as the release value by value; the guess alone, which is "
        f"free, makes {min(guess):.2f} to {max(guess):.2f} of that",
        "the rival with its guess loses more than saying nothing at: "
        f"{', '.join(silent) or 'none'}",
        f"ours lose more than saying nothing at: {', '.join(useless) or 'none'}",
        "a batch leaves late: its first value waits for its last one. Beside a rival that waits, "
        f"too, one that does not loses {min(waiting):.2f} to {max(waiting):.2f} times as much",
    ]
