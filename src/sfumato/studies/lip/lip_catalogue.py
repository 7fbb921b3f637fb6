"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.study import Study

LIP_STUDIES: tuple[Study, ...] = (
    Study(
        "lip-figures",
        "What leakage under a prior implies, repeated use and estimated priors; noise for numbers.",
        "sfumato.studies.lip.lip_figures",
        figures=("LIP 2", "LIP 4", "LIP 5", "LIP 6", "LIP 7", "LIP 8", "LIP 9", "LIP 10"),
        minutes="1",
    ),
)
