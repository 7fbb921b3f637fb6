r"""The fair rival for numbers: randomised response on quantiles, and the receiver's best guess.

The prior is cut into $m$ cells of equal mass, the cell of the value is told by $m$-ary randomised
response, and what leaves is the median of what is then believed: a function of the report, so
nothing more is told. Every $m$ is tried, each at the largest budget that its exact leakage under
the prior allows. Noise that is added to a number is no match for it where budgets are small.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from sfumato.column.number_mechanisms import NumberDesign, guessed, number_design
from sfumato.core import checks, portable
from sfumato.core.arrays import Floats, Ints
from sfumato.core.channel import Channel
from sfumato.core.guarantees import LIP
from sfumato.core.information_leakage import information_leakage
from sfumato.core.search import boundary
from sfumato.noise.lattice import Lattice

_MOST_CELLS = 256
_HALVINGS = 48
# The first part by which a level is lowered that rounding has brought over the budget.
_HAIR = 1e-12
# Beyond this level the least weight of 62 bits is too coarse to hold a ratio.
_LARGEST = 42.0


def quantile_response(lattice: Lattice, prior: ArrayLike, epsilon: float) -> NumberDesign:
    """Randomised response on the quantiles of the prior, with the best guess from its reports.

    Examples:
        >>> ages = Lattice(-10.0, 10.0, 41)
        >>> bell = np.exp(-0.5 * (ages.points / 4) ** 2)
        >>> found = quantile_response(ages, bell / bell.sum(), epsilon=2.0)
        >>> found.cost, found.lip.epsilon <= 2.0
        (1.109, True)
    """
    belief = checks.belief("prior", prior, lattice.count)
    budget = checks.epsilon("epsilon", epsilon)
    counts = range(1, min(_MOST_CELLS, lattice.count) + 1)
    tried = [_quantile_cells(belief, cells) for cells in counts]
    owner = min(tried, key=lambda cells: _expected_error(lattice.points, belief, cells, budget))
    channel = _response(owner, belief, budget)
    return guessed(number_design(channel, lattice, None, belief, LIP(budget)), belief)


def _expected_error(points: Floats, belief: Floats, owner: Ints, budget: float) -> float:
    """Expected error of the best guesses from a response among cells, from prefix sums alone."""
    share = belief / belief.sum()
    mass = np.concatenate([[0.0], np.cumsum(share)])
    moment = np.concatenate([[0.0], np.cumsum(share * points)])
    ends = np.append(np.flatnonzero(np.diff(owner)) + 1, owner.size)
    starts = np.concatenate([[0], ends[:-1]])
    own = mass[ends] - mass[starts]
    if own.size == 1:
        others, more = 1.0, 0.0
    else:
        others = 1 / (own.size - 1 + portable.exp(_level(own, budget)))
        more = 1 - own.size * others
    # The median of what is believed after each report lies before, within or after its cell.
    half = 0.5 * (others + more * own)
    before, after = others * mass[starts] >= half, others * mass[ends] + more * own < half
    within = (half + more * mass[starts]) / (others + more)
    reached = np.where(before, half / others, np.where(after, (half - more * own) / others, within))
    guess = np.clip(np.searchsorted(mass[1:], reached), 0, points.size - 1)

    def distance(first: Ints, last: Ints) -> Floats:
        middle = np.clip(guess + 1, first, last)
        left = points[guess] * (2 * mass[middle] - mass[first] - mass[last])
        return np.asarray(left + moment[last] + moment[first] - 2 * moment[middle])

    everything = np.zeros_like(ends), np.full_like(ends, points.size)
    return float((others * distance(*everything) + more * distance(starts, ends)).sum())


def _quantile_cells(belief: Floats, cells: int) -> Ints:
    """The cell of each point: by the middle of its mass, so that a heavy point is not torn."""
    reached = (np.cumsum(belief) - 0.5 * belief) / belief.sum()
    owner = np.minimum((reached * cells).astype(np.int64), cells - 1)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)


def _response(owner: Ints, belief: Floats, budget: float) -> Channel:
    """Response among cells whose exact leakage is as large as the budget allows."""
    masses = np.bincount(owner, belief) / belief.sum()
    count = masses.size
    places = np.array([int(np.flatnonzero(owner == cell)[0]) for cell in range(count)])
    if count == 1:
        return Channel.constant(owner.size, int(places[0]))
    level, hair = _level(masses, budget), _HAIR
    while True:
        others = 1 / (count - 1 + portable.exp(level))
        rows = np.full((owner.size, count), others)
        rows[np.arange(owner.size), owner] = 1 - (count - 1) * others
        channel = Channel.from_probabilities(rows, places)
        # Rounding to integers may have raised what floats said by a hair.
        if information_leakage(channel, belief).epsilon <= budget:
            return channel
        level, hair = level * (1 - hair), min(0.5, 4 * hair)


def _level(masses: Floats, budget: float) -> float:
    """The model-free level of a response that leaks the budget under a prior of cells.

    It lies between the budget and its double; the leakage is that of the rarest or of the most
    frequent cell.
    """

    def within(level: float) -> bool:
        others = 1 / (masses.size - 1 + portable.exp(level))
        marginal = others + (1 - masses.size * others) * masses
        own = 1 - (masses.size - 1) * others
        ratio = max(own / float(marginal.min()), float(marginal.max()) / others)
        return portable.log(ratio) <= budget

    return boundary(within, budget, min(2 * budget, _LARGEST), steps=_HALVINGS)
