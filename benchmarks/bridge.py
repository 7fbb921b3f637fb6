"""Messages a second through the bridge, beside a plain relay: `python -m benchmarks.bridge`.

Messages wait in the session of a bridge that is away; then it comes, and the time is taken until
the broker has the acknowledgement of the last one. Two relays let out what comes in, with nothing
drawn and nothing stored: our own code without a release, and a second Mosquitto with its own bridge
to the first, in and out at QoS 1 (`benchmarks/mosquitto_relay.py`; needs `mosquitto_sub`, Debian's
mosquitto-clients). All through one Mosquitto in one run, in turns; shares are taken within a turn,
with their range, for a busy machine shows in both.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import paho.mqtt.client as paho
from benchmarks.mosquitto_relay import OUTSIDE, RAW, MosquittoRelay
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from tests.servers import PrivateMosquitto, private_mosquitto
from tests.service.example_releases import PLACES, sticky

from sfumato.bridges.bridge_metrics import BridgeMetrics
from sfumato.bridges.broker import Broker
from sfumato.bridges.connection import Connection
from sfumato.bridges.mqtt_bridge import MqttBridge, Publication
from sfumato.bridges.payloads import EventReader, Form, Source
from sfumato.bridges.topics import OutTopics, TopicTemplate
from sfumato.core.randomness import secure
from sfumato.models.stream_model import StreamModel
from sfumato.service.event_log import EventLog
from sfumato.service.wording import stream_wording
from sfumato.solver.policy import Policy
from sfumato.store.live import Answered, Asked, LiveRun, Reply, StreamAccount
from sfumato.store.protocol import Answer, Store
from sfumato.store.sqlite import SqliteStore
from sfumato.stream import release_document, release_spec
from sfumato.stream.compile import compile_policy
from sfumato.stream.live_release import open_release
from sfumato.stream.release_spec import ReleaseSpec

TEMPLATE = TopicTemplate.of("raw/#")
READER = EventReader(TEMPLATE, Form.JSON, Source.FIELD, ("cell",), "n")
TOPICS = OutTopics.of("private/", "bridge/", TEMPLATE)


class Relay:
    """A live run without a release: the value leaves as it came. For measuring alone."""

    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        """What came in."""
        return [
            Answered((Answer(one.id, "relay", 0, one.stream, 0, "relayed", one.value, 0.0, 0.0),))
            for one in events
        ]

    def finish(self, stream: str) -> None:
        """Nothing waits."""

    def waiting(self) -> int:
        """Nothing waits."""
        return 0

    def account(self, stream: str) -> StreamAccount | None:
        """Nothing is counted."""
        return None

    def close(self) -> None:
        """Nothing is held."""


def release(folder: Path, model: StreamModel, policy: Policy | None) -> tuple[LiveRun, Store]:
    """A release of places with half a nat a value, in a new ledger."""
    spec = ReleaseSpec(epsilon=0.5, method="step-wise", loss="hamming")
    if policy is not None:
        spec = release_spec.ReleaseSpec(
            epsilon=0.5, method="step-wise", loss="hamming", policy=policy.fingerprint
        )
    path = folder / f"{time.monotonic_ns()}.ledger"
    return open_release(
        release_document.document(spec, model),
        model,
        policy,
        lambda plan, job, rules: SqliteStore(path, plan, job=job, rules=rules),
        secure(),
        "benchmark",
    )


def queue(server: PrivateMosquitto, broker: Broker, count: int, streams: int, turn: int) -> None:
    """Let messages wait in the session of a bridge."""
    Connection(broker, TEMPLATE.subscription, TOPICS.status, 10).close()
    device(server, count, streams, turn, "raw/")


def device(server: PrivateMosquitto, count: int, streams: int, turn: int, tree: str) -> None:
    """Send messages, each acknowledged by the broker."""
    version = MQTTProtocolVersion.MQTTv5
    client = paho.Client(CallbackAPIVersion.VERSION2, "device", protocol=version)
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    for number in range(count):
        told = json.dumps({"n": f"{turn}-{number}", "cell": PLACES[number % len(PLACES)]})
        last = client.publish(f"{tree}u{number % streams}", told, qos=1)
    last.wait_for_publish()
    client.disconnect()
    client.loop_stop()


def measured(
    server: PrivateMosquitto, broker: Broker, run: LiveRun, count: int, window: int
) -> tuple[float, float]:
    """Seconds of the clock and of this process, for all that waits."""
    ways = Publication(TOPICS, stream_wording())
    log = EventLog(lambda line: None, b"a secret")
    metrics = BridgeMetrics()
    bridge = MqttBridge(broker, READER, run, ways, metrics, log, window)
    worker = threading.Thread(target=bridge.run)
    begun, spent = time.perf_counter(), time.process_time()
    worker.start()
    while bridge._connection is None or bridge._connection.acknowledged < count:
        time.sleep(0.002)
    taken = time.perf_counter() - begun, time.process_time() - spent
    bridge.stop()
    worker.join()
    # A refusal is quicker than an answer: figures with any of them would say nothing.
    name, told = "sfumato_bridge_messages_total", {"outcome": "answered"}
    if metrics.registry.get_sample_value(name, told) != count:
        raise RuntimeError("each message must have been answered once")
    return taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=4_000)
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    model = sticky(PLACES, 0.6)
    spec = ReleaseSpec(epsilon=0.5, method="step-wise", loss="hamming")
    plan = spec.plan(model)
    policy = compile_policy(model.chain, plan.loss, 0.5, steps=2_000)
    print("| in flight | way | messages/s | share of our relay | by processor time | ", end="")
    print("share of Mosquitto's relay | by processor time |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ways: dict[str, Callable[[], tuple[LiveRun, Store | None]]] = {
            "relay": lambda: (Relay(), None),
            "compiled policy": lambda: release(folder, model, policy),
            "solved channels": lambda: release(folder, model, None),
        }
        for setting in ("max_inflight_messages 20", "max_inflight_messages 0"):
            found: dict[str, list[tuple[float, float]]] = {way: [] for way in (OUTSIDE, *ways)}
            with private_mosquitto(setting) as server:
                broker = Broker("127.0.0.1", server.port, "bench")
                for turn in range(given.turns + 1):
                    with MosquittoRelay.beside(server, setting) as relay:
                        device(server, given.messages, given.streams, turn, RAW)
                        taken = relay.measured(given.messages)
                    if turn:
                        found[OUTSIDE].append(taken)
                    for way, make in ways.items():
                        queue(server, broker, given.messages, given.streams, turn)
                        run, store = make()
                        taken = measured(server, broker, run, given.messages, 1_000)
                        run.close()
                        if store is not None:
                            store.close()
                        if turn:  # the first one compiles
                            found[way].append(taken)
            for way, times in found.items():
                rate = given.messages / statistics.median(clock for clock, _ in times)
                bases = [found["relay"], found[OUTSIDE]]
                shares = " | ".join(
                    share(base, times, column) for base in bases for column in (0, 1)
                )
                print(f"| {setting.split()[1]} | {way} | {rate:,.0f} | {shares} |", flush=True)


def share(relay: list[tuple[float, float]], times: list[tuple[float, float]], column: int) -> str:
    """The time of the relay by that of a way, turn by turn: the median, and from where to where."""
    ratios = [one[column] / two[column] for one, two in zip(relay, times, strict=True)]
    return f"{statistics.median(ratios):.0%} ({min(ratios):.0%} to {max(ratios):.0%})"


if __name__ == "__main__":
    main()
