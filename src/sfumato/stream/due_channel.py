"""The channel that is due: compiled or found anew for a state, with its price. Needs no value."""

from __future__ import annotations

import math
from typing import NamedTuple

from sfumato.core import checks, portable
from sfumato.core.budgets import USELESS_BELOW, Allowance
from sfumato.core.ledger import Charge
from sfumato.core.numerics import UNIT
from sfumato.core.state import StreamState
from sfumato.models.belief_sets import as_beliefs
from sfumato.models.markov import MarkovChain
from sfumato.stream.fleet_arrays import compiled_channel
from sfumato.stream.partition.batch_spaces import NextBatch
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.partition.value_spaces import NextValue
from sfumato.stream.plan_terms import PlanTerms


class DueChannel(NamedTuple):
    """The channel of a step, its price, and whether the allowance covers that."""

    found: StepDesign
    charge: Charge
    covered: bool


def due_channel(
    plan: PlanTerms, state: StreamState, length: int, allowance: Allowance
) -> DueChannel | None:
    """The channel of the next step and its price; None when the budget is gone.

    Args:
        plan: The terms of the release.
        state: Where the stream stands, with a belief about the value that is due.
        length: Values of the batch.
        allowance: What the step may leak.
    """
    if allowance.exhausted:
        return None
    # A policy knows whole batches; a shorter one, at the end of a stream, is solved.
    if plan.policy is not None and length == plan.width and allowance.useful:
        assert isinstance(plan.space, NextValue | NextBatch)
        assert isinstance(plan.space.chain, MarkovChain)
        chain, loss = plan.space.chain, plan.space.loss
        compiled = compiled_channel(chain, loss, plan.policy, state, allowance)
        if compiled is not None:
            partition, patterns = plan.space.partition(state.belief), plan.space.patterns
            patterns = patterns if compiled.symbols is None else patterns[compiled.symbols]
            exact = compiled.symbols is None
            found = StepDesign(partition, compiled.design, patterns, exact=exact)
            return DueChannel(found, compiled.charge, covered=True)
    found = _design(plan, state, length, allowance)
    charge = found.charge
    return DueChannel(found, charge, allowance.covers(charge.sip, charge.ldp))


def _design(plan: PlanTerms, state: StreamState, length: int, allowance: Allowance) -> StepDesign:
    # What rounding does to beliefs and to masses of cells is paid for out of the allowance; in
    # powers of two, so that successive steps ask for the same epsilon.
    error = plan.space.error(state.belief, length)
    spare = 4 * error + 8 * UNIT * allowance.sip if error else 0.0
    spare = 2.0 ** math.ceil(portable.log2(spare)) if spare else 0.0
    epsilon = min(allowance.sip - spare, checks.MAX_EPSILON)
    batch = (state.belief, length, plan.recalled(state))
    if not allowance.useful or epsilon < USELESS_BELOW / 2:
        # Too little to tell anything with: a constant costs nothing, and the stream goes on.
        return plan.space.silent(*batch)
    cap = None if allowance.ldp is None else min(allowance.ldp, checks.MAX_EPSILON)
    if state.bounds is not None:
        assert isinstance(plan.space, NextValue)  # `_check_robust` saw to it
        beliefs = as_beliefs(state.bounds)
        return plan.space.robust(state.belief, beliefs, epsilon, cap, plan.repair)
    return plan.space.design(*batch, epsilon, cap)
