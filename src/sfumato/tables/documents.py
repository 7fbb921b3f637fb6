"""Small documents that are read as a whole: numbers, matrices, rules."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

from sfumato.core import limits
from sfumato.core.errors import InvalidParameter


def read_document(name: str, path: str | Path) -> bytes:
    """The bytes of a file, if there are not too many.

    Args:
        name: What messages call it: the option that named it.
        path: The file.
    """
    if not os.path.isfile(path):
        raise InvalidParameter(name, str(path), "name a file; there is none")
    size = os.path.getsize(path)
    if size > limits.DOCUMENT:
        rule = f"name a file of at most {limits.DOCUMENT:,} bytes"
        raise InvalidParameter(name, str(path), rule)
    with Path(path).open("rb") as file:
        return file.read(size)


def read_text(name: str, path: str | Path) -> str:
    """The text of a file; a byte order mark is dropped."""
    try:
        content = read_document(name, path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidParameter(name, str(path), "name a file of text in UTF-8") from None
    if "\0" in content:
        raise InvalidParameter(name, str(path), "name a file of text, without NUL characters")
    return content


def read_rows(name: str, path: str | Path) -> list[list[str]]:
    r"""The rows of a small CSV file, as they stand there; empty lines are none.

    Examples:
        >>> path = getfixture("tmp_path") / "loss.csv"
        >>> _ = path.write_text("0,1\n\n1,0\n")
        >>> read_rows("--loss", path)
        [['0', '1'], ['1', '0']]
    """
    try:
        rows = list(csv.reader(io.StringIO(read_text(name, path), newline=""), strict=True))
    except csv.Error as problem:
        raise InvalidParameter(name, str(path), f"hold well-formed CSV ({problem})") from None
    return [row for row in rows if row]
