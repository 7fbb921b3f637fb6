"""Any mechanism with a budget, moment by moment, so that no moment leaks more than alpha."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from sfumato.core import checks
from sfumato.core.alphabet import Alphabet
from sfumato.core.arrays import Floats, Ints
from sfumato.core.digest import content, digest, fields_content
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter
from sfumato.core.guarantees import TemporalDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Address, Domain, Randomness, secure
from sfumato.noise.frequency import KaryResponse
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.temporal.over_time import TemporalLeakage
from sfumato.temporal.temporal_account import TemporalAccount
from sfumato.temporal.temporal_budgets import OnlineBudget, finite_budgets
from sfumato.temporal.temporal_leakage import LossFunction

_MOVED = 2
"""A person who moves leaves one cell of a histogram and enters another."""


class Mechanism(Protocol):
    """One release: what it leaks of the value of one person, and how it is drawn.

    It may have a method `check` that refuses a value before anything is charged. With keyed or
    seeded coins it is a dataclass, or has a `fingerprint`: what it draws depends on that.
    """

    @property
    def epsilon(self) -> float:
        """Its leakage, pure, exact or rounded up."""

    def __call__(self, value: Any, randomness: Randomness) -> Any:
        """Draw a release of a value."""


Maker = Callable[[float], Mechanism]
"""Makes a mechanism for a budget; what it leaks in fact may be less."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of the values of many people, with two-sided geometric noise.

    Attributes:
        alphabet: The values a person can have.
        noise: What is added to every count.

    Examples:
        >>> make = Histogram.of(Alphabet("ab"))
        >>> make(0.5).epsilon <= 0.5, make(0.5)(["a", "b", "b"], secure()).shape
        (True, (2,))
    """

    alphabet: Alphabet
    noise: DiscreteLaplace

    @classmethod
    def of(cls, alphabet: Alphabet) -> Maker:
        """Histograms of people's values, for any budget."""
        return lambda budget: cls(alphabet, DiscreteLaplace.at(budget / _MOVED))

    @property
    def epsilon(self) -> float:
        """For one person who has another value."""
        return self.noise.leakage(_MOVED).epsilon

    def check(self, value: Sequence[object]) -> None:
        """Refuse values outside the alphabet; they are not quoted."""
        self.alphabet.indices(list(value))

    def __call__(self, value: Sequence[object], randomness: Randomness) -> Ints:
        """The noisy counts; unbiased whole numbers, maybe negative."""
        places = self.alphabet.indices(list(value))
        counts = np.bincount(places, minlength=len(self.alphabet))
        return np.asarray(counts + self.noise.draw(len(self.alphabet), randomness))


@dataclass(frozen=True, slots=True)
class Answer:
    """One person's own value by k-ary randomised response.

    Attributes:
        alphabet: The values.
        response: The mechanism.
    """

    alphabet: Alphabet
    response: KaryResponse

    @classmethod
    def of(cls, alphabet: Alphabet) -> Maker:
        """Responses for any budget."""
        return lambda budget: cls(alphabet, KaryResponse.at(len(alphabet), budget))

    @property
    def epsilon(self) -> float:
        """Whatever the value."""
        return self.response.local.epsilon

    def check(self, value: object) -> None:
        """Refuse a value outside the alphabet; it is not quoted."""
        self.alphabet.index(value)

    def __call__(self, value: object, randomness: Randomness) -> str | int:
        """A released symbol."""
        report = self.response.simulate([self.alphabet.index(value)], randomness)
        return self.alphabet.labels[int(np.flatnonzero(report[0])[0])]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement of OpenDP, or anything with `map` and a call; it brings its own coins.

    Attributes:
        measurement: The measurement.
        distance: How far apart two databases are that differ in one person's value.

    Examples:
        >>> class Exact:
        ...     def map(self, distance): return 0.5 * distance
        ...     def __call__(self, value): return value
        >>> Measurement(Exact(), 1).epsilon
        0.5
    """

    measurement: Any
    distance: Any

    @classmethod
    def of(cls, build: Callable[[float], Any], distance: Any) -> Maker:
        """Measurements for any budget: `build` makes one for an epsilon."""
        return lambda budget: cls(build(budget), distance)

    @property
    def epsilon(self) -> float:
        """What the measurement itself says."""
        return checks.leakage(
            "measurement.map(distance)", float(self.measurement.map(self.distance))
        )

    @property
    def fingerprint(self) -> str:
        """What is told of it; it takes no coins of ours."""
        return digest("measurement", self.epsilon)

    def __call__(self, value: Any, randomness: Randomness) -> Any:
        """Invoke the measurement."""
        return self.measurement(value)


@dataclass(frozen=True, slots=True)
class TemporalPlan:
    """The rule of a sequence of releases.

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
    def fingerprint(self) -> str:
        """Identifies the rule."""
        return digest("temporal plan", fields_content(self))

    @property
    def budgets(self) -> Floats:
        """The budgets of a known number of releases."""
        if self.steps is None:
            raise InvalidParameter("steps", None, "be given")
        return finite_budgets(self.backward, self.forward, self.alpha, self.steps)


