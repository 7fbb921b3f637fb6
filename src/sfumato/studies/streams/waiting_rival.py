"""Randomised response that waits as long as a batch does: the rival of batches.

A batch leaves when its last value is there and may leak what its values may leak together. So may
its rival: it tells some values of each batch, which share that budget, and its receiver guesses all
of them at the end of the batch, from everything told so far. An output depends on the batch through
the values that it tells, so its leakage on the batch is what it leaks on them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.budgets import PerStep
from sfumato.core.guarantees import SIP
from sfumato.core.loss import Loss, as_matrix
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.held_out import likelihoods, parted
from sfumato.studies.tracks.track_runs import posteriors


@dataclass(frozen=True, slots=True, eq=False)
class Waited:
    """What true streams lost, per value.

    Attributes:
        places: Which values of each batch were told.
        lost: With the best guess at the end of the batch, stream by stream.
        charged: Leakage under the model, per value.
    """

    places: tuple[int, ...]
    lost: Floats
    charged: Floats


def best_waiting(
    chain: MarkovChain, cap: float, loss: Loss, width: int, streams: Ints, seed: int = 1
) -> Waited:
    """One value of each batch with the budget of all, or every value with its own.

    Which of them loses least is chosen in hindsight, on the very streams: that favours the rival.
    """
    kinds = [(place,) for place in range(width)] + [tuple(range(width))]
    tried = [waited(chain, cap, loss, width, places, streams, seed) for places in kinds]
    return min(tried, key=lambda each: float(each.lost.mean()))


def waited(
    chain: MarkovChain,
    cap: float,
    loss: Loss,
    width: int,
    places: tuple[int, ...],
    streams: Ints,
    seed: int = 1,
) -> Waited:
    """Tell some values of each batch by calibrated randomised response.

    Args:
        chain: Of order 1.
        cap: Leakage per value, in nats; a batch may leak `width` times as much.
        loss: Of a value.
        width: Values of a batch.
        places: Which of them are told, in ascending order.
        streams: Places of true symbols, one row a stream of whole batches.
        seed: Of the coins.

    Examples:
        >>> from sfumato.core.loss import hamming
        >>> chain = MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> streams = np.zeros((50, 12), dtype=np.int64)
        >>> loss = hamming(chain.alphabet)
        >>> every = waited(chain, 0.25, loss, 3, (0, 1, 2), streams)
        >>> middle = waited(chain, 0.25, loss, 3, (1,), streams)
        >>> bool(middle.lost.mean() < every.lost.mean())
        True
        >>> bool(middle.charged.max() <= 0.25)
        True
    """
    assert chain.order == 1 and streams.shape[1] % width == 0
    budget = PerStep(SIP(cap * width / len(places)))
    plan = as_simulation(Plan(chain, budget, loss, method=Method.CALIBRATED))
    lost, charged = _Walk(plan, streams, width, places, seed).sums() / streams.shape[1]
    return Waited(places, lost, charged)


_Node = tuple[StreamState, Ints, Floats]
"""Where streams stand, which ones, and likelihoods of what their batch told so far."""


class _Walk:
    """Streams on their way, batch by batch; those that were told the same go together."""

    def __init__(
        self, plan: Plan, streams: Ints, width: int, places: tuple[int, ...], seed: int
    ) -> None:
        assert plan.value_loss is not None and isinstance(plan.model, MarkovChain)
        self._plan, self._streams, self._width, self._places = plan, streams, width, places
        self._moves, symbols = plan.model.transition(), len(plan.model.alphabet)
        self._loss = as_matrix(plan.value_loss, symbols)
        self._nothing = np.ones((width, symbols))
        self._draw = np.random.default_rng(seed)
        self._sums = np.zeros((2, len(streams)))

    def sums(self) -> Floats:
        """Losses and charges, one column a stream."""
        nodes = [(self._plan.begin("study"), np.arange(len(self._streams)))]
        for start in range(0, self._streams.shape[1], self._width):
            nodes = [after for state, which in nodes for after in self._batch(state, which, start)]
        return self._sums

    def _batch(self, state: StreamState, which: Ints, start: int) -> list[tuple[StreamState, Ints]]:
        first = state.belief.marginal
        nodes: list[_Node] = [(state, which, self._nothing)]
        for place in range(self._width):
            if place in self._places:
                nodes = [after for node in nodes for after in self._told(node, first, start, place)]
            else:
                nodes = [(self._plan.skip(one, 1)[1], some, known) for one, some, known in nodes]
        return [(one, some) for one, some, _ in nodes]

    def _told(self, node: _Node, first: Floats, start: int, place: int) -> list[_Node]:
        state, which, known = node
        found = self._plan.prepare(state, 1)
        assert found is not None
        likely = likelihoods(found)
        truths = self._streams[which, start : start + self._width]
        rows = likely.T[truths[:, place]]
        after = np.repeat(known[None], len(likely), axis=0)
        after[:, place] = likely
        self._sums[1, which] += found.charge.sip
        if place == self._places[-1]:
            # Nothing more is told of this batch: a mean over the last output, given the truth.
            beliefs = [posteriors(first, self._moves, each) for each in after]
            guesses = np.array([(belief @ self._loss).argmin(axis=1) for belief in beliefs])
            losses = self._loss[truths[:, None, :], guesses].sum(axis=2)
            self._sums[0, which] += (rows * losses).sum(axis=1)
        parts = parted(self._plan, found, state, which, rows, self._draw)
        return [(following, told, after[output]) for output, following, told in parts]
