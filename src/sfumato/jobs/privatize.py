"""One-shot release of a column: what is known, the mechanism, the draw, the certificate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sfumato import _checks
from sfumato._digest import content, digest
from sfumato.errors import InvalidParameter
from sfumato.guarantees import LDP, LIP
from sfumato.jobs import Progress
from sfumato.jobs.coins import RowCoins, release_coins, row_addresses
from sfumato.jobs.frames import column_list, columns_of, framed
from sfumato.jobs.known import (
    AnyPrior,
    Floats,
    Kind,
    Known,
    Reading,
    feature_names,
    know,
    know_each,
)
from sfumato.jobs.one_shot import Mechanism, OneShot, Released, one_shot
from sfumato.jobs.spec import choice
from sfumato.mechanisms.lattice import Lattice
from sfumato.models.encoding import Raw, number
from sfumato.models.prior_sets import PriorBall, PriorBox, PriorSet
from sfumato.randomness import Domain, Randomness
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
        fingerprint: Identifies the mechanism and all that shapes its answers.
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
        clamped: How many values lay outside the interval: for whoever holds the data, not for
            the receiver.
    """

    frame: Any
    certificate: Certificate
    spread: Spread = field(repr=False)
    clamped: int = field(default=0, repr=False)


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
        source: str = _FRAME,
    ) -> Privatizer:
        """Learn what is known from a frame of records; the arguments are those of `privatize`."""
        reading = _reading(kind, values, interval, points)
        records = columns_of(frame, [column, *feature_names(prior)], source)
        known = _within(know(column, records, prior, reading, source), radius, ratio)
        budget = LIP(_checks.epsilon("epsilon", epsilon), delta)
        chosen = choice("mechanism", Mechanism, mechanism)
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
        coins = release_coins("privatize", randomness, purpose, identity)
        kept = column_list("keep", keep)
        if self.column in kept:
            raise InvalidParameter("keep", self.column, "not name the column that is released")
        ids = [] if identity is None else [identity]
        table = columns_of(frame, [self.column, *self.known.features, *kept, *ids], _FRAME)
        known = self.known.of_people(table, _FRAME)
        made = self.made
        if made is None:
            made = _made(self.mechanism, known, self.budget, self.loss, self.ldp, progress)
        places = known.places(table[self.column], _FRAME)
        naming = None if identity is None else table[identity]
        rows = row_addresses(places, naming, identity, _FRAME)
        plan = self._plan(purpose)
        told = made.draw(places, RowCoins(coins, Domain.PRIVATIZE, plan, rows))
        outside = 0
        if isinstance(known.where, Lattice):
            outside = known.where.outside([number(value) for value in table[self.column]])
        return Privatized(
            frame=framed(frame, kept, self.column, told.values),
            certificate=_certificate(self, known, made, digest(plan, made.fingerprint), told),
            spread=_spread(known, made, told),
            clamped=outside,
        )

    def _plan(self, purpose: Purpose) -> str:
        """Fingerprint of what shapes everybody's answers; each row adds its channel and prior."""
        known = self.known
        asked = (self.mechanism, self.budget, self.loss, self.ldp, known.where, known.within)
        # A prior that is predicted for each person is part of his own address.
        shared = None if known.predictor else known.priors
        return digest("privatize", purpose.value, self.column, shared, content(asked))


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
    `keyed` coins the same column gets the same answers again, or, with `identity`, the same
    person: then a key is for one value of each person, and a later one needs another key.

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
        ratio: The prior is only known up to this factor, at least 1.
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
    past = None if history is frame else history
    if past is None and feature_names(prior):
        if radius is not None or ratio is not None:
            raise InvalidParameter("prior", "features", "not come with radius or ratio")
        fitted = Privatizer(
            column,
            _known_each(frame, column, str(prior), _reading(kind, values, interval, points)),
            choice("mechanism", Mechanism, mechanism),
            LIP(_checks.epsilon("epsilon", epsilon), delta),
            loss,
            ldp,
        )
    else:
        fitted = Privatizer.fit(
            frame if past is None else past,
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
            source=_FRAME if past is None else "history",
        )
    if past is None:
        fitted = replace(fitted, known=_own(fitted.known, prior, values))
    return fitted.transform(
        frame,
        keep=keep,
        identity=identity,
        randomness=randomness,
        purpose=purpose,
        progress=progress,
    )


def _known_each(frame: Any, column: str, prior: str, reading: Reading) -> Known:
    table = columns_of(frame, [column, *feature_names(prior)], _FRAME)
    return know_each(column, table, prior, reading, _FRAME)


def _own(known: Known, prior: AnyPrior, values: Sequence[Raw] | None) -> Known:
    """What was learnt from the very column that is released is said to be."""
    remarks = []
    if prior in ("estimate", "mixture") or feature_names(prior):
        remarks.append(
            "the prior was learnt from this very column: the guarantee is against an adversary who "
            "knows that prior already; learn it from public records (history) to be safe"
        )
    elif isinstance(prior, PriorSet) and values is None:
        remarks.append(
            "the possible symbols were read off this very column: which ones occur is told; give "
            "them (values) to be safe"
        )
    return replace(known, remarks=(*known.remarks, *remarks))


def _reading(
    kind: str | None,
    values: Sequence[Raw] | None,
    interval: tuple[float, float] | None,
    points: int,
) -> Reading:
    if interval is not None:
        ends = () if isinstance(interval, str) else tuple(interval)
        if len(ends) != 2 or not all(isinstance(end, int | float) for end in ends):
            raise InvalidParameter("interval", "something else", "be two numbers, low and high")
    return Reading(
        None if kind is None else choice("kind", Kind, kind),
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


def _within(known: Known, radius: float | None, ratio: float | None) -> Known:
    if radius is None and ratio is None:
        return known
    if radius is not None and ratio is not None:
        raise InvalidParameter("radius", radius, "not come with ratio")
    if len(known.priors) != 1 or known.within is not None or known.kind is Kind.NUMBERS:
        raise InvalidParameter("radius" if ratio is None else "ratio", "given", "go with symbols")
    prior = known.priors[0]
    if radius is not None:
        return replace(known, within=PriorBall(prior, radius))
    factor = _checks.finite("ratio", 1.0 if ratio is None else ratio, at_least=1.0)
    return replace(known, within=PriorBox.near(prior, math.log(factor)))


def _certificate(
    release: Privatizer, known: Known, made: OneShot, fingerprint: str, told: Released
) -> Certificate:
    where = known.where
    return Certificate(
        column=release.column,
        mechanism=release.mechanism.value,
        rows=len(told.values),
        lip=made.lip,
        ldp=made.ldp,
        loss=made.loss,
        cost=made.cost,
        nothing=made.nothing,
        prior=known.source,
        size=known.priors.shape[1],
        interval=(where.low, where.high) if isinstance(where, Lattice) else None,
        fingerprint=fingerprint,
        remarks=known.remarks,
        frequencies=told.frequencies,
    )


def _spread(known: Known, made: OneShot, told: Released) -> Spread:
    where = known.where
    places: tuple[str, ...] | Floats = (
        where.points
        if isinstance(where, Lattice)
        else tuple(str(label) for label in where.alphabet.labels)
    )
    return Spread(places, known.mean, made.expected, told.shares)
