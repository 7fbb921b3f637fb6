"""Readouts and dashboard behind one access key, for tests in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from urllib.parse import unquote

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from sfumato.core.errors import InvalidParameter
from sfumato.service.dashboard_files import dashboard_routes
from sfumato.service.readout_routes import READOUT_ROUTES, ReadoutRoute
from sfumato.service.readouts import Readouts

KEY = "sfk_test_0123456789abcdef"


def application(readouts: Readouts) -> ASGIApp:
    """All readouts and the dashboard."""
    readable = [_route(route, readouts) for route in READOUT_ROUTES]
    app = Starlette(routes=[*readable, *dashboard_routes()])

    async def escaped(scope: Scope, receive: Receive, send: Send) -> None:
        # A name in the address may hold an escaped slash: it is unescaped when it is apart.
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("ascii")}
        await app(scope, receive, send)

    return escaped


def _route(route: ReadoutRoute, readouts: Readouts) -> Route:
    async def sent(request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return _problem(401, "no valid access key")
        query = dict(request.query_params)
        path = {name: unquote(text) for name, text in request.path_params.items()}
        try:
            found = await asyncio.to_thread(route.answer, readouts, path, query)
        except LookupError as problem:
            return _problem(404, str(problem))
        except InvalidParameter as problem:
            return _problem(422, str(problem))
        return Response(msgspec.json.encode(found), media_type="application/json")

    return Route(route.path, sent)


def _problem(status: int, detail: str) -> Response:
    body = {"type": "about:blank", "title": "refused", "status": status, "detail": detail}
    return Response(msgspec.json.encode(body), status, media_type="application/problem+json")


@contextlib.contextmanager
def served(app: ASGIApp) -> Iterator[str]:
    """The address of a server on a free port of this machine, in a thread."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none", loop="asyncio"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
