"""One operation of the service: what it reads, what it may reply, and who may ask.

The table of operations is the routes and the OpenAPI document at once: neither can drift from the
other. An endpoint does what all operations have in common, in this order: who asks, how much room
there is, the body, its form; then the handler; then one reply, whatever happened.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from starlette.types import Receive, Scope, Send

from sfumato.service.application import Application, Visitor
from sfumato.service.bodies import check_words, decode
from sfumato.service.http_bodies import read_body
from sfumato.service.problems import PROBLEM_MEDIA, HttpProblem, Problem, defect, of_body, problem
from sfumato.service.release_scope import Reach, query_in_scope

JSON_MEDIA = b"application/json"
_encode = msgspec.json.Encoder().encode
# Nothing of a reply is for other sites, for caches or for guesses of a browser.
_SAFE = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation without query parameters."""


class Call(msgspec.Struct, frozen=True):
    """One request, as a handler gets it.

    Attributes:
        application: The parts of the service.
        visitor: Who asks; None where nobody is asked who he is.
        path: Names in the address.
        query: Query parameters, of the type that the operation says.
        body: The body, of the type that the operation says.
    """

    application: Application
    visitor: Visitor | None
    path: Mapping[str, str]
    query: Any
    body: Any = None

    @property
    def known(self) -> Visitor:
        """Who asks, where an access key is needed."""
        assert self.visitor is not None
        return self.visitor


