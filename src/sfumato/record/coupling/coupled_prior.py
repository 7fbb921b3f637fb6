r"""What is known of attributes that equations tie: points of a curve or a surface, and weights.

Each equation gives one attribute from the others. The others are free: what is known of them is
their domain alone, as in the paper, or a joint density.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.coupling import FullCoupling, Interval, checked_domain
from sfumato.record.coupling.joint_mixture import JointMixture

_LINE, _LONGEST_LINE = 2_001, 256_001
"""Points of a curve to begin with, and at most."""
_CLOUD = 2**14
"""Points that stand for a whole surface."""
_FINE = 1 / 12
"""Largest step between neighbours on a curve, in half widths of the attacker's box."""
_MOST_OF_IT = 0.9
"""Part of a curve whose steps must be that small: where it jumps, none is."""
_PEAK = 0.4
"""Largest step on a curve in deviations of the narrowest peak of what is known."""


class Cloud(NamedTuple):
    """Weighted points that stand for all values that equations allow; weights sum to 1."""

    points: Floats
    weights: Floats


@dataclass(frozen=True, slots=True, eq=False)
class CoupledPrior:
    """Attributes of which equations give some from the others.

    Attributes:
        names: All attributes.
        couplings: The equations; no two share an attribute.
        domains: The interval of each attribute.
        known: What is known of the free attributes, in their order; their domains alone if None.

    Examples:
        >>> body = FullCoupling.equation(
        ...     "weight = 3*height - 440", {"height": (150, 200), "weight": (10, 160)}
        ... )
        >>> prior = CoupledPrior.of(["height", "weight"], [body])
        >>> prior.free, prior.given
        (('height',), ('weight',))
        >>> prior.cloud(np.array([1.0, 1.0])).points[:2].round(3)
        array([[150.012,  10.037],
               [150.037,  10.112]])

    References:
        [MDDP, Def. 1]
    """

    names: tuple[str, ...]
    couplings: tuple[FullCoupling, ...]
    domains: Mapping[str, Interval]
    known: JointMixture | None = None

    def __post_init__(self) -> None:
        tied = [name for coupling in self.couplings for name in coupling.attributes]
        for name in tied:
            if name not in self.names:
                known = ", ".join(map(repr, self.names))
                raise InvalidParameter("coupling", name, f"name attributes among {known}")
        if len(set(tied)) != len(tied):
            rule = "share no attribute: join equations that do into one group"
            raise InvalidParameter("couplings", sorted(tied), rule)
        if self.known is not None and self.known.dimension != len(self.free):
            rule = f"be a density of {', '.join(self.free)}"
            raise InvalidParameter("known", self.known.dimension, rule)

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        couplings: Sequence[FullCoupling],
        *,
        domains: Mapping[str, Interval] | None = None,
        known: JointMixture | None = None,
    ) -> CoupledPrior:
        """From equations, which bring their domains; other attributes need one of `domains`."""
        intervals = {name: ends for one in couplings for name, ends in one.domains.items()}
        for name in names:
            if name not in intervals and domains is not None and name in domains:
                intervals[name] = checked_domain(name, domains[name])
            elif name not in intervals:
                raise InvalidParameter("domains", sorted(intervals), f"hold {name!r}")
        for coupling in couplings:
            coupling.check_solvable(coupling.attributes[0])
        return cls(tuple(names), tuple(couplings), intervals, known)

    @property
    def given(self) -> tuple[str, ...]:
        """Attributes that follow from the others: the first that each equation names."""
        return tuple(coupling.attributes[0] for coupling in self.couplings)

    @property
    def free(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.names if name not in self.given)

    @property
    def limits(self) -> Floats:
        """Domains of all attributes, one a row."""
        return np.array([self.domains[name] for name in self.names], dtype=np.float64)

    def cloud(self, half: Floats, seed: int = 0) -> Cloud:
        """Points that stand for all values: along a curve evenly, else scattered evenly.

        Args:
            half: Half widths of the attacker's box: neighbours on a curve are close against it.
            seed: Another one gives other points, if they are scattered.
        """
        curve = self.curve(half)
        return self.scattered(seed) if curve is None else curve

    def curve(self, half: Floats) -> Cloud | None:
        """Points of a curve, neighbours close against a box; None if it has too many, or is none.

        Args:
            half: Half widths of the box.
        """
        if len(self.free) > 1:
            return None
        low, high = self.domains[self.free[0]]
        count = _LINE
        while count <= _LONGEST_LINE:
            line = low + (high - low) * (np.arange(count)[:, None] + 0.5) / count
            if self._step(line, half) < _FINE:
                return _normalised(*self._completed(line, self._density(line)))
            count = 2 * count - 1
        return None

    def near(
        self,
        low: Floats,
        high: Floats,
        shares: Floats,
        likelihood: Callable[[Floats], Floats] | None = None,
    ) -> Cloud:
        """Points, scattered evenly, that stand for all values within a box; weights are its mass.

        That mass is up to a factor that is the same for all boxes.

        Args:
            low: Least value of each attribute.
            high: Greatest.
            shares: Numbers between 0 and 1: one a free attribute and one more, a row a point.
            likelihood: What the weights of some points are multiplied by.
        """
        nothing = Cloud(np.empty((0, len(self.names))), np.empty(0))
        ends = {
            name: (max(first, float(low[axis])), min(last, float(high[axis])))
            for axis, (name, (first, last)) in enumerate(zip(self.names, self.limits, strict=True))
        }
        if any(first >= last for first, last in ends.values()):
            return nothing
        # Half of the points where what is known has its peaks, which even ones may miss.
        drawn = np.empty((0, len(self.free)))
        if self.known is not None:
            shares, rest = shares[: len(shares) // 2], shares[len(shares) // 2 :]
            drawn = self.known.draw(np.clip(rest, 1e-12, 1 - 1e-12))
        even, volume = self._even(ends, shares)
        if volume == 0:
            return nothing
        free = np.concatenate([even, drawn])
        points, weights = self._completed(free, np.ones(len(free)))
        inside = np.all((points >= low) & (points <= high), axis=1)
        points, weights = points[inside], weights[inside]
        if likelihood is not None:
            weights = weights * likelihood(points)
            points, weights = points[weights > 0], weights[weights > 0]
        places = [self.names.index(name) for name in self.free]
        density = self._density(points[:, places])
        # Either kind of points could have put one there: its weight is over the density of both
        # together, so that neither a peak nor a wide tail makes single points heavy.
        mass = 0.0 if self.known is None else self.known.mass
        weights = weights * density / (len(even) / volume + len(drawn) * mass * density)
        return Cloud(points[weights > 0], weights[weights > 0])

    def _even(self, ends: Mapping[str, Interval], shares: Floats) -> tuple[Floats, float]:
        """Free values, spread evenly over all that equations lead between some ends; its volume."""
        columns, volume, used = dict[str, Floats](), 1.0, 0
        for coupling in self.couplings:
            names = coupling.attributes[1:]
            points, space = _spread(coupling.reaching(ends), shares[:, used : used + len(names)])
            columns |= dict(zip(names, points.T, strict=True))
            volume, used = volume * space, used + len(names)
        for name in self.free:
            if name not in columns:
                first, last = ends[name]
                columns[name] = first + (last - first) * shares[:, used]
                volume, used = volume * (last - first), used + 1
        return np.stack([columns[name] for name in self.free], axis=1), volume

    def _density(self, free: Floats) -> Floats:
        return np.ones(len(free)) if self.known is None else self.known.density(free)

    def _step(self, line: Floats, half: Floats) -> float:
        """How far neighbours are apart on most of a curve, in half widths of a box."""
        place = {name: index for index, name in enumerate(self.names)}
        gap = float(line[1, 0] - line[0, 0])
        step = gap / float(half[place[self.free[0]]])
        if self.known is not None:
            narrowest = math.sqrt(float(self.known.covariances.min()))
            step = max(step, _FINE * gap / (_PEAK * narrowest))
        for coupling in self.couplings:
            roots = _solved(coupling, line)
            apart = np.abs(np.diff(roots, axis=0)) / half[place[coupling.attributes[0]]]
            known = apart[np.isfinite(apart)]
            if known.size:
                step = max(step, float(np.quantile(known, _MOST_OF_IT)))
        return step

    def scattered(self, seed: int = 0) -> Cloud:
        """Points that stand for all values, scattered as what is known of them.

        Args:
            seed: Another one gives other points.
        """
        shares = stats.qmc.Sobol(len(self.free) + 1, seed=seed).random(_CLOUD)
        ends = np.array([self.domains[name] for name in self.free])
        if self.known is None:
            points = ends[:, 0] + np.diff(ends, axis=1)[:, 0] * shares[:, 1:]
        else:
            points = self.known.draw(np.clip(shares, 1e-12, 1 - 1e-12))
        inside = np.all((points >= ends[:, 0]) & (points <= ends[:, 1]), axis=1)
        return _normalised(*self._completed(points[inside], np.ones(int(inside.sum()))))

    def _completed(self, points: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Free values with those that follow; where an equation has several solutions, all."""
        columns = dict(zip(self.free, points.T, strict=True))
        for coupling in self.couplings:
            target = coupling.attributes[0]
            others = np.stack([columns[name] for name in coupling.attributes[1:]], axis=1)
            roots = _solved(coupling, others)
            rows, which = np.nonzero(np.isfinite(roots))
            count = np.isfinite(roots).sum(axis=1)
            columns = {name: column[rows] for name, column in columns.items()}
            columns[target] = roots[rows, which]
            # Nothing that is known chooses between several solutions: they share the weight.
            weights = weights[rows] / count[rows]
        return np.stack([columns[name] for name in self.names], axis=1), weights


def _solved(coupling: FullCoupling, points: Floats) -> Floats:
    """What an equation gives for its first attribute, from rows of the others."""
    target, *names = coupling.attributes
    return coupling.solutions(target, dict(zip(names, points.T, strict=True)))


def _spread(cells: Floats, shares: Floats) -> tuple[Floats, float]:
    """Points spread evenly over cells, and the volume of all cells."""
    sizes = cells[1] - cells[0]
    volumes = sizes.prod(axis=1)
    if not volumes.sum() > 0:
        return shares, 0.0
    # The first number tells the cell, and what is left of it the first place within.
    ends = np.concatenate([[0.0], volumes.cumsum()])
    goal = shares[:, 0] * ends[-1]
    which = np.searchsorted(ends[1:-1], goal, side="right")
    first = np.clip((goal - ends[which]) / volumes[which], 0.0, 1.0)
    within = np.concatenate([first[:, None], shares[:, 1:]], axis=1)
    return cells[0][which] + sizes[which] * within, float(ends[-1])


def _normalised(points: Floats, weights: Floats) -> Cloud:
    if not weights.sum() > 0:
        raise InvalidParameter("domains", "others", "hold values that satisfy the coupling")
    return Cloud(np.ascontiguousarray(points), weights / weights.sum())


def domains_of(records: Mapping[str, Floats]) -> dict[str, Interval]:
    """From the least to the greatest value of each column."""
    ends = {}
    for name, column in records.items():
        values = checks.numbers(name, column)
        if not values.min() < values.max():
            raise InvalidParameter(name, "a constant", "be a column that varies")
        ends[name] = (float(values.min()), float(values.max()))
    return ends
