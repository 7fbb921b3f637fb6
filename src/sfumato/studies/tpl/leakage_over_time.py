r"""What releases tell of each other's moments: TPL Figures 3, 4, 5 and 7 as numbers.

*Figure 3*: backward, forward and whole leakage of ten releases of .1, under no correlation, under
(.8, .2; 0, 1) and under the identity. *Figure 4*: the loss function of a 3 x 3 matrix as the top
of those of its pairs of rows; where pairs change piece, and where the top changes pair. *Figure 5*:
the leakage of ever more releases, where a supremum exists and where none does. *Figure 7*: the same
for matrices between the identity and the even one.

Not in the text and chosen here: the matrices of Figure 5. Its four cases are those of Theorem 11:
the identity (a), a zero with a budget above and below log(1/q) (b, d), and no zero (c).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.points import Point
from sfumato.studies.tpl.smoothed_matrices import Reading, smoothed_loss
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage

BUDGET, RELEASES = 0.1, 10
CORRELATIONS: Final = {
    "no correlation": LossFunction.unknown(),
    "(.8, .2; 0, 1)": LossFunction.of([[0.8, 0.2], [0.0, 1.0]]),
    "identity": LossFunction.of([[1.0, 0.0], [0.0, 1.0]]),
}
"""Of Examples 2 and 3."""
EXAMPLE_4 = ((0.1, 0.2, 0.7), (0.3, 0.3, 0.4), (0.5, 0.3, 0.2))
LEVELS = np.linspace(0.02, 6.0, 300)
MOMENTS = 100
"""Releases that Figure 5 shows."""
_ROUNDING = 1e-9
SIZES, DEGREES = (50, 200), (0.005, 0.05, 1.0)
SPANS = {"7a": (1.0, 20), "7b": (0.1, 150)}
"""Budget and number of releases of each panel of Figure 7."""


@dataclass(frozen=True, slots=True)
class Accumulation:
    """One panel of Figure 5: which matrix, and what each release leaks by itself."""

    panel: str
    rows: tuple[tuple[float, float], tuple[float, float]]
    epsilon: float


ACCUMULATIONS = (
    Accumulation("5a", ((1.0, 0.0), (0.0, 1.0)), 0.23),
    Accumulation("5b", ((0.8, 0.2), (0.0, 1.0)), 0.23),
    Accumulation("5c", ((0.8, 0.2), (0.1, 0.9)), 0.23),
    Accumulation("5d", ((0.8, 0.2), (0.0, 1.0)), 0.15),
)


def figure_3() -> Iterator[Point]:
    """Leakage of each of ten releases: (a) backward, (b) forward, (c) whole.

    References:
        [TPL, Fig. 3]
    """
    for curve, loss in CORRELATIONS.items():
        told = temporal_leakage([BUDGET] * RELEASES, loss, loss)
        for panel, line in (("3a", told.backward), ("3b", told.forward), ("3c", told.total)):
            for moment, leakage in enumerate(line.tolist(), 1):
                yield Point(panel, curve, moment, leakage)


def figure_4(levels: Floats = LEVELS) -> Iterator[Point]:
    """The loss function of Example 4, its pairs of rows, and where they change.

    References:
        [TPL, Fig. 4], [TPL, Thm. 9]
    """
    loss = LossFunction.of(EXAMPLE_4)
    pairs = {
        (one, other): piecewise(EXAMPLE_4[one], EXAMPLE_4[other])
        for one, other in itertools.permutations(range(len(EXAMPLE_4)), 2)
    }
    for (one, other), piece in pairs.items():
        curve = f"rows {one + 1}, {other + 1}"
        for level in levels.tolist():
            yield Point("4", curve, level, piece.value(level))
        for limit in piece.limits:
            if math.isfinite(limit):
                yield Point("4", "transition points", limit, piece.value(limit))
    for level in levels.tolist():
        yield Point("4", "loss function", level, loss(level))
    for level in crossings(loss):
        yield Point("4", "change of pair", level, loss(level))


def figure_5() -> Iterator[Point]:
    """Leakage of ever more releases, and its supremum where there is one.

    References:
        [TPL, Fig. 5], [TPL, Thm. 11]
    """
    for case in ACCUMULATIONS:
        loss = LossFunction.of(case.rows)
        told = loss.accumulated([case.epsilon] * MOMENTS)
        for moment, leakage in enumerate(told.tolist(), 1):
            yield Point(case.panel, "leakage", moment, leakage)
        supremum = loss.supremum(case.epsilon)
        for moment in (1, MOMENTS):
            yield Point(case.panel, "supremum", moment, supremum)


def figure_7() -> Iterator[Point]:
    """Leakage over time for degrees of correlation, sizes, budgets and readings of `s`.

    References:
        [TPL, Fig. 7], [TPL, Eq. 28]
    """
    for reading, (panel, (epsilon, length)) in itertools.product(Reading, SPANS.items()):
        for s, size in [(s, SIZES[0]) for s in DEGREES] + [(DEGREES[0], SIZES[1])]:
            loss = smoothed_loss(size, s, reading)
            curve = f"{reading}; s = {s:g}, n = {size}"
            for moment, told in enumerate(loss.accumulated([epsilon] * length).tolist(), 1):
                yield Point(panel, curve, moment, told)
            yield Point(panel, f"{curve}, supremum", length, loss.supremum(epsilon))


@dataclass(frozen=True, slots=True)
class Piecewise:
    """The optimum for two rows as a function of the leakage beside it.

    Attributes:
        tops: Sums of the first row over the columns of largest ratio, one column more each.
        bases: The same of the second row.
        limits: Up to which leakage each of these is the best; falling, the first is infinite.

    References:
        [TPL, Thm. 9 and Alg. 2]
    """

    tops: tuple[float, ...]
    bases: tuple[float, ...]
    limits: tuple[float, ...]

    def value(self, level: float) -> float:
        """The loss at one level."""
        place = max((k for k, end in enumerate(self.limits) if end > level), default=0)
        growth = math.expm1(level)
        top, base = self.tops[place], self.bases[place]
        return math.log1p((top - base) * growth / (1 + base * growth))


def piecewise(first: tuple[float, ...], second: tuple[float, ...]) -> Piecewise:
    """The pieces of two rows, in the order of their ratios.

    Examples:
        >>> piecewise((0.2, 0.3, 0.5), (0.1, 0.0, 0.9)).limits  # the paper's own example
        (inf, 1.466337)
    """
    kept = [(q, d) for q, d in zip(first, second, strict=True) if q > d]
    kept.sort(key=lambda pair: -pair[0] / pair[1] if pair[1] else -math.inf)
    tops = tuple(itertools.accumulate(q for q, _ in kept))
    bases = tuple(itertools.accumulate(d for _, d in kept))
    limits = []
    for (q, d), top, base in zip(kept, tops, bases, strict=True):
        below = top * d - base * q
        limits.append(math.log1p((q - d) / below) if below > 0 else math.inf)
    return Piecewise(tops, bases, tuple(limits))


def crossings(loss: LossFunction) -> list[float]:
    """Levels at which the top of a loss function passes from one pair of rows to another."""
    found = []
    corners = zip(loss.gaps.tolist(), loss.bases.tolist(), loss.pairs, strict=True)
    for (gap, base, pair), (wider, further, other) in itertools.pairwise(corners):
        if pair != other:
            level = math.log1p((wider - gap) / (gap * further - wider * base))
            if level > _ROUNDING:  # corners of the same gap meet where nothing leaks
                found.append(level)
    return found
