"""Formulas that Figures 4 to 6 of LIP rest on, judged by the numbers drawn from the exact ones.

References:
    [LIP, Sec. II], [LIP, Sec. III]
"""

from __future__ import annotations

import math

import numpy as np

from sfumato.column.notion_relations import ldp_from_bounded_lip
from sfumato.core.guarantees import LIP
from sfumato.models.prior_sets import PriorBox
from sfumato.studies.curve_findings import Curves
from sfumato.studies.lip.lip_claims import Lines, lines_of
from sfumato.studies.lip.lip_discrete import BUDGETS, SAMPLED_BUDGETS
from sfumato.studies.study import Claim, verdict_of

_ALIKE = 1e-6
_SYMBOLS, _DISTANCES = 4, 41
_ONES = {"4a": 0.5, "4b": 0.2}
"""Probability of a one in each panel of Figure 4."""


def formula_claims(curves: Curves) -> list[Claim]:
    """Every claim with its verdict."""
    lines = lines_of(curves)
    return [_binary(lines), _all_priors(), _smallest(lines)]


def _binary(lines: Lines) -> Claim:
    drawn = [
        (q, printed_leakage(q, one), y)
        for panel, one in _ONES.items()
        for q, y in lines[panel, "LIP"].items()
        if 0 < q < 1
    ]
    held = [abs(printed - y) <= _ALIKE for _, printed, y in drawn]
    q, printed, exact = min(drawn, key=lambda point: point[2])
    return Claim(
        "LIP 4",
        "Example 1's formula for LIP is the leakage that is drawn",
        f"it says {printed:.3g} at q = {q:g}, where {exact:.3g} leaks",
        verdict_of(held),
        "" if all(held) else "it lacks a logarithm (erratum N8)",
    )


def printed_leakage(q: float, one: float) -> float:
    """Example 1's formula as printed, of a bit that is 1 with some probability and then flipped.

    Examples:
        >>> printed_leakage(0.5, 0.2)
        1.0
    """
    told = one * (1 - q) + (1 - one) * q
    return max(share / chance for share in (told, 1 - told) for chance in (q, 1 - q))


def _all_priors() -> Claim:
    """Over all priors a guarantee under each is one whatever the prior."""
    every = PriorBox(np.zeros(_SYMBOLS), np.ones(_SYMBOLS))
    said = {epsilon: ldp_from_bounded_lip(LIP(epsilon), every).epsilon for epsilon in BUDGETS}
    held = [bound <= epsilon * (1 + _ALIKE) for epsilon, bound in said.items()]
    told = ", ".join(f"{bound:.2f} for {epsilon:g}" for epsilon, bound in said.items())
    return Claim(
        "LIP Thm 2",
        "bounded-prior LIP approaches LDP as the set of priors grows",
        f"by the bound of the theorem not even the set of all priors on {_SYMBOLS} symbols does: "
        f"{told}, where epsilon itself is true",
        verdict_of(held),
        "" if all(held) else "true, but not by the theorem (erratum N9)",
    )


def _smallest(lines: Lines) -> Claim:
    """Up to which distance of priors eta + epsilon is the least of three bounds."""
    found: dict[float, list[bool]] = {}
    for panel, epsilon in SAMPLED_BUDGETS.items():
        line = lines[panel, "ln((e^ε - 1 + p)/p)"]
        free = line[max(line)]  # by the most samples: the estimate is the prior
        # The quotient whose logarithm the corollary forgets.
        limit = min(epsilon, math.exp(free) - epsilon)
        found[epsilon] = [
            eta + epsilon <= min(free, 2 * epsilon) + _ALIKE
            for eta in np.linspace(0.0, limit, _DISTANCES).tolist()
        ]
    told = ", ".join(f"{sum(held)} of {len(held)} (epsilon {e:g})" for e, held in found.items())
    every = [one for held in found.values() for one in held]
    return Claim(
        "LIP 6",
        "where Corollary 6 says so, eta + epsilon is the smallest bound",
        f"at {told} values of eta up to its limit",
        verdict_of(every),
        "" if all(every) else "it lacks a logarithm (erratum N7)",
    )
