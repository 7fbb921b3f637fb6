"""One-shot release of a column: what is known, the mechanism, the draw, the certificate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato import _checks
from sfumato._digest import digest
from sfumato.errors import InsecureRandomness, InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.guarantees import LDP, LIP
from sfumato.jobs import Progress
from sfumato.jobs.known import (
    AnyPrior,
    Columns,
    Floats,
    Kind,
    Known,
    Reading,
    feature_names,
    know,
    know_each,
)
from sfumato.jobs.one_shot import Mechanism, OneShot, Released, one_shot
from sfumato.mechanisms.lattice import Lattice
from sfumato.models.encoding import Raw, number
from sfumato.models.prior_sets import PriorBall, PriorBox
from sfumato.randomness import Randomness, secure
from sfumato.streaming.instant import Purpose

POINTS = 200
"""Points that stand for the numbers of an interval, unless told."""
_FRAME = "frame"
"""What messages call the table."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a one-shot release promises and costs.

    Attributes:
        column: The column that was released.
        mechanism: How.
        rows: How many values.
        lip: Largest exact leakage of any value under the prior.
        ldp: The same whatever the prior: the backstop if the prior is wrong.
        loss: What errors are measured by.
        cost: Expected loss of a value under the prior.
        nothing: The same if one fixed value were told, whatever is true.
        prior: Where the prior comes from.
        size: Number of symbols, or of points that stand for numbers.
        interval: The numbers that are told apart; None for symbols.
        clamped: How many values lay outside of it.
        remarks: What a careful user should know.
        frequencies: Unbiased estimates of the shares of the symbols and their standard errors, for
            mechanisms that are made for it.
    """

    column: str
    mechanism: str
    rows: int
    lip: LIP
    ldp: LDP
    loss: str
    cost: float | None
    nothing: float
    prior: str
    size: int
    interval: tuple[float, float] | None
    clamped: int
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
    """

    frame: Any
    certificate: Certificate
    spread: Spread = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class Privatizer:
    """A mechanism for one column, learnt from records of it, to release tables with.

    Attributes:
        column: The column it releases.
        known: What is known of its values.
        mechanism: How it releases.
        budget: Leakage allowed under the prior.
        loss: What a wrong symbol costs; as usual if not given.
        ldp: Cap on the leakage whatever the prior.

    Examples:
        >>> import pandas as pd
        >>> history = pd.DataFrame({"level": [1, 2, 2, 3, 3, 3, 4, 4, 5] * 20})
        >>> meter = Privatizer.fit(history, "level", epsilon=1.0, loss="absolute")
        >>> done = meter.transform(pd.DataFrame({"level": [3, 1, 5], "home": ["a", "b", "c"]}))
        >>> len(done.frame), done.certificate.lip <= LIP(1.0)
        (3, True)

    References:
        [LIP, Sec. V-A]
    """

    column: str
    known: Known
    mechanism: Mechanism
    budget: LIP
    loss: str | None = None
    ldp: float | None = None
    made: OneShot | None = field(default=None, repr=False)

    @classmethod
    def fit(
        cls,
        frame: Any,
        column: str,
        *,
        epsilon: float,
        delta: float = 0.0,
        prior: AnyPrior = "estimate",
        mechanism: str = Mechanism.OPTIMAL,
        loss: str | None = None,
        ldp: float | None = None,
        kind: str | None = None,
        values: Sequence[Raw] | None = None,
        interval: tuple[float, float] | None = None,
        points: int = POINTS,
        radius: float | None = None,
        ratio: float | None = None,
    ) -> Privatizer:
        """Learn what is known from a frame of records; the arguments are those of `privatize`."""
        reading = _reading(kind, values, interval, points)
        records = _columns(frame, [column, *feature_names(prior)])
        known = _within(know(column, records, prior, reading, _FRAME), radius, ratio)
        budget = LIP(_checks.epsilon("epsilon", epsilon), delta)
        chosen = _choice("mechanism", Mechanism, mechanism)
        # What is made for people waits until their features are known.
        made = None if known.predictor else _made(chosen, known, budget, loss, ldp)
        return cls(column, known, chosen, budget, loss, ldp, made)

    def transform(
        self,
        frame: Any,
        *,
        keep: Sequence[str] = (),
        identity: str | None = None,
        randomness: Randomness | None = None,
        purpose: Purpose = Purpose.RELEASE,
        progress: Progress | None = None,
    ) -> Privatized:
        """Release the column of a frame; the arguments are those of `privatize`."""
        coins = _coins(randomness, purpose, identity)
        if self.column in keep:
            raise InvalidParameter("keep", self.column, "not name the column that is released")
        ids = [] if identity is None else [identity]
        table = _columns(frame, [self.column, *self.known.features, *keep, *ids])
        known = self.known.of_people(table, _FRAME)
        made = self.made
        if made is None:
            made = _made(self.mechanism, known, self.budget, self.loss, self.ldp, progress)
        places = known.places(table[self.column], _FRAME)
        name = digest("privatize", self.column, made.fingerprint)
        rows = range(places.size) if identity is None else _names(table[identity], identity)
        told = made.draw(places, coins, [f"{name} {row}" for row in rows])
        values = table[self.column]
        return Privatized(
            frame=_framed(frame, self.column, told.values, keep),
            certificate=_certificate(self.column, self.mechanism, known, made, values, told),
            spread=_spread(known, made, told),
        )


