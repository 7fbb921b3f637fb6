"""Events of all askers of a release, gathered into groups, and each group answered in one turn.

One thread per release takes what is waiting, however little, and answers it with one commit. While
it is at it others arrive, so groups grow with the load by themselves and nobody waits for a clock.
What waits is bounded: whoever comes when it is full is refused at once, with the time to wait.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from sfumato.core.errors import SfumatoError
from sfumato.store.live import Reason, Refused, Reply
from sfumato.store.live_columns import EventColumns, ReplyColumns

_LONGEST_WAIT = 30
"""Seconds to which a full queue sends askers away at most."""
_MEMORY = 0.2
"""Weight of the last group in the measured rate: some groups later a change of load shows."""
UNANSWERED = Refused(
    Reason.UNSTORED, "the event was not answered; asking again with the same id is safe"
)


class QueueFull(SfumatoError):
    """More events wait than may; nothing was taken.

    Attributes:
        seconds: After how many whole seconds there should be room.
    """

    def __init__(self, seconds: int) -> None:
        self.seconds = seconds
        super().__init__("more events wait than the queue of this release may hold; ask later")


class Stopped(SfumatoError):
    """The worker of a release has ended, or takes nothing more."""

    def __init__(self) -> None:
        super().__init__("this release takes no more events here; nothing was taken")


class AnswersGroups(Protocol):
    """What a gatherer asks of a live run; see `ColumnarRun`."""

    def answer_columns(
        self,
        ids: Sequence[str],
        streams: Sequence[str],
        values: Sequence[Any],
        times: Sequence[str | None] | None = None,
    ) -> ReplyColumns:
        """A reply for each event, in order; all answers are durable when this returns."""
        ...

    def finish(self, stream: str) -> Reply | None:
        """Release what waits of a stream as a shorter batch; None if nothing waits."""
        ...

    def waiting(self) -> int:
        """How many events wait in memory for others of their batches."""
        ...


class GroupWatch(Protocol):
    """Who is told of groups; called by the thread of the release."""

    def answered(self, replies: ReplyColumns, seconds: float) -> None:
        """A group was answered and committed, in so many seconds."""
        ...

    def failed(self, problem: BaseException) -> None:
        """A group broke: none of its events was answered."""
        ...


class _Order(msgspec.Struct, frozen=True, eq=False):
    """What one asker asks at once; `events` is None where waiting values are to be released."""

    events: EventColumns | None
    stream: str
    future: asyncio.Future[Any]


_Done: TypeAlias = list[tuple[_Order, Any]]
Told: TypeAlias = Callable[[EventColumns, ReplyColumns], list[Any]]
"""Replies to events, one by one, in the form in which their askers want them."""


def as_replies(events: EventColumns, replies: ReplyColumns) -> list[Any]:
    """Replies as a live run gives them."""
    return replies.replies()


class Gatherer:
    """The queue and the thread of one release.

    Args:
        run: Answers groups.
        watch: Told of each group.
        told: Makes what askers get of the replies of a group; in the thread of the release.
        queued: Events that may wait.
        group: Events that are answered together; an order is never split.

    Examples:
        >>> async def one(run, watch):
        ...     gatherer = Gatherer(run, watch)
        ...     gatherer.start()
        ...     replies = await gatherer.ask(EventColumns(["e1"], ["u1"], ["home"]))
        ...     await gatherer.close(1.0)
        ...     return replies
    """

    def __init__(
        self,
        run: AnswersGroups,
        watch: GroupWatch,
        told: Told = as_replies,
        *,
        queued: int = 16_384,
        group: int = 4_096,
    ) -> None:
        self._run, self._watch, self._told = run, watch, told
        self._queued, self._group = queued, group
        self._orders: deque[_Order] = deque()
        self._depth = 0
        self._rate = 0.0
        self._closing = self._abandoned = self._died = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="sfumato-release", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin to answer; replies are handed to the event loop that runs now."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def depth(self) -> int:
        """Events that wait, with those of the group that is being answered."""
        return self._depth

    @property
    def alive(self) -> bool:
        """Whether events that are asked now will be answered."""
        return self._thread.is_alive() and not self._closing and not self._died

    @property
    def working(self) -> bool:
        """Whether its thread may still use the run and its store."""
        return self._thread.is_alive()

    def check_room(self, events: int = 1) -> None:
        """Refuse so many events, before they are even read.

        Raises:
            QueueFull: If they would not find room.
            Stopped: If nothing is taken any more.
        """
        if not self.alive:
            raise Stopped
        if self._depth + events > self._queued:
            raise QueueFull(self._seconds())

    def ask(self, events: EventColumns) -> asyncio.Future[list[Any]]:
        """Replies to events as `told` makes them, in order, when they are durable.

        Whoever stops waiting for them changes nothing: the events are answered, and their ids get
        these answers later.

        Raises:
            QueueFull: If they do not find room; none of them is taken.
            Stopped: If nothing is taken any more.
        """
        return self._place(events, "", len(events))

    def finish(self, stream: str) -> asyncio.Future[Reply | None]:
        """What waits of a stream, released as a shorter batch, after all that was asked before.

        The future fails with `Stopped` if the release could not answer.
        """
        return self._place(None, stream, 1)

    def waiting(self) -> int:
        """Events that were told to wait for others of their batches."""
        return self._run.waiting()

    async def close(self, seconds: float) -> bool:
        """Take nothing more, answer what was taken, and end; whether it all was answered in time.

        Args:
            seconds: After these, what no group has begun with is left unanswered.
        """
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.ident is None:
            return True  # never started
        await asyncio.to_thread(self._thread.join, seconds)
        with self._changed:
            in_time = not self._orders
            self._abandoned = True
            self._changed.notify()
        # A group that was begun is let end: its store is in use, and what it drew will be stored.
        await asyncio.to_thread(self._thread.join, seconds)
        return in_time and not self._thread.is_alive()

    def _place(self, events: EventColumns | None, stream: str, count: int) -> asyncio.Future[Any]:
        assert self._loop is not None  # started
        self.check_room(count)
        order = _Order(events, stream, self._loop.create_future())
        with self._changed:
            if self._closing:  # the thread may have ended since
                raise Stopped
            self._orders.append(order)
            self._depth += count
            self._changed.notify()
        return order.future

    def _seconds(self) -> int:
        """Until half of what waits should be gone: by then, many who come again find room."""
        if self._rate <= 0.0:
            return 1
        return max(1, min(_LONGEST_WAIT, math.ceil(self._depth / (2 * self._rate))))

    # The thread of the release --------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while (orders := self._taken()) is not None:
                self._answer(orders)
        except BaseException as problem:
            self._died = True  # nobody will answer: whoever asks is told at once
            self._watch.failed(problem)
        finally:
            self._leave_rest()

    def _taken(self) -> list[_Order] | None:
        """The orders of the next group, in the order in which they came; None at the end."""
        with self._changed:
            while not self._orders and not self._closing:
                self._changed.wait()
            if self._abandoned or not self._orders:
                return None
            taken, events = [self._orders.popleft()], 0
            if taken[0].events is None:
                return taken
            events = len(taken[0].events)
            while self._orders and (more := self._orders[0].events) is not None:
                if events + len(more) > self._group:
                    break
                events += len(more)
                taken.append(self._orders.popleft())
            return taken

    def _answer(self, orders: list[_Order]) -> None:
        begun = time.perf_counter()
        count = sum(1 if order.events is None else len(order.events) for order in orders)
        try:
            done, replies = self._asked(orders)
        except BaseException as problem:
            self._hand_back([(order, None) for order in orders], count)
            if not isinstance(problem, Exception):
                raise
            self._watch.failed(problem)
            return
        seconds = time.perf_counter() - begun
        rate = count / max(seconds, 1e-9)
        self._rate = rate if self._rate == 0.0 else self._rate + _MEMORY * (rate - self._rate)
        self._hand_back(done, count)
        try:
            self._watch.answered(replies, seconds)
        except Exception as problem:
            self._watch.failed(problem)  # whoever counts may fail; the release goes on

    def _asked(self, orders: list[_Order]) -> tuple[_Done, ReplyColumns]:
        if orders[0].events is None:
            found = self._run.finish(orders[0].stream)
            others: dict[int, Reply] = {} if found is None else {0: found}
            return [(orders[0], (found,))], ReplyColumns(len(others), others=others)
        parts = [order.events for order in orders if order.events is not None]
        events = EventColumns.joined(parts)
        replies = self._run.answer_columns(events.ids, events.streams, events.values, events.times)
        told = self._told(events, replies)
        if not len(replies) == len(told) == len(events):
            raise RuntimeError("a live run must give each event one reply")
        done, first = list[tuple[_Order, Any]](), 0
        for order, part in zip(orders, parts, strict=True):
            done.append((order, told[first : first + len(part)]))
            first += len(part)
        return done, replies

    def _leave_rest(self) -> None:
        with self._changed:
            self._closing = True
            rest, count = list(self._orders), self._depth
            self._orders.clear()
        self._hand_back([(order, None) for order in rest], count)

    def _hand_back(self, done: _Done, count: int) -> None:
        with self._changed:
            self._depth -= count
        assert self._loop is not None
        if self._loop.is_closed():
            return  # at the very end nobody waits any more
        self._loop.call_soon_threadsafe(self._deliver, done)

    def _deliver(self, done: _Done) -> None:
        """Hand replies to whoever still waits for them; in the event loop."""
        for order, replies in done:
            if order.future.done():
                continue  # the asker went away
            if order.events is None:
                if replies is None:
                    order.future.set_exception(Stopped())
                else:
                    order.future.set_result(replies[0])
            elif replies is None:
                order.future.set_result(self._told(order.events, _unanswered(order.events)))
            else:
                order.future.set_result(replies)


def _unanswered(events: EventColumns) -> ReplyColumns:
    return ReplyColumns(len(events), others=dict.fromkeys(range(len(events)), UNANSWERED))
