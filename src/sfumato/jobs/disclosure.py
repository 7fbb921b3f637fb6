"""How likely an attacker pins several columns of a person down, and how they are published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato._digest import digest
from sfumato._numerics import up
from sfumato.design.round_noise import BestRound, best_round_noise
from sfumato.errors import InsecureRandomness, InvalidParameter
from sfumato.formats.problems import BadTable
from sfumato.guarantees import Disclosure
from sfumato.jobs import Progress
from sfumato.jobs.attributes import (
    AnyCoupling,
    Attributes,
    Numbers,
    known_attributes,
    numbers_of,
)
from sfumato.jobs.fit import read_each
from sfumato.jobs.frames import columns_of, framed_columns
from sfumato.leakage.chain import chain_bound, sampled_information
from sfumato.leakage.coupled import coupled_disclosure, disclosure_rates, prior_cloud_disclosure
from sfumato.leakage.disclosure import Found, Way, bayes_disclosure, prior_disclosure
from sfumato.mechanisms.publishing import (
    Shape,
    lattice_steps,
    noise_of,
    published,
    published_box,
)
from sfumato.mechanisms.vector_noise import VectorNoise, axis_scales
from sfumato.models.coupled import CoupledPrior
from sfumato.models.coupling import Interval
from sfumato.models.encoding import text
from sfumato.models.joint import JointMixture
from sfumato.randomness import Randomness, secure
from sfumato.streaming.instant import Purpose

Floats = NDArray[np.float64]

BEST = "best"
_FRAME = "frame"
_SEARCHES, _NEAR = 40, 5e-3
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


@dataclass(frozen=True, slots=True)
class PublishCertificate:
    """What published columns promise.

    Attributes:
        guarantee: An attacker who knows the coupling comes near on all columns with at most this
            probability; the accuracy is the least of the columns'.
        guarantee_without_correlation: The same of an attacker who sees the values alone.
        columns: The columns.
        rows: How many people.
        noise: Shape of the noise.
        sigma: Its standard deviation on each column.
        accuracy: How near an attacker must come, on each column.
        coupling: What the attacker knows.
        way: How the guarantee was found.
        steps: Distance of the points on which published values lie, on each column.
        fingerprint: Identifies noise and lattice.
        remarks: What a careful user should know.
    """

    guarantee: Disclosure
    guarantee_without_correlation: Disclosure
    columns: tuple[str, ...]
    rows: int
    noise: str
    sigma: tuple[float, ...]
    accuracy: tuple[float, ...]
    coupling: str
    way: str
    steps: tuple[float, ...]
    fingerprint: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """Published columns with their certificate.

    Attributes:
        frame: The published columns and those that were to be kept, as the kind of frame that came.
        certificate: What they promise.
    """

    frame: Any
    certificate: PublishCertificate
    values: Floats = field(repr=False)


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
    records = numbers_of(frame, columns, _FRAME)
    past = records if history is None else numbers_of(history, columns, "history")
    known = known_attributes(past, coupling, domains=domains, degree=degree)
    half = axis_scales("accuracy", accuracy, len(known.names))
    added, best = _noise(known, past, noise, half, sigma, target_delta, attacker, progress)
    report = _report(known, past, added, str(noise), half, len(records[known.names[0]]))
    return replace(report, remarks=(*report.remarks, *_told_of_best(best, past, known)))


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
    records = numbers_of(frame if history is None else history, columns, _FRAME)
    known = known_attributes(records, coupling, domains=domains, degree=degree)
    half = axis_scales("accuracy", accuracy, len(known.names))
    scales = axis_scales("sigma", sigma, half.size)
    found = []
    for shape in shapes:
        noises = [noise_of(shape, factor * scales) for factor in factors]
        alone = [noise.largest_box(half) for noise in noises]
        every = [_found(known, noise, half) for noise in noises]
        deltas = [a if one is None else one.delta for a, one in zip(alone, every, strict=True)]
        found.append(Curve(str(shape), tuple(factors), tuple(deltas), tuple(alone)))
    return found


def publish(
    frame: Any,
    columns: Sequence[str],
    *,
    accuracy: ArrayLike,
    sigma: ArrayLike | None = None,
    noise: str = Shape.BALL,
    coupling: AnyCoupling = "none",
    target_delta: float | None = None,
    attacker: float | None = None,
    domains: Mapping[str, Interval] | None = None,
    degree: int = 2,
    history: Any = None,
    keep: Sequence[str] = (),
    identity: str | None = None,
    randomness: Randomness | None = None,
    purpose: Purpose = Purpose.RELEASE,
    progress: Progress | None = None,
) -> Published:
    """Publish several columns with noise, and say what an attacker may learn of them.

    Publishing the same people again tells more about them: keep what was published. With `keyed`
    coins the same columns get the same noise again, or, with `identity`, the same person: then a
    key is for one record of each person.

    Args:
        frame: A polars or pandas frame, a pyarrow table or a mapping of columns; one row a person.
        columns: The columns that are published.
        accuracy: How near an attacker must come, for all columns or each.
        sigma: Standard deviation of the noise, for all columns or each; see `disclosure`.
        noise: Its shape; see `disclosure`.
        coupling: What the attacker knows; see `known_attributes`.
        target_delta: Add the least noise with which the attacker succeeds at most so often.
        attacker: See `disclosure`.
        domains: Intervals of the columns, known to everybody.
        degree: Of polynomials that are fitted.
        history: Public records to learn the coupling from; else the frame itself.
        keep: Columns that leave as they are.
        identity: Column that names the rows, for keyed coins.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.
        progress: Told how many steps are done.

    Examples:
        >>> people = {"height": [160.0, 171.5, 180.0] * 9, "weight": [55.0, 70.0, 82.5] * 9}
        >>> done = publish(people, ["height", "weight"], accuracy=2.0, target_delta=0.01)
        >>> done.certificate.guarantee <= Disclosure(2.0, 0.01), len(done.frame["height"])
        (True, 27)

    References:
        [MDDP, Eq. 1 and Def. 5]
    """
    coins = secure() if randomness is None else randomness
    if coins.simulated and purpose is not Purpose.SIMULATION:
        raise InsecureRandomness("publish")
    if identity is not None and not coins.addressed:
        raise InvalidParameter("identity", identity, "come with keyed coins")
    if set(keep) & set(columns) or len(set(keep)) != len(keep):
        rule = "name every column once, and none that is published"
        raise InvalidParameter("keep", list(keep), rule)
    records = numbers_of(frame, columns, _FRAME)
    others = (
        columns_of(frame, [*keep, *([] if identity is None else [identity])], _FRAME)
        if (keep or identity)
        else {}
    )
    past = records if history is None else numbers_of(history, columns, "history")
    known = known_attributes(past, coupling, domains=domains, degree=degree)
    half = axis_scales("accuracy", accuracy, len(known.names))
    added, best = _noise(known, past, noise, half, sigma, target_delta, attacker, progress)
    steps = lattice_steps(added, half)
    certificate = _certificate(known, added, str(noise), half, steps, records)
    told = (*certificate.remarks, *_told_of_best(best, past, known))
    if history is None and known.text != "none":
        told = (
            *told,
            "the coupling was learnt from these very people: what is said holds for an attacker "
            "who knows it already; learn it from public records (history) to be safe",
        )
    table = np.stack(list(records.values()), axis=1)
    names = _addresses(table, others, identity)
    values = published(added, table, steps, _words(added, certificate.fingerprint, coins, names))
    released = dict(zip(known.names, values.T.tolist(), strict=True))
    return Published(
        framed_columns(frame, keep, released), replace(certificate, remarks=told), values
    )


def _noise(
    known: Attributes,
    records: Numbers,
    shape: str,
    half: Floats,
    sigma: ArrayLike | None,
    target: float | None,
    attacker: float | None,
    progress: Progress | None,
) -> tuple[VectorNoise, BestRound | None]:
    """The noise that was asked for, or the least that keeps a target."""
    if attacker is not None and shape != BEST:
        raise InvalidParameter("attacker", attacker, "come with the best noise")
    if sigma is None and target is None:
        raise InvalidParameter("sigma", None, "be given, or target_delta")
    scales = half if sigma is None else axis_scales("sigma", sigma, half.size)
    if shape == BEST:
        if target is not None:
            raise InvalidParameter("noise", BEST, "come with sigma, not with target_delta")
        reference = known.joint or _alone(records)
        found = best_round_noise(scales, half, reference, attacker=attacker)
        return found.noise, found
    if target is None:
        return noise_of(shape, scales), None
    goal = _checks.proper_fraction("target_delta", target)
    return _least_noise(known, shape, half, scales, goal, progress), None


def _least_noise(
    known: Attributes,
    shape: str,
    half: Floats,
    proportions: Floats,
    target: float,
    progress: Progress | None,
) -> VectorNoise:
    """The least multiple of some deviations with which no attacker succeeds more often."""
    before = _before(known, half)
    if before is not None and before >= target:
        rule = f"be more than {before:.6g}, which a guess has before anything is published"
        raise InvalidParameter("target_delta", target, rule)
    unit = proportions / float(np.max(proportions / half))  # at 1, noise is as wide as the box

    def reached(factor: float) -> float:
        noise = noise_of(shape, factor * unit)
        return _certified(known, noise, half, lattice_steps(noise, half))

    low, high = 2.0**-20, 1.0
    for count in range(_SEARCHES):
        if progress:
            progress(count)
        if (now := reached(high)) <= target:
            break
        low = high
        # Away from 1, delta falls as a power of the noise: aim there, and a little beyond.
        high *= min(max((now / target) ** (1 / half.size) * 1.02, 1.05), 8.0)
    else:
        rule = "be more: no noise that was tried keeps it"
        raise InvalidParameter("target_delta", target, rule)
    while high / low > 1 + _NEAR:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) <= target else (middle, high)
    return noise_of(shape, high * unit)


def _certified(known: Attributes, noise: VectorNoise, half: Floats, steps: Floats) -> float:
    """Largest success of any attacker against what is published, rounded up."""
    alone = published_box(noise, half, steps)
    found = _found(known, noise, half + steps)
    return alone if found is None else min(max(up(found.high), alone), 1.0)


def _found(known: Attributes, noise: VectorNoise, half: Floats) -> Found | None:
    if known.joint is not None:
        return bayes_disclosure(known.joint, noise, half)
    if known.tied is not None:
        return coupled_disclosure(known.tied, noise, half)
    return None


def _before(known: Attributes, half: Floats) -> float | None:
    if known.joint is not None:
        return prior_disclosure(known.joint, half)
    if known.tied is not None:
        return prior_cloud_disclosure(known.tied, half)
    return None


def _report(
    known: Attributes,
    records: Numbers,
    noise: VectorNoise,
    shape: str,
    half: Floats,
    rows: int,
) -> DisclosureReport:
    alone = noise.largest_box(half)
    found = _found(known, noise, half) or Found(alone, alone, alone, Way.CLOSED)
    tied = known.tied
    if tied is None:
        tied = CoupledPrior.of(known.names, [], domains=known.domains)
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
        delta_before=_before(known, half),
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


def _alone(records: Numbers) -> JointMixture:
    """Normal columns that are independent: what a cautious designer takes an attacker to know."""
    table = np.stack(list(records.values()), axis=1)
    return JointMixture.normal(table.mean(axis=0), np.diag(table.var(axis=0, ddof=1)))


def _told_of_best(best: BestRound | None, records: Numbers, known: Attributes) -> tuple[str, ...]:
    if best is None or best.attacker is None:
        return ()
    which = "this coupling" if known.joint is not None else "normal, independent columns"
    return (
        f"the best round noise against attackers who know {which}: they succeed with "
        f"{best.attacker.delta:.5g}; at most {100 * best.gap:.2g} % above the best of "
        f"{best.noise.masses.size} shells",
    )


def _certificate(
    known: Attributes,
    noise: VectorNoise,
    shape: str,
    half: Floats,
    steps: Floats,
    records: Numbers,
) -> PublishCertificate:
    alone = published_box(noise, half, steps)
    found = _found(known, noise, half + steps)
    high = alone if found is None else min(max(up(found.high), alone), 1.0)
    least = float(half.min())
    return PublishCertificate(
        guarantee=Disclosure(least, high),
        guarantee_without_correlation=Disclosure(least, alone),
        columns=known.names,
        rows=len(records[known.names[0]]),
        noise=shape,
        sigma=tuple(noise.sigma.tolist()),
        accuracy=tuple(half.tolist()),
        coupling=known.text,
        way=(Way.CLOSED if found is None else found.way).value,
        steps=tuple(steps.tolist()),
        fingerprint=digest("publishing", noise.fingerprint, steps),
        remarks=known.remarks,
    )


def _addresses(table: Floats, others: Mapping[str, Any], identity: str | None) -> list[str]:
    """Where the coins of each row are; without names, the whole table is part of the address."""
    if identity is None:
        content = digest(table)
        return [f"{content} {row}" for row in range(len(table))]
    names = read_each(others[identity], text, _FRAME)
    if len(set(names)) != len(names):
        raise BadTable(_FRAME, None, f"column {identity!r} must name each row once")
    return [f"named {name}" for name in names]


def _words(
    noise: VectorNoise, fingerprint: str, coins: Randomness, names: Sequence[str]
) -> NDArray[np.uint64]:
    """Coins for each row; addressed ones depend on its name and the noise alone."""
    if not coins.addressed:
        return coins.words(len(names) * noise.words).reshape(len(names), noise.words)
    found = [coins.at(f"{fingerprint} {name}", 0).words(noise.words) for name in names]
    return np.stack(found)
