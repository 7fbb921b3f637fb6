"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.study import Study

TRACK_STUDIES: tuple[Study, ...] = ()
