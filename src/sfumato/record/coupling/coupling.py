r"""Attributes of a record that an equation ties together.

$$G(x_1, \dots, x_N) = 0$$

where $x_i$ are the attributes, each inside a known interval. Whoever knows all but one of them
knows the last one, up to the choice between a few solutions; whoever knows intervals for them can
cut away what no solution reaches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.equations import Equation, Function, Relation, Sides
from sfumato.record.coupling.narrowing import covering, enclosed
from sfumato.record.coupling.polynomial import fitted_polynomial

Interval = tuple[float, float]

_MOST_ATTRIBUTES = 8
"""Attributes of a Python function: its values are looked at on a grid of them."""
_SAMPLES = 4096
"""Points at which an equation is asked whether it has solutions."""
_MOST_SOLUTIONS = 64
"""More of them at one point leave an attribute open."""
_WIDENED = 1e-9
"""Part of an interval by which what remains of it is widened."""
_STEP = 6e-6
"""Step of a central difference, as a part of the domain: the cube root of the unit."""


@dataclass(frozen=True, slots=True, eq=False)
class FullCoupling:
    """An equation between attributes; built by `equation`, `function` or `fit`.

    Attributes:
        attributes: Those that the equation ties.
        domains: The interval in which each of them lies, for everybody to know.
        text: How the equation reads.
        residual: Standard deviation of what a fitted equation leaves unexplained; else 0.

    Examples:
        >>> body = FullCoupling.equation(
        ...     "weight = 261.88 - 7.35*height + 0.083*height**2",
        ...     {"height": (50, 90), "weight": (80, 300)},
        ... )
        >>> body.solve("weight", {"height": [60, 70]})
        array([119.68, 154.08])
        >>> body.solve("height", {"weight": [119.68, 154.08]})
        array([60., 70.])
        >>> body.narrowed({"height": (60, 70), "weight": (100, 140)})
        {'weight': (119.68, 140.0), 'height': (60.0, 66.459)}

    References:
        [MDDP, Def. 1]
    """

    attributes: tuple[str, ...]
    domains: Mapping[str, Interval]
    text: str
    residual: float = 0.0
    _equation: Equation = field(repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if len(set(self.attributes)) < max(2, len(self.attributes)):
            rule = "tie at least two attributes, each named once"
            raise InvalidParameter("coupling", self.attributes or self.text, rule)
        domains = {name: _domain(self.domains, name) for name in self.attributes}
        object.__setattr__(self, "domains", MappingProxyType(domains))

    @classmethod
    def equation(cls, text: str, domains: Mapping[str, Interval]) -> FullCoupling:
        """Attributes tied by an equation in their names.

        Args:
            text: Two sides and an `=`; what may stand in them says `Expression`.
            domains: An interval for each attribute in the equation; others are left out.

        Examples:
            >>> FullCoupling.equation("0.453*kg - lb = 0", {"kg": (0, 300), "lb": (0, 136)})
            FullCoupling(attributes=('kg', 'lb'), ... text='0.453*kg - lb = 0', residual=0.0)
        """
        sides = Sides.parse(text)
        return cls(sides.names, domains, text.strip(), _equation=sides)

    @classmethod
    def function(
        cls, relation: Relation, attributes: Iterable[str], domains: Mapping[str, Interval]
    ) -> FullCoupling:
        """Attributes tied by a Python function that is zero where they are coupled.

        Args:
            relation: Takes columns by name, gives one number per row.
            attributes: The names that it reads, at most 8.
            domains: An interval for each.

        Examples:
            >>> def circle(at):
            ...     return at["x"] ** 2 + at["y"] ** 2 - 25
            >>> FullCoupling.function(circle, "xy", {"x": (-5, 5), "y": (-5, 5)}).solutions(
            ...     "x", {"y": 3.0}
            ... )
            array([[-4.,  4.]])
        """
        names = tuple(attributes)
        if len(names) > _MOST_ATTRIBUTES:
            raise InvalidParameter("attributes", len(names), f"be at most {_MOST_ATTRIBUTES}")
        title = getattr(relation, "__name__", "relation")
        text = f"{title}({', '.join(names)}) = 0"
        return cls(names, domains, text, _equation=Function(names, relation))

    @classmethod
    def fit(
        cls,
        records: Mapping[str, ArrayLike],
        target: str,
        features: Sequence[str],
        *,
        degree: int = 2,
        domains: Mapping[str, Interval] | None = None,
    ) -> FullCoupling:
        """The polynomial of some attributes that is nearest to another, by least squares.

        Args:
            records: Columns of numbers.
            target: The attribute that the polynomial gives.
            features: Those that it is a polynomial of.
            degree: Largest sum of exponents in a term; 1 to 9.
            domains: Intervals of the attributes. If not given, from the least to the greatest
                value of each column: these are then values of the records.

        Examples:
            >>> height = np.linspace(50.0, 90.0, 9)
            >>> weight = 261.88 - 7.35 * height + 0.083 * height**2
            >>> body = FullCoupling.fit({"h": height, "w": weight}, "w", ["h"])
            >>> body.solve("w", {"h": [60.0, 70.0]}).round(6), body.residual < 1e-9
            (array([119.68, 154.08]), True)
        """
        columns = _columns("records", records, [target, *features])
        text, residual = fitted_polynomial(columns, target, features, degree)
        if domains is None:
            domains = {n: (float(c.min()), float(c.max())) for n, c in columns.items()}
        sides = Sides.parse(text)
        return cls(sides.names, domains, text, residual, _equation=sides)

    def residuals(self, records: Mapping[str, ArrayLike]) -> Floats:
        """What the equation leaves at each record: zero where it holds, nan where undefined.

        Examples:
            >>> total = {"a": (0, 9), "b": (0, 9), "c": (0, 9)}
            >>> FullCoupling.equation("a + b = c", total).residuals({"a": 1, "b": [2, 4], "c": 3})
            array([0., 2.])
        """
        columns = _columns("records", records, self.attributes)
        return np.array(self._equation.values(columns)[0])

    def solutions(self, attribute: str, others: Mapping[str, ArrayLike]) -> Floats:
        """Every value of an attribute, inside its domain, that satisfies the equation.

        Right to the last digits if the attribute stands alone on one side, or crosses zero.
        Otherwise 256 cells of the domain are scanned: two roots within one cell, and one at which
        the equation touches zero, are found unless the equation turns there more than once.

        Args:
            attribute: The one to solve for.
            others: Values of all others, one per row.

        Returns:
            The solutions of each row, ascending, padded with nan to at least one column.

        Examples:
            >>> circle = FullCoupling.equation("x**2 + y**2 = 25", {"x": (-9, 9), "y": (-9, 9)})
            >>> circle.solutions("y", {"x": [3.0, 5.0, 6.0]})
            array([[-4.,  4.], [ 0., nan], [nan, nan]])
        """
        domain = self._domain_of(attribute)
        columns = _columns("others", others, [n for n in self.attributes if n != attribute])
        return self._equation.solutions(attribute, columns, domain)

    def solve(
        self, attribute: str, others: Mapping[str, ArrayLike], near: ArrayLike | None = None
    ) -> Floats:
        """One solution for each row: the one nearest to `near`, or the least.

        Examples:
            >>> circle = FullCoupling.equation("x**2 + y**2 = 25", {"x": (-9, 9), "y": (-9, 9)})
            >>> circle.solve("y", {"x": [3.0, 0.0]}, near=1.0)
            array([4., 5.])

        References:
            [MDDP, Thm. 2]
        """
        found = self.solutions(attribute, others)
        missing = int(np.isnan(found[:, 0]).sum())
        if missing:
            low, high = self.domains[attribute]
            rule = f"be solvable for {attribute!r} within its domain {low:g} to {high:g}"
            raise InvalidParameter(
                "coupling", self.text, f"{rule}; {missing} of {len(found)} rows have no solution"
            )
        if near is None:
            return np.array(found[:, 0])
        wanted = checks.numbers("near", near).ravel()
        if wanted.size not in (1, len(found)):
            raise InvalidParameter("near", f"{wanted.size} numbers", "be one, or one per row")
        best = np.nanargmin(np.abs(found - wanted[:, None]), axis=1)
        return np.array(found[np.arange(len(found)), best])

    def check_solvable(self, attribute: str) -> None:
        """Raise unless the equation has the attribute, and a few solutions for it in the domains.

        Solutions are looked for at 4096 values of the other attributes, in what the equation
        leaves of their domains.

        Examples:
            >>> circle = FullCoupling.equation("x**2 + y**2 = 25", {"x": (6, 9), "y": (-9, 9)})
            >>> circle.check_solvable("y")
            Traceback (most recent call last):
            sfumato.core.errors.InvalidParameter: coupling must have a solution for 'y' ...
        """
        self._domain_of(attribute)
        rule = f"have a solution for {attribute!r} in the domains of its attributes"
        try:
            boxes = self.narrowed(self.domains)
        except InvalidParameter:
            raise InvalidParameter("coupling", self.text, rule) from None
        del boxes[attribute]
        ends = np.array(list(boxes.values()))
        even = stats.qmc.Sobol(len(boxes), seed=0).random(_SAMPLES)
        columns = ends[:, :1] + np.diff(ends) * even.T
        points = dict(zip(boxes, columns, strict=True))
        found = self.solutions(attribute, points)
        if np.all(np.isnan(found)):
            raise InvalidParameter("coupling", self.text, rule)
        if found.shape[1] > _MOST_SOLUTIONS:
            rule = f"give {attribute!r} by at most {_MOST_SOLUTIONS} solutions, not leave it open"
            raise InvalidParameter("coupling", self.text, rule)

    def narrowed(self, intervals: Mapping[str, Interval], pieces: int = 64) -> dict[str, Interval]:
        """What remains of each interval if the attributes lie in theirs and satisfy the equation.

        For an equation this is an enclosure: no solution is ever cut off. Boxes in which the
        two sides cannot meet are dropped, the outermost that remain are cut smaller, until they
        are a millionth of the whole or the effort is spent. For a Python function it is a guess:
        boxes are kept if its values on a grid in them come near zero, and a solution between the
        points of the grid may be missed.

        Args:
            intervals: Where each attribute lies; its domain if not given, and never beyond.
            pieces: Into how many an interval is cut at first.

        Raises:
            InvalidParameter: No solution lies in the intervals.

        Examples:
            >>> total = {"a": (0, 9), "b": (0, 9), "c": (0, 9)}
            >>> FullCoupling.equation("a + b = c", total).narrowed({"a": (2, 5), "c": (0, 3)})
            {'a': (2.0, 3.0), 'b': (0.0, 1.0), 'c': (2.0, 3.0)}

        References:
            [MDDP, Def. 6, Thm. 2]
        """
        count = checks.count("pieces", pieces)
        box = np.array([self._within(intervals, name) for name in self.attributes]).T
        rest, equation = None, self._equation
        if np.all(box[0] <= box[1]):
            rest = enclosed(equation.possible, box, count, equation.inexact(box))
        if rest is None:
            rule = f"hold a solution of {self.text!r}"
            raise InvalidParameter("intervals", "some that hold none", rule)
        # A record that satisfies the equation up to rounding stays inside.
        room = _WIDENED * (box[1] - box[0])
        low, high = np.maximum(rest[0] - room, box[0]), np.minimum(rest[1] + room, box[1])
        pairs = zip(low.tolist(), high.tolist(), strict=True)
        return dict(zip(self.attributes, pairs, strict=True))

    def reaching(self, intervals: Mapping[str, Interval]) -> Floats:
        """Cells of all attributes but the first that may lead to its interval, small ones.

        Lower and upper ends along the first axis, cells along the second, attributes along the
        third. All solutions in the intervals lie in them, as far as `narrowed` can say.
        """
        box = np.array([intervals[name] for name in self.attributes]).T
        return np.moveaxis(covering(self._equation.possible, box)[:, 1:], 1, 2)

    def slopes(self, attribute: str, other: str, at: Mapping[str, ArrayLike]) -> Floats:
        r"""How fast one attribute follows another along the equation, the rest held.

        $$\frac{dx_i}{dx_j} = -\frac{\partial G / \partial x_j}{\partial G / \partial x_i}$$

        where $x_i$ is `attribute` and $x_j$ is `other`; by central differences.

        Examples:
            >>> circle = FullCoupling.equation("x**2 + y**2 = 25", {"x": (-9, 9), "y": (-9, 9)})
            >>> circle.slopes("y", "x", {"x": 3.0, "y": [4.0, -4.0]})
            array([-0.75,  0.75])
        """
        columns = _columns("at", at, self.attributes)
        with np.errstate(all="ignore"):
            up, down = (self._derivative(name, columns) for name in (other, attribute))
            return np.asarray(-up / down)

    def _derivative(self, attribute: str, columns: Mapping[str, Floats]) -> Floats:
        low, high = self._domain_of(attribute)
        step = _STEP * (high - low)
        after, before = columns[attribute] + step, columns[attribute] - step
        rise, _ = self._equation.values({**columns, attribute: after})
        fall, _ = self._equation.values({**columns, attribute: before})
        return (rise - fall) / (after - before)

    def _domain_of(self, attribute: str) -> Interval:
        if attribute not in self.attributes:
            rule = f"be one of {', '.join(map(repr, self.attributes))}: {self.text!r} ties no other"
            raise InvalidParameter("attribute", attribute, rule)
        return self.domains[attribute]

    def _within(self, intervals: Mapping[str, Interval], name: str) -> Interval:
        low, high = self.domains[name]
        first, last = intervals.get(name, (low, high))
        if not first <= last:
            raise InvalidParameter(f"the interval of {name!r}", "another", "be low <= high")
        return max(low, float(first)), min(high, float(last))


def _domain(domains: Mapping[str, Interval], name: str) -> Interval:
    if name not in domains:
        given = sorted(str(key) for key in domains)
        raise InvalidParameter("domains", given, f"give an interval for {name!r}")
    return checked_domain(name, domains[name])


def checked_domain(name: str, interval: Interval) -> Interval:
    """An interval that is finite and not empty."""
    try:
        low, high = (float(end) for end in interval)
    except (TypeError, ValueError, OverflowError):
        low, high = math.nan, math.nan
    if not (low < high and math.isfinite(high - low)):
        rule = "be an interval (low, high), finite and not empty"
        raise InvalidParameter(f"the domain of {name!r}", interval, rule)
    return low, high


def _columns(
    argument: str, records: Mapping[str, ArrayLike], names: Sequence[str]
) -> dict[str, Floats]:
    """The columns of some names, as long as each other."""
    missing = [name for name in names if name not in records]
    if missing:
        given = sorted(str(key) for key in records)
        raise InvalidParameter(argument, given, f"hold {', '.join(map(repr, missing))}")
    columns = [checks.numbers(f"{argument}[{name!r}]", records[name]) for name in names]
    sizes = [column.size for column in columns if column.ndim > 0]
    if any(column.ndim > 1 for column in columns) or len(set(sizes) - {1}) > 1:
        shapes = {name: column.shape for name, column in zip(names, columns, strict=True)}
        raise InvalidParameter(argument, shapes, "be columns of the same length")
    full = np.broadcast_arrays(*(np.atleast_1d(column) for column in columns))
    return dict(zip(names, full, strict=True))
