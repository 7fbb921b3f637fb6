r"""Two correlated bits: how the correlation of the data shapes the noise.

$X_1$ is 1 with probability $P_1$, and $X_2$ differs from it with probability $\phi$. Both are
released at once, each through the channel designed for the belief of its moment; $N_t$ says
whether the bit of time $t$ was flipped. The standard deviation of a bit is
$\sqrt{p(1-p)}$; the paper's appendix forgets the root.

For the certified optimum the noise at time 2 is at most $e^{-\epsilon_2}/2$, its value for
independent bits, but it does not fall steadily as the correlation grows: for a belief $b$ in the
rarer bit it rises to that value at $b = 1/2$ and again at $b = e^{-\epsilon_2}/2$, under which a
constant is best. The steady fall in the paper's figures is bought with leakage over the budget.

References:
    [SIP, Ex. 1], [SIP, App. D]
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.belief import Belief
from sfumato.core.information_leakage import instantaneous_leakage
from sfumato.models.markov import MarkovChain
from sfumato.solver.design_methods import Method, design
from sfumato.solver.design_result import Design
from sfumato.solver.inverse import least_leakage

_WRONG = np.array([[0.0, 1.0], [1.0, 0.0]])


@dataclass(frozen=True, slots=True)
class ExamplePoint:
    """The example at one flip probability.

    Attributes:
        flip: Probability that the second bit differs from the first.
        data_correlation: Correlation of the two bits.
        noise_correlation: Correlation of the two flips that the release makes.
        noise_information: Mutual information of the two flips, in nats.
        first_noise: Probability that the first bit is flipped.
        second_noise: Probability that the second bit is flipped.
        first_leakage: Exact leakage of the first step.
        second_leakage: Exact leakage of the second step; the worse of the two first outputs.
        correlated_leakage: Least leakage at time 2 when its noise is bounded, designed for the
            belief given the first output; the worse of the two outputs.
        correlated_mean_leakage: The same, averaged over the first output.
        independent_leakage: Least leakage at time 2 when its noise is bounded and the first
            output is ignored, measured as if there were no first output.
        independent_true_leakage: What that design really leaks to somebody who saw the first
            output; the worse of the two outputs.
    """

    flip: float
    data_correlation: float
    noise_correlation: float
    noise_information: float
    first_noise: float
    second_noise: float
    first_leakage: float
    second_leakage: float
    correlated_leakage: float
    correlated_mean_leakage: float
    independent_leakage: float
    independent_true_leakage: float


def example_points(
    first_prior: float,
    epsilon1: float,
    epsilon2: float,
    flips: Sequence[float],
    method: Method | str = Method.OPTIMAL,
    *,
    max_noise: float = 0.1,
) -> list[ExamplePoint]:
    r"""All panels of the paper's figures, one point for each flip probability.

    Args:
        first_prior: Probability that the first bit is 1.
        epsilon1: Budget of the first step.
        epsilon2: Budget of the second step.
        flips: Probabilities that the second bit differs from the first.
        method: How the two channels are designed; `published` is the paper's own rule, which
            leaks more than its budget once a belief falls under `1/(e**epsilon + 1)`.
        max_noise: Bound on the noise at time 2, for the least leakages.

    Examples:
        >>> apart, alike = example_points(0.5, 1.0, 1.0, [0.5, 0.1])
        >>> apart.data_correlation, apart.noise_correlation, apart.second_noise
        (0.0, 0.0, 0.183940)
        >>> alike.data_correlation, alike.noise_correlation, alike.second_noise
        (0.8, 0.130021, 0.154728)

    References:
        [SIP, Figs. 3 and 4]
    """
    checks.proper_fraction("first_prior", first_prior)
    chosen = Method(method)
    return [
        _point(first_prior, (epsilon1, epsilon2), checks.fraction("flips", flip), chosen, max_noise)
        for flip in flips
    ]


def data_correlation(first_prior: float, flip: float) -> float:
    r"""Correlation of the two bits.

    $$\frac{(1-2\phi)\sqrt{P_1(1-P_1)}}{\sqrt{P_2 (1 - P_2)}}, \qquad
      P_2 = P_1 (1-\phi) + (1-P_1)\,\phi$$

    where $P_1$ is `first_prior`, $\phi$ is `flip` and $P_2 = \Pr(X_2 = 1)$.

    Examples:
        >>> data_correlation(0.5, 0.1)
        0.8

    References:
        [SIP, Eq. 16]
    """
    second = first_prior * (1 - flip) + (1 - first_prior) * flip
    return (1 - 2 * flip) * math.sqrt(first_prior * (1 - first_prior) / (second * (1 - second)))


def _point(
    first_prior: float, budgets: tuple[float, float], flip: float, method: Method, max_noise: float
) -> ExamplePoint:
    chain = MarkovChain.from_matrix(
        [[1 - flip, flip], [flip, 1 - flip]], [1 - first_prior, first_prior]
    )
    before = chain.first()
    first = design(method, before.marginal, _WRONG, budgets[0])
    told = {y: _after(chain, before, first, y) for y in first.channel.outputs.tolist()}
    second = {y: design(method, belief, _WRONG, budgets[1]) for y, belief in told.items()}
    flips = _flips(first_prior, flip, first, second)
    weight = dict(zip(told, first.channel.marginal(before.marginal), strict=True))
    bounded = {y: least_leakage(belief, _WRONG, max_noise).sip for y, belief in told.items()}
    blind = least_leakage(chain.following(before).marginal, _WRONG, max_noise)
    return ExamplePoint(
        flip=flip,
        data_correlation=data_correlation(first_prior, flip),
        noise_correlation=_correlation(flips),
        noise_information=_information(flips),
        first_noise=float(flips[1].sum()),
        second_noise=float(flips[:, 1].sum()),
        first_leakage=first.sip.epsilon,
        second_leakage=max(found.sip.epsilon for found in second.values()),
        correlated_leakage=max(amount.epsilon for amount in bounded.values()),
        correlated_mean_leakage=float(sum(weight[y] * bounded[y].epsilon for y in told)),
        independent_leakage=blind.sip.epsilon,
        independent_true_leakage=max(
            instantaneous_leakage(blind.channel, belief).epsilon for belief in told.values()
        ),
    )


def _after(chain: MarkovChain, before: Belief, first: Design, output: int) -> Floats:
    """Belief about the second bit, given the first output."""
    return chain.following(before.update(first.channel.likelihood(output))).marginal


def _flips(first_prior: float, flip: float, first: Design, second: dict[int, Design]) -> Floats:
    """Joint distribution of the two flips, summed over everything that can happen."""
    joint = np.zeros((2, 2))
    for x1, x2 in np.ndindex(2, 2):
        true = (first_prior if x1 else 1 - first_prior) * (flip if x1 != x2 else 1 - flip)
        for y1, p1 in _row(first, x1):
            for y2, p2 in _row(second[y1], x2):
                joint[int(x1 != y1), int(x2 != y2)] += true * p1 * p2
    return joint


def _row(found: Design, true: int) -> Iterator[tuple[int, float]]:
    channel = found.channel
    return zip(channel.outputs.tolist(), channel.probabilities[true].tolist(), strict=True)


def _correlation(joint: Floats) -> float:
    p, q = joint[1].sum(), joint[:, 1].sum()
    spread = math.sqrt(p * (1 - p) * q * (1 - q))
    return float((joint[1, 1] - p * q) / spread) if spread > 0 else 0.0


def _information(joint: Floats) -> float:
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    used = joint > 0
    return max(0.0, float((joint[used] * np.log(joint[used] / apart[used])).sum()))
