"""One-shot release of a column: what is known, the mechanism, the draw, the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.column.column_certificate import Privatized
from sfumato.column.column_mechanisms import Mechanism
from sfumato.column.column_priors import AnyPrior
from sfumato.column.privatizer import POINTS, Privatizer
from sfumato.core.progress import Progress
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.models.encoding import Raw
from sfumato.tables.missing import Missing
from sfumato.tables.row_order import Order


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
    missing: str = Missing.REFUSE,
    history: Any = None,
    keep: Sequence[str] = (),
    independent: Sequence[str] = (),
    order: str = Order.CHECKED,
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
        missing: What becomes of a missing value: `refuse`, `drop` its row, or a `symbol` of its
            own.
        keep: Columns that leave as they are. They are knowledge: what is promised holds within
            every group of equal values of them.
        independent: Those of them that tell nothing of the released one, as the user declares.
        order: `checked` (rows leave as they came, unless that order tells of the column), `kept`
            (declared to tell nothing) or `shuffled`.
        identity: Column that names the rows, for keyed coins; else the row number. It is taken to
            tell nothing of the values.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.
        progress: Told how many rows are done.

    Examples:
        >>> import pyarrow as pa
        >>> from sfumato.core.guarantees import LIP
        >>> people = pa.table({"answer": ["yes", "no", "no", "no"] * 25})
        >>> done = privatize(people, "answer", epsilon=1.0, order="shuffled")
        >>> done.certificate.lip <= LIP(1.0), done.frame.column_names, done.frame.num_rows
        (True, ['answer'], 100)

    References:
        [LIP, Sec. IV and Sec. V]
    """
    privatizer = Privatizer(
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
        missing=missing,
        keep=keep,
        independent=independent,
        order=order,
        identity=identity,
        randomness=randomness,
        purpose=purpose,
    )
    if history is None or history is frame:
        return privatizer.fit_release(frame, progress=progress)
    return privatizer.fit(history).release(frame, progress=progress)
