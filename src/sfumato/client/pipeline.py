"""Events on their way and the replies to them, in order: the part of a session without a network.

A connection numbers its events from 1. What has no reply when it ends is sent again on the next
one, in the same order, under the same ids.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from sfumato.client.client_errors import ServiceUnavailable
from sfumato.client.messages import Numbered, check_pair, decoded, encoded_message
from sfumato.client.wire import LiveEvent, Reply

Heard = Callable[[Reply], None]
_MESSAGE_EVENTS = 256
"""Events of one message: larger ones gain nothing, and wait for their last."""


class Pipeline:
    """Events that have no reply yet.

    Examples:
        >>> heard = []
        >>> pipeline = Pipeline()
        >>> pipeline.add(LiveEvent("u1", "home", id="e1"), heard.append)
        >>> pipeline.message()
        '[{"n":1,"stream":"u1","value":"home","id":"e1"}]'
        >>> pipeline.reconnected()
        >>> pipeline.message()
        '[{"n":1,"stream":"u1","value":"home","id":"e1"}]'
        >>> pipeline.take('{"n": 1, "status": "waiting", "missing": 2}')
        1
        >>> heard[0].missing, len(pipeline)
        (2, 0)
    """

    def __init__(self) -> None:
        self._queued: deque[tuple[LiveEvent, Heard]] = deque()
        self._sent: deque[tuple[LiveEvent, Heard]] = deque()
        self._taken = 0

    def __len__(self) -> int:
        return len(self._queued) + len(self._sent)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to send."""
        return not self._queued

    def add(self, event: LiveEvent, heard: Heard) -> None:
        """Put an event behind the others."""
        self._queued.append((event, heard))

    def message(self) -> str:
        """The next events, as they are sent."""
        first = self._taken + len(self._sent) + 1
        count = min(len(self._queued), _MESSAGE_EVENTS)
        part = [self._queued.popleft() for _ in range(count)]
        self._sent.extend(part)
        return encoded_message([event for event, _ in part], first)

    def take(self, message: str | bytes) -> int:
        """Hand the replies of a message to those that wait for them; returns how many there were.

        Raises:
            NotStored: If the service could not store an answer: to be asked again, in order.
            ServiceUnavailable: If a reply is not the next one, or about another event.
        """
        text = message if isinstance(message, str) else message.decode("utf-8", "replace")
        if not text.lstrip().startswith("["):
            text = f"[{text}]"
        numbers, replies = decoded(text, list[Numbered]), decoded(text, list[Reply])
        for numbered, reply in zip(numbers, replies, strict=True):
            self._take(numbered.n, reply)
        return len(replies)

    def _take(self, number: int, reply: Reply) -> None:
        if not self._sent or number != self._taken + 1:
            raise ServiceUnavailable("replies must come in the order of their events")
        event, heard = self._sent[0]
        check_pair(event, reply)
        if reply.problem is not None and reply.problem.passing:
            raise NotStored(reply.problem.title or reply.problem.slug)
        self._sent.popleft()
        self._taken += 1
        heard(reply)

    def reconnected(self) -> None:
        """A new connection: what has no reply is sent again, in the same order."""
        self._queued.extendleft(reversed(self._sent))
        self._sent.clear()
        self._taken = 0


class NotStored(Exception):
    """The service has no room, or could not store: the connection begins anew after a wait."""
