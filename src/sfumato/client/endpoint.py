"""Where a service is, who asks, and how the way there is protected."""

from __future__ import annotations

import os
import re
import ssl
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from sfumato.core.errors import InvalidParameter

_KEY = re.compile(r"sfk_[A-Za-z0-9]+_[A-Za-z0-9_-]+")
_OF_A_RELEASE = ("streams", "events", "socket", "plan", "ledger", "rules")
_KEY_RULE = "be an access key, sfk_<id>_<secret>, as the service printed it"
MISSING_EXTRA = 'have httpx and websockets to talk to a service: pip install "sfumato[client]"'


def missing_library(name: str | None) -> InvalidParameter:
    """What to say where a library of the extra is not installed."""
    return InvalidParameter("this Python", f"none named {name}", MISSING_EXTRA)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A service and an access key; the key is in no repr.

    Attributes:
        http: Address of requests.
        socket: Address of sockets.
        path: Of a Unix socket, if it is one.
        tls: How the service proves who it is; None without TLS.
        key: The access key.
        release: Where events go that name no release; the default release if None.
    """

    http: str
    socket: str
    path: str | None
    tls: ssl.SSLContext | None = field(repr=False)
    key: str = field(repr=False)
    release: str | None

    @classmethod
    def at(
        cls,
        url: str,
        key: str,
        release: str | None = None,
        ca: str | Path | ssl.SSLContext | None = None,
        *,
        cleartext: bool = False,
    ) -> Endpoint:
        """A service at a URL: https://host, http://localhost:8477 or unix:/run/sfumato.sock.

        Args:
            url: Where it is.
            key: The access key.
            release: Where events go that name no release.
            ca: File of certificates that vouch for it, or all of TLS; the system's if None.
            cleartext: Whether true values may go over a network unencrypted.

        Examples:
            >>> Endpoint.at("https://gate.example/", "sfk_a1_secret")
            Endpoint(http='https://gate.example', socket='wss://gate.example', path=None,
                release=None)
            >>> Endpoint.at("http://gate.example", "sfk_a1_secret")
            Traceback (most recent call last):
            sfumato.core.errors.InvalidParameter: url must be https://, or on this machine: ...
        """
        if not _KEY.fullmatch(key):
            raise InvalidParameter("key", "another text, not quoted", _KEY_RULE)
        if url.startswith("unix:"):
            path = "/" + url.removeprefix("unix:").lstrip("/")
            return cls("http://localhost", "ws://localhost", path, None, key, release)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InvalidParameter("url", _hidden(url), "be https://HOST, http://HOST or unix:PATH")
        if parts.username is not None or parts.password is not None:
            raise InvalidParameter("url", "one with a name in it", "not hold a name or a password")
        if parts.scheme == "http" and not (cleartext or _is_here(parts.hostname)):
            rule = "be https://, or on this machine: true values would cross a network in clear"
            raise InvalidParameter("url", url, rule)
        base = f"{parts.netloc}{parts.path}".rstrip("/")
        tls = None if parts.scheme == "http" else _tls(ca)
        ways = ("http", "ws") if tls is None else ("https", "wss")
        return cls(f"{ways[0]}://{base}", f"{ways[1]}://{base}", None, tls, key, release)

    @property
    def headers(self) -> dict[str, str]:
        """What shows who asks."""
        return {"Authorization": f"Bearer {self.key}"}

    def target(self, *parts: str, **asked: str | int | float | None) -> str:
        """The path of a call, and what it asks for; names of streams may hold anything.

        Examples:
            >>> here = Endpoint.at("http://localhost", "sfk_a1_secret", release="town")
            >>> here.target("streams", "a/b", "budget", after=None)
            '/v1/streams/a%2Fb/budget?release=town'
        """
        given = {name: value for name, value in asked.items() if value is not None}
        if self.release is not None and parts[0] in _OF_A_RELEASE:
            given["release"] = self.release
        query = f"?{urlencode(given)}" if given else ""
        return "/v1/" + "/".join(quote(part, safe="") for part in parts) + query


def read_access_key(path: str | Path | None, name: str = "SFUMATO_ACCESS_KEY") -> str:
    """The access key in a file of its owner, or in the environment; never on a command line.

    Raises:
        InvalidParameter: If there is none, or others may read the file.
    """
    if path is None:
        if found := os.environ.get(name, "").strip():
            return found
        raise InvalidParameter("--access-key-file", None, f"be given, or {name} be set")
    file = Path(path)
    if file.stat().st_mode & 0o077:
        rule = f"be readable by its owner alone (chmod 600 {path})"
        raise InvalidParameter("--access-key-file", str(path), rule)
    return file.read_text("utf-8").strip()


def _tls(ca: str | Path | ssl.SSLContext | None) -> ssl.SSLContext:
    if isinstance(ca, ssl.SSLContext):
        return ca
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError):
        rule = "be a file of certificates (PEM)"
        raise InvalidParameter("ca", str(ca), rule) from None


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _hidden(url: str) -> str:
    """A URL that may be quoted: somebody may have written a password into it."""
    return "another one" if "@" in url else url
