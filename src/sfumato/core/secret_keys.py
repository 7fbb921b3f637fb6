"""Secrets that coins are made from: which could be guessed, and the one of a single ledger."""

from __future__ import annotations

import hmac

from sfumato.core.errors import InvalidParameter

_MIN_SECRET_BYTES = 16
# Sixteen random bytes have fewer different ones once in 10**12 keys; typed ones often do.
_MIN_SECRET_KINDS = 8


def check_secret(secret: bytes, name: str = "secret") -> None:
    """Refuse a secret that could be guessed; nothing of it is quoted.

    Examples:
        >>> check_secret(bytes(32))
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: secret must have at least 8 different bytes; got '1'
    """
    if len(secret) < _MIN_SECRET_BYTES:
        raise InvalidParameter(name, f"{len(secret)} bytes", "have at least 16 bytes")
    if len(set(secret)) < _MIN_SECRET_KINDS:
        rule = f"have at least {_MIN_SECRET_KINDS} different bytes"
        raise InvalidParameter(name, f"{len(set(secret))}", rule)
    # A word is found within itself written twice, other than at its ends, if it repeats a part.
    period = (secret + secret).index(secret, 1)
    if period < _MIN_SECRET_BYTES:
        rule = "have at least 16 bytes that do not repeat"
        raise InvalidParameter(name, f"{period} bytes, again and again", rule)


def ledger_key(secret: bytes, ledger: bytes) -> bytes:
    """The key of one ledger: other ledgers have others, and none tells the secret.

    Two ledgers may have one plan. With the same coins at the same addresses, the difference of
    their answers would tell values.

    Args:
        secret: As for `keyed`.
        ledger: The id of the ledger.

    Examples:
        >>> secret = b"sixteen bytes or more"
        >>> ledger_key(secret, b"one") == ledger_key(secret, b"another")
        False
    """
    return hmac.digest(secret, b"ledger " + ledger, "sha256")
