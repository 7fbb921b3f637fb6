"""Losses and leakages of all mechanisms for grades, over splits of the students: LIP Figure 11."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.randomness import Randomness, seeded
from sfumato.studies.data.people_data import Grades
from sfumato.studies.lip.grade_knowledge import Knowledge, knowledge
from sfumato.studies.lip.grade_release import (
    RULES,
    UNARY_GUESSED,
    Measured,
    measured,
    silences,
    unary_guessed,
)
from sfumato.studies.standard_error import standard_error

GRADES = 21


@dataclass(frozen=True, slots=True)
class GradePoint:
    """One mechanism at one budget, the mean over splits of the students.

    Attributes:
        subject: Whose grades.
        size: Classes of grades.
        mechanism: Its name.
        epsilon: The budget; 0 for silence.
        loss: Mean distance between true and released class, on students who were not learnt from.
        error: Standard error of that, from split to split.
        lip: Largest leakage under a student's local prior.
        ldp: Largest leakage whatever the prior.
    """

    subject: str
    size: int
    mechanism: str
    epsilon: float
    loss: float
    error: float
    lip: float
    ldp: float


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is computed.

    Attributes:
        epsilons: The budgets.
        sizes: Classes of grades of the first subject; the second has all grades.
        splits: How often half of the students are drawn anew.
        people: How many of the others release.
    """

    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
    sizes: tuple[int, ...] = (2, 5, 10, GRADES)
    splits: int = 4
    people: int = 40

    def cases(self, subjects: Sequence[Grades]) -> list[tuple[Grades, int]]:
        """Subjects and sizes that are computed."""
        first, *others = subjects
        return [(first, size) for size in self.sizes] + [(one, self.sizes[-1]) for one in others]


QUICK = Effort((0.5, 2.0, 4.0), (2, GRADES), 2, 12)


def grade_points(
    subjects: Sequence[Grades],
    effort: Effort,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> list[GradePoint]:
    """All curves of Figure 11, and those beside them.

    References:
        [LIP, Fig. 11]
    """
    points: list[GradePoint] = []
    steps, coins = itertools.count(1), seeded(seed)
    for grades, size in effort.cases(subjects):
        found: dict[tuple[str, float], list[Measured]] = {}
        for split in range(effort.splits):
            known = knowledge(grades, size, effort.people, seed + split)
            for mechanism, epsilon, one in _measured(known, effort.epsilons, coins):
                found.setdefault((mechanism, epsilon), []).append(one)
            if progress:
                progress(next(steps))
        points += [
            _point(grades.name, size, mechanism, epsilon, all_splits)
            for (mechanism, epsilon), all_splits in found.items()
        ]
    return points


def _measured(
    known: Knowledge, epsilons: Sequence[float], coins: Randomness
) -> list[tuple[str, float, Measured]]:
    found = [(name, 0.0, one) for name, one in silences(known)]
    for epsilon in epsilons:
        found += [(name, epsilon, measured(known, name, epsilon)) for name in RULES]
        found.append((UNARY_GUESSED, epsilon, unary_guessed(known, epsilon, coins)))
    return found


def _point(
    subject: str, size: int, mechanism: str, epsilon: float, found: Sequence[Measured]
) -> GradePoint:
    losses = [one.loss for one in found]
    return GradePoint(
        subject,
        size,
        mechanism,
        epsilon,
        float(np.mean(losses)),
        standard_error(losses),
        max(one.lip for one in found),
        max(one.ldp for one in found),
    )
