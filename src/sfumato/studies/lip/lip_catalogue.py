"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.data.data_files import GRADES_MATHS, GRADES_PORTUGUESE, SALARIES
from sfumato.studies.study import Study

LIP_STUDIES: tuple[Study, ...] = (
    Study(
        "lip-figures",
        "What leakage under a prior implies, repeated use and estimated priors; noise for numbers.",
        "sfumato.studies.lip.lip_figures",
        figures=("LIP 2", "LIP 4", "LIP 5", "LIP 6", "LIP 7", "LIP 8", "LIP 9", "LIP 10"),
        minutes="1",
    ),
    Study(
        "lip-grades",
        "Final grades of students, released by what is known of each, of all, or up to a set of "
        "predictions; with LDP, silence and the published rule at one unit of leakage.",
        "sfumato.studies.lip.grade_study",
        figures=("LIP 11",),
        data=(GRADES_MATHS, GRADES_PORTUGUESE),
        minutes="6",
    ),
    Study(
        "lip-salaries",
        "Salaries of a city's employees: sampling, Gaussian noise by three rules, and channels of "
        "least error, on people whom the prior was not fitted to.",
        "sfumato.studies.lip.salary_study",
        figures=("LIP 12",),
        data=(SALARIES,),
        minutes="2",
    ),
)
