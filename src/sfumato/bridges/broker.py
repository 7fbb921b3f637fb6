"""Where a broker is, and how it is spoken to: address, TLS, name and password."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from sfumato.core.errors import InvalidParameter

_PORTS = {"mqtt": 1883, "mqtts": 8883}
_LONGEST_PASSWORD = 1_024
WEEK = 7 * 86_400


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker, and who we are to it.

    Attributes:
        host: Its name or address.
        port: Where it listens.
        client_id: By which it knows our session after a restart; nobody else may use it.
        tls: How TLS is spoken; None for none.
        username: For the broker; None if it asks for none.
        password: Goes with it.
        session_seconds: How long it keeps our session, and what came for us, while we are away.
        keepalive: Seconds after which a silent connection is asked whether it is there.
    """

    host: str
    port: int
    client_id: str
    tls: ssl.SSLContext | None = None
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    session_seconds: int = WEEK
    keepalive: int = 30

    @property
    def url(self) -> str:
        """Its address, without anything secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'mqtt' if self.tls is None else 'mqtts'}://{host}:{self.port}"


def broker_address(url: str) -> tuple[str, int, bool]:
    """Host, port and whether TLS is spoken.

    Raises:
        InvalidParameter: If it is no address of a broker, or holds a password: arguments of a
            process can be read by everybody on its machine.

    Examples:
        >>> broker_address("mqtts://broker.example")
        ('broker.example', 8883, True)
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if "@" in parts.netloc:
        rule = "hold no user and no password: --username, and --password-file or the environment"
        raise InvalidParameter("--broker", "mqtt://...@...", rule)
    if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/"):
        raise InvalidParameter("--broker", url, "be mqtt://host:port or mqtts://host:port")
    return parts.hostname, port or _PORTS[parts.scheme], parts.scheme == "mqtts"


def client_tls(
    ca: str | Path | None = None,
    certificate: str | Path | None = None,
    key: str | Path | None = None,
) -> ssl.SSLContext:
    """How a broker is spoken to over TLS: 1.2 or later, its certificate and name checked.

    Args:
        ca: File of the authorities that sign its certificate; those of the system if not given.
        certificate: Our own certificate, for brokers that ask for one.
        key: Its private key; in the file of the certificate if not given.

    Raises:
        InvalidParameter: If a file is not what it should be; nothing of it is quoted.
    """
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (ssl.SSLError, OSError):
        raise InvalidParameter("--tls-ca", str(ca), "hold certificates in PEM") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate is not None:
        _refuse_open_file(certificate if key is None else key)
        try:
            # A function, so that OpenSSL never asks at the terminal of a bridge.
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (ssl.SSLError, OSError, ValueError):
            rule = "be a certificate and its private key in PEM, without a password"
            raise InvalidParameter("--tls-cert", str(certificate), rule) from None
    return context


def password_in(path: str | Path) -> str:
    """The first line of a file that its owner alone can read."""
    _refuse_open_file(path)
    with Path(path).open(encoding="utf-8") as file:
        return file.readline(_LONGEST_PASSWORD).rstrip("\r\n")


def _refuse_open_file(path: str | Path) -> None:
    if os.name == "posix" and Path(path).stat().st_mode & 0o007:
        rule = f"not be readable by everybody (chmod 600 {path})"
        raise InvalidParameter("file of a secret", str(path), rule)
