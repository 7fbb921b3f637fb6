"""The noise that was asked for, or the least that keeps a target, and what attackers make of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import shown_up, up
from sfumato.core.progress import Progress
from sfumato.record.attack.bayes_attack import (
    Found,
    Way,
    bayes_disclosure,
    prior_disclosure,
)
from sfumato.record.attack.box_search import unlimited
from sfumato.record.attack.coupled_attack import coupled_disclosure, prior_cloud_disclosure
from sfumato.record.attack.held_out import HeldOut, held_out_disclosure
from sfumato.record.attack.point_cloud import best_cloud_boxes
from sfumato.record.attributes import Attributes, Numbers, known_attributes
from sfumato.record.best_round_noise import BestRound, best_round_noise
from sfumato.record.constants import FEWEST_RECORDS
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.people import Asked, Group, People
from sfumato.record.published_noise import Shape, lattice_steps, noise_of, published_box
from sfumato.record.vector_noise import CorrelatedNoise, VectorNoise, axis_scales

BEST = "best"
_SEARCHES, _NEAR, _COARSE = 40, 5e-3, 4e-2
_GUESSED_ROWS = 5_000
_CLEARLY = 4.0
"""Deviations of a share of people by which it must exceed another."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The shape of noise that was asked for."""

    shape: str
    correlation: ArrayLike | None
    attacker: float | None

    def __post_init__(self) -> None:
        if self.shape not in (*Shape, BEST):
            rule = f"be one of {', '.join((*Shape, BEST))}"
            raise InvalidParameter("noise", self.shape, rule)
        if self.attacker is not None and self.shape != BEST:
            raise InvalidParameter("attacker", self.attacker, "come with the best noise")
        if self.attacker is not None:
            _share("attacker", self.attacker)
        if self.correlation is not None and self.shape != Shape.GAUSSIAN:
            raise InvalidParameter("correlation", "given", "come with gaussian noise")

    def at(self, scales: Floats) -> VectorNoise:
        """The noise of some deviations."""
        if self.correlation is None:
            return noise_of(self.shape, scales)
        matrix = checks.numbers("correlation", self.correlation)
        if matrix.ndim == 0:
            matrix = np.where(np.eye(scales.size, dtype=bool), 1.0, matrix)
        return CorrelatedNoise.of(scales, matrix)


@dataclass(frozen=True, slots=True)
class Silence:
    """How much better published columns are than a constant, which tells nothing at all.

    Attributes:
        columns: The columns.
        error: Root mean square of what is added to each, rounding to the lattice included.
        constant: Root mean square distance of the people from the best constant: their mean, or
            that of their group where kept columns tell it.
        guessed: Error of the receiver's best linear guess from noisy value and mean.
    """

    columns: tuple[str, ...]
    error: tuple[float, ...]
    constant: tuple[float, ...]
    guessed: tuple[float, ...]

    @classmethod
    def of(cls, people: People, noise: VectorNoise, steps: Floats) -> Silence:
        """Of some people and a noise on a lattice."""
        error, constant = noise.sigma + steps, people.deviations
        guess = error * constant / np.hypot(error, constant)
        arrays = (tuple(each.tolist()) for each in (error, constant, guess))
        return cls(people.names, *arrays)

    @property
    def useful(self) -> tuple[bool, ...]:
        """Whether a noisy value is nearer to the true one than a constant, column by column."""
        return tuple(e < c for e, c in zip(self.error, self.constant, strict=True))

    @property
    def remarks(self) -> tuple[str, ...]:
        """The columns of which a constant tells as much."""
        return tuple(
            f"NO BETTER THAN A CONSTANT: the noise on {name!r} misses by {shown_up(error, 4)}, the "
            f"mean of the people by {constant:.4g}; a best guess from both by {guess:.4g}"
            for name, error, constant, guess, useful in zip(
                self.columns, self.error, self.constant, self.guessed, self.useful, strict=True
            )
            if not useful
        )


