"""What TPL says of its Figures 3, 4, 5 and 7 and of Table 2, and what the numbers say."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

from sfumato.plots.points import Point
from sfumato.studies.curve_findings import Curves, curves_of
from sfumato.studies.study import Claim, verdict, verdict_of
from sfumato.studies.tpl.leakage_over_time import BUDGET, DEGREES, RELEASES, SIZES
from sfumato.studies.tpl.smoothed_matrices import Reading

# Sums of ten budgets, rounded up at each step.
_SAME = 1e-9
_SETTLED = 0.95
"""Part of its supremum from which on a leakage no longer grows visibly."""
# "Almost 8" and "approximately 80" timestamps, read off a picture.
_SAID = {"7a": 8, "7b": 80}
# By how much a number that was read off a picture may be out.
_READ_OFF = 1.6
# "Not substantially lower": more than half.
_SUBSTANTIAL = 0.5


def leakage_claims(points: Sequence[Point]) -> list[Claim]:
    """Every claim with its verdict."""
    curves = curves_of(points)
    return [
        *_over_time(curves),
        _user_level(curves),
        *_function(curves),
        _suprema(curves),
        *_degrees(curves),
    ]


def growth_time(line: Sequence[Point], supremum: float) -> float:
    """How many releases it takes to come near the supremum; infinite if more than are shown."""
    return next((point.x for point in line if point.y >= _SETTLED * supremum), math.inf)


def _ordinates(curves: Curves, figure: str, curve: str) -> list[float]:
    return [point.y for point in curves[figure, curve]]


def _over_time(curves: Curves) -> list[Claim]:
    backward = _ordinates(curves, "3a", "identity")
    between = _ordinates(curves, "3a", "(.8, .2; 0, 1)")
    alone = _ordinates(curves, "3a", "no correlation")
    linear = all(abs(y - BUDGET * t) < _SAME for t, y in enumerate(backward, 1))
    flat = all(y == BUDGET for y in alone)
    inside = all(a <= y <= b for a, y, b in zip(alone, between, backward, strict=True))
    forward = _ordinates(curves, "3b", "identity")
    return [
        Claim(
            "TPL 3",
            "BPL grows linearly under the strongest correlation, stays at .1 without any, and lies "
            "between under (.8, .2; 0, 1)",
            f"after {RELEASES} releases {backward[-1]:.4f}, {alone[-1]:.4f} and {between[-1]:.4f}",
            verdict_of([linear, flat, inside]),
        ),
        Claim(
            "TPL 3",
            "FPL is lowest at time 1 and highest at time 10",
            f"{forward[0]:.4f} at time 1 and {forward[-1]:.4f} at time {RELEASES}",
            verdict(forward[0] < forward[-1]),
            "the sentence has it upside down: what comes later adds to what is earlier "
            "(erratum N41)",
        ),
    ]


def _user_level(curves: Curves) -> Claim:
    whole = {name: _ordinates(curves, "3c", name) for name in ("identity", "(.8, .2; 0, 1)")}
    total = BUDGET * RELEASES
    reached = all(abs(y - total) < _SAME for y in whole["identity"])
    inside = all(BUDGET - _SAME <= y <= total + _SAME for line in whole.values() for y in line)
    return Claim(
        "TPL Table 2",
        "one moment leaks between epsilon and T epsilon, and T epsilon under the strongest "
        "correlation: as much as all moments together",
        f"{whole['identity'][0]:.4f} at every moment of the identity, at most "
        f"{max(whole['(.8, .2; 0, 1)']):.4f} under (.8, .2; 0, 1), of {total:g}",
        verdict_of([reached, inside]),
    )


def _function(curves: Curves) -> list[Claim]:
    top = {point.x: point.y for point in curves["4", "loss function"]}
    pairs = [line for (figure, curve), line in curves.items() if curve.startswith("rows ")]
    highest = {x: max(point.y for line in pairs for point in line if point.x == x) for x in top}
    apart = max(abs(top[x] - highest[x]) for x in top)
    changes = curves.get(("4", "change of pair"), [])
    transitions = curves["4", "transition points"]
    new = [
        change
        for change in changes
        if all(math.dist((change.x, change.y), (t.x, t.y)) > _SAME for t in transitions)
    ]
    where = ", ".join(f"alpha = {change.x:.4f}, loss {change.y:.4f}" for change in new)
    return [
        Claim(
            "TPL 4",
            "the loss function is the top of those of all pairs of rows",
            f"within {apart:.0e} at {len(top)} levels",
            verdict(apart < _SAME),
        ),
        Claim(
            "TPL 4",
            "the top passes from one pair to another at a point that is no transition point",
            where or "nowhere",
            verdict(len(new) > 0),
        ),
    ]


def _suprema(curves: Curves) -> Claim:
    found = {panel: curves[panel, "supremum"][0].y for panel in ("5a", "5b", "5c", "5d")}
    last = {panel: curves[panel, "leakage"][-1].y for panel in found}
    told = ", ".join(f"({panel[1]}) {supremum:.4f}" for panel, supremum in found.items())
    endless = [math.isinf(found[panel]) for panel in ("5a", "5b")]
    near = [_SETTLED * found[panel] <= last[panel] <= found[panel] for panel in ("5c", "5d")]
    return Claim(
        "TPL 5",
        "no supremum in (a) and (b); in (c) and (d) Theorem 11 gives what releases one by one "
        "come to",
        f"{told}; after the last release {last['5c']:.4f} (c) and {last['5d']:.4f} (d)",
        verdict_of([*endless, *near]),
        "" if all(endless + near) else "erratum 19",
    )


def _degrees(curves: Curves) -> list[Claim]:
    def name(reading: Reading, s: float, size: int = SIZES[0]) -> str:
        return f"{reading}; s = {s:g}, n = {size}"

    def supremum(panel: str, curve: str) -> float:
        return curves[panel, f"{curve}, supremum"][0].y

    def times(reading: Reading) -> dict[str, float]:
        curve = name(reading, DEGREES[0])
        return {p: growth_time(curves[p, curve], supremum(p, curve)) for p in _SAID}

    printed, shown, row = Reading.CELL, Reading.FIFTIETH, Reading.ROW
    ordered = [
        supremum(panel, name(reading, tight)) > supremum(panel, name(reading, loose))
        for panel in _SAID
        for reading in Reading
        for tight, loose in itertools.pairwise(DEGREES)
    ]
    held = [
        1 / _READ_OFF <= times(printed)[panel] / said <= _READ_OFF for panel, said in _SAID.items()
    ]
    both = {
        reading: [supremum(panel, name(reading, DEGREES[0])) for panel in _SAID]
        for reading in Reading
    }
    ends = {
        reading: [supremum("7b", name(reading, DEGREES[0], size)) for size in SIZES]
        for reading in Reading
    }
    reason = "Eq. 28 with s in every cell does not give the figure; s/50 does (erratum 28)"
    return [
        Claim(
            "TPL 7",
            "stronger correlation (smaller s) leaks more",
            f"at n = {SIZES[0]} in {sum(ordered)} of {len(ordered)} comparisons",
            verdict_of(ordered),
        ),
        Claim(
            "TPL 7",
            "s = .005: leakage grows for almost 8 releases at epsilon = 1, approximately 80 at .1",
            f"to {_SETTLED:.0%} of the supremum: {_pair(times(printed).values())} by Eq. 28 as "
            f"printed, {_pair(times(shown).values())} with s/50 in every cell",
            verdict_of(held),
            "" if all(held) else reason,
        ),
        Claim(
            "TPL 7",
            "under strong correlation epsilon = .1 ends not substantially lower than epsilon = 1",
            f"suprema {both[printed][1]:.3g} and {both[printed][0]:.3g} by Eq. 28 as printed, "
            f"{both[shown][1]:.3g} and {both[shown][0]:.3g} with s/50 in every cell",
            verdict(both[printed][1] > _SUBSTANTIAL * both[printed][0]),
            "" if both[printed][1] > _SUBSTANTIAL * both[printed][0] else reason,
        ),
        Claim(
            "TPL 7",
            "a larger n leaks less at the same s",
            f"n = {SIZES[0]} and {SIZES[1]}, epsilon = .1: {_pair(ends[printed])} as printed, "
            f"{_pair(ends[shown])} with s/50 in every cell, {_pair(ends[row])} with s in a row",
            verdict(ends[printed][1] < ends[printed][0]),
        ),
    ]


def _pair(numbers: Iterable[float]) -> str:
    first, second = numbers
    return f"{first:.3g} and {second:.3g}"
