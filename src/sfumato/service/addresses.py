"""Where the operations of the service are: found by the parts of an address, whatever their number.

Starlette tries one pattern after the other; an operation that is asked thousands of times a second
would pay for all that stand before it. Pages and sockets are left to Starlette.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.types import ASGIApp

from sfumato.core.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Address:
    """What answers at an address.

    Attributes:
        path: The address as it was declared, with names in braces; the log says this one.
        endpoint: Answers there.
    """

    path: str
    endpoint: ASGIApp


class Found(NamedTuple):
    """What an address leads to, and the names in it, still escaped."""

    route: Address
    names: dict[str, str]


@dataclass(slots=True)
class _Part:
    """One part of addresses: the fixed words that may stand there, or a name."""

    words: dict[str, _Part] = field(default_factory=dict)
    name: str | None = None
    named: _Part | None = None
    here: Address | None = None


class Addresses:
    """Addresses of which each leads to one place.

    Args:
        endpoints: What answers, by addresses with names in braces.

    Raises:
        InvalidParameter: If a fixed word and a name could stand in the same place: which of the two
            is meant would depend on their order.

    Examples:
        >>> async def app(scope, receive, send): ...
        >>> found = Addresses({"/v1/streams/{stream}/events": app}).find("/v1/streams/ann/events")
        >>> found.route.path, found.names
        ('/v1/streams/{stream}/events', {'stream': 'ann'})
    """

    def __init__(self, endpoints: Mapping[str, ASGIApp]) -> None:
        self.templates, self._root = list(endpoints), _Part()
        for path, endpoint in endpoints.items():
            part = self._root
            for word in path.split("/"):
                part = _next(part, word, path)
            part.here = Address(path, endpoint)

    def find(self, path: str) -> Found | None:
        """What an address leads to; None if there is nothing."""
        part, names = self._root, dict[str, str]()
        for word in path.split("/"):
            if (following := part.words.get(word)) is None:
                # A name is never empty: that is another address.
                if part.named is None or part.name is None or not word:
                    return None
                names[part.name] = word
                following = part.named
            part = following
        return None if part.here is None else Found(part.here, names)


def _next(part: _Part, word: str, path: str) -> _Part:
    if not word.startswith("{"):
        if part.named is not None:
            raise _ambiguous(path)
        return part.words.setdefault(word, _Part())
    name = word.strip("{}")
    if part.words or part.name not in (None, name):
        raise _ambiguous(path)
    part.name, part.named = name, part.named or _Part()
    return part.named


def _ambiguous(path: str) -> InvalidParameter:
    return InvalidParameter("address", path, "lead to one place, whatever names stand in it")
