"""`sfumato bridge`: releases in front of a broker that is there already."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from sfumato.cli import options, service_options
from sfumato.cli.console import print_json, print_line, say
from sfumato.cli.options import flag, option, required
from sfumato.cli.serve_command import chosen_rules
from sfumato.cli.service_options import DATABASE

if TYPE_CHECKING:
    from sfumato.bridges.broker import Broker
    from sfumato.bridges.mqtt_bridge import MqttBridge
    from sfumato.bridges.payloads import EventReader, Source
    from sfumato.service.release_desk import ReleaseDesk
    from sfumato.service.releases import Opened
    from sfumato.store.home import Home

HELP = "Put a release in front of a broker: true values in, private ones out."
PASSWORD = "SFUMATO_MQTT_PASSWORD"


class _Messages(options.Options):
    incoming: str = required(
        "Topics of true values: raw/{stream}, raw/+/{stream}/cell, raw/{stream...} (all levels "
        "from there on), or raw/# (one level below raw).",
        "--in",
    )
    out: str = required("Where answers go: --out private/ is private/STREAM.", "--out")
    notices: str = option(
        "Where refusals and dead letters go, for operators alone: a refusal may tell of a value.",
        default="bridge/",
    )
    payload: str = option(
        "Payloads without --value-field: text, or number (several with commas: 13.4,52.5).",
        default="text",
    )
    value_field: list[str] | None = option(
        "Payloads are JSON objects: the field of the value; one for each column of the model. "
        "Dots lead into objects: data.cell."
    )
    time_field: str | None = option("Field of the time of measurement, with --value-field.")
    id_field: str | None = option("Field of event ids, with --value-field.")
    id_property: str | None = option("User property (MQTT 5) of event ids.")
    id_from: str | None = option(
        "Event ids from: correlation (data of MQTT 5), or time (stream and --time-field)."
    )
    released_only: bool = flag(
        "--released-only", "Publish the released value alone, the id as user property `event`."
    )
    retain: bool = flag("--retain", "The broker keeps the last answer of each stream.")
    max_payload: int = option("Bytes of a payload; beyond, it is a dead letter.", default=65_536)


class _Connection(options.Options):
    broker: str = required("mqtt://host:1883, or mqtts://host:8883 for TLS.", "--broker")
    client_id: str | None = option("Name of the session [sfumato-bridge-RELEASE].")
    session_expiry: int = option(
        "Seconds for which the broker keeps messages while the bridge is away.", default=604_800
    )
    in_flight: int = option("Messages that may be unacknowledged.", default=1_000)
    username: str | None = option("Name for the broker.")
    password_file: str | None = option(f"File of its password; or in the environment, ${PASSWORD}.")
    tls_ca: str | None = option("Authorities of the broker's certificate (PEM) [the system's].")
    tls_cert: str | None = option("Our own certificate (PEM), for brokers that ask for one.")
    tls_key: str | None = option("Its private key (PEM).")


class _MqttOptions(options.Options):
    connection: _Connection
    messages: _Messages
    home: str = service_options.HOME
    secret_file: str | None = service_options.SECRET_FILE
    release: str = option("Name of the release that answers.", default="default")
    rules: service_options.LiveRules
    metrics_port: int | None = option("Serve figures for Prometheus on this port of 127.0.0.1.")
    logged: service_options.Log
    shown: options.Shown


def mqtt(given: _MqttOptions) -> None:
    """Answer the messages of an MQTT broker: true values in, private ones out.

    A message on raw/ann is an event of stream ann; its answer goes to private/ann, after it is
    durable in the ledger of the release, and then the message is acknowledged (QoS 1). Whatever
    crashes, the broker delivers again and the same answer is published again: listeners may see an
    answer twice, but no event ever has two.

    So events must be told apart: name where their ids are (--id-field, --id-property or --id-from).
    Without ids a message that is delivered again looks like a new one of the same value, would be
    answered anew, and would leak twice; a bridge without them does not start.

    Rules are those of `sfumato serve`: with --model and a budget a release is made at the first
    start; later starts may leave them out. A folder is held by one process; what was answered
    here can be served, checked and audited as ever.

    Messages that cannot be read go to bridge/dead, events without an answer to bridge/refused, both
    without the value. private/$bridge/status says online or offline. The broker must speak MQTT 5
    and keep sessions (Mosquitto: persistence true, max_queued_messages 0); let nobody but devices
    and the bridge reach raw/.

    SIGTERM or SIGINT ends the bridge in order: what was taken is answered and acknowledged.

    \b
    Examples:
      sfumato bridge mqtt --broker mqtt://localhost --in 'raw/#' --out private/ \\
        --home city-home --model city.model --epsilon 0.5 --value-field cell --id-field n
      sfumato bridge mqtt --broker mqtt://localhost --in 'raw/{stream}/cell' --out private/ \\
        --home city-home --id-property event
      SFUMATO_MQTT_PASSWORD=... sfumato bridge mqtt --broker mqtts://broker.example \\
        --username bridge --tls-ca ca.pem --in 'raw/#' --out private/ --home city-home \\
        --value-field lon --value-field lat --time-field at --id-from time

    \b
    Then:
      mosquitto_pub -q 1 -t raw/ann -m '{"n": 1, "cell": "home"}'
      mosquitto_sub -q 1 -t 'private/#'
    """
    _check_extra()
    from sfumato.service.hardening import environment_secret, harden_process
    from sfumato.store.home import open_home

    harden_process()  # before anything secret is read
    url, password = environment_secret(DATABASE), environment_secret(PASSWORD)
    place = url if given.home == "-" and url else given.home
    reader, broker = _reader(given.messages), _broker(given, password)
    with open_home(place, given.secret_file) as home:
        _bridge_home(given, reader, broker, home)


def _check_extra() -> None:
    from importlib.util import find_spec

    from sfumato.core.errors import InvalidParameter

    lacking = [name for name in ("paho", "prometheus_client") if find_spec(name) is None]
    if lacking:
        rule = 'be complete for a bridge: pip install "sfumato[mqtt]"'
        raise InvalidParameter("the installation", f"no {', '.join(lacking)}", rule)


def _reader(given: _Messages) -> EventReader:
    from sfumato.bridges.payloads import EventReader, Form
    from sfumato.bridges.topics import TopicTemplate
    from sfumato.core import checks

    source, name = _identity(given)
    form = Form.JSON if given.value_field else checks.choice("--payload", Form, given.payload)
    return EventReader(
        TopicTemplate.of(given.incoming),
        form,
        source,
        tuple(given.value_field or ()),
        name,
        given.time_field,
        checks.count("--max-payload", given.max_payload),
    )


def _identity(given: _Messages) -> tuple[Source, str | None]:
    """Where the ids of events are, and what that is called."""
    from sfumato.bridges.payloads import Source
    from sfumato.core import checks
    from sfumato.core.errors import InvalidParameter

    named = [each for each in (given.id_field, given.id_property, given.id_from) if each]
    if len(named) != 1:
        rule = (
            "be named once (--id-field, --id-property or --id-from): without ids a message that is "
            "delivered again cannot be told from a new one, and would leak twice"
        )
        raise InvalidParameter("where event ids are", len(named), rule)
    if given.id_from:
        source = checks.choice("--id-from", Source, given.id_from)
        if source not in (Source.CORRELATION, Source.TIME):
            raise InvalidParameter("--id-from", given.id_from, "be correlation or time")
        return source, None
    if named[0].split() != named:  # the ledger tells names by blanks
        raise InvalidParameter("the name of the ids", named[0], "have no blanks")
    return Source.FIELD if given.id_field else Source.PROPERTY, named[0]


def _broker(given: _MqttOptions, password: str | None) -> Broker:
    from sfumato.bridges.broker import Broker, broker_address, client_tls, password_in
    from sfumato.core.errors import InvalidParameter

    asked = given.connection
    host, port, secured = broker_address(asked.broker)
    if not secured and (asked.tls_ca or asked.tls_cert):
        raise InvalidParameter("--broker", asked.broker, "begin with mqtts:// for TLS")
    if asked.password_file is not None:
        password = password_in(asked.password_file)
    if not 60 <= asked.session_expiry < 1 << 32:
        # A session that ends with its connection forgets what was not acknowledged.
        rule = "be at least 60 seconds, below 2^32"
        raise InvalidParameter("--session-expiry", asked.session_expiry, rule)
    if not 1 <= asked.in_flight <= 65_535:
        raise InvalidParameter("--in-flight", asked.in_flight, "be from 1 to 65,535")
    if not secured and host not in ("localhost", "127.0.0.1", "::1") and not given.shown.quiet:
        say("true values travel to this broker unencrypted; mqtts:// speaks TLS")
    return Broker(
        host,
        port,
        # Another release is another session: what one has answered the other has not.
        asked.client_id or f"sfumato-bridge-{given.release}",
        client_tls(asked.tls_ca, asked.tls_cert, asked.tls_key) if secured else None,
        asked.username,
        password,
        asked.session_expiry,
    )


def _bridge_home(given: _MqttOptions, reader: EventReader, broker: Broker, home: Home) -> None:
    from sfumato.bridges.bridge_metrics import BridgeMetrics, metrics_listener
    from sfumato.bridges.ledger_sources import check_sources, source_label
    from sfumato.bridges.mqtt_bridge import MqttBridge, Publication
    from sfumato.bridges.topics import OutTopics
    from sfumato.service.access import AccessControl
    from sfumato.service.event_log import routed
    from sfumato.service.release_desk import ReleaseDesk
    from sfumato.service.release_keys import ReleaseKeys
    from sfumato.service.releases import Releases
    from sfumato.service.settings import Limits

    topics = OutTopics.of(given.messages.out, given.messages.notices, reader.template)
    control = AccessControl(home.registry)
    log = given.logged.opened(control.secret("log"))
    folder = given.rules.key_folder
    keys = None if folder is None else ReleaseKeys(folder, home.registry)
    door, node = source_label(reader.identity), f"{socket.gethostname()}:{broker.client_id}"
    opened = _opened(given, ReleaseDesk(home, Releases(Limits()), keys, node, door))
    try:
        check_sources(opened.store.inputs(), reader.identity)
        metrics = BridgeMetrics()
        ways = Publication(
            topics,
            opened.worded,
            given.messages.released_only,
            given.messages.retain,
            control.secret("dead letters"),
        )
        window = given.connection.in_flight
        bridge = MqttBridge(broker, reader, opened.run, ways, metrics, log, window)
        with (
            routed(log),
            metrics_listener(given.metrics_port, metrics),
            _stopped_by_signals(bridge),
        ):
            bridge.run(lambda: _announce(given, reader, broker))
    finally:
        opened.close()


def _opened(given: _MqttOptions, desk: ReleaseDesk) -> Opened:
    """The release that answers: there already, or made as the options describe."""
    from sfumato.core.errors import InvalidParameter
    from sfumato.service.serve_release import establish
    from sfumato.stream.release_document import parse_spec
    from sfumato.stream.release_spec import JOB

    name, path = given.release, given.rules.model
    given.rules.check_model()
    if path is not None:
        establish(desk, name, lambda begun: chosen_rules(given, path, begun), given.rules.coins)
    desk.catch_up()
    if name not in desk.catalogue.releases:
        rule = "be one of this home; --model and a budget make one"
        raise InvalidParameter("--release", name, rule)
    content = desk.catalogue.releases[name].content
    if content.job == JOB.name:
        _, model = desk.model(content.model)
        spec = parse_spec(content.rules.encode(), f"release {name}")
        width = None if model is None else spec.width(model)
        if width not in (None, 1):
            # What waits for its batch cannot be acknowledged, and soon nothing more would come.
            rule = "answer each value by itself; this one has batches"
            raise InvalidParameter("--release", name, rule)
    return desk.open(name)


def _announce(given: _MqttOptions, reader: EventReader, broker: Broker) -> None:
    if given.shown.as_json:
        print_json(
            {
                "bridge": "mqtt",
                "broker": broker.url,
                "client_id": broker.client_id,
                "in": reader.template.subscription,
                "out": given.messages.out,
                "release": given.release,
                "ids": reader.identity,
            }
        )
        return
    print_line(f"bridging {reader.template.subscription} of {broker.url} to {given.messages.out}")


@contextmanager
def _stopped_by_signals(bridge: MqttBridge) -> Iterator[None]:
    """End in order at the first signal, at once at the second: commits are whole or absent."""
    asked: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        if asked:
            os._exit(128 + number)
        asked.append(number)
        bridge.stop()

    before = {kind: signal.signal(kind, stop) for kind in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
