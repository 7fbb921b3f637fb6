"""A stream that goes on under another version: where it stands, by what left before."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.state import StreamState
from sfumato.models.belief_sets import (
    any_belief,
    as_beliefs,
    as_bounds,
    carried,
    first_beliefs,
    informed,
)
from sfumato.models.plausible import PlausibleChains
from sfumato.models.prior_sets import PriorBox
from sfumato.stream.learning_rules import LearningRules
from sfumato.stream.plan import Plan

_TAIL = 200
"""Outputs that are read again when a stream moves; what was before them is forgotten, soundly."""


def moved(
    rules: LearningRules, plan: Plan, state: StreamState, since: tuple[Sequence[int], bool] | None
) -> StreamState:
    """Where a stream stands under another version's plan: a belief, and a box that is valid.

    Args:
        rules: The rules of the release.
        plan: The plan of the version.
        state: Where the stream stands under the plan before it.
        since: What left of the stream since learning started, all of it context-free, and whether
            it began with that; None if the plan before it is one of a version since then.
    """
    fresh = plan.begin(state.stream)
    belief, bounds = fresh.belief, fresh.bounds
    if plan.robust is not None and since is None:
        assert state.bounds is not None  # both plans keep the budget for a set
        # Sets are nested: what every chain of the last one led to holds for those that are left.
        anything = carried(any_belief(len(rules.alphabet)), plan.robust)
        box = as_beliefs(state.bounds)
        lower, upper = (
            np.maximum(box.lower, anything.lower),
            np.minimum(box.upper, anything.upper),
        )
        belief, bounds = state.belief, as_bounds(PriorBox(np.minimum(lower, upper), upper))
    elif plan.robust is not None and since is not None:
        belief, bounds = _followed(rules, plan.robust, *since)
    return StreamState(
        plan=plan.fingerprint,
        stream=state.stream,
        sequence=state.sequence,
        belief=belief,
        ledger=state.ledger,
        last=state.last,
        bounds=bounds,
    )


def _followed(
    rules: LearningRules, chains: PlausibleChains, outputs: Sequence[int], begun: bool
) -> tuple[Belief, Floats]:
    """What is, and what may be, believed after context-free outputs of a stream."""
    chain, size = chains.estimate, len(rules.alphabet)
    belief, box = chain.first(), first_beliefs(chains)
    if not begun or len(outputs) > _TAIL:
        # Whatever was believed before: any belief is in this box.
        belief, box = Belief(chain.stationary()), any_belief(size)
    for place in outputs[-_TAIL:]:
        likelihood = rules.channel[:, place]
        belief = chain.following(belief.weighted(likelihood))
        box = carried(informed(box, likelihood), chains)
    return belief, as_bounds(box)
