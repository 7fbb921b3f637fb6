"""A study that was run: how, and what it found."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from sfumato.studies.study import Findings, Setting, Study


@dataclass(frozen=True, slots=True)
class Result:
    """A study that was run, and how.

    Attributes:
        study: What it is about.
        setting: How it was run.
        findings: What it found.
        command: That computes it again.
        version: Of the product.
    """

    study: Study
    setting: Setting
    findings: Findings
    command: str
    version: str

    @property
    def document(self) -> dict[str, Any]:
        """All of it but the pictures, as `results.json` has it."""
        found = self.findings
        return {
            "study": self.study.name,
            "about": self.study.about,
            "figures": list(self.study.figures),
            "command": self.command,
            "version": self.version,
            "seed": self.setting.seed,
            "quick": self.setting.quick,
            "data": self.read,
            "simulated": found.stand_ins,
            "claims": [asdict(claim) for claim in found.claims],
            "facts": found.facts,
            "captions": self.captions,
            "title": found.title,
            "columns": found.columns,
            "rows": found.rows,
            "records": self.records,
        }

    @property
    def records(self) -> list[dict[str, Any]]:
        """All numbers; of a study that reads data, each says whether they were made up."""
        records = self.findings.records
        if not self.study.data:
            return records
        made_up = bool(self.findings.stand_ins)
        return [{**record, "stand_in": record.get("stand_in", made_up)} for record in records]

    @property
    def captions(self) -> dict[str, str]:
        """What each picture shows."""
        found = self.findings
        return {name: found.captions.get(name, name.replace("-", " ")) for name in found.pictures}

    @property
    def read(self) -> list[str]:
        """Names of the files of real data that were read."""
        if self.setting.folder is None:
            return []
        if self.setting.folder.is_file():
            return [self.setting.folder.name]
        return [wanted.name for wanted in self.study.data]


def command_of(study: Study, setting: Setting) -> str:
    """What computes a study again; a folder is named by what it is.

    Examples:
        >>> command_of(Study("bits", "Bits.", "module"), Setting(quick=True, seed=2))
        'sfumato study bits --quick --seed 2'
    """
    command = f"sfumato study {study.name}"
    if setting.folder is not None and study.data:
        command += " --data FILE" if setting.folder.is_file() else " --data DIR"
    command += " --quick" if setting.quick else ""
    return command + (f" --seed {setting.seed}" if setting.seed != 1 else "")
