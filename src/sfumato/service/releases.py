"""The releases of a service: which are open, which is the default, and where a stream belongs.

Events that name a release go there, and nothing else follows from it. Those that name none go to
the home of their stream: a release that is written down, durably and for all nodes, before the
first draw; whoever writes first wins, and it never changes. Only what is written is remembered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from sfumato.core.errors import SfumatoError
from sfumato.models.stream_model import StreamModel
from sfumato.service.gatherer import Gatherer
from sfumato.service.home_settling import HomeSettling
from sfumato.service.metrics import Metrics, ReleaseFigures
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.settings import Limits
from sfumato.service.wording import Wording, worded_replies
from sfumato.solver.policy import Policy
from sfumato.store.live_columns import ColumnarRun, ReplyColumns
from sfumato.store.protocol import Store, StoreUnavailable
from sfumato.store.stream_homes import MemoryStreamHomes, StreamHomes

_REMEMBERED = 1 << 20
"""Streams whose home is remembered: 100 MB; others are looked up again."""


class Status(StrEnum):
    """Where a release stands."""

    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Opened:
    """A release whose ledger is open.

    Attributes:
        job: The job that answers its events.
        run: Answers them.
        store: Its ledger.
        worded: Its answers as they leave.
        close: Closes run and ledger.
        model: Its model, if it has one.
        policy: Its policy, if it has one.
    """

    job: str
    run: ColumnarRun
    store: Store
    worded: Wording
    close: Callable[[], None]
    model: StreamModel | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class OpenRelease:
    """A release that takes events."""

    name: str
    opened: Opened
    gatherer: Gatherer

    @property
    def worded(self) -> Wording:
        """Its answers as they leave."""
        return self.opened.worded


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """A release of the service, open or not.

    Attributes:
        name: Its name.
        status: Where it stands.
        open: What takes its events, when it is ready.
        detail: Why it failed.
        slug: The problem of whoever asks it after it failed.
        passing: Whether it failed for want of a disk or a database, which may come back.
    """

    name: str
    status: Status
    open: OpenRelease | None = None
    detail: str = ""
    slug: str = "unavailable"
    passing: bool = False


class Releases:
    """All releases; used in the event loop only, but for what says otherwise.

    Args:
        limits: What askers may make the service hold.
        failed: Told the name of a release, and what broke it.
        homes: Where it is written down which release a stream belongs to.

    Attributes:
        failed: Told the name of a release, and what broke it.
        saw: Told the name of a release, and the replies of each group.
        look: Learns, in a thread, which releases were closed meanwhile on whatever node.
        metrics: Counts what all of them do.
    """

    def __init__(
        self,
        limits: Limits,
        failed: Callable[[str, BaseException], None] = lambda name, problem: None,
        homes: StreamHomes | None = None,
    ) -> None:
        self._limits, self.failed = limits, failed
        self._written = homes or MemoryStreamHomes()
        self._settling = HomeSettling(self._settle)
        self.saw: Callable[[str, ReplyColumns], None] = lambda name, replies: None
        self.look: Callable[[], None] = lambda: None
        self._states: dict[str, ReleaseState] = {}
        self._activated: list[str] = []
        self._default: str | None = None
        self._ended: set[str] = set()
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.metrics = Metrics(self.figures)

    # What there is ----------------------------------------------------------------------------

    @property
    def default(self) -> str | None:
        """The release of events that name none, of streams that have no home yet."""
        return self._default

    def states(self) -> list[ReleaseState]:
        """All releases, in the order in which they were made."""
        return list(self._states.values())

    def open(self) -> list[OpenRelease]:
        """Those that take events."""
        return [state.open for state in self._states.values() if state.open is not None]

    @property
    def single(self) -> bool:
        """Whether one release alone takes events: whatever is asked, it is asked."""
        return len(self._states) == 1 or len(self.open()) == 1

    def figures(self) -> list[ReleaseFigures]:
        """What is measured of each now; from any thread."""
        return [
            ReleaseFigures(
                one.name,
                one.gatherer.depth,
                one.gatherer.waiting(),
                one.opened.store.front.head.entries,
                one.gatherer.alive,
                one.opened.run.conflicts,
            )
            for one in self.open()
        ]

    def named(self, name: str | None) -> OpenRelease:
        """A release by its name, or the default.

        Raises:
            HttpProblem: If there is none of the name, or it is not ready.
        """
        if name is None and self._default is None:
            detail = "no release is active; name one, or activate one"
            raise HttpProblem(problem("not-found", detail, field="release"))
        state = self._states.get(name or self._default or "")
        if state is None:
            raise HttpProblem(problem("not-found", "there is no such release", field="release"))
        if state.open is None:
            raise _not_ready(state)
        return state.open

    # How it changes ---------------------------------------------------------------------------

    def prepare(
        self, name: str, make: Callable[[], Opened], slug: str = "unavailable"
    ) -> asyncio.Task[None]:
        """Open a release in a thread; it takes no events until then, which may be minutes.

        Args:
            name: Its name.
            make: Opens it.
            slug: What askers are told if that fails: `not-found` where it is a release only then.
        """
        self._states[name] = ReleaseState(name, Status.PREPARING, slug=slug)
        task = asyncio.get_running_loop().create_task(self._opened(name, make))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _opened(self, name: str, make: Callable[[], Opened]) -> None:
        try:
            opened = await asyncio.to_thread(make)
        except Exception as problem:
            passing = isinstance(problem, (StoreUnavailable, OSError))
            detail = "the disk or the network failed" if passing else "a defect"
            detail = str(problem) if isinstance(problem, SfumatoError) else detail
            self._states[name] = replace(
                self._states[name], status=Status.FAILED, detail=detail, passing=passing
            )
            self.failed(name, problem)
            return
        if self._closing:
            await asyncio.to_thread(opened.close)
            return
        watch = _Watch(name, self)
        gatherer = Gatherer(
            opened.run,
            watch,
            partial(worded_replies, opened.worded),
            queued=self._limits.queued_events,
            group=self._limits.group_events,
        )
        gatherer.start()
        ready = OpenRelease(name, opened, gatherer)
        self._states[name] = replace(self._states[name], status=Status.READY, open=ready)

    async def settled(self) -> None:
        """Wait until nothing is being prepared."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def activate(self, name: str) -> None:
        """Make a release the default for streams that have no home yet."""
        if name not in self._activated:
            self._activated.append(name)
        self._default = name

    def end(self, name: str) -> None:
        """A release was closed: it tells what was answered, and no new stream begins there."""
        self._ended.add(name)
        state = self._states.get(name)
        if state is not None and state.open is not None:
            # Whoever closed it told the ledger, unless he broke off in the midst of it.
            state.open.opened.store.ended = True

    # Where a stream belongs -------------------------------------------------------------------

    def of_all(self, streams: Sequence[str], name: str | None) -> OpenRelease | None:
        """The release of all of some streams, where that is known without looking for them."""
        if name is not None:
            return self.named(name)
        homes = set(map(self._homes.get, streams))
        home = homes.pop() if len(homes) == 1 else None
        return None if home is None else self._home(home)

    async def of_streams(self, streams: Sequence[str], name: str | None) -> list[OpenRelease]:
        """The release of each stream, for events: homes are written down where there are none.

        Args:
            streams: Names of streams.
            name: The release that was asked for; None for the home of each.

        Raises:
            HttpProblem: If one of the releases is not there, or not ready, or homes cannot be
                written down now.
        """
        if name is not None:
            return [self.named(name)] * len(streams)
        # A copy: while others are waited for, what is remembered may be forgotten.
        homes = {one: self._homes[one] for one in streams if one in self._homes}
        if unknown := sorted(set(streams) - homes.keys()):
            with self._told():
                found = await self._settling.homes(unknown)
            self._remember(found)
            homes |= found
        named = {home: self._home(home) for home in set(homes.values())}
        return [named[homes[stream]] for stream in streams]

    def of_stream(self, stream: str, name: str | None) -> OpenRelease:
        """The release of one stream, for whoever reads; from any thread, and nothing is written.

        It may wait for the store. A stream without a home is looked for in the ledgers, and then in
        the default release.

        Raises:
            HttpProblem: If the release is not there, or not ready, or the store cannot be asked.
        """
        if name is not None:
            return self.named(name)
        with self._told():
            known = self._homes.get(stream) or self._written.settled([stream]).get(stream)
            if known is None and len(self._activated) > 1:
                known = self._begun([stream]).get(stream)
        return self.named(None) if known is None else self._home(known)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What keeps homes from being looked up, in the words of HTTP."""
        try:
            yield
        except (StoreUnavailable, OSError) as broken:
            self.failed(self._default or "", broken)
        else:
            return
        detail = "where the stream belongs could not be looked up; nothing was drawn: ask again"
        raise HttpProblem(problem("unstored", detail), {"retry-after": "1"})

    def _home(self, name: str) -> OpenRelease:
        """The release that a stream belongs to; another node may know it before this one."""
        if name not in self._states:
            raise _not_ready(ReleaseState(name, Status.PREPARING))
        return self.named(name)

    def _settle(self, streams: list[str]) -> dict[str, str]:
        """The homes of some streams, written down for those that have none; in a thread."""
        found = self._written.settled(streams)
        if not (new := [stream for stream in streams if stream not in found]):
            return found
        default = self.named(None).name  # before anything is written down
        begun = self._begun(new) if len(self._activated) > 1 else {}
        self.look()
        if default in self._ended and len(begun) < len(new):
            # What is written down stays: a stream that began here would never be answered.
            detail = "the default release is closed; name another, or activate one"
            raise HttpProblem(problem("closed", detail, field="release"))
        shares: dict[str, list[str]] = {}
        for stream in new:
            shares.setdefault(begun.get(stream, default), []).append(stream)
        for release, own in shares.items():
            found |= self._written.settle(own, release)
        return found

    def _begun(self, streams: list[str]) -> dict[str, str]:
        """Where streams of which nothing is written have answers, if they have.

        Events that name no release have only ever gone to releases that were activated. Of several
        the first counts.
        """
        found: dict[str, str] = {}
        for name in reversed(self._activated):
            state = self._states.get(name)
            if state is None or state.open is None:
                # Where it cannot be told whether a stream began, none may begin elsewhere.
                raise _not_ready(state or ReleaseState(name, Status.PREPARING))
            found |= dict.fromkeys(state.open.opened.store.begun(streams), name)
        return found

    def _remember(self, found: dict[str, str]) -> None:
        self._homes |= found
        while len(self._homes) > _REMEMBERED:
            self._homes.popitem(last=False)

    # The end ------------------------------------------------------------------------------------

    async def close(self, seconds: float) -> bool:
        """Answer what was taken, and close all ledgers; whether all of it was answered in time."""
        self._closing = True
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)
        open_ = self.open()
        ended = await asyncio.gather(*(one.gatherer.close(seconds) for one in open_))
        for one, clean in zip(open_, ended, strict=True):
            if clean or not one.gatherer.working:
                await asyncio.to_thread(one.opened.close)
        return all(ended)


def _not_ready(state: ReleaseState) -> HttpProblem:
    if state.status is Status.FAILED:
        detail = "the release could not be opened; the list of releases says why"
        return HttpProblem(problem(state.slug, detail, field="release"))
    detail = "the release is being prepared; ask again in a moment"
    return HttpProblem(problem("preparing", detail, field="release"), {"retry-after": "1"})


@dataclass(frozen=True, slots=True)
class _Watch:
    """Tells the metrics of a release what its worker does."""

    name: str
    releases: Releases

    def answered(self, replies: ReplyColumns, seconds: float) -> None:
        self.releases.metrics.group(self.name, replies, seconds)
        self.releases.saw(self.name, replies)

    def failed(self, problem: BaseException) -> None:
        self.releases.metrics.failed_group(self.name)
        self.releases.failed(self.name, problem)
