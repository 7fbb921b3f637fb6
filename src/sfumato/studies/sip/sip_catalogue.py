"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.study import Study

SIP_STUDIES: tuple[Study, ...] = (
    Study(
        "sip-figure-5",
        "Loss against leakage on a binary chain: value by value, step-wise and far-sighted, in "
        "batches of 2, 3 and 5, randomised response, the published rule, and a proven bound.",
        "sfumato.studies.sip.sip_figure_5",
        figures=("SIP 5",),
        minutes="1",
    ),
)
