"""Bodies as they arrive: no longer than allowed, in time, and in as few copies as there can be."""

from __future__ import annotations

import asyncio

from starlette.types import Message, Receive

from sfumato.service.problems import HttpProblem, problem


async def read_body(receive: Receive, most: int, seconds: float) -> bytes:
    """The whole body of a request.

    Args:
        receive: Where its parts come from.
        most: Bytes that it may have.
        seconds: In which it must be there: who sends a byte now and then holds no room for long.

    Raises:
        HttpProblem: 413 if it is longer, 408 if it takes longer, 400 if the asker went away.
    """
    parts, size, more = list[bytes](), 0, True
    try:
        async with asyncio.timeout(seconds):
            while more and size <= most:
                message = _still_there(await receive())
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                more = message.get("more_body", False)
    except TimeoutError:
        raise _late() from None
    return _within(parts[0] if len(parts) == 1 else b"".join(parts), most)


def _still_there(message: Message) -> Message:
    if message["type"] == "http.disconnect":
        raise HttpProblem(problem("malformed", "the asker went away before the body had come"))
    return message


def _late() -> HttpProblem:
    headers = {"connection": "close"}  # the rest of the body must not be taken for a request
    return HttpProblem(problem("timeout", "the body did not come in time"), headers)


def _within(body: bytes, most: int) -> bytes:
    if len(body) > most:
        headers = {"connection": "close"}
        detail = f"the body must have at most {most:,} bytes"
        raise HttpProblem(problem("too-large", detail), headers)
    return body
