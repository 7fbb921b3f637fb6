"""One release of a column: the rows it is about, what is known of them, the draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from sfumato.column.column_certificate import Privatized, column_certificate, spread_of
from sfumato.column.column_evidence import ColumnEvidence
from sfumato.column.column_fit import ColumnFit
from sfumato.column.column_learning import learn, learn_each, single_occurrences
from sfumato.column.column_sampler import ColumnSampler, certified_sampler, column_sampler
from sfumato.column.column_spec import ColumnSpec, Kind
from sfumato.column.knowledge import Knowledge, Records
from sfumato.column.mechanism_registry import mechanism_named
from sfumato.core import portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import content, digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.core.progress import Progress
from sfumato.core.randomness import Address, Domain, Randomness
from sfumato.models.encoding import Raw
from sfumato.models.numerals import Numerals
from sfumato.noise.lattice import Lattice
from sfumato.tables.cells import Missing, missing_rows
from sfumato.tables.frames import columns_of, framed_columns, has_index, written_columns
from sfumato.tables.named_loss import named_loss
from sfumato.tables.pass_through import Columns, check_spellings
from sfumato.tables.problems import BadTable
from sfumato.tables.row_coins import RowCoins, release_coins, row_addresses
from sfumato.tables.row_order import Order, order_tells

_FRAME = Records.PRIVATE.source
_ORDERED = (
    "the order of the rows tells of the column (it is sorted, drifts, stands in blocks or comes in "
    "turn), and it would leave too: shuffle them (order: shuffled), or declare that it "
    "tells nothing (order: kept)"
)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The cells of a frame that are used, by column, and how many values were missing."""

    columns: Columns
    rows: list[int] | None  # those that are left; None for all
    missing: int

    @classmethod
    def of(cls, spec: ColumnSpec, frame: Any, names: Sequence[str], source: str) -> _Cells:
        """The cells of a frame, without the rows that are to be dropped."""
        columns = columns_of(frame, names, source)
        leaving = written_columns(frame, spec.pass_through.linked, source)
        if spec.features:  # predicted from what cells mean
            check_spellings(leaving, spec.pass_through.linked, source)
        else:
            columns |= leaving
        missing = missing_rows(columns[spec.column])
        if missing and spec.missing is Missing.REFUSE:
            rule = f"the value must not be missing; {len(missing):,} are (missing: drop or symbol)"
            raise BadTable(source, missing[0] + 1, rule)
        if not missing or spec.missing is Missing.SYMBOL:
            return cls(columns, None, len(missing))
        left = sorted(set(range(len(columns[spec.column]))) - set(missing))
        if not left:
            raise BadTable(source, None, "at least one value must not be missing")
        rest = {name: [cells[row] for row in left] for name, cells in columns.items()}
        return cls(rest, left, len(missing))


@dataclass(frozen=True, slots=True, eq=False)
class FittedColumn:
    """What was learnt of a column, and the mechanism where it is the same for everybody.

    Attributes:
        spec: What was asked for.
        knowledge: What is known of the column.
        sampler: The mechanism; None where it waits for the features or groups of people.
    """

    spec: ColumnSpec
    knowledge: Knowledge
    sampler: ColumnSampler | None

    @classmethod
    def learnt(cls, spec: ColumnSpec, frame: Any, records: Records) -> FittedColumn:
        """Learn from records, and make the mechanism if it can be made already."""
        cells = _Cells.of(spec, frame, spec.learnt_columns, records.source)
        knowledge = learn(spec, cells.columns, records)
        return cls(spec, knowledge, None if knowledge.waits else _within_budget(spec, knowledge))

    def release(self, frame: Any, progress: Progress | None = None) -> Privatized:
        """Release the column of a frame, with its certificate."""
        cells = _Cells.of(self.spec, frame, self.spec.released_columns, _FRAME)
        knowledge = self.knowledge.of_people(cells.columns, _FRAME)
        sampler = self.sampler or _within_budget(self.spec, knowledge, progress)
        return _released(self.spec, frame, cells, knowledge, sampler)


