"""Temporal privacy leakage, written again from the paper: slow, plain, and nothing shared.

Five ways to the loss function of a transition matrix, none of which the package uses:
the paper's Algorithms 1 to 5, the linear-fractional program itself (HiGHS), all subsets of columns
(Theorem 5), all prefixes of columns in 50 digits, and for tiny cases the joint table of all values
and all outputs (Definitions 5 to 7 as they are written).

Where the paper errs the correction is named: Algorithm 1 never resets `update`; Algorithm 2 line 11
lacks "+1"; Algorithm 3 line 5 has a wrong denominator; Algorithm 4 compares floats for equality;
Algorithm 5 line 2 looks in the wrong order; Algorithm 6 cancels; Algorithms 7 and 8 never end.
"""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog

Floats = NDArray[np.float64]
Piece = tuple[float, float]
Parameters = list[tuple[list[float], list[float], list[float]]]

DIGITS = 50
SAME = 1e-13
"""Floats nearer than this are the same leakage in Algorithm 4."""


# The paper's algorithms ---------------------------------------------------------------------------


def algorithm_1(matrix: ArrayLike, alpha: float, epsilon: float = 0.0) -> float:
    """BPL or FPL of one step; `update` begins anew in every round."""
    rows, loss, growth = np.asarray(matrix, dtype=np.float64).tolist(), 0.0, math.expm1(alpha)
    for first, second in itertools.permutations(rows, 2):
        kept = [(q, d) for q, d in zip(first, second, strict=True) if q > d]
        while True:
            top = math.fsum(q for q, _ in kept) * growth + 1
            bottom = math.fsum(d for _, d in kept) * growth + 1
            left = [(q, d) for q, d in kept if q * bottom > d * top]
            if len(left) == len(kept):
                break
            kept = left
        loss = max(loss, math.log(top / bottom))
    return loss + epsilon


def algorithm_2(matrix: ArrayLike, plus_one: bool = True) -> Parameters:
    """Prefix sums and transition points of every pair of rows; `plus_one` as line 11 needs it."""
    rows = np.asarray(matrix, dtype=np.float64).tolist()
    found: Parameters = []
    for first, second in itertools.permutations(rows, 2):
        kept = [(q, d) for q, d in zip(first, second, strict=True) if q > d]
        kept.sort(key=lambda pair: -math.inf if pair[1] == 0 else -pair[0] / pair[1])
        if not kept:
            continue
        tops = list(itertools.accumulate(q for q, _ in kept))
        bottoms = list(itertools.accumulate(d for _, d in kept))
        points = []
        for (q, d), top, bottom in zip(kept, tops, bottoms, strict=True):
            below = top * d - bottom * q
            growth = (q - d) / below if below > 0 else math.inf
            points.append(math.log(growth + plus_one))
        found.append((tops, bottoms, points))
    return found


def algorithm_3(alpha: float, parameters: Parameters, epsilon: float = 0.0) -> float:
    """BPL or FPL of one step from what Algorithm 2 found."""
    return max((_best(alpha, one)[0] for one in parameters), default=0.0) + epsilon


def _best(alpha: float, one: tuple[list[float], list[float], list[float]]) -> tuple[float, Piece]:
    tops, bottoms, points = one
    place = max((k for k, point in enumerate(points) if point > alpha), default=0)
    piece = (tops[place], bottoms[place])
    return _value(piece, alpha), piece


def _value(piece: Piece, alpha: float) -> float:
    growth = math.expm1(alpha)
    return math.log1p((piece[0] - piece[1]) * growth / (1 + piece[1] * growth))


