"""Lines of a text table, decoded with limits, and whole blocks of them as bytes."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Self, cast

from sfumato.core import limits
from sfumato.tables.pipes import Pipe
from sfumato.tables.problems import BadTable

STANDARD = "-"
_LARGEST_BLOCK = 1 << 24
_GUESSED_LINE = 16
"""Bytes of a line, before any was seen."""


def opened(path: str) -> IO[bytes]:
    """A file, or a compressed one."""
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return Path(path).open("rb")


def lines_of(path: str) -> Lines:
    """The lines of a file, a compressed one, or standard input, as a context."""
    if path != STANDARD:
        return Lines(opened(path), path)
    if sys.stdin is None:
        raise BadTable(STANDARD, None, "standard input must be readable; it is closed")
    return Lines(Pipe(sys.stdin.fileno()), path)


class Lines:
    """Lines of UTF-8 text, with limits: no NUL, no line and no row without an end.

    Attributes:
        row: The data row that the next line belongs to, for messages.
        live: Whether lines come when they come: what is there must not wait for what is not.
    """

    def __init__(self, file: IO[bytes] | Pipe, path: str) -> None:
        self._file = file
        self._path = path
        self._encoding = "utf-8-sig"
        self._held: list[str] = []
        self._block = io.BytesIO()
        self._left = 0
        self.live = isinstance(file, Pipe)
        self.row = 1
        self._length = 0

    def __enter__(self) -> Self:
        self._file.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.__exit__(kind, failure, traceback)

    def begin_row(self, row: int) -> None:
        """The next line is the first of a row; a quoted field may take more than one."""
        self.row, self._length = row, 0

    def hold(self, line: str) -> None:
        """Give a line back: it comes again next."""
        self._held.append(line)

    def blocks(self, rows: int) -> Iterator[bytes]:
        """Whole lines, about so many at a time, not looked at; of a pipe, those that are there.

        A line that is longer than any may be is cut where that shows.
        """
        size = rows * _GUESSED_LINE
        while block := self._whole_lines(min(max(size, 1), _LARGEST_BLOCK)):
            size = len(block) * rows // (block.count(b"\n") or 1)
            yield block

    def _whole_lines(self, size: int) -> bytes:
        if isinstance(self._file, Pipe):
            left, self._left = self._left, 0
            return self._block.read() if left else self._file.lines()
        block = self._file.read(size)
        return block if block.endswith(b"\n") else block + self._file.readline(limits.LINE + 1)

    def give_back(self, block: bytes) -> None:
        """Give a block back: its lines come next."""
        self._block, self._left = io.BytesIO(block), len(block)

    @property
    def in_block(self) -> bool:
        """Whether the next line is one of a block that was given back, or waits in a pipe."""
        return self._left > 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._held:
            return self._held.pop()
        if not self._left and isinstance(self._file, Pipe):
            self.give_back(self._file.lines())
        if self._left or isinstance(self._file, Pipe):
            line = self._block.readline(limits.LINE + 1)
            self._left -= len(line)
        else:
            line = self._file.readline(limits.LINE + 1)
        if not line:
            raise StopIteration
        self._length += len(line)
        if self._length > limits.LINE:
            rule = f"a row must have at most {limits.LINE:,} bytes, or a quote is never closed"
            raise BadTable(self._path, self.row, rule)
        try:
            text = line.decode(self._encoding)
        except UnicodeDecodeError:
            raise BadTable(
                self._path, self.row, "the text must be UTF-8 (iconv can convert it)"
            ) from None
        self._encoding = "utf-8"
        if "\0" in text:
            raise BadTable(self._path, self.row, "the text must not hold NUL characters")
        return text