def chosen_noise(
    people: People, asked: Asked, progress: Progress | None
) -> tuple[VectorNoise, BestRound | None]:
    """The noise that was asked for, or the least that keeps a target in every group."""
    wanted = Wanted(str(asked.noise), asked.correlation, asked.attacker)
    sigma, target = asked.sigma, asked.target_delta
    if sigma is None and target is None:
        raise InvalidParameter("sigma", None, "be given, or target_delta")
    scales = people.half if sigma is None else axis_scales("sigma", sigma, people.half.size)
    if wanted.shape == BEST:
        if target is not None:
            raise InvalidParameter("noise", BEST, "come with sigma, not with target_delta")
        reference = _pooled(people, asked)
        found = best_round_noise(scales, people.half, reference, attacker=wanted.attacker)
        return found.noise, found
    if target is None:
        return wanted.at(scales), None
    return _least_noise(people, wanted, scales, _share("target_delta", target), progress), None


def _pooled(people: People, asked: Asked) -> JointMixture:
    """The density that the best noise is sought against: of all people together."""
    if len(people.groups) == 1:
        return people.groups[0].known.joint or _alone(people.records)
    if asked.attacker is not None:
        rule = "come without columns that are kept, or with those declared independent"
        raise InvalidParameter("attacker", asked.attacker, rule)
    known = known_attributes(
        people.records, asked.coupling, domains=asked.domains, degree=asked.degree
    )
    return known.joint or _alone(people.records)


def _least_noise(
    people: People,
    wanted: Wanted,
    proportions: Floats,
    target: float,
    progress: Progress | None,
) -> VectorNoise:
    """The least multiple of some deviations with which no attacker succeeds more often."""
    half = people.half
    unit = proportions / float(np.max(proportions / half))  # at 1, noise is as wide as the box
    guesses = [0.0 if group.known.ignorant else guessed(group, half) for group in people.groups]
    if (before := max(guesses)) >= target:
        rule = f"be more than {shown_up(before)}, which a guess has before anything is published"
        raise InvalidParameter("target_delta", target, rule)
    factor = 0.0
    for place in np.argsort([-guess for guess in guesses], kind="stable"):
        known = people.groups[place].known

        def reached(factor: float, known: Attributes = known) -> float:
            noise = wanted.at(factor * unit)
            return certified(known, noise, half, lattice_steps(noise, half))[0]

        # Of a group that is safe with the noise that others need, nothing more is asked.
        if factor == 0.0 or reached(factor) > target:
            factor = max(factor, _least_factor(reached, half.size, target, progress))
    for group in people.groups:

        def found(factor: float, group: Group = group) -> float:
            other = known_to_others(group, wanted.at(factor * unit), half)
            return 0.0 if other is None else other.high

        factor = _raised(found, _short(factor), target, progress)
    return wanted.at(_short(factor) * unit)


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
        middle = _short(math.sqrt(low * high))
        low, high = (low, middle) if found(middle) <= target else (middle, high)
    return high


def _least_factor(
    reached: Callable[[float], float], size: int, target: float, progress: Progress | None
) -> float:
    low, high, above = 2.0**-20, 1.0, 1.0
    for count in range(_SEARCHES):
        if progress:
            progress(count)
        if (under := reached(high)) <= target:
            break
        low, above = high, under
        # Away from 1, delta falls as a power of the noise: aim there, and a little beyond.
        high *= min(max((under / target) ** (1 / size) * 1.02, 1.05), 8.0)
    else:
        rule = "be more: no noise that was tried keeps it"
        raise InvalidParameter("target_delta", target, rule)
    count = 0
    while high / low > 1 + _NEAR:
        share = math.log(above / target) / math.log(above / under)
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
        return math.sqrt(low * high)
    side = 1 + _NEAR / 3 if count % 3 == 0 else 1 - _NEAR / 3
    room = 1 + _NEAR / 4
    return float(min(max(low * (high / low) ** share * side, low * room), high / room))


def certified(
    known: Attributes, noise: VectorNoise, half: Floats, steps: Floats
) -> tuple[float, Way]:
    """Largest success of any attacker against what is published, rounded up; and how found."""
    alone = published_box(noise, half, steps)
    found = attacked(known, noise, half + steps)
    if found is None:
        return alone, Way.CLOSED
    return min(max(up(found.high), alone), 1.0), found.way


