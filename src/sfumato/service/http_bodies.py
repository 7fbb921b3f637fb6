"""Bodies as they arrive: no longer than allowed, in time, and in as few copies as there can be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Generator
from functools import partial
from typing import Any

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
    begun = _Begun(receive())
    if begun.found is not None and not begun.found.get("more_body", False):
        return _within(_still_there(begun.found).get("body", b""), most)
    parts, size = list[bytes](), 0
    try:
        async with asyncio.timeout(seconds):
            message = await begun
            while True:
                parts.append(_still_there(message).get("body", b""))
                size += len(parts[-1])
                if not message.get("more_body", False) or size > most:
                    break
                message = await receive()
    except TimeoutError:
        raise _late() from None
    return _within(b"".join(parts), most)


class _Begun:
    """A message that may be there already: then nobody needs a clock, as with most bodies.

    Attributes:
        found: The message, if it was there; else it is awaited.
    """

    def __init__(self, message: Awaitable[Message]) -> None:
        self.found: Message | None = None
        self._steps = message.__await__()
        try:
            self._awaited = next(self._steps)
        except StopIteration as there:
            self.found = there.value

    def __await__(self) -> Generator[Any, Any, Message]:
        """Go on from where it was begun."""
        if self.found is not None:
            return self.found
        return (yield from self._rest())

    def _rest(self) -> Generator[Any, Any, Message]:
        awaited = self._awaited
        while True:
            try:
                yield awaited
            except BaseException as problem:
                step = partial(self._steps.throw, problem)
            else:
                step = partial(next, self._steps)
            try:
                awaited = step()
            except StopIteration as there:
                return there.value  # type: ignore[no-any-return]


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
