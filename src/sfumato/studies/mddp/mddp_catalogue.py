"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.data.data_files import CARDIO
from sfumato.studies.study import Study

MDDP_STUDIES: tuple[Study, ...] = (
    Study(
        "mddp-figures",
        "Noise on two tied columns: the paper's rates and bounds against the best attacker.",
        "sfumato.studies.mddp.mddp_figures",
        figures=("MDDP 2",),
        data=(CARDIO,),
        minutes="2",
    ),
)
