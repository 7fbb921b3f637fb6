"""Laws of limits: exact in whole nanoseconds, never more than rate and burst allow, bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.service.rate_limits import (
    SECOND,
    Buckets,
    FailedAttempts,
    KeyRates,
    Limit,
    Rate,
    neighbourhood,
    retry_after,
    taken,
)

LIMITS = st.builds(Limit, st.integers(1, 10**6), st.integers(1, 10**4))
ASKED = st.lists(st.tuples(st.integers(0, 3 * SECOND), st.integers(1, 50)), max_size=40)


@given(LIMITS, ASKED)
def test_no_more_is_taken_than_the_burst_and_what_comes_back(
    limit: Limit, asked: list[tuple[int, int]]
) -> None:
    now = full_at = 0
    admitted: list[tuple[int, int]] = []
    for pause, cost in asked:
        now += pause
        full_at, wait = taken(full_at, limit, now, cost)
        if wait == 0:
            admitted.append((now, cost))
    for place, (begun, _) in enumerate(admitted):
        whole = 0
        for moment, cost in admitted[place:]:
            # What is larger than a bucket is taken from a full one, and paid for afterwards.
            excess = max(0, cost - limit.burst)
            due = limit.burst * SECOND + limit.per_second * (moment - begun)
            assert (whole + cost - excess) * SECOND <= due
            whole += cost


@given(LIMITS, st.integers(0, SECOND), st.integers(0, SECOND), st.integers(1, 50))
def test_the_wait_is_the_shortest_that_suffices(
    limit: Limit, full_in: int, now: int, cost: int
) -> None:
    full_at = now + full_in
    after, wait = taken(full_at, limit, now, cost)
    if wait == 0:
        assert after >= full_at
        return
    assert after == full_at  # who is refused has taken nothing
    assert taken(full_at, limit, now + wait, cost)[1] == 0
    assert taken(full_at, limit, now + wait - 1, cost)[1] == 1


@given(LIMITS, st.integers(0, 10**12), st.integers(0, 10**12), st.integers(1, 10**6))
def test_a_bucket_that_is_full_may_be_forgotten(
    limit: Limit, was: int, now: int, cost: int
) -> None:
    if was <= now:
        assert taken(was, limit, now, cost) == taken(now, limit, now, cost)
        assert taken(was, limit, now, cost)[1] == 0  # however large: none waits for ever


def test_a_burst_and_then_the_steady_rate() -> None:
    buckets, limit = Buckets(), Limit(per_second=4, burst=3)
    assert [buckets.take("k", limit, 0) for _ in range(4)] == [0, 0, 0, SECOND // 4]
    assert buckets.take("k", limit, SECOND // 4 - 1) == 1
    assert buckets.take("k", limit, SECOND // 4) == 0
    assert buckets.take("other", limit, 0) == 0


def test_a_crowd_takes_bounded_memory_and_the_busiest_are_remembered() -> None:
    buckets, slow = Buckets(most=100), Limit(per_second=1, burst=1)
    assert buckets.take("hardest", slow, 0, cost=10**6) == 0
    for name in range(10_000):
        buckets.take(f"address {name}", slow, name)
        assert len(buckets) <= 100
    assert buckets.take("hardest", slow, 10_000) > 0


def test_keys_are_counted_apart_and_requests_apart_from_events() -> None:
    rates, rate = KeyRates(), Rate(Limit(1, 1), Limit(10, 10))
    assert rates.request("a", rate, 0) == 0 < rates.request("a", rate, 0)
    assert rates.events("a", rate, 0, 10) == 0 < rates.events("a", rate, 0, 1)
    assert rates.request("b", rate, 0) == 0
    # A batch larger than the burst is let through when nothing is owed, and owes its whole time.
    assert rates.events("b", rate, 0, 100) == 0
    assert rates.events("b", rate, 0, 1) == 100 * SECOND // 10 - 9 * SECOND // 10


def test_failures_are_slowed_by_address_and_no_neighbour_by_another() -> None:
    attempts = FailedAttempts(Limit(1, 2))
    assert [attempts.failed("192.0.2.1", 0) for _ in range(3)] == [0, 0, SECOND]
    assert attempts.failed("192.0.2.2", 0) == 0
    assert attempts.failed("2001:db8::1", 0) == attempts.failed("2001:db8::2", 0) == 0
    assert attempts.failed("2001:db8::3", 0) == SECOND  # one customer, another address
    assert attempts.failed("2001:db8:0:1::1", 0) == 0
    assert neighbourhood("/run/sfumato.sock") == neighbourhood(None) == "unknown"


@pytest.mark.parametrize(("wait", "told"), [(1, "1"), (SECOND, "1"), (SECOND + 1, "2")])
def test_who_waits_as_long_as_he_is_told_has_waited_enough(wait: int, told: str) -> None:
    assert retry_after(wait) == told


@pytest.mark.parametrize("parts", [(0, 1), (1, 0), (1.5, 1), (10**10, 1), (1, 10**13)])
def test_a_limit_of_nothing_or_of_no_meaning_is_refused(parts: tuple[int, int]) -> None:
    with pytest.raises(InvalidParameter):
        Limit(*parts)
