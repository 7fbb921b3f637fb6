r"""Local information privacy of numbers: four figures, exactly, and what of them is right.

*Figure 7*: mean absolute error of the sampling mechanism, $(1 - \lambda)\,E|X - X'|$. *Figure 8*:
the $\delta$ of Gaussian noise of deviation 10 under a normal prior, beside that without a prior.
*Figure 9*: (a) the noise that Cor. 10 asks for, (b) the $\delta$ it really has, (c) errors of what
keeps the budget on a lattice. *Figure 10*: Laplace noise for three values: (a) scales, (b)
errors, (c) the constant that Eq. 26 leaves undefined. The panels of 9 and 10 are ours.

Not in the paper and chosen here: in 7 the priors, Beta(2, 5), N(.5, .15²) and Unif(0, 1); in 8 the
values (0, 5, 10, inside $\Delta X = 20$); in 9 the interval [-12, 12] and 101 points, the tails
of the prior counted to the end points; in 10 the points 0, 1, 2; all ranges of $\epsilon$.

What the text says, with $k = e^\epsilon$:

- 7, Prop. 2 is right and the most that Def. 5 allows. The switch of its branches is
  $\delta = 1/(k + 1)$: .119 at $\epsilon = 2$, and $\epsilon = 4.595$ at $\delta = .01$.
- 7, "the distributions do not affect the trend" is true: all curves are one, times $E|X - X'|$.
- 7, "the utility increases with $\epsilon$" is true of Def. 5, whose first line forgives
  $k\delta$, and *false of Cor. 9*, by which the Gaussian mechanism is judged: there
  $\lambda = \delta$ whatever $\epsilon$. Figures that show both mechanisms (12) are not fair.
- 7, "faster when $\delta$ is small, slowly when it approaches 1" is true: slope $k$, then $1/k$,
  54.6 times less at $\epsilon = 2$; slowly begins at .119.
- 7, the best constant has a smaller error than sampling while $\lambda$ is under .25 (uniform),
  .282 (Beta), .293 (normal): at $\delta = .01$ up to $\epsilon$ = 3.22, 3.34, 3.38.
- 8, "we outperform" LDP at $2\epsilon$ fails for $X = 10$ from $\epsilon = 2.92$ on and for
  $X = 5$ from 6.11: under an unbounded prior $\delta$ falls like $e^{-c\epsilon}$, without one
  like $e^{-c\epsilon^2}$. $2\epsilon$ is fair only with $(k + 1)\delta$ (Cor. 3), which for
  $X = 10$ is more than LDP has at any $\epsilon$. At equal $\epsilon$ it is true for all three
  up to 8, where the axis ends.
- 8, the classical bound is 1 wherever it is proven (it falls below 1 at 1.336), and is below the
  exact $\delta$ from 7.38 on.
- 8, Thm. 5 takes a supremum over all $x$, which is 1 for every noise. Some interval is meant.
- 9a, "less density requires more noise" is true of these scales. *They do not give the privacy*:
  they are measured against N(0, 25 + σ²), which is the output's distribution for one σ only.
  For 1e-4 the true $\delta$ is .194 at $\epsilon = 1$, .091 at 2, .030 at 3 with the prior cut at
  ±12 (.182, .080, .028 with its tails clamped there). Values of 90 to 100 % of the prior exceed
  1e-4. No point of a curve for one $X$ can be right without the curves for all others.
- 9b, outputs clamped to the interval, which the paper does not do, rescue these scales from
  $\epsilon = .91$ on (leakage .89 at 1, 1.36 at 3, without any $\delta$) and not below: .132
  at .5. They are then far too wide: their error is that of one certified scale (8.54 and 8.58 at
  1), and certified scales of their own have less (7.29).
- 9a, the supremum over [-12, 12] makes one scale 41.2 at $\epsilon = 1$. With clamped outputs
  18.5 is enough; certified scales of their own are 9.4 (at 0) to 18.9 (at 12).
- 9c, before the best guess no additive noise here beats the best constant (3.96) up to
  $\epsilon = 3$. The optimal pure channel does: 2.77 at 1, .55 at 3.
- The text describes Fig. 9 as $\delta$ against $\epsilon$; that is Fig. 8.
- 10, the "otherwise" of Eq. 25 gives the model-free scale, though the first branch remains valid:
  at $\epsilon = \ln(1/P_{\min}) = 1.455$ the printed noise *rises*, 1.201 to 1.374. The
  first branch is not the least either: 1.701 at $\epsilon = 1$, where 1.402 is enough.
- 10, Eq. 26 has no $\alpha_\epsilon$ but 0 on an unbounded output: where scales differ, the
  quotient of the tails grows without limit. With three outputs some are valid: up to .58
  at $\epsilon = .25$, 2.08 at 1, 5.29 at 4. Their errors are .831, .524, .160; scales that need
  not have this form reach .830, .382, .082; the optimum .617, .342, .016. Those scales do not
  follow the density: from $\epsilon = .4$ on the value in the middle has the least noise, not the
  most probable one.

References:
    [LIP, Fig. 7], [LIP, Fig. 8], [LIP, Fig. 9], [LIP, Fig. 10], [LIP, Sec. IV-C]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from sfumato.column.approximate_leakage import (
    approximate_leakage,
    leakage_within,
    local_leakage_within,
)
from sfumato.column.noise_scales import (
    classical_scale,
    local_scale,
    paper_laplace_scale,
    paper_sampling_rate,
)
from sfumato.column.number_mechanisms import NumberDesign, guessed, optimal_number
from sfumato.column.quantile_response import quantile_response
from sfumato.column.scaled_noise import least_noise, least_noise_each, local_noise
from sfumato.core.arrays import Floats
from sfumato.core.channel import Channel
from sfumato.noise.densities import (
    classical_gaussian_delta,
    local_gaussian_delta,
)
from sfumato.noise.lattice import Lattice, Noise
from sfumato.plots.points import Point
from sfumato.studies.lip.lip_number_noise import (
    DELTA,
    LATTICE,
    MASSES,
    THREE,
    THREE_MASSES,
    cut_masses,
    instance_scale,
    instance_scales,
    largest_constant,
    line_scale,
    linked_scales,
    mixture_deltas,
    value_delta,
)

WIDTH, NOISE, VALUES = 20.0, 10.0, (0.0, 5.0, 10.0)
EPSILONS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
SWITCH = -math.log(THREE_MASSES[2])
"""Where Eq. 25 changes its branch."""


@dataclass(frozen=True, slots=True)
class Density:
    """A prior of Fig. 7, as far as its mean absolute errors need it.

    Attributes:
        name: What the figure calls it.
        difference: Expected distance of two independent draws.
        deviation: Expected distance from the median: the error of the best constant.
    """

    name: str
    difference: float
    deviation: float

    @classmethod
    def beta(cls, first: float, second: float) -> Density:
        """A Beta distribution.

        Examples:
            >>> Density.beta(1.0, 1.0)
            Density(name='Beta(1, 1)', difference=0.333333, deviation=0.25)
        """
        both, mean = first + second, first / (first + second)
        pairs = special.beta(first, first) * special.beta(second, second)
        median = special.betaincinv(first, second, 0.5)
        return cls(
            f"Beta({first:g}, {second:g})",
            float(4 / both * special.beta(both, both) / pairs),
            float(mean * (1 - 2 * special.betainc(first + 1, second, median))),
        )

    @classmethod
    def normal(cls, mean: float, deviation: float) -> Density:
        """A normal distribution."""
        return cls(
            f"N({mean:g}, {deviation:g}²)",
            2 * deviation / math.sqrt(math.pi),
            deviation * math.sqrt(2 / math.pi),
        )

    @classmethod
    def uniform(cls, low: float, high: float) -> Density:
        """A uniform distribution."""
        return cls(f"Unif({low:g}, {high:g})", (high - low) / 3, (high - low) / 4)


DENSITIES = (Density.beta(2.0, 5.0), Density.normal(0.5, 0.15), Density.uniform(0.0, 1.0))


def figure_7() -> list[Point]:
    """Mean absolute error of sampling: (a) against epsilon, (b) against delta.

    "Prop. 2" tells the truth as often as Def. 5 allows, "λ = δ" as often as Cor. 9 does.

    References:
        [LIP, Fig. 7], [LIP, Prop. 2], [LIP, Eq. 21]
    """
    settings = [("7a", step / 10, step / 10, 0.01) for step in range(61)]
    settings += [("7b", step / 200, 2.0, step / 200) for step in range(201)]
    return [
        Point(figure, f"{density.name}, {curve}", x, error)
        for density in DENSITIES
        for figure, x, epsilon, delta in settings
        for curve, error in (
            ("Prop. 2", (1 - paper_sampling_rate(epsilon, delta)) * density.difference),
            ("λ = δ", (1 - delta) * density.difference),
            ("say nothing", density.deviation),
        )
    ]


def figure_8() -> list[Point]:
    """The delta of Gaussian noise against epsilon, for single values and without a prior.

    "Classical" is the textbook bound where it is proven and "classical, not proven" the same
    formula beyond.

    References:
        [LIP, Fig. 8], [LIP, Thm. 5], [LIP, Eq. 24]
    """
    points = []
    for epsilon in (step / 20 for step in range(161)):
        for value in VALUES:
            delta = value_delta(value, NOISE, epsilon)
            points.append(Point("8", f"LIP, X = {value:g}", epsilon, delta))
        for name, level in (("ε", epsilon), ("2ε", 2 * epsilon)):
            exact = local_gaussian_delta(WIDTH, NOISE, level)
            bound = classical_gaussian_delta(WIDTH, NOISE, level)
            status = "classical" if level < 1 else "classical, not proven"
            points.append(Point("8", f"LDP, {name}", epsilon, exact))
            points.append(Point("8", f"LDP, {name}, {status}", epsilon, bound))
    return points


def figure_9(
    progress: Callable[[int], None] | None = None, epsilons: Sequence[float] = EPSILONS
) -> list[Point]:
    """Gaussian noise by value against epsilon: (a) scales, (b) true delta, (c) errors.

    "Own scales" are certified together. In (c) all are mean absolute errors on the lattice, with
    outputs clamped to it.

    Args:
        progress: Called with how many budgets are done.
        epsilons: The budgets.

    References:
        [LIP, Fig. 9], [LIP, Cor. 10]
    """
    points: list[Point] = []
    for done, epsilon in enumerate(epsilons, 1):
        scales = instance_scales(epsilon)
        one = least_noise(Noise.GAUSSIAN, LATTICE, MASSES, epsilon, DELTA)
        each = least_noise_each(Noise.GAUSSIAN, LATTICE, MASSES, epsilon, DELTA)
        points += _gaussian_scales(epsilon, scales, one, each)
        points += _gaussian_deltas(epsilon, scales, each)
        points += _gaussian_errors(epsilon, scales, one, each)
        if progress:
            progress(done)
    return points


def figure_10(epsilons: Sequence[float] | None = None) -> list[Point]:
    """Laplace noise for three values against epsilon: (a) scales, (b) errors, (c) Eq. 26.

    Mean absolute errors are those of outputs moved to the nearest of the three values.

    Args:
        epsilons: The budgets; .2 to 4 and where Eq. 25 changes its branch, if None.

    References:
        [LIP, Fig. 10], [LIP, Thm. 6], [LIP, Eq. 25], [LIP, Eq. 26]
    """
    points: list[Point] = []
    for epsilon in epsilons or sorted([*(step / 5 for step in range(1, 21)), SWITCH]):
        points += _three_values(epsilon)
    return points


def _gaussian_scales(
    epsilon: float, scales: Floats, one: NumberDesign, each: NumberDesign
) -> Iterator[Point]:
    for value in (*VALUES, LATTICE.high):
        (place,) = LATTICE.places([value])
        # Not all of the values are points of the lattice.
        exact = scales[-1] if value == LATTICE.high else instance_scale(value, epsilon)
        yield Point("9a", f"Cor. 10, X = {value:g}", epsilon, float(exact))
        if each.scales is not None and value in (0.0, LATTICE.high):
            yield Point("9a", f"own scales, X = {value:g}", epsilon, float(each.scales[place]))
    if one.scales is not None:
        yield Point("9a", "one scale", epsilon, float(one.scales[0]))
    local = local_scale(Noise.GAUSSIAN, LATTICE.width, epsilon, DELTA)
    yield Point("9a", "LDP", epsilon, local)
    status = "classical" if epsilon <= 1 else "classical, not proven"
    bound = classical_scale(LATTICE.width, 1.0, DELTA) / epsilon
    yield Point("9a", f"LDP, {status}", epsilon, bound)


def _gaussian_deltas(epsilon: float, scales: Floats, each: NumberDesign) -> Iterator[Point]:
    cut = mixture_deltas(cut_masses(), LATTICE.points, scales, epsilon)
    clamped = mixture_deltas(MASSES, LATTICE.points, scales, epsilon)
    rows = LATTICE.noisy(Noise.GAUSSIAN, scales)
    moved = approximate_leakage(Channel.from_probabilities(rows), MASSES, epsilon).delta
    kept = approximate_leakage(each.channel, MASSES, epsilon).delta
    for curve, delta in (
        ("Cor. 10, prior cut", float(cut.max())),
        ("Cor. 10, prior clamped", float(clamped.max())),
        ("Cor. 10, on the lattice", moved),
        ("own scales", kept),
    ):
        yield Point("9b", curve, epsilon, delta)


def _gaussian_errors(
    epsilon: float, scales: Floats, one: NumberDesign, each: NumberDesign
) -> Iterator[Point]:
    for curve, design in (
        ("LDP", local_noise(Noise.GAUSSIAN, LATTICE, MASSES, epsilon, DELTA)),
        ("one scale", one),
        ("own scales", each),
        ("Cor. 10", _with_scales(Noise.GAUSSIAN, LATTICE, scales, MASSES, DELTA)),
    ):
        yield Point("9c", curve, epsilon, design.cost)
        yield Point("9c", f"{curve}, best guess", epsilon, guessed(design, MASSES).cost)
    yield Point("9c", "optimal, δ = 0", epsilon, optimal_number(LATTICE, MASSES, epsilon).cost)
    fair = quantile_response(LATTICE, MASSES, epsilon)
    yield Point("9c", "quantile response, δ = 0", epsilon, fair.cost)
    yield Point("9c", "say nothing", epsilon, _least_deviation(LATTICE, MASSES))


def _three_values(epsilon: float) -> Iterator[Point]:
    local = THREE.width / epsilon
    published = paper_laplace_scale(THREE.width, epsilon, min(THREE_MASSES))
    one = least_noise(Noise.LAPLACE, THREE, THREE_MASSES, epsilon)
    each = least_noise_each(Noise.LAPLACE, THREE, THREE_MASSES, epsilon)
    constant = largest_constant(epsilon)
    printed = published if epsilon < SWITCH else local
    for curve, scale in (
        ("LDP", local),
        ("Eq. 25", printed),
        ("Eq. 25, first branch", published),
        ("least", line_scale(epsilon)),
    ):
        yield Point("10a", curve, epsilon, scale)
    if one.scales is not None and each.scales is not None:
        yield Point("10a", "least, three outputs", epsilon, float(one.scales[0]))
        for value, scale in zip(THREE.points.tolist(), each.scales.tolist(), strict=True):
            yield Point("10a", f"own scales, X = {value:g}", epsilon, scale)
    for curve, scales in (
        ("LDP", local),
        ("Eq. 25", printed),
        ("Eq. 25, first branch", published),
        ("Eq. 26, largest α", linked_scales(epsilon, constant)),
    ):
        design = _with_scales(Noise.LAPLACE, THREE, scales, THREE_MASSES, 0.0)
        yield Point("10b", curve, epsilon, design.cost)
    for curve, error in (
        ("least, three outputs", one.cost),
        ("own scales", each.cost),
        ("optimal", optimal_number(THREE, THREE_MASSES, epsilon).cost),
        ("say nothing", _least_deviation(THREE, THREE_MASSES)),
    ):
        yield Point("10b", curve, epsilon, error)
    yield Point("10c", "largest α", epsilon, constant)


def _with_scales(
    noise: Noise, lattice: Lattice, scales: ArrayLike, prior: ArrayLike, delta: float
) -> NumberDesign:
    """The mechanism with given scales, whatever it leaks."""
    each = lattice.scaled(scales)
    channel = Channel.from_probabilities(lattice.noisy(noise, each))
    distances = np.abs(lattice.points[:, None] - lattice.points)
    per_point = (channel.probabilities * distances[:, channel.outputs]).sum(axis=1)
    return NumberDesign(
        channel=channel,
        lattice=lattice,
        scales=each,
        cost=float(np.asarray(prior) @ per_point),
        lip=leakage_within(channel, prior, delta),
        ldp=local_leakage_within(channel, delta),
    )


def _least_deviation(lattice: Lattice, prior: ArrayLike) -> float:
    """The mean absolute error of the best constant."""
    return float((np.asarray(prior) @ np.abs(lattice.points[:, None] - lattice.points)).min())
