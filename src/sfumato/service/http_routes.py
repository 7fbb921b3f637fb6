"""All operations under their addresses, as one ASGI application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from starlette.routing import BaseRoute, Router, WebSocketRoute
from starlette.types import Receive, Scope, Send

from sfumato.service.addresses import Addresses
from sfumato.service.application import Application
from sfumato.service.event_routes import EVENT_OPERATIONS
from sfumato.service.health_routes import HEALTH_OPERATIONS
from sfumato.service.openapi import document_operation
from sfumato.service.operations import Endpoint, Operation, problem_result, respond
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.socket_routes import SOCKET_PATH, Sockets

OWN_OPERATIONS = (*EVENT_OPERATIONS, *HEALTH_OPERATIONS)


class Service:
    """The service as an ASGI application.

    Args:
        application: What the routes need.
        operations: All that can be asked, beside the document of it.
        pages: Routes of files, such as the dashboard's.
    """

    def __init__(
        self,
        application: Application,
        operations: Sequence[Operation] = OWN_OPERATIONS,
        pages: Sequence[BaseRoute] = (),
    ) -> None:
        self.application = application
        self.operations = (*operations, document_operation(operations))
        self.ending = False
        self.sockets = Sockets(application)
        methods: dict[str, list[Operation]] = {}
        for one in self.operations:
            methods.setdefault(one.path, []).append(one)
        endpoints = {path: Endpoint(there, application) for path, there in methods.items()}
        self._addresses = Addresses(endpoints)
        socket = WebSocketRoute(SOCKET_PATH, endpoint=cast(Any, self.sockets))
        self._router = Router([socket, *pages], redirect_slashes=False, default=_nothing_here)

    @property
    def addresses(self) -> list[str]:
        """Where there are operations, with names in braces."""
        return self._addresses.templates

    def end(self) -> None:
        """Be ready for nothing more; what was begun is ended by whoever serves this."""
        self.ending = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or a socket."""
        if scope["type"] in ("http", "websocket") and (raw := scope.get("raw_path")):
            # A name in the address may hold an escaped slash: it is unescaped when it is apart.
            scope["path"] = raw.partition(b"?")[0].decode("ascii", "surrogateescape")
        if scope["type"] == "http" and (found := self._addresses.find(scope["path"])) is not None:
            scope["route"], scope["path_params"] = found.route, found.names
            await found.route.endpoint(scope, receive, send)
            return
        await self._router(scope, receive, send)


async def _nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
        return
    refused = HttpProblem(problem("not-found", "there is nothing at this address"))
    await respond(send, problem_result(refused))
