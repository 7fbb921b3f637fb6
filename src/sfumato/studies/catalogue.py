"""Every study by name; what it imports waits until it is run.

A new study is a module with `prepare(setting)` and an entry in the catalogue of its folder.
"""

from __future__ import annotations

from sfumato.core.errors import InvalidParameter
from sfumato.studies.lip.lip_catalogue import LIP_STUDIES
from sfumato.studies.mddp.mddp_catalogue import MDDP_STUDIES
from sfumato.studies.rtr.rtr_catalogue import RTR_STUDIES
from sfumato.studies.sip.sip_catalogue import SIP_STUDIES
from sfumato.studies.streams.stream_catalogue import STREAM_STUDIES
from sfumato.studies.study import Study
from sfumato.studies.tpl.tpl_catalogue import TPL_STUDIES
from sfumato.studies.tracks.track_catalogue import TRACK_STUDIES

STUDIES: dict[str, Study] = {
    study.name: study
    for studies in (
        SIP_STUDIES,
        RTR_STUDIES,
        LIP_STUDIES,
        TPL_STUDIES,
        MDDP_STUDIES,
        STREAM_STUDIES,
        TRACK_STUDIES,
    )
    for study in studies
}


def study_named(name: str) -> Study:
    """The study of a name.

    Raises:
        InvalidParameter: If there is none; names the nearest.

    Examples:
        >>> study_named("sip-figure-5").figures
        ('SIP 5',)
    """
    if name not in STUDIES:
        from difflib import get_close_matches

        near = get_close_matches(name, STUDIES, n=1)
        hint = f", such as {near[0]}" if near else ""
        raise InvalidParameter("NAME", name, f"be one that `sfumato study list` names{hint}")
    return STUDIES[name]
