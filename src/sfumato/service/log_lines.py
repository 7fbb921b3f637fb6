"""Lines of a log that are written together, once in every turn of the event loop.

Each call of the system costs as much as making several lines, and lets other threads take the
interpreter meanwhile: a group of events that is answered together would pay both for each of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence

_AT_ONCE = 4_096
"""Bytes that even a pipe takes as a whole (`PIPE_BUF`), so that lines of two writers stay apart."""


class GatheredLines:
    r"""Takes lines in the event loop, and writes them before it waits for anything.

    A process that is killed loses the lines of one turn of its loop at most.

    Args:
        write: Takes whole lines.
        lost: Told how many could not be written.

    Examples:
        >>> written = []
        >>> async def two() -> None:
        ...     lines = GatheredLines(written.append, print)
        ...     lines(b"one\n")
        ...     lines(b"two\n")
        ...     await asyncio.sleep(0)
        >>> asyncio.run(two())
        >>> written
        [b'one\ntwo\n']
    """

    def __init__(self, write: Callable[[bytes], object], lost: Callable[[int], None]) -> None:
        self._write, self._lost = write, lost
        self._waiting: list[bytes] = []

    def __call__(self, line: bytes) -> None:
        """Take a line; in the event loop only."""
        self._waiting.append(line)
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        lines, self._waiting = self._waiting, []
        for part in _parts(lines):
            try:
                self._write(b"".join(part))
            except (OSError, ValueError):  # a full disk, a reader that went away, a closed file
                self._lost(len(part))


def _parts(lines: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Lines in the order given, as many at once as may be written together.

    Examples:
        >>> [len(part) for part in _parts([b"x" * 3_000, b"x" * 1_000, b"x" * 5_000, b"x"])]
        [2, 1, 1]
    """
    part, size = list[bytes](), 0
    for line in lines:
        if part and size + len(line) > _AT_ONCE:
            yield part
            part, size = [], 0
        part.append(line)
        size += len(line)
    if part:
        yield part
