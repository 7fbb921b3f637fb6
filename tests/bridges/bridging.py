"""A town whose devices publish to a real broker, its bridge, and somebody who hears everything."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from sfumato.bridges.bridge_metrics import BridgeMetrics
from sfumato.bridges.broker import Broker
from sfumato.bridges.ledger_sources import source_label
from sfumato.bridges.mqtt_bridge import MqttBridge, Publication
from sfumato.bridges.payloads import EventReader, Form, Source
from sfumato.bridges.topics import OutTopics, TopicTemplate
from sfumato.core.randomness import secure
from sfumato.service.event_log import EventLog
from sfumato.service.wording import stream_wording
from sfumato.store.live import LiveRun
from sfumato.store.protocol import Answer, Store
from sfumato.store.sqlite import SqliteStore
from sfumato.stream import release_document
from sfumato.stream.live_release import open_release
from sfumato.stream.release_spec import ReleaseSpec
from tests.servers import PrivateMosquitto
from tests.service.example_releases import PLACES, sticky

PATIENCE = 120.0
"""Seconds after which something that must come has not; a busy machine is slow."""
TEMPLATE = TopicTemplate.of("raw/#")
READER = EventReader(TEMPLATE, Form.JSON, Source.FIELD, ("cell",), "n", largest=2_000)
TIMED = EventReader(TEMPLATE, Form.JSON, Source.FIELD, ("cell",), "n", "at")
MODEL = sticky(PLACES, 0.6)


def until(ready: Callable[[], object], what: str) -> None:
    """Wait for something that must come."""
    end = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < end, f"it never came: {what}"
        time.sleep(0.01)


def opened(path: Path, identity: str, **rules: Any) -> tuple[LiveRun, Store]:
    """A release of places, in a ledger of its own."""
    spec = ReleaseSpec(**{"epsilon": 0.5, "method": "step-wise", **rules})
    return open_release(
        release_document.document(spec, MODEL),
        MODEL,
        None,
        lambda plan, job, text: SqliteStore(path, plan, job=job, rules=text),
        secure(),
        source_label(identity),
    )


class Person:
    """A client of the broker: publishes with QoS 1, hears all topics, comes back by itself."""

    def __init__(self, port: int, name: str = "person", hears: str = "#", **more: Any) -> None:
        self.heard: list[tuple[str, bytes]] = []
        self.retained: dict[str, bytes] = {}
        self.properties: list[Any] = []
        self._said: list[paho.MQTTMessageInfo] = []
        version = MQTTProtocolVersion.MQTTv5
        self._client = paho.Client(CallbackAPIVersion.VERSION2, name, protocol=version)
        self._client.reconnect_delay_set(1, 1)
        self._client.max_inflight_messages = 0
        self._subscribed = threading.Event()
        self._hears = hears
        self._client.on_connect = self._connected
        self._client.on_subscribe = lambda *_: self._subscribed.set()
        self._client.on_message = self._hear
        if "username" in more:
            self._client.username_pw_set(more["username"], more["password"])
        asked = Properties(PacketTypes.CONNECT)
        asked.SessionExpiryInterval = 3_600
        self._client.connect("127.0.0.1", port, 60, clean_start=False, properties=asked)
        self._client.loop_start()
        assert self._subscribed.wait(PATIENCE)

    def _connected(self, *_: Any) -> None:
        self._client.subscribe(self._hears, qos=1)

    def _hear(self, client: Any, told: Any, message: Any) -> None:
        if message.retain:
            self.retained[message.topic] = message.payload
        self.properties.append((message.topic, message.properties))
        self.heard.append((message.topic, message.payload))

    def say(
        self,
        topic: str,
        payload: bytes | str,
        qos: int = 1,
        *,
        retain: bool = False,
        **told: Any,
    ) -> None:
        properties = None
        if told:
            properties = Properties(PacketTypes.PUBLISH)
            for name, value in told.items():
                setattr(properties, name, value)
        said = self._client.publish(topic, payload, qos, retain, properties)
        self._said.append(said)

    def event(self, stream: str, number: int, cell: str, **more: Any) -> None:
        self.say(f"raw/{stream}", json.dumps({"n": number, "cell": cell, **more}))

    def confirmed(self) -> bool:
        """Whether the broker has all that was said."""
        return all(one.is_published() for one in self._said)

    def answers(self) -> dict[str, set[bytes]]:
        """What was heard as an answer, by event."""
        found = defaultdict(set)
        for topic, payload in self.heard[:]:
            if topic.startswith("private/") and "$" not in topic:
                found[json.loads(payload)["event"]].add(payload)
        return found

    def notices(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(told) for topic, told in self.heard[:] if topic == f"bridge/{kind}"]

    def close(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


@contextmanager
def person(server: PrivateMosquitto, **more: Any) -> Iterator[Person]:
    found = Person(server.port, **more)
    try:
        yield found
    finally:
        found.close()


@dataclass
class Town:
    """A bridge that runs in a thread."""

    bridge: MqttBridge
    run: LiveRun
    store: Store
    metrics: BridgeMetrics
    lines: list[bytes]
    thread: threading.Thread
    ready: threading.Event
    failures: list[BaseException] = field(default_factory=list)

    def stop(self) -> None:
        self.bridge.stop()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    @property
    def unacknowledged(self) -> int:
        """Messages that came and wait for their answers."""
        connection = self.bridge._connection
        return 0 if connection is None else connection.unacknowledged

    def count(self, outcome: str) -> float:
        told = {"outcome": outcome}
        return self.metrics.registry.get_sample_value("sfumato_bridge_messages_total", told) or 0.0


@contextmanager
def bridged(
    server: PrivateMosquitto,
    folder: Path,
    reader: EventReader = READER,
    *,
    changed: Callable[[LiveRun], LiveRun] = lambda run: run,
    broker: Broker | None = None,
    window: int = 50,
    plain: bool = False,
    retain: bool = False,
    waits: bool = True,
    **rules: Any,
) -> Iterator[Town]:
    """A bridge over the ledger of a folder, until the end of the block."""
    run, store = opened(folder / "town.ledger", reader.identity, **rules)
    metrics, lines = BridgeMetrics(), list[bytes]()
    topics = OutTopics.of("private/", "bridge/", reader.template)
    ways = Publication(topics, stream_wording(), plain, retain, b"a secret of the installation")
    log = EventLog(lines.append, b"a secret of the log")
    broker = broker or Broker("127.0.0.1", server.port, "town")
    bridge = MqttBridge(broker, reader, changed(run), ways, metrics, log, window)
    ready = threading.Event()

    def work() -> None:
        try:
            bridge.run(ready.set)
        except BaseException as problem:
            town.failures.append(problem)
        finally:
            ready.set()

    town = Town(bridge, run, store, metrics, lines, threading.Thread(target=work), ready)
    town.thread.start()
    try:
        if waits:
            assert ready.wait(PATIENCE)
        yield town
    finally:
        town.stop()
        run.close()
        store.close()


def rows(folder: Path, identity: str = READER.identity, **rules: Any) -> list[Answer]:
    """All answers of the ledger of a folder."""
    run, store = opened(folder / "town.ledger", identity, **rules)
    try:
        found = [answer for stream in _streams(store) for answer in store.rest(stream, 0)]
    finally:
        run.close()
        store.close()
    return found


def _streams(store: Store) -> Sequence[str]:
    return [f"u{number}" for number in range(10) if store.begun([f"u{number}"])]
