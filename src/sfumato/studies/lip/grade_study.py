"""The study of grades: LIP Figure 11 with verdicts and pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.core.printed import shown_up
from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.panels import Lines, draw_panels, plot
from sfumato.plots.points import MeasuredPoint, Point
from sfumato.studies.data.people_data import Grades, maths_grades, portuguese_grades
from sfumato.studies.lip.grade_points import GRADES, QUICK, Effort, GradePoint, grade_points
from sfumato.studies.lip.grade_release import (
    BEST_LOCAL,
    BEST_TWICE,
    BOUNDED,
    GLOBAL,
    KNOWING_SILENCE,
    LOCAL,
    PUBLISHED,
    RESPONSE,
    RESPONSE_GUESSED,
    SILENCE,
    TUNED,
    TWICE,
    UNARY,
    UNARY_GUESSED,
)
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict, verdict_of

Losses = Mapping[tuple[str, int, str, float], GradePoint]
"""Points by subject, size, mechanism and budget."""
UNIT = 2.0
"""The leakage under local priors at which mechanisms are compared."""
_STYLES = {
    LOCAL: ("-", BLUE),
    GLOBAL: ("-", ORANGE),
    BOUNDED: ("-", GREEN),
    RESPONSE: ("-", GREY),
    TWICE: ("--", GREY),
    UNARY: ("-.", DARK),
    UNARY_GUESSED: (":", DARK),
    RESPONSE_GUESSED: (":", GREY),
    BEST_LOCAL: ("-", RED),
    BEST_TWICE: ("--", RED),
    TUNED: ("--", BLUE),
    PUBLISHED: (":", BLUE),
}


def prepare(setting: Setting) -> Work:
    """Grades in two subjects; made-up ones without real data."""
    effort = QUICK if setting.quick else Effort()
    subjects = [maths_grades(setting), portuguese_grades(setting)]
    steps = effort.splits * len(effort.cases(subjects))
    return Work(steps, partial(_run, subjects, effort, setting.seed))


def _run(
    subjects: Sequence[Grades], effort: Effort, seed: int, show: Callable[[int], None]
) -> Findings:
    points = grade_points(subjects, effort, seed, show)
    names = list(dict.fromkeys(point.mechanism for point in points))
    subject, size = subjects[0].name, effort.sizes[-1]
    table = {(p.mechanism, p.epsilon): p for p in points if (p.subject, p.size) == (subject, size)}
    rows = [
        [name, *(_cell(table.get((name, epsilon))) for epsilon in (0.0, *effort.epsilons))]
        for name in names
    ]
    return Findings(
        title=f"mean distance of grades, {subject}, {size} grades, by epsilon; in brackets: "
        "largest leakage under local priors",
        columns=["mechanism", "nothing", *(f"{epsilon:g}" for epsilon in effort.epsilons)],
        rows=rows,
        records=[asdict(point) for point in points],
        facts=grade_facts(points),
        pictures={
            "budgets": partial(draw, points, "epsilon"),
            "leakages": partial(draw, points, "lip"),
        },
        claims=grade_claims(points),
        stand_ins=[f"grades in {one.name}" for one in subjects if one.stand_in],
        captions={
            "budgets": "Loss against the budget that each mechanism is given",
            "leakages": "Loss against what leaks to somebody who predicts from all that is known",
        },
    )


def _cell(point: GradePoint | None) -> str:
    if point is None:
        return ""
    told = "" if math.isnan(point.lip) else f" ({shown_up(point.lip, 3)})"
    return f"{point.loss:.3f}{told}"


def grade_claims(points: Sequence[GradePoint]) -> list[Claim]:
    """What the paper says of Figure 11, and what students say who were not learnt from."""
    found = {(p.subject, p.size, p.mechanism, p.epsilon): p for p in points}
    return [
        _most_knowing(found),
        *_bounded_against_global(found),
        _local_worst(found),
        _unary(found),
        _published(points),
    ]


def _places(found: Losses) -> list[tuple[str, int, float]]:
    return [(s, n, e) for s, n, name, e in found if name == LOCAL]


def _most_knowing(found: Losses) -> Claim:
    rivals = (GLOBAL, BOUNDED, RESPONSE, TWICE, UNARY)
    lost = {
        name: sorted({e for s, n, e in _places(found) if _less(found, name, s, n, e)})
        for name in rivals
    }
    counts = {name: sum(_less(found, name, s, n, e) for s, n, e in _places(found)) for name in lost}
    compared = len(rivals) * len(_places(found))
    beaten = [
        f"{name} ({counts[name]}, from epsilon {levels[0]:g} on)"
        for name, levels in lost.items()
        if levels
    ]
    return Claim(
        "LIP 11",
        "local priors have the least loss at every epsilon",
        f"in {compared - sum(counts.values())} of {compared} comparisons"
        + (f"; not against {', '.join(beaten)}" if beaten else ""),
        verdict_of([sum(counts.values()) < compared, not beaten]),
        "two epsilon of LDP are a larger budget than epsilon of LIP (erratum N13); few people "
        "decide the rest"
        if beaten
        else "",
    )


def _less(found: Losses, name: str, subject: str, size: int, epsilon: float) -> bool:
    return found[subject, size, name, epsilon].loss < found[subject, size, LOCAL, epsilon].loss


def _bounded_against_global(found: Losses) -> list[Claim]:
    sizes = sorted({n for _, n, _ in _places(found)})
    better = {
        size: [
            found[s, n, BOUNDED, e].loss < found[s, n, GLOBAL, e].loss
            for s, n, e in _places(found)
            if n == size
        ]
        for size in sizes
    }
    told = ", ".join(f"{sum(won)} of {len(won)} ({size} classes)" for size, won in better.items())
    small, large = better[sizes[0]], better[sizes[-1]]
    reason = (
        "guarantees differ: the global channel leaks up to twice as much to somebody who predicts; "
        "and which is better turns with epsilon more than with the number of classes"
    )
    claims = []
    for words, held in (
        ("bounded priors lose less than a global one for two classes", small),
        (
            "a global prior loses less than bounded ones for many classes",
            [not won for won in large],
        ),
    ):
        judged = verdict_of(held)
        seen = f"bounded priors lose less in {told}"
        claims.append(Claim("LIP 11", words, seen, judged, "" if all(held) else reason))
    return claims


def _local_worst(found: Losses) -> Claim:
    rivals = (LOCAL, GLOBAL, BOUNDED)
    held = [
        found[s, n, name, e].loss <= found[s, n, RESPONSE, e].loss
        for s, n, e in _places(found)
        for name in rivals
    ]
    return Claim(
        "LIP 11",
        "LDP at the same epsilon has the largest loss",
        f"LIP loses less than k-ary response in {sum(held)} of {len(held)} comparisons",
        verdict_of(held),
    )


def _unary(found: Losses) -> Claim:
    many = [(s, n, e) for s, n, e in _places(found) if n > 2]
    held = [found[s, n, UNARY, e].loss < found[s, n, RESPONSE, e].loss for s, n, e in many]
    guessed = [
        found[s, n, UNARY_GUESSED, e].loss < found[s, n, RESPONSE_GUESSED, e].loss
        for s, n, e in many
    ]
    return Claim(
        "LIP 11",
        "unary encoding loses less than k-ary response for more than two classes",
        f"in {sum(held)} of {len(held)} settings when one of its bits is told; in {sum(guessed)} "
        f"of {len(guessed)} when the receiver makes the best guess from either",
        verdict_of(held),
        ""
        if all(held)
        else "one symbol from a report is LDP too, and of symmetric channels within epsilon k-ary "
        "response tells the truth most often (erratum N43)",
    )


def _published(points: Sequence[GradePoint]) -> Claim:
    own = [point for point in points if point.mechanism == PUBLISHED]
    worst = max(own, key=lambda point: point.lip / point.epsilon)
    return Claim(
        "LIP 11",
        "the response of Eq. 19 leaks at most epsilon under its prior",
        f"up to {shown_up(worst.lip, 3)} at epsilon {worst.epsilon:g} ({worst.size} classes)",
        verdict(worst.lip <= worst.epsilon),
        "" if worst.lip <= worst.epsilon else "erratum 1; other curves use the certified optimum",
    )


def at_leakage(line: Sequence[GradePoint], level: float) -> float:
    """The loss of a mechanism where it leaks so much, read off between its budgets; NaN beyond."""
    known = sorted((point.lip, point.loss) for point in line)
    leakages, losses = np.array(known).T
    if not leakages[0] <= level <= leakages[-1]:
        return math.nan
    return float(np.interp(level, leakages, losses))


def grade_facts(points: Sequence[GradePoint]) -> list[str]:
    """All grades: losses at one leakage, and what silence loses."""
    facts = []
    for subject in dict.fromkeys(point.subject for point in points):
        own = [p for p in points if (p.subject, p.size) == (subject, GRADES)]
        silent = {p.mechanism: p for p in own if p.mechanism in (SILENCE, KNOWING_SILENCE)}
        told = [
            f"{name} {loss:.2f}"
            for name in (LOCAL, BOUNDED, BEST_LOCAL, TUNED, GLOBAL, RESPONSE, TWICE)
            for loss in [at_leakage([p for p in own if p.mechanism == name], UNIT)]
            if not math.isnan(loss)
        ]
        facts.append(
            f"{subject}, {GRADES} grades, at a leakage of {UNIT:g} to who predicts from all that "
            f"is known: {', '.join(told)}; silence {silent[SILENCE].loss:.2f}, from features "
            f"{silent[KNOWING_SILENCE].loss:.2f}"
        )
    certified = [p for p in points if p.mechanism in (LOCAL, BOUNDED, TUNED)]
    over = sum(p.lip > p.epsilon for p in certified)
    facts.append(f"certified mechanisms over their budget: {over} of {len(certified)}")
    return facts


def draw(points: Sequence[GradePoint], abscissa: str, path: str | Path) -> None:
    """A panel for every subject and number of classes.

    References:
        [LIP, Fig. 11]
    """
    panels = list(dict.fromkeys(f"{p.subject}, {p.size} classes" for p in points))
    lines: list[Point] = []
    for p in points:
        x = getattr(p, abscissa)
        if not math.isnan(x):
            panel = f"{p.subject}, {p.size} classes"
            lines.append(MeasuredPoint(panel, p.mechanism, x, p.loss, p.error))
    height = 5 * math.ceil(len(panels) / 3)
    rows = [panels[start : start + 3] for start in range(0, len(panels), 3)]
    rows[-1] += ["legend"] * (3 - len(rows[-1])) if len(rows) > 1 else ["legend"]
    draw_panels(lines, rows, (16, height), partial(_painted, abscissa), path)


def _painted(abscissa: str, axes: Any, name: str, lines: Lines) -> None:
    if name == "legend":
        axes.set_axis_off()
        for curve, (style, colour) in _STYLES.items():
            axes.plot([], [], style, color=colour, label=curve)
        axes.plot([], [], color=GREEN, alpha=0.4, linewidth=5, label=SILENCE)
        axes.plot([], [], color=BLUE, alpha=0.4, linewidth=5, label=KNOWING_SILENCE)
        axes.legend(frameon=False, loc="center")
        return
    for curve, (style, colour) in _STYLES.items():
        plot(axes, lines, curve, style, colour, None)
    for curve, colour in ((SILENCE, GREEN), (KNOWING_SILENCE, BLUE)):
        axes.axhline(lines[curve][0].y, color=colour, linewidth=5, alpha=0.4)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.3 * min(point.y for point in lines[LOCAL]))
    axes.set_xlim(0, 10.0 if abscissa == "lip" else None)
    words = {"epsilon": "epsilon (nats)", "lip": "largest leakage under local priors (nats)"}
    axes.set_xlabel(words[abscissa])
    axes.set_title(f"11: {name}", fontsize=10)
    axes.set_ylabel("mean distance, in classes")
