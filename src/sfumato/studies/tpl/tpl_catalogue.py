"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.study import Study

TPL_STUDIES: tuple[Study, ...] = (
    Study(
        "tpl-leakage",
        "What releases of a private mechanism tell of each other's moments, how far that grows, "
        "and how it depends on the correlation.",
        "sfumato.studies.tpl.leakage_study",
        figures=("TPL 3", "TPL 4", "TPL 5", "TPL 7", "TPL Table 2"),
        minutes="1/10",
    ),
    Study(
        "tpl-runtime",
        "How long a loss function takes: the paper's algorithms, ours, and a solver in one run.",
        "sfumato.studies.tpl.runtime_study",
        figures=("TPL 6",),
        minutes="1",
    ),
    Study(
        "tpl-budgets",
        "Budgets that keep leakage over time within a level, and the noise that they need.",
        "sfumato.studies.tpl.budget_study",
        figures=("TPL 8", "TPL 9"),
        minutes="1/10",
    ),
)
"""Experiments of the paper on temporal leakage (TPL)."""