class Result(msgspec.Struct, frozen=True):
    """What a handler replies: a value of a documented type, or bytes of another media type."""

    content: Any = None
    status: int = 200
    media: bytes = JSON_MEDIA
    headers: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of an address.

    Attributes:
        name: Tells it from all others, in metrics and in the document.
        method: GET, POST or DELETE.
        path: The address, with names in braces.
        summary: What it does.
        handler: Does it.
        action: What an access key must allow; None if none is needed.
        instead: Another action that is as good.
        query: Its query parameters.
        body: The type of its body, or several in a tuple; None if it has none.
        replies: The types of its replies by status, in the same way.
        problems: Kinds of problems that it may have besides those of all.
        precheck: Refuses before a body is read.
        size: Which limit its body has.
        media: Of its replies.
        decoder: Reads the body.
        own: Whether its handler keeps to the releases of a key by itself.
    """

    name: str
    method: str
    path: str
    summary: str
    handler: Callable[[Call], Awaitable[Result]]
    action: str | None = None
    instead: str | None = None
    query: type[msgspec.Struct] = NoQuery
    body: Any = None
    replies: Mapping[int, Any] = field(default_factory=lambda: {200: None})
    problems: Sequence[str] = ()
    precheck: Callable[[Call], None] | None = None
    size: str = "body_bytes"
    media: str = "application/json"
    decoder: Callable[[bytes], Any] | None = None
    own: bool = False

    @property
    def reach(self) -> Reach:
        """Of which releases it tells; what names none is about all of them."""
        named = "release" in self.query.__struct_fields__
        return Reach.OWN if self.own else Reach.NAMED if named else Reach.ALL

    def decoded(self, content: bytes) -> Any:
        """The body, checked."""
        if self.decoder is not None:
            return self.decoder(content)
        return decode(msgspec.json.Decoder(self.body), content)


class Endpoint:
    """All methods of one address, as an ASGI application."""

    def __init__(self, operations: Sequence[Operation], application: Application) -> None:
        self._application = application
        self._operations = {one.method: one for one in operations}
        self._allow = ", ".join(sorted(self._operations))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = time.perf_counter()
        operation = self._operations.get(scope["method"])
        name = "none" if operation is None else operation.name
        try:
            if operation is None:
                detail = f"the methods here are {self._allow}"
                raise HttpProblem(problem("method", detail), {"allow": self._allow})
            result = await self._result(operation, scope, receive)
        except HttpProblem as refused:
            result = problem_result(refused)
        except Exception as error:
            self._application.log.event(
                "defect", level=logging.ERROR, operation=name, failure=error
            )
            result = problem_result(HttpProblem(defect()))
        await respond(send, result)
        self._application.metrics.request(name, result.status, time.perf_counter() - begun)

    async def _result(self, operation: Operation, scope: Scope, receive: Receive) -> Result:
        application = self._application
        headers = header_fields(scope)
        visitor = None
        if operation.action is not None:
            visitor = application.gate.admit(text_of(headers, b"authorization"), peer_of(scope))
        path = {name: _name(name, text) for name, text in scope["path_params"].items()}
        enough = visitor is None or (operation.instead and visitor.may(operation.instead))
        if operation.action is not None and visitor is not None and not enough:
            # A stream is in the address; of those in a body the handler asks for each.
            visitor.require(operation.action, path.get("stream"))
        for name, text in path.items():
            _check_name(name, text)
        check_accept(headers, operation.media)
        query = parsed_query(scope["query_string"], operation.query)
        if visitor is not None and operation.action is not None:
            query = query_in_scope(visitor, query, operation.reach, operation.action)
        call = Call(application, visitor, path, query)
        if operation.precheck is not None:
            operation.precheck(call)
        if operation.body is None:
            return await operation.handler(call)
        flight, limits = application.flight, application.limits
        most: int = getattr(limits, operation.size)
        size = announced_size(headers, most)
        flight.board(size)
        try:
            content = await read_body(receive, most, limits.body_seconds)
            call = Call(application, visitor, path, query, operation.decoded(content))
            return await operation.handler(call)
        finally:
            flight.land(size)


def _name(name: str, text: str) -> str:
    """A name in the address, unescaped; bytes that are no text must not become one by guessing.

    Put in the place of each, a mark for what cannot be read would make one person of several.

    Raises:
        HttpProblem: 400.
    """
    if text.isascii() and "%" not in text:
        return text
    try:
        return unquote_to_bytes(text.encode("utf-8", "surrogateescape")).decode()
    except UnicodeError:
        rule = "be UTF-8"
    raise HttpProblem(problem("malformed", f"{name} must {rule}", field=name, rule=rule))


def _check_name(name: str, text: str) -> None:
    if not 1 <= len(text) <= 256:
        rule = "have 1 to 256 letters"
        raise HttpProblem(problem("malformed", f"{name} must {rule}", field=name, rule=rule))
    check_words(name, [text])


# Headers and query --------------------------------------------------------------------------------


def header_fields(scope: Scope) -> dict[bytes, bytes]:
    """The headers of a request; of one that comes twice the last."""
    return dict(scope["headers"])


def text_of(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    """A header as text."""
    value = headers.get(name)
    return None if value is None else value.decode("latin-1")


def peer_of(scope: Scope) -> str | None:
    """The address that a request came from."""
    client = scope.get("client")
    return None if client is None else str(client[0])


def check_accept(headers: Mapping[bytes, bytes], media: str) -> None:
    """Refuse who wants another kind of reply.

    Raises:
        HttpProblem: 406.
    """
    asked = headers.get(b"accept")
    if asked is None or b"*/*" in asked:
        return
    kind = media.partition(";")[0]
    wanted = {
        part.partition(b";")[0].strip().lower().decode("latin-1") for part in asked.split(b",")
    }
    if not wanted & {kind, f"{kind.partition('/')[0]}/*"}:
        raise HttpProblem(problem("accept", f"the reply is {kind}", field="Accept"))


def announced_size(headers: Mapping[bytes, bytes], most: int) -> int:
    """How long the body will be, or may become if that is not said.

    Raises:
        HttpProblem: 413 if it is too long, 415 if it is no JSON.
    """
    media = headers.get(b"content-type", b"").partition(b";")
    charset = media[2].strip().lower().replace(b'"', b"")
    if media[0].strip().lower() != JSON_MEDIA or charset not in (b"", b"charset=utf-8"):
        raise HttpProblem(problem("media-type", "the body must be application/json, in UTF-8"))
    if headers.get(b"content-encoding", b"identity").lower() != b"identity":
        raise HttpProblem(problem("media-type", "the body must not be compressed"))
    length = headers.get(b"content-length")
    if length is None or not length.isdigit():
        return most
    if len(length) > 18 or int(length) > most:
        raise HttpProblem(problem("too-large", f"the body must have at most {most:,} bytes"))
    return int(length)


def parsed_query(text: bytes, kind: type[msgspec.Struct]) -> Any:
    """Query parameters, checked: none twice, none that is unknown.

    Raises:
        HttpProblem: 400.
    """
    if not text and (usual := _without_query(kind)) is not None:
        return usual
    try:
        pairs = parse_qsl(
            text.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=bool(text),
            max_num_fields=32,
            errors="strict",
        )
    except ValueError:
        detail = "the query must be name=value&..., in UTF-8"
        raise HttpProblem(problem("query", detail)) from None
    told = dict(pairs)
    if len(told) < len(pairs):
        raise HttpProblem(problem("query", "a query parameter must not come twice"))
    for value in told.values():
        check_words("query", [value], "query")
    known = _parameters(kind)
    if not set(known).issuperset(told):
        # The name that is not known is the asker's, and may be anything: the others are told.
        names = ", ".join(known) or "none"
        rule = f"be one of those known here: {names}"
        raise HttpProblem(problem("query", f"each query parameter must {rule}", rule=rule))
    try:
        return msgspec.convert(told, kind, strict=False)
    except msgspec.ValidationError as error:
        found = of_body(error)
    field = None if found.field is None else found.field.removeprefix("$.")
    detail = found.detail.removeprefix("$.")
    raise HttpProblem(problem("query", detail, field=field, rule=found.rule))


@lru_cache
def _parameters(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The names of query parameters; types are not looked through again at each request."""
    return tuple(one.encode_name for one in msgspec.structs.fields(kind))


