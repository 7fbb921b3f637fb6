"""Disclosure attack on published columns: whoever knows other such records guesses each person's.

The noise is public, and so are the columns that were kept. A guess is the box, of the accuracy that
counts, which holds most of the posterior: known records of the same kept values, each as likely as
its distance from what was published is under the noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.attacks.proportions import interval
from sfumato.core import checks
from sfumato.core.arrays import Bools, Floats
from sfumato.core.errors import InvalidParameter
from sfumato.record.attack.point_cloud import best_cloud_boxes
from sfumato.record.vector_noise import VectorNoise, half_widths, reach_of


@dataclass(frozen=True, slots=True)
class TableScores:
    """How often all columns of a person were pinned down.

    Attributes:
        share: Of people, by the guesses.
        low: A lower bound on the probability, wrong once in 40.
        high: An upper bound, the same.
        blind: The same by one guess for all people of a group, had nothing been published.
        published: The same if what was published is taken for the guess.
        published_low: The lower end of an interval for that.
    """

    share: float
    low: float
    high: float
    blind: float
    published: float
    published_low: float

    def refutes(self, delta: float) -> bool:
        """Whether a certified probability is below what was surely seen of either guess."""
        return max(self.low, self.published_low) > delta


@dataclass(frozen=True, slots=True, eq=False)
class TableAttack:
    """Guesses at published people.

    Attributes:
        published: What left, one person a row.
        guesses: At each of them.
        chances: How likely each is right, as the attacker believes.
        blind: What he would guess had nothing left.
        half: How near a guess must come, on each column.

    Examples:
        >>> rows = np.array([[68.0], [81.5]])
        >>> found = TableAttack(rows, rows.round(-1), np.array([0.9, 0.7]), rows, np.array([0.5]))
        >>> found.expected, found.scored([[70.0], [90.0]]).share
        (0.8, 0.5)
    """

    published: Floats
    guesses: Floats
    chances: Floats
    blind: Floats
    half: Floats

    @property
    def expected(self) -> float:
        """How often he is right, as he believes."""
        return float(self.chances.mean())

    def scored(self, truth: ArrayLike) -> TableScores:
        """How often he was right.

        Args:
            truth: True values, one person a row, in the order of the rows.
        """
        true = checks.numbers("truth", truth)
        if true.shape != self.guesses.shape:
            raise InvalidParameter("truth", true.shape, f"be of shape {self.guesses.shape}")
        hits = [self._near(one, true) for one in (self.guesses, self.blind, self.published)]
        low, high = interval(int(hits[0].sum()), len(true))
        shares = [float(one.mean()) for one in hits]
        surely, _ = interval(int(hits[2].sum()), len(true))
        return TableScores(shares[0], low, high, shares[1], shares[2], surely)

    def _near(self, guesses: Floats, true: Floats) -> Bools:
        # A box is closed, and its centre was rounded.
        return np.asarray((np.abs(guesses - true) <= self.half * (1 + 1e-9)).all(axis=1))


def attack_table(
    published: ArrayLike,
    records: ArrayLike,
    noise: VectorNoise,
    accuracy: ArrayLike,
    *,
    groups: tuple[Sequence[Any], Sequence[Any]] | None = None,
) -> TableAttack:
    """Guess at all columns of published people, from other such records.

    Args:
        published: What left, one person a row.
        records: What is known of other people, in the same columns.
        noise: What was added.
        accuracy: How near a guess must come: one number, or one a column.
        groups: What was kept of each published person, and of each record; of values that no
            record has, all records are looked at.

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> heaped = np.repeat([[60.0], [70.0], [80.0]], 20, axis=0)
        >>> found = attack_table([[68.0], [81.5]], heaped, noise_of("uniform", 2.0, 1), 0.5)
        >>> found.guesses.ravel().round().tolist(), found.scored([[70.0], [80.0]]).share
        ([70.0, 80.0], 1.0)
    """
    left, known = (np.atleast_2d(checks.numbers("rows", one)) for one in (published, records))
    half = half_widths(noise, accuracy, left.shape[1])
    if known.shape[1:] != left.shape[1:] or not len(known):
        raise InvalidParameter("records", known.shape, f"be rows of {left.shape[1]} columns")
    form = noise.form()._replace(reach=reach_of(noise))
    guesses, chances = np.empty(left.shape), np.empty(len(left))
    blind = np.empty(left.shape)
    for mine, theirs in _grouped(len(left), len(known), groups):
        points, counts = np.unique(known[theirs], axis=0, return_counts=True)
        weights = counts / counts.sum()
        chances[mine], guesses[mine] = best_cloud_boxes(left[mine], half, points, weights, form)
        blind[mine] = _fullest(points, weights, half)
    return TableAttack(left, guesses, chances, blind, half)


def hold_same_people(records: ArrayLike, people: ArrayLike) -> bool:
    """Whether records look as if the people who are guessed at were among them.

    Who has the answers refutes nothing. If records are of others, a person's row is found there as
    often as a record's is found among the other records, or a person's among the other people:
    ties of rounded values. More than that, beyond chance, are the people themselves.

    Args:
        records: What is known of other people.
        people: True values of those who are guessed at, in the same columns.

    Examples:
        >>> others = [[float(n)] for n in range(50)]
        >>> hold_same_people(others, others[10:20]), hold_same_people(others, [[0.5], [7.5]])
        (True, False)
    """
    known, true = (np.atleast_2d(checks.numbers("rows", one)) for one in (records, people))
    points, places = np.unique(np.vstack([known, true]), axis=0, return_inverse=True)
    parts = np.split(places.ravel(), [len(known)])
    theirs, own = (np.bincount(part, minlength=len(points)) for part in parts)
    # Of one or two values that repeat, equal shares are chance.
    telling = len(points) > 2 or len(points) == len(true)
    if telling and (theirs * len(true) == own * len(known)).all():
        return True
    ties = [interval(int(one[one > 1].sum()), int(one.sum()))[1] for one in (theirs, own)]
    return interval(int(own[theirs > 0].sum()), len(true))[0] > max(ties)


def _grouped(
    people: int, records: int, groups: tuple[Sequence[Any], Sequence[Any]] | None
) -> list[tuple[Bools, Bools]]:
    """Who is alike: which people, and which records."""
    if groups is None:
        return [(np.ones(people, dtype=np.bool_), np.ones(records, dtype=np.bool_))]
    own, other = (list(one) for one in groups)
    if (len(own), len(other)) != (people, records):
        raise InvalidParameter("groups", (len(own), len(other)), "be one for each row")
    found = []
    for value in dict.fromkeys(own):
        theirs = np.array([one == value for one in other])
        mine = np.array([one == value for one in own])
        found.append((mine, theirs if theirs.any() else np.ones(records, dtype=np.bool_)))
    return found


def _fullest(points: Floats, weights: Floats, half: Floats) -> Floats:
    """The record around which most are."""
    inside = [(np.abs(points - one) <= half).all(axis=1) @ weights for one in points]
    return np.asarray(points[int(np.argmax(inside))])


def kept_values(frame: Mapping[str, Sequence[Any]], kept: Sequence[str]) -> list[tuple[str, ...]]:
    """What was kept of each row, as text."""
    columns = [[str(cell) for cell in frame[name]] for name in kept]
    return list(zip(*columns, strict=True))
