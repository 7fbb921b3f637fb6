"""Any file of the product, told apart by its first bytes and put in words."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.explanations.model_words import model_words, set_words, version_words
from sfumato.explanations.promise_words import certificate_words, ledger_words, plan_words
from sfumato.models.plausible import PlausibleChains
from sfumato.store.attestation import read_certificate
from sfumato.store.codec import MAGIC
from sfumato.store.files import load_any
from sfumato.store.ledger_check import check_ledger
from sfumato.stream.release_document import read_spec
from sfumato.stream.version_files import load_versions

_SQLITE = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A file in plain words.

    Attributes:
        kind: What it is: model, set of plausible models, versions of a learning release, prior,
            policy, plan, ledger, certificate, or a table by one of these.
        lines: What is to be known of it, sentence by sentence.
    """

    kind: str
    lines: tuple[str, ...]


def explain(path: str | Path) -> Explanation:
    """Say in plain words what a file of the product is, and what it means.

    Nothing is recomputed and no promise is checked: that is for `audit` and `verify`.

    Args:
        path: A model, policy, ledger, certificate, the plan beside a release, or the table that
            a plan or certificate lies beside.

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
    if not file.is_file():
        raise InvalidParameter("file", str(path), "be a file that is there")
    with file.open("rb") as opened:
        start = opened.read(64)
    if start.startswith(MAGIC) and file.suffix == ".versions":
        return Explanation("list of versions", tuple(version_words(load_versions(file))))
    if start.startswith(MAGIC):
        return _stored(file)
    if start.startswith(_SQLITE):
        return Explanation("ledger", tuple(ledger_words(check_ledger(file))))
    if file.suffix != ".jsonl" and start.lstrip().startswith(b"{"):
        return _document(file)
    for beside in (f"{file}.plan.json", f"{file}.certificate.json"):
        if Path(beside).is_file():
            found = _document(Path(beside))
            return Explanation(f"table, released by the {found.kind} beside it", found.lines)
    rule = (
        "be a model, policy, ledger, certificate or plan, or a table with one of the last two "
        "beside it"
    )
    raise InvalidParameter("file", str(path), rule)


def _stored(file: Path) -> Explanation:
    stored = load_any(file)
    if isinstance(stored, PlausibleChains):
        return Explanation("set of plausible models", tuple(set_words(stored)))
    kind, lines = model_words(stored)
    return Explanation(kind, tuple(lines))


def _document(file: Path) -> Explanation:
    if file.name.endswith(".plan.json"):
        return Explanation("plan", tuple(plan_words(read_spec(file))))
    document, problems = read_certificate(str(file))
    if problems:
        raise CorruptData(f"{file}: {problems[0]}")
    return Explanation("certificate", tuple(certificate_words(document)))
