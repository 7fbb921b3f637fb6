r"""Rivals whose channel never changes: what they really leak under a chain, and what they lose.

Randomised response and the perturbations of ToPS and ToPL do not look at the belief. What an output
tells of the stream is still measured by it: the largest $|\log a(y|x)/P(y)|$ at the belief of its
moment, the same unit as for every other release.

ToPS and ToPL cut values off at a threshold and add noise for what is left: Laplace's, or the hybrid
mechanism of those who trust nobody. They find the threshold from reports; here it is the best one
in hindsight, which costs nothing, and numbers are read as the nearest symbol. Smoothing is left to
the receiver, whose best guess from all outputs no smoother beats.

References:
    [SIP, Sec. VI-A], [Wang2021], [TPL, Alg. 7]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.belief import Belief
from sfumato.core.channel import Channel
from sfumato.core.information_leakage import instantaneous_leakage
from sfumato.core.loss import Loss, as_matrix
from sfumato.models.markov import MarkovChain
from sfumato.series.rivals.topl import Topl
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.temporal_budgets import allocate

_POINTS = 64
"""Points of the lattice that a report of ToPL lies on."""
_BINS = 16
"""Parts of the range that a noisy number of ToPS is rounded to."""
_ALIKE = 9
"""Digits in which columns that tell the same agree."""


@dataclass(frozen=True, slots=True, eq=False)
class FixedChannel:
    """A channel, and what its outputs are read as.

    Attributes:
        channel: Outputs by true symbols.
        shown: The place of the symbol that each output is read as.
    """

    channel: Channel
    shown: Ints

    @classmethod
    def of(cls, rows: Floats, shown: Ints) -> FixedChannel:
        """Of probabilities; outputs that tell and show the same are one."""
        shares = np.round(rows / rows.sum(axis=0), _ALIKE)
        keys = np.concatenate([shares, shown[None, :]]).T
        _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        merged = np.zeros((len(rows), len(first)))
        np.add.at(merged.T, inverse.ravel(), rows.T)
        return cls(Channel.from_probabilities(merged), shown[first])

    def expected(self, loss: Floats) -> Floats:
        """The mean loss of each true symbol."""
        return np.asarray((self.channel.probabilities * loss[:, self.shown]).sum(axis=1))


def response(size: int, epsilon: float) -> FixedChannel:
    """Randomised response of a model-free leakage.

    Examples:
        >>> response(2, math.log(3)).channel.probabilities
        array([[0.75, 0.25],
               [0.25, 0.75]])
    """
    keep = math.exp(checks.epsilon("epsilon", epsilon))
    rows = np.ones((size, size)) + (keep - 1) * np.eye(size)
    return FixedChannel(Channel.from_probabilities(rows / (keep + size - 1)), np.arange(size))


def temporal_response(chain: MarkovChain, alpha: float) -> FixedChannel:
    """Randomised response whose outputs, all together, tell at most `alpha` of any one value.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> kept = temporal_response(chain, 1.0).channel.probabilities[0, 0]
        >>> round(math.log(kept / (1 - kept)), 2)  # what a single output may tell
        0.12
    """
    forward = LossFunction.of(chain.transition())
    backward = LossFunction.of(chain.reversed().transition())
    return response(chain.size, allocate(backward, forward, alpha).constant)


def tops(size: int, epsilon: float, threshold: int) -> FixedChannel:
    """ToPS on the numbers 0 to `size - 1`: cut off, Laplace noise, read as the nearest number.

    Examples:
        >>> tops(2, 1.0, 1).channel.size
        2
    """
    edges = np.concatenate([[-np.inf], np.arange(1, _BINS) / _BINS, [np.inf]])
    away = edges[None, :] - _parts(size, threshold)[:, None]
    below = np.where(
        away < 0, 0.5 * np.exp(epsilon * away), 1 - 0.5 * np.exp(-epsilon * np.abs(away))
    )
    amounts = threshold * (np.arange(_BINS) + 0.5) / _BINS
    return FixedChannel.of(np.diff(below, axis=1), _nearest(amounts, size))


def topl(size: int, epsilon: float, threshold: int) -> FixedChannel:
    """ToPL on the numbers 0 to `size - 1`: cut off, and reported by the hybrid mechanism.

    Examples:
        >>> from sfumato.core.local_leakage import local_leakage
        >>> local_leakage(topl(8, 1.0, 5).channel).epsilon < 1.0 + 1e-6
        True
    """
    hybrid = Topl.at(float(threshold), epsilon, 1, _POINTS).hybrid
    places = np.floor(_parts(size, threshold) * (_POINTS - 1) + 0.5).astype(np.int64)
    amounts = threshold * (0.5 + 0.5 * hybrid.amounts)
    return FixedChannel.of(hybrid.channel.probabilities[places], _nearest(amounts, size))


def best_threshold(
    rule: Callable[[int, float, int], FixedChannel],
    epsilon: float,
    loss: Floats,
    streams: Ints,
) -> FixedChannel:
    """The rule with the threshold that loses least on the very streams it is judged by."""
    size = len(loss)
    shares = np.bincount(streams.ravel(), minlength=size) / streams.size
    made = [rule(size, epsilon, threshold) for threshold in range(1, size)]
    return min(made, key=lambda one: float(shares @ one.expected(loss)))


def _parts(size: int, threshold: int) -> Floats:
    """Numbers cut off at a threshold, as parts of it."""
    return np.asarray(np.minimum(np.arange(size), threshold) / threshold)


def _nearest(amounts: Floats, size: int) -> Ints:
    return np.clip(np.floor(amounts + 0.5), 0, size - 1).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What true streams lost and leaked through a fixed channel, per value and stream by stream.

    Attributes:
        shown: Loss of what outputs are read as.
        received: Loss of the receiver's best guess after each output.
        charged: Leakage under the model.
    """

    shown: Floats
    received: Floats
    charged: Floats


