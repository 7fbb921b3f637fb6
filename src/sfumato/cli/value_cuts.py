"""How values become symbols, as `sfumato fit` and `sfumato spark fit` are told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sfumato.cli.options import FLOOR, Options, option

if TYPE_CHECKING:
    from sfumato.stream.fit_model import Cut

RANGE: str | None = option(
    "LOW:HIGH that bins are cut from (LOW:HIGH,LOW:HIGH for a grid); values beyond it are "
    "clipped to it, here and in `release`. Else the range of the history.",
    "--range",
)
UNITS: str = option(
    "What distances are in. `degrees`: --x is longitude and --y latitude, losses are "
    "kilometres along the earth. Any other word is repeated in reports.",
    default="",
)


class Counting(Options):
    """How a history becomes probabilities."""

    smoothing: float = option(
        "Added to the count of every value that was seen to follow another.", default=0.5
    )
    floor: float = FLOOR


class Cells(Options):
    """What numbers and points are cut into."""

    bins: int | None = option("Cut numbers into this many intervals.")
    grid: str | None = option("Cut points into cells, as 32x32; needs --x and --y.")
    x: str | None = option("Column of the first coordinate.")
    y: str | None = option("Column of the second coordinate.")


class CutOptions(Protocol):
    """Options that say which columns hold values, and how they are cut."""

    @property
    def value(self) -> str:
        """Column of the value."""

    @property
    def cells(self) -> Cells:
        """What they are cut into."""

    @property
    def range_(self) -> str | None:
        """What is cut."""

    @property
    def units(self) -> str:
        """What distances are in."""


def value_columns(given: CutOptions) -> tuple[tuple[str, ...], Cut]:
    """The columns of values, and how they become symbols.

    Raises:
        InvalidParameter: If the options do not go together.
    """
    from sfumato.cli.table_output import read_interval

    values, cut = _cells(given)
    spans = given.range_.split(",") if given.range_ else []
    ranges = tuple(read_interval(span) for span in spans)
    return values, replace(cut, ranges=ranges, unit=given.units.strip())


def _cells(given: CutOptions) -> tuple[tuple[str, ...], Cut]:
    from sfumato.core.errors import InvalidParameter
    from sfumato.stream.fit_model import Cut

    cells = given.cells
    x, y, bins, grid = cells.x, cells.y, cells.bins, cells.grid
    if grid is None:
        if x is not None or y is not None:
            raise InvalidParameter("--x and --y", (x, y), "come with --grid")
        return (given.value,), Cut(bins=bins)
    columns, _, rows = grid.lower().partition("x")
    if not (columns.isdigit() and rows.isdigit() and x and y) or bins is not None:
        rule = "be like 32x32, with --x and --y and no --bins"
        raise InvalidParameter("--grid", grid, rule)
    return (x, y), Cut(columns=int(columns), rows=int(rows))
