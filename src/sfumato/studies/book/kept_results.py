"""A study that was run before, read back from its folder."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from sfumato.studies.book.result import Result, command_of
from sfumato.studies.study import Claim, Findings, Setting, Study, Verdict

_FIELDS = {"quick", "seed", "version", "command", "data", "about", "figures", "simulated", "claims"}
_FIELDS |= {"title", "columns", "rows", "records", "facts", "captions"}


def kept_result(study: Study, setting: Setting, home: Path, version: str) -> Result | None:
    """What was found before; None where it was not run, or not like this.

    A whole run also serves who asks for a quick one.

    Args:
        study: Which.
        setting: How it would be run.
        home: Folder of all studies.
        version: Of the product that would run it.
    """
    folder = home / study.name
    try:
        document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    if not document.keys() >= _FIELDS:
        return None  # of another version
    how = Setting(setting.folder, document["quick"], document["seed"])
    result = Result(study, how, _findings(document, folder), command_of(study, how), version)
    alike = ("version", "command", "data", "about", "figures")
    other = any(document[name] != result.document[name] for name in alike)
    return None if other or how.seed != setting.seed or how.quick > setting.quick else result


def _findings(document: dict[str, object], folder: Path) -> Findings:
    fields = ("title", "columns", "rows", "records", "facts", "captions")
    captions = document["captions"]
    claims = document["claims"]
    assert isinstance(captions, dict)
    assert isinstance(claims, list)
    return Findings(
        **{name: document[name] for name in fields},  # type: ignore[arg-type]
        pictures={name: partial(_copied, folder / name) for name in captions},
        claims=[Claim(**one | {"verdict": Verdict(one["verdict"])}) for one in claims],
        stand_ins=document["simulated"],  # type: ignore[arg-type]
    )


def _copied(drawn: Path, path: Path) -> None:
    path.write_bytes(drawn.with_name(drawn.name + path.suffix).read_bytes())
