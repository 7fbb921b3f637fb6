"""Where `sfumato access` finds the keys: in a home that nobody serves, or behind a service."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.parse import quote, urlsplit

import msgspec

from sfumato.core.errors import CorruptData, FileInUse, InvalidParameter, SfumatoError
from sfumato.service.access import AccessControl, operator
from sfumato.service.key_documents import (
    KeyBody,
    KeyRequest,
    KeysBody,
    NewKeyBody,
    RotationRequest,
    key_body,
)

if TYPE_CHECKING:
    from sfumato.store.home import Home

KEY_VARIABLE = "SFUMATO_ACCESS_KEY"
_PATIENCE = 30.0
_MOST_LETTERS = 500
Kind = TypeVar("Kind")


class RefusedByService(SfumatoError):
    """A service was asked and refused, or did not answer; its words name no key."""


class KeyPlace(Protocol):
    """Whoever keeps the keys."""

    def keys(self) -> list[KeyBody]:
        """All keys that may be seen."""
        ...

    def new(self, wanted: KeyRequest) -> NewKeyBody:
        """Make a key."""
        ...

    def revoke(self, id_: str) -> KeyBody:
        """Make a key useless."""
        ...

    def rotate(self, id_: str, wanted: RotationRequest) -> NewKeyBody:
        """Put another key in the place of one."""
        ...


class _HomePlace:
    """The registry of a home, whose files are in the hands of whoever asks."""

    def __init__(self, control: AccessControl) -> None:
        self._control, self._by = control, operator("command line")

    def keys(self) -> list[KeyBody]:
        return [key_body(key, datetime.now(UTC)) for key in self._control.keys(self._by)]

    def new(self, wanted: KeyRequest) -> NewKeyBody:
        text, key = self._control.issue(self._by, wanted.grant())
        return NewKeyBody(text, key_body(key, datetime.now(UTC)))

    def revoke(self, id_: str) -> KeyBody:
        return key_body(self._control.revoke(self._by, id_), datetime.now(UTC))

    def rotate(self, id_: str, wanted: RotationRequest) -> NewKeyBody:
        overlap = timedelta(seconds=wanted.overlap_seconds)
        text, key = self._control.rotate(self._by, id_, overlap)
        return NewKeyBody(text, key_body(key, datetime.now(UTC)))


class _ServicePlace:
    """A service that is asked over HTTP."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def keys(self) -> list[KeyBody]:
        return self._asked(KeysBody, "GET", "/v1/keys").keys

    def new(self, wanted: KeyRequest) -> NewKeyBody:
        return self._asked(NewKeyBody, "POST", "/v1/keys", wanted)

    def revoke(self, id_: str) -> KeyBody:
        return self._asked(KeyBody, "DELETE", f"/v1/keys/{quote(id_, safe='')}")

    def rotate(self, id_: str, wanted: RotationRequest) -> NewKeyBody:
        return self._asked(NewKeyBody, "POST", f"/v1/keys/{quote(id_, safe='')}/rotate", wanted)

    def _asked(self, kind: type[Kind], method: str, path: str, body: Any = None) -> Kind:
        return asked(self._ask, kind, method, path, body)


def asked(
    ask: Callable[..., Any], kind: type[Kind], method: str, path: str, body: Any = None
) -> Kind:
    """What a service replies, as a document of a kind.

    Raises:
        RefusedByService: If it says no.
        CorruptData: If the reply is none of a service.
    """
    content = None if body is None else msgspec.json.encode(body)
    headers = {} if body is None else {"content-type": "application/json"}
    reply = ask(method, path, content=content, headers=headers)
    if reply.status_code >= 300:
        raise RefusedByService(f"the service refused ({reply.status_code}): {_told(reply)}")
    try:
        return msgspec.json.decode(reply.content, type=kind)
    except msgspec.DecodeError:
        raise CorruptData("the reply must be that of a Sfumato service; it is not") from None


def _told(reply: Any) -> str:
    try:
        told = msgspec.json.decode(reply.content, type=dict[str, Any])
    except msgspec.DecodeError:
        return "it is perhaps no Sfumato service"
    return str(told.get("detail", "it does not say why"))[:_MOST_LETTERS]


@contextmanager
def key_place(
    home: str | None, url: str | None, ca: str | None, *, make: bool
) -> Iterator[KeyPlace]:
    """The keys of a home, or of a service.

    Args:
        home: A folder or `postgresql://...`.
        url: Of a service, which is asked with the key of an administrator.
        ca: File of the authority that signed the certificate of the service.
        make: Whether a home that is not there is begun.
    """
    if (home is None) == (url is None):
        raise InvalidParameter("HOME", home, "be given, or else --url")
    if home is not None:
        with idle_home(home, make=make) as opened:
            yield _HomePlace(AccessControl(opened.registry))
    else:
        assert url is not None
        with _connected(url, ca) as place:
            yield place


def idle_home(home: str, *, make: bool) -> Home:
    """A home that no service has open.

    Args:
        home: A folder or `postgresql://...`.
        make: Whether one that is not there is begun.
    """
    from sfumato.store.home import is_postgres, open_home

    if not make and not is_postgres(home) and not os.path.isfile(f"{home}/registry.db"):
        raise InvalidParameter("HOME", home, "be the home of a service")
    try:
        return open_home(home)
    except FileInUse:
        rule = f"not be served meanwhile; ask the service: --url, with {KEY_VARIABLE}"
        raise InvalidParameter("HOME", home, rule) from None


@contextmanager
def _connected(url: str, ca: str | None) -> Iterator[KeyPlace]:
    with asking(url, ca) as ask:
        yield _ServicePlace(ask)


@contextmanager
def asking(url: str, ca: str | None) -> Iterator[Callable[..., Any]]:
    """Asks a service with the access key of the environment.

    Args:
        url: Of the service.
        ca: File of the authority that signed its certificate.
    """
    from sfumato.service.hardening import environment_secret

    try:
        import httpx
    except ImportError:
        rule = 'have httpx to be asked: pip install "sfumato[client]"'
        raise InvalidParameter("--url", url, rule) from None
    refuse_open_way(url)
    key = environment_secret(KEY_VARIABLE)
    if not key:
        raise InvalidParameter(KEY_VARIABLE, "nothing", "hold the access key of an administrator")
    trusted = ssl.create_default_context(cafile=ca)
    with httpx.Client(
        base_url=url,
        headers={"authorization": f"Bearer {key.strip()}"},
        timeout=_PATIENCE,
        verify=trusted,
    ) as client:
        try:
            yield client.request
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            kind = type(problem).__name__
            raise RefusedByService(f"{url}: the service must answer; it did not ({kind})") from None


def refuse_open_way(url: str) -> None:
    """Refuse to send a key where others on the way could read it.

    Examples:
        >>> refuse_open_way("http://127.0.0.1:8477")
        >>> refuse_open_way("http://gateway.example")
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: --url must begin with https:// ...
    """
    try:
        parts = urlsplit(url)
        scheme, host = parts.scheme, parts.hostname or ""
    except ValueError:
        scheme, host = "", ""
    if scheme == "https" and host:
        return
    if scheme != "http" or not _of_this_machine(host):
        rule = "begin with https:// (or http:// on this machine): a key is sent there"
        raise InvalidParameter("--url", url, rule)


def _of_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