def privatize(
    frame: Any,
    column: str,
    *,
    epsilon: float,
    delta: float = 0.0,
    prior: AnyPrior = "estimate",
    mechanism: str = Mechanism.OPTIMAL,
    loss: str | None = None,
    ldp: float | None = None,
    kind: str | None = None,
    values: Sequence[Raw] | None = None,
    interval: tuple[float, float] | None = None,
    points: int = POINTS,
    radius: float | None = None,
    ratio: float | None = None,
    history: Any = None,
    keep: Sequence[str] = (),
    identity: str | None = None,
    randomness: Randomness | None = None,
    purpose: Purpose = Purpose.RELEASE,
    progress: Progress | None = None,
) -> Privatized:
    """Release one column of a table once, each value through a certified mechanism.

    Releasing the same column again tells more about everyone: keep what was released. With
    `keyed` coins the same row gets the same answer again.

    Args:
        frame: A polars or pandas frame or a pyarrow table (anything that narwhals reads), or a
            mapping of columns; one row per person.
        column: The column to release: symbols, or numbers.
        epsilon: Leakage allowed under the prior.
        delta: Probability with which it may be more; for numbers.
        prior: What the adversary knows: `estimate` (frequencies), `mixture` (normals, for
            numbers), `features:a,b` (predicted from other columns, person by person), a file, a
            `Prior`, a mapping of symbols to probabilities, a set of priors or a
            `GaussianMixture`.
        mechanism: How to release; see `sfumato privatize --help`.
        loss: What a wrong symbol costs: `hamming` (unless told), `absolute`, `squared`. The error
            of numbers is absolute.
        ldp: Cap on the leakage whatever the prior; for the optimal mechanism.
        kind: `symbols` or `numbers`; found out if not given.
        values: The possible symbols, where records may lack some; those that occur if not given.
        interval: The numbers that are told apart; others are clamped to its ends.
        points: How many points stand for the interval.
        radius: The prior is only known up to this total variation.
        ratio: The prior is only known up to this factor.
        history: Public records of the same kind to learn the prior from; else the frame itself.
        keep: Columns that leave as they are.
        identity: Column that names the rows, for keyed coins; else the row number.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.
        progress: Told how many rows are done.

    Examples:
        >>> import pyarrow as pa
        >>> people = pa.table({"answer": ["yes", "no", "no", "no"] * 25})
        >>> done = privatize(people, "answer", epsilon=1.0)
        >>> done.certificate.lip <= LIP(1.0), done.frame.column_names, done.frame.num_rows
        (True, ['answer'], 100)

    References:
        [LIP, Sec. IV and Sec. V]
    """
    if history is None and feature_names(prior):
        reading = _reading(kind, values, interval, points)
        fitted = Privatizer(
            column,
            _within(_known_each(frame, column, str(prior), reading), radius, ratio),
            _choice("mechanism", Mechanism, mechanism),
            LIP(_checks.epsilon("epsilon", epsilon), delta),
            loss,
            ldp,
        )
    else:
        fitted = Privatizer.fit(
            frame if history is None else history,
            column,
            epsilon=epsilon,
            delta=delta,
            prior=prior,
            mechanism=mechanism,
            loss=loss,
            ldp=ldp,
            kind=kind,
            values=values,
            interval=interval,
            points=points,
            radius=radius,
            ratio=ratio,
        )
    if history is None and isinstance(prior, str) and not Path(prior).is_file():
        fitted = replace(fitted, known=_own(fitted.known))
    return fitted.transform(
        frame,
        keep=keep,
        identity=identity,
        randomness=randomness,
        purpose=purpose,
        progress=progress,
    )


def _known_each(frame: Any, column: str, prior: str, reading: Reading) -> Known:
    table = _columns(frame, [column, *feature_names(prior)])
    return know_each(column, table, prior, reading, _FRAME)


