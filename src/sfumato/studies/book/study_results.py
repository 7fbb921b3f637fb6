"""The files of one study, written together or not at all."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sfumato.core.printed import finite
from sfumato.store.files import together
from sfumato.studies.study import Findings, Setting, Study

PICTURE_ENDINGS = (".png", ".svg")


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
            "title": found.title,
            "columns": found.columns,
            "rows": found.rows,
            "records": found.records,
        }

    @property
    def read(self) -> list[str]:
        """Names of the files of real data that were read."""
        if self.setting.folder is None:
            return []
        if self.setting.folder.is_file():
            return [self.setting.folder.name]
        return [wanted.name for wanted in self.study.data]


def results_csv(records: list[dict[str, Any]]) -> bytes:
    r"""One row a record; the heads are those of all records, in the order in which they occur.

    Examples:
        >>> results_csv([{"x": 1}, {"x": 2, "y": 0.5}])
        b'x,y\n1,\n2,0.5\n'
    """
    heads = list(dict.fromkeys(name for record in records for name in record))
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, heads, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def write_results(result: Result, home: Path) -> list[Path]:
    """Numbers and pictures of a study in its folder.

    Args:
        result: The study.
        home: Folder of all studies; the study has one in it, by its name.
    """
    folder = home / result.study.name
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {
        folder / f"{name}{ending}": draw
        for name, draw in result.findings.pictures.items()
        for ending in PICTURE_ENDINGS
    }
    files = [folder / "results.csv", folder / "results.json", *drawn]
    document = json.dumps(finite(result.document), indent=2, ensure_ascii=False)
    with together(files) as [table, numbers, *pictures]:
        table.write_bytes(results_csv(result.findings.records))
        numbers.write_bytes(f"{document}\n".encode())
        for aside, draw in zip(pictures, drawn.values(), strict=True):
            draw(aside)
    return files
