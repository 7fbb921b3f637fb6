r"""What an adversary may believe whose chain is one of many: a box, carried from step to step.

Nobody knows the chain, only that each of its probabilities lies between bounds. Then each
probability of a belief does, too. The bounds are carried through what an adversary does: Bayes'
rule on an output, and a step of the chain. Both are extremes of a linear function, or of a quotient
of two, over distributions in a box, which sorting finds exactly; rounding goes outward. So no chain
in the set, also one that changes from step to step within it, has a belief outside of the box.
"""

from __future__ import annotations

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT
from sfumato.models.emissions import Emissions
from sfumato.models.plausible import PlausibleChains, tightened
from sfumato.models.prior_sets import PriorBox


def first_beliefs(chains: PlausibleChains) -> PriorBox:
    """What may be believed before anything is released.

    Raises:
        InvalidParameter: For chains that look back on more than one value.
    """
    if chains.estimate.order != 1:
        raise InvalidParameter("chains", f"order {chains.estimate.order}", "be of order 1")
    return _box(chains.first_low, chains.first_high)


def any_belief(symbols: int) -> PriorBox:
    """All beliefs there are: nothing is known of what was before."""
    return PriorBox(np.zeros(symbols), np.ones(symbols))


def mean_ranges(beliefs: PriorBox, columns: Floats) -> tuple[Floats, Floats]:
    """The least and the largest mean of each column of non-negative numbers, rounded outward.

    Examples:
        >>> low, high = mean_ranges(PriorBox([0.4, 0.4], [0.6, 0.6]), np.array([[1.0], [2.0]]))
        >>> low, high
        (array([1.4]), array([1.6]))
    """
    least, most = columns.min(axis=0), columns.max(axis=0)
    # What is free is a difference: right within the rounding of a sum of n numbers below 1.
    slack = (6 * len(columns) + 24) * UNIT * most
    low = np.maximum(beliefs.least_means(columns) - slack, least)
    return low, np.minimum(beliefs.most_means(columns) + slack, most)


def informed(beliefs: PriorBox, likelihood: Floats) -> PriorBox:
    r"""What may be believed after an output.

    $$\frac{b(x)\, l(x)}{b(x)\, l(x) + \sum_{z \ne x} b(z)\, l(z)}$$

    where $l$ is the `likelihood`. It grows with $b(x)$, and falls with the sum: so it is largest
    where $b(x)$ is as large as the box allows and the rest lies on the least likelihoods.

    Examples:
        >>> after = informed(PriorBox([0.4, 0.4], [0.6, 0.6]), np.array([0.75, 0.25]))
        >>> after.lower.round(4), after.upper.round(4)
        (array([0.6667, 0.1818]), array([0.8182, 0.3333]))
    """
    low, high = tightened(beliefs.lower[None], beliefs.upper[None])
    own_low, own_high = low[0] * likelihood, high[0] * likelihood
    most = _others(low[0], high[0], 1 - low[0], -likelihood)
    least = _others(low[0], high[0], 1 - high[0], likelihood)
    slack = (8 * likelihood.size + 32) * UNIT
    # Relative to the largest likelihood: what is free to move is right to an absolute error.
    most = most + slack * likelihood.max()
    least = np.maximum(least - slack * likelihood.max(), 0.0)
    with np.errstate(invalid="ignore"):
        lower = own_low / (own_low + most)
        upper = np.where(own_high > 0, own_high / (own_high + least), 0.0)
    return _box(lower * (1 - slack), np.minimum(upper * (1 + slack), 1.0))


def carried(beliefs: PriorBox, chains: PlausibleChains) -> PriorBox:
    """What may be believed one moment later.

    No probability leaves the range of its column: a belief that knew the value would be inside.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> near = PlausibleChains.from_radius(sticky, 0.05)
        >>> carried(PriorBox([0.5, 0.5], [0.5, 0.5]), near).lower
        array([0.45, 0.45])
    """
    low, high = tightened(chains.low, chains.high)
    lower, _ = mean_ranges(beliefs, low)
    _, upper = mean_ranges(beliefs, high)
    # Rows of a chain of floats sum to 1 within some roundings, and beliefs are scaled to 1.
    slack = (8 * len(low) + 16) * UNIT
    return _box(lower * (1 - slack), np.minimum(upper * (1 + slack), 1.0))


def most_scores(emissions: Emissions, chains: PlausibleChains) -> Floats:
    """Log of the largest probability of each output given earlier ones, over a set of chains.

    Rounded up, and up to a factor of the output itself, as scores under one chain are.

    Raises:
        InvalidParameter: For chains that look back on more than one value, and for batches.

    Examples:
        >>> from sfumato.models.markov import MarkovChain
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.1, 0.9]])
        >>> near = PlausibleChains.from_radius(sticky, 0.05)
        >>> told = Emissions.of_rows([np.array([[0.8, 0.2]])])
        >>> np.exp(most_scores(told, near)).round(3)
        array([0.53])
    """
    from sfumato.models import belief_set_loops

    first = first_beliefs(chains)
    if emissions.span > 1 or emissions.symbols != first.lower.size:
        rule = "be of single values of the alphabet of the chains"
        raise InvalidParameter("emissions", emissions.span, rule)
    low, high = tightened(chains.low, chains.high)
    scores = np.empty(len(emissions))
    belief_set_loops.most_scores(
        as_bounds(first),
        np.ascontiguousarray(low.T),
        np.ascontiguousarray(high.T),
        (emissions.begins, emissions.reaches, emissions.told),
        emissions.starts,
        scores,
    )
    return scores


def as_bounds(beliefs: PriorBox) -> Floats:
    """A box as two rows: what a state holds."""
    return checks.read_only(np.stack([beliefs.lower, beliefs.upper]))


def as_beliefs(bounds: Floats) -> PriorBox:
    """The box of two rows.

    Examples:
        >>> as_bounds(as_beliefs(np.array([[0.2, 0.3], [0.7, 0.8]])))
        array([[0.2, 0.3],
               [0.7, 0.8]])
    """
    if bounds.ndim != 2 or len(bounds) != 2:
        raise InvalidParameter("bounds", bounds.shape, "be two rows")
    return PriorBox(*bounds)


def _others(low: Floats, high: Floats, mass: Floats, likelihood: Floats) -> Floats:
    """Sum over all others that is least when they share `mass`, for each symbol; not negative."""
    order = np.argsort(likelihood, kind="stable")
    room, base = (high - low)[order], low[order]
    alone = np.eye(low.size, dtype=np.bool_)[:, order]
    rooms = np.where(alone, 0.0, room)
    free = np.maximum(mass - np.where(alone, 0.0, base).sum(axis=1), 0.0)
    before = np.cumsum(rooms, axis=1) - rooms
    moved = np.clip(free[:, None] - before, 0.0, rooms)
    sizes = np.abs(likelihood[order])
    return np.asarray((np.where(alone, 0.0, base) * sizes + moved * sizes).sum(axis=1))


def _box(lower: Floats, upper: Floats) -> PriorBox:
    """Bounds with what a sum of 1 says besides."""
    low, high = tightened(lower[None], upper[None])
    return PriorBox(np.minimum(low[0], high[0]), high[0])
