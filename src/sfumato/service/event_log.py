"""What the service says of itself: one JSON object a line, and never a value.

An event has a name and fields of a fixed list: who asked (the id of a key), what (the template of
a route, not its path), how it went and how long it took. A stream is somebody's name, so it is
written as a keyed digest, the same for the same stream, unless names were asked for.

Libraries write to the standard `logging`, and what they write quotes bodies, headers and
parameters. Of them a line says who wrote, how urgently and from where; their words are left out
but for a few that are constants (`routed`). An exception is its type and the places it came
through: what it says may quote what it failed on.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

import msgspec

from sfumato.core.errors import InvalidParameter
from sfumato.core.keyed_digest import KeyedDigest
from sfumato.service.log_lines import GatheredLines

Field: TypeAlias = str | int | float | bool | None
FIELDS = frozenset(
    (
        "action",
        "address",
        "bytes_in",
        "bytes_out",
        "count",
        "error",
        "events",
        "head",
        "host",
        "key",
        "key_file",
        "method",
        "milliseconds",
        "node",
        "number",
        "operation",
        "peer",
        "place",
        "port",
        "problem",
        "process",
        "reason",
        "release",
        "request",
        "route",
        "seconds",
        "sockets",
        "status",
        "tls",
        "version",
        "waiting",
    )
)
"""What an event may say, beside its name, its stream and an exception."""
_PLAIN = re.compile(r"[\w .,:;/{}<>()\[\]=@+-]{0,200}", re.ASCII)
_TAG_LETTERS, _DEEPEST, _MOST_PLACES, _PATH_PARTS = 16, 8, 40, 3
_encode = msgspec.json.Encoder().encode
_LONGEST = 1_000
"""Letters of a sentence."""
_CONSTANTS = frozenset(
    (
        "Application shutdown complete.",
        "Application startup complete.",
        "Application startup failed. Exiting.",
        "Exception in ASGI application\n",
        "Finished server process [%d]",
        "Invalid HTTP request received.",
        "Shutting down",
        "Started server process [%d]",
        "Waiting for application shutdown.",
        "Waiting for application startup.",
        "Waiting for background tasks to complete. (CTRL+C to force quit)",
        "Waiting for connections to close. (CTRL+C to force quit)",
    )
)
"""Words of libraries that hold nothing but themselves; arguments are never filled in."""


class StreamNames(StrEnum):
    """How streams are named in the log.

    Attributes:
        DIGEST: By a keyed digest.
        PLAIN: As they are.
    """

    DIGEST = "digest"
    PLAIN = "plain"


@lru_cache(maxsize=64)
def _level(level: int) -> str:
    return logging.getLevelName(level).lower()


class EventLog:
    """Writes events, one line each; safe in threads.

    Attributes:
        lost: How many lines could not be written: a service does not end because its log is full.

    Examples:
        >>> lines = []
        >>> moment = lambda: datetime(2026, 5, 1, tzinfo=UTC)
        >>> log = EventLog(lines.append, b"a secret of the installation", clock=moment)
        >>> log.event("request", status=200, route="/v1/streams/{stream}/events", stream="ann")
        >>> print(lines[0].decode())
        {"time":"2026-05-01T00:00:00Z","level":"info","event":"request","status":200,...}
    """

    def __init__(
        self,
        write: Callable[[bytes], object],
        secret: bytes,
        *,
        names: StreamNames = StreamNames.DIGEST,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Write to somewhere.

        Args:
            write: Takes a whole line.
            secret: Of the digests of streams.
            names: How streams are named.
            clock: Says what time it is.
        """
        self._write, self._names, self._clock = write, names, clock
        self._digest = KeyedDigest(secret)
        self.lost = 0

    def gathered(self) -> EventLog:
        """The same log for what happens in the event loop very often: see `GatheredLines`."""
        made = copy.copy(self)
        made._write = GatheredLines(self._write, self._lose)
        return made

    def _lose(self, lines: int) -> None:
        self.lost += lines

    def event(
        self,
        name: str,
        *,
        level: int = logging.INFO,
        stream: str | None = None,
        failure: BaseException | None = None,
        says: str | None = None,
        **fields: Field,
    ) -> None:
        """Write an event.

        Args:
            name: What happened.
            level: How urgent it is, as `logging` has it.
            stream: Whose stream it is about.
            failure: What went wrong: its type and places are written, not what it says.
            says: A sentence of the program's own, which quotes no value by rule.
            fields: Some of `FIELDS`; those that are None are left out.

        Raises:
            InvalidParameter: If a field is not one of them: a value could leave by it.
        """
        if not FIELDS.issuperset(fields):
            rule = "be on the list of what a log may say"
            raise InvalidParameter("field of an event", "another", rule)
        line: dict[str, Any] = {
            "time": self._clock(),
            "level": _level(level),
            "event": name,
        }
        for field, told in fields.items():
            if told is not None:
                line[field] = _plain(told) if isinstance(told, str) else told
        if stream is not None:
            line["stream"] = self.stream_name(stream)
        if failure is not None:
            line["failures"] = failures(failure)
        if says is not None:
            line["says"] = says[:_LONGEST]
        self._put(line)

    def stream_name(self, stream: str) -> str:
        """A stream as the log names it."""
        match self._names:
            case StreamNames.PLAIN:
                return stream
            case StreamNames.DIGEST:
                name = stream.encode(errors="surrogatepass")
                return self._digest(name)[: _TAG_LETTERS // 2].hex()

    def record(self, record: logging.LogRecord) -> None:
        """Write what a library logs: who, how urgently, from where; not what it says."""
        line: dict[str, Any] = {
            "time": self._clock(),
            "level": record.levelname.lower(),
            "event": "library",
            "library": record.name,
            "place": _place(record.pathname, record.lineno),
        }
        if isinstance(record.msg, str) and record.msg in _CONSTANTS:
            line["says"] = record.msg.strip()
        elif record.name.startswith("sfumato."):  # messages of our own quote no value, by rule
            line["says"] = record.getMessage()
        if isinstance(record.exc_info, tuple) and record.exc_info[1] is not None:
            line["failures"] = failures(record.exc_info[1])
        self._put(line)

    def _put(self, line: dict[str, Any]) -> None:
        try:
            self._write(_encode(line) + b"\n")
        except (OSError, ValueError):  # a full disk, a reader that went away, a closed file
            self._lose(1)


def _plain(told: str) -> str:
    """A text that cannot break a line or a terminal; one of another kind is not repeated."""
    return told if _PLAIN.fullmatch(told) is not None else "(unprintable)"


def failures(problem: BaseException) -> list[dict[str, Any]]:
    """An exception and those it came from: types and places, outermost first.

    Examples:
        >>> try:
        ...     int("a person's value")
        ... except ValueError as problem:
        ...     print(failures(problem)[0]["type"], "person" in str(failures(problem)))
        ValueError False
    """
    told: list[dict[str, Any]] = []
    waiting: list[BaseException | None] = [problem]
    seen: set[int] = set()
    while waiting and len(told) < _DEEPEST:
        each = waiting.pop(0)
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        told.append({"type": type(each).__qualname__, "places": _places(each.__traceback__)})
        waiting += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
    return told


def _places(trace: TracebackType | None) -> list[str]:
    found: list[str] = []
    while trace is not None:
        found.append(_place(trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return found[-_MOST_PLACES:]


def _place(path: str, line: int) -> str:
    # The end of a path tells which file it is; its beginning tells whose machine.
    return f"{'/'.join(Path(path).parts[-_PATH_PARTS:])}:{line}"


class _Quiet(logging.Handler):
    """Hands what libraries log to the event log."""

    def __init__(self, log: EventLog) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        self._log.record(record)


@contextmanager
def routed(log: EventLog, level: int = logging.INFO) -> Iterator[None]:
    """Everything that libraries, threads and finalizers say goes to the event log meanwhile.

    A server must not set up logging of its own then (uvicorn: `log_config=None`).
    """
    handler = _Quiet(log)
    root = logging.getLogger()
    found = [each for each in root.manager.loggerDict.values() if isinstance(each, logging.Logger)]
    before = [(each, each.handlers[:], each.propagate, each.level) for each in (root, *found)]
    hooks = (sys.excepthook, threading.excepthook, sys.unraisablehook)
    others = (logging.lastResort, logging.raiseExceptions)
    try:
        for each, *_ in before:
            each.handlers[:], each.propagate = [], True
        root.handlers[:] = [handler]
        root.setLevel(level)
        # A handler that fails would print the arguments of the call, whatever they are.
        logging.lastResort, logging.raiseExceptions = handler, False
        logging.captureWarnings(True)
        sys.excepthook = lambda kind, problem, trace: log.event(
            "unhandled", level=logging.CRITICAL, failure=problem
        )
        threading.excepthook = lambda told: log.event(
            "unhandled in a thread", level=logging.ERROR, failure=told.exc_value
        )
        sys.unraisablehook = lambda told: log.event(
            "unraisable", level=logging.ERROR, failure=told.exc_value
        )
        yield
    finally:
        logging.captureWarnings(False)
        logging.lastResort, logging.raiseExceptions = others
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        for each, handlers, propagate, was in before:
            each.handlers[:], each.propagate = handlers, propagate
            each.setLevel(was)


def line_writer(path: str | Path | None) -> Callable[[bytes], object]:
    """Where lines go: a file for its owner alone, which grows; standard error if none is named.

    A line is one call of the system, so that lines of two threads do not run together.
    """
    if path is None:
        return lambda line: os.write(2, line)
    way = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, way, 0o600)
    return lambda line: os.write(handle, line)
