"""A certificate and its table, and the true rows that they are held against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sfumato.core.randomness import Randomness
from sfumato.core.verification import Verification
from sfumato.tables.readers import Table


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """What whoever has the true rows, or the key as well, holds a release against.

    Attributes:
        found: Where what does not fit is noted.
        document: The certificate.
        table: What was released.
        rows: The rows that it was released of.
        history: Public records that something was learnt from, where they are no evidence.
        coins: Those of the key, if it is there.
    """

    found: Verification
    document: dict[str, Any]
    table: Table
    rows: Table
    history: Table | None = None
    coins: Randomness | None = None
