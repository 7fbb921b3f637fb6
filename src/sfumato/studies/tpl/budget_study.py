"""The study of budgets under correlation: TPL Figures 8 and 9."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sfumato.plots.colours import BLUE, GREY
from sfumato.plots.panels import Lines, draw_panels, finish, plot, plot_all
from sfumato.plots.points import MeasuredPoint, Point
from sfumato.studies.curve_findings import Curves, curve_findings, curves_of
from sfumato.studies.study import Claim, Findings, Setting, Work, verdict, verdict_of
from sfumato.studies.tpl.budget_schemes import (
    ALPHA,
    CONSTANT,
    DRAWN,
    EIGHT,
    LEAST,
    PLAIN,
    QUICK,
    SEVEN,
    SHORT,
    SHOWN_ALPHA,
    SHOWN_RELEASES,
    STRONG,
    Lengths,
    budget_points,
)

# Levels are reached within rounding of a search.
_REACHED = 1e-6
_STRONG_CORRELATION = 0.01
_DECAYED = 2.0
"""How many times as much noise is significantly less utility."""
_SCHEMES = """
    Algorithm 7 | - | RED | Algorithm 7
    Algorithm 8 | - | ORANGE | Algorithm 8
    α/T | : | DARK | α/T
    largest constant | - | GREEN | largest constant
    least noise | - | BLUE | least noise
"""


def prepare(setting: Setting) -> Work:
    """Nothing is read; fewer settings if it is to be quick."""
    lengths = QUICK if setting.quick else Lengths()
    return Work(lengths.steps, partial(_run, lengths, setting.seed))


def _run(lengths: Lengths, seed: int, show: Callable[[int], None]) -> Findings:
    points = budget_points(lengths, seed, show)
    claims = budget_claims(points)
    shown = [point for point in points if not point.figure.endswith("leakage")]
    found = curve_findings(points, _facts(points), {"noise": partial(draw, points)}, shown)
    return replace(found, claims=claims)


def budget_claims(points: Sequence[Point]) -> list[Claim]:
    """What the paper says of Figures 8 and 9, and what the budgets say."""
    curves = curves_of(points)
    reached = [point.y for point in curves["8, leakage", EIGHT]]
    noise = {name: {p.x: p.y for p in curves["8, noise", name]} for name in (SEVEN, EIGHT)}
    noise[CONSTANT] = {p.x: p.y for p in curves["8, noise", CONSTANT]}
    dearer = [steps for steps in noise[EIGHT] if noise[EIGHT][steps] > noise[CONSTANT][steps]]
    told = ", ".join(
        f"{noise[EIGHT][steps]:.2f} against {noise[CONSTANT][steps]:.2f} (T = {steps:g})"
        for steps in dearer
    )
    return [
        Claim(
            "TPL 8",
            "with Algorithm 8 every moment leaks exactly the level",
            f"between {min(reached):.6f} and {max(reached):.6f} of {SHOWN_ALPHA:g} at "
            f"{SHOWN_RELEASES} moments",
            verdict(all(abs(y - SHOWN_ALPHA) < _REACHED for y in reached)),
        ),
        Claim(
            "TPL 8",
            "Algorithm 8 has better utility than Algorithm 7",
            f"mean noise {noise[EIGHT][SHOWN_RELEASES]:.3f} against "
            f"{noise[SEVEN][SHOWN_RELEASES]:.3f} over {SHOWN_RELEASES} releases",
            verdict(all(noise[EIGHT][t] < noise[SEVEN][t] for t in noise[EIGHT])),
        ),
        Claim(
            "TPL 8",
            "its utility is better because it reaches the level at every moment",
            "a constant, which reaches it only in the middle, has "
            + (f"less noise: {told}" if dearer else "more noise for every number of releases"),
            verdict(not dearer),
            "leaking more is not adding less noise (erratum N42)" if dearer else "",
        ),
        _short(curves),
        *_decay(curves),
    ]


def beaten_until(curves: Curves, figure: str, rival: str) -> list[float]:
    """Where a rival has less noise than both of the paper's algorithms."""
    lines = [curves[figure, name] for name in (SEVEN, EIGHT, rival)]
    return [c.x for a, b, c in zip(*lines, strict=True) if c.y < min(a.y, b.y)]


