"""What a one-shot release of a column promises, costs, and is worth against saying nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato.column.column_knowledge import Known
from sfumato.column.column_mechanisms import Mechanism, OneShot, Released
from sfumato.column.column_reading import Records
from sfumato.core.arrays import Floats
from sfumato.core.guarantees import LDP, LIP
from sfumato.core.numerics import shown_down, shown_up
from sfumato.noise.lattice import Lattice
from sfumato.tables.kept_columns import Beside
from sfumato.tables.row_order import ORDER_TESTED, Order

_SAME = 1e-3
"""A release that saves less than this part of what a constant loses is worth no more than it."""
_COARSE = 0.1
"""Part of what a constant loses from which clamping and rounding alone are remarked on."""
_NOISE = 1e-12
"""What the arithmetic of two equal losses may leave between them."""
_DIGITS = 3
"""Of a leakage that was learnt from the rows that are released."""
_NAMED = 8
"""Symbols that a remark names; the certificate has all of them."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a one-shot release promises and costs.

    Attributes:
        column: The column that was released.
        kind: Whether it was read as symbols or numbers.
        mechanism: How.
        rows: How many values.
        lip: Largest exact leakage of any value under the prior, given what leaves beside it.
        ldp: The same whatever the prior: the backstop if the prior is wrong.
        loss: What errors are measured by.
        cost: Expected loss of a value, with clamping and rounding.
        nothing: The same if one fixed value were told, whatever is true.
        gain: Part of that loss which the release saves, rounded down to two digits; negative if a
            constant were better.
        rounding: Expected loss of clamping and rounding alone.
        prior: Where the prior comes from.
        floor: Part of an estimated prior that was spread evenly; 0 for one that was given.
        size: Number of symbols, or of points that stand for numbers.
        outputs: How many of them can be released; None if that was learnt from the very rows.
        never: Symbols that no row can get.
        interval: The numbers that are told apart; None for symbols.
        kept: Columns that leave beside it and that it was certified with.
        independent: Columns that leave beside it and were declared to tell nothing of it.
        order: In which order the rows leave.
        fingerprint: Identifies the mechanism.
        remarks: What a careful user should know.
        frequencies: Unbiased estimates of the shares of the symbols and their standard errors, for
            mechanisms that are made for it.
    """

    column: str
    kind: str
    mechanism: str
    rows: int
    lip: LIP
    ldp: LDP
    loss: str
    cost: float | None
    nothing: float
    gain: float | None
    rounding: float
    prior: str
    floor: float
    size: int
    outputs: int | None
    never: tuple[str, ...]
    interval: tuple[float, float] | None
    kept: tuple[str, ...]
    independent: tuple[str, ...]
    order: str
    fingerprint: str
    remarks: tuple[str, ...]
    frequencies: dict[str, tuple[float, float]] | None


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
        known: What was known of the column, in full: public where it was given or learnt from a
            history, and for the operator alone where it was learnt from the released rows.
        clamped: How many values lay outside the interval.
        missing: How many values were missing.
        realised: Mean loss on the true values; None where a report is no single value.
        constant: What the best constant would have lost on them.
        notes: What was seen in the private values. These five are for whoever holds the data, not
            for the receiver.
    """

    frame: Any
    certificate: Certificate
    spread: Spread = field(repr=False)
    known: Known = field(repr=False)
    clamped: int = field(default=0, repr=False)
    missing: int = field(default=0, repr=False)
    realised: float | None = field(default=None, repr=False)
    constant: float | None = field(default=None, repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)


