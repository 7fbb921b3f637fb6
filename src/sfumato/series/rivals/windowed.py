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
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.errors import BudgetExceeded, InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.numerics import add_up, up
from sfumato.core.randomness import Randomness
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.noise.number_noise import on_lattice
from sfumato.series.memory import Memory
from sfumato.series.series_release import SeriesMethod, Unit
from sfumato.series.series_spec import SeriesSpec

LEAST_BUDGET = 1e-5
"""A publication with less is not tried: its noise would be 100 000 times the sensitivity."""
MOST_STEPS = 10**6
"""Steps of a window at most: each is remembered."""
# What a share gives up so that shares add up to the whole.
_HAIR = 2.0**-50


def noise_within(sensitivity: float, budget: float) -> LaplaceNoise:
    """Laplace noise that leaks a hair less than a budget, so that shares add up to the whole.

    Examples:
        >>> noise_within(1.0, 1e-4).leakage < PureDP(1e-4)
        True
    """
    return LaplaceNoise.at(sensitivity, checks.epsilon("epsilon", budget) * (1 - _HAIR))


@dataclass(slots=True)
class Window(Memory):
    """What each of the last steps leaked and published with: rings, oldest next.

    Attributes:
        last: What was released last.
        asked: What the question of each step leaked.
        told: What its publication leaked.
        taken: The budget that its publication was planned with.
        place: Where the next step goes.
        saved: Shares that were not used.
        silent: Steps that must not publish.
        leaked: The exact sum of `asked` and `told`; follows from them.
        planned: That of `taken`.
    """

    last: float
    asked: Floats
    told: Floats
    taken: Floats
    # Sums follow from the rings: they are not stored, but made anew.
    parameters: ClassVar[frozenset[str]] = frozenset({"leaked", "planned"})
    place: int = 0
    saved: int = 0
    silent: int = 0
    leaked: Fraction = Fraction(0)
    planned: Fraction = Fraction(0)

    def restore(self, arrays: Mapping[str, Floats]) -> None:
        """Go on from what was stored; sums are made anew."""
        Memory.restore(self, arrays)
        self.leaked = sum(map(Fraction, [*self.asked.tolist(), *self.told.tolist()]), Fraction(0))
        self.planned = sum(map(Fraction, self.taken.tolist()), Fraction(0))

    def advance(self) -> None:
        """Go on to the next step; the oldest one leaves the window."""
        now = self.place = (self.place + 1) % self.asked.size
        self.leaked -= Fraction(self.asked.item(now)) + Fraction(self.told.item(now))
        self.planned -= Fraction(self.taken.item(now))
        self.asked[now] = self.told[now] = self.taken[now] = 0.0

    def charge(self, ring: Floats, leakage: float, limit: Fraction, time: int) -> None:
        """Add to the present step, or refuse."""
        left = limit - self.leaked
        if Fraction(leakage) > left:
            raise BudgetExceeded("series", time, PureDP(leakage), PureDP(float(left)))
        self.leaked += Fraction(leakage)
        ring[self.place] = leakage


