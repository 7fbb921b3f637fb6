r"""Local information privacy of discrete values: ten panels as numbers, and what the text says.

*Figure 2*: what a leakage of $\epsilon$ implies (a) model-free and (b) for the quotient of two
posteriors, exactly and by the paper's bounds. *Figure 4*: four leakages of a bit that is flipped
with probability $q$. *Figure 5*: leakage of many releases (a) of one value, (b) of one value
under sets of priors, (c) of three values, the paper's bounds beside the exact leakage of the worst
channel within the budget and of the optimal one. *Figure 6*: a prior estimated from samples:
bounds on the leakage (a, b) and how far it is off (c).

Not in the paper and chosen here: the number of releases (8); in 5b the second set, which is
printed as the first again (taken: even or one rare); in 5c the joint prior (independent values);
in 6a and 6b prior and $\epsilon$ (that of 6c; .5 and 2, so that either of the two flat bounds is
the lower once); in 6c $\epsilon$ (both).

What the text says, with $k = e^\epsilon$ and $p$ the least probability:

- 2a, the bound of Prop. 1 is "looser" and meets the maximum for the even prior: *for three symbols
  or more it is the maximum, for every prior* ($x'$ the rarest symbol, $x$ the next, of mass at
  most 1/2). A curve for the skewed prior apart from its bound cannot be right. "Between $\epsilon$
  and $2\epsilon$" is true.
- 2a, "more skewed leaks more" is true of three symbols or more and *false for two*:
  $\epsilon = .5$ implies .832 under (.5, .5), .677 under (.2, .8), .575 under (.1, .9).
- 2b, the gap for posteriors is "larger" than that of 2a, which is none: true from
  $\epsilon = .708$ (skewed) and 1.099 (even) on; below, the bound is reached.
- 4, the formula for LIP lacks its logarithm: as printed it is 1 where nothing leaks ($q = .5$).
  The inverse ratios may be left out for this channel: the least are further from 1 than the
  largest, as $P(y)$ lies between $q$ and $1 - q$. "LIP and LDP are always larger" is true, with
  equality at $q = .5$.
- 5a, "when $P_{\min}$ is small we observe a decrease" is *false*: the bound of Thm. 4 falls as $p$
  grows, both in the sum and outside it. After 8 releases 25.9 (even), 31.9 (.1), 32.0 (.01) at
  $\epsilon = 2$ and 50.8, 58.3, 76.8 at 5; the worst channel 24.8, 29.7, 27.4 and 49.7,
  56.1, 72.2. At $\epsilon = 2$ alone the rare symbol lowers something: what the optimal channel
  leaks (23.0 against 24.8), and the worst after 2 and 3 releases (4.99 and 8.24 against 5.18
  and 8.45).
- 5a, 5b, "increases linearly" is true of the bound within .013 from the first release on (not
  through the origin), and of exact leakages in the end: the slope of the bound is right, its
  offset $\ln(1 - p)$ is not: $\ln P(x)$ of one symbol is. Under the prior with one rare
  symbol and $\epsilon = 2$ the steps of the worst channel grow from 2.99 to 3.99. At one release
  the bound is up to 4.6 above $\epsilon$, which is the guarantee itself.
- 5b, "BP-LIP approaches LDP as the set grows": Thm. 2 does not show it. For all priors on four
  symbols it gives $\ln(4k - 3)$, 3.28 at $\epsilon = 2$, where 2 is true. Its bound for LIP
  grows with the set; the inequality printed below the theorem is the wrong way round.
- 5c, "identical after three releases" is true: 11.28 and 23.28. "Does not increase linearly" is
  true of the bound and *false of the leakage*: of independent values the worst channels leak
  $\epsilon$, $2\epsilon$, $3\epsilon$ (6 and 15) in any order.
- 6, $c$ and the $p$ of Eq. 12 are those of the *estimate*, too, which the curves here bound by the
  event that bounds its distance. With $c = P_{\min}$ the corollary fails: at $\epsilon = 4$ and 50
  samples for 1.8 % of them, against $\beta$ = 1 %.
- 6a, Eq. 12 takes it that the mechanism leaks at most $\epsilon$ under the prior it was made for.
  *Eq. 19 does not*, once some probability is below $1/(k + 1)$: for (.3, .7), for every
  $\epsilon < .847$. At .5 it leaks .651, which is over $\eta + \epsilon$ from 2,000 samples on; at
  2 it keeps its claim. 6c, "decreases and converges to 0", is true.

References:
    [LIP, Figs. 2, 4, 5 and 6]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from sfumato.column.leakage_transfer import estimation_gap
from sfumato.column.notion_relations import (
    identifiability_from_lip,
    ldp_from_lip,
    ldp_from_lip_closed_form,
    maximal_leakage,
    mutual_information,
)
from sfumato.column.repeated_leakage import (
    correlated_bound,
    repeated_bound,
    repeated_bound_of_set,
    repeated_leakage,
)
from sfumato.core import checks
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.randomness import Address, Domain, seeded
from sfumato.models.prior_sets import PriorList
from sfumato.plots.points import Point
from sfumato.solver.bounded_prior_channel import bounded_prior
from sfumato.solver.closed_form import paper_response
from sfumato.solver.optimal_channel import optimal

Prior = tuple[float, ...]

EVEN: Prior = (0.25, 0.25, 0.25, 0.25)
COMMON: Prior = (0.1, 0.1, 0.1, 0.7)
RARE: Prior = (0.01, 0.33, 0.33, 0.33)
NAMES = {EVEN: "even", COMMON: "one common", RARE: "one rare"}
SETS: tuple[tuple[Prior, Prior], ...] = ((EVEN, COMMON), (EVEN, RARE), (COMMON, RARE))
ORDERS: tuple[tuple[Prior, ...], ...] = (
    (EVEN, COMMON, RARE),
    (COMMON, RARE, EVEN),
    (RARE, COMMON, EVEN),
)
BUDGETS = (2.0, 5.0)
RELEASES = 8

LEAST, FAILURE = 0.3, 0.01
SAMPLED_BUDGETS = {"6a": 0.5, "6b": 2.0}
SAMPLES = (50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 1_000_000)
REPETITIONS = 1_000
_HAIR = 1e-8
"""By how much a worst channel stays within its budget: more than rounding can cost."""


def figure_2() -> list[Point]:
    """What a leakage of epsilon implies: model-free, and for the quotient of two posteriors.

    Abscissa: epsilon, 0 to 5 nats. Ordinate: (a) the largest model-free leakage and its bound,
    (b) the largest log quotient of two posteriors and its bound, in nats.

    References:
        [LIP, Fig. 2], [LIP, Thm. 1], [LIP, Prop. 1], [LIP, Thm. 3]
    """
    points = []
    for prior, step in itertools.product((RARE, EVEN), range(51)):
        epsilon, name = step / 10, NAMES[prior]
        for figure, curve, value in (
            ("2a", "exact", ldp_from_lip(LIP(epsilon), prior).epsilon),
            ("2a", "bound", ldp_from_lip_closed_form(LIP(epsilon), prior).epsilon),
            ("2b", "exact", posterior_spread(prior, epsilon)),
            ("2b", "bound", identifiability_from_lip(LIP(epsilon), prior)),
        ):
            points.append(Point(figure, f"{name}, {curve}", epsilon, value))
    return points


def figure_4() -> list[Point]:
    """Four leakages of a bit that is flipped with the same probability either way.

    Abscissa: that probability. Ordinate: leakage in nats. The bit is 1 with probability .5 in (a)
    and .2 in (b).

    References:
        [LIP, Fig. 4], [LIP, Ex. 1]
    """
    points = []
    for (figure, one), step in itertools.product((("4a", 0.5), ("4b", 0.2)), range(1, 100)):
        flip, prior = step / 100, (1 - one, one)
        channel = Channel.from_probabilities([[1 - flip, flip], [flip, 1 - flip]])
        for curve, value in (
            ("LDP", local_leakage(channel).epsilon),
            ("LIP", information_leakage(channel, prior).epsilon),
            ("MIP", mutual_information(channel, prior)),
            ("MIL", maximal_leakage(channel)),
        ):
            points.append(Point(figure, curve, flip, value))
    return points


def figure_5() -> list[Point]:
    """Leakage of several releases: of one value (a, b) and of several values (c).

    Abscissa: releases. Ordinate: nats; "bound" is the paper's, "worst" the exact leakage of the
    channel that loses most within the budget, "optimal" that of the channel of least Hamming
    loss.

    References:
        [LIP, Fig. 5], [LIP, Thm. 4], [LIP, Cor. 4], [LIP, Cor. 5]
    """
    points: list[Point] = []
    for epsilon in BUDGETS:
        for prior in NAMES:
            points += _one_prior(prior, epsilon)
        for priors in SETS:
            points += _set_of_priors(priors, epsilon)
        for order in ORDERS:
            points += _several_values(order, epsilon)
    return points


def figure_6(seed: int = 6, repetitions: int = REPETITIONS) -> list[Point]:
    r"""What a prior that was estimated from samples adds to the leakage of a bit.

    Abscissa: samples. Ordinate: (a, b) leakage under the true prior, (c) how far it is from that
    under the estimate, in nats. The bounds hold with probability 1 minus `FAILURE`.

    References:
        [LIP, Fig. 6], [LIP, Eq. 12], [LIP, Cor. 7]
    """
    points: list[Point] = []
    for samples in SAMPLES:
        counts = _drawn_counts(samples, seed, repetitions)
        floor = least_estimate(samples)
        gap = estimation_gap(samples, 2, floor, FAILURE) if floor > 0 else math.inf
        short = estimation_gap(samples, 2, LEAST, FAILURE)
        points += [Point("6c", "bound", samples, gap), Point("6c", "c = P_min", samples, short)]
        for panel, epsilon in SAMPLED_BUDGETS.items():
            pairs = _estimated_leakages(counts, samples, epsilon)
            apart = np.abs(pairs[:, 0] - pairs[:, 1])
            odds = math.expm1(epsilon) / floor if floor > 0 else math.inf
            for figure, curve, value in (
                (panel, "η + ε", gap + epsilon),
                (panel, "η + ε, c = P_min", short + epsilon),
                (panel, "2ε", 2 * epsilon),
                (panel, "ln((e^ε - 1 + p)/p)", math.log1p(odds)),
                (panel, "Eq. 19, median", _quantile(pairs[:, 1], 0.5)),
                (panel, "Eq. 19, 99 %", _quantile(pairs[:, 1], 0.99)),
                ("6c", f"ε = {epsilon:g}, median", _quantile(apart, 0.5)),
                ("6c", f"ε = {epsilon:g}, 99 %", _quantile(apart, 0.99)),
            ):
                points.append(Point(figure, curve, samples, value))
    return points


def posterior_spread(prior: ArrayLike, epsilon: float) -> float:
    r"""The largest log quotient of two posteriors that a leakage of `epsilon` leaves possible.

    $$\max_{x \ne x'} \frac{P(x')\, r(x')}{P(x)\, r(x)} \quad\text{s.t.}\quad
      1/k \le r \le k,\ \sum_x P(x)\, r(x) = 1$$

    where $k = e^\epsilon$. For a pair of symbols the quotient of ratios is $k^2$ unless the average
    sets one of the two ends.

    Examples:
        >>> posterior_spread([0.5, 0.5], 1.0), posterior_spread([0.2, 0.8], 0.0)
        (1.4898801, 1.3862943)

    References:
        [LIP, Eq. 10]
    """
    mass = checks.belief("prior", prior)
    k = math.exp(checks.finite("epsilon", epsilon))
    most = np.minimum(k, (k - 1 + mass) / (k * mass))
    least = np.maximum(1 / k, (1 - k * (1 - mass)) / mass)
    quotients = (most * mass)[None, :] / (least * mass)[:, None]
    quotients[np.diag_indices(mass.size)] = 1.0
    return math.log(float(quotients.max()))


def worst_channel(priors: Sequence[ArrayLike], epsilon: float, releases: int) -> Channel:
    r"""A channel of leakage `epsilon` under each prior that leaks most when used several times.

    $$\max_{P, a, x} \ln \sum_{x'} P(x') \left(\frac{a(x')}{a(x)}\right)^n$$

    where $a$ is a column of the channel and $n$ is `releases`. By Hölder's inequality no sequence
    of different columns takes more from a posterior; the sum is convex in the column, so corners
    of the columns that keep the budget suffice, and any column has a channel: it and its
    complement. A posterior can rise by $\ln(1/P_{\min})$ at most, which is less in all the cases
    of the figure from the second release on; at the first neither is more than `epsilon`.

    Examples:
        >>> even = [0.5, 0.5]
        >>> worst = worst_channel([even], 1.0, releases=2)
        >>> repeated_leakage([worst], even).epsilon, repeated_leakage([worst] * 2, even).epsilon
        (1.000000, 2.336170)

    References:
        [LIP, Sec. III-B]
    """
    table = np.array([checks.belief("priors", prior) for prior in priors])
    columns = _corners(table, checks.epsilon("epsilon", epsilon) - _HAIR)
    means = columns ** checks.count("releases", releases) @ table.T
    column = columns[int(means.max(axis=1).argmax())]
    # Rare enough that its complement is nearly as likely under every symbol.
    share = -0.5 * math.expm1(-epsilon) * column / column.max()
    return Channel.from_probabilities(np.column_stack([share, 1 - share]))


def least_estimate(samples: int) -> float:
    """What the estimate of the least probability does not fall below, but for the failure.

    The total variation of estimate and truth is bounded; the corollary needs a bound on both least
    probabilities, and this is what that same event says of the estimate's. Not positive where
    it says nothing.

    References:
        [LIP, Cor. 7]
    """
    return LEAST - 0.5 * math.sqrt(2 / samples * (2 - math.log(FAILURE)))


def _one_prior(prior: Prior, epsilon: float) -> Iterator[Point]:
    told = optimal(prior, 1 - np.eye(len(prior)), epsilon).channel
    for count in range(1, RELEASES + 1):
        worst = worst_channel([prior], epsilon, count)
        for curve, value in (
            ("bound", repeated_bound([LIP(epsilon)] * count, prior)),
            ("worst", repeated_leakage([worst] * count, prior)),
            ("optimal", repeated_leakage([told] * count, prior)),
        ):
            yield Point("5a", f"{NAMES[prior]}, ε = {epsilon:g}, {curve}", count, value.epsilon)


def _set_of_priors(priors: Sequence[Prior], epsilon: float) -> Iterator[Point]:
    both, name = PriorList(priors), " or ".join(NAMES[prior] for prior in priors)
    told = bounded_prior(both, 1 - np.eye(both.size), epsilon).channel

    def exact(channel: Channel, count: int) -> float:
        return max(repeated_leakage([channel] * count, prior).epsilon for prior in priors)

    for count in range(1, RELEASES + 1):
        for curve, value in (
            ("bound", repeated_bound_of_set([LIP(epsilon)] * count, both).epsilon),
            ("worst", exact(worst_channel(priors, epsilon, count), count)),
            ("optimal", exact(told, count)),
        ):
            yield Point("5b", f"{name}, ε = {epsilon:g}, {curve}", count, value)


def _several_values(order: Sequence[Prior], epsilon: float) -> Iterator[Point]:
    name = ", then ".join(NAMES[prior] for prior in order)
    for count in range(1, len(order) + 1):
        priors = order[:count]
        joint = _together([np.array(prior) for prior in priors])
        tables = [worst_channel([prior], epsilon, 1).probabilities for prior in priors]
        channel = Channel.from_probabilities(_together(tables))
        bound = correlated_bound([LIP(epsilon)] * count, priors, float(joint.min()))
        for curve, value in (("bound", bound), ("worst", information_leakage(channel, joint))):
            yield Point("5c", f"{name}; ε = {epsilon:g}, {curve}", count, value.epsilon)


def _together(factors: Sequence[Floats]) -> Floats:
    """Of what is independent: the prior of all values, or the channel of all releases."""
    return reduce(lambda left, right: np.asarray(np.kron(left, right)), factors)


def _corners(priors: Floats, epsilon: float) -> Floats:
    r"""The columns $a$ with least entry 1 and $P a / k \le a \le k P a$ that no others span."""
    size, k = priors.shape[1], math.exp(epsilon)
    mean, one = np.repeat(priors, size, axis=0), np.tile(np.eye(size), (len(priors), 1))
    sides = np.vstack([mean / k - one, one - k * mean])
    chosen = np.array(list(itertools.combinations(range(len(sides)), size - 1)))
    found = []
    for low in range(size):
        others, limits = np.delete(sides, low, axis=1), -sides[:, low]
        regular = np.abs(np.linalg.det(others[chosen])) > 1e-12
        ends = np.linalg.solve(others[chosen[regular]], limits[chosen[regular]][:, :, None])[
            :, :, 0
        ]
        over = (ends @ others.T - limits).max(axis=1)
        kept = ends[over <= 1e-10 * (1 + np.abs(ends).max(axis=1))]
        found.append(np.insert(kept, low, 1.0, axis=1))
    return np.concatenate(found)


def _drawn_counts(samples: int, seed: int, repetitions: int) -> Ints:
    """How often the rarer value was seen, in each of many samples."""
    words = (
        seeded(seed)
        .at(Address(Domain.SIMULATION, "lip discrete", "samples", samples))
        .words(repetitions)
    )
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(binom.ppf(uniform, samples, LEAST), dtype=np.int64)


def _estimated_leakages(counts: Ints, samples: int, epsilon: float) -> Floats:
    """Leakage of the published response under the estimate it was made for and under the truth."""
    different, places = np.unique(counts, return_inverse=True)
    pairs = [_leakages(int(count), samples, epsilon) for count in different]
    return np.array(pairs)[places]


def _leakages(count: int, samples: int, epsilon: float) -> tuple[float, float]:
    if count in (0, samples):
        return 0.0, math.inf  # a value that was never seen is never told of: it gives itself away
    estimate = [count / samples, 1 - count / samples]
    made = paper_response(estimate, 1 - np.eye(2), epsilon)
    truth = information_leakage(made.channel, [LEAST, 1 - LEAST])
    return made.sip.epsilon, truth.epsilon


def _quantile(values: Floats, part: float) -> float:
    return float(np.quantile(values, part, method="inverted_cdf"))
