"""How a column is read: as symbols or as numbers, and what may be learnt from private rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.models.encoding import Raw, Symbols, text
from sfumato.models.numerals import Numerals
from sfumato.tables.cells import read_each
from sfumato.tables.kept_columns import FEWEST_ROWS
from sfumato.tables.missing import MISSING_SYMBOL, Missing, is_missing
from sfumato.tables.problems import BadTable

Ints: TypeAlias = Ints

_MANY = 30
"""A column with more different whole numbers than this is taken for numbers, not for symbols."""
_MOST_UNIQUE = 0.1
"""Largest share of rows whose value no other row has, for symbols that are read off them."""


class Kind(StrEnum):
    """How a column is read."""

    SYMBOLS = "symbols"
    NUMBERS = "numbers"


class Records(StrEnum):
    """Whose rows are learnt from."""

    PUBLIC = "public"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read.

    Attributes:
        kind: Symbols or numbers; found out if not given.
        values: The possible symbols; those that occur if not given.
        interval: The numbers that are told apart; smaller and larger ones are clamped.
        points: How many points stand for them.
        missing: What becomes of a missing value.
    """

    kind: Kind | None = None
    values: tuple[Raw, ...] | None = None
    interval: tuple[float, float] | None = None
    points: int = 200
    missing: Missing = Missing.REFUSE

    def __post_init__(self) -> None:
        if self.missing is Missing.SKIP:
            rule = "be refuse, drop or symbol: skip is for values over time"
            raise InvalidParameter("missing", self.missing.value, rule)

    def cells(self, values: Sequence[Raw]) -> Sequence[Raw]:
        """The values with missing ones as the symbol that stands for them, if one does."""
        if self.missing is not Missing.SYMBOL:
            return values
        return [MISSING_SYMBOL if is_missing(value) else value for value in values]

    def symbols(self, values: Sequence[Raw], source: str) -> Symbols:
        """The alphabet of a column."""
        listed = list(values if self.values is None else self.values)
        if self.missing is Missing.SYMBOL:
            listed.append(MISSING_SYMBOL)
        return Symbols.of(read_each(listed, text, source))


def found_kind(values: Sequence[Raw]) -> tuple[Kind, str]:
    """What a column looks like, and why.

    Examples:
        >>> found_kind(["yes", "no", "yes"])
        (<Kind.SYMBOLS: 'symbols'>, 'they are words')
        >>> found_kind(["$1,200.50", "$900"])
        (<Kind.NUMBERS: 'numbers'>, 'they have fractions')
        >>> found_kind([3, 1, 2, 3, 1, 2] * 5)[0]
        <Kind.SYMBOLS: 'symbols'>
    """
    numerals = Numerals.of(values)
    if numerals is None:
        return Kind.SYMBOLS, "they are words"
    numbers = [numerals.read(value) for value in values]
    if any(not value.is_integer() for value in numbers):
        return Kind.NUMBERS, "they have fractions"
    if len(set(numbers)) > _MANY:
        return Kind.NUMBERS, f"they are more than {_MANY} different whole numbers"
    if len(set(numbers)) > 1 and _unique(numbers) > _MOST_UNIQUE:
        return Kind.NUMBERS, "hardly any two of them are equal"
    return Kind.SYMBOLS, f"they are {_MANY} different whole numbers or fewer"


def symbol_places(where: Symbols, values: Sequence[Raw], source: str) -> Ints:
    """The place of each symbol in its alphabet.

    Raises:
        BadTable: With the row and the rule, never the value.
    """
    symbols = read_each(values, where.encode, source)
    places = np.array([where.alphabet.place(symbol) for symbol in symbols], dtype=np.int64)
    if unknown := np.flatnonzero(places < 0).tolist():
        rule = f"{UnknownSymbol(len(where.alphabet))}; name all that are possible (values)"
        raise BadTable(source, unknown[0] + 1, rule)
    return places


def check_rows(rows: int, source: str) -> None:
    """Refuse to learn a prior from hardly any private rows: it would be those rows."""
    if rows < FEWEST_ROWS:
        rule = (
            f"a prior needs {FEWEST_ROWS} rows to be learnt from the column that is released: "
            "fewer tell their own values; give a prior, or public records (history)"
        )
        raise BadTable(source, None, rule)


def check_symbols(values: Sequence[Raw], source: str) -> None:
    """Refuse symbols that are read off private rows and would give them away by occurring."""
    words = read_each(values, text, source)
    remedy = "name the possible ones (values), or learn them from public records (history)"
    if len(set(words)) == 1:
        raise BadTable(
            source, None, f"all rows hold one value, which would leave as it is: {remedy}"
        )
    if (share := _unique(words)) > _MOST_UNIQUE:
        rule = (
            f"{share:.0%} of the rows hold a value that no other row has, and real values would "
            f"leave: {remedy}"
        )
        raise BadTable(source, None, rule)


def rare_symbols(values: Sequence[Raw]) -> int:
    """How many symbols occur in one row only."""
    return sum(count == 1 for count in Counter(values).values())


def _unique(values: Sequence[object]) -> float:
    return sum(count == 1 for count in Counter(values).values()) / len(values)
