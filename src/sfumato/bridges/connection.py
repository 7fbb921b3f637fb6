"""One connection to a broker, in which a message is acknowledged when its answer was published.

paho answers the broker in a thread of its own. A message that came stays unacknowledged until the
broker has confirmed what was published for it. Nothing of a connection outlives it: after a loss
the broker delivers again whatever was not acknowledged, on the next one, as after a crash.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from sfumato.bridges.broker import Broker
from sfumato.bridges.payloads import Message
from sfumato.core.errors import SfumatoError

OFFLINE, ONLINE = b"offline", b"online"
_LARGEST_PACKET = 16 << 20
"""Beyond, the broker keeps a message to itself: what is larger would have to be held to be read."""
_PATIENCE = 15.0
_CONFIRMATION = 60.0
"""Seconds in which a broker confirms something of what it was sent, or is taken for dead."""
_HOPELESS = frozenset((0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C))
"""Refusals that asking again does not change: version, client id, password, rights, ban, method."""
_TAKEN_OVER = 0x8E


class ConnectionLost(SfumatoError):
    """The broker cannot be reached, went away, or did not take a message.

    Attributes:
        why: In words, of the protocol.
        hopeless: Whether asking again will not help.
    """

    def __init__(self, why: str, *, hopeless: bool = False) -> None:
        self.why, self.hopeless = why, hopeless
        super().__init__(f"the broker must be there and let us in; it said: {why}")


class _ClosedIfRefused(ssl.SSLSocket):
    """A socket that closes where its handshake fails: paho forgets it then, and leaves it open."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except BaseException:
            self.close()
            raise