def learn_and_release(spec: ColumnSpec, frame: Any, progress: Progress | None = None) -> Privatized:
    """Learn from the very rows that are released, which the certificate says."""
    if not spec.features:
        return FittedColumn.learnt(spec, frame, Records.PRIVATE).release(frame, progress)
    cells = _Cells.of(spec, frame, spec.released_columns, _FRAME)
    knowledge = learn_each(spec, cells.columns)
    sampler = _within_budget(spec, knowledge, progress)
    return _released(spec, frame, cells, knowledge, sampler)


def release_known(
    spec: ColumnSpec, frame: Any, knowledge: Knowledge, evidence: ColumnEvidence
) -> Privatized:
    """Release a column by what a certificate holds: nothing is learnt, and nothing solved."""
    cells = _Cells.of(spec, frame, spec.released_columns, _FRAME)
    if isinstance(knowledge.where, Lattice):
        numerals = Numerals.of(cells.columns[spec.column])
        knowledge = replace(knowledge, numerals=numerals or knowledge.numerals)
    knowledge = knowledge.of_people(cells.columns, _FRAME)
    sampler = certified_sampler(spec, knowledge, evidence)
    return _released(spec, frame, cells, knowledge, sampler)


def _within_budget(
    spec: ColumnSpec, knowledge: Knowledge, progress: Progress | None = None
) -> ColumnSampler:
    """The mechanism, or what budget it would break."""
    sampler = column_sampler(spec, knowledge, progress)
    if not sampler.lip <= spec.budget:
        rule = f"keep the budget; it would leak {sampler.lip}, so nothing was released"
        raise InvalidParameter("mechanism", spec.mechanism, rule)
    return sampler


def _released(
    spec: ColumnSpec, frame: Any, cells: _Cells, knowledge: Knowledge, sampler: ColumnSampler
) -> Privatized:
    """Draw, and put together what leaves."""
    coins = release_coins("privatize", spec.randomness, spec.purpose, spec.identity)
    values = spec.cells(cells.columns[spec.column])
    places = knowledge.places(values, _FRAME)
    notes = _private_notes(spec, frame, cells, knowledge, places)
    naming = None if spec.identity is None else cells.columns[spec.identity]
    names = row_addresses(places, naming, spec.identity, _FRAME)
    plan = release_plan(spec, knowledge)
    drawn = sampler.draw(places, RowCoins(coins, Domain.PRIVATIZE, plan, names))
    truth = _truth(spec, knowledge, values)
    clamped = 0
    if isinstance(knowledge.where, Lattice) and not isinstance(truth, Loss):
        clamped = knowledge.where.outside(truth)
    fit = ColumnFit.of(knowledge, places, truth, drawn.values, sampler)
    turn = _turn(spec, RowCoins(coins, Domain.PRIVATIZE, digest("order", plan), names))
    fingerprint = release_fingerprint(spec, coins, plan, knowledge, sampler)
    shown = replace(sampler, fingerprint=fingerprint)
    return Privatized(
        frame=_framed(spec, frame, cells, drawn.values, turn),
        certificate=column_certificate(spec, knowledge, shown, drawn),
        spread=spread_of(knowledge, sampler, drawn),
        knowledge=knowledge,
        clamped=clamped,
        missing=cells.missing,
        realised=fit.realised,
        constant=fit.constant,
        notes=(*fit.notes(sampler), *notes),
        spec=spec,
        sampler=sampler,
    )


def _truth(spec: ColumnSpec, knowledge: Knowledge, values: Sequence[Raw]) -> Loss | Floats:
    """True numbers, or what a wrong symbol costs."""
    if knowledge.kind is Kind.NUMBERS:
        return np.array(knowledge.read_numbers(values, _FRAME), np.float64)
    return named_loss(spec.loss or "hamming", knowledge.alphabet)


