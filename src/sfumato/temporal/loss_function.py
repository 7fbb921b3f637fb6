r"""Temporal privacy leakage: what a release tells of other moments, because values are correlated.

A mechanism with leakage $\epsilon_t$ at time $t$ (pure differential privacy of one moment) tells of
the value at $t$ also through the releases before and after it:

$$BPL_t = L_B(BPL_{t-1}) + \epsilon_t, \qquad FPL_t = L_F(FPL_{t+1}) + \epsilon_t, \qquad
  TPL_t = BPL_t + FPL_t - \epsilon_t$$

where the loss function of a transition matrix is

$$L(\alpha) = \max_{q, d}\max_S \log\frac{1 + c\,q(S)}{1 + c\,d(S)}, \qquad c = e^\alpha - 1,$$

over its rows $q, d$ and sets $S$ of columns. It depends on the points $(d(S), q(S))$ through their
upper hull only, so a handful of them give it for every $\alpha$.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sfumato.core import checks, portable
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT, up
from sfumato.core.search import largest_above
from sfumato.temporal.temporal_loops import (
    MOST_ALPHA,
    accumulate,
    apart,
    farthest,
    largest_excess,
    step,
)

Matrix: TypeAlias = "ArrayLike | sparse.sparray"

# Rows up to which a sparse matrix is written out.
_MOST_ROWS = 5000


def temporal_loss(matrix: Matrix, alpha: float) -> float:
    """The loss function of a transition matrix at one point, rounded up.

    No sorting: for each pair of rows it is the root of an equation, and one value is kept for all
    pairs. For many points use `LossFunction`.

    Examples:
        >>> temporal_loss([[0.8, 0.2], [0.0, 1.0]], 1.0)
        0.8648397

    References:
        [TPL, Eq. 24 and Alg. 1]
    """
    rows = _rows(matrix)
    level = checks.leakage("alpha", alpha)
    if level == 0.0:
        return 0.0
    rate = _rate(min(level, MOST_ALPHA))
    excess, gap, base = largest_excess(rows, rows.astype(np.float32), rate)
    if excess == 0.0:
        return 0.0
    most = gap * (1 + _error(rows)) + 8 * UNIT * (gap + 2 * base)
    bound = up(portable.log1p(most / (rate + base)) * (1 + 8 * UNIT))
    if level > MOST_ALPHA:
        return LossFunction.of(rows)(level)  # which knows what an infinite leakage loses
    return min(level, bound)


@dataclass(frozen=True, slots=True, eq=False)
class LossFunction:
    r"""How much of a leakage at one moment is one of the moment beside it.

    Attributes:
        gaps: $q(S) - d(S)$ of the corners of the hull, from that for the largest leakage on.
        bases: $d(S)$ of the same corners, rising.
        pairs: The two rows of each.
        error: Relative rounding error of gaps and bases.

    Examples:
        >>> loss = LossFunction.of([[0.8, 0.2], [0.0, 1.0]])
        >>> loss(1.0), loss.supremum(0.1)
        (0.8648397, 0.6459066)

    References:
        [TPL, Cor. 3 and Alg. 4]
    """

    gaps: Floats
    bases: Floats
    pairs: tuple[tuple[int, int], ...]
    error: float = 64 * UNIT
    _limits: Floats = field(init=False)

    def __post_init__(self) -> None:
        for name in ("gaps", "bases"):
            given = np.array(getattr(self, name), dtype=np.float64)
            object.__setattr__(self, name, checks.read_only(given))
        limits = _limits(self.gaps, self.bases)
        object.__setattr__(self, "_limits", checks.read_only(limits))

    @classmethod
    def of(cls, matrix: Matrix) -> Self:
        """The loss function of one transition matrix, rows as they are conditioned on."""
        return cls.of_any([matrix])

    @classmethod
    def of_any(cls, matrices: Sequence[Matrix]) -> Self:
        """That of a set of matrices, of which any may hold at any moment.

        Examples:
            >>> LossFunction.of_any([[[0.8, 0.2], [0.0, 1.0]], [[0.5, 0.5], [0.4, 0.6]]])(1.0)
            0.8648397
        """
        if not matrices:
            raise InvalidParameter("matrices", 0, "be at least one")
        for matrix in matrices:
            if sparse.issparse(matrix):
                _check_sparse(sparse.csr_array(matrix))
                if pair := strangers(sparse.csr_array(matrix)):
                    return cls(np.ones(1), np.zeros(1), (pair,))
        tables = [_rows(matrix) for matrix in matrices]
        outer = _outer([corner for table in tables for corner in _hull(table)])
        points = np.array([corner[:2] for corner in outer]).reshape(-1, 2)
        error = max(_error(table) for table in tables)
        return cls(points[:, 0], points[:, 1], tuple(corner[2:] for corner in outer), error)

    @classmethod
    def unknown(cls) -> Self:
        """Of an adversary who knows of no correlation: nothing carries over."""
        return cls(np.empty(0), np.empty(0), ())

    @property
    def disjoint(self) -> tuple[int, int] | None:
        """Two rows that share no column, if there are any: then everything carries over."""
        if self.gaps.size and self.bases[0] == 0.0 and self.gaps[0] == 1.0:
            return self.pairs[0]
        return None

    def __call__(self, alpha: float) -> float:
        """The loss at one point, rounded up."""
        level = checks.leakage("alpha", alpha)
        return step(level, *self._parts)

    def after(self, alpha: float, epsilon: float) -> float:
        """The leakage after one more release, of a leakage before it, rounded up."""
        carried = self(alpha)
        return up(carried + epsilon) if carried else epsilon

    def slope(self, alpha: float) -> float:
        """The derivative, for optimisation; nothing rests on its accuracy."""
        if not self.gaps.size or alpha <= 0:
            return float(self.gaps[-1]) if self.gaps.size else 0.0
        rate = _rate(min(alpha, MOST_ALPHA))
        place = int(np.argmax(self.gaps / (rate + self.bases)))
        gap, base = float(self.gaps[place]), float(self.bases[place])
        # d/dalpha log((1 + c Q)/(1 + c D)), with c and its derivative divided by c.
        return (1 + rate) * gap * rate / ((rate + gap + base) * (rate + base))

    def inverse(self, value: float) -> float:
        """The largest leakage whose loss is at most `value`, rounded down; infinite if all are."""
        wanted = checks.leakage("value", value)
        if wanted >= self(math.inf):
            return math.inf
        return largest_above(lambda alpha: self(alpha) <= wanted, max(wanted, UNIT), MOST_ALPHA)

    def accumulated(self, epsilons: ArrayLike, start: float = 0.0) -> Floats:
        """Leakage after each of successive releases, rounded up; online, a step at a time.

        Args:
            epsilons: Leakage of each release by itself.
            start: What was accumulated before.

        Examples:
            >>> LossFunction.of([[0.8, 0.2], [0.0, 1.0]]).accumulated([0.1] * 3)
            array([0.1       , 0.18078403, 0.24714774])
        """
        start = checks.leakage("start", start)
        return accumulate(checked_budgets(epsilons), start, *self._parts)

    def supremum(self, epsilon: float) -> float:
        r"""The least upper bound of the leakage when every release has the same one, rounded up.

        Where the corner $(q, d)$ is the best one, the leakage settles at $\log(1 + z)$ with
        $d z^2 + (1 + d - e^\epsilon q) z = e^\epsilon - 1$. What is returned is checked to be no
        less than what one more release would make of it.

        References:
            [TPL, Thm. 11 and Alg. 6]
        """
        budget = checks.leakage("epsilon", epsilon)
        if budget == 0.0 or not self.gaps.size:
            return budget
        corners = zip(self.gaps.tolist(), self.bases.tolist(), strict=True)
        settled = max(self._settled(gap, base, budget) for gap, base in corners)
        margin, most = 4 * UNIT * settled, up(self(math.inf) + budget)
        while settled + margin < min(most, MOST_ALPHA):
            bound = settled + margin
            if up(self(bound) + budget) <= bound:
                return bound
            margin *= 2
        return most  # what an infinite leakage would lose: infinite, where nothing limits it

    @staticmethod
    def _settled(gap: float, base: float, epsilon: float) -> float:
        if epsilon >= MOST_ALPHA:
            return math.inf
        growth, total = portable.expm1(epsilon), gap + base
        slack = 1 - gap - total * growth
        root = math.sqrt(slack * slack + 4 * base * growth)
        if slack > 0:
            return portable.log1p(2 * growth / (slack + root))
        return portable.log1p((root - slack) / (2 * base)) if base > 0 else math.inf

    @property
    def _parts(self) -> tuple[Floats, Floats, Floats, float]:
        return self.gaps, self.bases, self._limits, self.error


_Corner = tuple[float, float, int, int]


def _rows(matrix: Matrix) -> Floats:
    table = matrix
    if sparse.issparse(matrix):
        listed = sparse.csr_array(matrix)
        if listed.shape[0] > _MOST_ROWS:
            rule = f"have at most {_MOST_ROWS} rows, unless two of them share no column"
            raise InvalidParameter("matrix", listed.shape, rule)
        table = listed.toarray()
    rows = checks.row_stochastic("matrix", table)
    # Exact sums, so that entries are wrong by a unit each and rows by nothing together.
    sums = np.array([math.fsum(row) for row in rows.tolist()])
    return np.ascontiguousarray(rows / sums[:, None])


def _check_sparse(rows: sparse.csr_array) -> None:
    sums = np.asarray(rows.sum(axis=1)).ravel()
    if rows.nnz and rows.data.min() < 0:
        raise InvalidParameter("matrix", float(rows.data.min()), "have no negative entry")
    wrong = np.flatnonzero(~(np.abs(sums - 1) <= checks.SUM_TOLERANCE))
    if wrong.size:
        row = int(wrong[0])
        raise InvalidParameter(f"matrix row {row}", float(sums[row]), "sum to 1")


def strangers(matrix: sparse.sparray) -> tuple[int, int] | None:
    """Two rows of a sparse matrix that share no column, if there are any.

    Rows that share a column with a row are found from the columns' own lists, so that the usual
    case of a large map, where most rows are strangers, is settled by the first row.

    Examples:
        >>> strangers(sparse.csr_array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]))
        (0, 2)
    """
    rows, columns = sparse.csr_array(matrix), sparse.csc_array(matrix)
    rows.eliminate_zeros()
    columns.eliminate_zeros()
    for place in range(rows.shape[0]):
        met = np.zeros(rows.shape[0], dtype=np.bool_)
        for column in rows.indices[rows.indptr[place] : rows.indptr[place + 1]]:
            met[columns.indices[columns.indptr[column] : columns.indptr[column + 1]]] = True
        if not met.all():
            return place, int(np.flatnonzero(~met)[0])
    return None


def _error(rows: Floats) -> float:
    """Of sums along a row, of its division by its own sum, and of a quotient."""
    return float((4 * rows.shape[1] + 64) * UNIT)


def _rate(alpha: float) -> float:
    return portable.exp(-alpha) / -portable.expm1(-alpha)


def checked_budgets(epsilons: ArrayLike) -> Floats:
    """A vector of leakages of single releases."""
    budgets = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    if budgets.ndim != 1 or budgets.size == 0:
        raise InvalidParameter("epsilons", budgets.shape, "be a list of at least one number")
    wrong = np.flatnonzero(~(np.isfinite(budgets) & (budgets >= 0)))
    if wrong.size:
        place = int(wrong[0])
        rule = "be finite and at least 0"
        raise InvalidParameter(f"epsilons[{place}]", float(budgets[place]), rule)
    return budgets


def _hull(rows: Floats) -> list[_Corner]:
    """The corners of the upper hull of all points of all pairs, found by asking for slopes."""
    singles = rows.astype(np.float32)
    part, i, j = apart(rows) if len(rows) > 1 else (0.0, 0, 0)
    first: _Corner = (part, 0.0, i, j)
    if part == 1.0:
        return [first]
    last: _Corner = farthest(rows, singles, 0.0)
    if last[0] == 0.0:
        return []
    found = [first, last] if part > 0 else [last]
    open_ends = [(first, last)]
    while open_ends:
        left, right = open_ends.pop()
        wide = right[1] - left[1]
        excess = (right[0] - left[0]) / wide if wide > 0 else math.inf
        if not 0 < excess < math.inf:
            continue
        corner = farthest(rows, singles, excess)
        reached = corner[0] - excess * corner[1]
        known = left[0] - excess * left[1]
        if reached <= known * (1 + 8 * UNIT) or not left[1] < corner[1] < right[1]:
            continue
        found.append(corner)
        open_ends += [(left, corner), (corner, right)]
    return found


def _outer(corners: list[_Corner]) -> list[_Corner]:
    """The corners of several hulls that are corners of their common one, by rising base."""
    kept: list[_Corner] = []
    for corner in sorted(corners, key=lambda one: (one[1], -one[0])):
        if kept and corner[0] <= kept[-1][0]:
            continue
        while len(kept) > 1 and _turns(kept[-2], kept[-1], corner):
            kept.pop()
        kept.append(corner)
    return kept


def _turns(first: _Corner, middle: _Corner, last: _Corner) -> bool:
    """Whether the middle one lies on or under the line through the others."""
    rise, run = last[0] - first[0], last[1] - first[1]
    return (middle[0] - first[0]) * run <= rise * (middle[1] - first[1])


def _limits(gaps: Floats, bases: Floats) -> Floats:
    """The rates at which one piece gives way to the next, which has the larger base."""
    rise, wide = np.diff(gaps), np.diff(bases)
    # (rate + base) / gap is equal on both sides.
    return np.asarray((gaps[:-1] * wide - bases[:-1] * rise) / np.where(rise > 0, rise, 1.0))
