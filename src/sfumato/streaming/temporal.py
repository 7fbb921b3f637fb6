"""Counts of a population, moment by moment, so that no moment leaks more than alpha."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _checks
from sfumato.accounting.temporal import TemporalAccount
from sfumato.accounting.temporal_budgets import OnlineBudget, finite_budgets
from sfumato.alphabet import Alphabet
from sfumato.errors import BudgetExceeded, InsecureRandomness, InvalidParameter
from sfumato.guarantees import TemporalDP
from sfumato.leakage.over_time import TemporalLeakage
from sfumato.leakage.temporal import LossFunction
from sfumato.mechanisms.discrete_laplace import DiscreteLaplace
from sfumato.randomness import Randomness, secure
from sfumato.streaming.instant import Purpose

Ints = NDArray[np.int64]
_MOVED = 2
"""A person who moves leaves one cell of a histogram and enters another."""


@dataclass(frozen=True, slots=True)
class TemporalPlan:
    """The rule of a release of histograms.

    Attributes:
        backward: Loss function of the backward matrix, the worst over all people.
        forward: Loss function of the forward matrix.
        alpha: No moment of any person may leak more than this.
        steps: Number of releases, if it is known; else the stream is endless.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> TemporalPlan(chain, chain, alpha=1.0, steps=3).budgets.round(3)
        array([0.63, 0.26, 0.63])
    """

    backward: LossFunction
    forward: LossFunction
    alpha: float
    steps: int | None = None

    @property
    def budgets(self) -> NDArray[np.float64]:
        """The budgets of a known number of releases."""
        if self.steps is None:
            raise InvalidParameter("steps", None, "be given")
        return finite_budgets(self.backward, self.forward, self.alpha, self.steps)


@dataclass(slots=True)
class TemporalRelease:
    """Noisy histograms of the values of many people, one for each moment.

    Every count gets two-sided geometric noise. What is charged is the exact leakage of the noise
    that is drawn, and the account knows at any time what every past moment leaks by now.

    Args:
        plan: The rule.
        alphabet: The values a person can have.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> release = TemporalRelease(TemporalPlan(chain, chain, alpha=1.0), Alphabet("ab"))
        >>> told = [release(["a", "b", "b", "a", "b"]) for _ in range(4)]
        >>> release.leakage.event <= TemporalDP(1.0)
        True

    References:
        [TPL, Fig. 1 and Alg. 8]
    """

    plan: TemporalPlan
    alphabet: Alphabet
    randomness: Randomness = field(default_factory=secure, repr=False)
    purpose: Purpose = Purpose.RELEASE
    _account: TemporalAccount = field(init=False, repr=False)
    _online: OnlineBudget | None = field(init=False, repr=False)
    _budgets: NDArray[np.float64] | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.randomness.simulated and self.purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a temporal release")
        plan = self.plan
        self._account = TemporalAccount(plan.backward, plan.forward)
        endless = plan.steps is None
        self._online = (
            OnlineBudget.begin(plan.backward, plan.forward, plan.alpha) if endless else None
        )
        self._budgets = None if endless else plan.budgets

    @property
    def leakage(self) -> TemporalLeakage:
        """What every release so far leaks of its moment."""
        return self._account.leakage()

    @property
    def spent(self) -> TemporalDP:
        """The largest of them."""
        return self.leakage.event if len(self._account) else TemporalDP(0.0)

    def __call__(self, values: Sequence[object]) -> Ints:
        """Release the histogram of the values that people have at this moment.

        Raises:
            UnknownSymbol: If a value is not in the alphabet; it is not quoted.
            BudgetExceeded: If all releases that were planned have happened.
        """
        places = self.alphabet.indices(list(values))
        return self.release_counts(np.bincount(places, minlength=len(self.alphabet)))

    def release_counts(self, counts: ArrayLike) -> Ints:
        """The same from counts; unbiased whole numbers, maybe negative."""
        true = np.asarray(counts)
        if true.shape != (len(self.alphabet),) or true.dtype.kind not in "iu" or true.min() < 0:
            rule = f"be {len(self.alphabet)} whole numbers of at least 0, one for each symbol"
            raise InvalidParameter("counts", true.shape, rule)
        noise = DiscreteLaplace.at(self._budget() / _MOVED)
        charge = noise.leakage(_MOVED).epsilon
        sequence = len(self._account)
        drawn = noise.draw(true.size, self.randomness.at("histogram", sequence))
        self._account.charge(charge)
        if self._online is not None:
            self._online = self._online.spend(charge)
        return np.asarray(true.astype(np.int64) + drawn)

    def skip(self) -> None:
        """A moment at which nothing is released; later ones may get more."""
        if self._online is None:
            raise InvalidParameter("steps", self.plan.steps, "not be given, to skip moments")
        self._account.charge(0.0)
        self._online = self._online.spend(0.0)

    def _budget(self) -> float:
        if self._online is not None:
            return self._online.offered
        if self._budgets is None or len(self._account) >= self._budgets.size:
            left = TemporalDP(max(0.0, self.plan.alpha - self.spent.alpha))
            raise BudgetExceeded("histogram", len(self._account), TemporalDP(math.inf), left)
        return float(self._budgets[len(self._account)])


def laplace_error(epsilons: ArrayLike) -> float:
    """Mean absolute error of a count under two-sided geometric noise, over all releases."""
    budgets = np.atleast_1d(np.asarray(epsilons, dtype=np.float64))
    ratios = np.exp(-np.maximum([_checks.positive("epsilons", b) for b in budgets], 0) / _MOVED)
    return float(np.mean(2 * ratios / (1 - ratios**2)))
