"""The calls of a service, described once for both clients: what is asked, and what came back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.client.attempts import retry_after
from sfumato.client.client_errors import ServiceRefused, ServiceUnavailable
from sfumato.client.messages import decoded, encoded_events, problem_of, replies_of
from sfumato.client.wire import RETRIED, LiveEvent, Reply

PAGE = 500
"""Rows of one page of a list."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request; the same bytes at every attempt.

    Attributes:
        method: GET or POST.
        target: Path and query.
        body: JSON, if there is any; holds true values, and is in no repr.
    """

    method: str
    target: str
    body: bytes | None = None

    def __repr__(self) -> str:
        return f"Call({self.method} {self.target})"

    @property
    def request(self) -> dict[str, Any]:
        """The request, in the words of httpx."""
        head = {} if self.body is None else {"Content-Type": "application/json"}
        return {"method": self.method, "url": self.target, "content": self.body, "headers": head}


@dataclass(frozen=True, slots=True)
class Came:
    """What came back for one attempt, or why nothing did."""

    status: int = 0
    body: bytes = b""
    retry_after: str | None = None
    lost: str | None = None

    @property
    def passing(self) -> bool:
        """Whether asking again may help."""
        return self.lost is not None or self.status in RETRIED

    @property
    def asked(self) -> float:
        """Seconds that the service asks a client to wait."""
        return retry_after(self.retry_after)

    @property
    def why(self) -> str:
        """What became of the attempt, for a message."""
        return self.lost or f"status {self.status}"

    def checked(self) -> bytes:
        """The body of an answer, or the refusal that it is."""
        if 200 <= self.status < 300:
            return self.body
        if 300 <= self.status < 400:
            raise ServiceUnavailable("the way there leads elsewhere (a redirect), and is not taken")
        raise ServiceRefused(problem_of(self.body, self.status))


class Exchange:
    """Some events until each has a reply: those that were not stored are sent again.

    Args:
        events: Events of one request.

    Examples:
        >>> exchange = Exchange([LiveEvent("u1", "home", id="e1")])
        >>> exchange.body()
        b'{"events":[{"stream":"u1","value":"home","id":"e1"}]}'
        >>> exchange.take(b'{"replies":[{"status":"waiting","missing":1}]}')
        >>> exchange.done, exchange.replies()
        (True, [Reply(status='waiting', ..., missing=1, problem=None)])
    """

    def __init__(self, events: Sequence[LiveEvent]) -> None:
        self._events = events
        self._replies: list[Reply | None] = [None] * len(events)
        self._open = list(range(len(events)))

    @property
    def done(self) -> bool:
        """Whether every event has a reply that stays."""
        return not self._open

    def body(self) -> bytes:
        """What is to be sent now."""
        return encoded_events([self._events[place] for place in self._open])

    def take(self, body: bytes) -> None:
        """Take the replies to what was sent last."""
        sent = [self._events[place] for place in self._open]
        still = []
        for place, reply in zip(self._open, replies_of(body, sent), strict=True):
            self._replies[place] = reply
            if reply.problem is not None and reply.problem.passing:
                still.append(place)
        self._open = still

    def replies(self) -> list[Reply]:
        """A reply for each event, in order."""
        return [reply for reply in self._replies if reply is not None]


def single(reply: Reply) -> Reply:
    """The reply to an event that was sent alone; a refusal is raised."""
    if reply.problem is not None:
        raise ServiceRefused(reply.problem)
    return reply


def finished(body: bytes) -> Reply | None:
    """The reply to a batch that was finished; None if nothing waited."""
    return decoded(body, Reply) if body else None


def document(body: bytes) -> dict[str, Any]:
    """A readout, as JSON."""
    return decoded(body, dict[str, Any])


def rows_of(page: dict[str, Any], name: str) -> tuple[list[dict[str, Any]], Any]:
    """The rows of a page, and where the next one begins; None at the end."""
    rows = page.get(name)
    if not isinstance(rows, list):
        raise ServiceUnavailable("what came back is not a page of a list")
    return rows, page.get("next")