class TemporalRelease(Guarded):
    """Releases of any mechanism under correlation.

    What is charged is the exact leakage of the mechanism that is drawn from, and the account knows
    at any time what every past moment leaks by now.

    Args:
        plan: The rule.
        make: Makes the mechanism of a moment: `Histogram.of`, `Answer.of`, `Measurement.of`, or
            any function from a budget to a `Mechanism`.
        stream: Name of the stream; needed with keyed coins, which are one set for each name.
        randomness: Source of coins; secure if not given.
        purpose: A simulation may use seeded coins; a release may not.

    Examples:
        >>> chain = LossFunction.of([[0.8, 0.2], [0.2, 0.8]])
        >>> plan = TemporalPlan(chain, chain, alpha=1.0)
        >>> release = TemporalRelease(plan, Histogram.of(Alphabet("ab")))
        >>> told = [release(["a", "b", "b", "a", "b"]) for _ in range(4)]
        >>> release.leakage.event <= TemporalDP(1.0)
        True

    References:
        [TPL, Fig. 1 and Alg. 8]
    """

    def __init__(
        self,
        plan: TemporalPlan,
        make: Maker,
        *,
        stream: str | None = None,
        randomness: Randomness | None = None,
        purpose: Purpose = Purpose.RELEASE,
    ) -> None:
        self._coins = secure() if randomness is None else randomness
        if self._coins.simulated and purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a temporal release")
        if stream is None and self._coins.addressed and not self._coins.simulated:
            raise InvalidParameter("stream", None, "be named, with keyed coins")
        self._stream = "" if stream is None else stream
        self._print = digest(plan.fingerprint, purpose.value)
        self.plan = plan
        self._make = make
        self._account = TemporalAccount(plan.backward, plan.forward)
        self._budgets = None if plan.steps is None else plan.budgets
        self._online = None
        if plan.steps is None:
            self._online = OnlineBudget.begin(plan.backward, plan.forward, plan.alpha)

    @property
    def leakage(self) -> TemporalLeakage:
        """What every release so far leaks of its moment."""
        return self._account.leakage()

    @property
    def spent(self) -> TemporalDP:
        """The largest of them."""
        return self.leakage.event if len(self._account) else TemporalDP(0.0)

    @guarded
    def __call__(self, value: Any) -> Any:
        """Release the value of this moment.

        Raises:
            BudgetExceeded: If all releases that were planned have happened, or the mechanism leaks
                more than the budget it was made for; nothing was drawn.
        """
        sequence, budget = len(self._account), self._budget()
        mechanism = self._make(budget)
        charge = mechanism.epsilon
        if charge > budget:
            raise BudgetExceeded("temporal", sequence, TemporalDP(charge), TemporalDP(budget))
        if (check := getattr(mechanism, "check", None)) is not None:
            check(value)
        coins = self._own_coins(mechanism, sequence)
        # Charged before anything is drawn: an interrupted release is one that happened.
        self._charge(charge)
        return mechanism(value, coins)

    def _own_coins(self, mechanism: Mechanism, sequence: int) -> Randomness:
        """The coins of a moment: another plan, or another mechanism, has others."""
        if not self._coins.addressed:
            return self._coins
        try:
            plan = digest(self._print, content(mechanism))
        except TypeError:
            rule = "be a dataclass or have a fingerprint, with keyed coins"
            raise InvalidParameter("make", type(mechanism).__name__, rule) from None
        return self._coins.at(Address(Domain.TEMPORAL, plan, self._stream, sequence))

    @guarded
    def skip(self) -> None:
        """A moment at which nothing is released; later ones of an endless stream may get more."""
        self._budget()
        self._charge(0.0)

    def _charge(self, epsilon: float) -> None:
        self._account.charge(epsilon)
        if self._online is not None:
            self._online = self._online.spend(epsilon)

    def _budget(self) -> float:
        if self._online is not None:
            return self._online.offered
        if self._budgets is None or len(self._account) >= self._budgets.size:
            left = TemporalDP(max(0.0, self.plan.alpha - self.spent.alpha))
            raise BudgetExceeded("temporal", len(self._account), TemporalDP(math.inf), left)
        return float(self._budgets[len(self._account)])
