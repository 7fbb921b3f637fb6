"""How long it takes to compute a loss function: TPL Figure 6, as parts of what HiGHS takes.

Processor seconds of this process, divided by those of HiGHS in the same run on the same matrices: a
time alone says more about the machine. HiGHS solves a few pairs of rows and is taken to need as
long for each of the others; the paper ran its solver once, too. (a) one value, against the size of
the matrix; (b) what is computed in advance; (c) all of it, for a number of releases; (d) one value,
against the level.

These are measurements: two runs do not give the same numbers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.plots.points import MeasuredPoint
from sfumato.studies.standard_error import standard_error
from sfumato.studies.tpl.paper_algorithms import (
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_4,
    algorithm_5,
    right_ends,
    solver_value,
)
from sfumato.temporal.loss_function import LossFunction, temporal_loss

LEVEL, BUDGET = 0.1, 0.1
"""Of panels (a) and (c)."""
DEEP = (1.0, 10.0)
"""Levels up to which Algorithm 4 makes the function in (b)."""
_LEAST_LEVEL = 1e-6
# A call that takes microseconds is timed over so many.
_CALLS = 200
WHOLE, ONE = "whole function here", "one value here"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured.

    Attributes:
        rows: Sizes of matrices in (a) and (b).
        over_time: Size in (c); 100 in the paper.
        by_level: Size in (d).
        releases: Numbers of releases in (c).
        levels: In (d).
        repetitions: Matrices of each size.
        pairs: Of rows that HiGHS solves for each matrix.
    """

    rows: tuple[int, ...] = (10, 20, 50, 100, 150)
    over_time: int = 100
    by_level: int = 50
    releases: tuple[int, ...] = (1, 3, 10, 30, 100, 300, 1000, 3000)
    levels: tuple[float, ...] = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0)
    repetitions: int = 5
    pairs: int = 20

    @property
    def steps(self) -> int:
        """Matrices that are measured."""
        return self.repetitions * (len(self.rows) + 2)


QUICK = Sizes((10, 20, 50), 50, 20, (1, 10, 100, 1000), (0.1, 1.0, 10.0), 2, 8)
SAME_SIZE, SAME_MATRICES = 30, 100
"""Of the matrices on which the paper compares the results themselves."""


def random_matrix(size: int, rng: np.random.Generator) -> Floats:
    """Rows of uniform numbers, as in the paper."""
    rows = rng.random((size, size))
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True)
class RuntimePoint(MeasuredPoint):
    """A runtime as a part of that of HiGHS.

    Attributes:
        seconds: Of the processor, in this run.
    """

    seconds: float


@dataclass(frozen=True, slots=True)
class _Timing:
    figure: str
    curve: str
    x: float
    seconds: float
    solver: float


def runtime_points(
    sizes: Sizes, seed: int, progress: Callable[[int], None] | None = None
) -> list[RuntimePoint]:
    """All panels: seconds as parts of those of HiGHS, means over matrices with their errors."""
    rng = np.random.default_rng(seed)
    first = random_matrix(3, rng)  # loops are compiled at their first use
    temporal_loss(first, LEVEL)
    compiled = LossFunction.of(first)
    compiled.accumulated([BUDGET] * 2)
    compiled(LEVEL)
    kinds: list[tuple[Callable[[Floats, Sizes, np.random.Generator], Iterator[_Timing]], int]] = [
        *((_by_size, size) for size in sizes.rows),
        (_over_time, sizes.over_time),
        (_by_level, sizes.by_level),
    ]
    found: dict[tuple[str, str, float], list[_Timing]] = {}
    for done, (measure, size) in enumerate(kinds * sizes.repetitions, 1):
        for timing in measure(random_matrix(size, rng), sizes, rng):
            found.setdefault((timing.figure, timing.curve, timing.x), []).append(timing)
        if progress:
            progress(done)
    return [_mean(timings) for _, timings in sorted(found.items())]


def differences(
    seed: int, matrices: int = SAME_MATRICES, size: int = SAME_SIZE
) -> dict[str, float]:
    """The largest difference from `temporal_loss` of each way, over random matrices and levels.

    HiGHS solves the pair of rows that Algorithm 1 finds the largest loss for.
    """
    rng, found = np.random.default_rng(seed), dict.fromkeys(("1", "3", "5", "HiGHS"), 0.0)
    for _ in range(matrices):
        rows, level = random_matrix(size, rng), float(rng.uniform(0.05, 3.0))
        ours, parameters = temporal_loss(rows, level), algorithm_2(rows)
        pieces = algorithm_4(parameters, _LEAST_LEVEL, 3.0)
        ends, loss = right_ends(pieces), LossFunction.of(rows)
        # The pair whose corner is the top at this level.
        values = np.log1p(loss.gaps * np.expm1(level) / (1 + loss.bases * np.expm1(level)))
        first, second = loss.pairs[int(values.argmax())]
        for way, value in (
            ("1", algorithm_1(rows, level)),
            ("3", algorithm_3(parameters, level)),
            ("5", algorithm_5(pieces, ends, level)),
            ("HiGHS", solver_value(rows[first], rows[second], level)),
        ):
            found[way] = max(found[way], abs(value - ours))
    return found


