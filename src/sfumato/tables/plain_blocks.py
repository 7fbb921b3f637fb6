"""Blocks of a CSV file that hold nothing but cells: those are read by array.

The strict reader (`csv_rows.py`) says what a file means. A block is read here only if both can but
agree: every byte is a character of a cell, a separator or the end of a line, once the quotes are
off that enclose whole cells.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any

import numpy as np

from sfumato.core import limits


def plain_columns(
    block: bytes, mark: str, width: int, places: Mapping[str, int]
) -> dict[str, Any] | None:
    r"""The cells of whole lines as arrays of text; None where the strict reader must look.

    Args:
        block: Whole lines.
        mark: What separates the cells of a line.
        width: How many cells a line must have.
        places: Which of them are wanted, by their names.

    Examples:
        >>> plain_columns(b"u1,home\nu2,work\n", ",", 2, {"cell": 1})["cell"].to_pylist()
        ['home', 'work']
        >>> plain_columns(b'u1,"home"\n"u2","work"\n', ",", 2, {"cell": 1})["cell"].to_pylist()
        ['home', 'work']
        >>> plain_columns(b'u1,"home, sweet home"\n', ",", 2, {"cell": 1}) is None
        True
    """
    import pyarrow as pa
    import pyarrow.csv

    lines = _plain(block, mark)
    if lines is None:
        return None
    names = list(map(str, range(width)))
    chosen = [names[place] for place in places.values()]
    try:
        table = pyarrow.csv.read_csv(
            pa.py_buffer(lines),
            pyarrow.csv.ReadOptions(
                use_threads=False, column_names=names, block_size=len(lines) + 1
            ),
            pyarrow.csv.ParseOptions(
                delimiter=mark,
                quote_char=False,
                double_quote=False,
                newlines_in_values=False,
                ignore_empty_lines=False,
            ),
            # The bytes were seen to be UTF-8, also in columns that nobody wants.
            pyarrow.csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(chosen, pa.string()),
                include_columns=chosen,
            ),
        )
    except pa.ArrowInvalid:
        return None  # a line with too many or too few cells
    columns = zip(places, table.columns, strict=True)
    return {name: column.combine_chunks() for name, column in columns}


def _plain(block: bytes, mark: str) -> bytes | None:
    """The lines with line feeds alone for ends, if nothing in them but separators has a meaning."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if b'"' in block:
        if not _encloses_cells(block, mark):
            return None
        ended, block = block.endswith(b"\n"), block.replace(b'"', b"")
        # Of a last line that is one empty cell nothing may be left; others leave a blank line.
        if not ended and (not block or block.endswith(b"\n")):
            return None
    return block if is_bare(block) else None


def _encloses_cells(block: bytes, mark: str) -> bool:
    r"""Whether each pair of quotes holds one whole cell, without a separator or a line's end in it.

    Examples:
        >>> _encloses_cells(b'"u1","home"\n', ","), _encloses_cells(b'"a, b"\n', ",")
        (True, False)
    """
    text = np.frombuffer(block, np.uint8)
    quotes = text == ord('"')
    ends = (text == ord(mark)) | (text == ord("\n"))
    places = np.flatnonzero(quotes | ends)
    turns = np.flatnonzero(quotes[places])
    begin, end = turns[::2], turns[1::2]
    if len(begin) != len(end) or (end - begin != 1).any():
        return False
    # What comes before the first byte and after the last one ends a cell, too.
    around = np.concatenate([[True], ends, [True]])
    return bool(around[places[begin]].all() and around[places[end] + 2].all())


def is_bare(block: bytes) -> bool:
    r"""Whether whole lines hold cells, separators and line feeds alone, and each line a row.

    Examples:
        >>> is_bare(b"u1,home\nu2,work\n"), is_bare(b'u1,"home"\n'), is_bare(b"u1,home\r\n")
        (True, False, False)
    """
    odd = b'"' in block or b"\0" in block or b"\r" in block
    # pyarrow takes a byte order mark for the beginning of a file, whose first line is not here.
    if odd or block.startswith((b"\n", codecs.BOM_UTF8)) or b"\n\n" in block:
        return False
    if not block.isascii():
        try:
            block.decode()
        except UnicodeDecodeError:
            return False
    return _longest(block) <= limits.FIELD


def _longest(block: bytes) -> int:
    """Bytes of the longest line: no cell in it has more characters."""
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
    return int(np.diff(ends, prepend=-1, append=len(block)).max())
