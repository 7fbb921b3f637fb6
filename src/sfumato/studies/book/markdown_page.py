"""A page as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sfumato.studies.book.blocks import (
    Badge,
    Block,
    Cell,
    Code,
    Heading,
    Link,
    Listing,
    Notice,
    Paragraph,
    Picture,
    Stack,
    Table,
)


def markdown_page(blocks: Sequence[Block]) -> bytes:
    r"""The blocks under each other.

    Examples:
        >>> markdown_page([Heading("Bits", 1), Table(["a|b"], [[Badge("agrees")]])])
        b'# Bits\n\n| a\\|b |\n|---|\n| **agrees** |\n'
    """
    return ("\n\n".join(_block(block) for block in blocks) + "\n").encode()


def _block(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"{'#' * level} {_plain(text)}"
        case Paragraph(text):
            return _plain(text)
        case Notice(text):
            return f"> **{_plain(text)}**"
        case Table():
            return _table(block)
        case Listing(items):
            return "\n".join(f"- {_cell(item)}" for item in items)
        case Picture(name=name, caption=caption):
            return f"![{_plain(caption)}]({name})"
        case _:
            assert_never(block)


def _table(table: Table) -> str:
    rule = "|".join("---:" if table.numeric and place else "---" for place in _places(table))
    rows = [table.columns, *table.rows]
    lines = [
        "| " + " | ".join(_cell(cell).replace("|", r"\|") for cell in row) + " |" for row in rows
    ]
    return "\n".join([lines[0], f"|{rule}|", *lines[1:]])


def _places(table: Table) -> range:
    return range(len(table.columns))


def _cell(cell: Cell) -> str:
    match cell:
        case Link(text, target):
            return f"[{_plain(text)}]({target})"
        case Code(text):
            return f"`{text}`"
        case Badge(text):
            return f"**{_plain(text)}**"
        case Stack(parts):
            return "<br>".join(_cell(part) for part in parts)
        case str():
            return _plain(cell).replace("\n", "<br>")
        case _:
            assert_never(cell)


def _plain(text: str) -> str:
    """Letters that would begin markup are letters."""
    for letter in "*_<`":
        text = text.replace(letter, f"\\{letter}")
    return text
