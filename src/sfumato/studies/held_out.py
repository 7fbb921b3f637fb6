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
from sfumato.models.library import PatternLibrary
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """What true streams lost, per value.

    Attributes:
        guessed: With the best guess under the belief where nothing is told, stream by stream.
        held: If what was released last is repeated there.
        charged: Leakage under the model, per value.
        received: If the receiver replaces every release by his best guess after it; batches are
            taken as they are.
    """

    guessed: Floats
    held: Floats
    charged: Floats
    received: Floats


def held_out(plan: Plan, streams: Ints, seed: int = 1, phases: Ints | None = None) -> HeldOut:
    """Release true streams in a simulation.

    Args:
        plan: The rule of a release, value by value or in batches.
        streams: Places of true symbols, one row a stream.
        seed: Of the coins.
        phases: That of each value, under a model that changes with time; in turn if not given.

    Examples:
        >>> import sfumato as sf
        >>> chain = sf.MarkovChain.from_matrix([[0.95, 0.05], [0.05, 0.95]])
        >>> budget = sf.stream.Bursts(sf.SIP(3.0), 12, every=6)
        >>> plan = sf.Plan(chain, budget, sf.loss.hamming(chain.alphabet))
        >>> lost = held_out(plan, np.zeros((50, 12), dtype=np.int64))
        >>> bool(0.03 < lost.guessed.mean() < 0.2), float(lost.charged.max().round(9))
        (True, 0.25)
    """
    walk = _Walk(as_simulation(plan), streams, np.random.default_rng(seed), phases)
    guessed, held, charged, received = walk.sums() / streams.shape[1]
    return HeldOut(guessed, held, charged, received)


class _Walk:
    """Streams on their way through a plan; those that were told the same go together.

    Args:
        plan: The rule, as a simulation.
        streams: Places of true symbols, one row a stream.
        draw: Which outputs leave.
        phases: That of each value; None if they have none, or have them in turn.
    """

    def __init__(
        self, plan: Plan, streams: Ints, draw: np.random.Generator, phases: Ints | None = None
    ) -> None:
        assert plan.value_loss is not None
        self._plan, self._streams, self._draw = plan, streams, draw
        self._phases = phases
        self._loss = as_matrix(plan.value_loss, len(plan.model.alphabet))
        self._sums = np.zeros((4, len(streams)))

    def sums(self) -> Floats:
        """Both losses, the charge and the receiver's loss, one column a stream."""
        nodes = [(self._plan.begin("study"), np.arange(len(self._streams)))]
        for moment in range(0, self._streams.shape[1], self._plan.width):
            following: list[tuple[StreamState, Ints]] = []
            for state, everyone in nodes:
                for phase, which in self._by_phase(everyone, moment):
                    truths = self._streams[which, moment : moment + self._plan.width]
                    following += self._step(state, which, truths, phase)
            nodes = following
        return self._sums

    def _by_phase(self, which: Ints, moment: int) -> list[tuple[int | None, Ints]]:
        """Those among some streams whose values lie in the same phase."""
        if self._phases is None:
            return [(None, which)]
        own = self._phases[which, moment]
        return [(int(phase), which[own == phase]) for phase in np.unique(own)]

    def _step(
        self, state: StreamState, which: Ints, truths: Ints, phase: int | None
    ) -> list[tuple[StreamState, Ints]]:
        """One step of streams that stand at the same place; where they stand after it."""
        length = truths.shape[1]
        paused = self._plan.allowance(state.ledger, length).pause
        found = None if paused else self._plan.prepare(state, length, phase)
        if found is None or found.design.channel.is_constant:
            self._silent(state, which, truths, phase)
            return [(self._plan.skip(state, length, phase)[1], which)]
        return self._told(found, state, which, truths, phase)

    def _silent(self, state: StreamState, which: Ints, truths: Ints, phase: int | None) -> None:
        """Nothing is told: the best guess under the belief, or what left last."""
        model, belief = self._plan.model, self._plan.belief(state, phase)
        assert not isinstance(model, PatternLibrary)
        for place, true in enumerate(truths.T):
            if place:
                assert not isinstance(model, PeriodicChain)  # of which there are no batches
                belief = model.following(belief)
            guess = int((belief.marginal @ self._loss).argmin())
            self._sums[0::3, which] += self._loss[true, guess]
            self._sums[1, which] += self._loss[true, guess if state.last is None else state.last]

    def _told(
        self,
        found: StepDesign,
        state: StreamState,
        which: Ints,
        truths: Ints,
        phase: int | None,
    ) -> list[tuple[StreamState, Ints]]:
        channel = found.design.channel
        shown = found.patterns[channel.outputs]
        likely = likelihoods(found).T
        rows = likely[[found.partition.cell(places) for places in truths.tolist()]]
        losses = self._loss[truths[:, None, :], shown].sum(axis=2)
        self._sums[:2, which] += (rows * losses).sum(axis=1)
        self._sums[2, which] += found.charge.sip
        if truths.shape[1] == 1:
            best = (likely.T @ (found.partition.masses[:, None] * self._loss)).argmin(axis=1)
            losses = self._loss[truths, best]
        self._sums[3, which] += (rows * losses).sum(axis=1)
        parts = parted(self._plan, found, state, which, rows, self._draw, phase)
        return [(following, told) for _, following, told in parts]


def likelihoods(found: StepDesign) -> Floats:
    """Of each output, given each cell: one row an output."""
    channel = found.design.channel
    return np.array([channel.likelihood(int(output)) for output in channel.outputs])


def parted(
    plan: Plan,
    found: StepDesign,
    state: StreamState,
    which: Ints,
    rows: Floats,
    draw: np.random.Generator,
    phase: int | None = None,
) -> list[tuple[int, StreamState, Ints]]:
    """Draw what leaves; streams that are told the same go on together.

    Args:
        plan: The rule, as a simulation.
        found: The channel.
        state: Where all of them stood.
        which: The streams.
        rows: Chances of its outputs, given the truth, one row a stream.
        draw: Which outputs leave.
        phase: That of their values, under a model that changes with time.

    Returns:
        The output's place among the channel's outputs, the state after it, whose it is.
    """
    outputs, labels = found.design.channel.outputs, plan.model.alphabet.labels
    points = draw.random(len(which)) * rows.sum(axis=1)
    told = (rows.cumsum(axis=1) < points[:, None]).sum(axis=1)
    parts = []
    for place in np.unique(told).tolist():
        signal = int(outputs[place]) if plan.sight is not None else None
        left = [labels[symbol] for symbol in found.patterns[outputs[place]]]
        after = plan.observe(state, left, signal=signal, phase=phase)[1]
        parts.append((place, after, which[told == place]))
    return parts
