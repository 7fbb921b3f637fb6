"""How likely an attacker pins several columns of a person down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.core.progress import Progress
from sfumato.core.specs import spec_of
from sfumato.record.attack.bayes_attack import Found, Way, bayes_disclosure
from sfumato.record.attack.chain_bound import chain_bound, sampled_information
from sfumato.record.attack.paper_rates import disclosure_rates
from sfumato.record.attackers import attacked, guessed, known_to_others
from sfumato.record.attributes import Numbers
from sfumato.record.coupling.coupled_prior import CoupledPrior, domains_of
from sfumato.record.noise_choice import chosen_noise
from sfumato.record.people import Group, People, known_people
from sfumato.record.published_noise import VECTOR_NOISES, lattice_steps, noise_of
from sfumato.record.record_spec import RecordSpec
from sfumato.record.remarks import Assessment, Silence, common_facts, common_remarks
from sfumato.record.vector_noise import VectorNoise, axis_scales

_SAMPLED_ROWS = 5_000
"""Records from which mutual information is estimated: more take minutes and move no digit."""
_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes of noise in a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DisclosureReport(Assessment):
    """What an attacker may learn of several columns.

    Where columns are kept, what is said is of the group of people in which the attacker who knows
    them succeeds most often, but for the means.

    Attributes:
        kept: Columns that leave beside them and are known to the attacker.
        independent: Columns that leave and were declared to tell nothing of them.
        dropped: How many rows were left out because a value was missing.
        delta: Probability that the best attacker who knows it comes near enough on all columns, or
            that one does who knows other such records, if that is more.
        delta_low: It is at least this.
        delta_high: It is at most this.
        delta_without_correlation: The same of an attacker who sees the published values alone.
        delta_if_independent: The same, were the columns independent; None if it was not computed.
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
        silence: How much better than a constant the noisy columns are.
        remarks: What a careful user should know.
    """

    kept: tuple[str, ...]
    independent: tuple[str, ...]
    dropped: int
    delta: float
    delta_low: float
    delta_high: float
    delta_without_correlation: float
    delta_if_independent: float | None
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
    silence: Silence
    remarks: tuple[str, ...]


def disclosure(
    frame: Any,
    columns: Sequence[str] | RecordSpec,
    *,
    history: Any = None,
    progress: Progress | None = None,
    **options: Any,
) -> DisclosureReport:
    """How likely an attacker pins all columns of a person down after noise is added.

    Args:
        frame: A polars or pandas frame, a pyarrow table or a mapping of columns; one row a person.
        columns: The columns that are published, or the whole spec.
        history: Public records to learn the coupling from; else the frame itself.
        progress: Told how many steps are done.
        options: The fields of `RecordSpec`, `accuracy` at least, and `sigma` or `target_delta`.

    Examples:
        >>> rng = np.random.default_rng(1)
        >>> body = rng.multivariate_normal([170, 75], [[64, 60], [60, 144]], 500).T
        >>> people = {"height": body[0], "weight": body[1]}
        >>> asked = {"accuracy": 2.0, "sigma": 8.0, "noise": "gaussian"}
        >>> known = disclosure(people, ["height", "weight"], coupling="gaussian", **asked)
        >>> known.delta_before, known.delta_model  # a guess; the best who knows the density
        (0.048, 0.078)
        >>> known.delta  # at most, of one who knows other such records: of 500, that is not sure
        0.102
        >>> alone = disclosure(people, ["height", "weight"], coupling="none", **asked)
        >>> alone.delta, alone.remarks[0][:23]  # who knows nothing: less than a guess has
        (0.039, 'NO PROMISE AGAINST ANYO')

    References:
        [MDDP, Def. 5]
    """
    spec = spec_of(RecordSpec, columns, options)
    people = known_people(frame, history, spec)
    noise, best = chosen_noise(people, spec, progress)
    reports = [_report(people, group, noise, spec) for group in people.groups]
    worst = max(reports, key=lambda report: report.delta_high)
    guesses = [report.delta_before for report in reports]
    silence = Silence.of(people, noise, lattice_steps(noise, people.half))
    return replace(
        worst,
        delta_mean=float(portable.dot(people.shares, [report.delta_high for report in reports])),
        delta_before=max(guesses),
        delta_before_mean=float(portable.dot(people.shares, guesses)),
        silence=silence,
        remarks=(
            *common_remarks(people, max(guesses), best, [each.remarks for each in reports]),
            *silence.remarks,
        ),
    )


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


def curves(frame: Any, spec: RecordSpec, sigma: ArrayLike, *, history: Any = None) -> list[Curve]:
    """How attackers fare as the noise grows, for every shape of noise: for a picture.

    Args:
        frame: See `disclosure`.
        spec: What is asked; its noise does not count.
        sigma: Deviations of the noise at factor 1.
        history: Public records to learn the coupling from.
    """
    people = known_people(frame, history, spec)
    scales = axis_scales("sigma", sigma, people.half.size)
    found = []
    for shape in VECTOR_NOISES:
        noises = [noise_of(shape, factor * scales) for factor in _FACTORS]
        alone = [noise.largest_box(people.half) for noise in noises]
        deltas = [
            max(_reached(group, noise, people.half) for group in people.groups) for noise in noises
        ]
        found.append(Curve(shape, _FACTORS, tuple(deltas), tuple(alone)))
    return found


def _reached(group: Group, noise: VectorNoise, half: Floats) -> float:
    found = attacked(group.known, noise, half)
    return noise.largest_box(half) if found is None else found.delta


def _report(people: People, group: Group, noise: VectorNoise, spec: RecordSpec) -> DisclosureReport:
    half, known = people.half, group.known
    alone = noise.largest_box(half)
    found = attacked(known, noise, half) or Found(alone, alone, alone, Way.CLOSED)
    tied = known.tied
    if tied is None:
        seen = {n: group.records[n] for n in known.names if n not in known.domains}
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
    theorem = "Theorem 4" if bound_of == "delta" else "Theorem 3"
    warning = f"the paper's bound ({theorem}) is none here: {bound_of} is more"
    before = guessed(group, half)
    other = known_to_others(group, noise, half)
    most = found
    if other is not None and other.high > found.delta:  # who knows records is the better attacker
        low, high = max(found.low, other.low), max(found.high, other.high)
        most = Found(other.high, low, high, Way.HELD_OUT)
    return DisclosureReport(
        **common_facts(people, noise, spec),
        dropped=people.dropped,
        delta=most.delta,
        delta_model=found.delta,
        delta_held_out=None if other is None else other.high,
        delta_low=most.low,
        delta_high=most.high,
        way=most.way.value,
        delta_mean=most.high,
        delta_without_correlation=alone,
        delta_if_independent=independent,
        delta_before=before,
        delta_before_mean=before,
        gamma=rates.gamma,
        gamma_without_correlation=rates.gamma_without,
        bound=bound,
        bound_of=bound_of,
        bound_holds=holds,
        gain=max(found.delta / alone - 1, 0.0),
        gamma_gain=rates.gain,
        information=information,
        information_sampled=_sampled(group.records),
        inferred=rates.inferred,
        silence=Silence((), (), (), ()),
        remarks=() if holds else (warning,),
    )


def _sampled(records: Numbers) -> float | None:
    """Mutual information of the two columns that tell most of each other."""
    table = np.stack(list(records.values()), axis=1)
    if table.shape[1] < 2 or len(table) < 8:
        return None
    found = sampled_information(table[:: max(1, len(table) // _SAMPLED_ROWS)])
    return float(found[~np.eye(len(found), dtype=bool)].max())