def attacked(known: Attributes, noise: VectorNoise, half: Floats) -> Found | None:
    """What the best attacker who knows the coupling reaches; None if there is none to know."""
    if known.joint is not None:
        return bayes_disclosure(known.joint, noise, half)
    if known.tied is not None:
        return coupled_disclosure(known.tied, noise, half)
    return None


def known_to_others(group: Group, noise: VectorNoise, half: Floats) -> HeldOut | None:
    """What he finds who knows other such records; None if nothing is known, or too few are."""
    return None if group.known.ignorant else held_out_disclosure(group.table, noise, half)


def guessed(group: Group, half: Floats) -> float:
    """What the best constant guess reaches before anything is published.

    By what is known, or among the records: where values heap, a smooth density knows less.
    """
    if len(group.table) < FEWEST_RECORDS and not group.known.ignorant:
        return _guessed_by_coupling(group.known, half)
    return max(_guessed_by_coupling(group.known, half), _largest_share(group.records, half)[0])


def _guessed_by_coupling(known: Attributes, half: Floats) -> float:
    if known.joint is not None:
        return prior_disclosure(known.joint, half)
    return 0.0 if known.tied is None else prior_cloud_disclosure(known.tied, half)


def _largest_share(records: Numbers, half: Floats) -> tuple[float, int]:
    """The part of some records that the best box holds, and among how many it was sought."""
    table = np.stack(list(records.values()), axis=1)
    table = table[:: max(1, len(table) // _GUESSED_ROWS)]
    even = np.full(len(table), 1 / len(table))
    nothing = unlimited(half.size)
    found = best_cloud_boxes(table.mean(axis=0)[None], np.array(half), table, even, nothing)
    return min(float(found[0][0]), 1.0), len(table)


def told_of_guesses(people: People) -> tuple[str, ...]:
    """A coupling that grants a guess less than a constant finds of the people is said to do so."""
    for group in people.groups:
        before = _guessed_by_coupling(group.known, people.half)
        share, count = _largest_share(group.people, people.half)
        if not group.known.ignorant and share - _CLEARLY * math.sqrt(share / count) > before:
            return (
                "a constant guess finds more of the people than one who knows the coupling is "
                "taken to find before anything is published: they are not as it says",
            )
    return ()


def told_of_ignorance(before: float, people: People) -> tuple[str, ...]:
    """What it means that an attacker is taken to know nothing."""
    if not people.groups[0].known.ignorant:
        return ()
    return (
        "NO PROMISE AGAINST ANYONE WHO KNOWS WHAT VALUES ARE COMMON: with coupling none, delta is "
        "that of an attacker who has never seen such a table; the best constant guess alone finds "
        f"{shown_up(before, 5)}, and more with what is published: let the coupling be learnt",
    )


def _alone(records: Numbers) -> JointMixture:
    """Normal columns that are independent: what a cautious designer takes an attacker to know."""
    for name, column in records.items():
        if not np.ptp(column) > 0:
            raise InvalidParameter("noise", BEST, f"come with columns that vary, unlike {name!r}")
    table = np.stack(list(records.values()), axis=1)
    return JointMixture.normal(table.mean(axis=0), np.diag(table.var(axis=0, ddof=1)))


def _share(name: str, value: object) -> float:
    if not isinstance(value, Real):
        raise InvalidParameter(name, type(value).__name__, "be a number")
    return checks.proper_fraction(name, float(value))


def told_of_best(best: BestRound | None, people: People) -> tuple[str, ...]:
    """How good the best noise is, in words."""
    if best is None or best.attacker is None:
        return ()
    known = any(group.known.joint is not None for group in people.groups)
    which = "this coupling" if known else "normal, independent columns"
    return (
        f"the best round noise against attackers who know {which}: they succeed with "
        f"{shown_up(best.attacker.delta, 2)}; at most {shown_up(100 * best.gap, 2)} % above the "
        f"best of {best.noise.masses.size} shells",
    )
