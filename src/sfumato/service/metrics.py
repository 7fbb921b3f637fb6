"""Figures for Prometheus, in a registry of their own: never by stream, never by value."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import assert_never

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from sfumato.store.live import Answered, Refused, Reply, Waiting
from sfumato.store.live_columns import ReplyColumns

METRICS_MEDIA = b"text/plain; version=0.0.4; charset=utf-8"
_GROUPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000)
_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)


@dataclass(frozen=True, slots=True)
class ReleaseFigures:
    """What is measured of a release at the moment of asking.

    Attributes:
        name: Of the release.
        queued: Events that wait for their group.
        waiting: Events that wait for others of their batch.
        entries: Rows of its ledger: the head to anchor goes with them.
        alive: Whether its worker lives.
        conflicts: Events that came again under their ids with another value.
    """

    name: str
    queued: int
    waiting: int
    entries: int
    alive: bool
    conflicts: int


class _Now(Collector):
    """Asks for the figures of releases when somebody reads the metrics."""

    def __init__(self, figures: Callable[[], Iterable[ReleaseFigures]]) -> None:
        self._figures = figures

    def collect(self) -> Iterable[Metric]:
        kinds = {
            "queued": "Events that wait for their group.",
            "waiting": "Events that wait for others of their batch.",
            "entries": "Rows of the ledger.",
            "alive": "Whether the worker of the release lives.",
        }
        found = list(self._figures())
        for field, help_ in kinds.items():
            family = GaugeMetricFamily(f"sfumato_release_{field}", help_, labels=["release"])
            for each in found:
                family.add_metric([each.name], float(getattr(each, field)))
            yield family
        # No reply tells it: only here can be seen that somebody mixes up ids, or guesses values.
        conflicts = CounterMetricFamily(
            "sfumato_conflicting_retries",
            "Events that came again under their ids with another value.",
            labels=["release"],
        )
        for each in found:
            conflicts.add_metric([each.name], float(each.conflicts))
        yield conflicts


class _Requests(Collector):
    """Counts requests in plain numbers: what `prometheus_client` counts with takes a lock for each.

    Counted in the event loop, read from any thread.
    """

    def __init__(self) -> None:
        self._statuses: Tally[tuple[str, int]] = Tally()
        self._took: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def count(self, operation: str, status: int, seconds: float) -> None:
        self._statuses[operation, status] += 1
        if operation not in self._took:
            self._sums[operation] = 0.0
            self._took[operation] = [0] * (len(_SECONDS) + 1)
        self._took[operation][bisect_left(_SECONDS, seconds)] += 1
        self._sums[operation] += seconds

    def collect(self) -> Iterable[Metric]:
        requests = CounterMetricFamily(
            "sfumato_requests", "Requests.", labels=["operation", "status"]
        )
        for (operation, status), count in self._statuses.copy().items():
            requests.add_metric([operation, str(status)], count)
        yield requests
        took = HistogramMetricFamily(
            "sfumato_request_seconds", "Of a request.", labels=["operation"]
        )
        bounds = [*map(floatToGoString, _SECONDS), "+Inf"]
        for operation, counts in self._took.copy().items():
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            took.add_metric([operation], buckets, self._sums[operation])
        yield took


class Metrics:
    """All figures of a service.

    Args:
        figures: The figures of the open releases, whenever they are asked for.

    Examples:
        >>> metrics = Metrics(lambda: [])
        >>> metrics.request("post_events", 200, 0.002)
        >>> b'sfumato_requests_total{operation="post_events",status="200"} 1.0' in metrics.text()
        True
    """

    def __init__(self, figures: Callable[[], Iterable[ReleaseFigures]]) -> None:
        self.registry = own = CollectorRegistry()
        by_release = ["release"]
        self._requests = _Requests()
        own.register(self._requests)
        self._events = Counter(
            "sfumato_events", "Events by what became of them.", ["release", "outcome"], registry=own
        )
        self._groups = Histogram(
            "sfumato_group_events",
            "Events that were answered together.",
            by_release,
            registry=own,
            buckets=_GROUPS,
        )
        self._commits = Histogram(
            "sfumato_commit_seconds",
            "To answer and commit a group.",
            by_release,
            registry=own,
            buckets=_SECONDS,
        )
        self._failures = Counter(
            "sfumato_group_failures", "Groups that broke.", by_release, registry=own
        )
        self._sockets = Gauge("sfumato_open_sockets", "Open sockets.", registry=own)
        own.register(_Now(figures))

    def watch_registry(self, entries: Callable[[], int]) -> None:
        """Tell how many entries the registry has: fewer than before were forgotten, keys too."""
        gauge = Gauge(
            "sfumato_registry_entries", "Entries of the registry.", registry=self.registry
        )
        gauge.set_function(entries)

    def text(self) -> bytes:
        """All figures as Prometheus reads them."""
        return generate_latest(self.registry)

    def request(self, operation: str, status: int, seconds: float) -> None:
        """A request was answered; in the event loop only."""
        self._requests.count(operation, status, seconds)

    def group(self, release: str, replies: ReplyColumns, seconds: float) -> None:
        """A group of events was answered."""
        self._groups.labels(release).observe(len(replies))
        self._commits.labels(release).observe(seconds)
        outcomes = Tally(map(outcome_of, replies.others.values()))
        outcomes["answered"] += len(replies) - len(replies.others)
        for outcome, count in outcomes.items():
            self._events.labels(release, outcome).inc(count)

    def failed_group(self, release: str) -> None:
        """A group of events broke."""
        self._failures.labels(release).inc()

    def socket(self, change: int) -> None:
        """A socket was opened (1) or closed (-1)."""
        self._sockets.inc(change)


def outcome_of(reply: Reply) -> str:
    """What became of an event, in one word.

    Examples:
        >>> from sfumato.store.live import Reason
        >>> outcome_of(Refused(Reason.BUDGET, "the budget is gone"))
        'refused_budget'
    """
    match reply:
        case Answered():
            return "repeated" if reply.repeated else "answered"
        case Waiting():
            return "waiting"
        case Refused():
            return f"refused_{reply.reason.value}"
        case _:
            assert_never(reply)
