"""Laws of the queue: every event one reply, in order, within bounds, whatever happens."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.service.gatherer import Gatherer, QueueFull, Stopped
from sfumato.store.live import Asked, Reason, Refused, Reply, Waiting
from sfumato.store.live_columns import EventColumns, ReplyColumns


class CountingRun:
    """Replies with the number of the event; breaks on groups that it is told to."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate, self.asked, self.groups = gate, list[str](), list[int]()
        self.breaks: list[BaseException | None] = []
        self.finished: list[str] = []

    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        if self.gate is not None:
            assert self.gate.wait(10.0)
        if self.breaks and (problem := self.breaks.pop(0)) is not None:
            raise problem
        self.groups.append(len(ids))
        self.asked += ids
        others: dict[int, Reply] = {place: Waiting(int(id_)) for place, id_ in enumerate(ids)}
        return ReplyColumns(len(ids), others=others)

    def finish(self, stream: str) -> Reply | None:
        self.finished.append(stream)
        self.asked.append(f"finish {stream}")
        return None

    def waiting(self) -> int:
        return 0

    def close(self) -> None:
        raise AssertionError("a gatherer leaves that to whoever opened the run")


class Watch:
    def __init__(self) -> None:
        self.answered_events, self.failures = 0, list[str]()

    def answered(self, replies: ReplyColumns, seconds: float) -> None:
        self.answered_events += len(replies)

    def failed(self, problem: BaseException) -> None:
        self.failures.append(type(problem).__name__)


def asked(numbers: Sequence[int]) -> EventColumns:
    return EventColumns.of([Asked(str(number), "u", "secret") for number in numbers])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=40),
    st.integers(1, 50),
    st.lists(st.booleans(), max_size=10),
    st.sets(st.integers(0, 39)),
)
def test_every_event_has_one_reply_in_order(
    sizes: list[int], group: int, broken: list[bool], impatient: set[int]
) -> None:
    """Whatever the sizes of orders and groups, whoever goes away, and whichever groups break."""

    async def run() -> None:
        live, watch = CountingRun(), Watch()
        live.breaks = [OSError("a secret") if each else None for each in broken]
        gatherer = Gatherer(live, watch, queued=10_000, group=group)
        gatherer.start()
        first, waiting = 0, []
        for place, size in enumerate(sizes):
            numbers = range(first, first + size)
            future = gatherer.ask(asked(numbers))
            waiting.append((numbers, future, place in impatient and future.cancel()))
            first += size
            if place % 3 == 0:
                await asyncio.sleep(0)
        for numbers, future, gone in waiting:
            if gone:
                continue
            replies = await future
            unstored = [one for one in replies if isinstance(one, Refused)]
            assert unstored == [] or len(unstored) == len(replies)
            assert all(one.reason is Reason.UNSTORED for one in unstored)
            if not unstored:
                assert replies == [Waiting(number) for number in numbers]
        assert await gatherer.close(5.0)
        assert gatherer.depth == 0
        # What was answered came in order and once; who went away lost no event.
        came = [int(each) for each in live.asked]
        assert came == sorted(set(came))
        assert watch.answered_events == len(came)
        if not any(broken):
            assert came == list(range(first))
        assert all(size <= max(group, *sizes) for size in live.groups)

    asyncio.run(run())


def test_a_counter_that_fails_is_told_of_and_ends_no_worker() -> None:
    class Broken(Watch):
        def answered(self, replies: ReplyColumns, seconds: float) -> None:
            if not self.failures:
                raise ValueError("a secret")
            super().answered(replies, seconds)

    async def run() -> None:
        watch = Broken()
        gatherer = Gatherer(CountingRun(), watch, queued=10, group=10)
        gatherer.start()
        assert await gatherer.ask(asked([1])) == [Waiting(1)]
        assert await gatherer.ask(asked([2])) == [Waiting(2)]
        assert gatherer.alive and await gatherer.close(5.0)
        assert (watch.failures, watch.answered_events) == (["ValueError"], 1)

    asyncio.run(run())


def test_groups_grow_while_one_is_answered() -> None:
    async def run() -> list[int]:
        gate = threading.Event()
        live = CountingRun(gate)
        gatherer = Gatherer(live, Watch())
        gatherer.start()
        futures = [gatherer.ask(asked([0]))]
        while gatherer._orders:  # the worker has taken the first, and waits for the gate
            await asyncio.sleep(0.001)
        futures += [gatherer.ask(asked([number])) for number in range(1, 100)]
        gate.set()
        await asyncio.gather(*futures)
        await gatherer.close(5.0)
        return live.groups

    assert asyncio.run(run()) == [1, 99]


