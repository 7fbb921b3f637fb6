"""Certificates as files: closed, canonical, and bound to the table that they are about.

A certificate holds what its figures follow from, so that whoever has it can compute them again
(`sfumato verify`). Its text is canonical: there is one way to write it, and no place to hide
anything in. The digest at its end tells a slip from an edit; it is no signature, for whoever edits
a certificate can write another digest. What stops him is that the figures must follow.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from sfumato.core import limits
from sfumato.core.digest import digest
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.randomness import Randomness

FORMAT = "sfumato certificate 1"
_BLOCK = 1 << 20
ENVELOPE = ("format", "program", "job", "coins", "commitment", "table", "written")
"""What every certificate has beside the fields of its job."""


def program() -> str:
    """Name and version of this program."""
    return f"sfumato {metadata.version('sfumato')}"


def file_digest(path: str | Path) -> dict[str, Any]:
    """The SHA-256 of a file, and its size."""
    state, size = hashlib.sha256(), 0
    with Path(path).open("rb") as file:
        while block := file.read(_BLOCK):
            state.update(block)
            size += len(block)
    return {"sha256": state.hexdigest(), "bytes": size}


def attested(
    job: str, fields: Mapping[str, Any], coins: Randomness | None, commitment: str | None
) -> dict[str, Any]:
    """The fields of a certificate in their envelope; the table is not written yet.

    Args:
        job: The command that releases.
        fields: What the job says.
        coins: Where they came from; fresh ones if None.
        commitment: To the key of the coins, if they can be replayed.
    """
    kind = "fresh"
    if coins is not None and coins.addressed:
        kind = "seeded" if coins.simulated else "keyed"
    front = {"format": FORMAT, "program": program(), "job": job, "coins": kind}
    return {**front, "commitment": commitment, **fields}


def sealed(document: Mapping[str, Any], table: str | Path) -> dict[str, Any]:
    """The same with the digest of the table that was released, and of itself."""
    bound = {**document, "table": file_digest(table)}
    return {**bound, "written": written_digest("certificate", bound)}


def canonical(document: Mapping[str, Any]) -> str:
    """The one text of a document."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def written_digest(kind: str, document: Mapping[str, Any]) -> str:
    """The digest of all other fields of a document of a kind, which tells a slip from an edit."""
    rest = {name: value for name, value in document.items() if name != "written"}
    return digest(f"written {kind}", json.dumps(rest, sort_keys=True))


def read_certificate(path: str | Path) -> tuple[dict[str, Any], list[str]]:
    """A certificate, and what is wrong with its text.

    Raises:
        CorruptData: If it is none, or one of an earlier program, which lacks what it would take.
        InvalidParameter: If there is no such file.
    """
    content = _text(path)
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise CorruptData(f"{path}: not a certificate: {problem}") from problem
    if not isinstance(document, dict) or "format" not in document:
        raise CorruptData(f"{path}: {_without_format(document)}")
    if document["format"] != FORMAT:
        rule = f"format: the certificate says {str(document['format'])[:40]!r}; this program reads"
        raise CorruptData(f"{path}: {rule} {FORMAT!r}")
    problems = []
    if missing := [name for name in ENVELOPE if name not in document]:
        raise CorruptData(f"{path}: {', '.join(missing)}: missing from the certificate")
    if content != canonical(document):
        problems.append("format: the text is not the one way to write it: it was edited")
    if document["written"] != written_digest("certificate", document):
        problems.append("written: the fields are not those that were written: they were edited")
    return document, problems


def _without_format(document: object) -> str:
    known = {"guarantees", "fingerprint", "purpose"}
    if isinstance(document, dict) and known <= document.keys():
        return (
            "a certificate of an earlier program: it lacks what its figures follow from, and the "
            "digest of the table; release again to have one that can be verified"
        )
    return "not a certificate of privatize, publish, realtime or temporal release"


def _text(path: str | Path) -> str:
    file = Path(path)
    if not file.is_file():
        raise InvalidParameter("CERTIFICATE", str(path), "name a file; there is none")
    if file.stat().st_size > limits.DOCUMENT:
        rule = f"name a file of at most {limits.DOCUMENT:,} bytes"
        raise InvalidParameter("CERTIFICATE", str(path), rule)
    try:
        return file.read_bytes().decode()
    except UnicodeDecodeError:
        raise CorruptData(f"{path}: a certificate is text in UTF-8") from None
