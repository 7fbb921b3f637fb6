"""Events as bytes, and bytes as replies.

Fields that a newer service adds are ignored; one that is missing or of another type is an answer
that cannot be trusted, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from sfumato.client.client_errors import ServiceUnavailable
from sfumato.client.wire import LiveEvent, Problem, Reply
from sfumato.core.errors import InvalidParameter

Kind = TypeVar("Kind")


class _Replies(Struct, frozen=True):
    replies: tuple[Reply, ...]


class Numbered(Struct, frozen=True):
    """What the messages of a socket have besides a reply: the number of its event."""

    n: int = 0


def checked_events(events: Iterable[LiveEvent]) -> list[LiveEvent]:
    """Events that may be sent; a number that JSON lacks must not become a missing value.

    Raises:
        InvalidParameter: If a value has a number that is not finite; it is not quoted.
    """
    found = list(events)
    for event in found:
        if not event.id or not event.stream:
            raise InvalidParameter("event", "an empty text", "have an id and a stream")
        if not _finite(event.value):
            rule = "hold finite numbers (None lets a moment pass)"
            raise InvalidParameter("value", "another one, not quoted", rule)
    return found


def _finite(value: Any) -> bool:
    if isinstance(value, str | int | None):
        return True
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return _finite(_plain(value))


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; the value is not quoted."""
    item = getattr(value, "item", None)
    made = item() if callable(item) else value
    if made is value or not isinstance(made, str | int | float | bool):
        kind = type(value).__name__
        rule = "be text, a number, None, or a list or mapping of them"
        raise InvalidParameter("value", f"a {kind}", rule)
    return made


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def encoded_events(events: Sequence[LiveEvent]) -> bytes:
    """The body of a request for some events.

    Examples:
        >>> encoded_events([LiveEvent("u1", "home", id="e1")])
        b'{"events":[{"stream":"u1","value":"home","id":"e1"}]}'
    """
    return _ENCODER.encode({"events": events})


class _Sent(Struct, frozen=True, omit_defaults=True):
    """An event as a socket takes it."""

    n: int
    stream: str
    value: Any
    id: str
    time: str | None = None


def encoded_message(events: Sequence[LiveEvent], first: int) -> str:
    """A message of a socket for some events, numbered from the first on.

    Examples:
        >>> encoded_message([LiveEvent("u1", "home", id="e1")], 7)
        '[{"n":7,"stream":"u1","value":"home","id":"e1"}]'
    """
    numbered = [
        _Sent(first + place, event.stream, event.value, event.id, event.time)
        for place, event in enumerate(events)
    ]
    return _ENCODER.encode(numbered).decode()


def decoded(body: bytes | str, kind: type[Kind]) -> Kind:
    """A reply of the service, or that it is none; nothing of it is quoted.

    Raises:
        ServiceUnavailable: If it is not of the form that was agreed: a proxy, or another service.
    """
    made = _read(body, kind)
    if made is None:
        raise ServiceUnavailable("what came back is not a reply of this kind of service")
    return made


def replies_of(body: bytes, events: Sequence[LiveEvent]) -> tuple[Reply, ...]:
    """A reply for each event, in order."""
    replies = decoded(body, _Replies).replies
    if len(replies) != len(events):
        raise ServiceUnavailable("there must be as many replies as events")
    for event, reply in zip(events, replies, strict=True):
        check_pair(event, reply)
    return replies


def check_pair(event: LiveEvent, reply: Reply) -> None:
    """A reply that is about another event must not be taken for this one's."""
    if reply.answers and not any(answer.event == event.id for answer in reply.answers):
        raise ServiceUnavailable("a reply must be about the event that it stands for")


def problem_of(body: bytes, status: int) -> Problem:
    """The problem in a refusal, or a plain one of its status if a proxy sent it."""
    found = _read(body, Problem)
    if found is None or found.status != status:
        return Problem(title="refused without a reason that can be read", status=status)
    return found


def _read(body: bytes | str, kind: type[Kind]) -> Kind | None:
    """None if it is of another form; the error of the library would quote it."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