def certificate_of(
    column: str,
    mechanism: Mechanism,
    known: Known,
    made: OneShot,
    told: Released,
    beside: Beside,
    order: Order,
    caps: tuple[LIP, float | None],
) -> Certificate:
    """The certificate of a release: nothing in it depends on the values but by what left.

    Losses that were learnt from the rows themselves are told with two digits: with all of them,
    whoever knows every row but one could compute the last. What is saved follows from the exact
    ones: of two that are rounded it could come out above the truth. Leakages have three digits,
    rounded up but not beyond what was asked for, and how many outputs there are is not told.
    """
    where, never = known.where, _never(known, made)
    worth, gain = _worth(made), _gain(made)
    private = known.records is Records.PRIVATE
    made = _shortened(made, *caps) if private else made
    heard = None if made.expected is None or private else int((made.expected > 0).sum())
    return Certificate(
        column=column,
        kind=known.kind.value,
        mechanism=mechanism.value,
        rows=len(told.values),
        lip=made.lip,
        ldp=made.ldp,
        loss=made.loss,
        cost=made.cost,
        nothing=made.nothing,
        gain=gain,
        rounding=made.rounding,
        prior=known.source,
        floor=known.floor,
        size=known.priors.shape[1],
        outputs=heard,
        never=never,
        interval=(where.low, where.high) if isinstance(where, Lattice) else None,
        kept=beside.linked,
        independent=beside.independent,
        order=order.value,
        fingerprint=made.fingerprint,
        remarks=(*worth, *_unheard(never), *known.remarks, *beside.remarks, *_ORDER[order]),
        frequencies=told.frequencies,
    )


def spread_of(known: Known, made: OneShot, told: Released) -> Spread:
    """Distributions before and after."""
    where = known.where
    places: tuple[str, ...] | Floats = (
        where.points
        if isinstance(where, Lattice)
        else tuple(str(label) for label in where.alphabet.labels)
    )
    return Spread(places, known.mean, made.expected, told.shares)


_ORDER: dict[Order, tuple[str, ...]] = {
    Order.CHECKED: (ORDER_TESTED,),
    Order.KEPT: ("rows leave in the order in which they came, which was declared to tell nothing",),
    Order.SHUFFLED: (),
}


def _shortened(made: OneShot, budget: LIP, local: float | None) -> OneShot:
    return replace(
        made,
        lip=LIP(_coarse(made.lip.epsilon, budget.epsilon), _coarse(made.lip.delta, budget.delta)),
        ldp=LDP(
            _coarse(made.ldp.epsilon, math.inf if local is None else local),
            _coarse(made.ldp.delta, 1.0),
        ),
        cost=None if made.cost is None else float(shown_up(made.cost, 2)),
        nothing=_short(made.nothing),
        rounding=_short(made.rounding),
    )


def _coarse(value: float, cap: float) -> float:
    """The same with few digits, rounded up, but not beyond a cap that it keeps and all know."""
    rounded = float(shown_up(value, _DIGITS))
    return min(rounded, cap) if value <= cap else rounded


def _short(value: float) -> float:
    """The same with two digits."""
    return float(f"{value:.2g}")


def _gain(made: OneShot) -> float | None:
    if made.cost is None or made.nothing == 0:
        return None
    gain = 1 - made.cost / made.nothing
    return 0.0 if abs(gain) < _NOISE else float(shown_down(gain, 2))


def _worth(made: OneShot) -> tuple[str, ...]:
    """What is said loudly where a constant would do as well, or better."""
    told = []
    if made.cost is not None and made.cost > made.nothing * (1 - _SAME):
        how = (
            f"loses {made.cost / made.nothing:.2f} times what a constant loses"
            if made.cost > made.nothing * (1 + _SAME)
            else "tells no more than a constant does"
        )
        told.append(f"NOT WORTH IT: this release {how}; raise epsilon or take another mechanism")
    if made.rounding > _COARSE * made.nothing:
        lost, silent = _short(made.rounding), _short(made.nothing)
        told.append(
            f"TOO COARSE: clamping and rounding alone lose {lost:g} where a constant loses "
            f"{silent:g}; give a range that fits the values, or more points"
        )
    return tuple(told)


def _never(known: Known, made: OneShot) -> tuple[str, ...]:
    """The symbols that no row can get; of numbers, few points are ever told, and that is fine."""
    if made.expected is None or isinstance(known.where, Lattice):
        return ()
    pairs = zip(known.where.alphabet.labels, made.expected, strict=True)
    return tuple(str(label) for label, share in pairs if share == 0)


def _unheard(never: tuple[str, ...]) -> tuple[str, ...]:
    if not never:
        return ()
    more = f" and {len(never) - _NAMED} more" if len(never) > _NAMED else ""
    return (f"no row can get {', '.join(map(repr, never[:_NAMED]))}{more}: counts of it will be 0",)
