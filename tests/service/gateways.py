"""A whole service on a home in memory, with a release of real streams."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from sfumato.core.alphabet import Alphabet
from sfumato.models.encoding import StreamModel, Symbols
from sfumato.models.markov import MarkovChain
from sfumato.service.assembly import Gateway, assembled, controlled
from sfumato.service.event_log import EventLog
from sfumato.service.settings import Limits
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
async def opened(home: Home | None = None, key: str = "") -> AsyncIterator[Opened]:
    """A service on a home; a new one in memory if none is given."""
    home = home or MemoryHome()
    lines: list[bytes] = []
    control = controlled(home)
    log = EventLog(lines.append, b"a secret of the tests")
    gateway = assembled(home, log, control, limits=Limits())
    first = control.first_key() or key
    await gateway.open()
    headers = {"authorization": f"Bearer {first}"}
    transport = httpx.ASGITransport(gateway.app)  # type: ignore[arg-type]
    async with httpx.AsyncClient(
        transport=transport, base_url="http://test", headers=headers, timeout=60.0
    ) as client:
        try:
            yield Opened(gateway, client, lines, first)
        finally:
            await gateway.releases.close(10.0)


def json_of(response: httpx.Response) -> Any:
    return msgspec.json.decode(response.content)
