"""One release of a column: its arguments, checked; the rows it is about; the draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from sfumato.column.column_certificate import Privatized, certificate_of, spread_of
from sfumato.column.column_fit import ColumnFit
from sfumato.column.column_knowledge import LEARNT_PRIORS, Columns, Known, feature_names
from sfumato.column.column_mechanisms import Mechanism, OneShot, one_shot
from sfumato.column.column_priors import AnyPrior
from sfumato.column.column_reading import Kind, Reading, Records, rare_symbols
from sfumato.column.prior_sets import PriorBall, PriorBox, PriorSet
from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.checks import choice
from sfumato.core.digest import content, digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.models.encoding import Raw
from sfumato.models.numerals import Numerals
from sfumato.noise.lattice import Lattice
from sfumato.tables.frames import (
    column_list,
    columns_of,
    framed_columns,
    has_index,
    written_columns,
)
from sfumato.tables.kept_columns import Beside, check_spellings
from sfumato.tables.missing import Missing, missing_rows
from sfumato.tables.named_loss import named_loss
from sfumato.tables.problems import BadTable
from sfumato.tables.row_coins import RowCoins, release_coins, row_addresses
from sfumato.tables.row_order import Order, order_tells

if TYPE_CHECKING:
    from sfumato.column.privatizer import Privatizer

FRAME, HISTORY = "frame", "history"
"""What messages call the tables."""
LEARNT_HERE = (
    "the prior was learnt from this very column: the guarantee is against an adversary who "
    "knows that prior already; learn it from public records (history) to be safe"
)


@dataclass(frozen=True, slots=True)
class _Table:
    """The cells of a frame that are used: which rows, and how many values were missing."""

    columns: Columns
    rows: list[int] | None
    missing: int


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """The arguments of a `Privatizer`, checked."""

    column: str
    prior: AnyPrior
    budget: LIP
    mechanism: Mechanism
    loss: str | None
    ldp: float | None
    reading: Reading
    beside: Beside
    order: Order
    identity: str | None
    randomness: Randomness | None
    purpose: Purpose

    @classmethod
    def of(cls, given: Privatizer) -> ColumnSpec:
        """Check what was given."""
        named = None if given.kind is None else choice("kind", Kind, given.kind)
        missing = choice("missing", Missing, given.missing)
        listed = None if given.values is None else tuple(given.values)
        if feature_names(given.prior) and (given.radius is not None or given.ratio is not None):
            raise InvalidParameter("prior", "features", "not come with radius or ratio")
        return cls(
            given.column,
            given.prior,
            LIP(checks.epsilon("epsilon", given.epsilon), float(given.delta)),
            choice("mechanism", Mechanism, given.mechanism),
            given.loss,
            None if given.ldp is None else float(given.ldp),
            Reading(named, listed, _interval(given.interval), given.points, missing),
            _beside(given),
            choice("order", Order, given.order),
            given.identity,
            given.randomness,
            given.purpose,
        )

    @property
    def learnt(self) -> list[str]:
        """The columns that records must have."""
        return [self.column, *feature_names(self.prior), *self.beside.linked]

    def table(self, frame: Any, source: str, names: Sequence[str] | None = None) -> _Table:
        """The cells of a frame, without the rows that are to be dropped."""
        if names is None:
            ids = [] if self.identity is None else [self.identity]
            names = [*self.learnt, *self.beside.kept, *ids]
        columns = columns_of(frame, names, source)
        leaving = written_columns(frame, self.beside.linked, source)
        if feature_names(self.prior):  # predicted from what cells mean
            check_spellings(leaving, self.beside.linked, source)
        else:
            columns |= leaving
        gone = missing_rows(columns[self.column])
        if gone and self.reading.missing is Missing.REFUSE:
            rule = f"the value must not be missing; {len(gone):,} are (missing: drop or symbol)"
            raise BadTable(source, gone[0] + 1, rule)
        if not gone or self.reading.missing is Missing.SYMBOL:
            return _Table(columns, None, len(gone))
        left = sorted(set(range(len(columns[self.column]))) - set(gone))
        if not left:
            raise BadTable(source, None, "at least one value must not be missing")
        kept = {name: [cells[row] for row in left] for name, cells in columns.items()}
        return _Table(kept, left, len(gone))

    def made(self, known: Known, progress: Progress | None = None) -> OneShot:
        """The mechanism, or what budget it would break."""
        made = one_shot(
            self.mechanism, known, self.budget, loss=self.loss, ldp=self.ldp, progress=progress
        )
        if not made.lip <= self.budget:
            rule = f"keep the budget; it would leak {made.lip}, so nothing was released"
            raise InvalidParameter("mechanism", self.mechanism.value, rule)
        return made

    def released(self, frame: Any, table: _Table, known: Known, made: OneShot) -> Privatized:
        """Draw, and put together what leaves."""
        coins = release_coins("privatize", self.randomness, self.purpose, self.identity)
        cells = self.reading.cells(table.columns[self.column])
        places = known.places(cells, FRAME)
        notes = self._seen(frame, known, places, table)
        naming = None if self.identity is None else table.columns[self.identity]
        names = row_addresses(places, naming, self.identity, FRAME)
        plan = self._plan(known)
        told = made.draw(places, RowCoins(coins, Domain.PRIVATIZE, plan, names))
        outside, truth = 0, self._truth(known, cells)
        if isinstance(known.where, Lattice) and not isinstance(truth, Loss):
            outside = known.where.outside(truth)
        fit = ColumnFit.of(known, places, truth, told.values, made)
        turn = self._turn(RowCoins(coins, Domain.PRIVATIZE, digest("order", plan), names))
        shown = replace(made, fingerprint=self._fingerprint(coins, plan, known, made))
        parts = (self.column, self.mechanism, known, shown, told, self.beside, self.order)
        return Privatized(
            frame=self._framed(frame, table, told.values, turn),
            certificate=certificate_of(*parts, (self.budget, self.ldp)),
            spread=spread_of(known, made, told),
            known=known,
            clamped=outside,
            missing=table.missing,
            realised=fit.realised,
            constant=fit.constant,
            notes=(*fit.notes(made), *notes),
        )

    def _truth(self, known: Known, cells: Sequence[Raw]) -> Loss | Floats:
        """True numbers, or what a wrong symbol costs."""
        if known.kind is Kind.NUMBERS:
            return np.array(known.read(cells, FRAME), np.float64)
        return named_loss(self.loss or "hamming", known.alphabet)

    def _fingerprint(self, coins: Randomness, plan: str, known: Known, made: OneShot) -> str:
        """Tells two releases apart, but lets nobody test guesses at rows that were learnt from."""
        whole = digest(plan, made.fingerprint)
        if known.records is Records.PUBLIC:
            return whole
        if coins.addressed:
            address = Address(Domain.PRIVATIZE, whole, "fingerprint", 0)
            return coins.at(address).words(4).tobytes().hex()
        asked = (self.mechanism, self.budget, self.loss, self.ldp, known.where)
        return digest("privatize", self.purpose.value, self.column, content(asked))

    def _seen(self, frame: Any, known: Known, places: Ints, table: _Table) -> tuple[str, ...]:
        """What the private values show: an order that tells of them is refused, the rest is told.

        Values are taken less what is known of them already, for that is not told.
        """
        rest = _unexpected(known, places)
        if self.order is Order.CHECKED and order_tells(rest):
            raise BadTable(FRAME, None, _ORDERED)
        told = [
            f"the values look tied to {name!r}, which was declared to tell nothing of them"
            for name in self.beside.independent
            if order_tells(rest[_sorted_by(table.columns[name])])
        ]
        rare = rare_symbols(places.tolist()) if known.kind is Kind.SYMBOLS else 0
        if rare and self.reading.values is None and known.records is Records.PRIVATE:
            told.append(f"{rare:,} symbols occur in one row only: that they occur is told")
        if has_index(frame):
            told.append("the index of the frame did not leave: make it a column to keep it")
        return tuple(told)

    def _plan(self, known: Known) -> str:
        """Fingerprint of what shapes everybody's answers; each row adds its channel and prior."""
        asked = (self.mechanism, self.budget, self.loss, self.ldp, known.where, known.within)
        # A prior of one person or group is part of his own address.
        shared = known.priors if known.owner is None else None
        return digest("privatize", self.purpose.value, self.column, shared, content(asked))

    def _turn(self, coins: RowCoins) -> list[int] | None:
        """The order in which rows leave: None for that in which they came."""
        if self.order is not Order.SHUFFLED:
            return None
        return list(np.argsort(coins.words(1)[:, 0], kind="stable").tolist())

    def _framed(self, frame: Any, table: _Table, values: list[Any], turn: list[int] | None) -> Any:
        if turn is None:
            told = {self.column: values}
            return framed_columns(frame, self.beside.kept, told, table.rows)
        told = {self.column: [values[row] for row in turn]}
        rows = turn if table.rows is None else [table.rows[row] for row in turn]
        return framed_columns(frame, self.beside.kept, told, rows)


