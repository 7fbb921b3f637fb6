"""What a bridge is called in a ledger: with how its events are known, which must never change."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sfumato.store.protocol import LedgerMismatch

_LABEL = re.compile(r"(?:.* )?mqtt ids=(?P<identity>\S+)(?: .*)?")


def source_label(identity: str) -> str:
    """The source of the answers of a bridge.

    Examples:
        >>> source_label("field:n")
        'mqtt ids=field:n'
    """
    return f"mqtt ids={identity}"


def check_sources(labels: Iterable[str], identity: str) -> None:
    """Refuse a ledger in which events of a bridge are known in another way.

    A message that is delivered again would be a new event under its new name, and be answered
    twice.

    Raises:
        LedgerMismatch: If there is such a source.

    Examples:
        >>> check_sources(["http", "mqtt ids=field:n"], "field:n")
        >>> check_sources(["http key=ab12 mqtt ids=field:n"], "time")
        Traceback (most recent call last):
        sfumato.store.protocol.LedgerMismatch: events of this ledger are known by field:n; ...
    """
    for label in labels:
        found = _LABEL.fullmatch(label)
        if found is not None and found["identity"] != identity:
            raise LedgerMismatch(
                f"events of this ledger are known by {found['identity']}; under other names those "
                "that are delivered again would be answered twice: use the same, or another release"
            )
