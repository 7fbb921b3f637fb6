r"""The adversary's distribution of the current value, given all that was released so far.

For a chain of order $m$ the belief is a joint distribution over $m$ consecutive values, one of
which is current; for order 1 it is a plain vector. A belief is a function of public things only.

Floating-point arithmetic moves a belief away from the exact one. `drift` bounds how far:
for some scale $c$, every entry satisfies $|\log(\hat b / (c\,b))| \le$ `drift`. Updating never
enlarges the distance of two beliefs in this metric and prediction shrinks it, so errors only add
up, and a certificate under the exact belief is one under this belief plus `2 * error`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.errors import InvalidParameter
from sfumato.core.numerics import UNIT


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Joint distribution of consecutive values with the current one marked.

    Attributes:
        joint: Non-negative array with one axis per value, oldest first, summing to 1.
        axis: Which axis is the current value.
        drift: Bound on the rounding error so far, as a log ratio.
        runs: For a model with hidden states, of which several may show one value: where the
            states of each value begin, and their number at the end. The joint is a vector then.

    Examples:
        >>> told = Belief(np.array([0.5, 0.5])).update(np.array([0.9, 0.1]))
        >>> told.marginal
        array([0.9, 0.1])
    """

    joint: Floats
    axis: int = 0
    drift: float = 0.0
    runs: Ints | None = None

    def __post_init__(self) -> None:
        if self.runs is not None and not np.all(self.runs[1:] > self.runs[:-1]):
            raise InvalidParameter("runs", "others", "list hidden states in rising order")
        if self.runs is not None and self.joint.shape != (int(self.runs[-1]),):
            raise InvalidParameter("joint", self.joint.shape, "be one number per hidden state")
        if not 0 <= self.axis < self.joint.ndim:
            raise InvalidParameter("axis", self.axis, f"lie in range({self.joint.ndim})")
        object.__setattr__(self, "joint", checks.read_only(self.joint))

    @property
    def marginal(self) -> Floats:
        """Distribution of the current value."""
        if self.runs is not None:
            return checks.read_only(np.add.reduceat(self.joint, self.runs[:-1]))
        others = tuple(axis for axis in range(self.joint.ndim) if axis != self.axis)
        return checks.read_only(self.joint.sum(axis=others))

    @property
    def error(self) -> float:
        """Bound on the log ratio of `marginal` to the exact belief, up to a common factor."""
        if self.runs is not None:
            summed = int(np.diff(self.runs).max())
        else:
            summed = self.joint.size // int(self.joint.shape[self.axis])
        return self.drift + (summed - 1) * UNIT

    def update(self, likelihood: Floats) -> Self:
        """Condition on an output: `likelihood[x]` is its probability when `x` is current."""
        weighted = self.weighted(likelihood)
        return replace(weighted, joint=weighted.joint / weighted.joint.sum())

    def weighted(self, likelihood: Floats) -> Self:
        """The same up to a factor, for a belief that is carried on at once."""
        if self.runs is not None:
            spread = np.repeat(likelihood, np.diff(self.runs))
        else:
            shape = [1] * self.joint.ndim
            shape[self.axis] = -1
            spread = likelihood.reshape(shape)
        # Likelihood, product and a division to come; a sum is a common factor. Made anew, since
        # `replace` would take longer than the product.
        return type(self)(self.joint * spread, self.axis, self.drift + 4 * UNIT, self.runs)


class Model(Protocol):
    """What a release needs to know of a model."""

    @property
    def alphabet(self) -> Alphabet:
        """The values a stream can take."""

    @property
    def fingerprint(self) -> str:
        """Identifies the model: equal models, equal fingerprints."""

    @property
    def full_support(self) -> bool:
        """Whether every value is possible at every moment."""

    def first(self) -> Belief:
        """Belief about the first value, before anything is released."""

    def following(self, belief: Belief) -> Belief:
        """Belief about the next value, given the belief about the current one."""