def _own(known: Known) -> Known:
    remark = (
        "the prior was learnt from this very column: the guarantee is against an adversary who "
        "knows that prior already; learn it from public records (history) to be safe"
    )
    return replace(known, remarks=(*known.remarks, remark))


def _coins(randomness: Randomness | None, purpose: Purpose, identity: str | None) -> Randomness:
    coins = secure() if randomness is None else randomness
    if coins.simulated and purpose is not Purpose.SIMULATION:
        raise InsecureRandomness("privatize")
    if identity is not None and not coins.addressed:
        raise InvalidParameter("identity", identity, "come with keyed coins")
    return coins


def _reading(
    kind: str | None,
    values: Sequence[Raw] | None,
    interval: tuple[float, float] | None,
    points: int,
) -> Reading:
    return Reading(
        None if kind is None else _choice("kind", Kind, kind),
        None if values is None else tuple(values),
        interval,
        points,
    )


def _made(
    mechanism: Mechanism,
    known: Known,
    budget: LIP,
    loss: str | None,
    ldp: float | None,
    progress: Progress | None = None,
) -> OneShot:
    made = one_shot(mechanism, known, budget, loss=loss, ldp=ldp, progress=progress)
    if not made.lip <= budget:
        rule = f"keep the budget; it would leak {made.lip}, so nothing was released"
        raise InvalidParameter("mechanism", mechanism.value, rule)
    return made


def _names(cells: Sequence[Raw], column: str) -> list[str]:
    """Names of the rows, each its own."""
    names = [str(cell) for cell in cells]
    if len(set(names)) != len(names):
        raise BadTable(_FRAME, None, f"column {column!r} must name each row once")
    return names


def _within(known: Known, radius: float | None, ratio: float | None) -> Known:
    if radius is None and ratio is None:
        return known
    if radius is not None and ratio is not None:
        raise InvalidParameter("radius", radius, "not come with ratio")
    if len(known.priors) != 1 or known.within is not None or known.kind is Kind.NUMBERS:
        raise InvalidParameter("radius" if ratio is None else "ratio", "given", "go with symbols")
    prior = known.priors[0]
    near = PriorBall(prior, radius) if radius is not None else PriorBox.near(prior, ratio or 1.0)
    return replace(known, within=near)


def _certificate(
    column: str,
    mechanism: Mechanism,
    known: Known,
    made: OneShot,
    values: Sequence[Raw],
    told: Released,
) -> Certificate:
    where = known.where
    numbers = isinstance(where, Lattice)
    return Certificate(
        column=column,
        mechanism=mechanism.value,
        rows=len(values),
        lip=made.lip,
        ldp=made.ldp,
        loss=made.loss,
        cost=made.cost,
        nothing=made.nothing,
        prior=known.source,
        size=known.priors.shape[1],
        interval=(where.low, where.high) if isinstance(where, Lattice) else None,
        clamped=where.outside([number(v) for v in values]) if isinstance(where, Lattice) else 0,
        remarks=known.remarks,
        frequencies=None if numbers else told.frequencies,
    )


def _spread(known: Known, made: OneShot, told: Released) -> Spread:
    where = known.where
    places: tuple[str, ...] | Floats = (
        where.points
        if isinstance(where, Lattice)
        else tuple(str(label) for label in where.alphabet.labels)
    )
    return Spread(places, known.mean, made.expected, told.shares)


def _choice(name: str, kind: Any, value: str) -> Any:
    if value not in list(kind):
        raise InvalidParameter(name, value, f"be one of {', '.join(kind)}")
    return kind(value)


def _columns(frame: Any, names: Sequence[str]) -> Columns:
    """The columns of any frame as plain lists."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        table: Any = frame
        there = list(frame)
    else:
        try:
            table = nw.from_native(frame, eager_only=True)
        except TypeError:
            rule = "be a frame of polars or pandas, a pyarrow table, or a mapping of columns"
            raise InvalidParameter(_FRAME, type(frame).__name__, rule) from None
        there = table.columns
    for name in names:
        if name not in there:
            raise BadTable(_FRAME, None, f"the table must have a column {name!r}")
    return {
        name: list(table[name]) if isinstance(frame, Mapping) else table[name].to_list()
        for name in names
    }


def _framed(frame: Any, column: str, values: list[Any], keep: Sequence[str]) -> Any:
    """What leaves, as the kind of frame that came."""
    import narwhals as nw

    if isinstance(frame, Mapping):
        return {**{name: list(frame[name]) for name in keep}, column: values}
    native = nw.from_native(frame, eager_only=True)
    told = nw.new_series(column, values, backend=native.implementation)
    if not keep:
        return told.to_frame().to_native()
    return native.select(*keep).with_columns(told).to_native()
