"""What waits in a pipe: whole lines, as soon as they are there."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from sfumato.core import limits

_READ = 1 << 16
"""Bytes taken at a time: what a pipe of Linux holds."""


class Pipe:
    r"""Lines that come when they come.

    Args:
        descriptor: Of the end to read from; it stays open.

    Examples:
        >>> import os
        >>> reading, writing = os.pipe()
        >>> pipe = Pipe(reading)
        >>> _ = os.write(writing, b"u1,home\nu2,work\nu3")
        >>> pipe.lines()
        b'u1,home\nu2,work\n'
        >>> os.close(writing)
        >>> pipe.lines(), pipe.lines()
        (b'u3', b'')
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._held = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._held.clear()

    def lines(self) -> bytes:
        """All whole lines that are there, or the first that comes; at the end the rest, then none.

        A line that is longer than any may be is cut where that shows.
        """
        end = 0
        while not end and len(self._held) <= limits.LINE:
            part = os.read(self._descriptor, _READ)
            if not part:
                break
            end = len(self._held) + part.rfind(b"\n") + 1 if b"\n" in part else 0
            self._held += part
        found = bytes(self._held[: end or len(self._held)])
        del self._held[: len(found)]
        return found
