"""What is known of a column before it is released: its possible values and their probabilities."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sfumato import _checks
from sfumato.alphabet import Alphabet, Label
from sfumato.errors import CorruptData, InvalidParameter, UnknownSymbol
from sfumato.files import load
from sfumato.formats.documents import read_rows
from sfumato.formats.headers import no_column
from sfumato.formats.problems import BadTable
from sfumato.jobs.fit import read_each
from sfumato.mechanisms.lattice import Lattice
from sfumato.models.encoding import Raw, Symbols, Unreadable, number, text
from sfumato.models.features import FeaturePrior
from sfumato.models.mixture import GaussianMixture
from sfumato.models.prior import Prior
from sfumato.models.prior_sets import PriorSet

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Columns: TypeAlias = Mapping[str, Sequence[Raw]]
AnyPrior: TypeAlias = "str | Prior | PriorSet | GaussianMixture | Mapping[Any, float]"
"""`estimate`, `mixture`, `features:a,b`, the name of a file, or the knowledge itself."""

FEATURES = "features:"
_MANY = 100
"""A column with more different numbers than this is taken for numbers, not for symbols."""
_SMOOTHING = 0.5
_FLOOR = 1e-6
_TAIL = 0.005
"""Share of the values beyond each end of an interval that nobody gave."""


class Kind(StrEnum):
    """How a column is read."""

    SYMBOLS = "symbols"
    NUMBERS = "numbers"


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The possible values of a column and what is known of them.

    Attributes:
        where: The alphabet, or the points that stand for numbers.
        priors: One row for everybody, or one row per person; full support. Empty while it waits
            for the features of people.
        source: Where the knowledge comes from, in words.
        within: The set that the prior is known to lie in; None if it is known itself.
        predictor: What turns features into priors; None if all share one.
        features: The columns it needs.
        remarks: What a careful user should know.
    """

    where: Symbols | Lattice
    priors: Floats
    source: str
    within: PriorSet | None = None
    predictor: FeaturePrior | None = None
    features: tuple[str, ...] = ()
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
    def mean(self) -> Floats:
        """The distribution of the values of all people."""
        return np.asarray(self.priors.mean(axis=0))

    def of_people(self, columns: Columns, source: str) -> Known:
        """The same with the priors of the people of a table."""
        if self.predictor is None:
            return self
        told = {name: _typed(_column(columns, name, source)) for name in self.features}
        return replace(self, priors=self.predictor.priors(told))

    def places(self, values: Sequence[Raw], source: str) -> Ints:
        """The place of each value.

        Raises:
            BadTable: With the row and the rule, never the value.
        """
        if isinstance(self.where, Lattice):
            return self.where.places(read_each(values, number, source))
        symbols = read_each(values, self.where.encode, source)
        places = np.array([self.alphabet.place(symbol) for symbol in symbols], dtype=np.int64)
        if unknown := np.flatnonzero(places < 0).tolist():
            raise BadTable(source, unknown[0] + 1, str(UnknownSymbol(len(self.alphabet))))
        return places


@dataclass(frozen=True, slots=True)
class Reading:
    """How a column is read.

    Attributes:
        kind: Symbols or numbers; found out if not given.
        values: The possible symbols; those that occur if not given.
        interval: The numbers that are told apart; smaller and larger ones are clamped.
        points: How many points stand for them.
    """

    kind: Kind | None = None
    values: tuple[Raw, ...] | None = None
    interval: tuple[float, float] | None = None
    points: int = 200

    def symbols(self, values: Sequence[Raw], source: str) -> Symbols:
        """The alphabet of a column."""
        listed = values if self.values is None else self.values
        return Symbols.of(read_each(listed, text, source))


def know(column: str, records: Columns, prior: AnyPrior, reading: Reading, source: str) -> Known:
    """Learn what is known of a column from records of it, or take what is given.

    Args:
        column: Its name.
        records: Public records, or the table that is to be released.
        prior: Where the knowledge comes from.
        reading: How values are read.
        source: The records, for messages.
    """
    values = _column(records, column, source)
    if isinstance(prior, str) and prior.startswith(FEATURES):
        return _predicted(column, records, prior, reading, source)
    if isinstance(prior, str) and prior not in ("estimate", "mixture"):
        prior = read_prior(prior)
    kind = reading.kind or _kind_of(values, prior, reading)
    if kind is Kind.SYMBOLS:
        return _symbols(values, prior, reading, source)
    return _numbers(read_each(values, number, source), prior, reading)


