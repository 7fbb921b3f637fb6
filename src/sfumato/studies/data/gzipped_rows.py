"""Rows and lines of gzipped files; a file that is not what it should be is refused by its name."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.studies.study import DataFile

_BROKEN = (EOFError, gzip.BadGzipFile, zlib.error, csv.Error, LookupError, ValueError, TypeError)


@contextmanager
def reading(file: DataFile, path: Path) -> Iterator[None]:
    """The time in which a file is read, and nothing is computed from it.

    Raises:
        InvalidParameter: If it is cut, empty, or has other columns or cells; none is quoted.
    """
    try:
        yield
    except SfumatoError:
        raise
    except _BROKEN:
        rule = f"be {file.name}, whole and unchanged: {file.source}"
        raise InvalidParameter("--data", path.name, rule) from None


def gzipped_rows(path: Path, separator: str = ",") -> Iterator[dict[str, str]]:
    """The rows of a table with heads, one after another; at least one."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as text:
        row = None
        for row in csv.DictReader(text, delimiter=separator, strict=True):
            yield row
        if row is None:
            raise EOFError


def gzipped_lines(path: Path) -> Iterator[list[str]]:
    """The words of each line of a text; at least one line."""
    with gzip.open(path, "rt", encoding="utf-8") as text:
        line = None
        for line in text:
            yield line.split()
        if line is None:
            raise EOFError


def finite_number(text: str) -> float:
    """A cell that is a finite number.

    Examples:
        >>> finite_number("2.5")
        2.5
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value
