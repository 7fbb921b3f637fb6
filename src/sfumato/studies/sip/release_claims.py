"""Claims of SIP about its comparisons on real data, judged by what was released.

Each is judged twice where it matters: as the paper compares, at equal promises and as released; and
at equal true leakage, with the receiver's best guess, which costs no privacy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from sfumato.core.printed import shown_up
from sfumato.studies.sip.compared_releases import SILENCE, Released, by_curve
from sfumato.studies.study import Claim, verdict_of

_TWICE = 2.0


def rival_rows(points: Sequence[Released]) -> list[list[str]]:
    """A table: loss as released, with the best guess, and the true leakage."""
    curves = by_curve(points)
    budgets = sorted({point.epsilon for point in points if point.curve != SILENCE})
    nothing = curves.pop(SILENCE)[0]
    rows = [[SILENCE, *[f"{nothing.loss:.3f} +- {2 * nothing.error:.3f}"] * len(budgets)]]
    return rows + [[curve, *map(_cell, line)] for curve, line in curves.items()]


def _cell(point: Released) -> str:
    guess = f" / {point.received:.3f}" if abs(point.received - point.loss) > 1e-4 else ""
    leaked = shown_up(point.leakage, 3)
    return f"{point.loss:.3f}{guess} +- {2 * point.error:.3f} ({leaked})"


def better_than_twice_epsilon(
    figure: str, points: Sequence[Released], ours: Sequence[str], rival: str
) -> Claim:
    """Whether each of our ways at epsilon loses less than the rival at 2 epsilon."""
    curves = by_curve(points)
    theirs = {point.epsilon: point for point in curves[rival]}
    pairs = [(point, theirs[point.epsilon]) for name in ours for point in curves[name]]
    as_released = [mine.loss < other.loss for mine, other in pairs]
    guessed = [mine.loss < other.best for mine, other in pairs]
    return Claim(
        figure,
        "at epsilon all SIP releases lose less than randomised response at 2 epsilon",
        f"as released in {sum(as_released)} of {len(pairs)} comparisons, against its best guess in "
        f"{sum(guessed)}; it leaks {_leakages(curves[rival])} per value",
        verdict_of([*as_released, *guessed]),
        "" if all(guessed) else "the receiver's best guess is free and was left out",
    )


def steadily_better(figure: str, points: Sequence[Released], widths: Sequence[str]) -> Claim:
    """Whether wider batches lose less, beyond what chance does."""
    curves = by_curve(points)
    lines = zip(*(curves[name] for name in widths), strict=True)
    steps = [(narrow, wide) for line in lines for narrow, wide in pairwise(line)]
    better = [wide.loss <= narrow.loss for narrow, wide in steps]
    clearly = [
        wide.loss > narrow.loss + 2 * (wide.error**2 + narrow.error**2) ** 0.5
        for narrow, wide in steps
    ]
    return Claim(
        figure,
        "larger batches lose less",
        f"in {sum(better)} of {len(steps)} steps from one width to the next; more, beyond two "
        f"standard errors, in {sum(clearly)}",
        verdict_of(better),
        "" if all(better) else "erratum N5, and channels of wide batches are approximations",
    )


def truncation_helps(
    figure: str, points: Sequence[Released], cut: str, plain: str, ours: Sequence[str]
) -> Claim:
    """Whether cutting values off helps randomised response, and still loses to ours."""
    curves = by_curve(points)
    helps = [a.loss < b.loss for a, b in zip(curves[cut], curves[plain], strict=True)]
    loses = [
        point.loss < rival.loss
        for name in ours
        for point, rival in zip(curves[name], curves[cut], strict=True)
    ]
    return Claim(
        figure,
        "truncated perturbation (ToPS, ToPL) loses less than randomised response, more than SIP",
        f"less than randomised response at {sum(helps)} of {len(helps)} budgets, more than ours in "
        f"{sum(loses)} of {len(loses)} comparisons",
        verdict_of([*helps, *loses]),
        ""
        if all(helps)
        else "bins of equal share leave little to cut off; unbiased reports go to its ends",
    )


def equal_leakage(
    figure: str, points: Sequence[Released], ours: Sequence[str], rival: str
) -> Claim:
    """The paper's "more than twice": losses of rival and ours, both certified at epsilon."""
    curves = by_curve(points)
    ratios = {
        name: [
            other.best / point.best if point.best > 0 else float("inf")
            for point, other in zip(curves[name], curves[rival], strict=True)
        ]
        for name in ours
    }
    said = "; ".join(
        f"{name} {_range(found)} (best at {curves[name][found.index(max(found))].epsilon:g})"
        for name, found in ratios.items()
    )
    everywhere = [ratio >= _TWICE for found in ratios.values() for ratio in found]
    return Claim(
        figure,
        "utility improves more than twofold on LDP mechanisms",
        f"loss of calibrated randomised response with its best guess over ours, both certified at "
        f"the same leakage: {said}",
        verdict_of(everywhere),
        "" if all(everywhere) else "the rival is given the same leakage and its best guess",
    )


def _range(values: Iterable[float]) -> str:
    found = list(values)
    return f"{min(found):.2f} to {max(found):.2f}"


def _leakages(line: Sequence[Released]) -> str:
    return ", ".join(f"{shown_up(point.leakage, 2)} at {point.epsilon:g}" for point in line)