def follow(
    chain: MarkovChain, fixed: FixedChannel, loss: Loss | Floats, streams: Ints, seed: int = 1
) -> Followed:
    """Let true streams through a fixed channel; a step costs its mean over the outputs.

    Args:
        chain: What the adversary knows.
        fixed: The rival.
        loss: What a wrong symbol costs.
        streams: Places of true symbols, one row a stream.
        seed: Of the coins.

    Examples:
        >>> chain = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> truth = np.zeros((20, 10), dtype=np.int64)
        >>> lost = follow(chain, response(2, 1.0), 1 - np.eye(2), truth)
        >>> float(lost.shown[0]), bool(lost.charged.max() <= 1.0)
        (0.268941..., True)
    """
    costs, draw = as_matrix(loss, chain.size), np.random.default_rng(seed)
    sums = np.zeros((3, len(streams)))
    sums[0] = fixed.expected(costs)[streams].sum(axis=1)
    for row, stream in enumerate(streams):
        belief = chain.first()
        for true, coin in zip(stream.tolist(), draw.random(len(stream)).tolist(), strict=True):
            belief, found = _step(chain, fixed.channel, costs, belief, true, coin)
            sums[1:, row] += found
    shown, received, charged = sums / streams.shape[1]
    return Followed(shown, received, charged)


def _step(
    chain: MarkovChain, channel: Channel, loss: Floats, belief: Belief, true: int, coin: float
) -> tuple[Belief, tuple[float, float]]:
    """The belief after one moment; what the best guess loses, and what was told."""
    rows, told = channel.probabilities, belief.marginal
    best = (rows.T @ (told[:, None] * loss)).argmin(axis=1)
    lost = float(rows[true] @ loss[true, best])
    leaked = instantaneous_leakage(channel, told).epsilon
    output = min(int((rows[true].cumsum() < coin).sum()), rows.shape[1] - 1)
    return chain.following(belief.update(rows[:, output])), (lost, leaked)
