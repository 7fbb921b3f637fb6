"""A real server is asked everything, well and badly, and then everything it left is searched.

What no release knows may stand nowhere: not in a reply, a header, a reason to close, the log of
the service, what libraries print, a metric, or a file of the home, a temporary one included. What
a release knows leaves as a released value; beside that it may stand nowhere either.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import re
import socket
import struct
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from sfumato.service.event_log import EventLog, line_writer, routed
from sfumato.service.releases import Opened
from sfumato.service.settings import Limits
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.live_columns import ColumnarRun, ReplyColumns
from tests.oracles.store_rows import changed, folder_rows
from tests.service import secured as running
from tests.service.secured import SYMBOLS, Secured, secured
from tests.service.sentinels import NUMBER, OUTSIDE, TEXTS, files, leaks

BREAKING = {"break": OUTSIDE}
"""A value on which the release breaks, with a message that quotes it."""


class Breaking:
    """A live run with a defect: it breaks on some values, and says all that it holds."""

    def __init__(self, run: ColumnarRun) -> None:
        self._run = run

    def answer_columns(
        self, ids: Sequence[str], streams: Sequence[str], values: Sequence[Any], *times: Any
    ) -> ReplyColumns:
        if BREAKING in values:
            raise RuntimeError(f"cannot use {values} of {ids} and {streams}")
        return self._run.answer_columns(ids, streams, values, *times)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)


# What is asked ------------------------------------------------------------------------------------

RAW = st.sampled_from([OUTSIDE, NUMBER, -NUMBER, [OUTSIDE], {OUTSIDE: NUMBER}, [[OUTSIDE]]])
VALUES = st.one_of(RAW, st.sampled_from(SYMBOLS), st.just(BREAKING), st.none(), st.booleans())
IDS = st.one_of(st.integers(0, 40).map("e{}".format), st.sampled_from(["", "é", "a/b", "x" * 300]))
STREAMS = st.sampled_from(["ann", "bob", "a/b", "é", "x" * 300])
TIMES = st.sampled_from(["2026-05-01T10:00:00", "2026-05-01T09:00:00", "noon", None])
EXTRA = st.dictionaries(st.sampled_from([OUTSIDE, "note", "value2"]), RAW, max_size=1)
EVENTS = st.builds(
    lambda id_, value, time, extra, lacking: {
        name: told
        for name, told in {"id": id_, "value": value, "time": time, **extra}.items()
        if name != lacking
    },
    IDS,
    VALUES,
    TIMES,
    st.one_of(st.just({}), EXTRA),
    st.sampled_from(["", "", "", "id", "value"]),
)
IN_STREAMS = st.builds(lambda event, stream: {**event, "stream": stream}, EVENTS, STREAMS)
KEYS = st.builds(
    lambda streams, note, extra: {"streams": streams, "actions": ["read"], "note": note, **extra},
    st.sampled_from([["ann"], ["*"], []]),
    st.just(""),
    EXTRA,
)
DOCUMENTS = st.one_of(
    EVENTS,
    IN_STREAMS,
    KEYS,
    st.builds(
        lambda events: {"events": events}, st.lists(st.one_of(EVENTS, IN_STREAMS), max_size=4)
    ),
    RAW,
    EXTRA,
)
BODIES = st.one_of(
    DOCUMENTS.map(lambda document: json.dumps(document).encode()),
    st.builds(
        lambda document, at: json.dumps(document).encode()[:-at], DOCUMENTS, st.integers(1, 9)
    ),
    st.sampled_from(
        [
            OUTSIDE.encode(),
            b'{"id": "e1", "value": "' + OUTSIDE.encode() + b'\xff"}',
            b'{"id": "e1", "value": "' + OUTSIDE.encode("utf-16"),
            b"[" * 5_000 + OUTSIDE.encode(),
            b'{"id": "e1", "id": "' + OUTSIDE.encode() + b'", "value": 1}',
            b'{"id": "e1", "value": ' + b"9" * 400 + OUTSIDE.encode() + b"}",
            json.dumps({"id": "e1", "value": OUTSIDE * 5_000}).encode(),
        ]
    ),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "content-type": st.sampled_from(
            ["text/plain", f"application/{OUTSIDE}", "application/json"]
        ),
        "accept": st.sampled_from(["text/html", OUTSIDE, "*/*"]),
        "cookie": st.just(OUTSIDE),
        "x-request-id": st.just(OUTSIDE),
        "content-encoding": st.sampled_from(["gzip", OUTSIDE]),
        "authorization": st.sampled_from([OUTSIDE, f"Bearer {OUTSIDE}", f"Basic {OUTSIDE}", ""]),
    },
)
QUERIES = st.sampled_from(["", "", "", f"?{OUTSIDE}=1", f"?release={OUTSIDE}", f"?limit={OUTSIDE}"])
FUZZ = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def send_events(client: httpx.Client) -> None:
    """Events as they should be, again, and of other values: all kinds of outcomes."""
    for again in (False, True):
        for n in range(30):
            event = {"id": f"good{n}", "value": SYMBOLS[n % len(SYMBOLS)]}
            reply = client.post(f"/v1/streams/s{n % 3}/events", json=event)
            assert reply.status_code == 200 and reply.json()["repeated"] is again
            assert not symbols_beside_released(reply)
    for value, status in (("workSym", 200), (OUTSIDE, 422), (NUMBER, 422), (BREAKING, 503)):
        fresh = {"id": "good0" if status == 200 else "bad", "value": value}
        reply = client.post("/v1/streams/s0/events", json=fresh)
        assert reply.status_code == status, reply.text
        assert leaks(reply.content) == []
        assert symbols_beside_released(reply) == []


def ask_all_routes(client: httpx.Client, seen: Counter[int], examples: int, home: Path) -> None:
    """Every route of the document, and none, with bodies, headers and queries of all kinds."""
    rows = [folder_rows(home)]
    document = client.get("/openapi.json").json()
    routes = sorted(
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    )
    assert ("POST", "/v1/streams/{stream}/events") in routes
    anywhere = st.one_of(
        st.sampled_from([("POST", "/v1/streams/{stream}/events"), ("POST", "/v1/events")]),
        st.sampled_from(routes),
        st.sampled_from([("POST", f"/v1/{OUTSIDE}"), ("PUT", "/v1/events"), ("GET", "//")]),
    )

    @settings(FUZZ, max_examples=examples)
    @given(anywhere, STREAMS, IDS, BODIES, HEADERS, QUERIES)
    def ask(
        route: tuple[str, str],
        stream: str,
        id_: str,
        body: bytes,
        headers: dict[str, str],
        query: str,
    ) -> None:
        method, path = route
        names = {"stream": stream, "event": id_, "key": "0" * 16, "release": "town"}
        for name, told in names.items():
            path = path.replace(f"{{{name}}}", quote(told, safe="") or "-")
        assert "{" not in path, route
        content = None if method in ("GET", "DELETE") else body
        own = {"content-type": "application/json", **headers}
        reply = client.request(method, path + query, content=content, headers=own)
        seen[reply.status_code] += 1
        # The planted defect breaks a group, which is not stored; nothing else may fail.
        broken = reply.status_code == 503 and b'"break"' in body
        assert reply.status_code < 500 or broken, (method, route, reply.status_code)
        assert leaks(reply.content) == leaks(str(reply.headers)) == []
        assert not symbols_beside_released(reply)
        rows.append(folder_rows(home))
        different = changed(rows.pop(0), rows[0])
        if method == "GET" or reply.status_code >= 400:
            # A stream may have got its place, by an event whose form was right.
            placed = "/events" in path and reply.status_code in (403, 409, 422, 503)
            assert set(different) <= ({"streams.db homes"} if placed else set()), (route, different)

    ask()


def symbols_beside_released(reply: httpx.Response) -> list[str]:
    """Symbols that stand in a reply elsewhere than as a released value."""
    try:
        document = reply.json()
    except ValueError:
        return [symbol for symbol in SYMBOLS if symbol in reply.text]
    return [symbol for symbol in SYMBOLS if symbol in json.dumps(without_released(document))]


def without_released(document: Any) -> Any:
    if isinstance(document, list):
        return [without_released(each) for each in document]
    if isinstance(document, dict):
        return {
            name: without_released(told) for name, told in document.items() if name != "released"
        }
    return document


def talk_on_sockets(there: Secured, key: str, seen: Counter[int], examples: int) -> None:
    """Sockets that begin well, and go on in all ways."""
    frames = st.lists(
        st.one_of(
            BODIES,
            BODIES.map(lambda body: body.decode(errors="replace")),
            st.builds(
                lambda event, n: json.dumps({**event, "n": n}), IN_STREAMS, st.integers(1, 3)
            ),
            st.builds(
                lambda events: json.dumps([{**event, "n": n} for n, event in enumerate(events, 1)]),
                st.lists(IN_STREAMS, min_size=1, max_size=3),
            ),
        ),
        max_size=3,
    )
    address = there.url.replace("http", "ws") + "/v1/socket"

    @settings(FUZZ, max_examples=examples)
    @given(frames, st.sampled_from([key, key, OUTSIDE, None]), QUERIES)
    def talk(messages: list[str | bytes], shown: str | None, query: str) -> None:
        first = [] if shown is None else [json.dumps({"key": shown})]
        code, told = asyncio.run(_said(address + query, [*first, *messages]))
        seen[code] += 1
        assert leaks(told) == []

    talk()


async def _said(address: str, messages: list[str | bytes]) -> tuple[int, str]:
    told = ""
    async with connect(address, max_size=None, compression=None) as own:
        try:
            for message in messages:
                await own.send(message)
            async with asyncio.timeout(0.05):
                while True:
                    told += str(await own.recv())
        except (ConnectionClosed, TimeoutError):
            await own.close()
    return own.close_code or 0, told + (own.close_reason or "")


def send_no_requests(there: Secured) -> str:
    """Bytes that are no request, and requests that are too large."""
    address, told = urlsplit(there.url), ""
    value = OUTSIDE.encode()
    for content in (
        value + b"\r\n\r\n",
        b"GET /" + value + b" HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + value + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nx-a: " + value * 4_000 + b"\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: " + value + b"\r\n\r\n",
        b"POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n" + value,
    ):
        with (
            socket.create_connection((address.hostname, address.port), timeout=5.0) as own,
            contextlib.suppress(ConnectionError, TimeoutError),
        ):
            own.sendall(content)
            own.shutdown(socket.SHUT_WR)
            while piece := own.recv(65_536):
                told += piece.decode("latin-1")
    return told


async def _shake_hands_badly(there: Secured) -> None:
    address = there.url.replace("http", "ws")
    for path in (f"/{OUTSIDE}", f"/v1/socket?{OUTSIDE}={OUTSIDE}"):
        headers = {"authorization": f"Bearer {OUTSIDE}", "origin": f"https://{OUTSIDE}"}
        with contextlib.suppress(InvalidHandshake, ConnectionClosed):
            async with connect(address + path, additional_headers=headers) as own:
                await own.recv()


# What is left -------------------------------------------------------------------------------------


def test_the_search_finds_what_is_hidden() -> None:
    for hidden in (
        OUTSIDE.encode(),
        b"ab" + OUTSIDE.encode("utf-16-le"),
        *(base64.b64encode(b"y" * shift + OUTSIDE.encode() + b"tail") for shift in range(6)),
        OUTSIDE.encode().hex().encode(),
        f"value={NUMBER};".encode(),
        b"\0" + struct.pack("<d", NUMBER),
    ):
        assert leaks(b"before " + hidden + b" behind"), hidden
    assert leaks(b"nothing of the kind") == []


@pytest.mark.parametrize("examples", [100, pytest.param(1_500, marks=pytest.mark.slow)])
def test_a_service_that_was_asked_everything_left_no_value_anywhere(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    examples: int,
) -> None:
    temporary, log_file, home = tmp_path / "tmp", tmp_path / "service.log", tmp_path / "home"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    _with_a_defect(monkeypatch)
    log = EventLog(line_writer(log_file), b"a secret of the installation")
    replies, closes = Counter[int](), Counter[int]()
    capfd.readouterr()
    limits = Limits(body_bytes=65_536, header_seconds=1.0, body_seconds=1.0)
    with routed(log, 1), secured(log, home, limits) as there:
        key = there.key()
        headers = {"authorization": f"Bearer {key}"}
        with httpx.Client(base_url=there.url, headers=headers, timeout=30.0) as client:
            send_events(client)
            ask_all_routes(client, replies, examples, home)
            talk_on_sockets(there, key, closes, examples // 3)
            assert leaks(send_no_requests(there)) == []
            asyncio.run(_shake_hands_badly(there))
            metrics = client.get("/metrics").text
    _check_what_was_reached(replies, closes, metrics)
    for told in (metrics, *capfd.readouterr(), log_file.read_text()):
        assert leaks(told) == []
        assert not any(symbol in told for symbol in SYMBOLS)
    found = files(tmp_path)
    assert {path.name for path in found} >= {"registry.db", "city.ledger", "service.log"}
    assert {str(path): leaks(path.read_bytes()) for path in found} == {
        str(path): [] for path in found
    }
    _check_ledger(home / "ledgers" / "city.ledger")


def _with_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = running.city

    def broken(home: Any) -> Any:
        def made() -> Opened:
            opened = sound(home)()
            return replace(opened, run=Breaking(opened.run))

        return made

    monkeypatch.setattr(running, "city", broken)


def _check_what_was_reached(replies: Counter[int], closes: Counter[int], metrics: str) -> None:
    """The fuzz went everywhere: there was something to find."""
    assert {400, 401, 404, 405} <= set(replies), replies
    assert {1007, 1008} <= set(closes) and 1011 not in closes, closes
    for outcome in ("answered", "repeated", "refused_value"):
        assert f'outcome="{outcome}"' in metrics
    conflicts = re.search(r'sfumato_conflicting_retries_total\{release="city"\} (\S+)', metrics)
    assert conflicts is not None and float(conflicts[1]) > 0
    assert "sfumato_group_failures_total" in metrics


def _check_ledger(path: Path) -> None:
    """What a release knows stands in its ledger as a released value, and as nothing else."""
    with LedgerReader(path) as ledger:
        answers = list(ledger.history())
    assert len(answers) >= 30
    for answer in answers:
        beside = repr(astuple(replace(answer, released=None)))
        assert not any(symbol in beside for symbol in (*SYMBOLS, *TEXTS))