_ORDERED = (
    "the order of the rows tells of the column (it is sorted, drifts, stands in blocks or comes in "
    "turn), and it would leave too: shuffle them (order: shuffled), or declare that it "
    "tells nothing (order: kept)"
)


def _unexpected(known: Known, places: Ints) -> Floats:
    """Places less what features predict, or as ranks within each group."""
    if known.owner is not None and known.groups is None:
        return np.asarray(places - (known.priors @ np.arange(known.priors.shape[1]))[known.owner])
    ranks, owner = (
        np.empty(places.size),
        np.zeros(places.size) if known.owner is None else known.owner,
    )
    for group in np.unique(owner):
        own = owner == group
        ranks[own] = stats.rankdata(places[own]) / (np.count_nonzero(own) + 1) - 0.5
    return ranks


def _sorted_by(cells: Sequence[Any]) -> Ints:
    numerals = Numerals.of(cells)
    keys = [str(cell) if numerals is None else numerals.read(cell) for cell in cells]
    return np.argsort(np.asarray(keys), kind="stable").astype(np.int64)


def _beside(given: Privatizer) -> Beside:
    """Kept columns; one that names the rows does only that, by declaration."""
    declared = list(column_list("independent", given.independent))
    if given.identity in column_list("keep", given.keep) and given.identity not in declared:
        declared.append(given.identity)
    return Beside.of(given.keep, declared, [given.column])


