"""A real server on a free port of this machine, in a thread of the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sfumato.service.server import GracefulServer, address_of, listening, run, serve
from sfumato.service.settings import Limits, Settings
from tests.service.fakes import DEFAULTS, World, world


@dataclass
class Served:
    """A service that listens."""

    world: World
    url: str
    server: GracefulServer
    thread: threading.Thread
    loop: asyncio.AbstractEventLoop

    def stop(self) -> None:
        self.server.should_exit = True


@contextmanager
def served(*names: str, limits: Limits = DEFAULTS, **parts: Any) -> Iterator[Served]:
    """A service of stand-ins that listens until the end of the block."""
    found: dict[str, Any] = {}
    ready = threading.Event()
    settings = Settings(port=0, limits=limits)

    async def main() -> None:
        try:
            async with world(*names, limits=limits, **parts) as there:
                found.update(world=there, loop=asyncio.get_running_loop())
                with listening(settings) as own:
                    found["url"] = address_of(own, tls=False)
                    await serve(
                        there.service,
                        own,
                        limits,
                        announce=ready.set,
                        started=lambda server: found.update(server=server),
                    )
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: run(main))
    thread.start()
    assert ready.wait(20.0)
    service = Served(found["world"], found["url"], found["server"], thread, found["loop"])
    try:
        yield service
    finally:
        service.stop()
        thread.join(30.0)
        assert not thread.is_alive()
