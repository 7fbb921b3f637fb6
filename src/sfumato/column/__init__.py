"""One column of a table, released once (LIP)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.core.lazy import lazily

if TYPE_CHECKING:
    from sfumato.column.column_recovery import recover_column as recover_column
    from sfumato.column.column_spec import ColumnSpec as ColumnSpec
    from sfumato.column.feature_prior import FeaturePrior as FeaturePrior
    from sfumato.models.mixture import GaussianMixture as GaussianMixture
    from sfumato.models.prior_sets import PriorBall as PriorBall
    from sfumato.models.prior_sets import PriorBox as PriorBox
    from sfumato.models.prior_sets import PriorList as PriorList
    from sfumato.solver.bounded_prior_channel import bounded_leakage as bounded_leakage
    from sfumato.solver.bounded_prior_channel import bounded_prior as bounded_prior

__getattr__, __dir__ = lazily(__name__)
