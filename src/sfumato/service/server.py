"""The server: one process, one event loop, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import ssl
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, cast

import uvicorn
from prometheus_client import start_http_server
from starlette.types import ASGIApp

from sfumato.core.errors import InvalidParameter
from sfumato.service.connections import BoundedConnection
from sfumato.service.http_routes import Service
from sfumato.service.metrics import Metrics
from sfumato.service.settings import Limits, Settings


@contextmanager
def listening(settings: Settings) -> Iterator[socket.socket]:
    """A socket that is bound, and gone afterwards: who cannot have it is told before all else."""
    with ExitStack() as stack:
        if settings.uds is None:
            yield stack.enter_context(_bound(settings.host, settings.port))
            return
        path = Path(settings.uds)
        if path.exists() and not stat.S_ISSOCK(path.stat().st_mode):
            raise InvalidParameter("--uds", str(path), "be a socket, or not exist yet")
        path.unlink(missing_ok=True)
        own = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        own.bind(str(path))
        path.chmod(0o660)  # who may connect is decided by owner and group; keys come on top
        stack.callback(path.unlink, missing_ok=True)
        yield own


def _bound(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        raise InvalidParameter("--host", host, "be an address of this machine") from None
    family, *_, address = found[0]
    return socket.create_server(address[:2], family=family, backlog=2_048)


def address_of(own: socket.socket, *, tls: bool) -> str:
    """The URL of a socket."""
    if own.family == socket.AF_UNIX:
        return f"unix:{own.getsockname()}"
    host, port = own.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if tls else 'http'}://{shown}:{port}"


class GracefulServer(uvicorn.Server):
    """A server that ends in order: sockets get the replies of what was taken, then are closed.

    Args:
        config: Of uvicorn.
        service: What is served.
        limits: How long the end may take.
        announce: Called when askers can come.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        service: Service,
        limits: Limits,
        announce: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._service, self._limits, self._announce = service, limits, announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        self._announce()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen no more, and end what was begun."""
        self._service.end()
        for server in self.servers:
            server.close()
        await self._service.sockets.close(self._limits.drain_seconds)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order at the first signal, at once at the second: commits are whole or absent."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True


def configured(app: ASGIApp, limits: Limits, tls: ssl.SSLContext | None) -> uvicorn.Config:
    """What uvicorn is told; what may quote a request, such as its own log, is off."""
    context = None if tls is None else (lambda config, default: tls)
    return uvicorn.Config(
        cast(Any, app),
        loop="uvloop",
        http=cast(Any, functools.partial(BoundedConnection, limits=limits)),
        ws="websockets-sansio",
        ws_max_size=limits.body_bytes,
        ws_per_message_deflate=False,
        ws_ping_interval=limits.idle_seconds / 3,
        ws_ping_timeout=limits.idle_seconds / 3,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=max(1, int(limits.idle_seconds)),
        timeout_graceful_shutdown=max(1, int(limits.drain_seconds)),
        ssl_context_factory=context,
    )


@contextmanager
def metrics_listener(port: int | None, metrics: Metrics) -> Iterator[None]:
    """Serve the metrics alone, on a port of this machine, to whoever can reach it."""
    if port is None:
        yield
        return
    server, thread = start_http_server(port, "127.0.0.1", metrics.registry)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def serve(
    service: Service,
    own: socket.socket,
    limits: Limits,
    *,
    app: ASGIApp | None = None,
    tls: ssl.SSLContext | None = None,
    announce: Callable[[], None] = lambda: None,
    started: Callable[[GracefulServer], None] = lambda server: None,
) -> None:
    """Serve until a signal comes; what was taken is answered, and the releases are closed.

    Args:
        service: What is served.
        own: Where, as `listening` makes it.
        limits: Its bounds.
        app: The service within what else sees requests, such as their log.
        tls: Certificate and key.
        announce: Called when askers can come.
        started: Given the server, for whoever ends it without a signal.
    """
    server = GracefulServer(configured(app or service, limits, tls), service, limits, announce)
    started(server)
    try:
        await server.serve(sockets=[own])
    finally:
        await service.application.releases.close(limits.drain_seconds)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run a coroutine on the event loop of the service."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
