r"""Sets of priors: what an adversary may believe, when that is not known exactly.

A guarantee for a set holds for every prior in it. All that leakage and design need of a set is how
small and how large the probability of an event or the mean of a vector can be, which is linear in
the prior and so decided at the corners of the set; for boxes and balls the corner is found by
sorting, without listing them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Polytope:
    r"""A set of priors as linear constraints: $P = c + S z$ with $F z \le g$ and $E z = e$.

    Attributes:
        offset: $c$.
        spread: $S$.
        above: $F$.
        limits: $g$.
        equal: $E$.
        targets: $e$.
    """

    offset: Floats
    spread: Floats
    above: Floats
    limits: Floats
    equal: Floats
    targets: Floats


class PriorSet(ABC):
    """A closed convex set of priors on one alphabet."""

    @property
    @abstractmethod
    def nominal(self) -> Floats:
        """A prior in the middle of the set, for expected losses."""

    @abstractmethod
    def least_means(self, columns: Floats) -> Floats:
        """The least mean of each column over the priors of the set."""

    @abstractmethod
    def polytope(self) -> Polytope:
        """The set as linear constraints."""

    def most_means(self, columns: Floats) -> Floats:
        """The largest mean of each column over the priors of the set."""
        return -self.least_means(-columns)

    @property
    def size(self) -> int:
        """Number of symbols."""
        return int(self.nominal.size)

    @property
    def least_masses(self) -> Floats:
        """The least probability of each symbol in the set."""
        return self.least_means(np.eye(self.size))


@dataclass(frozen=True, slots=True, eq=False)
class PriorList(PriorSet):
    """Some priors and all their mixtures.

    Attributes:
        priors: One row each.

    Examples:
        >>> PriorList([[0.5, 0.5], [0.2, 0.8]]).least_masses
        array([0.2, 0.5])
    """

    priors: Floats

    def __init__(self, priors: Sequence[ArrayLike] | Floats) -> None:
        rows = checks.row_stochastic("priors", np.atleast_2d(np.asarray(priors, dtype=np.float64)))
        scaled = rows / rows.sum(axis=1, keepdims=True)
        object.__setattr__(self, "priors", checks.read_only(scaled))

    @property
    def nominal(self) -> Floats:
        """The mean of the listed priors."""
        return checks.read_only(self.priors.mean(axis=0))

    def least_means(self, columns: Floats) -> Floats:
        """The least mean of each column over the listed priors."""
        return np.asarray((portable.dot(self.priors, columns)).min(axis=0))

    def polytope(self) -> Polytope:
        """Mixtures: the weights are at least 0 and sum to 1."""
        count, size = self.priors.shape
        return Polytope(
            offset=np.zeros(size),
            spread=self.priors.T,
            above=-np.eye(count),
            limits=np.zeros(count),
            equal=np.ones((1, count)),
            targets=np.ones(1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PriorBox(PriorSet):
    """Priors whose probabilities lie between bounds.

    Attributes:
        lower: The least probability of each symbol.
        upper: The largest.

    Examples:
        >>> box = PriorBox([0.2, 0.3], [0.7, 0.8])
        >>> box.nominal, box.least_masses
        (array([0.45, 0.55]), array([0.2, 0.3]))
    """

    lower: Floats
    upper: Floats

    def __init__(self, lower: ArrayLike, upper: ArrayLike) -> None:
        low, high = (np.asarray(bound, dtype=np.float64) for bound in (lower, upper))
        if low.ndim != 1 or low.shape != high.shape or low.size == 0:
            raise InvalidParameter("lower and upper", (low.shape, high.shape), "be equally long")
        if not np.all((low >= 0) & (low <= high) & (high <= 1)):
            raise InvalidParameter("lower and upper", "others", "satisfy 0 <= lower <= upper <= 1")
        if low.sum() > 1 + checks.SUM_TOLERANCE or high.sum() < 1 - checks.SUM_TOLERANCE:
            rule = "leave room for probabilities that sum to 1"
            raise InvalidParameter("lower and upper", (low.sum(), high.sum()), rule)
        object.__setattr__(self, "lower", checks.read_only(low))
        object.__setattr__(self, "upper", checks.read_only(high))

    @classmethod
    def near(cls, prior: ArrayLike, ratio: float) -> Self:
        """Priors whose log ratio to a given one is at most `ratio`, symbol by symbol.

        Examples:
            >>> PriorBox.near([0.5, 0.5], np.log(1.2)).upper
            array([0.6, 0.6])
        """
        middle = checks.probabilities("prior", prior)
        factor = portable.exp(checks.finite("ratio", ratio))
        return cls(middle / factor, np.minimum(middle * factor, 1.0))

    @property
    def nominal(self) -> Floats:
        """The prior between the bounds, as near to their middle as the sum allows."""
        room = self.upper - self.lower
        part = (1 - self.lower.sum()) / room.sum() if room.sum() > 0 else 0.0
        return checks.read_only(self.lower + part * room)

    def least_means(self, columns: Floats) -> Floats:
        """The least mean of each column: what is free goes where the column is least."""
        order = np.argsort(columns, axis=0)
        room = (self.upper - self.lower)[order]
        free = max(0.0, 1 - float(self.lower.sum()))
        # What is free fills the cheapest symbols first, each up to its room.
        before = np.cumsum(room, axis=0) - room
        moved = np.clip(free - before, 0.0, room)
        values = np.take_along_axis(columns, order, axis=0)
        return np.asarray(portable.dot(self.lower, columns) + (moved * values).sum(axis=0))

    def polytope(self) -> Polytope:
        """The bounds, and the sum."""
        size = self.lower.size
        return Polytope(
            offset=np.zeros(size),
            spread=np.eye(size),
            above=np.vstack([np.eye(size), -np.eye(size)]),
            limits=np.concatenate([self.upper, -self.lower]),
            equal=np.ones((1, size)),
            targets=np.ones(1),
        )


@dataclass(frozen=True, slots=True, eq=False)
class PriorBall(PriorSet):
    """Priors within a total-variation distance of a given one.

    Attributes:
        centre: The given prior.
        radius: The distance: the most that the probability of any event may differ.

    Examples:
        >>> PriorBall([0.5, 0.5], 0.1).least_masses
        array([0.4, 0.4])
    """

    centre: Floats
    radius: float

    def __init__(self, centre: ArrayLike, radius: float) -> None:
        middle = checks.probabilities("centre", centre)
        object.__setattr__(self, "centre", checks.read_only(middle / middle.sum()))
        object.__setattr__(self, "radius", checks.fraction("radius", radius))

    @property
    def nominal(self) -> Floats:
        """The centre."""
        return self.centre

    def least_means(self, columns: Floats) -> Floats:
        """The least mean of each column: mass moves from its largest to its least entries."""
        order = np.argsort(-columns, axis=0)
        mass = self.centre[order]
        before = np.cumsum(mass, axis=0) - mass
        taken = np.clip(self.radius - before, 0.0, mass)
        values = np.take_along_axis(columns, order, axis=0)
        gained = (taken * (values - columns.min(axis=0))).sum(axis=0)
        return np.asarray(portable.dot(self.centre, columns) - gained)

    def polytope(self) -> Polytope:
        """What is added to symbols and what is taken from them, equal in sum."""
        size = self.centre.size
        one, none = np.eye(size), np.zeros((size, size))
        added = np.concatenate([np.ones(size), np.zeros(size)])
        return Polytope(
            offset=self.centre,
            spread=np.hstack([one, -one]),
            above=np.vstack([-np.eye(2 * size), np.hstack([none, one]), added]),
            limits=np.concatenate([np.zeros(2 * size), self.centre, [self.radius]]),
            equal=np.concatenate([np.ones(size), -np.ones(size)])[None, :],
            targets=np.zeros(1),
        )
