"""Tracks released by a mechanism: what a receiver gets wrong, and what leaves with it.

A run follows each track value by value. A step's losses are means over its outputs, given the
truth; which of them leaves is drawn. The receiver sees what was released so far; the adversary sees
the whole release before guessing, with the same chain: nobody under the model does better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from sfumato.core.arrays import Floats, Ints
from sfumato.core.loss import Loss, as_matrix
from sfumato.core.state import StreamState
from sfumato.models.markov import MarkovChain
from sfumato.stream.plan import Plan
from sfumato.stream.simulated_stream import as_simulation
from sfumato.studies.tracks.public_rivals import PublicRival, loudest


@dataclass(frozen=True, slots=True, eq=False)
class TrackWorld:
    """Where tracks are followed.

    Attributes:
        chain: What everybody knows; of order 1.
        loss: Between places.
        places: Their coordinates.
        tracks: Places of true values, one row a track.
    """

    chain: MarkovChain
    loss: Loss
    places: Floats
    tracks: Ints

    @property
    def losses(self) -> Floats:
        """What it costs to take one place for another."""
        return as_matrix(self.loss, len(self.places))


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What became of tracks, one number a track.

    Attributes:
        shown: Error of what is shown, taken at its word.
        guessed: Error of the receiver's best guess at each moment.
        adversary: Error of who sees the whole release first.
        sip: Exact leakage under the chain, per value; infinite where something is excluded.
        ldp: Leakage whatever the chain is, per value.
    """

    shown: Floats
    guessed: Floats
    adversary: Floats
    sip: Floats
    ldp: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """One channel in use: chances of outputs, the places they show, its leakages."""

    rows: Floats
    shown: Ints
    sip: float
    ldp: float


class Walker(Protocol):
    """A mechanism on one track: the next channel, and what left."""

    def step(self, belief: Floats) -> Step | None:
        """The channel for the next value; None where nothing is released."""
        ...

    def left(self, output: int | None) -> None:
        """Which output left; None where none did."""
        ...


class PublicWalker:
    """A mechanism that public things decide, at its loudest within a cap.

    Every so many values it tells one, with what all of them may leak; the others pass in silence.
    """

    def __init__(self, rival: PublicRival, cap: float, losses: Floats, every: int = 1) -> None:
        self._rival, self._cap, self._losses = rival, cap * every, losses
        self._every, self._moment = every, 0
        self._last: int | None = None
        self._shown: Ints = np.empty(0, dtype=np.int64)

    def step(self, belief: Floats) -> Step | None:
        """The loudest channel of the family for this history."""
        if self._moment % self._every:
            return None
        family = self._rival.family(self._last, int((belief @ self._losses).argmin()))
        found = loudest(family, belief, self._cap)
        if found is None:
            return None
        place, leak = found
        rows, self._shown = family.rows[place], family.shown
        return Step(rows, family.shown, leak, _local(rows))

    def left(self, output: int | None) -> None:
        """Remember what was shown."""
        self._moment += 1
        if output is not None:
            self._last = int(self._shown[output])


class PlanWalker:
    """One of our own plans, or randomised response as a plan."""

    def __init__(self, plan: Plan) -> None:
        self._plan = as_simulation(plan)
        self._state: StreamState = self._plan.begin("study")
        self._outputs: Ints = np.empty(0, dtype=np.int64)
        self._symbols: Ints = self._outputs

    def step(self, belief: Floats) -> Step | None:
        """The channel that the plan prepares."""
        plan, state = self._plan, self._state
        found = None if plan.allowance(state.ledger, 1).pause else plan.prepare(state)
        if found is None or found.design.channel.is_constant:
            return None
        channel = found.design.channel
        self._outputs = channel.outputs
        self._symbols = found.patterns[channel.outputs, 0]
        rows = np.array([channel.likelihood(int(output)) for output in channel.outputs]).T
        return Step(rows, self._symbols, found.charge.sip, found.charge.ldp)

    def left(self, output: int | None) -> None:
        """Go on from what left."""
        plan, state = self._plan, self._state
        if output is None:
            self._state = plan.skip(state)[1]
            return
        signal = int(self._outputs[output]) if plan.sight is not None else None
        label = plan.model.alphabet.labels[self._symbols[output]]
        self._state = plan.observe(state, [label], signal=signal)[1]


