"""Rows of a gzipped table."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from pathlib import Path


def gzipped_rows(path: Path, separator: str = ",") -> Iterator[dict[str, str]]:
    """The rows of a table with heads, one after another."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as text:
        yield from csv.DictReader(text, delimiter=separator)
