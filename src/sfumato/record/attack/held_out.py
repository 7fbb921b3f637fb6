"""An attacker who knows other records, not a density: what he finds of people like them.

Values heap: whole kilograms, pressures that end in 0. A smooth density spreads that mass out, and
what it says of the best attacker is too little. Here the knowledge is records themselves, as
weighted points; the one that was published is never among them. A guess is the fullest box of the
posterior, and how often it is right is counted over simulated publications.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import stats

from sfumato.core import portable
from sfumato.core.arrays import Floats
from sfumato.record.attack.bayes_attack import Found, Way
from sfumato.record.attack.point_cloud import best_cloud_boxes
from sfumato.record.constants import CONFIDENCE, FEWEST_RECORDS, THREADS
from sfumato.record.vector_noise import VectorNoise, reach_of

_FOLDS = 10
_MOST_RECORDS = 20_000
_MOST_TRIALS, _FEWEST_TRIALS = 3_000, 1_500
_MOST_WORK = 6_000_000
"""Published points times known ones: a second or two."""


def held_out_disclosure(records: Floats, noise: VectorNoise, half: Floats) -> Found | None:
    """How often he is right who knows all records but those of a tenth of the people.

    Args:
        records: One a row.
        noise: What is added.
        half: How near he must come, on each column.

    Returns:
        The share of simulated publications in which he is right, and limits of it for people like
        these; None if there are too few records for such an attacker to be worth anything.

    Examples:
        >>> from sfumato.record.published_noise import noise_of
        >>> heaped = np.repeat([[60.0], [70.0], [80.0]], 200, axis=0)
        >>> found = held_out_disclosure(heaped, noise_of("uniform", 2.0, 1), np.array([0.5]))
        >>> found.delta  # the noise is narrower than the heaps are apart
        1.0
    """
    if len(records) < FEWEST_RECORDS:
        return None
    coins = np.random.default_rng(0)  # who is simulated, and how: no coin of any release
    known = coins.permutation(records)[:_MOST_RECORDS]
    points, owner = np.unique(known, axis=0, return_inverse=True)
    owner = owner.reshape(-1)
    trials = int(np.clip(_MOST_WORK // len(points), _FEWEST_TRIALS, _MOST_TRIALS))
    person = np.arange(trials) % len(known)  # everybody as often, but for one
    words = coins.integers(0, 2**64, (trials, noise.words), dtype=np.uint64)
    published = known[person] + noise.draw(words)
    form = noise.form()._replace(reach=reach_of(noise))

    def attack(fold: int) -> int:
        mine = person % _FOLDS == fold
        others = np.arange(len(known)) % _FOLDS != fold
        weights = np.bincount(owner[others], minlength=len(points)) / np.count_nonzero(others)
        seen = weights > 0
        _, guess = best_cloud_boxes(published[mine], half, points[seen], weights[seen], form)
        # A box is closed, and its centre was rounded.
        near = np.abs(guess - known[person[mine]]) <= half * (1 + 1e-9)
        return int(np.count_nonzero(near.all(axis=1)))

    with ThreadPoolExecutor(THREADS) as pool:
        hits = sum(pool.map(attack, range(_FOLDS)))
    share = hits / trials
    # A person who is published twice, in simulation, tells no more of people like him.
    people = min(trials, len(known))
    right, wrong = share * people, (1 - share) * people
    # The limits of Clopper and Pearson, each with the whole of the confidence.
    low = 0.0 if right == 0 else portable.settled(stats.beta.ppf(1 - CONFIDENCE, right, wrong + 1))
    high = 1.0 if wrong == 0 else portable.settled(stats.beta.ppf(CONFIDENCE, right + 1, wrong))
    return Found(share, low, high, Way.HELD_OUT)
