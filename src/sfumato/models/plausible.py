"""Chains that released data has not ruled out: an interval for every probability of a chain.

The set is a box: each entry of the transition matrix, and of the distribution of how streams begin,
lies between two bounds, and rows sum to 1. A certificate that holds for every chain in the box
holds for the true one with the stated confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT, up
from sfumato.models.markov import MarkovChain


@dataclass(frozen=True, slots=True, eq=False)
class PlausibleChains:
    """All chains whose probabilities lie between bounds.

    Attributes:
        estimate: The chain that the bounds were put around; it need not lie in the middle.
        low: Least probability of each transition: one row per context, as in
            `MarkovChain.transition`.
        high: Greatest probability of each transition.
        first_low: Least probability of each context to begin with, as in
            `MarkovChain.initial.ravel()`.
        first_high: Greatest probability of it.
        confidence: Probability that the true chain lies inside, over the outputs that the bounds
            come from; 1 where the box is assumed, not inferred.

    Examples:
        >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        >>> near = PlausibleChains.from_radius(sticky, 0.05)
        >>> near.low[0], near.high[0]
        (array([0.85, 0.05]), array([0.95, 0.15]))
        >>> near.contains(sticky), near.contains(MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]]))
        (True, False)
    """

    estimate: MarkovChain
    low: Floats
    high: Floats
    first_low: Floats
    first_high: Floats
    confidence: float

    def __post_init__(self) -> None:
        if not 0 < self.confidence <= 1:
            rule = "be a probability greater than 0"
            raise InvalidParameter("confidence", self.confidence, rule)
        shape = (len(self.estimate.backoff), self.estimate.size)
        _check_box("transition", self.low, self.high, shape)
        _check_box("first", self.first_low[None], self.first_high[None], (1, shape[0]))
        for name in ("low", "high", "first_low", "first_high"):
            object.__setattr__(self, name, checks.read_only(getattr(self, name)))

    @classmethod
    def from_radius(cls, chain: MarkovChain, radius: float, confidence: float = 1.0) -> Self:
        """All chains whose probabilities are off by at most `radius`, each.

        Args:
            chain: The middle.
            radius: How far each probability may be off; bounds stay within 0 and 1.
            confidence: Probability that the true chain is one of them; 1 if that is assumed.
        """
        off = checks.finite("radius", radius)
        moves, first = np.asarray(chain.transition()), chain.initial.ravel()
        return cls(chain, *_around(moves, off), *_around(first, off), confidence)

    @property
    def fingerprint(self) -> str:
        """Identifies the set: equal bounds around equal estimates, equal fingerprints."""
        bounds = (self.low, self.high, self.first_low, self.first_high)
        return digest("plausible chains", self.estimate.fingerprint, *bounds)

    @property
    def widest(self) -> float:
        """Width of the widest interval of a transition."""
        return float((self.high - self.low).max())

    @property
    def radius(self) -> float:
        """The least distance from the estimate, of each probability, within which all of it lies.

        Examples:
            >>> sticky = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
            >>> round(PlausibleChains.from_radius(sticky, 0.05).radius, 6)
            0.05
        """
        moves, first = self.estimate.transition(), self.estimate.initial.ravel()
        below = max(float((moves - self.low).max()), float((first - self.first_low).max()))
        above = max(float((self.high - moves).max()), float((self.first_high - first).max()))
        return up(max(below, above, 0.0))

    def contains(self, chain: MarkovChain) -> bool:
        """Whether every probability of a chain of the same order lies between its bounds."""
        if chain.order != self.estimate.order or chain.size != self.estimate.size:
            return False
        return _inside(chain.transition(), self.low, self.high) and _inside(
            chain.initial.ravel(), self.first_low, self.first_high
        )


def tightened(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Bounds with what rows that sum to 1 say besides; never narrower than that, for rounding.

    Examples:
        >>> low, high = tightened(np.array([[0.6, 0.0]]), np.array([[0.9, 1.0]]))
        >>> low, high
        (array([[0.6, 0.1]]), array([[0.9, 0.4]]))
    """
    slack = 4 * low.shape[-1] * UNIT
    others_high = high.sum(axis=-1, keepdims=True) - high
    others_low = low.sum(axis=-1, keepdims=True) - low
    lower = np.maximum(low, 1 - others_high - slack)
    upper = np.minimum(high, 1 - others_low + slack)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _around(values: Floats, off: float) -> tuple[Floats, Floats]:
    """Values less and more `off`, rounded outward."""
    below, above = np.nextafter(values - off, -1.0), np.nextafter(values + off, 2.0)
    return np.maximum(below, 0.0), np.minimum(above, 1.0)


def _inside(values: Floats, low: Floats, high: Floats) -> bool:
    return bool(np.all((values >= low) & (values <= high)))


def _check_box(name: str, low: Floats, high: Floats, shape: tuple[int, int]) -> None:
    if low.shape != shape or high.shape != shape:
        raise InvalidParameter(name, low.shape, f"have bounds of shape {shape}")
    if not np.all((low >= 0) & (low <= high) & (high <= 1)):
        raise InvalidParameter(name, "bounds", "lie in order between 0 and 1")
    slack = 4 * shape[1] * UNIT
    if np.any(low.sum(axis=1) > 1 + slack) or np.any(high.sum(axis=1) < 1 - slack):
        raise InvalidParameter(name, "bounds", "leave room for rows that sum to 1")
