"""The two ways to give an equation: two sides as text, and a Python function that is zero.

Both tell what the equation leaves, where it holds, and where it may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.expressions import Expression
from sfumato.record.coupling.narrowing import near_zero
from sfumato.record.coupling.roots import roots

Columns = Mapping[str, Floats]
Relation = Callable[[Columns], Floats]

_GRID = 1 << 14
"""Points at which a Python function is looked at, in all boxes together."""
_EDGE = 1e-12
"""A solution so little outside its domain, relative to its ends, is at its end."""


@dataclass(frozen=True, slots=True)
class Sides:
    """An equation of two expressions.

    Examples:
        >>> line = Sides.parse("2*x = y")
        >>> line.names, line.values({"x": np.array([1.0, 2.0]), "y": np.array([3.0])})
        (('x', 'y'), (array([-1.,  1.]), array([5., 7.])))
    """

    left: Expression
    right: Expression

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read an equation."""
        return cls(*Expression.sides(text))

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes in it, in order of appearance."""
        return tuple(dict.fromkeys(self.left.names + self.right.names))

    def values(self, columns: Columns) -> tuple[Floats, Floats]:
        """What it leaves, and the size up to which rounding may account for it."""
        left, right = self.left(columns), self.right(columns)
        with np.errstate(all="ignore"):
            return left - right, np.abs(left) + np.abs(right)

    def solutions(self, attribute: str, columns: Columns, domain: tuple[float, float]) -> Floats:
        """Values of an attribute that satisfy it: one side, if it stands alone on the other."""
        for single, given in ((self.left, self.right), (self.right, self.left)):
            if single.alone and single.names == (attribute,) and attribute not in given.names:
                return _inside(given(columns), *domain)[:, None]
        return _scanned(self, attribute, columns, domain)

    def possible(self, boxes: Floats) -> Bools:
        """Which of many boxes may hold a solution: none that does is left out."""
        (bottom, top), (base, roof) = self._enclosures(boxes)
        return np.broadcast_to((bottom <= roof) & (base <= top), boxes.shape[2:])

    def inexact(self, box: Floats) -> Bools:
        """Attributes whose intervals are exact only if small: all where something is 1/0."""
        counts = [self.left.appearances(name) + self.right.appearances(name) for name in self.names]
        return (np.array(counts) > 1) | (not np.all(np.isfinite(self._enclosures(box))))

    def _enclosures(self, boxes: Floats) -> list[tuple[Floats, Floats]]:
        ends = {name: (boxes[0, place], boxes[1, place]) for place, name in enumerate(self.names)}
        return [side.enclosures(ends) for side in (self.left, self.right)]


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function that is zero where the equation holds."""

    names: tuple[str, ...]
    relation: Relation

    def values(self, columns: Columns) -> tuple[Floats, Floats]:
        """What it leaves, and a size by which infinite values are known."""
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        full = {name: np.array(np.broadcast_to(col, shape)) for name, col in columns.items()}
        with np.errstate(all="ignore"):
            given = self.relation(full)
        try:
            value = np.broadcast_to(np.asarray(given, dtype=np.float64), shape)
        except (TypeError, ValueError):
            rule = "give one number per row"
            raise InvalidParameter("relation", "something else", rule) from None
        return value, np.where(np.isinf(value), np.inf, 0.0)

    def solutions(self, attribute: str, columns: Columns, domain: tuple[float, float]) -> Floats:
        """Values of an attribute at which the function is zero."""
        return _scanned(self, attribute, columns, domain)

    def possible(self, boxes: Floats) -> Bools:
        """A guess, from a grid in each, at which of many boxes hold a solution."""
        size, count = boxes.shape[1:]
        points = max(2, int((_GRID / max(count, 1)) ** (1 / size)))
        steps = np.linspace(0.0, 1.0, points)
        grids = {}
        for place, name in enumerate(self.names):
            low, high = boxes[:, place, :, None]
            shape = [count] + [points if axis == place else 1 for axis in range(size)]
            grids[name] = (low + (high - low) * steps).reshape(shape)
        return near_zero(self.values(grids)[0])

    def inexact(self, box: Floats) -> Bools:
        """All attributes must be cut small: of large boxes a grid tells little."""
        return np.full(len(self.names), True)


Equation = Sides | Function


def _inside(values: Floats, low: float, high: float) -> Floats:
    """Values inside a domain, or nan; those that rounding brought outside are at its end."""
    room = _EDGE * max(abs(low), abs(high))
    outside = ~((values >= low - room) & (values <= high + room))
    return np.where(outside, np.nan, np.clip(values, low, high))


def _scanned(
    equation: Equation, attribute: str, columns: Columns, domain: tuple[float, float]
) -> Floats:
    def at(row: NDArray[np.intp], value: Floats) -> tuple[Floats, Floats]:
        taken = {name: column[row] for name, column in columns.items()}
        return equation.values({**taken, attribute: value})

    return roots(at, next(iter(columns.values())).size, *domain)
