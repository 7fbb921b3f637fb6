"""What a one-shot release of a column promises, costs, and is worth against saying nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.column.column_sampler import ColumnSampler, Drawn
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.knowledge import Knowledge, Records
from sfumato.core.arrays import Floats
from sfumato.core.certificate import Certificate, saved
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.printed import shown_up
from sfumato.noise.lattice import Lattice
from sfumato.tables.row_order import ORDER_TESTED, Order

# A release that saves less than this part of what a constant loses is worth no more than it.
_SAME = 1e-3
# Part of what a constant loses from which clamping and rounding alone are remarked on.
_COARSE = 0.1
# Of a leakage that was learnt from the rows that are released.
_DIGITS = 3
# Symbols that a remark names; the certificate has all of them.
_NAMED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCertificate(Certificate):
    """The certificate of a released column.

    Attributes:
        column: The column that was released.
        kind: Whether it was read as symbols or numbers.
        mechanism: How.
        rows: How many values.
        rounding: Expected loss of clamping and rounding alone, a part of the cost.
        prior: Where the prior comes from.
        floor: Part of an estimated prior that was spread evenly; 0 for one that was given.
        size: Number of symbols, or of points that stand for numbers.
        outputs: How many of them can be released; None if that was learnt from the very rows.
        never: Symbols that no row can get.
        interval: The numbers that are told apart; None for symbols.
        order: In which order the rows leave.
        fingerprint: Identifies the mechanism.
        frequencies: Unbiased estimates of the shares of the symbols and their standard errors, for
            mechanisms that are made for it.
    """

    column: str
    kind: str
    mechanism: str
    rows: int
    rounding: float
    prior: str
    floor: float
    size: int
    outputs: int | None
    never: tuple[str, ...]
    interval: tuple[float, float] | None
    order: str
    fingerprint: str
    frequencies: dict[str, tuple[float, float]] | None

    @property
    def lip(self) -> LIP:
        """Largest exact leakage of any value under the prior, given what leaves beside it."""
        return next(one for one in self.guarantees if isinstance(one, LIP))

    @property
    def ldp(self) -> LDP:
        """The same whatever the prior: the backstop if the prior is wrong."""
        return next(one for one in self.guarantees if isinstance(one, LDP))


@dataclass(frozen=True, slots=True)
class Spread:
    """How values are distributed, before and after, place by place.

    Attributes:
        places: Labels, or points.
        prior: What is known of the true values.
        expected: What is released, by the mechanism; None for reports of several symbols.
        released: What was released; shares of the rows.
    """

    places: tuple[str, ...] | Floats
    prior: Floats
    expected: Floats | None
    released: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Privatized:
    """A released column with its certificate.

    Attributes:
        frame: The released column and those that were to be kept, of the kind of frame that came.
        certificate: What it promises and costs.
        spread: Distributions before and after, for a picture.
        knowledge: What was known of the column, in full: public where it was given or learnt from a
            history, and for the operator alone where it was learnt from the released rows.
        clamped: How many values lay outside the interval.
        missing: How many values were missing.
        realised: Mean loss on the true values; None where a report is no single value.
        constant: What the best constant would have lost on them.
        notes: What was seen in the private values. These five are for whoever holds the data, not
            for the receiver.
        spec: What was asked for.
        sampler: The mechanism, with what its figures follow from: as public as the knowledge.
    """

    frame: Any
    certificate: ColumnCertificate
    spread: Spread = field(repr=False)
    knowledge: Knowledge = field(repr=False)
    clamped: int = field(default=0, repr=False)
    missing: int = field(default=0, repr=False)
    realised: float | None = field(default=None, repr=False)
    constant: float | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    spec: ColumnSpec = field(kw_only=True, repr=False)
    sampler: ColumnSampler = field(kw_only=True, repr=False)


def column_certificate(
    spec: ColumnSpec, knowledge: Knowledge, sampler: ColumnSampler, drawn: Drawn
) -> ColumnCertificate:
    """The certificate of a release: nothing in it depends on the values but by what left.

    Losses that were learnt from the rows themselves are told with two digits: with all of them,
    whoever knows every row but one could compute the last. What is saved follows from the exact
    ones: of two that are rounded it could come out above the truth. Leakages have three digits,
    rounded up but not beyond what was asked for, and how many outputs there are is not told.
    """
    where, never = knowledge.where, _never(knowledge, sampler)
    worth, gain = _worth(sampler), saved(sampler.cost, sampler.silence)
    private = knowledge.records is Records.PRIVATE
    shown = _shortened(sampler, spec) if private else sampler
    columns, order = spec.pass_through, _ORDER_REMARKS[Order(spec.order)]
    outputs = None if shown.expected is None or private else int((shown.expected > 0).sum())
    return ColumnCertificate(
        guarantees=(shown.lip, shown.ldp),
        scopes=(f"under the prior ({knowledge.source})", "whatever the prior"),
        loss=shown.loss,
        cost=shown.cost,
        silence=shown.silence,
        gain=gain,
        kept=columns.linked,
        independent=columns.independent,
        purpose=spec.purpose,
        remarks=(*worth, *_unheard(never), *knowledge.remarks, *columns.remarks, *order),
        column=spec.column,
        kind=knowledge.kind.value,
        mechanism=spec.mechanism,
        rows=len(drawn.values),
        rounding=shown.rounding,
        prior=knowledge.source,
        floor=knowledge.floor,
        size=knowledge.priors.shape[1],
        outputs=outputs,
        never=never,
        interval=(where.low, where.high) if isinstance(where, Lattice) else None,
        order=str(spec.order),
        fingerprint=shown.fingerprint,
        frequencies=drawn.frequencies,
    )


def spread_of(knowledge: Knowledge, sampler: ColumnSampler, drawn: Drawn) -> Spread:
    """Distributions before and after."""
    where = knowledge.where
    places: tuple[str, ...] | Floats = (
        where.points
        if isinstance(where, Lattice)
        else tuple(str(label) for label in where.alphabet.labels)
    )
    return Spread(places, knowledge.mean, sampler.expected, drawn.shares)


_ORDER_REMARKS: dict[Order, tuple[str, ...]] = {
    Order.CHECKED: (ORDER_TESTED,),
    Order.KEPT: ("rows leave in the order in which they came, which was declared to tell nothing",),
    Order.SHUFFLED: (),
}


def _shortened(sampler: ColumnSampler, spec: ColumnSpec) -> ColumnSampler:
    lip, ldp = sampler.lip, sampler.ldp
    local = math.inf if spec.ldp is None else spec.ldp
    return replace(
        sampler,
        lip=LIP(_coarse(lip.epsilon, spec.epsilon), _coarse(lip.delta, spec.delta)),
        ldp=LDP(_coarse(ldp.epsilon, local), _coarse(ldp.delta, 1.0)),
        cost=None if sampler.cost is None else float(shown_up(sampler.cost, 2)),
        silence=_short(sampler.silence),
        rounding=_short(sampler.rounding),
    )


def _coarse(value: float, cap: float) -> float:
    """The same with few digits, rounded up, but not beyond a cap that it keeps and all know."""
    rounded = float(shown_up(value, _DIGITS))
    return min(rounded, cap) if value <= cap else rounded


def _short(value: float) -> float:
    """The same with two digits."""
    return float(f"{value:.2g}")


def _worth(sampler: ColumnSampler) -> tuple[str, ...]:
    """What is said loudly where a constant would do as well, or better."""
    remarks = []
    if sampler.cost is not None and sampler.cost > sampler.silence * (1 - _SAME):
        how = (
            f"loses {sampler.cost / sampler.silence:.2f} times what a constant loses"
            if sampler.cost > sampler.silence * (1 + _SAME)
            else "tells no more than a constant does"
        )
        remarks.append(f"NOT WORTH IT: this release {how}; raise epsilon or take another mechanism")
    if sampler.rounding > _COARSE * sampler.silence:
        lost, silent = _short(sampler.rounding), _short(sampler.silence)
        remarks.append(
            f"TOO COARSE: clamping and rounding alone lose {lost:g} where a constant loses "
            f"{silent:g}; give a range that fits the values, or more points"
        )
    return tuple(remarks)


def _never(knowledge: Knowledge, sampler: ColumnSampler) -> tuple[str, ...]:
    """The symbols that no row can get; of numbers, few points are ever told, and that is fine."""
    if sampler.expected is None or isinstance(knowledge.where, Lattice):
        return ()
    pairs = zip(knowledge.where.alphabet.labels, sampler.expected, strict=True)
    return tuple(str(label) for label, share in pairs if share == 0)


def _unheard(never: tuple[str, ...]) -> tuple[str, ...]:
    if not never:
        return ()
    more = f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
    return (f"no row can get {', '.join(map(repr, never[:_NAMED]))}{more}: counts of it will be 0",)
