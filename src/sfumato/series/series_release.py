"""Real-valued series: one shape for every method of releasing one.

A method is frozen parameters. `step(state, values, coins) -> (events, state)` is a function of
these alone; a `SeriesRelease` holds the state of one series under a lock and calls it value by
value. Coins are addressed by the moment, so that a series that was stopped goes on as if it had
not been.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core import checks
from sfumato.core.arrays import Floats
from sfumato.core.digest import digest, fields_content
from sfumato.core.errors import BudgetExceeded, InsecureRandomness, InvalidParameter
from sfumato.core.events import Outcome
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.guard import Guarded, guarded
from sfumato.core.numerics import add_up
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Domain, Randomness, StreamCoins
from sfumato.core.state import SeriesState
from sfumato.series.memory import Memory
from sfumato.series.risk import Risk, measured_risk


class Unit(StrEnum):
    """Whose data are protected together.

    Attributes:
        USER: All values of a person, who may be in every one of them.
        EVENT: One value; who is in several is protected in each of them alone.
        WINDOW: Any few successive values.

    Examples:
        >>> Unit.EVENT.value
        'event level'
    """

    USER = "user level"
    EVENT = "event level"
    WINDOW = "w-event level"


Held = TypeVar("Held", bound=Memory)
"""The memory of a method."""


@dataclass(frozen=True, slots=True)
class SeriesEvent:
    """What left at one moment of a series, and what it cost.

    Attributes:
        sequence: The moment, counted from 0.
        released: The value that left; None if the moment passed without one.
        charge: What its draws add to the account of the method: at user and window level a pure
            epsilon, a squared ratio of Gaussian noise, or whatever else adds up for the kind of
            noise; at event level all that is ever told of the value of this moment.

    Examples:
        >>> SeriesEvent(3, None, 0.0).outcome
        <Outcome.SKIPPED: 'skipped'>
    """

    sequence: int
    released: float | None
    charge: float

    @property
    def outcome(self) -> Outcome:
        """Whether a value left."""
        return Outcome.SKIPPED if self.released is None else Outcome.RELEASED


class SeriesMethod(ABC, Generic[Held]):
    """A way to release a series of numbers, for a stated sensitivity of every value.

    Attributes:
        name: What tables and commands call it.
        unit: Whose data are protected together.
        online: Whether each value leaves when it comes; else the whole series is needed first.
        secret: Whether its memory holds true values or noise: such a state is never stored.
        skips: Whether a moment may have no value.
    """

    name: ClassVar[str]
    unit: Unit = Unit.USER
    online: ClassVar[bool] = True
    secret: ClassVar[bool] = False
    skips: ClassVar[bool] = False

    # What a method is --------------------------------------------------------------------------

    @property
    @abstractmethod
    def guarantee(self) -> PureDP | ApproxDP:
        """What the whole series promises, computed from the noise that is drawn."""

    @property
    def most(self) -> int | None:
        """How many values a series may have; None if it may go on for ever."""
        return getattr(self, "length", None)

    @property
    def error_variances(self) -> Floats | None:
        """Variance of the error of each value, where noise is all of it; else None."""
        return None

    @property
    def fingerprint(self) -> str:
        """Identifies the method and all its parameters; hashed once, for nothing of it changes."""
        known: str | None = getattr(self, "_fingerprint", None)
        if known is None:
            known = digest(self.name, fields_content(self))
            object.__setattr__(self, "_fingerprint", known)  # no field: it follows from those
        return known

    @abstractmethod
    def memory(self) -> Held:
        """What is remembered before the first value."""

    @abstractmethod
    def answer(
        self, memory: Held, time: int, value: float, coins: Randomness
    ) -> tuple[float, float]:
        """What leaves for one value, and its charge; the memory moves on.

        A value that is refused is refused before anything is drawn or remembered.
        """

    def skip(self, memory: Held, time: int) -> None:
        """Let a moment pass that has no value: nothing is measured, and nothing leaves."""

    def answers(
        self, memory: Held, time: int, values: Sequence[float | None], coins: StreamCoins
    ) -> list[SeriesEvent]:
        """What leaves for some successive values."""
        events = []
        for moment, value in enumerate(values, start=time):
            if value is None:
                self.skip(memory, moment)
                events.append(SeriesEvent(moment, None, 0.0))
            else:
                told = self.answer(memory, moment, value, coins.at(moment))
                events.append(SeriesEvent(moment, *told))
        return events

    def check(self, time: int, values: Sequence[float | None]) -> None:
        """Refuse values before anything is drawn; none is quoted."""
        given = [value for value in values if value is not None]
        checks.numbers("series", given)
        if len(given) < len(values) and not self.skips:
            raise InvalidParameter(
                "missing", "skip", "come with a method that measures and filters"
            )
        end = time + len(values)
        if self.most is not None and end > self.most:
            if time >= self.most:
                raise BudgetExceeded("series", time, self.guarantee, PureDP(0.0))
            rule = f"have at most {self.most} values, as many as the budget is for"
            raise InvalidParameter("series", end, rule)

    # One shape for all -------------------------------------------------------------------------

    def start(self, coins: StreamCoins) -> SeriesState:
        """The state before the first value."""
        return SeriesState(coins.plan, 0, self.memory().arrays())

    def restored(self, state: SeriesState, coins: StreamCoins) -> Held:
        """The memory of a state.

        Raises:
            InvalidParameter: If the state was begun with another method or for another purpose.
        """
        if state.plan != coins.plan:
            rule = "be the one it was begun with, and for the same purpose"
            raise InvalidParameter("state.plan", "another", rule)
        checks.count("state.time", state.time, at_least=0)
        memory = self.memory()
        memory.restore(state.arrays)
        return memory

    def step(
        self, state: SeriesState, values: Sequence[float | None], coins: StreamCoins
    ) -> tuple[list[SeriesEvent], SeriesState]:
        """Release the next values: a function of state, values and coins.

        Args:
            state: Where the series is; see `start`.
            values: The true values; None where a moment has none.
            coins: Of this series under this method; see `own_coins`.

        Examples:
            >>> from sfumato.core.randomness import seeded
            >>> from sfumato.series.silence import Silence
            >>> coins = Silence(5.0).own_coins(seeded(1), "a", Purpose.SIMULATION)
            >>> events, state = Silence(5.0).step(Silence(5.0).start(coins), [1.0, 9.0], coins)
            >>> [event.released for event in events], state.time
            ([5.0, 5.0], 2)
        """
        memory = self.restored(state, coins)
        self.check(state.time, values)
        events = self.answers(memory, state.time, values, coins)
        spent = reduce(add_up, (event.charge for event in events), state.spent)
        return events, SeriesState(state.plan, state.time + len(events), memory.arrays(), spent)

    def begin(
        self,
        randomness: Randomness,
        *,
        name: str | None = None,
        purpose: Purpose = Purpose.RELEASE,
        state: SeriesState | None = None,
    ) -> SeriesRelease:
        """Begin a series, to be released value by value; offline methods refuse.

        Args:
            randomness: Source of coins.
            name: Of the series; needed with keyed coins, which are one set for each name.
            purpose: A simulation may use seeded coins; a release may not.
            state: Where to go on from; the beginning if not given.
        """
        coins = self.own_coins(randomness, name, purpose)
        if not self.online:
            raise InvalidParameter("method", self.name, "be online to begin; use release")
        # A state is read before anything is drawn: that of another plan is refused here.
        memory = self.memory() if state is None else self.restored(state, coins)
        return SeriesRelease(self, memory, coins, self.start(coins) if state is None else state)

    def release(
        self,
        series: ArrayLike,
        randomness: Randomness,
        purpose: Purpose = Purpose.RELEASE,
        *,
        name: str | None = None,
    ) -> Floats:
        """Release a whole series; online methods look at one value at a time."""
        values, coins = checked_series(series), self.own_coins(randomness, name, purpose)
        self.check(0, values.tolist())
        return self.released(self.memory(), values, coins)

    def released(self, memory: Held, values: Floats, coins: StreamCoins) -> Floats:
        """What leaves for a whole series that was checked."""
        events = self.answers(memory, 0, values.tolist(), coins)
        return np.array([event.released for event in events])

    def own_coins(self, randomness: Randomness, name: str | None, purpose: Purpose) -> StreamCoins:
        """The coins of one series under this method, or why there are none.

        Another method, or the same one with another budget, has other coins: two releases of a
        value with the same ones would give it away. A simulation has others than a release.
        """
        if randomness.simulated and purpose is not Purpose.SIMULATION:
            raise InsecureRandomness("a release of a series")
        if name is None and randomness.addressed:
            if not randomness.simulated:
                rule = "be given, with keyed coins: one set for each series"
                raise InvalidParameter("name", None, rule)
            name = f"simulated {randomness.word()}"  # one after the other from one seed
        return StreamCoins(randomness, Domain.SERIES, self.plan(purpose), name or "")

    def plan(self, purpose: Purpose) -> str:
        """Fingerprint of all that shapes the answers, the purpose included."""
        return digest("series plan", self.fingerprint, purpose.value)

    def risk(self, memory: Held, released: Sequence[float | None]) -> Risk | None:
        """What is expected of the error, from public things alone; None if that cannot be said."""
        variances = self.error_variances
        return None if variances is None else measured_risk(released, variances)


class SecretEvents(SeriesMethod[Held]):
    """A method that protects one value at a time, and remembers what must not be stored."""

    unit = Unit.EVENT
    secret: ClassVar[bool] = True


class SeriesRelease(Guarded):
    """One series on its way, of any method.

    Attributes:
        method: How it is released.
    """

    def __init__(
        self, method: SeriesMethod[Any], memory: Memory, coins: StreamCoins, state: SeriesState
    ) -> None:
        self.method = method
        self._memory = memory
        self._coins = coins
        self._time, self._spent = state.time, state.spent
        self._most = math.inf if method.most is None else method.most

    @property
    def time(self) -> int:
        """Moments that have passed."""
        return self._time

    @property
    @guarded
    def state(self) -> SeriesState:
        """Where it is; to be stored, unless its method is secret."""
        return self._state()

    def _state(self) -> SeriesState:
        return SeriesState(self._coins.plan, self._time, self._memory.arrays(), self._spent)

    @property
    @guarded
    def memory(self) -> Memory:
        """A copy of what it remembers."""
        copied: Memory = self.method.restored(self._state(), self._coins)
        return copied

    @guarded
    def risk(self, released: Sequence[float | None] = ()) -> Risk | None:
        """What is expected of the error of what was released so far."""
        return self.method.risk(self._memory, released)

    def step(self, value: float) -> float:
        """Release one value: the true one goes in, the private one comes out.

        Raises:
            BudgetExceeded: If all values that the budget is for were released.
            InvalidParameter: If the value is no number, or far too large; it is not quoted.
        """
        with self._lock:
            time = self._time
            if time >= self._most:
                raise BudgetExceeded("series", time, self.method.guarantee, PureDP(0.0))
            exact = _number(value)
            # Counted before anything is drawn: an interrupted release is one that happened.
            self._time = time + 1
            try:
                answer = self.method.answer(self._memory, time, exact, self._coins.at(time))
            except InvalidParameter:
                self._time = time  # refused, so nothing was drawn
                raise
            self._spent = add_up(self._spent, answer[1])
            return answer[0]

    @guarded
    def advance(self, values: Sequence[float | None]) -> list[SeriesEvent]:
        """Release some values, None where a moment has none: all of them, or none."""
        events, state = self.method.step(self._state(), values, self._coins)
        self._memory = self.method.restored(state, self._coins)
        self._time, self._spent = state.time, state.spent
        return events

    def skip(self) -> None:
        """Let a moment pass that has no value.

        Raises:
            BudgetExceeded: If all moments that the budget is for have passed.
        """
        self.advance([None])


def checked_series(series: ArrayLike) -> Floats:
    """A series of finite numbers, or what must hold; no value is quoted."""
    values = checks.numbers("series", series)
    if values.ndim != 1 or values.size == 0:
        raise InvalidParameter("series", values.shape, "be a list of at least one number")
    return values


def _number(value: float) -> float:
    try:
        exact = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("value", "something else", "be a finite number") from None
    if not math.isfinite(exact):
        raise InvalidParameter("value", "something else", "be a finite number")
    return exact
