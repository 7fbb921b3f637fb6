"""What is known of a column before it is released: its possible values and their probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from sfumato.column.column_priors import AnyPrior, Learnt, number_priors, symbol_priors
from sfumato.column.column_reading import (
    Kind,
    Reading,
    Records,
    check_rows,
    check_symbols,
    found_kind,
    symbol_places,
)
from sfumato.column.features import FeaturePrior
from sfumato.column.number_error import TrueNumbers
from sfumato.column.prior_files import is_number, read_prior
from sfumato.column.prior_sets import PriorSet
from sfumato.core.alphabet import Alphabet, Label
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.models.encoding import Raw, Symbols
from sfumato.models.mixture import GaussianMixture
from sfumato.models.numerals import PLAIN, Numerals
from sfumato.noise.lattice import Lattice
from sfumato.tables.cells import read_each
from sfumato.tables.headers import no_column
from sfumato.tables.kept_columns import Groups
from sfumato.tables.missing import MISSING_SYMBOL, Missing
from sfumato.tables.problems import BadTable

Floats: TypeAlias = Floats
Ints: TypeAlias = Ints
Columns: TypeAlias = Mapping[str, Sequence[Raw]]

FEATURES = "features:"
LEARNT_PRIORS = ("estimate", "mixture")


@dataclass(frozen=True, slots=True, eq=False)
class Known:
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
        return np.asarray(self.shares @ self.priors)

    def of_people(self, columns: Columns, source: str) -> Known:
        """The same for the people of a table: each with the prior of his features or group."""
        if self.predictor is not None:
            told = {name: _typed(_column(columns, name, source)) for name in self.features}
            priors = self.predictor.priors(told)
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
            return self.where.places(self.read(values, source))
        return symbol_places(self.where, values, source)

    def read(self, values: Sequence[Raw], source: str) -> list[float]:
        """Values as numbers."""
        return read_each(values, self.numerals.read, source)


@dataclass(frozen=True, slots=True)
class Learning:
    """What is learnt from.

    Attributes:
        source: The records, for messages.
        records: Public ones, or the very rows that are released.
        linked: Columns that leave beside the released one and may tell of it.
    """

    source: str
    records: Records = Records.PUBLIC
    linked: tuple[str, ...] = ()

    @property
    def private(self) -> bool:
        """Whether the rows that are released are learnt from."""
        return self.records is Records.PRIVATE


def know(
    column: str, records: Columns, prior: AnyPrior, reading: Reading, learning: Learning
) -> Known:
    """Learn what is known of a column from records of it, or take what is given.

    Args:
        column: Its name.
        records: Public records, or the table that is to be released.
        prior: Where the knowledge comes from.
        reading: How values are read.
        learning: What the records are.
    """
    values = reading.cells(_column(records, column, learning.source))
    if isinstance(prior, str) and prior.startswith(FEATURES):
        names = feature_names(prior)
        _check_linked(names, learning)
        return _predicted(column, records, prior, reading, learning)
    if isinstance(prior, str) and prior not in LEARNT_PRIORS:
        prior = read_prior(prior)
    given = not isinstance(prior, str)
    if given and learning.linked:
        rule = "be declared independent: a prior that was given holds for everybody"
        raise InvalidParameter("keep", list(learning.linked), rule)
    if learning.private and not given:
        check_rows(len(values), learning.source)
    groups = _groups(records, learning)
    kind, why = _kind(values, prior, reading)
    if kind is Kind.SYMBOLS:
        if learning.private and reading.values is None and _reads_symbols(prior):
            check_symbols(values, learning.source)
        learnt = symbol_priors(values, prior, reading, groups, learning.source)
    else:
        learnt = _numbers(values, prior, reading, groups, learning.source)
    told = () if why is None else (f"the column was read as {kind.value}: {why}",)
    known = _known(learnt, groups, told)
    return known if given else replace(known, records=learning.records)


def know_each(
    column: str, columns: Columns, prior: AnyPrior, reading: Reading, learning: Learning
) -> Known:
    """Priors from features for the people of one table, each learnt without his own row."""
    _check_linked(feature_names(prior), learning)
    where, names, features, known = _for_features(column, columns, prior, reading, learning)
    priors = FeaturePrior.cross_fitted(features, known, alphabet=where.alphabet)
    return Known(
        where,
        priors,
        f"features {', '.join(names)}",
        owner=np.arange(len(priors)),
        floor=_FLOOR,
        records=learning.records,
        remarks=(_public(names),),
    )


_FLOOR = 1e-3
"""What `FeaturePrior` spreads evenly unless told."""


def _known(learnt: Learnt, groups: Groups | None, remarks: tuple[str, ...]) -> Known:
    return Known(
        learnt.where,
        learnt.priors,
        learnt.source,
        within=learnt.within,
        groups=groups,
        numbers=learnt.numbers,
        numerals=learnt.numerals,
        floor=learnt.floor,
        remarks=(*learnt.remarks, *remarks),
    )


def _groups(records: Columns, learning: Learning) -> Groups | None:
    if not learning.linked:
        return None
    groups = Groups.of(records, learning.linked)
    groups.check_sizes(learning.source)
    return groups


def _kind(values: Sequence[Raw], prior: AnyPrior, reading: Reading) -> tuple[Kind, str | None]:
    """How a column is read, and why where nobody said so."""
    if reading.kind is not None:
        return reading.kind, None
    if isinstance(prior, GaussianMixture) or prior == "mixture" or reading.interval:
        return Kind.NUMBERS, None
    if prior != "estimate" or reading.values is not None:
        return Kind.SYMBOLS, None
    return found_kind([value for value in values if value != MISSING_SYMBOL] or values)


def _reads_symbols(prior: AnyPrior) -> bool:
    """Whether possible symbols are read off the records."""
    return isinstance(prior, str | PriorSet)


def _numbers(
    values: Sequence[Raw], prior: AnyPrior, reading: Reading, groups: Groups | None, source: str
) -> Learnt:
    if reading.missing is Missing.SYMBOL:
        rule = "be refuse or drop for numbers: symbol is for symbols only (kind: symbols)"
        raise InvalidParameter("missing", reading.missing.value, rule)
    numerals = Numerals.of(values) or PLAIN
    read = read_each(values, numerals.read, source)
    learnt = number_priors(read, prior, reading, groups)
    if numerals.plain:
        return learnt
    remark = f"numbers were read as written, with {numerals.decimal!r} before the fraction"
    return replace(learnt, numerals=numerals, remarks=(*learnt.remarks, remark))


def _check_linked(names: Sequence[str], learning: Learning) -> None:
    if others := [name for name in learning.linked if name not in names]:
        rule = "be among the features of the prior, or declared independent"
        raise InvalidParameter("keep", others, rule)


def _predicted(
    column: str, records: Columns, prior: AnyPrior, reading: Reading, learning: Learning
) -> Known:
    where, names, features, known = _for_features(column, records, prior, reading, learning)
    learnt = FeaturePrior.fit(features, known, alphabet=where.alphabet)
    return Known(
        where,
        np.empty((0, len(where.alphabet))),
        f"features {', '.join(names)}",
        predictor=learnt,
        features=names,
        floor=learnt.floor,
        records=learning.records,
        remarks=(_public(names),),
    )


def _for_features(
    column: str, records: Columns, prior: AnyPrior, reading: Reading, learning: Learning
) -> tuple[Symbols, tuple[str, ...], Columns, list[Label]]:
    names, source = feature_names(prior), learning.source
    if not names or column in names:
        rule = "name columns after features:, and not the one that is released"
        raise InvalidParameter("prior", prior, rule)
    if reading.kind is Kind.NUMBERS or reading.interval is not None:
        raise InvalidParameter("prior", prior, "not come with numbers: features predict symbols")
    values = reading.cells(_column(records, column, source))
    if learning.private:
        check_rows(len(values), source)
        if reading.values is None:
            check_symbols(values, source)
    where = reading.symbols(values, source)
    labels = [where.alphabet.labels[place] for place in symbol_places(where, values, source)]
    features = {name: _typed(_column(records, name, source)) for name in names}
    return where, names, features, labels


def _typed(cells: Sequence[Raw]) -> Sequence[Raw]:
    """Numbers where all texts of a column are: a CSV file holds nothing but text."""
    given = [cell for cell in cells if cell is not None and cell != ""]
    if not given or not all(isinstance(cell, str) and is_number(cell) for cell in given):
        return cells
    return [None if cell is None or cell == "" else float(cell) for cell in cells]


def feature_names(prior: Any) -> tuple[str, ...]:
    """The columns that a prior is predicted from.

    Examples:
        >>> feature_names("features: age,school")
        ('age', 'school')
    """
    if not isinstance(prior, str) or not prior.startswith(FEATURES):
        return ()
    names = (name.strip() for name in prior.removeprefix(FEATURES).split(","))
    return tuple(name for name in names if name)


def _public(names: Sequence[str]) -> str:
    return f"each prior is predicted from {', '.join(names)}, which are taken as public"


def _column(columns: Columns, name: str, source: str) -> Sequence[Raw]:
    if name not in columns:
        raise no_column(source, name, list(columns))
    if len(columns[name]) == 0:
        raise BadTable(source, None, "the table must have at least one row")
    return columns[name]
