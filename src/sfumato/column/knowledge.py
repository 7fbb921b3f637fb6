"""What is known of a column before it is released: its possible values and their probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from sfumato.column.column_spec import Kind
from sfumato.column.feature_prior import FeaturePrior
from sfumato.column.number_error import TrueNumbers
from sfumato.core import portable
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.models.encoding import Raw, Symbols, Unreadable, number
from sfumato.models.numerals import PLAIN, Numerals
from sfumato.models.prior_sets import PriorSet
from sfumato.noise.lattice import Lattice
from sfumato.tables.cells import read_each
from sfumato.tables.headers import no_column
from sfumato.tables.pass_through import Columns, Groups
from sfumato.tables.problems import BadTable


class Records(StrEnum):
    """Whose rows are learnt from: public ones, or the very rows that are released."""

    PUBLIC = "public"
    PRIVATE = "private"

    @property
    def source(self) -> str:
        """What messages call the table."""
        return "frame" if self is Records.PRIVATE else "history"


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """The possible values of a column and what is known of them.

    Attributes:
        where: The alphabet, or the points that stand for numbers.
        priors: One row for everybody, for each group, or for each person. A given one is as it was
            given. Empty while it waits for the features of people.
        source: Where the knowledge comes from, in words.
        owner: The prior of each row of a table; None if all share one, or while it waits.
        within: The set that the prior is known to lie in; None if it is known itself.
        predictor: What turns features into priors; None if there is none.
        features: The columns it needs.
        groups: The groups that have priors of their own; None if there are none.
        numbers: Where true numbers lie, for each prior; empty for symbols.
        numerals: How numbers are written.
        floor: Share of an estimated prior that is spread evenly; 0 if it was given.
        records: Whether it was learnt from the very rows that are released.
        remarks: What a careful user should know.
    """

    where: Symbols | Lattice
    priors: Floats
    source: str
    owner: Ints | None = None
    within: PriorSet | None = None
    predictor: FeaturePrior | None = None
    features: tuple[str, ...] = ()
    groups: Groups | None = None
    numbers: tuple[TrueNumbers, ...] = ()
    numerals: Numerals = PLAIN
    floor: float = 0.0
    records: Records = Records.PUBLIC
    remarks: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """Whether values are symbols or numbers."""
        return Kind.SYMBOLS if isinstance(self.where, Symbols) else Kind.NUMBERS

    @property
    def alphabet(self) -> Alphabet:
        """The symbols; only for a column of them."""
        if isinstance(self.where, Symbols):
            return self.where.alphabet
        raise InvalidParameter("kind", self.kind.value, "be symbols")

    @property
    def waits(self) -> bool:
        """Whether priors depend on the people that are released."""
        return self.owner is None and (self.predictor is not None or self.groups is not None)

    @property
    def shares(self) -> Floats:
        """The share of the rows that each prior is about."""
        if self.owner is None:
            return np.ones(1)
        return np.asarray(np.bincount(self.owner, minlength=len(self.priors)) / self.owner.size)

    @property
    def mean(self) -> Floats:
        """The distribution of the values of all people."""
        return np.asarray(portable.dot(self.shares, self.priors))

    def of_people(self, columns: Columns, source: str) -> Knowledge:
        """The same for the people of a table: each with the prior of his features or group."""
        if self.predictor is not None:
            priors = self.predictor.priors(feature_cells(columns, self.features, source))
            return replace(self, priors=priors, owner=np.arange(len(priors)))
        if self.groups is not None:
            return replace(self, owner=self.groups.owners(columns, source))
        return self

    def places(self, values: Sequence[Raw], source: str) -> Ints:
        """The place of each value.

        Raises:
            BadTable: With the row and the rule, never the value.
        """
        if isinstance(self.where, Lattice):
            return self.where.places(self.read_numbers(values, source))
        return symbol_places(self.where, values, source)

    def read_numbers(self, values: Sequence[Raw], source: str) -> list[float]:
        """Values as numbers."""
        return read_each(values, self.numerals.read, source)


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


def feature_cells(columns: Columns, names: Sequence[str], source: str) -> Columns:
    """The features of people; texts that are all numbers are: a CSV file holds nothing but text."""
    return {name: _typed(column_cells(columns, name, source)) for name in names}


def column_cells(columns: Columns, name: str, source: str) -> Sequence[Raw]:
    """The cells of a column that must be there, and not be empty."""
    if name not in columns:
        raise no_column(source, name, list(columns))
    if len(columns[name]) == 0:
        raise BadTable(source, None, "the table must have at least one row")
    return columns[name]


def is_number(label: Raw) -> bool:
    """Whether a label is a finite number."""
    try:
        number(label)
    except Unreadable:
        return False
    return True


def _typed(cells: Sequence[Raw]) -> Sequence[Raw]:
    given = [cell for cell in cells if cell is not None and cell != ""]
    if not given or not all(isinstance(cell, str) and is_number(cell) for cell in given):
        return cells
    return [None if cell is None or cell == "" else float(cell) for cell in cells]
