"""What the routes need, and of whom: seams between the parts of the service."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sfumato.service.metrics import Metrics
from sfumato.service.problems import busy
from sfumato.service.releases import Releases
from sfumato.service.settings import Limits
from sfumato.service.threads import ReadingRoom, SharedLooks


class Visitor(Protocol):
    """Whoever showed a valid access key."""

    @property
    def id(self) -> str:
        """The id of the key, for logs and the registry."""
        ...

    def require(self, action: str, stream: str | None = None) -> None:
        """Refuse what the key does not allow.

        Raises:
            HttpProblem: 403, whether or not there is such a stream.
        """
        ...

    def outside(self, action: str, streams: Iterable[str]) -> set[str]:
        """Those of some streams on which the key does not allow an action; others would be many."""
        ...

    def require_everywhere(self, action: str) -> None:
        """Refuse what is about all streams to whoever may not touch each of them.

        Raises:
            HttpProblem: 403.
        """
        ...

    def may(self, action: str) -> bool:
        """Whether the key allows an action, on whatever streams."""
        ...

    def may_everywhere(self, action: str) -> bool:
        """Whether it does on all streams that are, or will be."""
        ...

    @property
    def streams(self) -> Sequence[str]:
        """The patterns of the streams in its scope; a listing shows no others."""
        ...

    @property
    def releases(self) -> Sequence[str] | None:
        """Names of the releases that the key may know of; None for all."""
        ...

    def require_unlimited(self, action: str) -> None:
        """Refuse what is about all releases to whoever may know of some.

        Raises:
            HttpProblem: 403, whichever releases there are.
        """
        ...


class Gate(Protocol):
    """Lets in who has an access key, at the rate that the key allows."""

    def admit(self, header: str | None, peer: str | None) -> Visitor:
        """Who asks, by the header `Authorization`; a request is counted.

        Raises:
            HttpProblem: 401 without a valid key, 429 if it asks too often.
        """
        ...

    def admit_key(self, key: str, peer: str | None) -> Visitor:
        """The same by the text of a key, as the first message of a socket has it."""
        ...

    def message(self, visitor: Visitor, events: int) -> Visitor:
        """The visitor of a socket as he is now; a message of so many events is counted.

        Raises:
            HttpProblem: 401 if the key was revoked or has expired meanwhile, 429 if it asks too
                often.
        """
        ...

    def charge(self, visitor: Visitor, events: int) -> None:
        """Count events against the rate of a key.

        Raises:
            HttpProblem: 429 with the time to wait; none of them is counted then.
        """
        ...


class Log(Protocol):
    """Takes what happened, as fields of a fixed list; never a value."""

    def event(
        self,
        name: str,
        *,
        level: int = logging.INFO,
        failure: BaseException | None = None,
        **fields: Any,
    ) -> None:
        """Something happened; of a failure its kind and places are written, not what it says."""
        ...


class Flight:
    """Bytes of bodies that are read or waited for, of all askers together.

    Examples:
        >>> flight = Flight(100)
        >>> flight.board(60)
        >>> flight.land(60)
    """

    def __init__(self, most: int) -> None:
        self._most, self.now = most, 0

    def board(self, size: int) -> None:
        """Make room for a body before any of it is read; in the event loop only.

        Raises:
            HttpProblem: 429 if there is none.
        """
        if self.now + size > self._most:
            raise busy(1, "more is being read than the service may hold; ask later")
        self.now += size

    def land(self, size: int) -> None:
        """Its reply has left."""
        self.now -= size


@dataclass(frozen=True, slots=True)
class Application:
    """Everything that routes use; made once, at the start.

    Attributes:
        releases: The open releases.
        gate: Lets askers in.
        metrics: Counts.
        log: Takes what happened.
        limits: What askers may make the service hold.
        flight: Bodies that are being read.
        ready: What keeps the service from answering now; nothing if it is ready.
        reading: Where ledgers are read for those who look.
        looks: Where readiness and metrics are looked at.
    """

    releases: Releases
    gate: Gate
    metrics: Metrics
    log: Log
    limits: Limits
    flight: Flight
    ready: Callable[[], list[str]]
    reading: ReadingRoom = field(default_factory=ReadingRoom)
    looks: SharedLooks = field(default_factory=SharedLooks)