def _short(curves: Curves) -> Claim:
    lines = {name: curves["9a, printed", name] for name in (SEVEN, EIGHT, PLAIN, LEAST)}
    better = [b.y < a.y for a, b in zip(lines[SEVEN], lines[EIGHT], strict=True)]
    place = next(i for i, point in enumerate(lines[SEVEN]) if point.x >= 5)
    at = {name: line[place] for name, line in lines.items()}
    beaten = beaten_until(curves, "9a, printed", PLAIN)
    return Claim(
        "TPL 9",
        "(a) Algorithm 8 outperforms Algorithm 7 when T is short",
        f"T = {at[SEVEN].x:g}, s = {STRONG:g}: mean noise {at[SEVEN].y:.2f} (7), "
        f"{at[EIGHT].y:.2f} (8); α/T {at[PLAIN].y:.2f}, least noise {at[LEAST].y:.2f}",
        verdict(all(better)),
        "true of these two; α/T, which needs no matrix, has less noise than both up to "
        f"T = {max(beaten):g} (erratum N42)"
        if beaten
        else "",
    )


def _decay(curves: Curves) -> list[Claim]:
    claims = []
    for name in ("printed", "s/50"):
        figure = f"9b, {name}"
        noise = {
            curve: next(p.y for p in curves[figure, curve] if p.x == _STRONG_CORRELATION)
            for curve in (SEVEN, EIGHT, LEAST)
        }
        times = [y * ALPHA for y in noise.values()]
        claims.append(
            Claim(
                "TPL 9",
                f"(b) utility decays significantly under s = {_STRONG_CORRELATION:g} "
                f"({'Eq. 28 as printed' if name == 'printed' else 's/50 in every cell'})",
                f"over {SHORT} releases, in noise without correlation: "
                + ", ".join(f"{c} {t:.1f}" for c, t in zip(noise, times, strict=True)),
                verdict_of([time > _DECAYED for time in times]),
            )
        )
    return claims


def _facts(points: Sequence[Point]) -> list[str]:
    leaked = [p.y / ALPHA for p in points if p.figure.startswith("9") and "leakage" in p.figure]
    curves = curves_of(points)
    drawn = [
        (abs(a.y - b.y), b)
        for figure, curve in curves
        if curve == "least noise, geometric"
        for a, b in zip(curves[figure, curve], curves[figure, DRAWN], strict=True)
    ]
    far = sum(isinstance(b, MeasuredPoint) and apart > 3 * b.error for apart, b in drawn)
    return [
        f"no moment of any scheme leaks more than {max(leaked):.6f} of its level",
        f"noise as drawn is more than three standard errors off in {far} of {len(drawn)} settings",
    ]


def draw(points: Sequence[Point], path: str | Path) -> None:
    """Budgets and what they leak; noise against releases and correlation.

    References:
        [TPL, Fig. 8], [TPL, Fig. 9]
    """
    rows = [
        ["8", "9a, printed", "9b, printed"],
        ["8, leakage", "9a, s/50", "9b, s/50"],
    ]
    draw_panels(points, rows, (16, 9), _painted, path)


def _painted(axes: Any, name: str, lines: Lines) -> None:
    plot_all(axes, lines, _SCHEMES)
    if name.startswith("8"):
        axes.set_xlabel("moment")
        leakage = name.endswith("leakage")
        axes.set_ylim(0, 1.5 if leakage else 1.1)
        told = "what every moment leaks" if leakage else "budgets"
        title = f"8: {told}, α = {SHOWN_ALPHA:g}, T = {SHOWN_RELEASES}"
        finish(axes, title, "leakage (nats)" if leakage else "budget (nats)")
        return
    plot(axes, lines, "least noise, geometric", "--", BLUE, "least noise, geometric")
    plot(axes, lines, DRAWN, " ", BLUE, "as drawn", marker=".")
    axes.axhline(1 / ALPHA, color=GREY, linewidth=1, label="no correlation")
    axes.set_yscale("log")
    axes.set_xscale("log")
    panel, reading = name.split(", ")
    axes.set_ylim(bottom=0.02 if panel == "9a" else 0.2)  # room for the legend
    axes.set_xlabel("releases" if panel == "9a" else "s (a smaller one is more correlation)")
    said = f"s = {STRONG:g}" if panel == "9a" else f"T = {SHORT}"
    words = "Eq. 28 as printed" if reading == "printed" else "s/50 in every cell"
    finish(axes, f"{panel}: α = {ALPHA:g}, {said}; {words}", "mean absolute noise")
