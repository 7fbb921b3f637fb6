"""One column of a table, released once: as a function, and as a transformer of scikit-learn."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Self

from sfumato.column.column_certificate import ColumnCertificate, Privatized
from sfumato.column.column_release import FittedColumn, learn_and_release
from sfumato.column.column_spec import ColumnSpec
from sfumato.column.knowledge import Knowledge, Records
from sfumato.core.errors import InvalidParameter
from sfumato.core.progress import Progress
from sfumato.core.specs import spec_fields, spec_of

_PARAMETERS = tuple(part.name for part in fields(ColumnSpec) if part.init)


def privatize(
    frame: Any,
    column: str | ColumnSpec,
    *,
    history: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> Privatized:
    """Release one column of a table once, each value through a certified mechanism.

    Releasing the same column again tells more about everyone: keep what was released. With
    `keyed` coins the same column gets the same answers again, or, with `identity`, the same
    person: then a key is for one value of each person, and a later one needs another key.

    Args:
        frame: A polars or pandas frame or a pyarrow table (anything that narwhals reads), or a
            mapping of columns; one row per person.
        column: The column to release, or the whole spec.
        history: Public records of the same kind to learn the prior from; else the frame itself.
        progress: Told how many priors a mechanism was made for.
        options: The fields of `ColumnSpec`, `epsilon` at least.

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
    spec = spec_of(ColumnSpec, column, options)
    if history is None or history is frame:
        return learn_and_release(spec, frame, progress)
    return FittedColumn.learnt(spec, history, Records.PUBLIC).release(frame, progress)


class Privatizer:
    """A mechanism for one column, learnt from records of it, to release tables with.

    It is a transformer of scikit-learn's kind: it can be cloned and put into a pipeline. `fit`
    takes public records; `fit_transform` learns from the very rows that it releases, and says so.
    Every call of `transform` is a release: with fresh coins the same rows tell more each time.

    The arguments are the fields of `ColumnSpec`. After `fit` there is `knowledge_`, what is known
    of the column, and after `transform` also `certificate_`, that of the last release.

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

    knowledge_: Knowledge
    certificate_: ColumnCertificate

    # scikit-learn's rule: arguments are kept as they came, and checked when they are used.
    def __init__(self, column: str, **options: Any) -> None:
        vars(self).update(spec_fields(ColumnSpec, column, options))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """The arguments, which are the fields of the spec."""

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
        return hasattr(self, "knowledge_")

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
        return self._noted(self.release(frame))

    def fit_transform(self, frame: Any, y: object = None) -> Any:
        """Learn from the very rows that are released, which the certificate says."""
        return self._noted(self.fit_release(frame))

    def release(self, frame: Any, *, progress: Progress | None = None) -> Privatized:
        """Release the column of a frame, with its certificate."""
        if not self.__sklearn_is_fitted__():
            raise InvalidParameter("fit", "not called", "come before a release")
        fitted: FittedColumn = self._fitted
        return fitted.release(frame, progress)

    def fit_release(self, frame: Any, *, progress: Progress | None = None) -> Privatized:
        """Learn from the very rows that are released, and release them."""
        self._fit(frame, Records.PRIVATE)
        if self._fitted.spec.features:  # each person's prior is learnt without his own row
            return learn_and_release(self._fitted.spec, frame, progress)
        return self.release(frame, progress=progress)

    def _noted(self, done: Privatized) -> Any:
        self.certificate_ = done.certificate
        return done.frame

    def _fit(self, frame: Any, records: Records) -> Self:
        self._fitted = FittedColumn.learnt(ColumnSpec(**self.get_params()), frame, records)
        self.knowledge_ = self._fitted.knowledge
        return self


# What help and editors show: the fields of the spec, which are written once.
_SIGNATURE = inspect.signature(ColumnSpec.__init__).replace(return_annotation=None)
Privatizer.__init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined]
