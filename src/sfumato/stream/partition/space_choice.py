"""Which beliefs a plan follows, and what does not go together."""

from __future__ import annotations

from sfumato.core.belief import Model
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.stream.partition.batch_loss import BatchLoss, as_batch_loss
from sfumato.stream.partition.batch_spaces import (
    LastPattern,
    NextBatch,
    NextBatchAhead,
    NextValues,
    NextValuesAhead,
)
from sfumato.stream.partition.belief_space import BeliefSpace
from sfumato.stream.partition.value_spaces import LastValue, NextValue, NextValueAhead

_LEAST_MASS = 1e-200
"""Below this a product with a 62-bit weight may be subnormal, and its error unknown."""


def space_of(
    model: Model | PatternLibrary | PeriodicChain,
    loss: Loss | BatchLoss,
    width: int,
    memory: int,
    method: Method,
    most: int,
    policy: Policy | None,
    sight: ValueFunction | None = None,
) -> BeliefSpace:
    """What the beliefs of a plan are about; refuses plans that nothing fits."""
    if isinstance(model, PeriodicChain):
        if not isinstance(loss, Loss) or sight is not None or policy is not None:
            rule = "not change with time for batches, memories, policies and far-sighted streams"
            raise InvalidParameter("model", "a chain with phases", rule)
        return LastValue(model, loss, method)
    if sight is not None:
        if not isinstance(model, MarkovChain) or memory > 1:
            raise InvalidParameter("sight", "one", "be for a chain, without a memory")
        if policy is not None and isinstance(loss, Loss) and model.order > 1:
            raise InvalidParameter("policy", "one", "not be given: values depend on several before")
        if not isinstance(loss, Loss):
            if policy is None:
                return NextValuesAhead(model, loss, width, most, sight)
            batch = NextBatchAhead(model, loss, width, most, sight)
            _check_policy(policy, batch.chain, batch.loss, method)
            return batch
        ahead = NextValueAhead(model, loss, sight)
        if policy is not None:
            _check_policy(policy, model, loss, method)
        return ahead
    special = (memory > 1) + (policy is not None)
    if special > 1 or (special and isinstance(model, PatternLibrary)):
        name = "memory" if memory > 1 else "policy"
        rule = "be 1 with a library or a policy" if name == "memory" else "be one of a chain"
        raise InvalidParameter(name, memory if name == "memory" else "one", rule)
    if isinstance(model, PatternLibrary):
        return LastPattern(model, as_batch_loss(loss, len(model.alphabet)), width, method, most)
    if isinstance(loss, Loss):
        value = NextValue(model, loss, method)
        if policy is not None:
            _check_policy(policy, model, loss, method)
        return value
    if not isinstance(model, MarkovChain):
        raise InvalidParameter("model", "another", "be a chain or a library, for batches")
    if policy is None:
        return NextValues(model, loss, width, memory, method, most)
    whole = NextBatch(model, loss, width, method, most)
    _check_policy(policy, whole.chain, whole.loss, method)
    return whole


def _check_policy(policy: Policy, model: Model, loss: Loss, method: Method) -> None:
    """Refuse a policy that was compiled for something else, or cannot be used with this model."""
    asked = (model.fingerprint, loss.fingerprint, method.value)
    compiled_for = (policy.chain, policy.loss, policy.method)
    if not isinstance(model, MarkovChain) or asked != compiled_for:
        rule = "be compiled for this chain, loss and method, and this length of batch"
        raise InvalidParameter("policy", "one made for something else", rule)
    if policy.size != model.size:
        raise InvalidParameter("policy", policy.size, f"be for {model.size} symbols")
    least = min(model.floor**model.order, float(model.initial.min()))
    if least < _LEAST_MASS:
        rule = f"keep every belief above {_LEAST_MASS:g} to be used with a policy; raise its floor"
        raise InvalidParameter("model", f"{least:g}", rule)
