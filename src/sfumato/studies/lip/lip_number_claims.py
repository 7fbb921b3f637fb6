"""What the text says of Figures 7 to 10 of LIP, judged by the numbers.

References:
    [LIP, Sec. IV-C]
"""

from __future__ import annotations

from itertools import pairwise

from sfumato.core.printed import shown_up
from sfumato.studies.curve_findings import Curves
from sfumato.studies.lip.lip_claims import Lines, lines_of
from sfumato.studies.lip.lip_number_noise import DELTA
from sfumato.studies.study import Claim, verdict, verdict_of

_ALIKE = 1e-6
_PRIORS = ("Beta(2, 5)", "N(0.5, 0.15²)", "Unif(0, 1)")


def number_claims(curves: Curves) -> list[Claim]:
    """Every claim with its verdict."""
    lines = lines_of(curves)
    return [
        _grows(lines),
        _one_shape(lines),
        _against_twice(lines),
        _density(lines),
        _delta(lines),
        _laplace(lines),
        _branches(lines),
    ]


def _falls(lines: Lines, figure: str, curve: str) -> bool:
    errors = list(lines[figure, curve].values())
    return all(after <= before + _ALIKE for before, after in pairwise(errors)) and (
        errors[-1] < errors[0] - _ALIKE
    )


def _grows(lines: Lines) -> Claim:
    parts = {
        rule: all(_falls(lines, "7a", f"{prior}, {curve}") for prior in _PRIORS)
        for rule, curve in (("Definition 5", "Prop. 2"), ("Corollary 9", "λ = δ"))
    }
    silent = lines["7a", "Unif(0, 1), say nothing"]
    worse = [x for x, y in lines["7a", "Unif(0, 1), Prop. 2"].items() if y > silent[x]]
    told = ", ".join(f"by {rule} {'yes' if held else 'no'}" for rule, held in parts.items())
    return Claim(
        "LIP 7a",
        "the sampling mechanism is the more useful, the larger epsilon",
        f"{told}; up to epsilon {max(worse, default=0.0):.2f} one constant has less error "
        "(uniform values)",
        verdict_of(parts.values()),
        "" if all(parts.values()) else "erratum N14: the two forgive deltas of different size",
    )


def _one_shape(lines: Lines) -> Claim:
    spread = 0.0
    for figure in ("7a", "7b"):
        base = lines[figure, "Unif(0, 1), Prop. 2"]
        for prior in _PRIORS:
            line = lines[figure, f"{prior}, Prop. 2"]
            ratios = [line[x] / base[x] for x in base if base[x] > _ALIKE]
            spread = max(spread, max(ratios) / min(ratios) - 1)
    return Claim(
        "LIP 7",
        "the distribution of the values does not change the trend",
        f"curves are multiples of each other within {spread:.1g}",
        verdict(spread < 1e-3),
    )


def _against_twice(lines: Lines) -> Claim:
    rival = lines["8", "LDP, 2ε"]
    first = {
        value: min(
            (x for x, y in lines["8", f"LIP, X = {value}"].items() if y > rival[x]), default=None
        )
        for value in (0, 5, 10)
    }
    told = ", ".join(
        f"X = {value}: {'always' if x is None else f'up to {x:g}'}" for value, x in first.items()
    )
    return Claim(
        "LIP 8",
        "with a prior delta is below that of LDP at 2 epsilon",
        told,
        verdict_of(x is None for x in first.values()),
        "" if not any(first.values()) else "erratum N15",
    )


def _density(lines: Lines) -> Claim:
    values = [lines["9a", f"Cor. 10, X = {value}"] for value in (0, 5, 10, 12)]
    held = [near[x] < far[x] for near, far in pairwise(values) for x in near]
    return Claim(
        "LIP 9a",
        "values of high density need less noise",
        f"the scales of Corollary 10 say so in {sum(held)} of {len(held)} comparisons",
        verdict_of(held),
    )


def _delta(lines: Lines) -> Claim:
    cut = lines["9b", "Cor. 10, prior cut"]
    held = [y <= DELTA for y in cut.values()]
    at = min(cut, key=lambda x: abs(x - 1))
    return Claim(
        "LIP 9",
        f"these scales keep delta {DELTA:g}",
        f"at epsilon {at:g} it is {shown_up(cut[at], 3)}; kept at {sum(held)} of {len(held)} "
        "budgets",
        verdict(all(held)),
        "" if all(held) else "erratum 26: the output is a mixture over all scales",
    )


def _laplace(lines: Lines) -> Claim:
    free, aware, own = (lines["10b", name] for name in ("LDP", "Eq. 25", "own scales"))
    at = min(free, key=lambda x: abs(x - 1))
    held = [own[x] < aware[x] + _ALIKE and aware[x] <= free[x] + _ALIKE for x in free]
    silent = lines["10b", "say nothing"]
    worse = max((x for x, y in own.items() if y > silent[x]), default=0.0)
    return Claim(
        "LIP 10",
        "Laplace noise by the prior beats noise without it, and noise by the value beats both",
        f"mean errors at {at:g}: {free[at]:.3f}, {aware[at]:.3f}, {own[at]:.3f}; one constant has "
        f"less than any of them up to epsilon {worse:g}",
        verdict_of(held),
    )


def _branches(lines: Lines) -> Claim:
    scales = lines["10a", "Eq. 25"]
    rises = [(left, right) for left, right in pairwise(scales) if scales[right] > scales[left]]
    least = lines["10a", "least"]
    at = min(least, key=lambda x: abs(x - 1))
    jump = f"; it rises at epsilon {rises[0][1]:g}" if rises else ""
    parts = [not rises, scales[at] <= least[at] * 1.01]
    return Claim(
        "LIP 10a",
        "Eq. 25 is the scale that a budget needs",
        f"at {at:g} it asks for {scales[at]:.3f}, {least[at]:.3f} is enough{jump}",
        verdict_of(parts),
        "" if all(parts) else "erratum 11: the second branch is never needed, the first not least",
    )
