"""Everything that can be released of a stream: a tree of beliefs, thinned without bias."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import hamming
from sfumato.models.markov import MarkovChain
from sfumato.stream.partition.batch_loss import additive, listed
from sfumato.stream.partition.cells import StepDesign

_ALIKE = 12
"""Digits in which two beliefs that are taken for one agree."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What a walk over everything that can be released has summed up.

    Attributes:
        loss: Expected number of wrong bits.
        guessed: The same after the best guess from all outputs so far.
        leakage: The largest exact leakage of a batch, per value.
        exact: Whether nothing was thinned.
    """

    loss: float
    guessed: float
    leakage: float
    exact: bool


@dataclass(frozen=True, slots=True)
class _Branch:
    """A belief that the outputs so far can lead to, and how probable that is."""

    weight: float
    belief: Belief


def grow(
    chain: MarkovChain,
    width: int,
    designed: Callable[[Belief], StepDesign],
    horizon: int,
    most: int | None,
    seed: int,
) -> Tree:
    """The expected share of wrong bits, and the most that a step leaks.

    Args:
        chain: Of bits.
        width: Values of a batch.
        designed: The channel of a step, by what is believed.
        horizon: Values of a stream; whole batches.
        most: Most beliefs that are followed at once; None for all.
        seed: Of the thinning.
    """
    if checks.count("horizon", horizon) % width:
        raise InvalidParameter("horizon", horizon, f"be whole batches of {width}")
    coins = np.random.default_rng(checks.count("seed", seed, at_least=0))
    table = additive(hamming(chain.alphabet)).between(listed(chain.size, width)).matrix
    branches, exact = [_Branch(1.0, chain.first())], True
    loss = guessed = leakage = 0.0
    for _ in range(horizon // width):
        grown: list[_Branch] = []
        for branch in branches:
            found = designed(branch.belief)
            joint = _joint(found)
            loss += branch.weight * found.design.cost
            guessed += branch.weight * float((joint.T @ table).min(axis=1).sum())
            leakage = max(leakage, found.design.sip.epsilon / width)
            grown += _followers(branch, found, joint.sum(axis=0))
        branches = _alike(grown)
        if most is not None and len(branches) > most:
            branches, exact = _thinned(branches, most, float(coins.random())), False
    return Tree(loss, guessed, leakage, exact)


def _joint(found: StepDesign) -> Floats:
    """Probability of each true batch together with each output."""
    masses = found.partition.masses / found.partition.masses.sum()
    return np.asarray(masses[:, None] * found.design.channel.probabilities)


def _followers(branch: _Branch, found: StepDesign, told: Floats) -> Iterable[_Branch]:
    channel = found.design.channel
    for output, probability in zip(channel.outputs.tolist(), told.tolist(), strict=True):
        after = found.partition.after(channel.likelihood(output))
        yield _Branch(branch.weight * probability, after)


def _alike(branches: Iterable[_Branch]) -> list[_Branch]:
    """Branches with the same belief put together, in the order of the belief in a 1."""
    kept: dict[float, _Branch] = {}
    for branch in branches:
        key = round(float(branch.belief.marginal[1]), _ALIKE)
        before = kept.get(key)
        kept[key] = (
            branch if before is None else _Branch(before.weight + branch.weight, before.belief)
        )
    return [kept[key] for key in sorted(kept)]


def _thinned(branches: Sequence[_Branch], most: int, offset: float) -> list[_Branch]:
    """Some of the branches, with weights that are right on average.

    They lie in the order of their beliefs, and every `1/most` of the weight sends one: what is kept
    is spread like what was there.
    """
    ends = np.cumsum([branch.weight for branch in branches])
    sent = np.searchsorted(ends, ends[-1] * (offset + np.arange(most)) / most, side="right")
    places, counts = np.unique(np.minimum(sent, len(branches) - 1), return_counts=True)
    share = float(ends[-1]) / most
    return [
        _Branch(share * count, branches[place].belief)
        for place, count in zip(places.tolist(), counts.tolist(), strict=True)
    ]
