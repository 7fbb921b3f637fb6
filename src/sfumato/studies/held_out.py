"""What a plan loses on true streams: those with the same outputs so far share a channel.

Channels depend on public things only, so streams that were told the same go on alike until they are
told something else. A step costs its mean over the outputs, given the truth; which of them leaves
is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.loss import as_matrix
from sfumato.core.state import StreamState
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """What true streams lost, per value.

    Attributes:
        guessed: With the best guess under the belief where nothing is told, stream by stream.
        held: If what was released last is repeated there.
        charged: Leakage under the model, per value.
    """

    guessed: Floats
    held: Floats
    charged: Floats


def held_out(plan: Plan, streams: Ints, seed: int = 1) -> HeldOut:
    """Release true streams in a simulation.

    Args:
        plan: The rule of a release value by value.
        streams: Places of true symbols, one row a stream.
        seed: Of the coins.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> budget = sf.stream.Bursts(sf.SIP(3.0), 12, every=6)
        >>> plan = sf.Plan(chain, budget, sf.loss.hamming(chain.alphabet))
        >>> lost = held_out(plan, np.zeros((50, 12), dtype=np.int64))
        >>> bool(0.03 < lost.guessed.mean() < 0.2), float(lost.charged.max().round(9))
        (True, 0.25)
    """
    rule, draw = as_simulation(plan), np.random.default_rng(seed)
    assert plan.value_loss is not None
    loss = as_matrix(plan.value_loss, len(plan.model.alphabet))
    sums = np.zeros((3, len(streams)))
    nodes: list[tuple[StreamState, Ints]] = [(rule.begin("study"), np.arange(len(streams)))]
    for moment in range(streams.shape[1]):
        following: list[tuple[StreamState, Ints]] = []
        for state, which in nodes:
            following += _step(rule, loss, state, which, streams[which, moment], draw, sums)
        nodes = following
    guessed, held, charged = sums / streams.shape[1]
    return HeldOut(guessed, held, charged)


def _step(
    plan: Plan,
    loss: Floats,
    state: StreamState,
    which: Ints,
    truths: Ints,
    draw: np.random.Generator,
    sums: Floats,
) -> list[tuple[StreamState, Ints]]:
    """One moment of streams that stand at the same place; where they stand after it."""
    found = None if plan.allowance(state.ledger, 1).pause else plan.prepare(state)
    if found is None or found.design.channel.is_constant:
        guess = int((state.belief.marginal @ loss).argmin())
        sums[0, which] += loss[truths, guess]
        sums[1, which] += loss[truths, guess if state.last is None else state.last]
        return [(plan.skip(state)[1], which)]
    channel = found.design.channel
    outputs = channel.outputs
    symbols = found.patterns[outputs, 0]
    rows = np.array([channel.likelihood(int(output)) for output in outputs]).T[truths]
    sums[:2, which] += (rows * loss[truths[:, None], symbols]).sum(axis=1)
    points = draw.random(len(which)) * rows.sum(axis=1)
    told = (rows.cumsum(axis=1) < points[:, None]).sum(axis=1)
    sums[2, which] += found.charge.sip
    labels = plan.model.alphabet.labels
    nodes = []
    for place in np.unique(told):
        signal = int(outputs[place]) if plan.sight is not None else None
        after = plan.observe(state, [labels[symbols[place]]], signal=signal)[1]
        nodes.append((after, which[told == place]))
    return nodes
