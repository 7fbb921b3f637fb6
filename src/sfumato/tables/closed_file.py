"""Whether a released file holds its columns and nothing else: no other column, no space to hide in.

A line of text can say one row in many ways, and a file can hold more than a reader looks at. What
the program writes for the columns of a certificate is one text; a file that is another one holds
more than was certified.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sfumato.core.verification import Verification
from sfumato.store.attestation import file_digest
from sfumato.tables.columns import write_columns
from sfumato.tables.readers import Table

_TEXTS = ("csv", "jsonl")


def is_canonical(table: Table, columns: Mapping[str, Sequence[Any]]) -> bool | None:
    r"""Whether a file is what the program writes for these columns, byte by byte.

    None of a format that holds more than its cells (Parquet, Arrow), which this cannot tell.

    Args:
        table: The file.
        columns: Its cells as they were read, in their order.

    Examples:
        >>> file = getfixture("tmp_path") / "told.csv"
        >>> _ = file.write_text("answer\nyes\nno\n")
        >>> is_canonical(Table.at(str(file)), {"answer": ["yes", "no"]})
        True
        >>> _ = file.write_text("answer,note\nyes,1\nno,0\n")
        >>> is_canonical(Table.at(str(file)), {"answer": ["yes", "no"]})
        False
    """
    if table.format not in _TEXTS:
        return None
    with tempfile.TemporaryDirectory() as folder:
        again = str(Path(folder) / Path(table.path).name)
        write_columns(replace(table, path=again), columns)
        return file_digest(again) == file_digest(table.path)


def check_file(found: Verification, table: Table, cells: Mapping[str, Sequence[Any]]) -> None:
    """The file holds the columns of the certificate, and nothing beside them."""
    match is_canonical(table, cells):
        case True:
            found.checked.append(f"{found.rows:,} rows of {', '.join(cells)}, and nothing beside")
        case False:
            found.note("table", "the file holds more than its columns, or writes them otherwise")
        case None:
            found.unchecked.append("that the file holds nothing beside its cells: not in Parquet")
