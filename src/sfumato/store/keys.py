"""Keys from files: secret, strong, and nobody else's to read.

The key file of a ledger, `LEDGER.key`, holds the secret of the digests that tell a retry from other
data. It is as secret as the input: whoever has it and the ledger can test guesses at the true
values. The ledger alone tells nothing of them; without the key file retries are answered, but no
longer compared.

A commitment is a hash of a key that is published before the data are there: whoever gets the key
later can replay every draw, and see that it is the key that was meant then. Of a key that could be
guessed a hash would be a way to test guesses. So only what `key new` makes has one: 32 bytes that
look like random ones. Text in any encoding, digits, and keys of another length have none.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.randomness import check_secret
from sfumato.store.protocol import LedgerMismatch

_MOST_BYTES = 1 << 20
"""More is no key, but a file that was named by mistake, or a device without an end."""
_SECRET_BYTES, _NAME_BYTES = 32, 16
_COMMITMENT = re.compile(r"(?:(?P<name>[^:\s](?:[^:]*[^:\s])?):)?(?P<hash>[0-9a-f]{64})")
# What 32 random bytes are, but for one key in some thousand; a new key is drawn until it is.
_DIFFERENT, _MOST_PRINTABLE, _LEAST_SPAN, _QUARTERS = 22, 24, 96, 4
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


def new_key(path: str | Path) -> bytes:
    """Make a key file of 32 random bytes for its owner alone; one that exists is never replaced.

    Examples:
        >>> file = getfixture("tmp_path") / "new.key"
        >>> new_key(file) == read_key(file), oct(file.stat().st_mode)[-3:]
        (True, '600')
        >>> new_key(file)
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: key file must not exist: ...
    """
    secret = os.urandom(_SECRET_BYTES)
    while not _unguessable(secret):
        secret = os.urandom(_SECRET_BYTES)
    return write_key(path, secret)


def write_key(path: str | Path, secret: bytes) -> bytes:
    """Write a key to a file for its owner alone; one that exists is never replaced."""
    try:
        handle = os.open(path, _NEW, 0o600)
    except FileExistsError:
        rule = "not exist: with another key in its place no draw could be repeated"
        raise InvalidParameter("key file", str(path), rule) from None
    try:
        os.write(handle, secret)
        os.fsync(handle)
    finally:
        os.close(handle)
    return secret


def key_commitment(secret: bytes, name: str | None = None) -> str:
    """A hash that binds to a key and tells nothing of it, to be published before the data.

    Args:
        secret: The key: 32 random bytes, as `new_key` makes them.
        name: What it is for, if it is to be part of the commitment: `town 2026`.

    Raises:
        InvalidParameter: If the key may be guessed: a hash of it would show who guessed right.

    Examples:
        >>> key_commitment(hashlib.sha256(b"an example").digest(), "town 2026")
        'town 2026:2fc0f679caaf4f7c4c608142541d30d419d092eaead57b368c38e889ec504e38'
        >>> key_commitment(b"thirty-two letters of some words")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: key must be 32 random bytes to be committed to ...
    """
    check_secret(secret, "key")
    if not _unguessable(secret):
        rule = (
            "be 32 random bytes to be committed to (sfumato key new): text, digits and keys of "
            "another length may be guessed, and a hash would show who guesses right"
        )
        raise InvalidParameter("key", f"{len(secret)} bytes", rule)
    if name is not None and _COMMITMENT.fullmatch(f"{name}:{64 * '0'}") is None:
        raise InvalidParameter("name", name, "have no colon, and no blank at its ends")
    parts = (b"" if name is None else name.encode(), secret)
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    found = hashlib.sha256(b"sfumato key commitment v1 " + framed).hexdigest()
    return found if name is None else f"{name}:{found}"


def commitment_of(secret: bytes) -> str | None:
    """The commitment that goes beside a release; None of a key that could be guessed from it."""
    return key_commitment(secret) if _unguessable(secret) else None


def is_commitment(text: str) -> bool:
    """Whether a text is what `key commit` prints.

    Examples:
        >>> is_commitment(64 * "0"), is_commitment(f"town 2026:{64 * '0'}"), is_commitment("town")
        (True, True, False)
    """
    return _COMMITMENT.fullmatch(text.strip()) is not None


def is_committed(secret: bytes, commitment: str) -> bool:
    """Whether a commitment is to this key, and to the name that it says.

    Raises:
        InvalidParameter: If it is none.

    Examples:
        >>> secret = hashlib.sha256(b"an example").digest()
        >>> is_committed(secret, key_commitment(secret)), is_committed(secret, 64 * "0")
        (True, False)
    """
    read = _COMMITMENT.fullmatch(commitment.strip())
    if read is None:
        rule = "be what `sfumato key commit` printed: 64 hexadecimal digits, perhaps after a name"
        raise InvalidParameter("commitment", commitment, rule)
    return hmac.compare_digest(
        key_commitment(secret, read["name"]).encode(), commitment.strip().encode()
    )


def _unguessable(secret: bytes) -> bool:
    """Whether a key is 32 bytes that look random, and like no text in any common encoding."""
    if len(secret) != _SECRET_BYTES or len(set(secret)) < _DIFFERENT:
        return False
    if sum(0x20 <= byte < 0x7F for byte in secret) > _MOST_PRINTABLE:
        return False
    # Encodings of one byte for a letter leave out a quarter of all bytes.
    if len({byte >> 6 for byte in secret}) < _QUARTERS:
        return False
    # UTF-16: the upper halves of letters of one script lie near each other.
    if any(max(half) - min(half) < _LEAST_SPAN for half in (secret[::2], secret[1::2])):
        return False
    try:
        secret.decode()
    except UnicodeDecodeError:
        return True
    return False


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
        return new_key(path)
    except InvalidParameter:
        return read_secret(path)


def ledger_commitment(ledger: Path) -> str | None:
    """The commitment to the key of a ledger; None if there is no key file."""
    path = key_file(ledger)
    return commitment_of(read_secret(path)) if path.is_file() else None


def read_secret(path: Path) -> bytes:
    """The secret in a key file of a ledger.

    Raises:
        LedgerMismatch: If others than its owner may read it.
        CorruptData: If it does not hold 32 bytes.
    """
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