def algorithm_4(
    parameters: Parameters, low: float, high: float
) -> tuple[list[float], list[float], list[float]]:
    """Numerators, denominators and right ends of the pieces of the loss function on a range."""
    if not parameters:
        return [0.0], [0.0], [high]
    at_low, first = max(_best(low, one) for one in parameters)
    at_high, last = max(_best(high, one) for one in parameters)
    below = first[0] * last[1] - last[0] * first[1]
    cut = (last[0] + first[1] - first[0] - last[1]) / below if below else 0.0
    if high - low < SAME or at_high - _value(first, high) <= SAME * at_high:
        return [first[0]], [first[1]], [high]
    if at_low - _value(last, low) <= SAME * at_low or cut <= 0:
        return [last[0]], [last[1]], [high]
    middle = math.log1p(cut)
    if not low < middle < high:
        middle = 0.5 * (low + high)
    left, right = algorithm_4(parameters, low, middle), algorithm_4(parameters, middle, high)
    return left[0] + right[0], left[1] + right[1], left[2] + right[2]


def algorithm_5(
    alpha: float, pieces: tuple[list[float], list[float], list[float]], epsilon: float = 0.0
) -> float:
    """The first piece whose right end is not left of alpha: the ends ascend."""
    tops, bottoms, ends = pieces
    place = min(int(np.searchsorted(ends, alpha)), len(ends) - 1)
    return _value((tops[place], bottoms[place]), alpha) + epsilon


def theorem_11(top: float, bottom: float, epsilon: float) -> float:
    """Where the leakage through one piece settles; the stable form."""
    growth = math.expm1(epsilon)
    slack = (1 - top) + bottom - top * growth
    root = math.sqrt(slack * slack + 4 * bottom * growth)
    if slack > 0:
        return math.log1p(2 * growth / (slack + root))
    return math.log1p((root - slack) / (2 * bottom)) if bottom > 0 else math.inf


def algorithm_6(epsilon: float, parameters: Parameters) -> float:
    """The supremum over time."""
    settled = [
        theorem_11(top, bottom, epsilon)
        for tops, bottoms, _ in parameters
        for top, bottom in zip(tops, bottoms, strict=True)
    ]
    return max(settled, default=epsilon)


def algorithm_7(backward: ArrayLike, forward: ArrayLike, alpha: float) -> float:
    """The constant budget, by halving; 0 if two rows share no column."""
    both = algorithm_2(backward), algorithm_2(forward)
    low, high = 0.0, alpha
    for _ in range(200):
        middle = 0.5 * (low + high)
        if sum(algorithm_6(middle, one) for one in both) - middle > alpha:
            high = middle
        else:
            low = middle
    return low


def algorithm_8(backward: ArrayLike, forward: ArrayLike, alpha: float, steps: int) -> list[float]:
    """First, middle and last budgets, in closed form from Algorithm 7."""
    if steps == 1:
        return [alpha]
    middle = algorithm_7(backward, forward, alpha)
    first = algorithm_6(middle, algorithm_2(backward))
    last = algorithm_6(middle, algorithm_2(forward))
    return [first, *[middle] * (steps - 2), last]


# The optimisation problem -------------------------------------------------------------------------


def linear_fractional(matrix: ArrayLike, alpha: float) -> float:
    """Problem (19) to (21) for every pair of rows, by Charnes and Cooper's change of variables."""
    rows = np.asarray(matrix, dtype=np.float64)
    size, most = rows.shape[1], math.exp(alpha)
    # Variables: the scaled x, and their least value; least <= x <= e^alpha * least.
    over = np.hstack([-np.eye(size), np.ones((size, 1))])
    under = np.hstack([np.eye(size), np.full((size, 1), -most)])
    best = 1.0
    for first, second in itertools.permutations(rows, 2):
        solved = linprog(
            -np.append(first, 0.0),
            A_ub=np.vstack([over, under]),
            b_ub=np.zeros(2 * size),
            A_eq=np.append(second, 0.0)[None, :],
            b_eq=[1.0],
            method="highs",
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )
        assert solved.status == 0, solved.message
        best = max(best, -float(solved.fun))
    return math.log(best)


def best_subset(matrix: ArrayLike, alpha: float) -> float:
    """Theorem 5 without its conditions: the best of all sets of columns, for every pair."""
    rows, growth, best = np.asarray(matrix, dtype=np.float64), math.expm1(alpha), 0.0
    sets = np.array(list(itertools.product((0.0, 1.0), repeat=rows.shape[1])))
    sums = rows @ sets.T
    for first, second in itertools.permutations(sums, 2):
        best = max(best, float(np.max((1 + growth * first) / (1 + growth * second))))
    return math.log(best) if best > 0 else 0.0


