"""What a process that holds true values in memory must not let out by other doors.

Core dumps hold the memory, so there are none; files are made for their owner alone; secrets of the
environment are taken out of it, so that no child inherits them; TLS is as the libraries' makers
advise. All of it is done once, before anything secret is read.
"""

from __future__ import annotations

import ctypes
import os
import ssl
import sys
from collections.abc import Iterable
from pathlib import Path

from sfumato.core.errors import InvalidParameter, SfumatoError

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4
_LONGEST_PASSWORD = 1_024


class NotHardened(SfumatoError):
    """The operating system refused a protection; nothing was started."""


def harden_process() -> None:
    """Let no memory of this process reach a disk, nor other users its files.

    Core dumps are off, and on Linux the process is marked as not to be dumped or traced by others
    of the same user. The faulthandler is left as it is: it names functions and lines, no values.

    Raises:
        NotHardened: If core dumps cannot be turned off.
    """
    os.umask(0o077)
    if sys.platform == "win32":
        return
    import resource

    # The hard limit too: nothing that is loaded later can raise it again.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        _forbid_dumps()


def _forbid_dumps() -> None:
    # A pattern of the kernel that pipes cores to a program ignores the limit, but not this.
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if libc.prctl(_PR_GET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise NotHardened("core dumps must be turned off; the operating system refuses (prctl)")


def environment_secret(name: str) -> str | None:
    """A secret that came in the environment, which forgets it; None if there is none.

    A child that is started later does not inherit it. The copy that the kernel keeps of the first
    environment (`/proc/PID/environ`) can be read by root alone once the process is hardened.

    Examples:
        >>> os.environ["EXAMPLE_SECRET"] = "s3cret"
        >>> environment_secret("EXAMPLE_SECRET"), environment_secret("EXAMPLE_SECRET")
        ('s3cret', None)
    """
    return os.environ.pop(name, None)


def tls_context(
    certificate: str | Path,
    key: str | Path,
    password_file: str | Path | None = None,
    client_ca: str | Path | None = None,
) -> ssl.SSLContext:
    """How the service speaks TLS: 1.2 or later, forward secrecy, its own order of ciphers.

    Args:
        certificate: File with the chain of certificates.
        key: File with the private key, readable by its owner alone.
        password_file: File whose first line is the password of the key.
        client_ca: Whoever asks must show a certificate that one of these authorities signed.

    Raises:
        InvalidParameter: If a file is not what it should be; nothing of it is quoted.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Of 1.2, only what a stolen key cannot decrypt later; 1.3 has nothing else.
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    context.options |= (
        ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    )
    _refuse_open_file(key)
    password = "" if password_file is None else _first_line(password_file)
    try:
        # A function, so that OpenSSL never asks at the terminal of a service.
        context.load_cert_chain(certificate, key, password=lambda: password)
    except (ssl.SSLError, ValueError):
        rule = "be a certificate chain and its private key in PEM, and the password that of the key"
        raise InvalidParameter("tls", f"{certificate}, {key}", rule) from None
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(client_ca)
        except ssl.SSLError:
            rule = "hold certificates of authorities in PEM"
            raise InvalidParameter("client_ca", str(client_ca), rule) from None
    return context


def _refuse_open_file(path: str | Path) -> None:
    if os.name == "posix" and Path(path).stat().st_mode & 0o007:
        rule = f"not be readable by everybody (chmod 600 {path})"
        raise InvalidParameter("file of a secret", str(path), rule)


def _first_line(path: str | Path) -> str:
    _refuse_open_file(path)
    with Path(path).open(encoding="utf-8") as file:
        return file.readline(_LONGEST_PASSWORD).rstrip("\r\n")


def checked_origins(origins: Iterable[str]) -> tuple[str, ...]:
    """Origins of other sites whose pages may ask, as a browser spells them; never all.

    Examples:
        >>> checked_origins(["https://board.example"])
        ('https://board.example',)
        >>> checked_origins(["*"])
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: origin must be https://host or ...
    """
    named = tuple(origins)
    for origin in named:
        scheme, _, host = origin.partition("://")
        if scheme not in ("http", "https") or not host or set(host) & set("*/?#@ "):
            rule = "be https://host or https://host:port, without a path; * is not allowed"
            raise InvalidParameter("origin", origin, rule)
    return named