def followed(world: TrackWorld, walker: Callable[[], Walker], seed: int) -> Followed:
    """Release every track once.

    Args:
        world: Chain, loss and tracks.
        walker: Begins a track.
        seed: Of the coins.

    Examples:
        >>> from sfumato.core.loss import euclidean
        >>> from sfumato.core.alphabet import Alphabet
        >>> from sfumato.studies.tracks.public_rivals import PlanarLaplace, Scales
        >>> places = np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
        >>> line = Alphabet(["a", "b", "c"], [tuple(place) for place in places.tolist()])
        >>> chain = MarkovChain.from_matrix(np.full((3, 3), 1 / 3), alphabet=line)
        >>> tracks = np.array([[0, 1, 2, 1], [2, 2, 0, 1]])
        >>> world = TrackWorld(chain, euclidean(line), places, tracks)
        >>> rival = PlanarLaplace(Scales(places))
        >>> told = followed(world, lambda: PublicWalker(rival, 0.5, world.losses), seed=1)
        >>> bool((told.sip <= 0.5).all()), bool((told.ldp >= told.sip).all())
        (True, True)
    """
    rng = np.random.default_rng(seed)
    moves, losses = world.chain.transition(), world.losses
    sums = np.zeros((5, len(world.tracks)))
    for row, track in enumerate(world.tracks.tolist()):
        sums[:, row] = _track(world.chain.first().marginal, moves, losses, track, walker(), rng)
    return Followed(*(sums / world.tracks.shape[1]))


def _track(
    first: Floats,
    moves: Floats,
    losses: Floats,
    track: list[int],
    walker: Walker,
    rng: np.random.Generator,
) -> tuple[float, float, float, float, float]:
    belief, last = first, None
    likelihoods, sums = [], np.zeros(4)
    for true in track:
        step = walker.step(belief)
        guess = int((belief @ losses).argmin())
        if step is None:
            sums[:2] += losses[true, guess if last is None else last], losses[true, guess]
            output, likelihood = None, np.ones(len(belief))
        else:
            chances = step.rows[true]
            guesses = ((belief[:, None] * step.rows).T @ losses).argmin(axis=1)
            output = int(rng.choice(len(chances), p=chances / chances.sum()))
            last, likelihood = int(step.shown[output]), step.rows[:, output]
            shown, guessed = chances @ losses[true, step.shown], chances @ losses[true, guesses]
            sums += shown, guessed, step.sip, step.ldp
        walker.left(output)
        likelihoods.append(likelihood)
        belief = belief * likelihood
        belief = belief / belief.sum() @ moves
    smoothed = posteriors(first, moves, np.array(likelihoods))
    adversary = losses[track, (smoothed @ losses).argmin(axis=1)].sum()
    return float(sums[0]), float(sums[1]), float(adversary), float(sums[2]), float(sums[3])


def posteriors(first: Floats, moves: Floats, likelihoods: Floats) -> Floats:
    """What is believed of every moment once all is known.

    Args:
        first: Belief before the first value.
        moves: From place to place.
        likelihoods: Of what left at each moment, given each place.

    Examples:
        >>> even, stay = np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]])
        >>> posteriors(even, stay, np.array([[1.0, 1.0], [1.0, 0.0]])).tolist()
        [[0.9, 0.1], [1.0, 0.0]]
    """
    forward = np.empty_like(likelihoods)
    belief = first
    for moment, likelihood in enumerate(likelihoods):
        forward[moment] = belief * likelihood
        forward[moment] /= forward[moment].sum()
        belief = forward[moment] @ moves
    later = np.ones(len(first))
    for moment in range(len(likelihoods) - 2, -1, -1):
        later = moves @ (likelihoods[moment + 1] * later)
        later /= later.max()
        forward[moment] *= later
        forward[moment] /= forward[moment].sum()
    return forward


def _local(rows: Floats) -> float:
    """Leakage of a channel whatever is believed."""
    used = rows[:, rows.max(axis=0) > 0]
    least = used.min(axis=0)
    return float(np.log(used.max(axis=0) / least).max()) if (least > 0).all() else float("inf")
