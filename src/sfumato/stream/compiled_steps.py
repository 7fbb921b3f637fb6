"""One step of one stream under a compiled policy: the channel, its price, as plain values.

The same loops as in a fleet do the work, on a crowd of one, so the answers are the same.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from sfumato.core.budgets import Allowance
from sfumato.core.guarantees import LDP, SIP
from sfumato.core.ledger import FREE, Charge
from sfumato.core.loss import Loss
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_result import Design
from sfumato.solver.policy import Policy
from sfumato.stream.fleet_arrays import EXHAUSTED, MISSED, Crowd

if TYPE_CHECKING:
    from sfumato.core.state import StreamState


def kept_channel(
    chain: MarkovChain, loss: Loss, policy: Policy, state: StreamState, allowance: Allowance
) -> tuple[Design, Charge] | None:
    """The kept channel for a belief, repaired and certified; None where none will do."""
    crowd = Crowd(chain, policy.tables, policy.repair_limit, 1)
    crowd.put(0, state.sequence, state.belief)
    ldp = math.inf if allowance.ldp is None else allowance.ldp
    step = crowd.prepare(np.zeros(1, dtype=np.int64), np.array([[allowance.sip, ldp]]))
    if step.status[0] in (MISSED, EXHAUSTED):
        return None
    channel = policy.channel(int(step.chosen[0]), int(step.parts[0]), step.blends[0])
    charge = FREE if channel.is_constant else Charge(*step.charges[0].tolist())
    cost = channel.expected_loss(crowd.marginals()[0], loss)
    return Design(channel, cost, None, SIP(charge.sip), LDP(charge.ldp)), charge
