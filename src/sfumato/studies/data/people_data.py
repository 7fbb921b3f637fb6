"""Grades of students and salaries of a city's employees; and what stands in for them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.studies.data import data_files
from sfumato.studies.data.gzipped_rows import finite_number, gzipped_rows, reading
from sfumato.studies.study import DataFile, Setting

MOST_GRADE = 20
"""Grades are 0 to 20: 21 of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Grades:
    """Grades of the students of one subject, one row each.

    Attributes:
        name: Of the subject.
        features: What else is known of each, by column: the grades of two earlier periods, and
            answers to questions; numbers or texts.
        final: The grade at the end; 0 for who did not come.
        stand_in: Whether they were made up for want of real ones.
    """

    name: str
    features: dict[str, list[float] | list[str]]
    final: Ints
    stand_in: bool


def maths_grades(setting: Setting) -> Grades:
    """Grades in mathematics."""
    return _grades("mathematics", data_files.GRADES_MATHS, setting, students=395)


def portuguese_grades(setting: Setting) -> Grades:
    """Grades in Portuguese."""
    return _grades("Portuguese", data_files.GRADES_PORTUGUESE, setting, students=649)


@dataclass(frozen=True, slots=True, eq=False)
class Salaries:
    """What people earn in a year, in dollars.

    Attributes:
        annual: The agreed rate.
        gross: What was paid; of those alone who were paid something.
        stand_in: Whether they were made up for want of real ones.
    """

    annual: Floats
    gross: Floats
    stand_in: bool


def salaries(setting: Setting) -> Salaries:
    """Salaries of the employees of Baltimore in the fiscal year 2019."""
    path = setting.path(data_files.SALARIES)
    if path is None:
        draw = np.random.default_rng(setting.seed)
        annual: Floats = np.round(draw.lognormal(np.log(52_000), 0.42, 13_811))
        paid = annual * draw.normal(1.02, 0.25, len(annual)).clip(0.02, 2.5)
        return Salaries(annual, np.round(paid, 2), True)
    with reading(data_files.SALARIES, path):
        rows = list(gzipped_rows(path, ","))
        annual = np.array([finite_number(row["ANNUAL_RT"]) for row in rows])
        gross = np.array([finite_number(row["GROSS"]) for row in rows if row["GROSS"]])
    return Salaries(annual, gross, False)


def _grades(name: str, file: DataFile, setting: Setting, students: int) -> Grades:
    path = setting.path(file)
    if path is None:
        return _made_up(name, setting.seed, students)
    with reading(file, path):
        rows = list(gzipped_rows(path, ";"))
        features = {head: _cells([row[head] for row in rows]) for head in rows[0] if head != FINAL}
        features |= {
            head: [finite_number(row[head]) for row in rows] for head in (*PERIODS, *HABITS)
        }
        grades = range(MOST_GRADE + 1)
        final = np.array([grades[grades.index(int(row[FINAL]))] for row in rows])
    return Grades(name, features, final, False)


PERIODS, FINAL = ("G1", "G2"), "G3"
"""Columns of grades."""
HABITS = ("studytime", "goout", "absences")
"""Columns that the paper calls relevant beside grades."""


def _cells(texts: list[str]) -> list[float] | list[str]:
    """Numbers where all cells are."""
    try:
        return [float(text) for text in texts]
    except ValueError:
        return texts


def _made_up(name: str, seed: int, students: int) -> Grades:
    draw = np.random.default_rng(seed)
    failures = draw.choice(4, students, p=(0.8, 0.12, 0.05, 0.03))
    first = draw.normal(11.5 - 1.5 * failures, 2.8)
    second = first + draw.normal(0.0, 1.6, students)
    final = np.where(draw.random(students) < 0.05, 0, second + draw.normal(0.2, 1.2, students))
    features: dict[str, list[float] | list[str]] = {
        "school": draw.choice(["GP", "MS"], students, p=(0.75, 0.25)).tolist(),
        "age": draw.integers(15, 20, students).astype(np.float64).tolist(),
        "guardian": draw.choice(["mother", "father", "other"], students).tolist(),
        "failures": failures.astype(np.float64).tolist(),
        # A little is to be read off habits.
        "studytime": np.rint((first + draw.normal(0, 6, students)) / 5).clip(1, 4).tolist(),
        "goout": draw.integers(1, 6, students).astype(np.float64).tolist(),
        "absences": draw.poisson(np.clip(18 - first, 1, None) / 2).astype(np.float64).tolist(),
    }
    features |= zip(PERIODS, (_whole(first).tolist(), _whole(second).tolist()), strict=True)
    return Grades(name, features, _whole(final), True)


def _whole(grades: Floats) -> Ints:
    return np.rint(grades).clip(0, MOST_GRADE).astype(np.int64)