def test_a_full_queue_refuses_whole_orders_and_says_when_to_come() -> None:
    async def run() -> None:
        gate = threading.Event()
        live = CountingRun(gate)
        gatherer = Gatherer(live, Watch(), queued=10, group=5)
        gatherer.start()
        futures = [gatherer.ask(asked(range(8)))]
        with pytest.raises(QueueFull) as refused:
            gatherer.ask(asked(range(8, 11)))
        assert refused.value.seconds >= 1
        futures.append(gatherer.ask(asked([11, 12])))
        with pytest.raises(QueueFull):
            gatherer.check_room()
        gate.set()
        await asyncio.gather(*futures)
        gatherer.check_room()
        await gatherer.close(5.0)
        assert "8" not in live.asked

    asyncio.run(run())


def test_a_broken_group_is_unstored_and_the_next_is_answered() -> None:
    async def run() -> None:
        live, watch = CountingRun(), Watch()
        live.breaks = [RuntimeError("home")]
        gatherer = Gatherer(live, watch)
        gatherer.start()
        [reply] = await gatherer.ask(asked([1]))
        assert isinstance(reply, Refused) and reply.reason is Reason.UNSTORED
        assert "home" not in reply.detail
        assert await gatherer.ask(asked([1])) == [Waiting(1)]
        assert gatherer.alive and watch.failures == ["RuntimeError"]
        await gatherer.close(5.0)

    asyncio.run(run())


def test_a_dead_worker_answers_nobody_and_says_so() -> None:
    async def run() -> None:
        gate = threading.Event()
        live, watch = CountingRun(gate), Watch()
        live.breaks = [SystemExit()]
        gatherer = Gatherer(live, watch, group=1)
        gatherer.start()
        first, second = gatherer.ask(asked([1])), gatherer.ask(asked([2]))
        gate.set()
        for future in (first, second):
            assert all(isinstance(reply, Refused) for reply in await future)
        assert not gatherer.alive and watch.failures == ["SystemExit"]
        with pytest.raises(Stopped):
            gatherer.ask(asked([3]))
        assert gatherer.depth == 0

    asyncio.run(run())


def test_a_run_that_loses_a_reply_is_not_believed() -> None:
    class Short(CountingRun):
        def answer_columns(self, ids: Sequence[str], *others: Any) -> ReplyColumns:
            return super().answer_columns(ids[1:], *others)

    async def run() -> list[Reply]:
        gatherer = Gatherer(Short(), Watch())
        gatherer.start()
        replies = await gatherer.ask(asked([1, 2]))
        await gatherer.close(5.0)
        return replies

    assert all(isinstance(reply, Refused) for reply in asyncio.run(run()))


def test_finishing_comes_after_what_was_asked_before() -> None:
    async def run() -> list[str]:
        gate = threading.Event()
        live = CountingRun(gate)
        gatherer = Gatherer(live, Watch())
        gatherer.start()
        futures: list[asyncio.Future[Any]] = [gatherer.ask(asked([0])), gatherer.ask(asked([1]))]
        futures += [gatherer.finish("u"), gatherer.ask(asked([2]))]
        gate.set()
        await asyncio.gather(*futures)
        await gatherer.close(5.0)
        return live.asked

    assert asyncio.run(run()) == ["0", "1", "finish u", "2"]


def test_closing_answers_what_was_taken_and_takes_nothing_more() -> None:
    async def run() -> None:
        gate = threading.Event()
        live = CountingRun(gate)
        gatherer = Gatherer(live, Watch(), group=1)
        gatherer.start()
        futures = [gatherer.ask(asked([number])) for number in range(5)]
        closing = asyncio.ensure_future(gatherer.close(5.0))
        await asyncio.sleep(0)
        with pytest.raises(Stopped):
            gatherer.ask(asked([9]))
        gate.set()
        assert await closing
        assert [await future for future in futures] == [[Waiting(number)] for number in range(5)]

    asyncio.run(run())


def test_at_the_deadline_what_no_group_began_with_is_left_unanswered() -> None:
    async def run() -> None:
        gate = threading.Event()
        live = CountingRun(gate)
        gatherer = Gatherer(live, Watch(), group=1)
        gatherer.start()
        futures = [gatherer.ask(asked([number])) for number in range(3)]
        while len(gatherer._orders) == 3:
            await asyncio.sleep(0.001)
        closing = asyncio.ensure_future(gatherer.close(0.05))
        while not gatherer._abandoned:
            await asyncio.sleep(0.001)
        gate.set()
        assert not await closing
        replies = [await future for future in futures]
        # The group that was begun ends: what it drew is stored, so its reply may leave.
        assert replies[0] == [Waiting(0)]
        assert all(isinstance(one, Refused) for rest in replies[1:] for one in rest)

    asyncio.run(run())
