"""How much a key may ask for in a second, and how often an address may guess.

A limit is a bucket that fills at a steady rate up to its burst. What is remembered of it is one
whole number, the nanosecond at which it is full again, so that nothing is ever lost to rounding,
and a bucket that is full need not be remembered at all.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from sfumato.core import checks
from sfumato.core.guard import Guarded, guarded

SECOND = 1_000_000_000
"""Nanoseconds: clocks here are whole numbers of them (`time.monotonic_ns`)."""
_MOST_PER_SECOND = 10**9
_WIDEST_BURST = 10**12


@dataclass(frozen=True, slots=True)
class Limit:
    """A steady rate, and how much may come at once after a pause.

    Attributes:
        per_second: What is allowed for ever.
        burst: What a bucket that is full holds.

    Examples:
        >>> Limit(per_second=2, burst=10)
        Limit(per_second=2, burst=10)
    """

    per_second: int
    burst: int

    def __post_init__(self) -> None:
        checks.count("per_second", self.per_second, at_most=_MOST_PER_SECOND)
        checks.count("burst", self.burst, at_most=_WIDEST_BURST)


# More than one honest asker needs, less than makes others wait: two seconds' worth at once.
_USUAL_REQUESTS, _USUAL_EVENTS = Limit(1_000, 2_000), Limit(100_000, 200_000)
_USUAL_FAILURES = Limit(5, 50)


@dataclass(frozen=True, slots=True)
class Rate:
    """What one access key may ask for.

    Attributes:
        requests: Requests, and messages of a socket, whatever they hold.
        events: Events in them.
    """

    requests: Limit = _USUAL_REQUESTS
    events: Limit = _USUAL_EVENTS

    def within(self, other: Rate) -> bool:
        """Whether it is nowhere larger than another."""
        pairs = ((self.requests, other.requests), (self.events, other.events))
        return all(
            one.per_second <= most.per_second and one.burst <= most.burst for one, most in pairs
        )

    def narrowed(self, other: Rate) -> Rate:
        """The smaller of two, part by part."""
        pairs = ((self.requests, other.requests), (self.events, other.events))
        return Rate(
            *(
                Limit(min(one.per_second, most.per_second), min(one.burst, most.burst))
                for one, most in pairs
            )
        )


USUAL_RATE = Rate()
WIDEST_RATE = Rate(*2 * (Limit(_MOST_PER_SECOND, _MOST_PER_SECOND),))
"""Of whoever has the files in his hands: nothing that he hands out is more."""


def taken(full_at: int, limit: Limit, now: int, cost: int) -> tuple[int, int]:
    """Take from a bucket, or say how long to wait for it.

    More than a whole bucket may be taken from a full one, and is paid for afterwards: a batch that
    is larger than the burst waits its time, and is not refused for ever.

    Args:
        full_at: When the bucket is full again; any time that has passed stands for a full one.
        limit: Its rule.
        now: The time, in nanoseconds.
        cost: How much is asked for.

    Returns:
        When it is full again then, and 0; or the same as before, and the nanoseconds to wait.

    Examples:
        >>> limit = Limit(per_second=2, burst=3)
        >>> taken(0, limit, now=0, cost=3)
        (1500000000, 0)
        >>> taken(1500000000, limit, now=0, cost=1)
        (1500000000, 500000000)
    """
    begins = max(full_at, now)
    needed = min(cost, limit.burst)
    # Full in no more than the time in which the rest of the burst comes back.
    latest = now + (limit.burst - needed) * SECOND // limit.per_second
    if begins > latest:
        return full_at, begins - latest
    return begins + -(-cost * SECOND // limit.per_second), 0


def retry_after(wait: int) -> str:
    """Nanoseconds to wait as the header `Retry-After` says them: whole seconds, rounded up.

    Examples:
        >>> retry_after(1), retry_after(2_000_000_000)
        ('1', '2')
    """
    return str(max(1, -(-wait // SECOND)))


class Buckets(Guarded):
    """The buckets that are not full, at most so many of them.

    A full bucket is forgotten without anybody noticing. If all of a crowd are in use, the one that
    is full soonest makes room: who asks hardest is remembered longest.
    """

    def __init__(self, most: int = 65_536) -> None:
        self._most = checks.count("most", most)
        self._full_at: dict[str, int] = {}

    @guarded
    def take(self, name: str, limit: Limit, now: int, cost: int = 1) -> int:
        """Take from the bucket of a name: 0, or the nanoseconds to wait."""
        full_at, wait = taken(self._full_at.get(name, now), limit, now, cost)
        if name not in self._full_at and len(self._full_at) >= self._most:
            self._make_room(now)
        self._full_at[name] = full_at
        return wait

    def _make_room(self, now: int) -> None:
        busy = {name: at for name, at in self._full_at.items() if at > now}
        # A quarter goes at once: looking through all for each newcomer would be work for nothing.
        for name in sorted(busy, key=busy.__getitem__)[: len(busy) - 3 * self._most // 4]:
            del busy[name]
        self._full_at = busy

    @guarded
    def __len__(self) -> int:
        return len(self._full_at)


class KeyRates:
    """The limits of access keys in use, on this node.

    Examples:
        >>> rates, rate = KeyRates(), Rate(requests=Limit(1, 1))
        >>> rates.request("k1", rate, now=0), rates.request("k1", rate, now=0)
        (0, 1000000000)
        >>> rates.request("k2", rate, now=0)
        0
    """

    def __init__(self) -> None:
        self._requests, self._events = Buckets(), Buckets()

    def request(self, key: str, rate: Rate, now: int) -> int:
        """Count a request, before its body is read: 0, or the nanoseconds to wait."""
        return self._requests.take(key, rate.requests, now)

    def events(self, key: str, rate: Rate, now: int, count: int) -> int:
        """Count the events of a request, all or none: 0, or the nanoseconds to wait."""
        return self._events.take(key, rate.events, now, count)


class FailedAttempts:
    """Slows down who comes without a valid key, by address; who has one is never slowed by it.

    Many honest askers may share an address with one who guesses: a router, a proxy. So an address
    that failed too often is told to wait *when it fails again*; a valid key is let in whatever its
    neighbours did. That costs nothing: a key cannot be guessed at any speed, and what is saved is
    the work and the log lines of refusals.
    """

    def __init__(self, limit: Limit = _USUAL_FAILURES, most: int = 10_000) -> None:
        self._limit, self._buckets = limit, Buckets(most)

    def failed(self, peer: str | None, now: int) -> int:
        """Count a failure: 0 if it is answered and logged as such, or the nanoseconds to wait."""
        return self._buckets.take(neighbourhood(peer), self._limit, now)


def neighbourhood(peer: str | None) -> str:
    """Whom an address stands for: itself, or the network of one IPv6 customer.

    Examples:
        >>> neighbourhood("192.0.2.7"), neighbourhood("2001:db8::7"), neighbourhood(None)
        ('192.0.2.7', '2001:db8::', 'unknown')
        >>> neighbourhood("::ffff:192.0.2.7")
        '192.0.2.7'
    """
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return "unknown"  # a socket of the file system, or no socket at all
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    # Whoever has one IPv6 address has 2**64 of them, and could fail from a new one each time.
    network = int(address) >> 64 << 64
    return str(ipaddress.IPv6Address(network))
