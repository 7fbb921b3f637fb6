"""The bridge: true values from one side of a broker, private ones to the other.

What is waiting is answered in one turn of the store, published, and acknowledged when the broker
has confirmed that. So a crash at any point leaves messages unacknowledged; they come again, and
their stored answers are published again, the same. Each event has exactly one answer, and whoever
listens may see it more than once.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, assert_never

import msgspec

from sfumato.bridges.bad_messages import BadMessage, message_digest
from sfumato.bridges.bridge_metrics import BridgeMetrics
from sfumato.bridges.broker import Broker
from sfumato.bridges.connection import OFFLINE, ONLINE, Connection, ConnectionLost, backoff
from sfumato.bridges.payloads import EventReader, Message
from sfumato.bridges.topics import OutTopics
from sfumato.core.errors import SfumatoError
from sfumato.store.live import Answered, Asked, LiveRun, Reason, Refused, Reply, Waiting
from sfumato.store.live_intake import NO_CHANNEL
from sfumato.store.protocol import Answer

_LOOK = 0.5
"""Seconds after which an idle bridge looks whether it is to end."""
_DRAIN = 15.0
_STEADY = 30.0
"""A connection that lived so long, or answered something, was no failed attempt."""


class EventLog(Protocol):
    """Takes what happened: names, counts and reasons, never a value."""

    def event(
        self,
        name: str,
        *,
        level: int = logging.INFO,
        stream: str | None = None,
        failure: BaseException | None = None,
        **fields: Any,
    ) -> None:
        """Write an event."""
        ...


@dataclass(frozen=True, slots=True)
class Publication:
    """How answers leave.

    Attributes:
        topics: Where to.
        worded: An answer as a document.
        plain: The released value alone, with the id as a user property.
        retain: Whether the broker keeps the last answer of each stream.
        secret: Of the digests of dead letters.
    """

    topics: OutTopics
    worded: Callable[[Answer], Any]
    plain: bool = False
    retain: bool = False
    secret: bytes = b""

    def payload(self, answer: Answer) -> bytes:
        """What is published for an answer; the same for the same answer."""
        if not self.plain:
            return msgspec.json.encode(self.worded(answer))
        return b"" if answer.released is None else str(answer.released).encode()

    def refusal(self, message: Message, event: Asked, refused: Refused) -> bytes:
        """What is published for an event without an answer."""
        return msgspec.json.encode(
            {
                "topic": message.topic,
                "stream": event.stream,
                "event": event.id,
                "reason": refused.reason.value,
                "detail": refused.detail,
            }
        )

    def dead_letter(self, message: Message, problem: BadMessage) -> bytes:
        """What is published for a message that could not be read."""
        if message.left_out is not None:
            _, digest = message.left_out
        else:
            digest = message_digest(self.secret, message.topic, message.payload)
        return msgspec.json.encode(
            {
                "topic": message.topic,
                "field": problem.field,
                "rule": problem.rule,
                "digest": digest,
            }
        )


class MqttBridge:
    """A bridge in front of a broker; `run` in one thread, `stop` from any, or a signal handler.

    Args:
        broker: Where, and as whom.
        reader: How messages become events.
        run: Answers them.
        publication: How answers leave.
        metrics: Counts.
        log: Takes what happened.
        window: Messages that may be unacknowledged; also the largest group.
    """

    def __init__(
        self,
        broker: Broker,
        reader: EventReader,
        run: LiveRun,
        publication: Publication,
        metrics: BridgeMetrics,
        log: EventLog,
        window: int = 1_000,
    ) -> None:
        self._broker, self._reader, self._run = broker, reader, run
        self._publication, self._metrics, self._log = publication, metrics, log
        self._window = window
        # No event of `threading`: its lock is not for signal handlers, a simple queue is.
        self._ending, self._alarm = False, queue.SimpleQueue[None]()
        self._connection: Connection | None = None

    def stop(self) -> None:
        """End in order: what was taken is answered and acknowledged; the session stays."""
        self._ending = True
        self._alarm.put(None)
        if (connection := self._connection) is not None:
            connection.wake()

    def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Answer messages until `stop`; a broker that goes away is waited for.

        Args:
            ready: Called once, when messages are taken.

        Raises:
            ConnectionLost: If the broker refuses us at the first attempt, or lets another take our
                session: asking again would not help.
        """
        attempt, first = 0, True
        while not self._ending:
            begun = time.monotonic()
            fruitful = False
            try:
                with_broker = self._connected()
                if first:
                    ready()
                    first = False
                fruitful = self._served(with_broker)
            except ConnectionLost as problem:
                self._metrics.connected.set(0)
                self._metrics.connection("failed")
                self._log.event("broker", level=logging.WARNING, status="away", reason=problem.why)
                taken_over = problem.hopeless and self._connection is not None
                if problem.hopeless and (first or taken_over):
                    raise
            if self._ending:
                return
            steady = fruitful or time.monotonic() - begun > _STEADY
            attempt = 1 if steady else attempt + 1
            self._pause(attempt)

    def _pause(self, attempt: int) -> bool:
        """Wait before the next attempt; whether the bridge is to end."""
        with contextlib.suppress(queue.Empty):
            self._alarm.get(timeout=backoff(attempt, secrets.SystemRandom().random()))
        return self._ending

    def _connected(self) -> Connection:
        self._connection = None
        topics = self._publication.topics
        subscription = self._reader.template.subscription
        admitted = partial(self._reader.admitted, secret=self._publication.secret)
        connection = Connection(self._broker, subscription, topics.status, self._window, admitted)
        self._connection = connection
        self._metrics.connection("opened")
        self._metrics.connected.set(1)
        state = "resumed" if connection.resumed else "new session"
        self._log.event("broker", status=state, address=self._broker.url)
        return connection

    def _served(self, connection: Connection) -> bool:
        """Answer what comes until the connection or the bridge ends; whether anything was."""
        status = self._publication.topics.status
        try:
            connection.publish(status, ONLINE, retain=True)
            while not self._ending:
                self._answer(connection, connection.take(self._window, _LOOK))
                if connection.lost is not None:
                    raise connection.lost
            connection.hold()
            while group := connection.take(self._window, 0):
                self._answer(connection, group)
            connection.settle(_DRAIN)
            connection.publish(status, OFFLINE, retain=True)
            connection.settle(_DRAIN)
        except ConnectionLost as problem:
            if problem.hopeless or connection.acknowledged == 0:
                raise
            self._metrics.connection("lost")
            self._log.event("broker", level=logging.WARNING, status="lost", reason=problem.why)
        finally:
            self._metrics.connected.set(0)
            connection.close()
        return connection.acknowledged > 0

    # One group ----------------------------------------------------------------------------------

    def _answer(self, connection: Connection, group: Sequence[Message]) -> None:
        """Answer, publish, and let be acknowledged; what could not be stored is tried again."""
        asked = self._readable(connection, group)
        attempt = 0
        while asked:
            asked = self._answered(connection, asked)
            if asked:
                attempt += 1
                self._log.event("unstored", level=logging.ERROR, events=len(asked), number=attempt)
                if self._pause(attempt):
                    return  # not acknowledged: the broker keeps them
                if connection.lost is not None:
                    raise connection.lost
        self._metrics.unacknowledged.set(connection.unacknowledged)
        self._metrics.dropped.set(connection.dropped)

    def _readable(
        self, connection: Connection, group: Sequence[Message]
    ) -> list[tuple[Message, Asked]]:
        """The events of messages; those that cannot be read are published as dead letters."""
        asked, dead, last = list[tuple[Message, Asked]](), 0, ""
        for message in group:
            if self._publication.topics.own(message.topic):
                # A session may hold subscriptions that others made in our name: a dead letter for
                # a dead letter would never end.
                self._metrics.message("own")
                connection.acknowledge(message)
                continue
            try:
                asked.append((message, self._reader.event(message)))
            except BadMessage as problem:
                dead, last = dead + 1, str(problem)
                self._metrics.message("dead")
                letter = self._publication.dead_letter(message, problem)
                connection.publish(self._publication.topics.dead, letter, message)
        if dead:  # one line a group, however many there are
            self._log.event("dead letters", level=logging.WARNING, count=dead, reason=last)
        return asked

    def _answered(
        self, connection: Connection, asked: list[tuple[Message, Asked]]
    ) -> list[tuple[Message, Asked]]:
        """Publish the replies to events; those that were not stored are left."""
        begun = time.perf_counter()
        replies = self._run.answer([event for _, event in asked])
        self._metrics.group(len(asked), time.perf_counter() - begun)
        left = []
        for (message, event), reply in zip(asked, replies, strict=True):
            # No channel is none at the next attempt either; a store that is away comes back.
            if _unstored(reply) and reply != NO_CHANNEL:
                left.append((message, event))
            else:
                self._leave(connection, message, event, reply)
        return left

    def _leave(self, connection: Connection, message: Message, event: Asked, reply: Reply) -> None:
        ways = self._publication
        match reply:
            case Answered():
                (answer,) = reply.answers
                self._metrics.message("repeated" if reply.repeated else "answered")
                connection.publish(
                    ways.topics.answer(answer.stream),
                    ways.payload(answer),
                    message,
                    retain=ways.retain,
                    event=answer.id if ways.plain else None,
                )
            case Refused():
                self._metrics.message(f"refused_{reply.reason.value}")
                refusal = ways.refusal(message, event, reply)
                connection.publish(ways.topics.refused, refusal, message)
            case Waiting():
                raise SfumatoError("a bridge answers each message by itself, never in batches")
            case _:
                assert_never(reply)


def _unstored(reply: Reply) -> bool:
    return isinstance(reply, Refused) and reply.reason is Reason.UNSTORED
