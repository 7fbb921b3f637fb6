r"""Endless series under w-event privacy: publish when the value moved, else repeat the last one.

Half of the budget asks, at every step, how far the value is from what was released last; the
other half publishes. A step that publishes nothing leaves its share to others:
`BudgetDistribution` offers half of what the window has left; `BudgetAbsorption` collects the
shares that were skipped, and pays them back with silence.

What is promised is a sum over **any** `window` successive steps, and the sum is kept exactly, in
fractions, from the leakage of the noise that is drawn: before a draw, never after.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Protocol, Self

from sfumato.core import checks
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.numerics import add_up, up
from sfumato.core.randomness import Randomness, StreamCoins
from sfumato.noise.series_noise import LaplaceNoise, on_lattice
from sfumato.series.series_release import SeriesMethod, Unit, checked_series

LEAST_BUDGET = 1e-5
"""A publication with less is not tried: its noise would be 100 000 times the sensitivity."""
MOST_STEPS = 10**6
"""Steps of a window at most: each is remembered."""
_HAIR = 2.0**-50


def noise_within(sensitivity: float, budget: float) -> LaplaceNoise:
    """Laplace noise that leaks a hair less than a budget, so that shares add up to the whole.

    Examples:
        >>> noise_within(1.0, 1e-4).leakage < PureDP(1e-4)
        True
    """
    return LaplaceNoise.at(sensitivity, checks.epsilon("epsilon", budget) * (1 - _HAIR))


@dataclass(frozen=True, slots=True)
class Windowed(SeriesMethod["Publishing"]):
    r"""What the two methods share.

    A step asks $|o - z| + \mathrm{Lap}$, where $z$ is the value and $o$ the last release, and
    publishes if the answer exceeds the scale of the noise that a publication would have. With one
    number per step the distance has the sensitivity of the value. It is taken between points of
    the lattice of the noise, which floats subtract exactly.

    Steps that could not publish anyway ask nothing, and are charged nothing.

    Attributes:
        sensitivity: How far apart two values of a moment may be.
        epsilon: What any `window` successive steps may leak.
        window: How many steps that is.
        initial: What counts as the last release before there is one; public.
        dissimilarity: Noise of the question whether the value moved; follows from the others.
    """

    unit = Unit.WINDOW

    sensitivity: float
    epsilon: float
    window: int
    initial: float = 0.0
    dissimilarity: LaplaceNoise = field(init=False)

    def __post_init__(self) -> None:
        budget = checks.epsilon("epsilon", self.epsilon)
        if checks.count("window", self.window) > MOST_STEPS:
            raise InvalidParameter("window", self.window, f"be at most {MOST_STEPS}")
        share = budget / (2 * self.window)
        checks.numbers("initial", self.initial)
        # Made here: noise for another sensitivity, budget or window cannot be held.
        noise = noise_within(checks.positive("sensitivity", self.sensitivity), share)
        object.__setattr__(self, "dissimilarity", noise)

    @classmethod
    def at(cls, sensitivity: float, epsilon: float, window: int, *, initial: float = 0.0) -> Self:
        """The method for a budget over any `window` successive steps."""
        start = float(checks.numbers("initial", initial))
        return cls(float(sensitivity), float(epsilon), window, start)

    @property
    def guarantee(self) -> PureDP:
        """What any window of steps promises; a step that would break it is refused."""
        asking = up(self.window * self.dissimilarity.leakage.epsilon)
        return PureDP(add_up(asking, self.epsilon / 2))

    @abstractmethod
    def shares(self) -> Shares:
        """The rule of what each step may publish with, at its beginning."""

    def _begin(self, coins: StreamCoins) -> Publishing:
        """Begin a series, which may have no end."""
        return Publishing(self, coins.at(0))


class Shares(Protocol):
    """What each step may publish with; a function of what was published so far."""

    def offer(self) -> float:
        """Go on to the next step: its budget, and 0 if it cannot publish."""

    def take(self) -> None:
        """The budget that was offered is used."""


class BudgetDistribution(Windowed):
    r"""Each publication gets half of what the others in its window left of their half.

    $$\epsilon_t = \tfrac12\Bigl(\tfrac{\epsilon}{2} - \sum_{s=t-w+1}^{t-1} \epsilon_s\Bigr)$$

    where $w$ is `window` and $\epsilon_s$ what step $s$ published with.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = BudgetDistribution.at(sensitivity=1.0, epsilon=2.0, window=4)
        >>> method.guarantee <= PureDP(2.0)
        True
        >>> series = [900.0, 901.0, 901.0, 902.0, 300.0, 301.0]
        >>> method.release(series, seeded(1), Purpose.SIMULATION).round(1)
        array([903.4, 903.4, 903.4, 903.4, 300.3, 300.3])

    References:
        [Kellaris2014, Thm. 6]
    """

    __slots__ = ()
    name: ClassVar[str] = "bd"

    def shares(self) -> Shares:
        """Nothing is published with yet."""
        return _Halves(self.epsilon, self.window)


class BudgetAbsorption(Windowed):
    r"""Every step has an equal share; a publication takes those that were skipped before it.

    A publication that took $n$ shares of $\epsilon / 2w$ silences the $n - 1$ steps after it, so
    that every window contains the shares of its own steps at most.

    Examples:
        >>> from sfumato.core.randomness import seeded
        >>> from sfumato.core.purpose import Purpose
        >>> method = BudgetAbsorption.at(sensitivity=1.0, epsilon=2.0, window=4)
        >>> method.guarantee <= PureDP(2.0)
        True
        >>> series = [900.0, 901.0, 901.0, 902.0, 300.0, 301.0]
        >>> method.release(series, seeded(1), Purpose.SIMULATION).round(1)
        array([899.8, 904.6, 904.6, 904.6, 302.4, 302.4])

    References:
        [Kellaris2014, Thm. 7]
    """

    __slots__ = ()
    name: ClassVar[str] = "ba"

    def shares(self) -> Shares:
        """Nothing was skipped yet."""
        return _Absorbed(self.epsilon / (2 * self.window), self.window)


class Publishing(Guarded):
    """A series that is being released.

    Attributes:
        spent: What the last step leaked, exactly as the noise it drew says.
        published: Whether the last step published; else it repeated. Everybody can see that.
    """

    def __init__(self, method: Windowed, randomness: Randomness) -> None:
        self._method = method
        self._coins = randomness
        self._shares = method.shares()
        self._ledger = Ledger(method.window, Fraction(method.guarantee.epsilon))
        self._asking = method.dissimilarity.leakage.epsilon
        self._last = method.initial
        self.published = False

    @property
    def spent(self) -> Fraction:
        """What the last step leaked."""
        return self._ledger.latest

    @guarded
    def step(self, value: float) -> float:
        """Release one value: a new noisy one, or the last release again.

        Raises:
            InvalidParameter: If the value is not finite or far too large; it is not quoted.
            BudgetExceeded: If a draw would break the guarantee of a window; it is not made.
        """
        exact = float(checked_series([value])[0])
        distance = self._distance(exact)
        self._ledger.advance()
        self.published = False
        budget = self._shares.offer()
        if budget and self._moved(distance, budget):
            self._publish(exact, budget)
        return self._last

    def _distance(self, value: float) -> float:
        step = self._method.dissimilarity.step
        places = on_lattice([value, self._last], step)
        return step * abs(float(places[0]) - float(places[1]))

    def _moved(self, distance: float, budget: float) -> bool:
        self._ledger.charge(self._asking)
        answer = float(self._method.dissimilarity.perturb(distance, self._coins))
        return answer > self._method.sensitivity / budget

    def _publish(self, value: float, budget: float) -> None:
        noise = noise_within(self._method.sensitivity, budget)
        self._ledger.charge(noise.leakage.epsilon)
        self._shares.take()
        self._last = float(noise.perturb(value, self._coins))
        self.published = True


class Ledger(Guarded):
    """What each of the last steps leaked, summed without rounding.

    Args:
        width: How many steps count.
        limit: What they may leak together.

    Examples:
        >>> ledger = Ledger(width=2, limit=Fraction(1))
        >>> for _ in range(3):
        ...     ledger.advance()
        ...     ledger.charge(0.5)
        >>> ledger.charge(0.1)
        Traceback (most recent call last):
        sfumato.core.errors.BudgetExceeded: releasing event 2 of stream 'series' would cost
        PureDP(0.1); its budget leaves PureDP(0) for this step; this event was not released
    """

    def __init__(self, width: int, limit: Fraction) -> None:
        self._limit = limit
        self._steps = deque([Fraction(0)] * width)
        self._total = Fraction(0)
        self._sequence = -1

    @property
    @guarded
    def latest(self) -> Fraction:
        """What the latest step leaked so far."""
        return self._steps[-1]

    @guarded
    def advance(self) -> None:
        """Go on to the next step; the oldest one leaves the window."""
        self._total -= self._steps.popleft()
        self._steps.append(Fraction(0))
        self._sequence += 1

    @guarded
    def charge(self, leakage: float) -> None:
        """Add to the step, or refuse."""
        amount, left = Fraction(leakage), self._limit - self._total
        if amount > left:
            raise BudgetExceeded("series", self._sequence, PureDP(leakage), PureDP(float(left)))
        self._total += amount
        self._steps[-1] += amount


class _Halves:
    """Half of what is left, again and again."""

    def __init__(self, epsilon: float, window: int) -> None:
        self._half = Fraction(epsilon) / 2
        self._taken = deque([Fraction(0)] * window)
        self._total = Fraction(0)
        self._offered = 0.0

    def offer(self) -> float:
        self._total -= self._taken.popleft()
        self._taken.append(Fraction(0))
        half = float((self._half - self._total) / 2)
        self._offered = half if half >= LEAST_BUDGET else 0.0
        return self._offered

    def take(self) -> None:
        self._taken[-1] = Fraction(self._offered)
        self._total += self._taken[-1]


class _Absorbed:
    """Equal shares, saved up and paid back."""

    def __init__(self, share: float, window: int) -> None:
        self._share = share
        self._window = window
        self._saved = 0
        self._silent = 0

    def offer(self) -> float:
        if self._silent:
            self._silent -= 1
            return 0.0
        self._saved = min(self._saved + 1, self._window)
        budget = self._saved * self._share
        return budget if budget >= LEAST_BUDGET else 0.0

    def take(self) -> None:
        self._silent = self._saved - 1
        self._saved = 0