def release_plan(spec: ColumnSpec, knowledge: Knowledge) -> str:
    """Fingerprint of what shapes everybody's answers; each row adds its channel and prior."""
    # A prior of one person or group is part of his own address.
    shared = knowledge.priors if knowledge.owner is None else None
    asked = content((*_asked(spec), knowledge.where, knowledge.within))
    return digest("privatize", spec.purpose.value, spec.column, shared, asked)


def release_fingerprint(
    spec: ColumnSpec, coins: Randomness, plan: str, knowledge: Knowledge, sampler: ColumnSampler
) -> str:
    """Tells two releases apart, but lets nobody test guesses at rows that were learnt from."""
    everything = digest(plan, sampler.fingerprint)
    if knowledge.records is Records.PUBLIC:
        return everything
    if coins.addressed:
        address = Address(Domain.PRIVATIZE, everything, "fingerprint", 0)
        return coins.at(address).words(4).tobytes().hex()
    asked = content((*_asked(spec), knowledge.where))
    return digest("privatize", spec.purpose.value, spec.column, asked)


def _asked(spec: ColumnSpec) -> tuple[object, ...]:
    return mechanism_named(spec.mechanism), spec.budget, spec.loss, spec.ldp


def _private_notes(
    spec: ColumnSpec, frame: Any, cells: _Cells, knowledge: Knowledge, places: Ints
) -> tuple[str, ...]:
    """What the private values show: an order that tells of them is refused, the rest is noted.

    Values are taken less what is known of them already, for that is not told.
    """
    rest = _unexpected(knowledge, places)
    if spec.order is Order.CHECKED and order_tells(rest):
        raise BadTable(_FRAME, None, _ORDERED)
    notes = [
        f"the values look tied to {name!r}, which was declared to tell nothing of them"
        for name in spec.pass_through.independent
        if order_tells(rest[_sorted_by(cells.columns[name])])
    ]
    rare = single_occurrences(places.tolist()) if knowledge.kind is Kind.SYMBOLS else 0
    if rare and spec.values is None and knowledge.records is Records.PRIVATE:
        notes.append(f"{rare:,} symbols occur in one row only: that they occur is told")
    if has_index(frame):
        notes.append("the index of the frame did not leave: make it a column to keep it")
    return tuple(notes)


def _unexpected(knowledge: Knowledge, places: Ints) -> Floats:
    """Places less what features predict, or as ranks within each group."""
    priors, owner = knowledge.priors, knowledge.owner
    if owner is not None and knowledge.groups is None:
        return np.asarray(places - (portable.dot(priors, np.arange(priors.shape[1])))[owner])
    of_row = np.zeros(places.size) if owner is None else owner
    ranks = np.empty(places.size)
    for group in np.unique(of_row):
        own = of_row == group
        ranks[own] = stats.rankdata(places[own]) / (np.count_nonzero(own) + 1) - 0.5
    return ranks


def _sorted_by(cells: Sequence[Any]) -> Ints:
    numerals = Numerals.of(cells)
    keys = [str(cell) if numerals is None else numerals.read(cell) for cell in cells]
    return np.argsort(np.asarray(keys), kind="stable").astype(np.int64)


def _turn(spec: ColumnSpec, coins: RowCoins) -> list[int] | None:
    """The order in which rows leave: None for that in which they came."""
    if spec.order is not Order.SHUFFLED:
        return None
    return list(np.argsort(coins.words(1)[:, 0], kind="stable").tolist())


def _framed(
    spec: ColumnSpec, frame: Any, cells: _Cells, values: list[Any], turn: list[int] | None
) -> Any:
    rows = cells.rows
    if turn is not None:
        values = [values[row] for row in turn]
        rows = turn if rows is None else [rows[row] for row in turn]
    return framed_columns(frame, spec.pass_through.columns, {spec.column: values}, rows)
