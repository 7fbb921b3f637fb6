"""How often and how long a client tries."""

import time

import pytest

from sfumato.client.attempts import Attempts, Patience
from sfumato.client.client_errors import ServiceUnavailable
from sfumato.core.errors import InvalidParameter


def test_waits_grow_up_to_the_longest_and_are_spread() -> None:
    waits = []
    for _ in range(50):
        attempts = Attempts(Patience(retries=7, first_wait=0.1, longest_wait=0.4))
        waits.append([attempts.wait("away") for _ in range(6)])
    for place, most in enumerate((0.1, 0.2, 0.4, 0.4, 0.4, 0.4)):
        column = [row[place] for row in waits]
        assert all(most / 2 <= wait <= most for wait in column)
        assert len(set(column)) > 40


def test_attempts_end_and_say_how_many_there_were() -> None:
    attempts = Attempts(Patience(retries=2))
    attempts.wait("away")
    attempts.wait("away")
    with pytest.raises(ServiceUnavailable, match="after 3 attempts: away") as ended:
        attempts.wait("away")
    assert ended.value.attempts == 3


def test_a_wait_that_ends_after_the_deadline_is_not_begun() -> None:
    attempts = Attempts(Patience(deadline=5.0))
    with pytest.raises(ServiceUnavailable):
        attempts.wait("no room", asked=6.0)


def test_an_attempt_gets_no_more_than_what_the_deadline_leaves() -> None:
    attempts = Attempts(Patience(timeout=10.0, deadline=0.2))
    assert attempts.left() <= 0.2
    time.sleep(0.21)
    assert attempts.left() == 0.001


def test_something_heard_begins_the_count_anew() -> None:
    attempts = Attempts(Patience(retries=1))
    for _ in range(5):
        attempts.wait("away")
        attempts.begin()


@pytest.mark.parametrize("field", ["timeout", "deadline", "first_wait", "longest_wait"])
def test_a_time_that_is_none_is_refused(field: str) -> None:
    with pytest.raises(InvalidParameter, match=field):
        Patience(**{field: 0.0})  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="retries"):
        Patience(retries=-1)
