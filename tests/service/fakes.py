"""Stand-ins for the parts of a service that others build: small, and strict about their use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
import msgspec

from sfumato.service.application import Application, Flight, Visitor
from sfumato.service.http_routes import OWN_OPERATIONS, Service
from sfumato.service.operations import Operation
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.releases import Opened, Releases
from sfumato.service.settings import Limits
from sfumato.service.wording import stream_wording
from sfumato.store.live import Answered, Asked, Reason, Refused, Reply, Waiting
from sfumato.store.live_columns import ReplyColumns
from sfumato.store.live_intake import ledger_id, own_answer
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Answer, Identity, Position

KEY = "sfk_test_key"
DEFAULTS = Limits()


class EchoRun:
    """A live run of job `release` that answers `private-<n>` and keeps a ledger in memory.

    Args:
        store: The ledger.
        width: Values of a batch.
        gate: Waited for before each group, to hold a worker up.
    """

    def __init__(
        self, store: MemoryStore, width: int = 1, gate: threading.Event | None = None
    ) -> None:
        self.store, self.width, self.gate = store, width, gate
        self.groups: list[list[str]] = []
        self.break_with: BaseException | None = None
        self.closed = False
        self.conflicts = 0
        self._values: dict[str, Any] = {}
        self._batches: dict[str, list[Asked]] = {}
        self._input = store.begin("http", Identity.EVENT)

    def answer(self, events: Sequence[Asked]) -> list[Reply]:
        if self.gate is not None:
            assert self.gate.wait(10.0)
        self.groups.append([event.id for event in events])
        if self.break_with is not None:
            raise self.break_with
        return [self._reply(event) for event in events]

    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        rows = zip(ids, streams, values, times or [None] * len(ids), strict=True)
        replies = self.answer([Asked(*row) for row in rows])
        return ReplyColumns(len(replies), others=dict(enumerate(replies)))

    def _reply(self, event: Asked) -> Reply:
        name = ledger_id(event.stream, event.id)
        there = self.store.answers([name])
        if name in there:
            self.conflicts += self._values[name] != event.value
            return Answered((own_answer(there[name]),), repeated=True)
        if event.value == "unknown":
            return Refused(Reason.VALUE, "the value must be one of the 2 symbols")
        if event.value == "dear":
            return Refused(Reason.BUDGET, "the budget leaves nothing")
        batch = self._batches.setdefault(event.stream, [])
        batch.append(event)
        if len(batch) < self.width:
            return Waiting(self.width - len(batch))
        return self._released(event.stream)

    def _released(self, stream: str) -> Answered:
        batch = self._batches.pop(stream)
        before = self.store.position(stream)
        first = 0 if before is None else before.sequence
        answers = [
            Answer(
                ledger_id(stream, one.id),
                "http",
                place,
                stream,
                first + place,
                "released",
                "p",
                0.5,
                0.75,
            )
            for place, one in enumerate(batch)
        ]
        self._values |= {ledger_id(stream, one.id): one.value for one in batch}
        count = first + len(batch)
        self.store.commit(answers, [Position(stream, count, 0.5 * count, 0.75 * count, b"")])
        return Answered(tuple(map(own_answer, answers)))

    def finish(self, stream: str) -> Reply | None:
        if not self._batches.get(stream):
            return None
        if any(event.value == "dear at last" for event in self._batches[stream]):
            return Refused(Reason.BUDGET, "the budget leaves nothing")
        return self._released(stream)

    def waiting(self) -> int:
        return sum(map(len, self._batches.values()))

    def close(self) -> None:
        self.closed = True


@dataclass
class TestVisitor:
    """May do everything with streams that are not called `foreign...`."""

    __test__ = False
    actions: tuple[str, ...] = ("release", "read", "admin", "metrics")
    id: str = "test"

    def require(self, action: str, stream: str | None = None) -> None:
        if action not in self.actions or (stream or "").startswith("foreign"):
            raise HttpProblem(problem("forbidden", f"the key must allow {action!r} here"))

    def outside(self, action: str, streams: Iterable[str]) -> set[str]:
        every = action not in self.actions
        return {stream for stream in streams if every or stream.startswith("foreign")}

    def require_everywhere(self, action: str) -> None:
        self.require(action)

    def may(self, action: str) -> bool:
        return action in self.actions

    def may_everywhere(self, action: str) -> bool:
        return action in self.actions

    @property
    def streams(self) -> tuple[str, ...]:
        return ("*",)

    releases: tuple[str, ...] | None = None

    def require_unlimited(self, action: str) -> None:
        if self.releases is not None:
            raise HttpProblem(problem("forbidden", f"the key must allow {action!r} everywhere"))


@dataclass
class TestGate:
    """Lets in who has the key of the tests."""

    __test__ = False
    visitor: TestVisitor = field(default_factory=TestVisitor)
    revoked: bool = False
    events_left: int = 10**9

    def admit(self, header: str | None, peer: str | None) -> Visitor:
        return self.admit_key((header or "").removeprefix("Bearer "), peer)

    def admit_key(self, key: str, peer: str | None) -> Visitor:
        if key != KEY or self.revoked:
            raise HttpProblem(problem("unauthorized", "an access key is needed"))
        return self.visitor

    def message(self, visitor: Visitor, events: int) -> Visitor:
        self.charge(visitor, events)
        return self.admit_key(KEY, None)

    def charge(self, visitor: Visitor, events: int) -> None:
        if events > self.events_left:
            raise HttpProblem(problem("rate", "the key asks too often"), {"retry-after": "1"})
        self.events_left -= events


class Lines:
    """A log that remembers."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def event(
        self,
        name: str,
        *,
        level: int = logging.INFO,
        failure: BaseException | None = None,
        **fields: Any,
    ) -> None:
        told = {} if failure is None else {"failure": type(failure).__name__}
        self.lines.append({"event": name, **told, **fields})


@dataclass
class World:
    """A service made of stand-ins."""

    service: Service
    releases: Releases
    runs: dict[str, EchoRun]
    gate: TestGate
    log: Lines

    def client(self, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.service)
        own = {"authorization": f"Bearer {KEY}", **headers}
        return httpx.AsyncClient(transport=transport, base_url="http://test", headers=own)


def opened(run: EchoRun) -> Callable[[], Opened]:
    def close() -> None:
        run.close()
        run.store.close()

    return lambda: Opened("release", cast(Any, run), run.store, stream_wording(), close)


@asynccontextmanager
async def world(
    *names: str,
    limits: Limits = DEFAULTS,
    width: int = 1,
    gate: threading.Event | None = None,
    operations: Sequence[Operation] = OWN_OPERATIONS,
) -> Any:
    """A service with releases of these names, `city` if none is named; the first is the default."""
    log, door = Lines(), TestGate()
    releases = Releases(
        limits, lambda name, error: log.event("failed", release=name, failure=error)
    )
    runs = {}
    for name in names or ("city",):
        runs[name] = EchoRun(MemoryStore(plan=name), width, gate)
        await releases.prepare(name, opened(runs[name]))
    releases.activate((names or ("city",))[0])
    application = Application(
        releases, door, releases.metrics, log, limits, Flight(limits.flight_bytes), lambda: []
    )
    try:
        yield World(Service(application, operations), releases, runs, door, log)
    finally:
        if gate is not None:
            gate.set()
        await releases.close(5.0)


def json_of(response: httpx.Response) -> Any:
    return msgspec.json.decode(response.content)
