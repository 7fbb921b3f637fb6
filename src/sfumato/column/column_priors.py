"""Probabilities of the values of a column: as they were given, or estimated, for each group.

A prior that was given is used as it is, to the last digit: a certificate under another one, however
near, may lie below the truth. Only what is estimated gets a floor, and that is said.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from sfumato.column.column_spec import ColumnSpec
from sfumato.column.knowledge import Knowledge, is_number, symbol_places
from sfumato.column.number_error import TrueNumbers
from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.models.encoding import Raw, Symbols, Unreadable, number, text
from sfumato.models.mixture import GaussianMixture
from sfumato.models.prior import Prior
from sfumato.models.prior_sets import PriorSet
from sfumato.noise.lattice import Lattice
from sfumato.store.files import load
from sfumato.tables.documents import read_rows
from sfumato.tables.pass_through import Groups
from sfumato.tables.problems import BadTable

Result = TypeVar("Result")
# `estimate`, `mixture`, `features:a,b`, the name of a file, or the knowledge itself.
AnyPrior: TypeAlias = "str | Prior | PriorSet | GaussianMixture | Mapping[str | int, float]"

# Rows that are added to what was counted of each possible value, but no more in all than the
# square root of what was counted: many values and few rows must not drown the counts.
SMOOTHING = 0.5
# Share of a fitted mixture that is spread evenly.
FLOOR = 1e-6
# Share of the values beyond each end of an interval that nobody gave.
_TAIL = 0.005


def symbol_priors(
    values: Sequence[Raw], prior: AnyPrior, spec: ColumnSpec, groups: Groups | None, source: str
) -> Knowledge:
    """The symbols of a column and their probabilities."""
    match prior:
        case "estimate":
            where = spec.symbols(values, source)
            places = symbol_places(where, values, source)
            priors, floor = _counted(places, len(where.alphabet), groups)
            remarks = (_spread(floor),)
            return Knowledge(where, priors, "estimated frequencies", floor=floor, remarks=remarks)
        case Prior():
            return Knowledge(Symbols(prior.alphabet), _given(prior.probabilities), "given")
        case PriorSet():
            where = spec.symbols(values, source)
            if prior.size != len(where.alphabet):
                rule = f"be about the {len(where.alphabet)} symbols of the column"
                raise InvalidParameter("prior", prior.size, rule)
            return Knowledge(where, _given(prior.nominal), "a set of priors", within=prior)
        case Mapping():
            if len({isinstance(label, str) for label in prior}) > 1:
                raise InvalidParameter("prior", "both", "name words or whole numbers, not both")
            masses = checks.probabilities("prior", list(prior.values()))
            return Knowledge(Symbols(Alphabet(prior)), _given(masses), "given")
        case _:
            rule = "be estimate, features:..., a file, or probabilities, for symbols"
            raise InvalidParameter("prior", prior, rule)


def number_priors(
    values: Sequence[float], prior: AnyPrior, spec: ColumnSpec, groups: Groups | None
) -> Knowledge:
    """The points that stand for the numbers of a column, and their probabilities."""
    density = GaussianMixture.fit(values) if prior == "mixture" else prior
    lattice, remarks = _lattice(values, density, spec)
    match density:
        case GaussianMixture() if prior == "mixture":
            return _fitted(values, density, lattice, groups, remarks)
        case GaussianMixture():
            masses = _given(density.masses(lattice.cuts))
            true = TrueNumbers.of_mixture(lattice, density)
            source = f"given, a mixture of {density.weights.size} normals"
            return Knowledge(lattice, masses, source, numbers=(true,), remarks=remarks)
        case "estimate":
            priors, floor = _counted(lattice.places(values), lattice.count, groups)
            true_of = _each(groups, values, lambda own: TrueNumbers.of_values(lattice, own))
            source, remarks = "estimated frequencies", (*remarks, _spread(floor))
            return Knowledge(lattice, priors, source, numbers=true_of, floor=floor, remarks=remarks)
        case Prior() if density.alphabet.coordinates is not None:
            points = density.alphabet.coordinates[:, 0]
            where = lattice.places(points)
            masses = np.bincount(where, density.probabilities, lattice.count).astype(np.float64)
            true = TrueNumbers.of_values(lattice, points, density.probabilities)
            return Knowledge(lattice, _given(masses), "given", numbers=(true,), remarks=remarks)
        case _:
            rule = "be estimate, mixture, a GaussianMixture, or probabilities of numbers"
            raise InvalidParameter("prior", type(prior).__name__, f"{rule}, for numbers")


def _spread(floor: float) -> str:
    return f"the prior was estimated, and {floor:.2g} of it spread evenly over all possible values"


def _fitted(
    values: Sequence[float],
    overall: GaussianMixture,
    lattice: Lattice,
    groups: Groups | None,
    remarks: tuple[str, ...],
) -> Knowledge:
    """Mixtures that were fitted: floored, and that is said."""
    mixtures = [overall] if groups is None else _each(groups, values, GaussianMixture.fit)
    masses = np.stack([mixture.masses(lattice.cuts) for mixture in mixtures])
    most = max(mixture.weights.size for mixture in mixtures)
    return Knowledge(
        lattice,
        (1 - FLOOR) * masses + FLOOR / lattice.count,
        f"a mixture of {most} normals",
        numbers=tuple(TrueNumbers.of_mixture(lattice, mixture) for mixture in mixtures),
        floor=FLOOR,
        remarks=(*remarks, _spread(FLOOR)),
    )


def _counted(places: Ints, size: int, groups: Groups | None) -> tuple[Floats, float]:
    """Smoothed shares, for everybody or each group, and the part of them that was added."""
    parts = [places] if groups is None else _each(groups, places, np.asarray)
    counts = np.stack([np.bincount(part, minlength=size) for part in parts]).astype(np.float64)
    rows = counts.sum(axis=1, keepdims=True)
    added = np.minimum(SMOOTHING, np.sqrt(rows) / size)
    totals = rows + added * size
    return np.asarray((counts + added) / totals), float((added * size / totals).max())


def _each(
    groups: Groups | None, values: Sequence[float] | Ints, make: Callable[[Floats], Result]
) -> tuple[Result, ...]:
    everybody = np.asarray(values)
    if groups is None:
        return (make(everybody),)
    return tuple(make(everybody[groups.rows(group)]) for group in range(len(groups.keys)))


def _given(masses: Floats) -> Floats:
    """One row, as it was given.

    A zero becomes the least number that products of floats can hold: no output that a channel of
    62-bit weights can have changes its probability by that, so certificates are those of the zero.
    """
    share = checks.probabilities("prior", masses)
    return np.asarray(np.maximum(share / share.sum(), checks.MIN_PROBABILITY)[None, :])


def _lattice(
    values: Sequence[float], density: AnyPrior, spec: ColumnSpec
) -> tuple[Lattice, tuple[str, ...]]:
    if spec.interval is not None:
        return Lattice(*spec.interval, spec.points), ()
    lattice = _covering(values, density, spec.points)
    return lattice, (
        f"the interval {lattice.low:g} to {lattice.high:g} covers the {_TAIL:.1%} to "
        f"{1 - _TAIL:.1%} quantiles of the prior; give --range to fix it in advance",
    )


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
        raise InvalidParameter("interval", None, "be given: the values hardly differ")
    # Two points fewer, since both ends move outward to multiples of the step.
    least = (high - low) / max(1, checks.count("points", points, at_least=4) - 3)
    unit = 10.0 ** Decimal(least).adjusted()
    step = next(factor * unit for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * unit >= least)
    first, last = math.floor(low / step), math.ceil(high / step)
    return Lattice(first * step, last * step, last - first + 1)


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
    if all(is_number(label) for label in where.alphabet.labels):
        places = [float(label) for label in where.alphabet.labels]
        return Prior(masses, Alphabet(where.alphabet.labels, places))
    return Prior(masses, where.alphabet)


def _prior_rows(path: str) -> list[tuple[str, float]]:
    rows = read_rows("prior", path)
    if not rows or [cell.strip() for cell in rows[0]] != ["value", "probability"]:
        raise BadTable(path, None, "the header must be value,probability")
    pairs = []
    for place, row in enumerate(rows[1:], start=1):
        try:
            label, mass = row
            pairs.append((text(label), number(mass)))
        except (Unreadable, ValueError):
            raise BadTable(path, place, "a row must hold a value and a probability") from None
    if not pairs:
        raise BadTable(path, None, "the table must not be empty")
    return pairs
