"""Figures 3 and 4 of SIP: noise of two correlated bits, by the published rule and certified.

The paper gives no budgets: 1 nat for each bit, and .5 and 2 beside it, and at most a tenth of
flipped bits where leakage is minimised.

References:
    [SIP, Figs. 3 and 4], [SIP, Sec. IV-C]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from sfumato.core.printed import shown_up
from sfumato.solver.design_methods import Method
from sfumato.studies.sip.sip_example import ExamplePoint, example_points
from sfumato.studies.sip.sip_example_drawings import draw
from sfumato.studies.study import Claim, Findings, Setting, Verdict, Work, verdict, verdict_of

PRIORS = {"3": 0.5, "4": 0.95}
"""The figures, and how likely their first bit is 1."""
EPSILONS, QUICK_EPSILONS = (0.5, 1.0, 2.0), (1.0,)
FLIPS, QUICK_FLIPS = 81, 21
_METHODS = (Method.PAPER, Method.OPTIMAL)
_ALIKE = 1e-6


@dataclass(frozen=True, slots=True)
class Line:
    """One curve of a figure: all that one rule does at one budget.

    Attributes:
        figure: 3 or 4.
        method: Whose channels are used.
        epsilon: Budget of each bit.
        points: By growing probability that the bits differ.
    """

    figure: str
    method: str
    epsilon: float
    points: tuple[ExamplePoint, ...]

    @property
    def towards_correlation(self) -> list[list[ExamplePoint]]:
        """From independent bits to equal ones, and to opposite ones."""
        equal = [point for point in self.points if point.flip <= 0.5]
        opposite = [point for point in self.points if point.flip >= 0.5]
        return [equal[::-1], opposite]


def prepare(setting: Setting) -> Work:
    """Both figures at three budgets, or at one on a coarse grid; nothing is drawn by chance."""
    epsilons = QUICK_EPSILONS if setting.quick else EPSILONS
    flips = np.linspace(0.0, 1.0, QUICK_FLIPS if setting.quick else FLIPS).tolist()
    return Work(len(PRIORS) * len(epsilons) * len(_METHODS), partial(_run, epsilons, flips))


def _run(
    epsilons: Sequence[float], flips: Sequence[float], show: Callable[[int], None]
) -> Findings:
    lines: list[Line] = []
    for epsilon in epsilons:
        for figure, prior in PRIORS.items():
            for method in _METHODS:
                points = example_points(prior, epsilon, epsilon, flips, method)
                lines.append(Line(figure, method.value, epsilon, tuple(points)))
                show(len(lines))
    return Findings(
        title="two bits: noise at time 2 for independent and for equal bits; worst true leakage",
        columns=["figure, rule, budget", "independent", "equal", "correlation of noise", "leaks"],
        rows=[_row(line) for line in lines],
        records=[
            {"figure": line.figure, "method": line.method, "epsilon": line.epsilon, **asdict(point)}
            for line in lines
            for point in line.points
        ],
        facts=facts(lines),
        pictures={
            f"figure-{figure}": partial(draw, [one for one in lines if one.figure == figure])
            for figure in PRIORS
        },
        claims=claims(lines),
        captions={
            f"figure-{figure}": f"SIP Fig. {figure}, P(X1 = 1) = {prior:g}: the published rule "
            "(dashed) and the certified optimum (solid), by budget"
            for figure, prior in PRIORS.items()
        },
    )


def _row(line: Line) -> list[str]:
    apart, equal = line.towards_correlation[0][0], line.towards_correlation[0][-1]
    worst = max(point.second_leakage for point in line.points)
    return [
        f"{line.figure}, {line.method}, {line.epsilon:g}",
        f"{apart.second_noise:.4f}",
        f"{equal.second_noise:.4f}",
        f"{equal.noise_correlation:.4f}",
        shown_up(worst, 4),
    ]


def facts(lines: Sequence[Line]) -> list[str]:
    """What follows from the curves, beside the claims."""
    published = [line for line in lines if line.method == Method.PAPER.value]
    worst = max(
        ((line, point) for line in published for point in line.points),
        key=lambda pair: pair[1].second_leakage / pair[0].epsilon,
    )
    certified = [line for line in lines if line.method == Method.OPTIMAL.value]
    kept = all(
        max(point.first_leakage, point.second_leakage) <= line.epsilon
        for line in certified
        for point in line.points
    )
    return [
        f"the certified optimum keeps its budget everywhere: {'yes' if kept else 'NO'}",
        f"the published rule claims {worst[0].epsilon:g} for the second bit and leaks up to "
        f"{shown_up(worst[1].second_leakage, 4)} (Fig. {worst[0].figure}, flip {worst[1].flip:g})",
    ]


def claims(lines: Sequence[Line]) -> list[Claim]:
    """What the paper says of the two figures, judged for both rules."""
    return [
        _both_rules(
            lines,
            "the noises are less correlated as the correlation of the data approaches 0",
            partial(_monotone, name="noise_correlation", falls=False),
            "at small budgets the certified second step tells a constant, whose errors are others",
        ),
        _both_rules(
            lines,
            "independent bits have independent noise: their mutual information is 0",
            lambda line: line.towards_correlation[0][0].noise_information < _ALIKE,
        ),
        _both_rules(
            lines,
            "the noise needed at time 2 falls as the bits are more correlated",
            partial(_monotone, name="second_noise", falls=True),
            "erratum N3: the published rule buys it with leakage over its budget",
        ),
        *(_bounded_noise(lines, figure) for figure in PRIORS),
        _unchanged(lines),
        _intercept(lines),
    ]


def _both_rules(
    lines: Sequence[Line], claimed: str, holds: Callable[[Line], bool], reason: str = ""
) -> Claim:
    """A claim about each curve, for the published rule and for the certified one."""
    held = {
        method: [holds(line) for line in lines if line.method == method.value]
        for method in _METHODS
    }
    said = "; ".join(
        f"{method.value}: {sum(found)} of {len(found)} curves" for method, found in held.items()
    )
    judged = verdict_of(found for each in held.values() for found in each)
    return Claim("SIP 3, 4", claimed, said, judged, "" if judged is Verdict.AGREES else reason)


def _monotone(line: Line, *, name: str, falls: bool) -> bool:
    """Whether a number moves one way from independent bits to equal and to opposite ones."""
    sign = -1 if falls else 1
    return all(
        sign * (getattr(later, name) - getattr(before, name)) >= -_ALIKE
        for way in line.towards_correlation
        for before, later in pairwise(way)
    )


def _bounded_noise(lines: Sequence[Line], figure: str) -> Claim:
    """Whether a design that knows the first output leaks less at the same noise."""
    points = [
        point
        for line in lines
        if line.figure == figure and line.method == Method.PAPER.value
        for point in line.points
    ]
    worse = [p for p in points if p.correlated_leakage > p.independent_leakage + _ALIKE]
    meant = [p for p in points if p.correlated_mean_leakage > p.independent_leakage + _ALIKE]
    true = [p for p in points if p.correlated_leakage > p.independent_true_leakage + _ALIKE]
    judged = verdict_of([not worse, not meant, not true])
    return Claim(
        f"SIP {figure}",
        "with the noise at time 2 bounded, correlated noise leaks less than independent noise",
        f"more at {len(worse)} of {len(points)} points (worse first output), {len(meant)} (mean), "
        f"{len(true)} when independent noise is charged what it truly leaks after a first output",
        judged,
        ""
        if judged is Verdict.AGREES
        else "erratum N52: after the rarer first output the belief is nearly even",
    )


def _unchanged(lines: Sequence[Line]) -> Claim:
    levels = [p.independent_leakage for line in _of(lines, "3") for p in line.points]
    spread = max(levels) - min(levels)
    return Claim(
        "SIP 3",
        "for an even prior the leakage with independent noise does not depend on the correlation",
        f"it moves by {spread:.2g} around {min(levels):.4f}",
        verdict(spread < _ALIKE),
    )


def _intercept(lines: Sequence[Line]) -> Claim:
    def equal(figure: str, line: Line) -> float:
        twin = next(
            one
            for one in _of(lines, figure)
            if (one.method, one.epsilon) == (line.method, line.epsilon)
        )
        return twin.towards_correlation[0][-1].noise_correlation

    pairs = [(line, equal("3", line), equal("4", line)) for line in _of(lines, "3")]
    said = "; ".join(
        f"{line.method} {line.epsilon:g}: {even:.3f} and {skewed:.3f}"
        for line, even, skewed in pairs
    )
    return Claim(
        "SIP 3, 4",
        "noise of equal bits is more correlated for the skewed prior than for the even one",
        said,
        verdict_of(skewed > even + _ALIKE for _, even, skewed in pairs),
        "certified noise of equal bits is the same bit twice, for either prior, at these budgets",
    )


def _of(lines: Iterable[Line], figure: str) -> list[Line]:
    return [line for line in lines if line.figure == figure]