def know_each(column: str, columns: Columns, prior: str, reading: Reading, source: str) -> Known:
    """Priors from features for the people of one table, each learnt without his own row."""
    where, names, features, known = _for_features(column, columns, prior, reading, source)
    priors = FeaturePrior.cross_fitted(features, known, alphabet=where.alphabet)
    return Known(where, priors, f"features {', '.join(names)}", remarks=(_public(names),))


def _kind_of(values: Sequence[Raw], prior: AnyPrior, reading: Reading) -> Kind:
    if isinstance(prior, GaussianMixture) or prior == "mixture" or reading.interval:
        return Kind.NUMBERS
    if prior != "estimate" or reading.values is not None:
        return Kind.SYMBOLS
    try:
        numbers = [number(value) for value in values]
    except Unreadable:
        return Kind.SYMBOLS
    fractional = any(not value.is_integer() for value in numbers)
    return Kind.NUMBERS if fractional or len(set(numbers)) > _MANY else Kind.SYMBOLS


def _symbols(values: Sequence[Raw], prior: AnyPrior, reading: Reading, source: str) -> Known:
    match prior:
        case "estimate":
            where = reading.symbols(values, source)
            counts = np.bincount(
                Known(where, np.empty((0, 0)), "").places(values, source),
                minlength=len(where.alphabet),
            )
            share = (counts + _SMOOTHING) / (counts + _SMOOTHING).sum()
            return Known(where, share[None, :], "estimated frequencies")
        case Prior():
            return Known(Symbols(prior.alphabet), _full(prior.probabilities), "given")
        case PriorSet():
            where = reading.symbols(values, source)
            if prior.size != len(where.alphabet):
                rule = f"be about the {len(where.alphabet)} symbols of the column"
                raise InvalidParameter("prior", prior.size, rule)
            return Known(where, _full(prior.nominal), "a set of priors", within=prior)
        case Mapping():
            if len({isinstance(label, str) for label in prior}) > 1:
                raise InvalidParameter("prior", "both", "name words or whole numbers, not both")
            given = _checks.probabilities("prior", list(prior.values()))
            return Known(Symbols(Alphabet(prior)), _full(given), "given")
        case _:
            rule = "be estimate, features:..., a file, or probabilities, for symbols"
            raise InvalidParameter("prior", prior, rule)


def _numbers(values: Sequence[float], prior: AnyPrior, reading: Reading) -> Known:
    density = GaussianMixture.fit(values) if prior == "mixture" else prior
    remarks: tuple[str, ...] = ()
    if reading.interval is not None:
        lattice = Lattice(*reading.interval, reading.points)
    else:
        lattice = _covering(values, density, reading.points)
        remarks = (
            f"the interval {lattice.low:g} to {lattice.high:g} covers the {_TAIL:.1%} to "
            f"{1 - _TAIL:.1%} quantiles of the prior; give --range to fix it in advance",
        )
    if isinstance(density, GaussianMixture):
        masses = density.masses(lattice.cuts)
        said = f"a mixture of {density.weights.size} normals"
    elif density == "estimate":
        counts = np.bincount(lattice.places(values), minlength=lattice.count) + _SMOOTHING
        masses, said = np.asarray(counts / counts.sum()), "estimated frequencies"
    elif isinstance(density, Prior) and density.alphabet.coordinates is not None:
        where = lattice.places(density.alphabet.coordinates[:, 0])
        masses = np.bincount(where, density.probabilities, lattice.count).astype(np.float64)
        said = "given"
    else:
        rule = "be estimate, mixture, a GaussianMixture, or probabilities of numbers, for numbers"
        raise InvalidParameter("prior", type(prior).__name__, rule)
    return Known(lattice, _full(masses), said, remarks=remarks)


def _covering(values: Sequence[float], density: AnyPrior, points: int) -> Lattice:
    """At most so many points over nearly all of the prior, round numbers apart."""
    if isinstance(density, GaussianMixture):
        low, high = density.quantile(_TAIL), density.quantile(1 - _TAIL)
    elif isinstance(density, Prior) and density.alphabet.coordinates is not None:
        ends = density.alphabet.coordinates[:, 0]
        low, high = float(ends.min()), float(ends.max())
    else:
        low, high = (float(end) for end in np.quantile(values, [_TAIL, 1 - _TAIL]))
    if not math.isfinite(high - low) or low == high:
        raise InvalidParameter("interval", "one point", "be given: the values hardly differ")
    # Two points fewer, since both ends move outward to multiples of the step.
    least = (high - low) / max(1, _checks.count("points", points, at_least=4) - 3)
    unit = 10.0 ** math.floor(math.log10(least))
    step = next(factor * unit for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * unit >= least)
    first, last = math.floor(low / step), math.ceil(high / step)
    return Lattice(first * step, last * step, last - first + 1)


