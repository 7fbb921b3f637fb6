r"""What is known of attributes that equations tie: points of a curve or a surface, and weights.

Each equation gives one attribute from the others. The others are free: what is known of them is
their domain alone, as in the paper, or a joint density.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from sfumato import _checks
from sfumato.errors import InvalidParameter
from sfumato.models.coupling import FullCoupling, Interval
from sfumato.models.joint import JointMixture

Floats = NDArray[np.float64]

_LINE, _LONGEST_LINE = 2_001, 32_001
_CLOUD = 2**14
_FINE = 1 / 12
"""Largest step between neighbours on a curve, in half widths of the attacker's box."""


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
        if len(self.free) > 1:
            shares = stats.qmc.Sobol(len(self.free) + 1, seed=seed).random(_CLOUD)
            return self._completed(*self._scattered(shares))
        count = _LINE
        while True:
            low, high = self.domains[self.free[0]]
            line = low + (high - low) * (np.arange(count)[:, None] + 0.5) / count
            weights = np.ones(count) if self.known is None else self.known.density(line)
            cloud = self._completed(line, weights)
            steps = np.abs(np.diff(cloud.points, axis=0)) / half
            if count >= _LONGEST_LINE or len(steps) == 0 or np.quantile(steps.max(1), 0.9) < _FINE:
                return cloud
            count = 2 * count - 1

    def _scattered(self, shares: Floats) -> tuple[Floats, Floats]:
        ends = np.array([self.domains[name] for name in self.free])
        if self.known is None:
            points = ends[:, 0] + np.diff(ends, axis=1)[:, 0] * shares[:, 1:]
        else:
            points = self.known.draw(np.clip(shares, 1e-12, 1 - 1e-12))
        inside = np.all((points >= ends[:, 0]) & (points <= ends[:, 1]), axis=1)
        return points[inside], np.ones(int(inside.sum()))

    def _completed(self, points: Floats, weights: Floats) -> Cloud:
        """Free values with those that follow; where an equation has several solutions, all."""
        columns = dict(zip(self.free, points.T, strict=True))
        for coupling in self.couplings:
            target = coupling.attributes[0]
            others = {name: columns[name] for name in coupling.attributes[1:]}
            roots = coupling.solutions(target, others)
            rows, which = np.nonzero(np.isfinite(roots))
            count = np.isfinite(roots).sum(axis=1)
            columns = {name: column[rows] for name, column in columns.items()}
            columns[target] = roots[rows, which]
            weights = weights[rows] / count[rows]
        if not weights.sum() > 0:
            raise InvalidParameter("domains", "others", "hold values that satisfy the coupling")
        table = np.stack([columns[name] for name in self.names], axis=1)
        return Cloud(np.ascontiguousarray(table), weights / weights.sum())


def checked_domain(name: str, interval: Interval) -> Interval:
    """An interval that is finite and not empty."""
    low, high = interval
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidParameter(f"the domain of {name!r}", interval, "be finite and not empty")
    return float(low), float(high)


def domains_of(records: Mapping[str, Floats]) -> dict[str, Interval]:
    """From the least to the greatest value of each column."""
    ends = {}
    for name, column in records.items():
        values = _checks.numbers(name, column)
        if not values.min() < values.max():
            raise InvalidParameter(name, "a constant", "be a column that varies")
        ends[name] = (float(values.min()), float(values.max()))
    return ends
