"""The noise that is asked for, or the least that keeps a target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfumato.core import portable
from sfumato.core.errors import InvalidParameter
from sfumato.core.printed import shown_up
from sfumato.core.progress import Progress
from sfumato.core.search import geometric
from sfumato.record.attackers import certified, guessed, known_to_others
from sfumato.record.attributes import Attributes, Numbers, known_attributes
from sfumato.record.best_round_noise import BestRound, best_round_noise
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.people import Group, People
from sfumato.record.published_noise import lattice_steps
from sfumato.record.record_spec import BEST, RecordSpec
from sfumato.record.vector_noise import VectorNoise

_SEARCHES = 40
"""Sizes of noise that are tried before a target is given up."""
_NEAR, _COARSE = 5e-3, 4e-2
"""How near to the least noise a search ends: by the coupling, and by attacks that are counted."""


def chosen_noise(
    people: People, spec: RecordSpec, progress: Progress | None
) -> tuple[VectorNoise, BestRound | None]:
    """The noise that was asked for, or the least that keeps a target in every group."""
    scales = spec.scales
    if spec.noise == BEST:
        best = best_round_noise(scales, people.half, _pooled(people, spec), attacker=spec.attacker)
        return best.noise, best
    if spec.target_delta is None:
        return spec.noise_at(scales), None
    return _least_noise(people, spec, spec.target_delta, progress), None


def _pooled(people: People, spec: RecordSpec) -> JointMixture:
    """The density that the best noise is sought against: of all people together."""
    if len(people.groups) == 1:
        return people.groups[0].known.joint or _alone(people.records)
    if spec.attacker is not None:
        rule = "come without columns that are kept, or with those declared independent"
        raise InvalidParameter("attacker", spec.attacker, rule)
    known = known_attributes(
        people.records, spec.coupling, domains=spec.domains, degree=spec.degree
    )
    return known.joint or _alone(people.records)


def _alone(records: Numbers) -> JointMixture:
    """Normal columns that are independent: what a cautious designer takes an attacker to know."""
    for name, column in records.items():
        if not np.ptp(column) > 0:
            raise InvalidParameter("noise", BEST, f"come with columns that vary, unlike {name!r}")
    table = np.stack(list(records.values()), axis=1)
    return JointMixture.normal(table.mean(axis=0), np.diag(table.var(axis=0, ddof=1)))


def _least_noise(
    people: People, spec: RecordSpec, target: float, progress: Progress | None
) -> VectorNoise:
    """The least multiple of some deviations with which no attacker succeeds more often."""
    half, proportions = people.half, spec.scales
    unit = proportions / float(np.max(proportions / half))  # at 1, noise is as wide as the box
    guesses = [0.0 if group.known.ignorant else guessed(group, half) for group in people.groups]
    if (before := max(guesses)) >= target:
        rule = f"be more than {shown_up(before)}, which a guess has before anything is published"
        raise InvalidParameter("target_delta", target, rule)
    factor = 0.0
    # The group that is easiest to guess first: the noise that it needs often does for all.
    for place in np.argsort([-guess for guess in guesses], kind="stable"):
        known = people.groups[place].known

        def reached(factor: float, known: Attributes = known) -> float:
            noise = spec.noise_at(factor * unit)
            return certified(known, noise, half, lattice_steps(noise, half))[0]

        # Of a group that is safe with the noise that others need, nothing more is asked.
        if factor == 0.0 or reached(factor) > target:
            factor = max(factor, _least_factor(reached, half.size, target, progress))
    for group in people.groups:

        def found(factor: float, group: Group = group) -> float:
            other = known_to_others(group, spec.noise_at(factor * unit), half)
            return 0.0 if other is None else other.high

        factor = _raised(found, _short(factor), target, progress)
    return spec.noise_at(_short(factor) * unit)


def _short(factor: float) -> float:
    """With three digits, rounded up: all would tell of the table that it was learnt from."""
    return float(shown_up(factor, 3))


def _raised(
    found: Callable[[float], float], factor: float, target: float, progress: Progress | None
) -> float:
    """The factor, or the least above it, about, with which an attack succeeds no more often.

    Only factors as they are used are tried, with three digits: an attack is counted, and a count
    need not fall with every step of the noise.
    """
    low, high = factor, factor
    for count in range(_SEARCHES):
        if progress:
            progress(count)
        if (now := found(high)) <= target:
            break
        low, high = high, _short(high * min(max(now / target * 1.02, 1.1), 2.0))
    else:
        rule = "be more: no noise that was tried keeps it against who knows other such records"
        raise InvalidParameter("target_delta", target, rule)
    while high / low > 1 + _COARSE:
        middle = _short(geometric(low, high))
        low, high = (low, middle) if found(middle) <= target else (middle, high)
    return high


def _least_factor(
    reached: Callable[[float], float], size: int, target: float, progress: Progress | None
) -> float:
    # Next to no noise is taken to tell everything, and is never tried.
    low, high, above = 2.0**-20, 1.0, 1.0
    for count in range(_SEARCHES):
        if progress:
            progress(count)
        if (under := reached(high)) <= target:
            break
        low, above = high, under
        # Away from 1, delta falls as a power of the noise: aim there, and a little beyond.
        high *= min(max(portable.power(under / target, 1 / size) * 1.02, 1.05), 8.0)
    else:
        rule = "be more: no noise that was tried keeps it"
        raise InvalidParameter("target_delta", target, rule)
    count = 0
    while high / low > 1 + _NEAR:
        share = portable.log(above / target) / portable.log(above / under)
        middle = _next_factor(low, high, share, count)
        count += 1
        if (now := reached(middle)) <= target:
            high, under = middle, now
        else:
            low, above = middle, now
    return high


def _next_factor(low: float, high: float, share: float, count: int) -> float:
    """Where to look next between two factors: by a power law, on both sides of it, or halfway."""
    if count % 3 == 2 or not 0 < share < 1:
        return geometric(low, high)
    side = 1 + _NEAR / 3 if count % 3 == 0 else 1 - _NEAR / 3
    room = 1 + _NEAR / 4
    return float(min(max(low * portable.power(high / low, share) * side, low * room), high / room))