@lru_cache
def _without_query(kind: type[msgspec.Struct]) -> msgspec.Struct | None:
    """The parameters of who gives none; None if some must be given."""
    try:
        return msgspec.convert({}, kind)
    except msgspec.ValidationError:
        return None


# Replies ------------------------------------------------------------------------------------------


def problem_result(refused: HttpProblem) -> Result:
    """A problem as a reply."""
    headers = dict(refused.headers)
    if refused.problem.status == 401:
        headers.setdefault("www-authenticate", "Bearer")
    return Result(refused.problem, refused.problem.status, PROBLEM_MEDIA, headers)


def refused_with(document: Problem) -> Result:
    """A problem that is about the event that was asked."""
    return Result(document, document.status, PROBLEM_MEDIA)


async def respond(send: Send, result: Result) -> None:
    """Send a reply."""
    body = b"" if result.status == 204 else result.content
    if not isinstance(body, bytes):
        body = _encode(body)
    headers = [(b"content-length", b"%d" % len(body)), *_SAFE]
    if result.status != 204:
        headers.append((b"content-type", result.media))
    if result.headers:
        told = result.headers.items()
        headers += [(name.encode(), value.encode("latin-1")) for name, value in told]
    await send({"type": "http.response.start", "status": result.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def in_time(future: asyncio.Future[Any], seconds: float) -> Any:
    """What a future brings; who waits longer is told that it will be there when he asks again.

    Raises:
        HttpProblem: 503.
    """
    late = list[bool]()

    def give_up() -> None:
        late.append(future.cancel())

    timer = asyncio.get_running_loop().call_later(seconds, give_up)
    try:
        return await future
    except asyncio.CancelledError:
        asking = asyncio.current_task()
        if late != [True] or (asking is not None and asking.cancelling()):
            raise  # the asker went away: nobody is told anything
        detail = "no answer in time; what was asked may be answered yet: ask again with the same id"
    finally:
        timer.cancel()
    raise HttpProblem(problem("unstored", detail), {"retry-after": "1"})
