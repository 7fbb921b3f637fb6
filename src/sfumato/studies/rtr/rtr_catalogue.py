"""Studies of this folder."""

from __future__ import annotations

from sfumato.studies.study import Study

RTR_STUDIES: tuple[Study, ...] = ()
