r"""The expected loss of a plan under its own model: a tree of everything that it can release.

A rule's expected loss is a sum over its outputs, weighted by how likely they are under the belief.
Where there are more histories than can be followed, some stand for all, chosen evenly (systematic
resampling), so that the sum stays right on average. In a pause nothing branches: the beliefs of all
histories are carried to its end together.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief, Model
from sfumato.core.bursts import pause_left
from sfumato.core.ledger import FREE
from sfumato.core.loss import Loss
from sfumato.core.state import StreamState
from sfumato.models.library import PatternLibrary
from sfumato.models.markov import MarkovChain
from sfumato.models.periodic import PeriodicChain
from sfumato.stream.partition.cells import StepDesign
from sfumato.stream.plan import Plan


class _Track(NamedTuple):
    """A history of outputs: its weight, and where it stands."""

    weight: float
    state: StreamState


class _Branch(NamedTuple):
    """What a track may become: with an output of its channel, or told nothing."""

    weight: float
    state: StreamState
    found: StepDesign | None
    output: int


class OutputTree:
    """Histories of what a plan releases value by value.

    Args:
        plan: The rule, as a simulation.
        loss: Its loss.
        paths: How many histories are followed at once; exact if there are fewer.
        seed: Of the choice among more.

    Attributes:
        most_charged: The most that a step was charged.
        thinned: Whether some histories stood for others.
    """

    def __init__(self, plan: Plan, loss: Loss, paths: int, seed: int) -> None:
        self._plan, self._loss, self._paths = plan, loss, paths
        self._draw = np.random.default_rng(seed)
        self.most_charged, self.thinned = 0.0, False

    def mean_loss(self, length: int) -> tuple[float, float]:
        """Per value: with the best guess where nothing is told, and with the last release."""
        best, held, _charge = self.moments(length).mean(axis=0).tolist()
        return best, held

    def moments(self, length: int) -> Floats:
        """Both losses and the mean charge, one row a moment."""
        sums = np.zeros((length, 3))
        ready: dict[int, list[_Track]] = {0: [_Track(1.0, self._plan.begin("plan"))]}
        for moment in range(length):
            # In the order of what is believed and told, so that those kept are spread like all.
            tracks = sorted(ready.pop(moment, []), key=_believed)
            branches = [one for track in tracks for one in self._branches(track, sums[moment])]
            following = [self._after(branch) for branch in self._thinned(branches)]
            for pause, those in self._by_pause(following, length - moment - 1):
                ready.setdefault(moment + 1 + pause, []).extend(
                    self._paused(those, sums[moment + 1 : moment + 1 + pause])
                )
        return sums

    def _branches(self, track: _Track, sums: Floats) -> list[_Branch]:
        """What a step may release; what it costs on average is added up."""
        weight, state = track
        found = self._plan.prepare(state)
        if found is None or found.design.channel.is_constant:
            sums[:2] += self._silent([weight], state.belief.marginal[None, :], [state.last])
            return [_Branch(weight, state, None, 0)]
        belief, channel = state.belief.marginal, found.design.channel
        self.most_charged = max(self.most_charged, found.charge.sip)
        sums += weight * np.array([*[self._cost(found, belief)] * 2, found.charge.sip])
        shares = weight * channel.marginal(belief / belief.sum())
        ways = zip(shares.tolist(), channel.outputs.tolist(), strict=True)
        return [_Branch(share, state, found, output) for share, output in ways]

    def _cost(self, found: StepDesign, belief: Floats) -> float:
        """What the output of a step costs; a far-sighted design counts what follows, too."""
        if self._plan.sight is None:
            return found.design.cost
        channel = found.design.channel
        shown = found.patterns[channel.outputs, 0].tolist()
        told = zip(channel.outputs.tolist(), self._loss.columns(shown).T, strict=True)
        costs = [
            portable.dot(belief * channel.likelihood(output), column) for output, column in told
        ]
        return float(sum(costs) / belief.sum())

    def _silent(
        self, weights: list[float], beliefs: Floats, last: list[int | None]
    ) -> tuple[float, float]:
        """What best guesses lose, and what repetitions do."""
        means = np.array([self._loss.means(belief / belief.sum()) for belief in beliefs])
        least = means.min(axis=1)
        held = [least[n] if place is None else means[n, place] for n, place in enumerate(last)]
        heavy = np.array(weights)
        return portable.dot(heavy, least), portable.dot(heavy, np.array(held))

    def _thinned(self, branches: list[_Branch]) -> list[_Branch]:
        """At most so many branches, each as likely as its weight; all of them if they are few."""
        if len(branches) <= self._paths:
            return branches
        self.thinned = True
        branches = sorted(branches, key=lambda branch: branch.output)
        reached = np.cumsum([branch.weight for branch in branches])
        points = (np.arange(self._paths) + self._draw.random()) / self._paths * reached[-1]
        places, times = np.unique(np.searchsorted(reached, points), return_counts=True)
        each = float(reached[-1]) / self._paths
        return [
            branches[place]._replace(weight=count * each)
            for place, count in zip(places.tolist(), times.tolist(), strict=True)
        ]

    def _after(self, branch: _Branch) -> _Track:
        """Where a history stands after its output; what the plan's own `observe` says."""
        weight, state, found, output = branch
        if found is None:
            return _Track(weight, self._plan.skip(state)[1])
        last = int(found.patterns[output, 0])
        return _Track(weight, self._moved(state, found.after(output), found, last))

    def _moved(
        self, state: StreamState, belief: Belief, found: StepDesign, last: int
    ) -> StreamState:
        # `observe` would find the channel once more.
        ledger = state.ledger.charged(found.charge, self._plan.budget.memory)
        return StreamState(state.plan, state.stream, state.sequence + 1, belief, ledger, last)

    def _by_pause(self, tracks: list[_Track], most: int) -> list[tuple[int, list[_Track]]]:
        """Histories that pause equally long."""
        groups: dict[int, list[_Track]] = {}
        for track in tracks:
            pause = pause_left(self._plan.budget, track.state.ledger)
            groups.setdefault(min(pause, most), []).append(track)
        return list(groups.items())

    def _paused(self, tracks: list[_Track], sums: Floats) -> list[_Track]:
        """The same histories after a pause of so many moments; what it costs is added up."""
        if not len(sums):
            return tracks
        weights = [track.weight for track in tracks]
        last = [track.state.last for track in tracks]
        assert not isinstance(self._plan.model, PatternLibrary | PeriodicChain)
        beliefs = _together(self._plan.model, [track.state.belief for track in tracks])
        for moment in sums:
            moment[:2] += self._silent(weights, beliefs.marginals, last)
            beliefs.carry()
        keep = self._plan.budget.memory
        return [
            _Track(weight, _later(state, belief, len(sums), keep))
            for (weight, state), belief in zip(tracks, beliefs.beliefs, strict=True)
        ]


