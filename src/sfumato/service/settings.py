"""What a service is told at its start: where it listens, and what bounds it keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from sfumato.core.errors import InvalidParameter

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
_MIB = 1 << 20


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one asker, and all of them together, may make the service hold.

    Attributes:
        body_bytes: Of one request, or one message of a socket.
        header_bytes: Of the first line and the headers of a request.
        document_bytes: Of a model, a policy or rules that an administrator sends.
        request_events: Events of one request.
        queued_events: Events of one release that wait for their group.
        group_events: Events that are answered and committed together.
        flight_bytes: Bodies of all requests that are read or waiting.
        unanswered: Events of one socket without a reply; beyond, nothing is read from it.
        sockets: Open sockets.
        connections: Open connections; beyond, requests get 503.
        header_seconds: In which a request must have sent its headers,
        body_seconds: and in which its body.
        reply_seconds: After which an asker is told to ask again; its events are answered all the
            same.
        idle_seconds: After which a connection without a request is closed.
        drain_seconds: At the end, for what was taken.

    Examples:
        >>> Limits().request_events
        1000
    """

    body_bytes: Count = _MIB
    header_bytes: Count = 32 << 10
    document_bytes: Count = 32 * _MIB
    request_events: Count = 1_000
    queued_events: Count = 16_384
    group_events: Count = 4_096
    flight_bytes: Count = 64 * _MIB
    unanswered: Count = 4_096
    sockets: Count = 1_024
    connections: Count = 4_096
    header_seconds: Seconds = 10.0
    body_seconds: Seconds = 20.0
    reply_seconds: Seconds = 30.0
    idle_seconds: Seconds = 75.0
    drain_seconds: Seconds = 15.0

    def __post_init__(self) -> None:
        if self.request_events > self.queued_events:
            rule = f"be at most queued_events, {self.queued_events:,}: a request waits whole"
            raise InvalidParameter("request_events", self.request_events, rule)
        for name in ("body_bytes", "document_bytes"):
            if getattr(self, name) > self.flight_bytes:
                rule = f"be at most flight_bytes, {self.flight_bytes:,}"
                raise InvalidParameter(name, getattr(self, name), rule)


class Tls(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificate and key of the service.

    Attributes:
        certificate: File with the chain of certificates.
        key: File with the private key.
        password_file: File with the password of the key, if it has one.
        client_ca: Askers must show a certificate that one of these authorities signed.
    """

    certificate: str
    key: str
    password_file: str | None = None
    client_ca: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything but the rules of releases; what is not given is safe.

    Attributes:
        host: Address to listen on; this machine alone if not given.
        port: Port to listen on; 0 for any that is free.
        uds: A Unix socket to listen on instead.
        metrics_port: A port of this machine alone where `/metrics` needs no access key.
        tls: Certificate and key; plain HTTP if not given.
        limits: What the service may be made to hold.

    Examples:
        >>> Settings().host
        '127.0.0.1'
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8_477
    uds: str | None = None
    metrics_port: Annotated[int, Meta(ge=0, le=65_535)] | None = None
    tls: Tls | None = None
    limits: Limits = Limits()


def read_settings(path: str | Path | None, given: dict[str, Any]) -> Settings:
    """Settings from a TOML file, with what was typed in their place.

    Args:
        path: The file; None for what stands in no file.
        given: Fields as they were typed; a field within another is a mapping in it.

    Raises:
        InvalidParameter: If the file is no TOML, or a field is unknown or out of its range.

    Examples:
        >>> read_settings(None, {"port": 9000, "limits": {"body_bytes": 4096}}).limits.body_bytes
        4096
    """
    told: dict[str, Any] = {}
    if path is not None:
        try:
            told = msgspec.toml.decode(Path(path).read_bytes())
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise InvalidParameter("--config", str(path), "be a file of TOML") from None
        except OSError as problem:
            rule = f"be a file that can be read ({problem.strerror})"
            raise InvalidParameter("--config", str(path), rule) from None
    try:
        return msgspec.convert(merged(told, given), Settings)
    except msgspec.ValidationError as problem:
        raise InvalidParameter("settings", str(path or "typed"), f"fit: {problem}") from None


def merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Both mappings in one, within each other too; the second wins.

    Examples:
        >>> merged({"tls": {"key": "a"}, "port": 1}, {"tls": {"certificate": "b"}})
        {'tls': {'key': 'a', 'certificate': 'b'}, 'port': 1}
    """
    whole = dict(first)
    for name, value in second.items():
        before = whole.get(name)
        both = isinstance(before, dict) and isinstance(value, dict)
        whole[name] = merged(before, value) if both else value  # type: ignore[arg-type]
    return whole
