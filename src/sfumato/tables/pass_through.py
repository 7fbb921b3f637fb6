"""What leaves beside released values is knowledge of whoever receives them.

A column that is kept may tell of one that is released: a species of its petals, a school of its
grades. A certificate that ignores it is about an adversary who closes his eyes. So the rows are
grouped by the columns that are kept, and what is promised is promised within every group; or the
user declares a column independent, which is recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw
from sfumato.tables.cells import is_missing
from sfumato.tables.frames import Written, column_list, exactly
from sfumato.tables.problems import BadTable

Columns: TypeAlias = Mapping[str, Sequence[Raw]]
Cell: TypeAlias = tuple[str, str]
Key: TypeAlias = tuple[Cell, ...]

FEWEST_ROWS = 20
"""Knowledge that is learnt from fewer private rows is those rows; a choice."""


@dataclass(frozen=True, slots=True)
class PassThrough:
    """The columns that leave as they are.

    Attributes:
        columns: All of them, in their order.
        linked: Those that may tell of what is released: the rows are grouped by them.
        independent: Those that were declared to tell nothing of it.

    Examples:
        >>> PassThrough.of(["home", "id"], ["id"], ["income"])
        PassThrough(columns=('home', 'id'), linked=('home',), independent=('id',))
    """

    columns: tuple[str, ...] = ()
    linked: tuple[str, ...] = ()
    independent: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, keep: Sequence[str], independent: Sequence[str], released: Sequence[str]
    ) -> PassThrough:
        """The columns to keep, those among them that tell nothing, and those that are released."""
        columns, declared = column_list("keep", keep), column_list("independent", independent)
        for name in columns:
            if name in released:
                raise InvalidParameter("keep", name, "not name a column that is released")
        for name in declared:
            if name not in columns:
                raise InvalidParameter("independent", name, "name columns that are kept")
        linked = tuple(name for name in columns if name not in declared)
        return cls(tuple(columns), linked, tuple(declared))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a certificate says of them."""
        remarks = []
        if self.linked:
            remarks.append(
                f"{_listed(self.linked)} {_verbs(self.linked, 'are')} knowledge: what is promised "
                f"holds within every group of equal values of {_them(self.linked)}"
            )
        if self.independent:
            remarks.append(
                f"{_listed(self.independent)} {_verbs(self.independent, 'were')} declared to tell "
                "nothing of it: otherwise more is told than this says"
            )
        return tuple(remarks)


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows grouped by their values in some columns, exactly as they leave: "" is not "NaN".

    Attributes:
        columns: The columns.
        keys: The cells of each group, sorted: what each means, and how it is written.
        owner: The group of each row.

    Examples:
        >>> table = {"home": ["b", "a", "b", "b"], "age": [3, 4, 3, 3.0]}
        >>> found = Groups.of(table, ["home", "age"])
        >>> found.owner, found.sizes
        (array([2, 0, 2, 1]), array([1, 1, 2]))
    """

    columns: tuple[str, ...]
    keys: tuple[Key, ...]
    owner: Ints

    @classmethod
    def of(cls, table: Columns, columns: Sequence[str]) -> Groups:
        """Group the rows of a table; a missing value is a value like any other."""
        of_row = _keys(table, columns)
        keys = tuple(sorted(set(of_row)))
        place = {key: number for number, key in enumerate(keys)}
        return cls(tuple(columns), keys, np.array([place[key] for key in of_row], dtype=np.int64))

    @property
    def sizes(self) -> Ints:
        """How many rows each group has."""
        return np.bincount(self.owner, minlength=len(self.keys)).astype(np.int64)

    def rows(self, group: int) -> Ints:
        """The rows of a group."""
        return np.flatnonzero(self.owner == group).astype(np.int64)

    def check_sizes(self, source: str) -> None:
        """Refuse groups that are too small to learn anything from but their very rows."""
        if small := int(np.count_nonzero(self.sizes < FEWEST_ROWS)):
            rule = (
                f"every group of equal values of {_listed(self.columns)} must have {FEWEST_ROWS} "
                f"rows to learn from, and {small:,} of {len(self.keys):,} have fewer: keep fewer "
                "or coarser columns, or declare independent those that tell nothing of what is "
                "released (independent)"
            )
            raise BadTable(source, None, rule)

    def owners(self, table: Columns, source: str) -> Ints:
        """The groups of the rows of another table.

        A value may be written otherwise there (1, 1.0 and "1"), if each table writes it in one way:
        then how it is written tells nothing.

        Raises:
            BadTable: If a row belongs to none; the row is named, its values are not.
        """
        place = {key: number for number, key in enumerate(self.keys)}
        cells = [
            _translated(table[name], recorded)
            for name, recorded in zip(self.columns, zip(*self.keys, strict=True), strict=True)
        ]
        owners = [place.get(key, -1) for key in zip(*cells, strict=True)]
        if -1 in owners:
            rule = f"its values of {_listed(self.columns)} must occur in the records learnt from"
            raise BadTable(source, owners.index(-1) + 1, rule)
        return np.array(owners, dtype=np.int64)


def check_spellings(table: Columns, columns: Sequence[str], source: str) -> None:
    """Refuse kept columns that write one value in several ways, where groups are not formed.

    Raises:
        BadTable: With the column, never the value.
    """
    for name in columns:
        if any(len(ways) > 1 for ways in _ways(map(_key, table[name])).values()):
            rule = (
                f"column {name!r} must write every value in one way, as it leaves: 1 and 1.0, or "
                "an empty cell and NaN, are told apart by whoever receives it"
            )
            raise BadTable(source, None, rule)


def _translated(cells: Sequence[Raw], recorded: Iterable[Cell]) -> list[Cell | None]:
    """Cells as records wrote them; None for one that they do not know, or not without doubt."""
    own, there = [_key(cell) for cell in cells], set(recorded)
    here, ways = _ways(own), _ways(there)

    def translated(cell: Cell) -> Cell | None:
        if cell in there:
            return cell
        theirs = ways.get(cell[0], set())
        return next(iter(theirs)) if len(theirs) == len(here[cell[0]]) == 1 else None

    return [translated(cell) for cell in own]


def _ways(cells: Iterable[Cell]) -> dict[str, set[Cell]]:
    """In which ways each value is written."""
    ways: dict[str, set[Cell]] = {}
    for cell in cells:
        ways.setdefault(cell[0], set()).add(cell)
    return ways


def _keys(table: Columns, columns: Sequence[str]) -> list[Key]:
    return list(zip(*([_key(cell) for cell in table[name]] for name in columns), strict=True))


def _key(cell: Raw) -> Cell:
    """What a cell means, and exactly how it leaves."""
    exact = cell.exact if isinstance(cell, Written) else exactly(cell)
    plain = cell.cell if isinstance(cell, Written) else cell
    return _text(plain), exact


def _text(cell: Raw) -> str:
    """Equal for equal values, however a file wrote them: 1, 1.0 and "1"."""
    if is_missing(cell):
        return ""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)


def _verbs(names: Sequence[str], second: str) -> str:
    if len(names) > 1:
        return f"leave beside it and {second}"
    return f"leaves beside it and {_SINGULAR[second]}"


_SINGULAR = {"are": "is", "were": "was"}


def _them(names: Sequence[str]) -> str:
    return "them" if len(names) > 1 else "it"
