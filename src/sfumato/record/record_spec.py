"""The spec of several columns: every argument of `disclosure` and `publish`, checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.checks import choice
from sfumato.core.errors import InvalidParameter
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.record.attributes import LEARNT, AnyCoupling
from sfumato.record.coupling.coupling import Interval
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.published_noise import VECTOR_NOISES, noise_of
from sfumato.record.vector_noise import CorrelatedNoise, VectorNoise, axis_scales
from sfumato.tables.cells import Missing
from sfumato.tables.frames import column_list
from sfumato.tables.pass_through import PassThrough
from sfumato.tables.row_order import Order

BEST = "best"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RecordSpec:
    """Which columns of a table leave, with what noise, and against whom.

    Attributes:
        columns: The columns that are published.
        accuracy: How near an attacker must come, for all columns or each.
        sigma: Standard deviation of the noise, for all columns or each. With `target_delta` only
            their proportions count; those of the accuracies if not given.
        noise: `uniform`, `ball`, `gaussian`, `laplace`, or `best` (round, for up to two columns).
        coupling: What the attacker knows: the joint density of the columns, learnt as a mixture of
            normals, if you say nothing; see `known_attributes`.
        target_delta: Find the least noise with which the attacker succeeds at most so often.
        attacker: For the best noise: bound on the attacker who knows the coupling, while what
            one who knows nothing can do is made least.
        correlation: For Gaussian noise: its correlation matrix, or one number for any two columns.
        domains: Intervals of the columns, known to everybody.
        degree: Of polynomials that are fitted.
        keep: Columns that leave as they are, so that attackers know them: what is said is said of
            each group of people who agree in them, and the worst is told.
        independent: Those of them that you declare to tell nothing of the columns.
        missing: What becomes of a row without a value: `refuse`, or `drop` to leave it out.
        order: How published rows leave: `checked` (as they came, unless that order tells of a
            column), `kept` (you declare that it tells nothing) or `shuffled`.
        identity: Column that names the rows, for keyed coins.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.
        beside: The columns that leave beside the published ones; follows from the others.

    Examples:
        >>> asked = RecordSpec(["height", "weight"], accuracy=2.0, sigma=6.0, keep=["town"])
        >>> asked.columns, asked.beside.linked, asked.noise_at(np.array([6.0, 6.0])).words
        (('height', 'weight'), ('town',), 4)
    """

    columns: Sequence[str] = field(kw_only=False)
    accuracy: ArrayLike
    sigma: ArrayLike | None = None
    noise: str = "ball"
    coupling: AnyCoupling = LEARNT
    target_delta: float | None = None
    attacker: float | None = None
    correlation: ArrayLike | None = None
    domains: Mapping[str, Interval] | None = None
    degree: int = 2
    keep: Sequence[str] = ()
    independent: Sequence[str] = ()
    missing: str = Missing.REFUSE
    order: str = Order.CHECKED
    identity: str | None = None
    randomness: Randomness | None = None
    purpose: Purpose = Purpose.RELEASE
    beside: PassThrough = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.noise not in (*VECTOR_NOISES, BEST):
            raise InvalidParameter(
                "noise", self.noise, f"be one of {', '.join((*VECTOR_NOISES, BEST))}"
            )
        if self.attacker is not None and self.noise != BEST:
            raise InvalidParameter("attacker", self.attacker, "come with the best noise")
        if self.target_delta is not None and self.noise == BEST:
            raise InvalidParameter("noise", BEST, "come with sigma, not with target_delta")
        if self.correlation is not None and self.noise != "gaussian":
            raise InvalidParameter("correlation", "given", "come with gaussian noise")
        if self.missing not in (Missing.REFUSE, Missing.DROP):
            rule = "be refuse or drop: a number has no symbol to stand for it, people no moments"
            raise InvalidParameter("missing", self.missing, rule)
        checked = {
            "columns": tuple(column_list("columns", self.columns)),
            "target_delta": _probability("target_delta", self.target_delta),
            "attacker": _probability("attacker", self.attacker),
            "order": choice("order", Order, self.order),
            "missing": Missing(self.missing),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "beside", self._beside())

    @property
    def half(self) -> Floats:
        """How near an attacker must come, on each column."""
        return axis_scales("accuracy", self.accuracy, len(self.columns))

    @property
    def scales(self) -> Floats:
        """Deviations of the noise, or their proportions."""
        if self.sigma is not None:
            return axis_scales("sigma", self.sigma, len(self.columns))
        if self.target_delta is None:
            raise InvalidParameter("sigma", None, "be given, or target_delta")
        return self.half

    @property
    def table_columns(self) -> list[str]:
        """The columns that the table must have."""
        named = [] if self.identity is None else [self.identity]
        return [*self.columns, *self.beside.columns, *named]

    @property
    def history_columns(self) -> list[str]:
        """The columns that public records must have."""
        return [*self.columns, *self.beside.linked]

    def noise_at(self, scales: Floats) -> VectorNoise:
        """The noise of some deviations, unless the best one is asked for."""
        if self.correlation is None:
            return noise_of(self.noise, scales)
        matrix = checks.numbers("correlation", self.correlation)
        if matrix.ndim == 0:
            matrix = np.where(np.eye(scales.size, dtype=bool), 1.0, matrix)
        return CorrelatedNoise(scales, matrix)

    def _beside(self) -> PassThrough:
        """Kept columns; one that names the rows does only that, by declaration."""
        declared = list(column_list("independent", self.independent))
        if self.identity in column_list("keep", self.keep) and self.identity not in declared:
            declared.append(str(self.identity))
        beside = PassThrough.of(self.keep, declared, self.columns)
        if beside.linked and isinstance(self.coupling, JointMixture):
            rule = (
                "be learnt where columns are kept, so that every group of them has its own "
                "density; or declare them independent (independent)"
            )
            raise InvalidParameter("coupling", "a joint density", rule)
        return beside


def _probability(name: str, value: object) -> float | None:
    if value is None:
        return None
    if not isinstance(value, Real):
        raise InvalidParameter(name, type(value).__name__, "be a number")
    return checks.proper_fraction(name, float(value))
