"""How likely an attacker pins several columns of a person down."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.jobs import Progress
from sfumato.jobs.attributes import (
    AnyCoupling,
    Attributes,
    Numbers,
    known_attributes,
    read_people,
)
from sfumato.jobs.noise import (
    Wanted,
    attacked,
    chosen_noise,
    guessed,
    told_of_best,
    told_of_guesses,
)
from sfumato.leakage.chain import chain_bound, sampled_information
from sfumato.leakage.coupled import disclosure_rates
from sfumato.leakage.disclosure import Found, Way, bayes_disclosure
from sfumato.mechanisms.publishing import Shape, noise_of
from sfumato.mechanisms.vector_noise import VectorNoise, axis_scales
from sfumato.models.coupled import CoupledPrior, domains_of
from sfumato.models.coupling import Interval

Floats = NDArray[np.float64]

_SAMPLED_ROWS = 5_000
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True)
class DisclosureReport:
    """What an attacker may learn of several columns.

    Attributes:
        columns: The columns.
        rows: How many people.
        noise: Shape of the noise.
        sigma: Its standard deviation on each column.
        accuracy: How near an attacker must come, on each column.
        coupling: What the attacker knows.
        delta: Probability that the best attacker who knows it comes near enough on all columns.
        delta_low: It is at least this; with `way`, how it was found.
        delta_high: It is at most this.
        way: Closed form, quadrature or sampling (then the interval is one of confidence).
        delta_without_correlation: The same of an attacker who sees the published values alone.
        delta_if_independent: The same, were the columns independent; None if it was not computed.
        delta_before: The same of a guess when nothing is published; None if nothing is known.
        gamma: The paper's successful disclosure rate, with equations if there are any.
        gamma_without_correlation: The same with the domains of the columns alone.
        bound: The paper's bound: on `delta` for a density (Theorem 4), on `gamma` for equations
            (Theorem 3).
        bound_of: Which of them it is a bound of; `nothing` without coupling.
        bound_holds: Whether it is a bound here.
        gain: By how much the coupling raises `delta`, as a part of it without.
        gamma_gain: The same of `gamma`.
        information: What all other columns tell of the one they tell most of, in nats.
        information_sampled: Largest mutual information of two columns, by nearest neighbours.
        inferred: The column that the paper's attacker infers from each equation.
        remarks: What a careful user should know.
    """

    columns: tuple[str, ...]
    rows: int
    noise: str
    sigma: tuple[float, ...]
    accuracy: tuple[float, ...]
    coupling: str
    delta: float
    delta_low: float
    delta_high: float
    way: str
    delta_without_correlation: float
    delta_if_independent: float | None
    delta_before: float | None
    gamma: float
    gamma_without_correlation: float
    bound: float
    bound_of: str
    bound_holds: bool
    gain: float
    gamma_gain: float
    information: float
    information_sampled: float | None
    inferred: tuple[str, ...]
    remarks: tuple[str, ...]


def disclosure(
    frame: Any,
    columns: Sequence[str],
    *,
    accuracy: ArrayLike,
    sigma: ArrayLike | None = None,
    noise: str = Shape.BALL,
    coupling: AnyCoupling = "none",
    target_delta: float | None = None,
    attacker: float | None = None,
    correlation: ArrayLike | None = None,
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
    history: Any = None,
    progress: Progress | None = None,
) -> DisclosureReport:
    """How likely an attacker pins all columns of a person down after noise is added.

    Args:
        frame: A polars or pandas frame, a pyarrow table or a mapping of columns; one row a person.
        columns: The columns that are published.
        accuracy: How near an attacker must come, for all columns or each.
        sigma: Standard deviation of the noise, for all columns or each. With `target_delta` only
            their proportions count; those of the accuracies if not given.
        noise: `uniform`, `ball`, `gaussian`, `laplace`, or `best` (round, for up to two columns).
        coupling: What the attacker knows; see `known_attributes`.
        target_delta: Find the least noise with which the attacker succeeds at most so often.
        attacker: For the best noise: bound on the attacker who knows the coupling, while what
            one who knows nothing can do is made least.
        correlation: For Gaussian noise: its correlation matrix, or one number for any two columns.
        domains: Intervals of the columns, known to everybody.
        degree: Of polynomials that are fitted.
        history: Public records to learn the coupling from; else the frame itself.
        progress: Told how many steps are done.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> body = rng.multivariate_normal([170, 75], [[64, 60], [60, 144]], 500).T
        >>> people = {"height": body[0], "weight": body[1]}
        >>> found = disclosure(people, ["height", "weight"], accuracy=2.0, sigma=8.0)
        >>> found.delta, found.gain  # 4 / (64 pi): nothing known, nothing gained
        (0.0198944, 0.0)
        >>> known = disclosure(
        ...     people, ["height", "weight"], accuracy=2.0, sigma=8.0, coupling="gaussian"
        ... )
        >>> known.delta > 3 * known.delta_without_correlation, known.bound_holds
        (True, False)

    References:
        [MDDP, Def. 5]
    """
    people, past = read_people(frame, history, columns)
    known = known_attributes(past, coupling, domains=domains, degree=degree, people=people)
    half = axis_scales("accuracy", accuracy, len(known.names))
    wanted = Wanted(str(noise), correlation, attacker)
    added, best = chosen_noise(known, past, wanted, half, sigma, target_delta, progress)
    report = _report(known, past, added, str(noise), half, len(people[known.names[0]]))
    told = (*told_of_best(best, known), *told_of_guesses(report.delta_before, people, half))
    return replace(report, remarks=(*report.remarks, *told))


@dataclass(frozen=True, slots=True)
class Curve:
    """How often attackers succeed against one shape of noise, by its size.

    Attributes:
        noise: The shape.
        factors: Sizes, as multiples of the deviations asked for.
        deltas: Of the best attacker who knows the coupling.
        alone: Of one who sees the published values alone.
    """

    noise: str
    factors: tuple[float, ...]
    deltas: tuple[float, ...]
    alone: tuple[float, ...]


def curves(
    frame: Any,
    columns: Sequence[str],
    *,
    accuracy: ArrayLike,
    sigma: ArrayLike,
    coupling: AnyCoupling = "none",
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
    history: Any = None,
    factors: Sequence[float] = _FACTORS,
    shapes: Sequence[str] = tuple(Shape),
) -> list[Curve]:
    """How attackers fare as the noise grows, for every shape of noise: for a picture.

    Args:
        frame: See `disclosure`, and for the others.
        columns: The columns.
        accuracy: How near an attacker must come.
        sigma: Deviations of the noise at factor 1.
        coupling: What the attacker knows.
        domains: Intervals of the columns.
        degree: Of polynomials that are fitted.
        history: Public records to learn the coupling from.
        factors: Sizes of the noise.
        shapes: Shapes of the noise.
    """
    _, past = read_people(frame, history, columns)
    known = known_attributes(past, coupling, domains=domains, degree=degree)
    half = axis_scales("accuracy", accuracy, len(known.names))
    scales = axis_scales("sigma", sigma, half.size)
    found = []
    for shape in shapes:
        noises = [noise_of(shape, factor * scales) for factor in factors]
        alone = [noise.largest_box(half) for noise in noises]
        every = [attacked(known, noise, half) for noise in noises]
        deltas = [a if one is None else one.delta for a, one in zip(alone, every, strict=True)]
        found.append(Curve(str(shape), tuple(factors), tuple(deltas), tuple(alone)))
    return found


def _report(
    known: Attributes,
    records: Numbers,
    noise: VectorNoise,
    shape: str,
    half: Floats,
    rows: int,
) -> DisclosureReport:
    alone = noise.largest_box(half)
    found = attacked(known, noise, half) or Found(alone, alone, alone, Way.CLOSED)
    tied = known.tied
    if tied is None:
        seen = {name: records[name] for name in known.names if name not in known.domains}
        tied = CoupledPrior.of(known.names, [], domains=domains_of(seen) | dict(known.domains))
    rates = disclosure_rates(tied, noise, half)
    bound, bound_of, information = alone, "nothing", 0.0
    holds, independent = True, None
    if known.joint is not None:
        chain = chain_bound(known.joint, noise, half)
        bound, bound_of, information = chain.delta, "delta", chain.information
        holds = chain.holds(found)
        apart = known.joint.independent()
        independent = None if apart is None else bayes_disclosure(apart, noise, half).delta
    elif known.tied is not None:
        bound, bound_of = min(rates.gamma_without * (1 + rates.gain_bound), 1.0), "gamma"
        information, holds = math.inf, rates.gamma <= bound * (1 + 1e-6)
    return DisclosureReport(
        columns=known.names,
        rows=rows,
        noise=shape,
        sigma=tuple(noise.sigma.tolist()),
        accuracy=tuple(half.tolist()),
        coupling=known.text,
        delta=found.delta,
        delta_low=found.low,
        delta_high=found.high,
        way=found.way.value,
        delta_without_correlation=alone,
        delta_if_independent=independent,
        delta_before=guessed(known, half),
        gamma=rates.gamma,
        gamma_without_correlation=rates.gamma_without,
        bound=bound,
        bound_of=bound_of,
        bound_holds=holds,
        gain=max(found.delta / alone - 1, 0.0),
        gamma_gain=rates.gain,
        information=information,
        information_sampled=_sampled(records),
        inferred=rates.inferred,
        remarks=(*known.remarks, *_warnings(holds, bound_of)),
    )


def _warnings(holds: bool, bound_of: str) -> tuple[str, ...]:
    if holds:
        return ()
    which = "Theorem 4" if bound_of == "delta" else "Theorem 3"
    return (f"the paper's bound ({which}) is none here: {bound_of} is more",)


def _sampled(records: Numbers) -> float | None:
    """Mutual information of the two columns that tell most of each other."""
    table = np.stack(list(records.values()), axis=1)
    if table.shape[1] < 2 or len(table) < 8:
        return None
    try:
        import sklearn  # noqa: F401
    except ImportError:
        return None
    every = max(1, len(table) // _SAMPLED_ROWS)
    found = sampled_information(table[::every])
    return float(found[~np.eye(len(found), dtype=bool)].max())
