"""Reports that can be cited: what was read, what was found, and what was not looked at.

A report leaves, so it holds nothing of the true values: of what was found beside them it tells the
verdict and how many rows were wrong, not which, and of files that are secret not even a digest,
with which guesses at a small table could be tested.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store.attestation import canonical, file_digest, program, written_digest

FORMAT = "sfumato report 1"
FIELDS = (
    *("format", "program", "platform", "time", "command", "asked", "files", "level", "passed"),
    *("promise", "totals", "streams", "problems", "checked", "not_checked", "written"),
)
_TYPES = {
    **dict.fromkeys(("command", "time", "level"), str),
    **dict.fromkeys(("files", "promise", "problems", "checked", "not_checked"), list),
    **dict.fromkeys(("asked", "totals", "streams"), dict),
    "passed": bool,
}


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file that was read.

    Attributes:
        role: What it is: `output`, `plan`, `model`, `policy`, `ledger`, `true values`, `key`.
        path: Where it lies.
        secret: Whether its digest must not leave.
    """

    role: str
    path: str
    secret: bool = False

    def document(self) -> dict[str, Any]:
        """Role, name and digest; of a secret file the role alone."""
        if self.secret:
            return {"role": self.role, "name": None, "sha256": None, "bytes": None}
        return {"role": self.role, "name": Path(self.path).name, **file_digest(self.path)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a command found, without what is secret.

    Attributes:
        command: Which one.
        asked: Its options, without files.
        level: Who can check as much: anyone, the holder of the true values, of the key.
        passed: The verdict.
        promise: What was promised, in words.
        totals: Figures of all of it.
        streams: Figures of each stream.
        problems: What is wrong.
        checked: What was looked at.
        not_checked: What was not, and why.
    """

    command: str
    asked: Mapping[str, Any]
    level: str
    passed: bool
    promise: Sequence[str] = ()
    totals: Mapping[str, Any]
    streams: Mapping[str, Any]
    problems: Sequence[str]
    checked: Sequence[str]
    not_checked: Sequence[str]

    def document(self) -> dict[str, Any]:
        """As a JSON object."""
        names = [name for name in FIELDS if hasattr(self, name)]
        return json.loads(json.dumps({name: getattr(self, name) for name in names}))  # type: ignore[no-any-return]


def report_document(findings: Findings, files: Iterable[ReadFile]) -> dict[str, Any]:
    """A report: what was found, of which files, by which program, where and when."""
    found = findings.document()
    known = {
        "format": FORMAT,
        "program": program(),
        "platform": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": [file.document() for file in files],
    }
    told = {name: (known | found)[name] for name in FIELDS if name != "written"}
    return {**told, "written": written_digest("report", told)}


def read_report(path: str | Path) -> tuple[dict[str, Any], list[str]]:
    """A report, and what is wrong with its text.

    Raises:
        CorruptData: If it is none, or lacks a field.
        InvalidParameter: If there is no such file.
    """
    if not Path(path).is_file():
        raise InvalidParameter("REPORT", str(path), "name a file; there is none")
    content = Path(path).read_bytes()
    try:
        document = json.loads(content.decode())
    except (ValueError, RecursionError) as problem:
        raise CorruptData(f"{path}: not a report: {problem}") from problem
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise CorruptData(f"{path}: not a report of this program ({FORMAT})")
    for name in FIELDS:
        if name not in document:
            raise CorruptData(f"{path}: {name}: missing from the report")
    for name, kind in _TYPES.items():
        if not isinstance(document[name], kind):
            raise CorruptData(f"{path}: {name}: it must be of type {kind.__name__}")
    for each in document["files"]:
        if not isinstance(each, dict) or not {"role", "name", "sha256"} <= each.keys():
            raise CorruptData(f"{path}: files: each must have role, name and sha256")
        if not isinstance(each["role"], str) or (each["name"] is None) != (each["sha256"] is None):
            raise CorruptData(f"{path}: files: a role is a text; a digest comes with a name")
    problems = [f"{name}: an unknown field" for name in document if name not in FIELDS]
    if content.decode() != canonical(document):
        problems.append("format: the text is not the one way to write it: it was edited")
    if document["written"] != written_digest("report", document):
        problems.append("written: the fields are not those that were written: they were edited")
    return document, problems