@dataclass(frozen=True, slots=True)
class Windowed(SeriesMethod[Window]):
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

    Examples:
        >>> from sfumato.core.purpose import Purpose
        >>> from sfumato.core.randomness import seeded
        >>> series = [900.0, 901.0, 901.0, 902.0, 300.0, 301.0]
        >>> method = BudgetDistribution(sensitivity=1.0, epsilon=2.0, window=4)
        >>> method.guarantee <= PureDP(2.0)
        True
        >>> method.release(series, seeded(1), Purpose.SIMULATION).round(1)
        array([898.7, 898.7, 898.7, 901.8, 308.4, 308.4])
        >>> absorbing = BudgetAbsorption(sensitivity=1.0, epsilon=2.0, window=4)
        >>> absorbing.release(series, seeded(3), Purpose.SIMULATION).round(1)
        array([898.4, 898.4, 898.4, 898.4, 298.2, 298.2])
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
        # Made here: noise for another sensitivity, budget or window cannot be held.
        noise = noise_within(checks.positive("sensitivity", self.sensitivity), share)
        object.__setattr__(self, "dissimilarity", noise)
        for name in ("sensitivity", "epsilon", "initial"):
            exact = float(checks.numbers(name, getattr(self, name)))
            object.__setattr__(self, name, exact)

    @classmethod
    def of(cls, spec: SeriesSpec) -> Self:
        """For a spec: never a shorter window than was asked for, even for few values."""
        return cls(spec.sensitivity, spec.pure(spec.window), spec.window)

    @property
    def guarantee(self) -> PureDP:
        """What any window of steps promises; a step that would break it is refused."""
        asking = up(self.window * self.dissimilarity.leakage.epsilon)
        return PureDP(add_up(asking, self.epsilon / 2))

    @abstractmethod
    def offer(self, memory: Window) -> float:
        """What the next step may publish with; 0 if it cannot."""

    @abstractmethod
    def take(self, memory: Window, budget: float) -> None:
        """The budget that was offered is used."""

    def memory(self) -> Window:
        """Nothing was published yet."""
        return Window(
            self.initial, np.zeros(self.window), np.zeros(self.window), np.zeros(self.window)
        )

    def answer(
        self, memory: Window, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """A new noisy value, or the last release again.

        Raises:
            BudgetExceeded: If a draw would break the guarantee of a window; it is not made.
        """
        limit, asking = Fraction(self.guarantee.epsilon), self.dissimilarity
        places = on_lattice([value, memory.last], asking.step)
        distance = asking.step * abs(float(places[0]) - float(places[1]))
        # From here on the oldest step is outside of every window that the present one is in.
        memory.advance()
        budget = self.offer(memory)
        if budget:
            memory.charge(memory.asked, asking.leakage.epsilon, limit, time)
            if float(asking.perturb(distance, coins)) > self.sensitivity / budget:
                noise = noise_within(self.sensitivity, budget)
                memory.charge(memory.told, noise.leakage.epsilon, limit, time)
                self.take(memory, budget)
                memory.last = float(noise.perturb(value, coins))
        now = memory.place
        return memory.last, add_up(memory.asked.item(now), memory.told.item(now))


class BudgetDistribution(Windowed):
    r"""Each publication gets half of what the others in its window left of their half.

    $$\epsilon_t = \tfrac12\Bigl(\tfrac{\epsilon}{2} - \sum_{s=t-w+1}^{t-1} \epsilon_s\Bigr)$$

    where $w$ is `window` and $\epsilon_s$ what step $s$ published with.

    References:
        [Kellaris2014, Thm. 6]
    """

    __slots__ = ()
    name: ClassVar[str] = "bd"

    def offer(self, memory: Window) -> float:
        """Half of what is left."""
        # The paper's formula is in budgets as they were planned, not in what their noise leaks.
        half = float((Fraction(self.epsilon) / 2 - memory.planned) / 2)
        return half if half >= LEAST_BUDGET else 0.0

    def take(self, memory: Window, budget: float) -> None:
        """It is missing in this window."""
        memory.taken[memory.place] = budget
        memory.planned += Fraction(budget)


class BudgetAbsorption(Windowed):
    r"""Every step has an equal share; a publication takes those that were skipped before it.

    A publication that took $n$ shares of $\epsilon / 2w$ silences the $n - 1$ steps after it, so
    that every window contains the shares of its own steps at most.

    References:
        [Kellaris2014, Thm. 7]
    """

    __slots__ = ()
    name: ClassVar[str] = "ba"

    def offer(self, memory: Window) -> float:
        """The share of this step, and those that were saved."""
        if memory.silent:
            memory.silent -= 1
            return 0.0
        memory.saved = min(memory.saved + 1, self.window)
        budget = memory.saved * (self.epsilon / (2 * self.window))
        return budget if budget >= LEAST_BUDGET else 0.0

    def take(self, memory: Window, budget: float) -> None:
        """It is paid back with silence."""
        memory.silent, memory.saved = memory.saved - 1, 0
