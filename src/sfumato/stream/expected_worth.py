"""What a release by a policy is worth beside silence, predicted under its model."""

from __future__ import annotations

import numpy as np

from sfumato.core.loss import Loss
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.burst_search import expected_loss
from sfumato.stream.plan import Plan
from sfumato.stream.silence import Silence
from sfumato.stream.true_values import knows_nothing

_VALUES, _PATHS = 20, 16
"""As many as tell a release that gains nothing; a tenth of a second."""


def expected_worth(plan: Plan) -> tuple[float, float] | None:
    """What one of the first values is expected to lose, and what the best constant loses.

    None where that is not predicted: batches, libraries, models that change with time, those to
    which all constants are alike, and budgets for periods, which depend on when values come.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), sf.loss.hamming(chain.alphabet))
        >>> lost, silent = expected_worth(plan)
        >>> round(lost, 2), round(silent, 2)
        (0.28, 0.33)
    """
    loss, model = plan.loss, plan.model
    if not isinstance(loss, Loss) or isinstance(model, PatternLibrary | PeriodicChain):
        return None
    if plan.period is not None or knows_nothing(model):
        return None
    silence = Silence(model, loss)
    silent = float(np.mean([silence.at(moment)[1] for moment in range(_VALUES)]))
    return expected_loss(plan, _VALUES, _PATHS)[0], silent
