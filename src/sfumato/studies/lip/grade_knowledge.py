"""What is known of students before they release their final grade: LIP Sec. V-A.

Half of the students have told all of theirs. From these the final grades of the others are
predicted, by everything that is known of them and by parts of it; some of the others release.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.column.feature_prior import FeaturePrior
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.studies.data.people_data import HABITS, MOST_GRADE, PERIODS, Grades


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """Priors of the students who release, and their true classes of grades.

    Attributes:
        local: One prior a student, from all that is known of him.
        several: Predictions from other parts of it, and that of `local` first: one table each.
        overall: How often each class occurs among the students who told.
        truth: The classes of the students who release.
    """

    local: Floats
    several: Floats
    overall: Floats
    truth: Ints

    @property
    def size(self) -> int:
        """Number of classes."""
        return self.overall.size


def classes_of(grades: Ints, size: int) -> Ints:
    """Grades 0 to 20 in so many classes, as even as can be.

    Examples:
        >>> classes_of(np.array([0, 10, 11, 20]), 2).tolist()
        [0, 0, 1, 1]
    """
    return np.asarray(grades * size // (MOST_GRADE + 1))


def parts_of(columns: list[str]) -> list[list[str]]:
    """Which columns each prediction sees: all; both periods; the second and habits; no grades."""
    first, second = PERIODS
    rest = [name for name in columns if name not in PERIODS]
    return [columns, [first, second], [second, *HABITS], rest]


def knowledge(grades: Grades, size: int, people: int, seed: int) -> Knowledge:
    """What is known when half of the students, drawn anew, have told.

    Args:
        grades: All students.
        size: Classes of grades.
        people: How many of the other half release.
        seed: Decides who has told.
    """
    draw = np.random.default_rng([seed, size])
    order = draw.permutation(len(grades.final))
    half = len(order) // 2
    told, others = order[:half], order[half : half + people]
    classes, alphabet = classes_of(grades.final, size), Alphabet.of_size(size)
    several = []
    for columns in parts_of(list(grades.features)):
        known, asked = (
            {name: [grades.features[name][i] for i in chosen] for name in columns}
            for chosen in (told, others)
        )
        fitted = FeaturePrior.fit(known, classes[told], alphabet=alphabet)
        several.append(fitted.priors(asked))
    counts = np.bincount(classes[told], minlength=size) + 0.5
    return Knowledge(several[0], np.array(several), counts / counts.sum(), classes[others])
