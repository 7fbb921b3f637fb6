"""A small service that keeps the wire of `docs/design/service.md`: no privacy, but faults."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

KEY = "sfk_a1_secret"


def problem(slug: str, status: int, **others: Any) -> dict[str, Any]:
    about = {"type": f"urn:sfumato:problem:{slug}", "title": slug, "status": status}
    return about | {"detail": "a rule", **others}


class FakeService:
    """Answers every event with the next number of its stream; a known id gets its old answer.

    Attributes:
        faults: What the next requests get instead: a status, `unstored`, or a close code.
        drawn: How often an answer was made for each id: never more than once.
        seen: Every request, in order.
        budget: Answers that a stream may have.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.faults: deque[int | str] = deque()
        self.drawn: Counter[str] = Counter()
        self.answers: dict[str, dict[str, Any]] = {}
        self.values: dict[str, Any] = {}
        self.lengths: Counter[str] = Counter()
        self.seen: list[str] = []
        self.targets: list[str] = []
        self.budget = 1_000_000
        self.batch = 1
        self.waiting: dict[str, list[dict[str, Any]]] = {}

    def reply(self, event: dict[str, Any]) -> dict[str, Any]:
        name, stream = event["id"], event["stream"]
        self.seen.append(name)
        if self.faults and self.faults[0] == "unstored":
            self.faults.popleft()
            return {"status": "refused", "problem": problem("unstored", 503, event=name)}
        if name in self.answers:
            return {"status": "answered", "repeated": True, "answers": [self.answers[name]]}
        if event["value"] == "impossible":
            return {"status": "refused", "problem": problem("value", 422, event=name)}
        if self.lengths[stream] >= self.budget:
            return {"status": "refused", "problem": problem("budget", 403, event=name)}
        held = self.waiting.setdefault(stream, [])
        if all(other["id"] != name for other in held):
            held.append(event)
        if len(held) < self.batch:
            return {"status": "waiting", "missing": self.batch - len(held)}
        return self.release(stream)

    def release(self, stream: str) -> dict[str, Any]:
        made = [self.answer(event) for event in self.waiting.pop(stream)]
        return {"status": "answered", "repeated": False, "answers": made}

    def answer(self, event: dict[str, Any]) -> dict[str, Any]:
        name, stream = event["id"], event["stream"]
        self.drawn[name] += 1
        self.answers[name] = {
            "event": name,
            "stream": stream,
            "sequence": self.lengths[stream],
            "released": f"r{self.lengths[stream]}",
            "outcome": "released",
            "sip": 0.25,
            "ldp": 0.5,
        }
        if "time" in event:
            self.answers[name]["time"] = event["time"]
        self.values[name] = event["value"]
        self.lengths[stream] += 1
        return self.answers[name]

    # Routes ---------------------------------------------------------------------------------------

    async def events(self, request: Request) -> Response:
        self.targets.append(str(request.url))
        if (refused := self._refused(request)) is not None:
            return refused
        body = json.loads(await request.body())
        return JSONResponse({"replies": [self.reply(event) for event in body["events"]]})

    def _refused(self, request: Request) -> Response | None:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            kind = "application/problem+json"
            return JSONResponse(problem("access", 401), 401, media_type=kind)
        if self.faults and isinstance(self.faults[0], int):
            status = int(self.faults.popleft())
            return JSONResponse(problem("fault", status), status, headers={"Retry-After": "0.01"})
        return None

    async def finish(self, request: Request) -> Response:
        stream = request.path_params["stream"]
        return JSONResponse(self.release(stream)) if stream in self.waiting else Response(b"", 204)

    async def event(self, request: Request) -> Response:
        found = self.answers.get(request.path_params["id"])
        if found is None:
            return JSONResponse(problem("unknown", 404), 404)
        return JSONResponse({"status": "answered", "repeated": True, "answers": [found]})

    async def budget_left(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        stream = request.path_params["stream"]
        return JSONResponse({"stream": stream, "answers": self.lengths[stream]})

    async def rules(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {KEY}":
            return JSONResponse(problem("access", 401), 401)
        rules = {"epsilon": 0.25, "method": "optimal"}
        return JSONResponse({"release": "city", "job": "release", "rules": rules, "only": True})

    async def ledger(self, request: Request) -> Response:
        stream = request.path_params["stream"]
        mine = [each for each in self.answers.values() if each["stream"] == stream]
        start = int(request.query_params.get("after", "-1")) + 1
        page = mine[start : start + 2]  # small pages, whatever was asked for
        following = page[-1]["sequence"] if start + 2 < len(mine) else None
        return JSONResponse({"rows": page, "next": following})

    async def socket(self, socket: WebSocket) -> None:
        self.targets.append(str(socket.url))
        await socket.accept()
        if socket.headers.get("authorization") != f"Bearer {KEY}":
            await socket.close(1008)
            return
        try:
            expected = 1
            while True:
                given = json.loads(await socket.receive_text())
                replies = []
                for event in given if isinstance(given, list) else [given]:
                    assert event["n"] == expected
                    expected += 1
                    replies.append({"n": event["n"], **self.reply(event)})
                if self.faults and isinstance(self.faults[0], int):
                    await socket.close(int(self.faults.popleft()))
                    return
                await socket.send_text(json.dumps(replies if len(replies) > 1 else replies[0]))
        except WebSocketDisconnect:
            return

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/events", self.events, methods=["POST"]),
                Route("/v1/rules", self.rules),
                Route("/v1/streams/{stream:path}/finish", self.finish, methods=["POST"]),
                Route("/v1/streams/{stream:path}/events/{id}", self.event),
                Route("/v1/streams/{stream:path}/budget", self.budget_left),
                Route("/v1/streams/{stream:path}/ledger", self.ledger),
                WebSocketRoute("/v1/socket", self.socket),
            ]
        )


@contextmanager
def running(service: FakeService, unix: str | None = None) -> Iterator[int]:
    """The service on a free port of this machine, or on a Unix socket, in a thread."""
    if unix is None:
        listener = socket.create_server(("127.0.0.1", 0))
    else:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(unix)
        listener.listen()
    port = 0 if unix else listener.getsockname()[1]
    settings = uvicorn.Config(service.app(), log_level="critical", ws="websockets-sansio")
    server = uvicorn.Server(settings)
    serve = server.serve([listener])
    worker = threading.Thread(target=lambda: asyncio.run(serve), daemon=True)
    worker.start()
    try:
        yield port
    finally:
        server.should_exit = True
        worker.join()
        listener.close()
