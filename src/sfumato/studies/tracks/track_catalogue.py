"""Studies of tracks."""

from __future__ import annotations

from sfumato.studies.data import data_files as files
from sfumato.studies.study import Study

TRACK_STUDIES: tuple[Study, ...] = (
    Study(
        "track-rivals",
        "What a user would pick instead for a track: planar Laplace, predictive, adaptive and "
        "clustering geo-indistinguishability, CAPP, population division, randomised response; each "
        "with its true leakage under the chain, and all at the same leakage beside ours.",
        "sfumato.studies.tracks.track_study",
        data=(files.GAZE,),
        minutes="ten",
    ),
)
