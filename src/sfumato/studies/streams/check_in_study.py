"""Do habits help where people say at any hour where they are."""

from __future__ import annotations

from sfumato.studies.streams.habits import CHECK_IN_TASKS
from sfumato.studies.streams.habits_study import habit_work
from sfumato.studies.study import Setting, Work


def prepare(setting: Setting) -> Work:
    """Check-ins, one row for each model."""
    return habit_work(CHECK_IN_TASKS, setting)
