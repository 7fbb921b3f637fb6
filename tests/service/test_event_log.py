"""Nothing that a library logs, and nothing that an exception says, comes out of the event log."""

import asyncio
import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psycopg
import psycopg_pool
import pytest
import uvicorn
import websockets.asyncio.client
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from sfumato.core.errors import InvalidParameter
from sfumato.service.event_log import EventLog, StreamNames, failures, line_writer, routed
from sfumato.service.request_log import RequestLog, note_key

SENTINEL = "qx7Sentinel9zz"
SECRET = b"a secret of the installation"
ALONE = httpx.Limits(max_keepalive_connections=0)  # a server may close after an error


class Lines(list[bytes]):
    """What was written."""

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self]

    @property
    def text(self) -> str:
        return b"".join(self).decode()


@pytest.fixture
def lines() -> Lines:
    return Lines()


@pytest.fixture
def log(lines: Lines) -> EventLog:
    return EventLog(lines.append, SECRET)


class Quoting(Exception):
    """Says what it failed on, as errors of libraries do."""


def quoting(depth: int = 2) -> None:
    held = SENTINEL  # a local of every frame
    if depth:
        quoting(depth - 1)
    raise Quoting(f"cannot use {held}")


@contextmanager
def all_output(capfd: pytest.CaptureFixture[str]) -> Iterator[list[str]]:
    """What reaches the real outputs of the process meanwhile."""
    capfd.readouterr()
    told: list[str] = []
    yield told
    told.extend(capfd.readouterr())


# Events -------------------------------------------------------------------------------------------


def test_a_stream_is_a_digest_that_only_the_installation_can_make(lines: Lines) -> None:
    for secret in (SECRET, SECRET, b"another installation"):
        EventLog(lines.append, secret).event("request", stream="ann")
    tags = [document["stream"] for document in lines.documents]
    assert tags[0] == tags[1] != tags[2] and "ann" not in lines.text
    EventLog(lines.append, SECRET, names=StreamNames.PLAIN).event("request", stream="ann")
    assert lines.documents[-1]["stream"] == "ann"


def test_a_field_that_is_not_on_the_list_is_refused(log: EventLog, lines: Lines) -> None:
    for field in ("value", "body", "path", "detail", "message"):
        with pytest.raises(InvalidParameter) as refused:
            log.event("request", **{field: SENTINEL})  # type: ignore[arg-type]
        assert SENTINEL not in str(refused.value)
    assert lines == []


@given(st.text(max_size=300))
def test_an_event_is_one_line_whatever_a_field_holds(told: str) -> None:
    lines = Lines()
    EventLog(lines.append, SECRET, names=StreamNames.PLAIN).event("x", reason=told, key=told)
    (line,) = lines
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert line.isascii() and json.loads(line)["event"] == "x"


def test_a_failure_is_types_and_places(log: EventLog, lines: Lines) -> None:
    try:
        try:
            quoting()
        except Quoting as first:
            raise ExceptionGroup(SENTINEL, [first, KeyError(SENTINEL)]) from first
    except ExceptionGroup as problem:
        log.event("defect", failure=problem)
    told = lines.documents[0]["failures"]
    assert {each["type"] for each in told} == {"ExceptionGroup", "Quoting", "KeyError"}
    assert any("service/test_event_log.py:" in place for place in told[1]["places"])
    assert SENTINEL not in lines.text


def test_exceptions_that_go_in_circles_are_told_once() -> None:
    one, two = Quoting(SENTINEL), Quoting(SENTINEL)
    one.__context__, two.__context__ = two, one
    assert len(failures(one)) == 2


def test_a_log_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    def full(line: bytes) -> None:
        raise OSError(28, "no space left")

    log = EventLog(full, SECRET)
    log.event("request")
    assert log.lost == 1
    write = line_writer(tmp_path / "service.log")
    for _ in range(2):
        EventLog(write, SECRET).event("request")
    written = tmp_path / "service.log"
    assert len(written.read_bytes().splitlines()) == 2
    assert written.stat().st_mode & 0o777 == 0o600


