"""The releases of a service: which are open, which is the default, and where a stream belongs.

A stream stays with the release that it began in, unless whoever asks names another: if it has
answers in several, with the one of them that was activated first. That is a function of the ledgers
and of the registry alone, so it is the same after a restart and on another node.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sfumato.core.errors import SfumatoError
from sfumato.models.encoding import StreamModel
from sfumato.service.gatherer import Gatherer
from sfumato.service.metrics import Metrics, ReleaseFigures
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.settings import Limits
from sfumato.service.wording import Wording
from sfumato.solver.policy import Policy
from sfumato.store.live import LiveRun, Reply
from sfumato.store.protocol import Store

_REMEMBERED = 1 << 20
"""Streams whose release is remembered: 100 MB; others are looked up again."""


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
    run: LiveRun
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
    """

    name: str
    status: Status
    open: OpenRelease | None = None
    detail: str = ""
    slug: str = "unavailable"


class Releases:
    """All releases; used in the event loop only, but for what says otherwise.

    Attributes:
        failed: Told the name of a release, and what broke it.
        saw: Told the name of a release, and the replies of each group.
        metrics: Counts what all of them do.
    """

    def __init__(
        self,
        limits: Limits,
        failed: Callable[[str, BaseException], None] = lambda name, problem: None,
    ) -> None:
        self._limits, self.failed = limits, failed
        self.saw: Callable[[str, Sequence[Reply]], None] = lambda name, replies: None
        self._states: dict[str, ReleaseState] = {}
        self._activated: list[str] = []
        self._default: str | None = None
        self._homes: OrderedDict[str, str] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.metrics = Metrics(self.figures)

    # What there is ----------------------------------------------------------------------------

    @property
    def default(self) -> str | None:
        """The release of events that name none, of streams that have not begun."""
        return self._default

    def states(self) -> list[ReleaseState]:
        """All releases, in the order in which they were made."""
        return list(self._states.values())

    def open(self) -> list[OpenRelease]:
        """Those that take events."""
        return [state.open for state in self._states.values() if state.open is not None]

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
            detail = str(problem) if isinstance(problem, SfumatoError) else "a defect"
            failed = replace(self._states[name], status=Status.FAILED, detail=detail)
            self._states[name] = failed
            self.failed(name, problem)
            return
        if self._closing:
            await asyncio.to_thread(opened.close)
            return
        watch = _Watch(name, self)
        gatherer = Gatherer(
            opened.run,
            watch,
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
        """Make a release the default for streams that have not begun."""
        if name not in self._activated:
            self._activated.append(name)
        self._default = name

    # Where a stream belongs -------------------------------------------------------------------

    def of_all(self, streams: Sequence[str], name: str | None) -> OpenRelease | None:
        """The release of all of some streams, where that is known without looking for them."""
        if name is None and len(self._activated) > 1:
            return None
        chosen = self.named(name)
        if len(self._activated) > 1:
            for stream in streams:  # it may belong here from now on
                self._homes.pop(stream, None)
        return chosen

    async def of_streams(self, streams: Sequence[str], name: str | None) -> list[OpenRelease]:
        """The release of each stream.

        Args:
            streams: Names of streams.
            name: The release that was asked for; None for where each belongs.

        Raises:
            HttpProblem: If one of the releases is not there, or not ready.
        """
        if (chosen := self.of_all(streams, name)) is not None:
            return [chosen] * len(streams)
        unknown = {stream for stream in streams if stream not in self._homes}
        if unknown:
            self._remember(await asyncio.to_thread(self._begun, sorted(unknown)), unknown)
        named = {home: self.named(home) for home in {self._homes[each] for each in streams}}
        return [named[self._homes[stream]] for stream in streams]

    def of_stream(self, stream: str, name: str | None) -> OpenRelease:
        """The release of one stream, from any thread; it may wait for the ledgers."""
        if name is not None or len(self._activated) < 2:
            return self.named(name)
        return self.named(self._begun([stream]).get(stream))

    def _begun(self, streams: list[str]) -> dict[str, str]:
        """The release in which each of some streams began, as far as they did."""
        found: dict[str, str] = {}
        for name in reversed(self._activated):
            state = self._states.get(name)
            if state is None or state.open is None:
                # Where it cannot be told whether a stream began, none may begin elsewhere.
                raise _not_ready(state or ReleaseState(name, Status.PREPARING))
            found |= dict.fromkeys(state.open.opened.store.begun(streams), name)
        return found

    def _remember(self, found: dict[str, str], streams: set[str]) -> None:
        assert self._default is not None
        for stream in streams:
            self._homes.setdefault(stream, found.get(stream, self._default))
        while len(self._homes) > max(_REMEMBERED, len(streams)):
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

    def answered(self, replies: Sequence[Reply], seconds: float) -> None:
        self.releases.metrics.group(self.name, replies, seconds)
        self.releases.saw(self.name, replies)

    def failed(self, problem: BaseException) -> None:
        self.releases.metrics.failed_group(self.name)
        self.releases.failed(self.name, problem)
