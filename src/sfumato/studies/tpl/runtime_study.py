"""The study of runtimes: TPL Figure 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, DARK, GREEN, GREY, ORANGE, RED
from sfumato.plots.panels import Lines, draw_panels, finish, plot
from sfumato.studies.curve_findings import curve_findings
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict, verdict_of
from sfumato.studies.tpl.quantification_runtime import (
    DEEP,
    ONE,
    QUICK,
    SAME_MATRICES,
    SAME_SIZE,
    WHOLE,
    RuntimePoint,
    Sizes,
    differences,
    runtime_points,
)

# Solvers give about nine digits.
_SAME = 1e-8
_MUCH = 10.0
"""How many times as fast is significantly faster."""
# A runtime that changes by less than this factor over all levels is stable; timings jitter.
_STABLE = 2.0
# Within this factor two runtimes tie.
_CLOSE = 1.5
_COLOURS = {
    "HiGHS": GREY,
    "Algorithm 1": RED,
    "Algorithm 2": DARK,
    "Algorithm 3": ORANGE,
    "Algorithms 2 and 3": ORANGE,
    "Algorithm 5": GREEN,
    "Algorithms 2, 4 and 5": GREEN,
    "Algorithm 4, up to 1": GREEN,
    "Algorithm 4, up to 10": ORANGE,
    ONE: BLUE,
    WHOLE: BLUE,
}
_TITLES = {
    "6a": ("one value", "size of the matrix"),
    "6b": ("computed in advance", "size of the matrix"),
    "6c": ("all releases, with what is computed in advance", "releases"),
    "6d": ("one value", "leakage beside it (nats)"),
}


def prepare(setting: Setting) -> Work:
    """Nothing is read; fewer and smaller matrices if it is to be quick."""
    sizes = QUICK if setting.quick else Sizes()
    return Work(sizes.steps + 1, partial(_run, sizes, setting.seed))


def _run(sizes: Sizes, seed: int, show: Callable[[int], None]) -> Findings:
    points = runtime_points(sizes, seed, show)
    apart = differences(seed)
    show(sizes.steps + 1)
    claims = runtime_claims(points, apart)
    size = max(sizes.rows)
    facts = [
        f"one value of {size} rows takes {_at(points, '6a', ONE, size):.1e} of what HiGHS takes, "
        f"Algorithm 1 {_at(points, '6a', 'Algorithm 1', size):.1e}",
        "seconds are measured: another run gives other numbers",
    ]
    found = curve_findings(list(points), facts, {"runtimes": partial(draw, points)})
    return replace(found, claims=claims)


def runtime_claims(points: Sequence[RuntimePoint], apart: Mapping[str, float]) -> list[Claim]:
    """What the paper says of Figure 6, and what was measured."""
    lines: dict[tuple[str, str], list[RuntimePoint]] = {}
    for point in points:
        lines.setdefault((point.figure, point.curve), []).append(point)
    faster = [
        point.y * _MUCH <= 1 for number in (1, 3, 5) for point in lines["6a", f"Algorithm {number}"]
    ]
    slowest = max(p.y for number in (1, 3, 5) for p in lines["6a", f"Algorithm {number}"])
    growing = {
        curve: line[-1].seconds > line[0].seconds
        for (figure, curve), line in lines.items()
        if figure == "6b"
    }
    shallow, deep = (lines["6b", f"Algorithm 4, up to {level:g}"][-1] for level in DEEP)
    return [
        Claim(
            "TPL 6",
            "Algorithms 1, 3 and 5 give what a solver gives "
            f"({SAME_MATRICES} random matrices of {SAME_SIZE} rows)",
            "largest differences from the loss function here: "
            + ", ".join(f"{name} {value:.0e}" for name, value in apart.items()),
            verdict(max(apart.values()) < _SAME),
            "with the misprints mended (erratum 18)",
        ),
        Claim(
            "TPL 6",
            "(a) Algorithms 1, 3 and 5 are significantly faster than a solver",
            f"they take at most {slowest:.1e} of what HiGHS takes",
            verdict_of(faster),
        ),
        Claim(
            "TPL 6",
            "(b) what is computed in advance takes longer for larger n, and Algorithm 4 longer for "
            "a larger a_m",
            f"Algorithm 4 takes {deep.seconds / shallow.seconds:.1f} times as long up to "
            f"{DEEP[1]:g} as up to {DEEP[0]:g}, n = {deep.x:g}; {sum(growing.values())} of "
            f"{len(growing)} curves rise",
            verdict_of([*growing.values(), deep.seconds > shallow.seconds]),
        ),
        _best_by_length(lines),
        _by_level(lines),
    ]


def _best_by_length(lines: Mapping[tuple[str, str], list[RuntimePoint]]) -> Claim:
    names = ("Algorithm 1", "Algorithms 2 and 3", "Algorithms 2, 4 and 5")
    lengths = [point.x for point in lines["6c", names[0]]]
    winners = [
        min(names, key=lambda name: lines["6c", name][place].seconds)
        for place in range(len(lengths))
    ]
    said = [names[0] if x < 5 else names[1] if x <= 300 else names[2] for x in lengths]
    turns = [
        f"{winner} from T = {x:g}"
        for x, winner, last in zip(lengths, winners, ["", *winners], strict=False)
        if winner != last
    ]
    ours = max(point.y / lines["6c", names[0]][0].y for point in lines["6c", WHOLE][1:])
    held = [
        lines["6c", wanted][place].seconds <= _CLOSE * lines["6c", winner][place].seconds
        for place, (winner, wanted) in enumerate(zip(winners, said, strict=True))
    ]
    return Claim(
        "TPL 6",
        "(c) Algorithm 1 is fastest for small T, Algorithm 3 for T of 5 to 300, Algorithm 5 beyond",
        f"{', '.join(turns)}; the loss function here takes at most {ours:.1e} of Algorithm 1's "
        f"time from T = {lengths[1]:g} on",
        verdict_of(held),
        "" if all(held) else "where they cross depends on the machine and the language",
    )


def _by_level(lines: Mapping[tuple[str, str], list[RuntimePoint]]) -> Claim:
    one = lines["6d", "Algorithm 1"]
    late = [point.seconds for point in one if point.x >= DEEP[1]]
    others = {
        name: max(p.seconds for p in line) / min(p.seconds for p in line)
        for name in ("Algorithm 3", "Algorithm 5", "HiGHS")
        for line in [lines["6d", name]]
    }
    return Claim(
        "TPL 6",
        "(d) Algorithm 1 takes longer for a larger alpha, up to about 10; the others hardly do",
        f"Algorithm 1 {one[-1].seconds / one[0].seconds:.1f} times as long at {one[-1].x:g} as "
        f"at {one[0].x:g}; largest over least: "
        + ", ".join(f"{name} {factor:.1f}" for name, factor in others.items()),
        verdict_of(
            [
                one[-1].seconds > one[0].seconds,
                max(late) < _STABLE * min(late),
                *(factor < _STABLE for factor in others.values()),
            ]
        ),
    )


def draw(points: Sequence[RuntimePoint], path: str | Path) -> None:
    """The four panels, as parts of the runtime of HiGHS.

    References:
        [TPL, Fig. 6]
    """
    draw_panels(points, [["6a", "6b"], ["6c", "6d"]], (12, 9), _painted, path)


def _painted(axes: Any, name: str, lines: Lines) -> None:
    for curve in lines:
        style = "--" if curve == WHOLE and name == "6a" else "-"
        plot(axes, lines, curve, style, _COLOURS[curve], curve, marker="o")
    if name != "6d":
        axes.axhline(1.0, color=GREY, linewidth=1.5, label="HiGHS")
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=300)  # room for the legend
    title, abscissa = _TITLES[name]
    axes.set_xlabel(abscissa)
    finish(axes, f"{name}: {title}", "part of the time of HiGHS", place="upper right", columns=2)


def _at(points: Sequence[RuntimePoint], figure: str, curve: str, x: float) -> float:
    return next(p.y for p in points if (p.figure, p.curve, p.x) == (figure, curve, x))
