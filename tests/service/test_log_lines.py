"""Lines of one turn of the event loop leave together, whole, in order, and none in silence."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from sfumato.service.event_log import EventLog
from sfumato.service.log_lines import GatheredLines

_lines = st.lists(st.integers(0, 5_000).map(lambda size: b"x" * size + b"\n"), max_size=20)


def written(lines: list[bytes]) -> list[bytes]:
    """What reaches the system of lines that come in one turn of the loop."""
    found: list[bytes] = []

    async def turn() -> None:
        gathered = GatheredLines(found.append, lambda count: None)
        for line in lines:
            gathered(line)
        assert found == []
        await asyncio.sleep(0)

    asyncio.run(turn())
    return found


@given(_lines)
def test_lines_stay_whole_and_in_order(lines: list[bytes]) -> None:
    found = written(lines)
    assert b"".join(found) == b"".join(lines)
    assert all(part.endswith(b"\n") for part in found)
    assert all(len(part) <= 4_096 or part.count(b"\n") == 1 for part in found)


def test_lines_of_a_turn_are_one_write() -> None:
    assert written([b"one\n", b"two\n", b"three\n"]) == [b"one\ntwo\nthree\n"]


def test_lines_that_cannot_be_written_are_counted_by_the_log() -> None:
    def full(line: bytes) -> None:
        raise OSError("no space left")

    async def turn() -> int:
        log = EventLog(full, b"secret")
        gathered = log.gathered()
        gathered.event("request", status=200)
        gathered.event("request", status=200)
        await asyncio.sleep(0)
        return log.lost

    assert asyncio.run(turn()) == 2