# Libraries ----------------------------------------------------------------------------------------


@given(
    st.sampled_from(["uvicorn.error", "websockets.server", "psycopg", "starlette", "x.y", "root"]),
    st.sampled_from([logging.DEBUG, logging.INFO, logging.WARNING, logging.CRITICAL]),
    st.sampled_from(["{0}", "> %s {0}", "%d %d {0}", "%(a)s {0}"]),
    st.booleans(),
)
def test_what_a_library_says_does_not_come_out(
    name: str, level: int, form: str, raised: bool
) -> None:
    lines, heard = Lines(), io.StringIO()
    logger = logging.getLogger(name)
    other = logging.StreamHandler(heard)
    logger.addHandler(other)
    was = logger.level
    logger.setLevel(logging.DEBUG)  # some are more careful by themselves
    try:
        with routed(EventLog(lines.append, SECRET), logging.DEBUG):
            try:
                quoting()
            except Quoting as problem:
                told = problem if raised else None
                extra = {"websocket": SENTINEL}
                logger.log(level, form.format(SENTINEL), SENTINEL, exc_info=told, extra=extra)
                logger.log(level, problem, stack_info=True)
        assert SENTINEL not in lines.text and heard.getvalue() == ""
        assert [line["library"] for line in lines.documents] == [name, name]
        assert all("service/test_event_log.py:" in line["place"] for line in lines.documents)
        assert other in logger.handlers  # everything is as it was before
    finally:
        logger.removeHandler(other)
        logger.setLevel(was)


def test_constant_words_of_the_server_are_told_without_their_arguments(
    log: EventLog, lines: Lines, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "uvicorn.error")  # a server of another test may have set it
    with routed(log):
        logging.getLogger("uvicorn.error").info("Started server process [%d]", 1234)
    assert lines.documents[0]["says"] == "Started server process [%d]"
    assert "1234" not in lines.text


def test_what_nobody_catches_does_not_come_out(
    log: EventLog, lines: Lines, capfd: pytest.CaptureFixture[str]
) -> None:
    class Finalized:
        def __del__(self) -> None:
            quoting()

        def __repr__(self) -> str:
            return SENTINEL

    with all_output(capfd) as printed, routed(log, logging.DEBUG):
        thread = threading.Thread(target=quoting)
        thread.start()
        thread.join()
        Finalized()
        sys.excepthook(Quoting, Quoting(SENTINEL), None)
        # Shown as a program would: pytest turns warnings into errors before anybody shows them.
        warnings.showwarning(UserWarning(SENTINEL), UserWarning, "file.py", 1)
        asyncio.run(_forgotten())
    names = [line["event"] for line in lines.documents]
    assert {"unhandled in a thread", "unraisable", "unhandled", "library"} <= set(names)
    assert SENTINEL not in lines.text + "".join(printed)


async def _forgotten() -> None:
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": SENTINEL, "exception": Quoting(SENTINEL)})
    loop.call_soon(quoting)
    await asyncio.sleep(0.01)


