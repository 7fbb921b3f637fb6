"""What a report and a certificate say alike, and beside: of silence, of guesses, of ignorance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.printed import shown_up
from sfumato.record.attackers import guessed_by_coupling, largest_share
from sfumato.record.best_round_noise import BestRound
from sfumato.record.people import People
from sfumato.record.record_spec import RecordSpec
from sfumato.record.vector_noise import VectorNoise

_CLEARLY = 4.0
"""Deviations of a share of people by which it must exceed another."""


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What attackers may learn of several columns: what a report and a certificate say alike.

    Attributes:
        delta_model: What the best attacker reaches who knows the coupling and no records: where
            values heap, it is too little.
        delta_held_out: The same of one who knows other such records, with 99 % confidence; None
            with too few of them, or coupling none.
        delta_mean: What attackers reach over all groups together, at most.
        delta_before: What the best constant guess reaches before anything is published, in the
            group where it reaches most.
        delta_before_mean: The same over all groups together.
        columns: The columns.
        groups: How many groups of people the kept columns make.
        rows: How many people, in all groups.
        noise: Shape of the noise.
        sigma: Its standard deviation on each column.
        accuracy: How near an attacker must come, on each column.
        coupling: What the attacker knows.
        learnt_from: Where from: `table`, `history`, or `nothing`.
        way: How delta was found; by sampling, its interval is one of confidence.
    """

    delta_model: float
    delta_held_out: float | None
    delta_mean: float
    delta_before: float
    delta_before_mean: float
    columns: tuple[str, ...]
    groups: int
    rows: int
    noise: str
    sigma: tuple[float, ...]
    accuracy: tuple[float, ...]
    coupling: str
    learnt_from: str
    way: str


def common_facts(people: People, noise: VectorNoise, spec: RecordSpec) -> dict[str, Any]:
    """Fields of an assessment, and the columns beside it, that need no attack."""
    return {
        "columns": people.names,
        "kept": people.beside.linked,
        "independent": people.beside.independent,
        "groups": len(people.groups),
        "rows": len(people.rows),
        "noise": spec.noise,
        "sigma": tuple(noise.sigma.tolist()),
        "accuracy": tuple(people.half.tolist()),
        "coupling": people.coupling,
        "learnt_from": people.learnt_from,
    }


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
        # Of two independent guesses the best mix has the inverse variances added up.
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


def common_remarks(
    people: People, before: float, best: BestRound | None, found: Sequence[Sequence[str]] = ()
) -> tuple[str, ...]:
    """What is said of ignorance, of each group as it was found, of the noise and of guesses."""
    return (
        *_ignorance_remarks(before, people),
        *dict.fromkeys(remark for group in found for remark in group),
        *people.remarks,
        *_best_noise_remarks(best, people),
        *_guess_remarks(people),
    )


def _guess_remarks(people: People) -> tuple[str, ...]:
    """A coupling that grants a guess less than a constant finds of the people is said to do so."""
    for group in people.groups:
        before = guessed_by_coupling(group.known, people.half)
        share, count = largest_share(group.people, people.half)
        if not group.known.ignorant and share - _CLEARLY * math.sqrt(share / count) > before:
            return (
                "a constant guess finds more of the people than one who knows the coupling is "
                "taken to find before anything is published: they are not as it says",
            )
    return ()


def _ignorance_remarks(before: float, people: People) -> tuple[str, ...]:
    """What it means that an attacker is taken to know nothing."""
    if not people.groups[0].known.ignorant:
        return ()
    return (
        "NO PROMISE AGAINST ANYONE WHO KNOWS WHAT VALUES ARE COMMON: with coupling none, delta is "
        "that of an attacker who has never seen such a table; the best constant guess alone finds "
        f"{shown_up(before, 5)}, and more with what is published: let the coupling be learnt",
    )


def _best_noise_remarks(best: BestRound | None, people: People) -> tuple[str, ...]:
    """How good the best noise is, in words."""
    if best is None:
        return ()
    known = any(group.known.joint is not None for group in people.groups)
    which = "this coupling" if known else "normal, independent columns"
    return (
        f"the best round noise against attackers who know {which}: they succeed with "
        f"{shown_up(best.attacker.delta, 2)}; at most {shown_up(100 * best.gap, 2)} % above the "
        f"best of {best.noise.masses.size} shells",
    )