# Fifty digits -------------------------------------------------------------------------------------


class ExactLoss:
    """The loss function of any of some matrices in 50 digits: the best prefix of any pair.

    Rows are divided by their own sums, exactly. Of a matrix with many rows only the given pairs.
    """

    def __init__(
        self, *matrices: ArrayLike, pairs: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self.points: set[tuple[Any, Any]] = set()
        with mpmath.workdps(DIGITS):
            for matrix in matrices:
                rows = [_normalised(row) for row in np.asarray(matrix, dtype=np.float64).tolist()]
                chosen = pairs or list(itertools.permutations(range(len(rows)), 2))
                for one, other in chosen:
                    self.points.update(_prefixes(rows[one], rows[other]))
            self.points = _dominant(self.points)

    def __call__(self, alpha: Any) -> Any:
        with mpmath.workdps(DIGITS):
            growth = mpmath.expm1(alpha)
            values = [gap * growth / (1 + base * growth) for gap, base in self.points]
            return mpmath.log1p(max(values, default=mpmath.mpf(0)))

    def supremum(self, epsilon: float) -> Any:
        """The largest of the points where one piece alone settles."""
        with mpmath.workdps(DIGITS):
            growth, found = mpmath.expm1(epsilon), mpmath.mpf(epsilon)
            for gap, base in self.points:
                slack = 1 - gap - (gap + base) * growth
                root = mpmath.sqrt(slack * slack + 4 * base * growth)
                if slack > 0:
                    settled = 2 * growth / (slack + root)
                elif base > 0:
                    settled = (root - slack) / (2 * base)
                else:
                    return mpmath.inf
                found = max(found, mpmath.log1p(settled))
            return found

    def accumulated(self, epsilons: Sequence[float]) -> list[Any]:
        """Leakage after each of successive releases."""
        return exact_accumulated(epsilons, [self] * (len(epsilons) - 1))


def _normalised(row: Sequence[float]) -> list[Any]:
    exact = [mpmath.mpf(entry) for entry in row]
    total = mpmath.fsum(exact)
    return [entry / total for entry in exact]


def _prefixes(first: Sequence[Any], second: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Gaps and denominators of the columns with the largest ratios."""
    kept = [(q, d) for q, d in zip(first, second, strict=True) if q > d]
    kept.sort(key=lambda pair: -mpmath.inf if pair[1] == 0 else -pair[0] / pair[1])
    gap, base, found = mpmath.mpf(0), mpmath.mpf(0), []
    for q, d in kept:
        gap, base = gap + (q - d), base + d
        found.append((gap, base))
    return found


def _dominant(points: set[tuple[Any, Any]]) -> set[tuple[Any, Any]]:
    """Points that no other one beats in both coordinates."""
    kept, most = set(), mpmath.mpf(0)
    for base, gap in sorted((base, -gap) for gap, base in points):
        if -gap > most:
            kept.add((-gap, base))
            most = -gap
    return kept


def exact_accumulated(epsilons: Sequence[float], losses: Sequence[ExactLoss]) -> list[Any]:
    """Eq. 13 with a loss function for each step."""
    with mpmath.workdps(DIGITS):
        found = [mpmath.mpf(epsilons[0])]
        for loss, epsilon in zip(losses, epsilons[1:], strict=True):
            found.append(loss(found[-1]) + mpmath.mpf(epsilon))
        return found


def exact_leakage(
    epsilons: Sequence[float],
    backward: ExactLoss | Sequence[ExactLoss],
    forward: ExactLoss | Sequence[ExactLoss],
) -> tuple[list[Any], list[Any], list[Any]]:
    """BPL, FPL and TPL of every release, Eqs. 13, 15 and 11."""
    steps = len(epsilons) - 1
    before = [backward] * steps if isinstance(backward, ExactLoss) else list(backward)
    after = [forward] * steps if isinstance(forward, ExactLoss) else list(forward)
    with mpmath.workdps(DIGITS):
        told = exact_accumulated(epsilons, before)
        later = exact_accumulated(list(epsilons)[::-1], after[::-1])[::-1]
        total = [b + f - mpmath.mpf(e) for b, f, e in zip(told, later, epsilons, strict=True)]
    return told, later, total


def exact_event(
    epsilons: Sequence[float],
    backward: ExactLoss | Sequence[ExactLoss],
    forward: ExactLoss | Sequence[ExactLoss],
) -> Any:
    """The largest TPL of any moment."""
    return max(exact_leakage(epsilons, backward, forward)[2])


# The definitions ----------------------------------------------------------------------------------


def randomised_response(size: int, epsilon: float) -> Floats:
    """The value itself with odds e^epsilon to each other one."""
    table = np.ones((size, size))
    np.fill_diagonal(table, math.exp(epsilon))
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def reversed_steps(forward: ArrayLike, initial: ArrayLike, steps: int) -> list[Floats]:
    """Backward matrices of successive steps from the joint table of two values."""
    rows, share = np.asarray(forward, dtype=np.float64), np.asarray(initial, dtype=np.float64)
    found = []
    for _ in range(steps):
        after, table = np.zeros(len(rows)), np.zeros_like(rows)
        for earlier, later in itertools.product(range(len(rows)), repeat=2):
            table[later, earlier] = share[earlier] * rows[earlier, later]
            after[later] += table[later, earlier]
        found.append(np.array([row / total for row, total in zip(table, after, strict=True)]))
        share = after
    return found


def defined_leakage(
    forward: ArrayLike, initial: ArrayLike, channels: Sequence[Floats]
) -> tuple[Floats, Floats, Floats, Floats]:
    """BPL, FPL, TPL and PL_0 at every time as suprema over the joint table of everything."""
    rows, start = np.asarray(forward, dtype=np.float64), np.asarray(initial, dtype=np.float64)
    length, size = len(channels), len(rows)
    joint = np.zeros((size,) * length + tuple(channel.shape[1] for channel in channels))
    for values in itertools.product(range(size), repeat=length):
        chance = start[values[0]]
        for earlier, later in itertools.pairwise(values):
            chance *= rows[earlier, later]
        outputs = np.ones(())
        for channel, value in zip(channels, values, strict=True):
            outputs = np.multiply.outer(outputs, channel[value])
        joint[values] = chance * outputs
    told = np.zeros((4, length))
    for time in range(length):
        axes = tuple(axis for axis in range(length) if axis != time)
        table = joint.sum(axis=axes)
        given = table / table.reshape(size, -1).sum(axis=1).reshape(-1, *[1] * length)
        past = given.sum(axis=tuple(range(time + 2, length + 1)))
        future = given.sum(axis=tuple(range(1, time + 1)))
        alone = past.reshape(size, -1, past.shape[-1]).sum(axis=1)
        told[:, time] = [_spread(part) for part in (past, future, given, alone)]
    return told[0], told[1], told[2], told[3]


def _spread(given: Floats) -> float:
    """The largest log quotient of two values' probabilities of any output."""
    table = given.reshape(len(given), -1)
    return float(np.max(np.log(table.max(axis=0) / table.min(axis=0))))


def all_pairs(matrix: ArrayLike, alpha: float) -> float:
    """The loss of a matrix with many rows: Dinkelbach's iteration on every pair, double precision.

    Each pair on its own, so that no pair can hide another.
    """
    rows, rate, best = np.asarray(matrix, dtype=np.float64), 1 / math.expm1(alpha), 0.0
    for second in rows:
        over, excess = rows - second, np.zeros(len(rows))
        while True:
            kept = over > excess[:, None] * second
            found = np.where(kept, over, 0).sum(axis=1) / (rate + (kept * second).sum(axis=1))
            if not np.any(found > excess):
                break
            excess = np.maximum(found, excess)
        best = max(best, float(excess.max()))
    return math.log1p(best)
