"""Two small files beside a ledger: `LEDGER.head`, which no rollback escapes, and `LEDGER.key`.

The head file is held by the one process that writes the ledger, and says after every commit, before
an answer leaves, how many rows there are and what their head is. A ledger that has fewer rows,
or others, was rolled back, or lost its write-ahead log.

The key file holds the secret of the digests that tell a retry from other data. It is as secret as
the input: whoever has it and the ledger can test guesses at the true values. The ledger alone tells
nothing of them; without the key file retries are answered, but no longer compared.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import os
import re
from pathlib import Path
from typing import Self

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.store.protocol import Head, LedgerMismatch, Released

_LINE = re.compile(rb"(\d{20}) ([0-9a-f]{64})\n")
_SECRET_BYTES = 32
_TAG_BYTES = 16
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def head_file(ledger: Path) -> Path:
    """Where the head of a ledger is kept."""
    return ledger.with_name(f"{ledger.name}.head")


def key_file(ledger: Path) -> Path:
    """Where the secret of its digests is kept."""
    return ledger.with_name(f"{ledger.name}.key")


class Anchor:
    """The head file of a ledger, held by one process.

    Examples:
        >>> path = getfixture("tmp_path") / "city.ledger"
        >>> with Anchor(path) as anchor:
        ...     anchor.write(Head(2, bytes(32)))
        >>> written_head(path).entries
        2
    """

    def __init__(self, ledger: Path) -> None:
        self._path = head_file(ledger)
        self._handle = os.open(self._path, _OPEN | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._handle)
            raise LedgerMismatch(f"{ledger}: the ledger is in use by another release") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def write(self, head: Head) -> None:
        """Say that so many rows are on disk; a power cut may lose this, and is no harm.

        What is lost then is how new the ledger is, and it may be newer than its head says.
        """
        os.pwrite(self._handle, b"%020d %s\n" % (head.entries, head.hash.hex().encode()), 0)

    def close(self) -> None:
        """Let others hold it; what was written stays."""
        if self._handle >= 0:
            if os.fstat(self._handle).st_size == 0:
                self._path.unlink(missing_ok=True)  # nothing was begun
            os.fsync(self._handle)
            os.close(self._handle)
            self._handle = -1


def written_head(ledger: Path) -> Head | None:
    """The head that was written last; None if there is none."""
    path = head_file(ledger)
    try:
        line = path.read_bytes()
    except FileNotFoundError:
        return None
    if not line:
        return None
    found = _LINE.fullmatch(line)
    if found is None:
        raise CorruptData(f"{path}: the head of a ledger is damaged")
    return Head(int(found[1]), bytes.fromhex(found[2].decode()))


def secret_of(ledger: Path | None) -> bytes:
    """The secret of a ledger's digests; made where there is none, for its owner's eyes only."""
    if ledger is None:
        return os.urandom(_SECRET_BYTES)
    path = key_file(ledger)
    try:
        handle = os.open(path, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read_secret(path)
    try:
        secret = os.urandom(_SECRET_BYTES)
        os.write(handle, secret)
        os.fsync(handle)
    finally:
        os.close(handle)
    return secret


def _read_secret(path: Path) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_mode & 0o077:
            raise LedgerMismatch(f"{path}: nobody but its owner may read it (chmod 600)")
        secret = os.read(handle, _SECRET_BYTES + 1)
    finally:
        os.close(handle)
    if len(secret) != _SECRET_BYTES:
        rule = f"it must hold {_SECRET_BYTES} bytes; without the file, retries are not compared"
        raise CorruptData(f"{path}: {rule}")
    return secret


def secret_name(secret: bytes) -> bytes:
    """Tells secrets apart, and nothing else of them."""
    return hashlib.sha256(b"sfumato ledger key " + secret).digest()[:_TAG_BYTES]


def value_tag(secret: bytes, id_: str, stream: str, value: Released) -> bytes:
    """Keyed digest of the value of one event; the same value of two events has two digests."""
    content = msgspec.msgpack.encode((id_, stream, value))
    return hmac.digest(secret, b"sfumato value 1 " + content, "sha256")[:_TAG_BYTES]