def _believed(track: _Track) -> tuple[float, ...]:
    return tuple(track.state.belief.marginal.tolist())


def _later(state: StreamState, belief: Belief, steps: int, keep: int) -> StreamState:
    ledger = state.ledger.charged(FREE, keep, steps)
    sequence = state.sequence + steps
    return StreamState(state.plan, state.stream, sequence, belief, ledger, state.last)


class _Beliefs(Protocol):
    """Beliefs of several histories, carried on together."""

    @property
    def marginals(self) -> Floats:
        """Distributions of the current value, one row each."""

    @property
    def beliefs(self) -> list[Belief]:
        """One by one."""

    def carry(self) -> None:
        """One moment on."""


class _AnyBeliefs:
    """Beliefs under a model of any kind."""

    def __init__(self, model: Model, beliefs: list[Belief]) -> None:
        self._model, self.beliefs = model, beliefs

    @property
    def marginals(self) -> Floats:
        return np.array([belief.marginal for belief in self.beliefs])

    def carry(self) -> None:
        self.beliefs = [self._model.following(belief) for belief in self.beliefs]


class _Vectors:
    """Beliefs about one value, carried by the compiled loop of many streams."""

    def __init__(self, chain: MarkovChain, beliefs: list[Belief]) -> None:
        self.marginals = np.array([belief.joint for belief in beliefs])
        self._drifts = np.array([belief.drift for belief in beliefs])
        which, moments = np.arange(len(beliefs)), np.zeros(len(beliefs), dtype=np.int64)
        work = np.empty(self.marginals.shape[1])
        self._advance = chain.carrier(self.marginals, moments, self._drifts, which, work)

    @property
    def beliefs(self) -> list[Belief]:
        drifts = self._drifts.tolist()
        return [Belief(row, 0, drift) for row, drift in zip(self.marginals, drifts, strict=True)]

    def carry(self) -> None:
        self._advance()


def _together(model: Model, beliefs: list[Belief]) -> _Beliefs:
    if isinstance(model, MarkovChain) and model.order == 1:
        return _Vectors(model, beliefs)
    return _AnyBeliefs(model, beliefs)
