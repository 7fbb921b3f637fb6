"""Keys from files: secret, strong, and nobody else's to read.

The key file of a ledger, `LEDGER.key`, holds the secret of the digests that tell a retry from other
data. It is as secret as the input: whoever has it and the ledger can test guesses at the true
values. The ledger alone tells nothing of them; without the key file retries are answered, but no
longer compared.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.randomness import check_secret
from sfumato.store.protocol import LedgerMismatch

_MOST_BYTES = 1 << 20
"""More is no key, but a file that was named by mistake, or a device without an end."""
_SECRET_BYTES, _NAME_BYTES = 32, 16
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_key(
    path: str | Path, *, public: Iterable[str | Path | None] = (), shared: bool = False
) -> bytes:
    """The secret in a file, for `keyed`.

    Args:
        path: The file.
        public: Other files of the same call, such as model, input and output: a key with the
            content of one of them is no secret.
        shared: Whether group and others may be able to read it.

    Raises:
        InvalidParameter: If it is too short, too plain, too long, that of a public file, or open to
            others; nothing of it is quoted.

    Examples:
        >>> file = getfixture("tmp_path") / "secret.key"
        >>> _ = file.write_bytes(os.urandom(32))
        >>> file.chmod(0o600)
        >>> len(read_key(file))
        32
        >>> read_key(file, public=[file])
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: key file must not be a public file of ...
    """
    with open(path, "rb") as file:
        # Asked of what was opened, not of the name, which may lead elsewhere by then.
        mode = os.fstat(file.fileno()).st_mode
        secret = file.read(_MOST_BYTES + 1)
    if os.name == "posix" and mode & _OTHERS and not shared:
        rule = f"be readable by its owner alone (chmod 600 {path}), or be declared shared"
        raise InvalidParameter("key file", stat.filemode(mode), rule)
    if len(secret) > _MOST_BYTES:
        raise InvalidParameter("key file", "more", f"have at most {_MOST_BYTES:,} bytes")
    check_secret(secret, "key file")
    for other in public:
        if other is not None and _holds(Path(other), secret):
            rule = "not be a public file of the same call; make one from 32 random bytes"
            raise InvalidParameter("key file", f"the content of {other}", rule)
    return secret


def _holds(path: Path, secret: bytes) -> bool:
    """Whether a file has just this content."""
    try:
        if not path.is_file() or path.stat().st_size != len(secret):
            return False
        return path.read_bytes() == secret
    except OSError:
        return False  # one that cannot be read is refused by whoever needs it


def key_file(ledger: Path) -> Path:
    """Where the secret of the digests of a ledger is kept."""
    return ledger.with_name(f"{ledger.name}.key")


def secret_of(ledger: Path | None) -> bytes:
    """The secret of a ledger's digests; made where there is none, for its owner's eyes only."""
    if ledger is None:
        return os.urandom(_SECRET_BYTES)
    path = key_file(ledger)
    try:
        handle = os.open(path, _NEW, 0o600)
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
    return hashlib.sha256(b"sfumato ledger key " + secret).digest()[:_NAME_BYTES]
