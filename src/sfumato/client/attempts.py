"""How often and how long to try: the part of a retry that knows no network."""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass
from typing import Protocol

from sfumato.client.client_errors import ServiceUnavailable
from sfumato.core import checks
from sfumato.core.errors import InvalidParameter


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a client waits, and how often it asks again.

    Attributes:
        timeout: Seconds that one attempt may take.
        retries: How many attempts may follow the first.
        deadline: Seconds that all of them may take together, with what is waited in between.
        first_wait: Seconds before the second attempt; doubled for each after it.
        longest_wait: Seconds that are waited at most, unless the service asks for more.

    Examples:
        >>> Patience(retries=2, deadline=5.0)
        Patience(timeout=10.0, retries=2, deadline=5.0, first_wait=0.05, longest_wait=5.0)
    """

    timeout: float = 10.0
    retries: int = 8
    deadline: float = 60.0
    first_wait: float = 0.05
    longest_wait: float = 5.0

    def __post_init__(self) -> None:
        for name in ("timeout", "deadline", "first_wait", "longest_wait"):
            checks.positive(name, getattr(self, name))
        if self.retries < 0:
            raise InvalidParameter("retries", self.retries, "be a whole number of at least 0")


class _Dice(Protocol):
    def random(self) -> float: ...


class Attempts:
    """The attempts of one call, counted; no network and no sleep in here.

    Args:
        patience: How long, how often.
        dice: For the spread of the waits; the system's if None.

    Examples:
        >>> class Fair:
        ...     def random(self):
        ...         return 1.0
        >>> attempts = Attempts(Patience(first_wait=0.1), dice=Fair())
        >>> [attempts.wait("no connection") for _ in range(3)]
        [0.1, 0.2, 0.4]
        >>> attempts.wait("no room", asked=3)
        3.0
    """

    def __init__(self, patience: Patience, dice: _Dice | None = None) -> None:
        self._patience = patience
        self._dice: _Dice = random.SystemRandom() if dice is None else dice
        self.begin()

    def begin(self) -> None:
        """Count anew: something was heard."""
        self._failed = 0
        self._until = time.monotonic() + self._patience.deadline

    def left(self) -> float:
        """Seconds that the next attempt may take."""
        return max(min(self._patience.timeout, self._until - time.monotonic()), 0.001)

    def wait(self, why: str, asked: float = 0.0) -> float:
        """Seconds to wait before the next attempt.

        Args:
            why: What became of the last one, for the message.
            asked: What the service asked for (Retry-After).

        Raises:
            ServiceUnavailable: If there is no attempt left, or no time for one.
        """
        self._failed += 1
        patience = self._patience
        grown = patience.first_wait * 2.0 ** min(self._failed - 1, 60)
        # Half of the wait is drawn: clients that failed together do not come back together.
        spread = min(grown, patience.longest_wait) * (0.5 + 0.5 * self._dice.random())
        wait = max(spread, float(asked))
        if self._failed > patience.retries or time.monotonic() + wait > self._until:
            raise ServiceUnavailable(why, self._failed)
        return wait


def retry_after(header: str | None) -> float:
    """Seconds that a service asks for; 0 if it does not say, or says a date.

    Examples:
        >>> retry_after("2"), retry_after(None), retry_after("Wed, 21 Oct 2015 07:28:00 GMT")
        (2.0, 0.0, 0.0)
    """
    try:
        seconds = float(header or 0)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
