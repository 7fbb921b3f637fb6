"""Claims of SIP about who is found again in released gaze, judged by the rates of a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from sfumato.core.printed import shown_up
from sfumato.studies.sip.gaze_owners import (
    EXACT,
    LDP_WAYS,
    NETWORK,
    RAW,
    SIP_WAYS,
    TAUGHT,
    OwnersFound,
)
from sfumato.studies.study import Claim, Verdict

_SURE = 2.0
"""Standard errors that a difference must have to be taken for one."""


def claims(points: Sequence[OwnersFound]) -> list[Claim]:
    """What the paper says of its figure, beside what was seen."""
    return [_strictest(points), _knowledge(points), _less_than_ldp(points)]


def mean_rate(points: Iterable[OwnersFound]) -> tuple[float, float]:
    """Mean over budgets and orders, and an error that takes all for the same people: the mean one.

    Examples:
        >>> point = OwnersFound("a", 1, 1.0, "b", 0.3, 0.1, 0.5, 0.1, 0.1, 1.0, 0.0, 9.0, 60)
        >>> mean_rate([point, point])
        (0.3, 0.1)
    """
    rates = [(point.rate, point.error) for point in points]
    return sum(rate for rate, _ in rates) / len(rates), sum(e for _, e in rates) / len(rates)


def less(one: tuple[float, float], other: tuple[float, float]) -> Verdict:
    """Whether one rate is below another: surely, surely not, or within their errors.

    Examples:
        >>> [less((0.1, 0.02), (high, 0.02)).value for high in (0.3, 0.12, 0.01)]
        ['agrees', 'not decided', 'differs']
    """
    reach = _SURE * math.hypot(one[1], other[1])
    if abs(one[0] - other[0]) <= reach:
        return Verdict.UNDECIDED
    return Verdict.AGREES if one[0] < other[0] else Verdict.DIFFERS


def _by(points: Iterable[OwnersFound], attacker: str, ways: Iterable[str]) -> list[OwnersFound]:
    wanted = set(ways)
    return [one for one in points if one.attacker == attacker and one.curve in wanted]


def _reason(verdict: Verdict, otherwise: str) -> str:
    if verdict is Verdict.UNDECIDED:
        return f"no difference beyond two standard errors between people; {otherwise}"
    return "" if verdict is Verdict.AGREES else otherwise


def _all(verdicts: Sequence[Verdict]) -> Verdict:
    return verdicts[0] if len(set(verdicts)) == 1 else Verdict.PARTLY


def _strictest(points: Sequence[OwnersFound]) -> Claim:
    ours = mean_rate(_by(points, NETWORK, ["temporal LDP"]))
    curves = {one.curve for one in points} - {RAW, "temporal LDP"}
    others = {way: mean_rate(_by(points, NETWORK, [way])) for way in sorted(curves)}
    leaked = mean_leakage(_by(points, NETWORK, ["temporal LDP"]))
    judged = _all([less(ours, other) for other in others.values()])
    least = min(others, key=lambda way: others[way][0])
    return Claim(
        "SIP 8",
        "for a network that sees values alone, temporal LDP protects best",
        f"found {ours[0]:.1%}, least of the others {others[least][0]:.1%} ({least}); errors of "
        f"{ours[1]:.1%}; temporal LDP leaks {shown_up(leaked, 2)} per value",
        judged,
        _reason(judged, "it is hardly more than silence on a chain that hardly moves"),
    )


def _knowledge(points: Sequence[OwnersFound]) -> Claim:
    ways = sorted({one.curve for one in points} - {RAW})
    pairs = {
        way: (mean_rate(_by(points, NETWORK, [way])), mean_rate(_by(points, TAUGHT, [way])))
        for way in ways
    }
    judged = _all([less(blind, taught) for blind, taught in pairs.values()])
    more = [way for way, (blind, taught) in pairs.items() if taught[0] > blind[0]]
    return Claim(
        "SIP 8",
        "a network that knows the chain finds more people, whatever the release",
        f"more in {len(more)} of {len(ways)} ways to release",
        judged,
        _reason(judged, "what the chain makes of outputs is a function of them, learnt or told"),
    )


def _less_than_ldp(points: Sequence[OwnersFound]) -> Claim:
    present = {one.curve for one in points}
    sip = [way for way in SIP_WAYS if way in present]
    ours, theirs = (mean_rate(_by(points, TAUGHT, ways)) for ways in (sip, LDP_WAYS))
    judged = less(ours, theirs)
    leaked = [mean_leakage(_by(points, TAUGHT, ways)) for ways in (sip, LDP_WAYS)]
    return Claim(
        "SIP 8",
        "for a network that knows the chain, SIP releases give away fewer people than LDP ones",
        f"SIP {ours[0]:.1%}, LDP {theirs[0]:.1%}; they leak {leaked[0]:.2g} and {leaked[1]:.2g} "
        "per value under the chain",
        judged,
        _reason(judged, "what leaks less under the chain gives away less, whatever it is called"),
    )


def mean_leakage(points: Sequence[OwnersFound]) -> float:
    """Mean leakage per value under the chain."""
    return sum(point.leakage for point in points) / len(points)


def facts(points: Sequence[OwnersFound]) -> list[str]:
    """Sentences that follow from the rates."""
    raw = max(point.rate for point in points if point.curve == RAW)
    blurred = [point for point in points if point.curve != RAW]
    most = max(blurred, key=lambda point: point.rate)
    above = [point for point in blurred if point.told > point.certified]
    exact = [point for point in blurred if point.attacker == EXACT]
    best = {(p.curve, p.order, p.epsilon): p.rate for p in exact}
    beaten = [
        p for p in blurred if p.attacker != EXACT and p.rate > best[p.curve, p.order, p.epsilon]
    ]
    learnt = len(blurred) - len(exact)
    raw_network = max(p.rate for p in points if (p.curve, p.attacker) == (RAW, NETWORK))
    present = {one.curve for one in points}
    sip = [way for way in SIP_WAYS if way in present]
    pairs = [(mean_rate(_by(points, EXACT, ways)), ways) for ways in (sip, LDP_WAYS)]
    told = [
        f"{rate:.1%} +- {_SURE * error:.1%} at {mean_leakage(_by(points, EXACT, ways)):.2g} nats"
        for (rate, error), ways in pairs
    ]
    return [
        f"from true values the owner is the first guess in at most {raw:.1%}; by chance "
        f"{points[0].chance:.1%}",
        f"released values give away most at epsilon {most.epsilon:g} ({most.curve}, order "
        f"{most.order}, {most.attacker}): {most.rate:.1%} +- {2 * most.error:.1%}",
        f"the exact likelihood finds, on average over budgets, {told[0]} per value in SIP releases "
        f"and {told[1]} in LDP ones",
        f"from true values a network finds {raw_network:.1%}: of so few known values it learns "
        "little",
        f"a network finds more people than the exact likelihood in {len(beaten)} of {learnt} cases",
        "no rate needs more leakage than is certified: "
        f"{'yes' if not above else f'NO, in {len(above)} cases'}",
    ]
