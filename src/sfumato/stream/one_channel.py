"""Releases whose values all leave through one channel: proofs without a model rest on these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.budgets import PerStep
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.numerics import UNIT, up
from sfumato.core.state import StreamState
from sfumato.models.chain_bets import ALIKE, FixedOutputs
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.learning_plan import LearningPlan
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks


def has_one_channel(plan: Plan) -> bool:
    """Whether every value of every stream leaves through the same channel, whatever left before.

    The same but for the last digits: what rounding may have done to beliefs is paid for out of the
    allowance of each step, and it grows with the stream (`FixedOutputs.alike`).
    """
    same = plan.method is Method.RANDOMIZED_RESPONSE and isinstance(plan.budget, PerStep)
    # Kept for many chains, what leaves is mixed, or silent, by what left before.
    follows = plan.in_batches or plan.policy is not None or plan.robust is not None
    return same and not follows and not isinstance(plan, LearningPlan)


def one_channel(plan: Plan) -> Floats | None:
    """The channel of every value that leaves: row = value, column = symbol; None if not one."""
    return _columns(plan, plan.begin("")) if has_one_channel(plan) else None


def channel_of(tracks: ReleasedTracks, plan: Plan) -> Floats | None:
    """The one channel that all values of some streams left through; None if not so."""
    released = OUTCOMES.index(Outcome.RELEASED)
    return one_channel(plan) if np.all(tracks.outcomes == released) else None


def fixed_outputs(tracks: ReleasedTracks, plan: Plan) -> FixedOutputs | None:
    """The outputs as columns of the one channel that all values left through; None if not so."""
    rows = channel_of(tracks, plan)
    if rows is None:
        return None
    longest = int(np.diff(tracks.starts).max(initial=0))
    return FixedOutputs(rows, tracks.starts, tracks.places, alike=alike_over(plan, rows, longest))


def _columns(plan: Plan, state: StreamState) -> Floats | None:
    """The channel of a step, its columns in the order of the symbols; None if it lacks one."""
    step = plan.prepare(state, 1)
    if step is None:
        return None
    channel = step.design.channel
    found = [step.output(np.array([place])) for place in range(len(plan.model.alphabet))]
    outputs = [output for output in found if output is not None]
    if len(outputs) != len(found) or len(outputs) != len(channel.outputs):
        return None
    return np.stack([channel.likelihood(output) for output in outputs], axis=1)


def alike_over(plan: Plan, rows: Floats, longest: int) -> float:
    """How far the channel of any step of streams so long may be off the first one's, at most.

    A response depends on the belief by what its rounding may have been alone: epsilon falls as that
    bound grows, and every probability moves one way. So the channel of the last step of the longest
    stream is the one that is furthest off.
    """
    state = plan.begin("")
    label = plan.model.alphabet.labels[0]
    grown, steps = 0.0, plan.model.order + 1 if isinstance(plan.model, MarkovChain) else 2
    for _ in range(steps):  # before a chain of order m knows m values, steps add less
        _, following = plan.observe(state, [label])
        grown = max(grown, following.belief.drift - state.belief.drift)
        state = following
    last = replace(state, belief=replace(state.belief, drift=up(grown * max(longest, 1))))
    columns = _columns(plan, last)
    off = 1.0 if columns is None else float(np.abs(columns - rows).max())
    return max(ALIKE, up(off + 8 * UNIT))
