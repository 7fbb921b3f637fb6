"""What the text says of Figures 2 and 4 to 6 of LIP, judged by the numbers.

References:
    [LIP, Sec. II], [LIP, Sec. III]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

from sfumato.core.printed import shown_up
from sfumato.studies.curve_findings import Curves
from sfumato.studies.lip.lip_discrete import BUDGETS
from sfumato.studies.study import Claim, verdict, verdict_of

_ALIKE = 1e-6
_STRAIGHT = 0.02
"""A curve is called straight if its steps differ by at most so much of the largest."""

Line = dict[float, float]
"""A curve: ordinates by abscissae."""


def lines_of(curves: Curves) -> dict[tuple[str, str], Line]:
    """The curves by figure and name."""
    return {key: {point.x: point.y for point in points} for key, points in curves.items()}


def symbol_claims(curves: Curves) -> list[Claim]:
    """Every claim with its verdict."""
    lines = lines_of(curves)
    return [
        _between(lines),
        _looser(lines),
        _wider_gap(lines),
        _notions(lines),
        _straight("LIP 5a", "a", lines),
        _rare(lines),
        _straight("LIP 5b", "b", lines),
        _order(lines),
        _correlated(lines),
        *_estimated(lines),
    ]


Lines = Mapping[tuple[str, str], Line]


def _between(lines: Lines) -> Claim:
    exact = [lines["2a", f"{name}, exact"] for name in ("even", "one rare")]
    held = [x - _ALIKE <= y <= 2 * x + _ALIKE for line in exact for x, y in line.items()]
    return Claim(
        "LIP 2a",
        "epsilon under a prior implies between epsilon and 2 epsilon without one",
        f"so at {sum(held)} of {len(held)} points",
        verdict_of(held),
    )


def _gaps(lines: Lines, figure: str, name: str) -> Line:
    bound, exact = lines[figure, f"{name}, bound"], lines[figure, f"{name}, exact"]
    return {x: bound[x] - exact[x] for x in exact}


def _looser(lines: Lines) -> Claim:
    rare, even = (max(_gaps(lines, "2a", name).values()) for name in ("one rare", "even"))
    parts = [rare > _ALIKE, even <= _ALIKE]
    return Claim(
        "LIP 2a",
        "the bound is loose under a skewed prior and met under the even one",
        f"largest gap {rare:.2g} under the skewed prior, {even:.2g} under the even one",
        verdict_of(parts),
        "" if all(parts) else "erratum N2: of three symbols or more the bound is the exact value",
    )


def _wider_gap(lines: Lines) -> Claim:
    pairs = [
        (_gaps(lines, "2b", name)[x], gap)
        for name in ("even", "one rare")
        for x, gap in _gaps(lines, "2a", name).items()
        if x > 0
    ]
    held = [wide > narrow + _ALIKE for wide, narrow in pairs]
    return Claim(
        "LIP 2b",
        "the gap between bound and truth is larger for quotients of posteriors",
        f"at {sum(held)} of {len(held)} points; at the others both gaps are nil",
        verdict_of(held),
        "" if all(held) else "at small epsilon the bound is reached",
    )


def _notions(lines: Lines) -> Claim:
    held = [
        min(lines[panel, "LDP"][x], lines[panel, "LIP"][x])
        >= max(lines[panel, "MIP"][x], lines[panel, "MIL"][x]) - _ALIKE
        for panel in ("4a", "4b")
        for x in lines[panel, "LDP"]
    ]
    return Claim(
        "LIP 4",
        "leakage under LDP and LIP is never below that under MIP and MIL",
        f"so at {sum(held)} of {len(held)} points",
        verdict_of(held),
    )


def bend(line: Line) -> float:
    """How much the steps of a curve differ, in parts of the largest.

    Examples:
        >>> bend({1: 2.0, 2: 4.0, 3: 6.0}), bend({1: 1.0, 2: 2.0, 3: 4.0})
        (0.0, 0.5)
    """
    steps = [(line[right] - line[left]) / (right - left) for left, right in pairwise(line)]
    return 1 - min(steps) / max(steps)


def _straight(place: str, panel: str, lines: Lines) -> Claim:
    kinds = {
        kind: max(
            bend(line)
            for (figure, name), line in lines.items()
            if figure == f"5{panel}" and name.endswith(kind)
        )
        for kind in ("bound", "worst")
    }
    return Claim(
        place,
        "leakage grows linearly with the number of releases",
        f"steps differ by up to {kinds['bound']:.1%} of the largest in the bound, by up to "
        f"{kinds['worst']:.0%} in what the worst channel leaks",
        verdict_of(bent <= _STRAIGHT for bent in kinds.values()),
        "" if kinds["worst"] <= _STRAIGHT else "true of the bound, and of exact leakage in the end",
    )


def _rare(lines: Lines) -> Claim:
    held, told = [], []
    for epsilon in BUDGETS:
        for kind in ("bound", "worst"):
            ends = [
                list(lines["5a", f"{name}, ε = {epsilon:g}, {kind}"].values())[-1]
                for name in ("even", "one common", "one rare")
            ]
            held.append(ends[0] > ends[1] > ends[2])
            if kind == "worst":
                numbers = ", ".join(shown_up(end, 3) for end in ends)
                told.append(f"{numbers} at {epsilon:g}")
    return Claim(
        "LIP 5a",
        "the smaller the least probability, the less is leaked in the end",
        f"least probability .25, .1, .01: the worst channel leaks {'; '.join(told)}",
        verdict_of(held),
        "" if all(held) else "erratum N10",
    )


def _ends(lines: Lines, kind: str, epsilon: float) -> list[Line]:
    return [
        line
        for (figure, name), line in lines.items()
        if figure == "5c" and name.endswith(f"ε = {epsilon:g}, {kind}")
    ]


def _order(lines: Lines) -> Claim:
    spreads = [
        max(ends) - min(ends)
        for epsilon in BUDGETS
        if (ends := [list(line.values())[-1] for line in _ends(lines, "bound", epsilon)])
    ]
    return Claim(
        "LIP 5c",
        "once all values are released their order does not matter",
        f"the bounds of all orders differ by at most {max(spreads):.1g}",
        verdict(max(spreads) <= _ALIKE),
    )


def _correlated(lines: Lines) -> Claim:
    every = [line for epsilon in BUDGETS for line in _ends(lines, "worst", epsilon)]
    bent = max(bend(line) for line in every)
    return Claim(
        "LIP 5c",
        "leakage of several values does not grow linearly",
        f"the exact leakage of independent values does: its steps differ by {bent:.1g}",
        verdict(bent > _STRAIGHT),
        "" if bent > _STRAIGHT else "erratum N11: it is the bound that does not",
    )


def _estimated(lines: Lines) -> Iterable[Claim]:
    for panel, epsilon in (("6a", 0.5), ("6b", 2.0)):
        true, bound = lines[panel, "Eq. 19, median"], lines[panel, "η + ε"]
        over = [x for x in true if true[x] > bound[x]]
        last = max(true)
        yield Claim(
            f"LIP {panel}",
            f"with a prior from n samples the mechanism leaks at most eta + epsilon ({epsilon:g})",
            f"of {last:,.0f} samples it leaks {shown_up(true[last], 4)} (median), where "
            f"{shown_up(bound[last], 4)} is promised; over it at {len(over)} of {len(true)} sizes",
            verdict(not over),
            "erratum N12: Eq. 19 leaks more than epsilon where a symbol is rare" if over else "",
        )
    gaps = {name: line for (panel, name), line in lines.items() if panel == "6c" and "ε" in name}
    shrunk = {name: line[max(line)] / line[min(line)] for name, line in gaps.items()}
    yield Claim(
        "LIP 6c",
        "the gap to what the estimate promises falls to 0 as samples are added",
        f"from the fewest samples to the most it falls to {max(shrunk.values()):.1%} or less",
        verdict(max(shrunk.values()) < 0.05),
    )
