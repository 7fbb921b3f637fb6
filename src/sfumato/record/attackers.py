"""What attackers make of noise: the best who knows the coupling, one who knows records, a guess."""

from __future__ import annotations

import numpy as np

from sfumato.core.arrays import Floats
from sfumato.core.numerics import up
from sfumato.record.attack.bayes_attack import Found, Way, bayes_disclosure, prior_disclosure
from sfumato.record.attack.box_search import unlimited
from sfumato.record.attack.coupled_attack import coupled_disclosure, prior_cloud_disclosure
from sfumato.record.attack.held_out import held_out_disclosure
from sfumato.record.attack.point_cloud import best_cloud_boxes
from sfumato.record.attributes import Attributes, Numbers
from sfumato.record.constants import FEWEST_RECORDS
from sfumato.record.people import Group
from sfumato.record.published_noise import published_box
from sfumato.record.vector_noise import VectorNoise

_GUESSED_ROWS = 5_000
"""Records among which the fullest box is sought: more move its share by less than a hundredth."""


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


def known_to_others(group: Group, noise: VectorNoise, half: Floats) -> Found | None:
    """What he finds who knows other such records; None if nothing is known, or too few are."""
    return None if group.known.ignorant else held_out_disclosure(group.table, noise, half)


def guessed(group: Group, half: Floats) -> float:
    """What the best constant guess reaches before anything is published.

    By what is known, or among the records: where values heap, a smooth density knows less.
    """
    if len(group.table) < FEWEST_RECORDS and not group.known.ignorant:
        return guessed_by_coupling(group.known, half)
    return max(guessed_by_coupling(group.known, half), largest_share(group.records, half)[0])


def guessed_by_coupling(known: Attributes, half: Floats) -> float:
    """What one guesses who knows the coupling alone."""
    if known.joint is not None:
        return prior_disclosure(known.joint, half)
    return 0.0 if known.tied is None else prior_cloud_disclosure(known.tied, half)


def largest_share(records: Numbers, half: Floats) -> tuple[float, int]:
    """The part of some records that the best box holds, and among how many it was sought."""
    table = np.stack(list(records.values()), axis=1)
    table = table[:: max(1, len(table) // _GUESSED_ROWS)]
    even = np.full(len(table), 1 / len(table))
    nothing = unlimited(half.size)
    found = best_cloud_boxes(table.mean(axis=0)[None], np.array(half), table, even, nothing)
    return min(float(found[0][0]), 1.0), len(table)
