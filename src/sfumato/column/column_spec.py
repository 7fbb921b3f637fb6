"""The spec of a one-shot release: every argument of `privatize`, checked once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sfumato.column.mechanism_registry import mechanism_named
from sfumato.core import checks
from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LIP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.models.encoding import Raw, Symbols, text
from sfumato.tables.cells import MISSING_SYMBOL, Missing, is_missing, read_each
from sfumato.tables.frames import column_list
from sfumato.tables.pass_through import PassThrough
from sfumato.tables.row_order import Order

if TYPE_CHECKING:
    from sfumato.column.column_priors import AnyPrior

FEATURES = "features:"


class Kind(StrEnum):
    """How a column is read."""

    SYMBOLS = "symbols"
    NUMBERS = "numbers"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ColumnSpec:
    """What to release of a table, how, and against whom.

    Attributes:
        column: The column to release: symbols, or numbers.
        epsilon: Leakage allowed under the prior.
        delta: Probability with which it may be more; for numbers.
        prior: What the adversary knows: `estimate` (frequencies), `mixture` (normals, for
            numbers), `features:a,b` (predicted from other columns, person by person), a file, a
            `Prior`, a mapping of symbols to probabilities, a set of priors or a
            `GaussianMixture`.
        mechanism: How to release; see `sfumato privatize --help`.
        loss: What a wrong symbol costs: `hamming` (unless given), `absolute`, `squared`. The error
            of numbers is absolute.
        ldp: Cap on the leakage whatever the prior; for the optimal mechanism.
        kind: `symbols` or `numbers`; found out if not given.
        values: The possible symbols, where records may lack some; those that occur if not given.
        interval: The numbers that are told apart; others are clamped to its ends.
        points: How many points stand for the interval.
        radius: The prior is only known up to this total variation.
        ratio: The prior is only known up to this factor, at least 1.
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
        pass_through: The columns that leave beside the released one; follows from the others.

    Examples:
        >>> asked = ColumnSpec("salary", epsilon=1, keep=["town"], order="shuffled")
        >>> asked.budget, asked.pass_through.linked
        (LIP(epsilon=1.0, delta=0.0), ('town',))
    """

    column: str = field(kw_only=False)
    epsilon: float
    delta: float = 0.0
    prior: AnyPrior = "estimate"
    mechanism: str = "optimal"
    loss: str | None = None
    ldp: float | None = None
    kind: str | None = None
    values: Sequence[Raw] | None = None
    interval: tuple[float, float] | None = None
    points: int = 200
    radius: float | None = None
    ratio: float | None = None
    missing: str = Missing.REFUSE
    keep: Sequence[str] = ()
    independent: Sequence[str] = ()
    order: str = Order.CHECKED
    identity: str | None = None
    randomness: Randomness | None = None
    purpose: Purpose = Purpose.RELEASE
    pass_through: PassThrough = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.features and (self.radius is not None or self.ratio is not None):
            raise InvalidParameter("prior", "features", "not come with radius or ratio")
        mechanism_named(self.mechanism)
        checked = {
            "kind": None if self.kind is None else choice("kind", Kind, self.kind),
            "missing": choice("missing", Missing, self.missing),
            "values": None if self.values is None else tuple(self.values),
            "epsilon": checks.epsilon("epsilon", self.epsilon),
            "delta": float(self.delta),
            "ldp": None if self.ldp is None else float(self.ldp),
            "interval": _interval(self.interval),
            "pass_through": _pass_through(self),
            "order": choice("order", Order, self.order),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        checks.fraction("delta", self.delta)
        if self.missing is Missing.SKIP:
            rule = "be refuse, drop or symbol: skip is for values over time"
            raise InvalidParameter("missing", self.missing, rule)

    @property
    def budget(self) -> LIP:
        """Leakage allowed under the prior."""
        return LIP(self.epsilon, self.delta)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that the prior is predicted from."""
        return feature_names(self.prior)

    @property
    def learnt_columns(self) -> list[str]:
        """The columns that records must have."""
        return [self.column, *self.features, *self.pass_through.linked]

    @property
    def released_columns(self) -> list[str]:
        """The columns that a table to be released must have."""
        names = [] if self.identity is None else [self.identity]
        return [*self.learnt_columns, *self.pass_through.columns, *names]

    def cells(self, values: Sequence[Raw]) -> Sequence[Raw]:
        """The values with missing ones as the symbol that stands for them, if one does."""
        if self.missing is not Missing.SYMBOL:
            return values
        return [MISSING_SYMBOL if is_missing(value) else value for value in values]

    def symbols(self, values: Sequence[Raw], source: str) -> Symbols:
        """The alphabet: the possible values, or those that occur."""
        listed = list(values if self.values is None else self.values)
        if self.missing is Missing.SYMBOL:
            listed.append(MISSING_SYMBOL)
        return Symbols.of(read_each(listed, text, source))


def feature_names(prior: object) -> tuple[str, ...]:
    """The columns that a prior is predicted from.

    Examples:
        >>> feature_names("features: age,school")
        ('age', 'school')
    """
    if not isinstance(prior, str) or not prior.startswith(FEATURES):
        return ()
    names = (name.strip() for name in prior.removeprefix(FEATURES).split(","))
    return tuple(name for name in names if name)


def _pass_through(spec: ColumnSpec) -> PassThrough:
    """Kept columns; one that names the rows does only that, by declaration."""
    declared = list(column_list("independent", spec.independent))
    if spec.identity in column_list("keep", spec.keep) and spec.identity not in declared:
        declared.append(spec.identity)
    return PassThrough.of(spec.keep, declared, [spec.column])


def _interval(ends: Any) -> tuple[float, float] | None:
    if ends is None:
        return None
    pair = () if isinstance(ends, str) else tuple(ends)
    if len(pair) != 2 or not all(isinstance(end, int | float) for end in pair):
        raise InvalidParameter("interval", "something else", "be two numbers, low and high")
    return float(pair[0]), float(pair[1])