def test_a_database_that_fails_is_not_quoted(
    log: EventLog,
    lines: Lines,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("psycopg", "psycopg.pool"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.DEBUG)
    where = f"host={tmp_path} user=u password={SENTINEL} dbname={SENTINEL} connect_timeout=1"
    with all_output(capfd) as printed, routed(log, logging.DEBUG):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(where)
        pool = psycopg_pool.ConnectionPool(where, min_size=1, open=False, reconnect_timeout=0.1)
        pool.open()
        with pytest.raises(psycopg_pool.PoolTimeout):
            pool.getconn(timeout=0.3)
        pool.close()
        log.event("defect", failure=psycopg.errors.UniqueViolation(f"Key (id)=({SENTINEL})"))
    assert any(line.get("library", "").startswith("psycopg") for line in lines.documents)
    assert SENTINEL not in lines.text + "".join(printed)


# A real server ------------------------------------------------------------------------------------


async def _echo(request: Request) -> Response:
    note_key("0123456789abcdef")
    return JSONResponse({"size": len(await request.body())})


async def _broken(request: Request) -> Response:
    raise Quoting(f"{await request.body()!r} {SENTINEL}")


async def _socket(socket: WebSocket) -> None:
    await socket.accept()
    while (text := await socket.receive_text()) != "break":
        await socket.send_text(text)
    raise Quoting(text)


ROUTES = [
    Route("/v1/streams/{stream}/events", _echo, methods=["POST"]),
    Route("/broken/{stream}", _broken, methods=["POST"]),
    WebSocketRoute("/socket", _socket),
]


@contextmanager
def serving(log: EventLog, http: Any, sockets: Any) -> Iterator[str]:
    app = RequestLog(Starlette(routes=ROUTES), log)
    config = uvicorn.Config(
        app, port=0, log_config=None, log_level=5, access_log=True, http=http, ws=sockets
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.005)
            assert thread.is_alive()
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()


async def _talk(where: str) -> None:
    headers = {"Authorization": f"Bearer {SENTINEL}"}
    address = f"ws://{where}/socket?q={SENTINEL}"
    async with websockets.asyncio.client.connect(address, additional_headers=headers) as socket:
        await socket.send(SENTINEL)
        assert await socket.recv() == SENTINEL
        await socket.send("break")
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            await socket.recv()
    with pytest.raises(websockets.exceptions.InvalidStatus):
        await websockets.asyncio.client.connect(f"ws://{where}/{SENTINEL}")


@pytest.mark.parametrize("sockets", ["websockets-sansio"])
@pytest.mark.parametrize("http", ["httptools", "h11"])
def test_a_server_at_its_most_talkative_quotes_nothing(
    lines: Lines, log: EventLog, capfd: pytest.CaptureFixture[str], http: Any, sockets: Any
) -> None:
    with (
        all_output(capfd) as printed,
        routed(log, 1),
        serving(log, http, sockets) as where,
        httpx.Client(base_url=f"http://{where}", limits=ALONE) as client,
    ):
        headers = {"Authorization": SENTINEL, "X-Request-Id": SENTINEL, "Cookie": SENTINEL}
        for path in (f"/v1/streams/{SENTINEL}/events?q={SENTINEL}", f"/broken/{SENTINEL}"):
            reply = client.post(path, content=SENTINEL, headers=headers)
            assert SENTINEL not in reply.text + str(reply.headers)
        client.post(f"/nowhere/{SENTINEL}", content=SENTINEL, headers=headers)
        client.request(SENTINEL[:8], f"/{SENTINEL}")
        asyncio.run(_talk(where))
    assert SENTINEL not in lines.text + "".join(printed)
    requests = [line for line in lines.documents if line["event"] == "request"]
    assert [line["route"] for line in requests[:3]] == [
        "/v1/streams/{stream}/events",
        "/broken/{stream}",
        "(none)",
    ]
    assert [line["status"] for line in requests[:3]] == [200, 500, 404]
    assert requests[0]["key"] == "0123456789abcdef" and requests[0]["bytes_in"] == len(SENTINEL)
    assert requests[1]["failures"][0]["type"] == "Quoting" and requests[1]["level"] == "error"
    assert requests[0]["stream"] == log.stream_name(SENTINEL)
    assert len({line["request"] for line in requests}) == len(requests)
    # The libraries did talk: there was something to keep out.
    assert {"uvicorn.error", "asyncio"} <= {line.get("library") for line in lines.documents}


@pytest.mark.parametrize(("level", "told"), [(50, "critical"), (30, "warning"), (7, "level 7")])
def test_an_event_of_any_level_is_written_under_its_usual_name(level: int, told: str) -> None:
    lines: list[bytes] = []
    EventLog(lines.append, b"secret").event("request", level=level)
    assert json.loads(lines[0])["level"] == told