def learnt_here(prior: AnyPrior, values: Sequence[Raw] | None) -> tuple[str, ...]:
    """What was learnt from the very column that is released is said to be."""
    if prior in LEARNT_PRIORS or feature_names(prior):
        return (LEARNT_HERE,)
    if isinstance(prior, PriorSet) and values is None:
        return (
            "the possible symbols were read off this very column: which ones occur is told; give "
            "them (values) to be safe",
        )
    return ()


def _interval(ends: Any) -> tuple[float, float] | None:
    if ends is None:
        return None
    pair = () if isinstance(ends, str) else tuple(ends)
    if len(pair) != 2 or not all(isinstance(end, int | float) for end in pair):
        raise InvalidParameter("interval", "something else", "be two numbers, low and high")
    return float(pair[0]), float(pair[1])


def within(known: Known, radius: float | None, ratio: float | None) -> Known:
    """The same with a prior that is only known up to a total variation, or up to a factor."""
    if radius is None and ratio is None:
        return known
    if radius is not None and ratio is not None:
        raise InvalidParameter("radius", radius, "not come with ratio")
    name = "radius" if ratio is None else "ratio"
    if known.groups is not None:
        rule = "go with kept columns that are declared independent, or with none"
        raise InvalidParameter(name, "given", rule)
    if len(known.priors) != 1 or known.within is not None or known.kind is Kind.NUMBERS:
        raise InvalidParameter(name, "given", "go with symbols")
    prior = known.priors[0]
    if radius is not None:
        return replace(known, within=PriorBall(prior, radius))
    factor = checks.finite("ratio", 1.0 if ratio is None else ratio, at_least=1.0)
    return replace(known, within=PriorBox.near(prior, math.log(factor)))