class Connection:
    """A connection, subscribed.

    Args:
        broker: Where, and as whom.
        subscription: The filter of what comes.
        status: The topic that is told when we are gone.
        window: Messages that may be unacknowledged.
        admitted: What is kept of a message while it waits: a window of payloads of any size would
            be as large as the broker lets them be.

    Attributes:
        resumed: Whether the broker remembered the session.
        acknowledged: How many messages were.
        dropped: Messages of QoS 0 that found no room.

    Raises:
        ConnectionLost: If there is no such connection.
    """

    def __init__(
        self,
        broker: Broker,
        subscription: str,
        status: str,
        window: int,
        admitted: Callable[[Message], Message] = lambda message: message,
    ) -> None:
        self._inbox: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._changed = threading.Condition()
        self._unacknowledged: OrderedDict[int, bool] = OrderedDict()
        self._outgoing: dict[int, Message | None] = {}
        self._confirmed: set[int] = set()
        self._room, self._window, self._admitted = window, window, admitted
        self._holding = self._ready = False
        self._lost: ConnectionLost | None = None
        self.resumed, self.acknowledged, self.dropped = False, 0, 0
        self._client = self._made(broker, status)
        self._client.user_data_set(subscription)
        try:
            self._begin(broker)
        except BaseException:
            self.close()
            raise

    def _made(self, broker: Broker, status: str) -> Client:
        client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=broker.client_id,
            protocol=MQTTProtocolVersion.MQTTv5,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.connect_timeout = _PATIENCE
        client.max_inflight_messages = 0  # what may be under way is bounded here
        client.will_set(status, OFFLINE, qos=1, retain=True)
        if broker.username is not None:
            client.username_pw_set(broker.username, broker.password)
        if broker.tls is not None:
            broker.tls.sslsocket_class = _ClosedIfRefused
            client.tls_set_context(broker.tls)
        client.on_socket_open = _at_once
        client.on_connect = self._surely(self._on_connect)
        client.on_subscribe = self._surely(self._on_subscribe)
        client.on_message = self._surely(self._on_message)
        client.on_publish = self._surely(self._on_publish)
        client.on_disconnect = self._surely(self._on_disconnect)
        return client

    def _surely(self, told: Callable[..., None]) -> Callable[..., None]:
        """Lose the connection by a defect, which would end the thread of paho and tell nobody."""

        def call(*given: Any) -> None:
            try:
                told(*given)
            except Exception as problem:
                self._lose(f"a defect ({type(problem).__name__})")

        return call

    def _begin(self, broker: Broker) -> None:
        asked = Properties(PacketTypes.CONNECT)
        asked.SessionExpiryInterval = broker.session_seconds
        asked.ReceiveMaximum = self._window
        asked.MaximumPacketSize = _LARGEST_PACKET
        try:
            self._client.connect(
                broker.host, broker.port, broker.keepalive, clean_start=False, properties=asked
            )
        except ssl.SSLCertVerificationError as problem:
            why = f"its certificate is not trusted ({problem.verify_message.rstrip('.')})"
            raise ConnectionLost(why, hopeless=True) from None
        except (OSError, ValueError) as problem:
            raise ConnectionLost(type(problem).__name__) from None
        self._client.loop_start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or self._lost, _PATIENCE)
            if not self._ready and self._lost is None:
                self._lost = ConnectionLost("no answer")
            self._check()

    # What the worker does -----------------------------------------------------------------------

    @property
    def lost(self) -> ConnectionLost | None:
        """Why the connection ended; None if it is there."""
        return self._lost

    @property
    def unacknowledged(self) -> int:
        """Messages that wait for their answers to be published."""
        return len(self._unacknowledged)

    def take(self, most: int, seconds: float) -> list[Message]:
        """What is waiting, in the order in which it came; some seconds later nothing."""
        found: list[Message] = []
        try:
            message = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                if message is not None:  # None only wakes
                    found.append(message)
                if len(found) >= most:
                    return found
                message = self._inbox.get_nowait()
        except queue.Empty:
            return found

    def wake(self) -> None:
        """End the waiting of `take`; also from a signal handler."""
        self._inbox.put(None)

    def publish(
        self,
        topic: str,
        payload: bytes,
        cause: Message | None = None,
        *,
        retain: bool = False,
        event: str | None = None,
    ) -> None:
        """Publish, and acknowledge the cause when the broker has confirmed it.

        Args:
            topic: Where.
            payload: What.
            cause: The message that it is for.
            retain: Whether the broker keeps it for those who come later.
            event: The id of the event, as a user property.

        Raises:
            ConnectionLost: If the connection is; nothing was acknowledged.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._free() or self._lost, _CONFIRMATION)
            if not self._free():
                self._lose("nothing was confirmed")
            self._check()
        told = None
        if event is not None:
            told = Properties(PacketTypes.PUBLISH)
            told.UserProperty = ("event", event)
        # Without the lock: paho holds one of its own when it calls us with a confirmation.
        sent = self._client.publish(topic, payload, qos=1, retain=retain, properties=told)
        if sent.rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            self._check()  # what the broker said tells more than that it is gone
            raise ConnectionLost(sent.rc.name)
        with self._changed:
            if sent.mid in self._confirmed:  # before we came to write it down
                self._confirmed.remove(sent.mid)
                self._done(cause)
            else:
                self._outgoing[sent.mid] = cause

    def acknowledge(self, message: Message) -> None:
        """Acknowledge a message for which nothing is published."""
        with self._changed:
            self._done(message)

    def settle(self, seconds: float) -> bool:
        """Wait until everything published is confirmed; whether it was."""
        with self._changed:
            self._changed.wait_for(lambda: not self._outgoing or self._lost, seconds)
            return not self._outgoing

    def hold(self) -> None:
        """Take nothing more: what comes now stays with the broker."""
        self._holding = True

    def close(self) -> None:
        """Take leave; the broker keeps the session."""
        self._holding = True
        if self._lost is None:
            self._client.disconnect()
        self._client.loop_stop()

    def _free(self) -> bool:
        return len(self._outgoing) < self._room

    def _check(self) -> None:
        if self._lost is not None:
            raise self._lost

    # What the thread of paho tells --------------------------------------------------------------

    def _on_connect(self, client: Client, told: str, flags: Any, code: Any, more: Any) -> None:
        if code.is_failure:
            self._lose(str(code), hopeless=code.value in _HOPELESS)
            return
        self.resumed = flags.session_present
        # A broker closes the connection of whoever sends more than it said.
        self._room = min(self._window, getattr(more, "ReceiveMaximum", self._window))
        if getattr(more, "MaximumQoS", 2) < 1:
            self._lose("the broker has no QoS 1", hopeless=True)
            return
        wanted = SubscribeOptions(
            qos=1, noLocal=True, retainHandling=SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        )
        client.subscribe(told, options=wanted)

    def _on_subscribe(self, client: Client, told: str, mid: int, codes: Any, more: Any) -> None:
        if any(code.value != 1 for code in codes):
            self._lose(f"subscription refused: {codes[0]}", hopeless=True)
            return
        with self._changed:
            self._ready = True
            self._changed.notify_all()

    def _on_message(self, client: Client, told: str, given: MQTTMessage) -> None:
        if self._holding:
            return  # not acknowledged: it comes again
        more: Any = given.properties
        message = Message(
            given.mid,
            given.qos,
            given.topic,
            bytes(given.payload),
            tuple(getattr(more, "UserProperty", ())),
            getattr(more, "CorrelationData", None),
        )
        if given.qos == 0:
            # Nothing slows down senders of QoS 0, who live with losses: those come from here.
            if self._inbox.qsize() >= 2 * self._window:
                self.dropped += 1
                return
        else:
            with self._changed:
                if given.mid in self._unacknowledged:
                    return  # it is being answered
                self._unacknowledged[given.mid] = False
        self._inbox.put(self._admitted(message))

    def _on_publish(self, client: Client, told: str, mid: int, code: Any, more: Any) -> None:
        if code.is_failure:
            self._lose(f"publication refused: {code}")
            return
        with self._changed:
            if mid in self._outgoing:
                self._done(self._outgoing.pop(mid))
            else:
                self._confirmed.add(mid)
            self._changed.notify_all()

    def _on_disconnect(self, client: Client, told: str, flags: Any, code: Any, more: Any) -> None:
        self._lose(str(code), hopeless=code.value == _TAKEN_OVER)

    def _lose(self, why: str, *, hopeless: bool = False) -> None:
        with self._changed:
            if self._lost is None:
                self._lost = ConnectionLost(why, hopeless=hopeless)
            self._changed.notify_all()
        self._inbox.put(None)

    def _done(self, cause: Message | None) -> None:
        """Acknowledge a message, in the order in which messages came, as the protocol wants."""
        if cause is None or cause.qos == 0:
            return
        # A connection that is lost acknowledges nothing: the number may be another's on the next.
        if self._lost is not None or cause.mid not in self._unacknowledged:
            return
        self._unacknowledged[cause.mid] = True
        while self._unacknowledged:
            mid, done = next(iter(self._unacknowledged.items()))
            if not done:
                return
            del self._unacknowledged[mid]
            self._client.ack(mid, 1)
            self.acknowledged += 1


def _at_once(client: Client, told: object, own: Any) -> None:
    # Small packets wait 40 ms for each other otherwise, as often as the broker waits for us.
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def backoff(attempt: int, luck: float, longest: float = 60.0) -> float:
    """Seconds to wait before the next attempt: doubling up to a cap, half of it by chance.

    Args:
        attempt: How many failed, from 1.
        luck: A number from 0 to 1, so that many bridges do not come back at one moment.
        longest: The cap.

    Examples:
        >>> [backoff(attempt, 1.0) for attempt in (1, 2, 3, 20)]
        [0.5, 1.0, 2.0, 60.0]
    """
    return min(longest, 0.25 * 2.0 ** min(attempt, 20)) * (0.5 + 0.5 * luck)
