"""What the text says of Figure 2 of MDDP, judged by the numbers.

References:
    [MDDP, Sec. VI]
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.plots.points import Point
from sfumato.studies.curve_findings import curves_of
from sfumato.studies.mddp.mddp_people import MEN, PRINTED_CORRELATION, People
from sfumato.studies.mddp.tied_columns import JOINT_SHAPES, TIED_SHAPES
from sfumato.studies.study import Claim, verdict, verdict_of

_NEAR = 0.05
"""Shares that differ by less, in parts of the larger, are called the same."""

Line = dict[float, float]


def claims(people: People, points: Sequence[Point], *, real: bool) -> list[Claim]:
    """Every claim with its verdict; what is said of the table itself, if it was read."""
    lines = {key: {point.x: point.y for point in curve} for key, curve in curves_of(points).items()}
    tied = {name: line for (figure, name), line in lines.items() if figure == "2a"}
    joint = {name: line for (figure, name), line in lines.items() if figure == "2c"}
    return [
        *([_table(people)] if real else []),
        _raised(tied),
        _theory(tied),
        _gain(tied),
        *(_least(lines, kind, words) for kind, words in _KINDS.items()),
        _chain(joint),
        _prevented(lines),
        _ball(lines),
    ]


_KINDS = {"γ": "by the paper's rate", "best attacker": "against the best attacker"}


def _near_one(line: Line) -> float:
    return min(line, key=lambda accuracy: abs(accuracy - 1))


def _table(people: People) -> Claim:
    found, seen = len(people.men), float(people.joint.correlation[0, 1])
    parts = [found == MEN, abs(seen - PRINTED_CORRELATION) < 0.01]
    return Claim(
        "MDDP 2",
        f"{MEN:,} men aged 30 to 39; weight and pressure correlated by {PRINTED_CORRELATION:g}",
        f"{found:,} men, correlation {seen:.3f}",
        verdict_of(parts),
        "" if all(parts) else "erratum N26",
    )


def _raised(tied: dict[str, Line]) -> Claim:
    mine, alone = tied["γ"], tied["γ without correlation"]
    held = [mine[x] > alone[x] for x in mine]
    at = _near_one(mine)
    return Claim(
        "MDDP 2a",
        "who knows the equation discloses more",
        f"rate {mine[at]:.3f} against {alone[at]:.4f} at accuracy {at:g}; more at {sum(held)} of "
        f"{len(held)} accuracies",
        verdict_of(held),
    )


def _theory(tied: dict[str, Line]) -> Claim:
    rate, best = tied["γ"], tied["on the equation, best attacker"]
    at = _near_one(rate)
    held = [abs(rate[x] - best[x]) <= _NEAR * max(rate[x], best[x]) for x in rate]
    return Claim(
        "MDDP 2a",
        "the rate is what an attacker reaches",
        f"rate {rate[at]:.3f}, the best attacker {best[at]:.3f} at accuracy {at:g}; the same at "
        f"{sum(held)} of {len(held)} accuracies",
        verdict_of(held),
        "" if all(held) else "erratum N20: true where the equation is no steeper than 1",
    )


def _gain(tied: dict[str, Line]) -> Claim:
    rate, bound = tied["γ"], tied["bound of Thm. 3"]
    held = [rate[x] <= bound[x] for x in rate]
    empty = [x for x in bound if bound[x] >= 1]
    return Claim(
        "MDDP 2a",
        "the rate keeps the bound of Theorem 3",
        f"at {sum(held)} of {len(held)} accuracies; the bound is 1 or more, and says nothing, at "
        f"{len(empty)}",
        verdict(all(held)),
    )


def _least(lines: dict[tuple[str, str], Line], kind: str, words: str) -> Claim:
    shapes = {shape: lines["2b", f"{shape}, {kind}"] for shape in TIED_SHAPES}
    uniform = shapes["uniform"]
    others = [line for shape, line in shapes.items() if shape != "uniform"]
    held = [all(uniform[x] < line[x] for line in others) for x in uniform]
    at = _near_one(uniform)
    told = ", ".join(f"{shape} {line[at]:.3f}" for shape, line in shapes.items())
    return Claim(
        "MDDP 2b",
        f"uniform noise discloses least, {words}",
        f"at accuracy {at:g}: {told}; least at {sum(held)} of {len(held)} accuracies",
        verdict_of(held),
        "" if all(held) else "erratum N24",
    )


def _chain(joint: dict[str, Line]) -> Claim:
    bound, truth = joint["bound of Thm. 4"], joint["best attacker"]
    held = [truth[x] <= bound[x] for x in truth]
    at = _near_one(truth)
    return Claim(
        "MDDP 2c",
        "the bound of Theorem 4 holds",
        f"at accuracy {at:g} the bound is {bound[at]:.5f}, the best attacker reaches "
        f"{truth[at]:.5f}; it holds at {sum(held)} of {len(held)} accuracies",
        verdict(all(held)),
        "" if all(held) else "erratum 25: it forgets what the marginals tell",
    )


def _prevented(lines: dict[tuple[str, str], Line]) -> Claim:
    known, alone = (lines["2d", f"ball, {who}"] for who in ("best attacker", "without correlation"))
    at = _near_one(known)
    held = [known[x] <= alone[x] * (1 + _NEAR) for x in known]
    return Claim(
        "MDDP 2d",
        "noise that is jointly uniform prevents the gain",
        f"it rises from {alone[at]:.5f} to {known[at]:.5f} at accuracy {at:g}",
        verdict_of(held),
        "" if all(held) else "erratum N23",
    )


def _ball(lines: dict[tuple[str, str], Line]) -> Claim:
    known = {shape: lines["2d", f"{shape}, best attacker"] for shape in JOINT_SHAPES}
    ball = known["ball"]
    held = [all(ball[x] <= line[x] for line in known.values()) for x in ball]
    at = _near_one(ball)
    told = ", ".join(f"{shape} {line[at]:.5f}" for shape, line in known.items())
    return Claim(
        "MDDP 2d",
        "and discloses less than other noise",
        f"against the best attacker at accuracy {at:g}: {told}; least at {sum(held)} of "
        f"{len(held)} accuracies",
        verdict_of(held),
        "" if all(held) else "erratum N23: Gaussian noise is the least",
    )
