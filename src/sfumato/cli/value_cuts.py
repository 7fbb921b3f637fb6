"""How values become symbols, as `sfumato fit` and `sfumato spark fit` are told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from sfumato.cli.options import option

if TYPE_CHECKING:
    from sfumato.stream.fit_model import Cut

BINS: int | None = option("Cut numbers into this many intervals.")
GRID: str | None = option("Cut points into cells, as 32x32; needs --x and --y.")
X: str | None = option("Column of the first coordinate.")
Y: str | None = option("Column of the second coordinate.")
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


class CutOptions(Protocol):
    """Options that say which columns hold values, and how they are cut."""

    @property
    def value(self) -> str:
        """Column of the value."""

    @property
    def bins(self) -> int | None:
        """Bins of equal width."""

    @property
    def grid(self) -> str | None:
        """Cells of a grid."""

    @property
    def x(self) -> str | None:
        """Column of the first coordinate."""

    @property
    def y(self) -> str | None:
        """Column of the second coordinate."""

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

    x, y, bins = given.x, given.y, given.bins
    if given.grid is None:
        if x is not None or y is not None:
            raise InvalidParameter("--x and --y", (x, y), "come with --grid")
        return (given.value,), Cut(bins=bins)
    columns, _, rows = given.grid.lower().partition("x")
    if not (columns.isdigit() and rows.isdigit() and x and y) or bins is not None:
        rule = "be like 32x32, with --x and --y and no --bins"
        raise InvalidParameter("--grid", given.grid, rule)
    return (x, y), Cut(columns=int(columns), rows=int(rows))
