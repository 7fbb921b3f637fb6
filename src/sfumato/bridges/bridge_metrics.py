"""Figures of a bridge for Prometheus: counts alone, never by stream, never by value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

_GROUPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


class BridgeMetrics:
    """All figures of a bridge.

    Examples:
        >>> metrics = BridgeMetrics()
        >>> metrics.message("answered")
        >>> metrics.registry.get_sample_value(
        ...     "sfumato_bridge_messages_total", {"outcome": "answered"}
        ... )
        1.0
    """

    def __init__(self) -> None:
        self.registry = own = CollectorRegistry()
        self._messages = Counter(
            "sfumato_bridge_messages", "Messages by what became of them.", ["outcome"], registry=own
        )
        self._groups = Histogram(
            "sfumato_bridge_group_messages",
            "Messages that were answered together.",
            registry=own,
            buckets=_GROUPS,
        )
        self._commits = Histogram(
            "sfumato_bridge_commit_seconds",
            "To answer and commit a group.",
            registry=own,
            buckets=_SECONDS,
        )
        self._connections = Counter(
            "sfumato_bridge_connections", "Connections by how they went.", ["outcome"], registry=own
        )
        self.connected = Gauge("sfumato_bridge_connected", "Whether it is there.", registry=own)
        self.unacknowledged = Gauge(
            "sfumato_bridge_unacknowledged", "Messages without an acknowledgement.", registry=own
        )
        self.dropped = Gauge(
            "sfumato_bridge_dropped", "Messages of QoS 0 without room, now.", registry=own
        )

    def message(self, outcome: str) -> None:
        """A message was answered, refused or dead."""
        self._messages.labels(outcome).inc()

    def group(self, messages: int, seconds: float) -> None:
        """A group was answered and committed."""
        self._groups.observe(messages)
        self._commits.observe(seconds)

    def connection(self, outcome: str) -> None:
        """A connection was opened, failed or was lost."""
        self._connections.labels(outcome).inc()


@contextmanager
def metrics_listener(port: int | None, metrics: BridgeMetrics) -> Iterator[int | None]:
    """Serve the figures on a port of this machine, to whoever can reach it; 0 for a free one."""
    if port is None:
        yield None
        return
    server, thread = start_http_server(port, "127.0.0.1", metrics.registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
