"""The heads of a home, to be written down elsewhere: what shows later that nothing was forgotten.

Whoever can write to all files of a home, or to its database, can put an older state of all of them
in their place, and no hash inside would show it: what was released since would be forgotten, and
its budget spent again. A line that was kept outside shows it: printed, logged, fetched by
monitoring. A home has grown from an anchor, or is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.store.protocol import Head, LedgerMismatch

FORMAT = "sfumato anchor 1"
_MOST_BYTES = 16 << 20


class HomeAnchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a home had come: the head of its registry and of each of its ledgers.

    Attributes:
        registry: Of the registry, as `ENTRIES:HASH`.
        ledgers: Of each ledger, as `ROWS:HASH`.
        time: When it was made, in UTC.
        format: Tells this document from others.

    Examples:
        >>> anchor = HomeAnchor("0:00", {"city": f"3:{64 * '5'}"}, "2026-05-01T12:00:00Z")
        >>> HomeAnchor.read(anchor.document()) == anchor
        True
    """

    registry: str
    ledgers: Mapping[str, str]
    time: str
    format: str = FORMAT

    def document(self) -> bytes:
        """As JSON, for people and monitoring."""
        return msgspec.json.format(msgspec.json.encode(self, order="deterministic")) + b"\n"

    @classmethod
    def read(cls, document: bytes) -> HomeAnchor:
        """What `document` wrote.

        Raises:
            CorruptData: If it is no anchor, or one of another version.
        """
        try:
            found = msgspec.json.decode(document, type=cls)
            for head in (found.registry, *found.ledgers.values()):
                Head.read(head)
        except (msgspec.DecodeError, LedgerMismatch):
            raise CorruptData(
                "an anchor must be what `sfumato store check --write-anchor` wrote"
            ) from None
        if found.format != FORMAT:
            raise CorruptData(f"an anchor must have the format {FORMAT!r}")
        return found

    @classmethod
    def load(cls, path: str | Path) -> HomeAnchor:
        """The anchor in a file."""
        with open(path, "rb") as file:
            document = file.read(_MOST_BYTES)
        try:
            return cls.read(document)
        except CorruptData as problem:
            raise CorruptData(f"{path}: {problem}") from None


class HeadedLog(Protocol):
    """What is asked of a registry."""

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        ...


class Headed(Protocol):
    """What is asked of a home, or of a copy of one."""

    @property
    def registry(self) -> HeadedLog:
        """Its registry."""
        ...

    def head_at(self, ledger: str, entries: int) -> Head | None:
        """The head of a ledger after so many rows; None if it has no such commit or is missing."""
        ...


def check_anchor(home: Headed, anchor: HomeAnchor) -> None:
    """Refuse a home that did not grow from an anchor.

    Raises:
        LedgerMismatch: If something has fewer rows than it had, or others.

    Examples:
        >>> from sfumato.store.folder_home import FolderHome
        >>> with FolderHome(getfixture("tmp_path") / "town") as home:
        ...     check_anchor(home, home.heads())
    """
    for problem in anchor_problems(home, anchor):
        raise LedgerMismatch(f"{problem} (anchor of {anchor.time})")


def anchor_problems(home: Headed, anchor: HomeAnchor) -> Iterator[str]:
    """What shows that a home did not grow from an anchor."""
    due = Head.read(anchor.registry)
    if due.entries and home.registry.head_at(due.entries) != due:
        yield f"the registry did not grow from the anchored head {due}: it was rolled back"
    for name, text in anchor.ledgers.items():
        due = Head.read(text)
        # Of a ledger without rows nothing can be forgotten.
        if due.entries and home.head_at(name, due.entries) != due:
            yield (
                f"ledger {name!r} did not grow from the anchored head {due}: it was rolled back, "
                "and what was released since would be forgotten"
            )
