"""Rows in parts that may be answered together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sfumato.stream.input_rows import Row


def without_repeats(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in parts in which no event comes twice: a retry has the answer that left before."""
    part: dict[str, Row] = {}
    for row in rows:
        if row.id in part:
            yield list(part.values())
            part = {}
        part[row.id] = row
    yield list(part.values())


def waves(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in groups with at most one of each stream, in their order."""
    found: list[list[Row]] = []
    seen: dict[str, int] = {}
    for row in rows:
        turn = seen.get(row.stream, 0)
        seen[row.stream] = turn + 1
        if turn == len(found):
            found.append([])
        found[turn].append(row)
    yield from found
