"""What is kept: bytes, files, the ledger of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.store.codec import from_bytes as from_bytes
    from sfumato.store.codec import to_bytes as to_bytes

__getattr__, __dir__ = lazily(__name__)
