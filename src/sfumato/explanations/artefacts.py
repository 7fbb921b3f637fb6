"""Any file of the product, told apart by its first bytes and put in words."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.state import SeriesState
from sfumato.explanations.job_words import ledger_words, temporal_plan_words
from sfumato.explanations.model_words import model_next, model_words, set_words, version_words
from sfumato.explanations.promise_words import certificate_words, plan_words
from sfumato.explanations.proof_words import (
    BURSTS,
    anchor_words,
    commitment_words,
    home_words,
    report_words,
    small_words,
    state_words,
)
from sfumato.models.plausible import PlausibleChains
from sfumato.store.attestation import read_certificate
from sfumato.store.codec import MAGIC
from sfumato.store.files import load_any, load_state
from sfumato.store.home_anchor import FORMAT as ANCHOR
from sfumato.store.home_anchor import HomeAnchor
from sfumato.store.keys import is_commitment
from sfumato.store.ledger_check import checked
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.reports import FORMAT as REPORT
from sfumato.store.reports import read_report
from sfumato.stream.release_document import parse_spec as parse_release
from sfumato.stream.version_files import load_versions
from sfumato.tables.documents import read_document
from sfumato.temporal.temporal_spec import parse_spec as parse_temporal

_SQLITE = b"SQLite format 3\0"
_PLAN, _CERTIFICATE = ".plan.json", ".certificate.json"
_REGISTRY = "registry.db"
_LONGEST_LINE = 1024
"""Bytes of a file that may be a commitment with a name."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """A file in plain words.

    Attributes:
        kind: What it is: model, set of plausible models, versions of a learning release, prior,
            policy, plan, ledger, certificate, report, commitment, home of a service, or a table by
            what lies beside it.
        lines: What is to be known of it, sentence by sentence.
        next: What to type next.
    """

    kind: str
    lines: tuple[str, ...]
    next: str = ""


def explain(path: str | Path) -> Explanation:
    """Say in plain words what a file of the product is, and what it means.

    No promise is checked: that is for `audit` and `verify`.

    Args:
        path: A model, policy, ledger, certificate, report, the plan beside a release, the table
            that a plan or certificate lies beside, or the home of a service.

    Raises:
        InvalidParameter: If it is none of them.

    Examples:
        >>> from sfumato import Prior, save
        >>> path = getfixture("tmp_path") / "coin.model"
        >>> save(Prior([0.7, 0.3]), path)
        >>> explain(path).kind
        'prior'
    """
    file = Path(path)
    if (file / _REGISTRY).is_file():
        return _told("home of a service", home_words(file), f"store check {_name(file)}")
    if file.is_dir():
        return _beside(file)  # what Spark writes
    if not file.is_file():
        raise InvalidParameter("file", str(path), "be a file that is there")
    if (beside := small_words(file)) is not None:
        return _told(*beside)
    with file.open("rb") as opened:
        start = opened.read(_LONGEST_LINE)
    if start.startswith(MAGIC):
        return _stored(file)
    if start.startswith(_SQLITE):
        return _ledger(file)
    if file.suffix != ".jsonl" and start.lstrip().startswith(b"{"):
        return _document(file)
    if len(start) < _LONGEST_LINE and is_commitment(start.decode("utf-8", "replace")):
        words = start.decode().strip()
        command = f"key check KEY {shlex.quote(words)}"
        return _told("commitment to a key", commitment_words(), command)
    return _beside(file)


def _told(kind: str, lines: Iterable[str], command: str) -> Explanation:
    return Explanation(kind, tuple(lines), f"sfumato {command}")


def _name(file: Path | str) -> str:
    return shlex.quote(str(file))


def _beside(file: Path) -> Explanation:
    """A table, by what lies beside it; a certificate says more of what left than a plan does."""
    for suffix, kind in ((_CERTIFICATE, "certificate"), (_PLAN, "plan")):
        beside = Path(f"{file}{suffix}")
        if beside.is_file():
            found = _document(beside)
            return Explanation(f"table with its {kind} beside it", found.lines, found.next)
    rule = (
        "be a model, policy, ledger, certificate, plan, report or home, or a table with its plan "
        "or certificate beside it"
    )
    raise InvalidParameter("file", str(file), rule)


def _stored(file: Path) -> Explanation:
    if file.suffix == ".versions":
        words = version_words(load_versions(file))
        table = Path(str(file).removesuffix(".versions"))
        about = f"--ledger {_name(table)}" if table.suffix == ".ledger" else _name(table)
        return _told("list of versions", words, f"audit {about} --model MODEL")
    if file.suffix == ".bursts":
        return _told("note of how a total is best spent", *BURSTS)
    try:
        stored = load_any(file)
    except CorruptData as problem:
        if SeriesState.__name__ not in str(problem):
            raise
        command = f"realtime NEXT --value COLUMN --sensitivity 1 --epsilon 1 --state {_name(file)}"
        return _told("state of a series", state_words(load_state(file)), f"{command} -o OUTPUT")
    if isinstance(stored, PlausibleChains):
        command = f"audit TABLE --model MODEL --plausible {_name(file)}"
        return _told("set of plausible models", set_words(stored), command)
    kind, lines = model_words(stored)
    return _told(kind, lines, model_next(stored, _name(file)))


def _ledger(file: Path) -> Explanation:
    with LedgerReader(file) as reader:
        words = tuple(ledger_words(checked(reader), reader.front.rules, str(file)))
        job = reader.front.job
    commands = {"realtime": "audit", "temporal": "temporal audit"}
    command = commands.get(job, "audit --model MODEL")
    return _told("ledger", words, f"{command} --ledger {_name(file)}")


def _document(file: Path) -> Explanation:
    content = read_document("the file", file)
    match _format(content):
        case str(found) if found == REPORT:
            document, problems = read_report(file)
            _refuse(file, problems)
            return _told("report", report_words(document), f"verify-report {_name(file)}")
        case str(found) if found == ANCHOR:
            words = anchor_words(HomeAnchor.load(file))
            return _told("anchor", words, f"store check HOME --expect-anchor {_name(file)}")
    if file.name.endswith(_PLAN):
        return _plan(file, content)
    document, problems = read_certificate(str(file))
    _refuse(file, problems)
    return _told("certificate", certificate_words(document), f"verify {_name(file)}")


def _plan(file: Path, content: bytes) -> Explanation:
    table = _name(str(file).removesuffix(_PLAN))
    if "alpha" in _fields(content):
        words = temporal_plan_words(parse_temporal(content, file))
        return _told("plan", words, f"temporal audit {table}")
    words = plan_words(parse_release(content, file))
    return _told("plan", words, f"audit {table} --model MODEL")


def _refuse(file: Path, problems: list[str]) -> None:
    if problems:
        raise CorruptData(f"{file}: {problems[0]}")


def _fields(content: bytes) -> dict[str, object]:
    """The fields of a document; none if it is no object, of which its own reader complains."""
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _format(content: bytes) -> object:
    return _fields(content).get("format")
