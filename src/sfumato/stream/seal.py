"""What the rules beside a released file say of the file itself: all of it, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

_VERSION, _DIGEST = re.compile(r"(sfumato [0-9a-z.+]{1,24})?"), re.compile(r"([0-9a-f]{64})?")


class Seal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a file was when its release had written it.

    Attributes:
        rows: Its rows; of a release that went on in several files, those of this one.
        streams: How many streams they belong to.
        sha256: Digest of its bytes.
        complete: Whether the whole input was answered; not so after an interruption.
        program: What wrote it.
        commitment: To the key of the coins, if they were keyed by random bytes: `audit --key-file`
            repeats every draw.
        ledger_commitment: To the key of the ledger, by which retries are compared.

    Examples:
        >>> whole = Seal(rows=3, streams=1, sha256="ab", program="sfumato 1")
        >>> list(whole.broken(2, 1, "cd"))
        ['the file must have the 3 rows that the release wrote; it has 2']
    """

    rows: int
    streams: int
    sha256: str
    complete: bool = True
    program: str = ""
    commitment: str | None = None
    ledger_commitment: str | None = None

    @property
    def has_no_room(self) -> bool:
        """Whether its texts are a version and digests: others would be room for a message."""
        texts = (self.sha256, self.commitment or "", self.ledger_commitment or "")
        return bool(_VERSION.fullmatch(self.program)) and all(map(_DIGEST.fullmatch, texts))

    def broken(self, rows: int, streams: int, sha256: str | None) -> Iterator[str]:
        """What a file that was read is not as it was; without a digest only rows are counted."""
        if rows != self.rows:
            rule = f"the file must have the {self.rows:,} rows that the release wrote"
            yield f"{rule}; it has {rows:,}"
        elif streams != self.streams:
            rule = f"the file must have the {self.streams:,} streams that the release wrote"
            yield f"{rule}; it has {streams:,}"
        elif sha256 is not None and sha256 != self.sha256:
            yield "the file must have the bytes that the release wrote; it was changed afterwards"


def sealed(document: bytes, seal: Seal) -> bytes:
    """The rules of a release with the seal of its file."""
    rules: dict[str, Any] = msgspec.json.decode(document)
    told = {name: value for name, value in msgspec.to_builtins(seal).items() if value is not None}
    whole = rules | {"sealed": told}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2)
