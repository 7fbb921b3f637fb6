"""What a page is made of, whatever it is written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that names what follows; level 1 is the page itself."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Plain sentences."""

    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """What a reader must not miss."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads somewhere; in a cell of a table, or of a list."""

    text: str
    target: str


@dataclass(frozen=True, slots=True)
class Code:
    """A command."""

    text: str


@dataclass(frozen=True, slots=True)
class Badge:
    """A verdict; its text is also its kind."""

    text: str


@dataclass(frozen=True, slots=True)
class Stack:
    """Links or commands under each other in one cell."""

    parts: Sequence[Link | Code]


Cell = str | Link | Code | Badge | Stack


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells.

    Attributes:
        columns: Heads.
        rows: Cells.
        numeric: Whether all columns but the first hold numbers, and stand to the right.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    numeric: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """Items under each other."""

    items: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture beside the page.

    Attributes:
        file: Where its pixels are while the page is written.
        name: Of the file beside the page.
        caption: What it shows.
    """

    file: Path
    name: str
    caption: str


Block = Heading | Paragraph | Notice | Table | Listing | Picture
