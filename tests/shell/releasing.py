"""What the tests of `release` share: a rule, a table, and how a refusal looks."""

import csv
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sfumato.models.stream_model import StreamModel
from sfumato.store.files import load
from sfumato.store.protocol import Answer, Position
from sfumato.store.sqlite import SqliteStore
from sfumato.stream.release_spec import JOB, ReleaseSpec
from sfumato.tables.readers import Table
from tests.contracts.store_laws import answers_of
from tests.shell.running import call, done, litter, rows
from tests.shell.tables import PLACES, read, table, walk

STEP = ("--method", "step-wise")
"""For tests of something else: no value function is made, and nothing is kept."""
EVEN = ("--every", 1)
FAST = ("--method", "randomized-response")
SPEC = ReleaseSpec(epsilon=1.0, method="randomized-response")
RULE = ("--epsilon", 1, *FAST)
LIVE = walk(7, rows=60)
Rows = list[dict[str, str]]
COLUMNS = ["person", "sequence", "released", "outcome", "sip", "ldp"]


def ledger_of(
    path: Path, model: Path, spec: ReleaseSpec = SPEC
) -> tuple[list[Answer], dict[str, Position]]:
    """Every answer of a ledger, and what each stream spent."""
    read = load(model)
    assert isinstance(read, StreamModel)
    with SqliteStore(path, spec.plan(read).fingerprint, job=JOB) as store:
        # Digests differ from ledger to ledger: each has a key of its own.
        answers = [replace(answer, tag=b"") for answer in answers_of(store)]
        ends = [store.position(stream) for stream, _ in store.streams()]
    return answers, {end.stream: replace(end, state=b"") for end in ends if end is not None}


def grouped(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Read, answer and commit this many rows at a time."""
    monkeypatch.setattr(Table.chunks, "__defaults__", ((), size))


def refused(*arguments: object, output: Path) -> str:
    """The message of a release that must end with exit code 2 and write nothing."""
    before = output.read_bytes() if output.exists() else None
    result = call("release", *arguments, "-o", output)
    assert result.code == 2
    assert (output.read_bytes() if output.exists() else None) == before
    assert not output.with_name(output.name + ".plan.json").exists()
    assert litter(output.parent) == []
    assert result.out == ""
    return result.err.splitlines()[-1]


def released_rows(folder: Path, model: Path, values: Sequence[object], *rule: object) -> Rows:
    """What leaves of one stream of values."""
    live = table(folder / "live.csv", [("a", value) for value in values])
    done("release", live, "-m", model, *rule, "-o", folder / "private.csv")
    return rows(folder / "private.csv")


def audited(
    folder: Path, model: Path, records: Sequence[Sequence[object]], *rule: object
) -> tuple[Rows, Mapping[str, Any]]:
    """What leaves of some rows, and the report of its audit, which must pass."""
    live, private = table(folder / "live.csv", records), folder / "private.csv"
    ledger = folder / "city.ledger"
    done("release", live, "-m", model, *rule, "--ledger", ledger, "-o", private)
    against = ("--ledger", ledger, "--against", live, "--json")
    report = done("audit", private, "-m", model, *against).document
    assert report["passed"]
    return rows(private), report


def is_whole(report: Mapping[str, Any], output: Path, sip: float) -> None:
    """The report of a run that answered all of `LIVE`, none of it before, and leaked so much."""
    worth = ("expected_loss", "silent_loss")  # where rows are answered one by one
    assert {name: value for name, value in report.items() if name not in worth} == {
        "output": str(output),
        "rows": len(LIVE),
        "repeated": 0,
        "streams": 3,
        "largest_sip": pytest.approx(sip),
        "largest_ldp": report["largest_ldp"],
        "interrupted": False,
        "waiting": 0,
        "missing": 0,
        "clipped": 0,
    }


def rewritten(path: Path, records: Rows) -> Path:
    """A released table with other content, the same rules, and a seal that fits it."""
    changed = path.with_name("changed.csv")
    with changed.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows(path)[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
    shutil.copy(f"{path}.plan.json", f"{changed}.plan.json")
    return resealed(changed)


def write_rules(path: Path, rules: dict[str, Any]) -> None:
    """Rules as a release spells them, whatever they say."""
    ordered = {name: rules[name] for name in ReleaseSpec.__struct_fields__ if name in rules}
    path.write_text(json.dumps(ordered | rules, indent=2, ensure_ascii=False), encoding="utf-8")


def resealed(path: Path) -> Path:
    """Let the rules beside a table say that it was written as it is now."""
    rules = Path(f"{path}.plan.json")
    document = json.loads(rules.read_text())
    records = read(path)
    seal = {
        "rows": len(records),
        "streams": len({record["person"] for record in records}),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
    }
    document["sealed"] |= seal
    write_rules(rules, document)
    return path


def another(value: str) -> str:
    """A place that was not released."""
    return PLACES[(PLACES.index(value) + 1) % len(PLACES)]