def _by_size(rows: Floats, sizes: Sizes, rng: np.random.Generator) -> Iterator[_Timing]:
    """Panels (a) and (b)."""
    solver = _solver_seconds(rows, LEVEL, sizes.pairs, rng)
    parameters = algorithm_2(rows)
    pieces = algorithm_4(parameters, _LEAST_LEVEL, DEEP[0])
    ends, loss = right_ends(pieces), LossFunction.of(rows)
    for curve, run, calls in (
        ("Algorithm 1", partial(algorithm_1, rows, LEVEL), 1),
        ("Algorithm 3", partial(algorithm_3, parameters, LEVEL), 3),
        ("Algorithm 5", partial(algorithm_5, pieces, ends, LEVEL), _CALLS),
        (ONE, partial(temporal_loss, rows, LEVEL), 5),
        (WHOLE, partial(loss, LEVEL), _CALLS),
    ):
        yield _Timing("6a", curve, len(rows), _seconds(run, calls), solver)
    advance: dict[str, Callable[[], object]] = {
        "Algorithm 2": partial(algorithm_2, rows),
        WHOLE: partial(LossFunction.of, rows),
    }
    for deep in DEEP:
        made = partial(algorithm_4, parameters, _LEAST_LEVEL, deep)
        advance[f"Algorithm 4, up to {deep:g}"] = made
    for curve, work in advance.items():
        yield _Timing("6b", curve, len(rows), _seconds(work), solver)


def _over_time(rows: Floats, sizes: Sizes, rng: np.random.Generator) -> Iterator[_Timing]:
    """Panel (c): what is computed in advance counts; one value is timed where leakage settles."""
    loss = LossFunction.of(rows)
    settled = loss.supremum(BUDGET)
    solver = _solver_seconds(rows, settled, sizes.pairs, rng)
    advance = _seconds(partial(algorithm_2, rows))
    parameters = algorithm_2(rows)
    whole = _seconds(partial(LossFunction.of, rows))
    one = _seconds(partial(algorithm_1, rows, settled), 3)
    three = _seconds(partial(algorithm_3, parameters, settled), 5)
    for releases in sizes.releases:
        # The whole function up to the worst that can come, as in the paper.
        began = time.process_time()
        pieces = algorithm_4(parameters, _LEAST_LEVEL, (releases + 1) * BUDGET)
        spent = time.process_time() - began
        five = _seconds(partial(algorithm_5, pieces, right_ends(pieces), settled), _CALLS)
        ours = _seconds(partial(loss.accumulated, [BUDGET] * releases), 3)
        for curve, seconds in (
            ("Algorithm 1", releases * one),
            ("Algorithms 2 and 3", advance + releases * three),
            ("Algorithms 2, 4 and 5", advance + spent + releases * five),
            (WHOLE, whole + ours),
        ):
            yield _Timing("6c", curve, releases, seconds, releases * solver)


def _by_level(rows: Floats, sizes: Sizes, rng: np.random.Generator) -> Iterator[_Timing]:
    """Panel (d); all are parts of what HiGHS takes at the first level, to be comparable."""
    solver = _solver_seconds(rows, sizes.levels[0], sizes.pairs, rng)
    parameters = algorithm_2(rows)
    pieces = algorithm_4(parameters, _LEAST_LEVEL, max(sizes.levels))
    ends = right_ends(pieces)
    for level in sizes.levels:
        at_level = _solver_seconds(rows, level, sizes.pairs, rng)
        yield _Timing("6d", "HiGHS", level, at_level, solver)
        for curve, run, calls in (
            ("Algorithm 1", partial(algorithm_1, rows, level), 3),
            ("Algorithm 3", partial(algorithm_3, parameters, level), 10),
            ("Algorithm 5", partial(algorithm_5, pieces, ends, level), _CALLS),
            (ONE, partial(temporal_loss, rows, level), 10),
        ):
            yield _Timing("6d", curve, level, _seconds(run, calls), solver)


def _solver_seconds(rows: Floats, level: float, pairs: int, rng: np.random.Generator) -> float:
    """Seconds of HiGHS for all pairs of rows, from some of them."""
    size = len(rows)
    chosen = [rng.choice(size, 2, replace=False) for _ in range(pairs)]
    began = time.process_time()
    for first, second in chosen:
        solver_value(rows[first], rows[second], level)
    return (time.process_time() - began) / pairs * size * (size - 1)


def _seconds(run: Callable[[], object], calls: int = 1) -> float:
    """Processor seconds of one call."""
    began = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - began) / calls


def _mean(timings: list[_Timing]) -> RuntimePoint:
    ratios = [timing.seconds / timing.solver for timing in timings]
    one = timings[0]
    seconds = float(np.mean([timing.seconds for timing in timings]))
    return RuntimePoint(
        one.figure, one.curve, one.x, float(np.mean(ratios)), standard_error(ratios), seconds
    )
