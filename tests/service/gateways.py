"""A whole service on a home in memory, with a release of real streams."""

from __future__ import annotations

import base64
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from sfumato.core.alphabet import Alphabet
from sfumato.models.encoding import Symbols
from sfumato.models.markov import MarkovChain
from sfumato.models.stream_model import StreamModel
from sfumato.service.assembly import Gateway, assembled, controlled
from sfumato.service.event_log import EventLog
from sfumato.service.server import address_of, listening, run, serve
from sfumato.service.settings import Limits, Settings
from sfumato.store.codec import to_bytes
from sfumato.store.home import Home, MemoryHome


def town() -> StreamModel:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], alphabet=Alphabet(["home", "work"]))
    return StreamModel(chain, Symbols(chain.alphabet))


@dataclass
class Opened:
    """A gateway, and a client with the first key."""

    gateway: Gateway
    client: httpx.AsyncClient
    lines: list[bytes]
    key: str

    async def settled(self) -> None:
        await self.gateway.releases.settled()


@asynccontextmanager
async def opened(
    home: Home | None = None, key: str = "", said: list[bytes] | None = None
) -> AsyncIterator[Opened]:
    """A service on a home; a new one in memory if none is given."""
    home = home or MemoryHome()
    lines: list[bytes] = [] if said is None else said
    control = controlled(home)
    log = EventLog(lines.append, b"a secret of the tests")
    gateway = assembled(home, log, control, limits=Limits())
    first = control.first_key() or key
    await gateway.open()
    headers = {"authorization": f"Bearer {first}"}
    transport = httpx.ASGITransport(gateway.app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=headers, timeout=60.0
    ) as client:
        try:
            yield Opened(gateway, client, lines, first)
        finally:
            await gateway.releases.close(10.0)


def json_of(response: httpx.Response) -> Any:
    return msgspec.json.decode(response.content)


def document(found: Any) -> str:
    """A model or a policy as a body has it."""
    return base64.b64encode(to_bytes(found)).decode()


async def begun(there: Opened) -> None:
    """Make a release of the town, and activate it."""
    body = {"name": "town", "data": document(town())}
    await there.client.post("/v1/models", json=body)
    rules = {"epsilon": 0.5, "method": "optimal"}
    await there.client.post("/v1/releases", json={"name": "a", "rules": rules, "model": "town"})
    await there.settled()
    await there.client.post("/v1/releases/a/activate")


MATRIX = [[0.9, 0.1], [0.2, 0.8]]
SERIES_RULES = {"epsilon": 1.0, "sensitivity": 1.0, "length": 731, "period": 7}
# So little may leak that no count leaves as it is: a search for it must find nothing.
TEMPORAL_RULES = {"alpha": 1e-4, "backward": [MATRIX], "forward": [MATRIX]}


async def begun_jobs(there: Opened) -> None:
    """Make a release of each job: `a`, the default, of the town; `counts`; and `wards`."""
    await begun(there)
    for name, job, rules in (
        ("counts", "realtime", SERIES_RULES),
        ("wards", "temporal", TEMPORAL_RULES),
    ):
        body = {"name": name, "job": job, "rules": rules}
        await there.client.post("/v1/releases", json=body)
    await there.settled()
    states = json_of(await there.client.get("/v1/releases"))["releases"]
    assert {state["name"]: state["status"] for state in states} == {
        name: "ready" for name in ("a", "counts", "wards")
    }


@contextmanager
def gateway_served(
    home: Home | None = None,
    begin: Callable[[Opened], Awaitable[None]] = begun,
    said: list[bytes] | None = None,
) -> Iterator[tuple[str, str]]:
    """A whole service on a home, in memory if none is given; its URL, and the first key.

    Args:
        home: Where it keeps everything.
        begin: Makes its releases.
        said: Takes the lines of its log.
    """
    found: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        try:
            async with opened(home, said=said) as there:
                await begin(there)
                with listening(Settings(port=0)) as own:
                    found.update(url=address_of(own, tls=False), key=there.key)
                    await serve(
                        there.gateway.service,
                        own,
                        Limits(),
                        app=there.gateway.app,
                        announce=ready.set,
                        started=lambda server: found.update(server=server),
                    )
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: run(main))
    thread.start()
    assert ready.wait(60.0)
    try:
        yield found["url"], found["key"]
    finally:
        found["server"].should_exit = True
        thread.join(60.0)
        assert not thread.is_alive()
