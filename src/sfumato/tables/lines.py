"""Lines of a text table, decoded with limits, and whole blocks of them as bytes."""

from __future__ import annotations

import gzip
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from sfumato.core import limits
from sfumato.tables.problems import BadTable

STANDARD = "-"


def opened(path: str) -> IO[bytes]:
    """A file, a compressed one, or standard input."""
    if path == STANDARD:
        if sys.stdin is None:
            raise BadTable(STANDARD, None, "standard input must be readable; it is closed")
        return io.BufferedReader(io.FileIO(sys.stdin.fileno(), closefd=False))
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return Path(path).open("rb")


class Lines:
    """Lines of UTF-8 text, with limits: no NUL, no line and no row without an end.

    Attributes:
        row: The data row that the next line belongs to, for messages.
    """

    def __init__(self, file: IO[bytes], path: str) -> None:
        self._file = file
        self._path = path
        self._encoding = "utf-8-sig"
        self._held: list[str] = []
        self._block = io.BytesIO()
        self._left = 0
        self.row = 1
        self._length = 0

    def begin_row(self, row: int) -> None:
        """The next line is the first of a row; a quoted field may take more than one."""
        self.row, self._length = row, 0

    def hold(self, line: str) -> None:
        """Give a line back: it comes again next."""
        self._held.append(line)

    def block(self, size: int) -> bytes:
        """Whole lines of about so many bytes, not looked at; none at the end of the file.

        A line that is longer than any may be is cut where that shows.
        """
        block = self._file.read(size)
        return block if block.endswith(b"\n") else block + self._file.readline(limits.LINE + 1)

    def give_back(self, block: bytes) -> None:
        """Give a block back: its lines come next."""
        self._block, self._left = io.BytesIO(block), len(block)

    @property
    def in_block(self) -> bool:
        """Whether the next line is one of a block that was given back."""
        return self._left > 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self._held:
            return self._held.pop()
        if self._left:
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
            raise BadTable(self._path, self.row, "the text must be UTF-8") from None
        self._encoding = "utf-8"
        if "\0" in text:
            raise BadTable(self._path, self.row, "the text must not hold NUL characters")
        return text
