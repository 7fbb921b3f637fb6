"""The rules of what is audited: as given, beside the files, or in the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.stream.release_spec import ReleaseSpec


def release_rules(files: list[str], rules: str | None, ledger: str | None) -> ReleaseSpec:
    """The rules of a release: as given, beside the files, or in the ledger."""
    from sfumato.core.errors import InvalidParameter

    found = rules_of_releases(files, rules, ledger)
    if len(found) > 1:
        raise InvalidParameter("--plan", "several", "be the same for all files")
    return common_rules(found[0][1])


def common_rules(specs: Sequence[ReleaseSpec]) -> ReleaseSpec:
    """The rules that all files of a release have; of a file that had missing values, if any."""
    return next((spec for spec in specs if spec.missing != "refuse"), specs[0])


def rules_of_releases(
    files: list[str], rules: str | None, ledger: str | None
) -> list[tuple[list[int], list[ReleaseSpec]]]:
    """For each release the places of its files, in order, and the rules of each file.

    Files under the same rules go on with the same streams; others are releases of their own.
    """
    import msgspec

    from sfumato.stream.release_document import parse_spec

    documents = rule_documents(files, rules, ledger, "release")
    specs = [parse_spec(content, where) for content, where in documents]
    if len(specs) < len(files):
        # Rules that are given for several files are beside none of them: they seal none.
        specs = [msgspec.structs.replace(specs[0], sealed=None)] * len(files)
    found: dict[bytes, tuple[list[int], list[ReleaseSpec]]] = {}
    for place, spec in enumerate(specs):
        places, own = found.setdefault(_bare(spec), ([], []))
        places.append(place)
        own.append(spec)
    return list(found.values())


def rule_documents(
    files: list[str], rules: str | None, ledger: str | None, command: str
) -> list[tuple[bytes, str]]:
    """The rules of a release, and where they stood: as given, beside the files, or in the ledger.

    Args:
        files: What the release wrote.
        rules: The document, if it was given.
        ledger: The ledger, if it was given.
        command: What wrote them, for messages.
    """
    from sfumato.core.errors import InvalidParameter
    from sfumato.store.ledger_reader import LedgerReader
    from sfumato.tables.documents import read_document
    from sfumato.tables.problems import BadTable

    paths = [Path(rules)] if rules else [Path(f"{file}.plan.json") for file in files]
    for file in files:
        if not Path(file).exists():
            raise BadTable(file, None, "the file must exist; it does not")
    for path in paths:
        if not path.is_file():
            rule = f"be the file that `{command}` wrote, and there is no such file"
            raise InvalidParameter("--plan", str(path), rule)
    if paths:
        return [(read_document("the plan", path), str(path)) for path in paths]
    if ledger is None:
        rule = f"be what `{command}` wrote, or come with --ledger"
        raise InvalidParameter("OUTPUT", None, rule)
    with LedgerReader(ledger) as reader:
        content = reader.front.rules
    if content is None:
        raise InvalidParameter("--plan", None, "be given: this ledger does not hold its rules")
    return [(content.encode(), ledger)]


def _bare(spec: ReleaseSpec) -> bytes:
    """The rules without what may change from day to day."""
    import msgspec

    other = {"missing": "refuse", "late": "refuse", "keep": (), "independent": ()}
    bare = msgspec.structs.replace(spec, **other, event=None, time=None, sealed=None)
    return msgspec.json.encode(bare)
