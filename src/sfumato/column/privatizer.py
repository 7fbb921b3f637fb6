"""A mechanism for one column: learnt from records, then released through, table by table."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from sfumato.column.column_certificate import Certificate, Privatized
from sfumato.column.column_knowledge import Known, Learning, feature_names, know, know_each
from sfumato.column.column_mechanisms import Mechanism
from sfumato.column.column_priors import AnyPrior
from sfumato.column.column_reading import Records
from sfumato.column.column_release import (
    FRAME,
    HISTORY,
    LEARNT_HERE,
    ColumnSpec,
    learnt_here,
    within,
)
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness
from sfumato.models.encoding import Raw
from sfumato.tables.missing import Missing
from sfumato.tables.row_order import Order

POINTS = 200
"""Points that stand for the numbers of an interval, unless told."""


class Privatizer:
    """A mechanism for one column, learnt from records of it, to release tables with.

    It is a transformer of scikit-learn's kind: it can be cloned and put into a pipeline. `fit`
    takes public records; `fit_transform` learns from the very rows that it releases, and says so.
    Every call of `transform` is a release: with fresh coins the same rows tell more each time.

    The arguments are those of `privatize`, but for `history`. After `fit` there are `known_`,
    what is known, and after `transform` also `certificate_`, that of the last release.

    Examples:
        >>> import pandas as pd
        >>> from sfumato.core.guarantees import LIP
        >>> history = pd.DataFrame({"level": [1, 2, 2, 3, 3, 3, 4, 4, 5] * 20})
        >>> meter = Privatizer("level", epsilon=1.0, loss="absolute").fit(history)
        >>> done = meter.release(pd.DataFrame({"level": [3, 1, 5], "home": ["a", "b", "c"]}))
        >>> len(done.frame), done.certificate.lip <= LIP(1.0)
        (3, True)

    References:
        [LIP, Sec. V-A]
    """

    known_: Known
    certificate_: Certificate

    # scikit-learn's rule: arguments are kept as they came, and checked when they are used.
    def __init__(
        self,
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
        keep: Sequence[str] = (),
        independent: Sequence[str] = (),
        order: str = Order.CHECKED,
        identity: str | None = None,
        randomness: Randomness | None = None,
        purpose: Purpose = Purpose.RELEASE,
    ) -> None:
        self.column = column
        self.epsilon = epsilon
        self.delta = delta
        self.prior = prior
        self.mechanism = mechanism
        self.loss = loss
        self.ldp = ldp
        self.kind = kind
        self.values = values
        self.interval = interval
        self.points = points
        self.radius = radius
        self.ratio = ratio
        self.missing = missing
        self.keep = keep
        self.independent = independent
        self.order = order
        self.identity = identity
        self.randomness = randomness
        self.purpose = purpose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments, by name."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Change arguments; `fit` again to use them."""
        for name, value in parameters.items():
            if name not in _PARAMETERS:
                raise InvalidParameter("set_params", name, f"name one of {', '.join(_PARAMETERS)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Privatizer({self.column!r}, epsilon={self.epsilon!r})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "known_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            no_validation=True,
        )

    def fit(self, frame: Any, y: object = None) -> Self:
        """Learn what is known from a frame of public records."""
        return self._fit(frame, Records.PUBLIC)

    def transform(self, frame: Any) -> Any:
        """Release the column of a frame; `certificate_` says what was promised."""
        done = self.release(frame)
        self.certificate_ = done.certificate
        return done.frame

    def fit_transform(self, frame: Any, y: object = None) -> Any:
        """Learn from the very rows that are released, which the certificate says."""
        done = self.fit_release(frame)
        self.certificate_ = done.certificate
        return done.frame

    def release(self, frame: Any, *, progress: Progress | None = None) -> Privatized:
        """Release the column of a frame, with its certificate."""
        if not hasattr(self, "known_"):
            raise InvalidParameter("fit", "not called", "come before a release")
        table = self._spec_.table(frame, FRAME)
        known = self.known_.of_people(table.columns, FRAME)
        made = self._made_
        if made is None:
            made = self._spec_.made(known, progress)
        return self._spec_.released(frame, table, known, made)

    def fit_release(self, frame: Any, *, progress: Progress | None = None) -> Privatized:
        """Learn from the very rows that are released, and release them."""
        self._fit(frame, Records.PRIVATE)
        if not feature_names(self.prior):
            return self.release(frame, progress=progress)
        spec = self._spec_
        table = spec.table(frame, FRAME)
        learning = Learning(FRAME, Records.PRIVATE, spec.beside.linked)
        each = know_each(self.column, table.columns, self.prior, spec.reading, learning)
        known = replace(each, remarks=(*each.remarks, LEARNT_HERE))
        return spec.released(frame, table, known, spec.made(known, progress))

    def _fit(self, frame: Any, records: Records) -> Self:
        spec = ColumnSpec.of(self)
        source = FRAME if records is Records.PRIVATE else HISTORY
        table = spec.table(frame, source, spec.learnt)
        learning = Learning(source, records, spec.beside.linked)
        known = know(self.column, table.columns, self.prior, spec.reading, learning)
        known = within(known, self.radius, self.ratio)
        if records is Records.PRIVATE:
            known = replace(known, remarks=(*known.remarks, *learnt_here(self.prior, self.values)))
        # What is made for people waits until their features or groups are known.
        self._made_ = None if known.waits else spec.made(known)
        self._spec_, self.known_ = spec, known
        return self


_PARAMETERS = tuple(list(inspect.signature(Privatizer.__init__).parameters)[1:])
