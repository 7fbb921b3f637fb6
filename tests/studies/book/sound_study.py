"""A study that never fails."""

from sfumato.studies.study import Findings, Setting, Work


def prepare(setting: Setting) -> Work:
    found = Findings("numbers", ["x"], [["1"]], [{"x": setting.seed}], [], {})
    return Work(1, lambda show: found)