def _predicted(column: str, records: Columns, prior: str, reading: Reading, source: str) -> Known:
    where, names, features, known = _for_features(column, records, prior, reading, source)
    learnt = FeaturePrior.fit(features, known, alphabet=where.alphabet)
    return Known(
        where,
        np.empty((0, len(where.alphabet))),
        f"features {', '.join(names)}",
        predictor=learnt,
        features=names,
        remarks=(_public(names),),
    )


def _for_features(
    column: str, records: Columns, prior: str, reading: Reading, source: str
) -> tuple[Symbols, tuple[str, ...], Columns, list[Label]]:
    names = feature_names(prior)
    if not names or column in names:
        rule = "name columns after features:, and not the one that is released"
        raise InvalidParameter("prior", prior, rule)
    if reading.kind is Kind.NUMBERS or reading.interval is not None:
        raise InvalidParameter("prior", prior, "not come with numbers: features predict symbols")
    values = _column(records, column, source)
    where = reading.symbols(values, source)
    places = Known(where, np.empty((0, 0)), "").places(values, source)
    labels = [where.alphabet.labels[place] for place in places]
    features = {name: _typed(_column(records, name, source)) for name in names}
    return where, names, features, labels


def _typed(cells: Sequence[Raw]) -> Sequence[Raw]:
    """Numbers where all texts of a column are: a CSV file holds nothing but text."""
    given = [cell for cell in cells if cell is not None and cell != ""]
    if not given or not all(isinstance(cell, str) and _is_number(cell) for cell in given):
        return cells
    return [None if cell is None or cell == "" else float(cell) for cell in cells]


def feature_names(prior: AnyPrior) -> tuple[str, ...]:
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


def read_prior(path: str) -> Prior:
    """A prior from a file: what `sfumato.save` wrote, or a table `value,probability`."""
    if not os.path.isfile(path):
        rule = "be estimate, mixture, features:COLUMNS or a file"
        raise InvalidParameter("prior", path, rule)
    if Path(path).suffix.lower() != ".csv":
        model = load(path)
        if not isinstance(model, Prior):
            raise CorruptData(f"{path}: stored data must be a prior; got {type(model).__name__}")
        return model
    rows = _prior_rows(path)
    where = Symbols.of([row[0] for row in rows])
    by_label = {where.encode(label): mass for label, mass in rows}
    if len(by_label) != len(rows):
        raise BadTable(path, None, "each value must stand in one row only")
    masses = [by_label[label] for label in where.alphabet.labels]
    if all(_is_number(label) for label in where.alphabet.labels):
        places = [float(label) for label in where.alphabet.labels]
        return Prior(masses, Alphabet(where.alphabet.labels, places))
    return Prior(masses, where.alphabet)


def _prior_rows(path: str) -> list[tuple[str, float]]:
    rows = read_rows("prior", path)
    if not rows or [cell.strip() for cell in rows[0]] != ["value", "probability"]:
        raise BadTable(path, None, "the header must be value,probability")
    found = []
    for place, row in enumerate(rows[1:], start=1):
        try:
            label, mass = row
            found.append((text(label), number(mass)))
        except (Unreadable, ValueError):
            raise BadTable(path, place, "a row must hold a value and a probability") from None
    if not found:
        raise BadTable(path, None, "the table must not be empty")
    return found


def _is_number(label: str | int) -> bool:
    try:
        number(label)
    except Unreadable:
        return False
    return True


def _full(masses: Floats) -> Floats:
    """One row with full support: a floor, spread evenly."""
    share = _checks.probabilities("prior", masses)
    return np.asarray((1 - _FLOOR) * share / share.sum() + _FLOOR / share.size)[None, :]


def _column(columns: Columns, name: str, source: str) -> Sequence[Raw]:
    if name not in columns:
        raise no_column(source, name, list(columns))
    if len(columns[name]) == 0:
        raise BadTable(source, None, "the table must have at least one row")
    return columns[name]
