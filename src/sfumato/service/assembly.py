"""All parts of a service put together: the one place that knows each of them."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from starlette.types import ASGIApp

from sfumato.core.errors import SfumatoError
from sfumato.service.access import AccessControl
from sfumato.service.application import Application, Flight
from sfumato.service.dashboard_files import dashboard_routes
from sfumato.service.event_log import EventLog
from sfumato.service.gate import AccessGate
from sfumato.service.head_log import HeadLog, Moment
from sfumato.service.http_routes import OWN_OPERATIONS, Service
from sfumato.service.key_operations import key_operations
from sfumato.service.readout_operations import ReadableReleases, readout_operations
from sfumato.service.readouts import Readouts
from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.release_keys import ReleaseKeys
from sfumato.service.release_routes import release_operations
from sfumato.service.releases import Releases, Status
from sfumato.service.request_log import RequestLog
from sfumato.service.security_headers import guarded_app
from sfumato.service.settings import Limits
from sfumato.store.home import Home

_FOLLOW_SECONDS = 1.0
"""Between two looks at a registry that others write to."""
_HEADS_SECONDS = 60.0
"""Between two looks at heads; those that have moved are logged."""
_STALE_SECONDS = 30.0
"""Without a look at it for so long, nobody knows who was revoked: nobody is let in."""
_MEGA = 1 << 20
_LEAST_FREE = 8 * _MEGA
"""Room for a checkpoint of the ledger and some minutes of answers."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A service with all its parts.

    Attributes:
        service: Answers requests.
        app: The same within what else sees them: their log, and careful headers.
        desk: Makes and opens releases.
        control: The access keys.
        home: Registry and ledgers.
        log: Takes what happened.
        heads: Writes to it how far registry and ledgers have come.
    """

    service: Service
    app: ASGIApp
    desk: ReleaseDesk
    control: AccessControl
    home: Home
    log: EventLog
    heads: HeadLog

    @property
    def releases(self) -> Releases:
        """What is open."""
        return self.service.application.releases

    async def open(self) -> None:
        """Open every release of the home; one that cannot be opened is logged, and the rest are."""
        await self.desk.follow()
        await self.releases.settled()

    async def follow(self) -> None:
        """Follow the registry for ever: others may append to it. Heads that move are logged."""
        # A thread of its own: whoever was revoked is shut out however much else is going on.
        own = ThreadPoolExecutor(1, "follow")
        loop = asyncio.get_running_loop()
        try:
            await asyncio.gather(
                self._again(lambda: loop.run_in_executor(own, self.control.follow)),
                self._again(self.desk.follow),
                self._again(self._tell_heads, _HEADS_SECONDS),
            )
        finally:
            own.shutdown(wait=False)

    async def _tell_heads(self) -> None:
        await asyncio.to_thread(self.heads.tell, Moment.GROWN)

    async def _again(
        self, act: Callable[[], Awaitable[None]], seconds: float = _FOLLOW_SECONDS
    ) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await act()
            except Exception as problem:
                # Whatever it is: a node that stops following lets nobody in, for good.
                self.log.event("registry not read", level=logging.ERROR, failure=problem)


def assembled(
    home: Home,
    log: EventLog,
    control: AccessControl,
    *,
    limits: Limits,
    node: str = "",
    coin_keys: str | Path | None = None,
    origins: tuple[str, ...] = (),
) -> Gateway:
    """Put a service together; nothing is opened yet.

    Args:
        home: Registry and ledgers.
        log: Takes what happened.
        control: The access keys of the home.
        limits: What askers may make the service hold.
        node: What tells this node from others of a shared home.
        coin_keys: Folder of the keys of coins; None if there are none.
        origins: Sites whose pages may ask; none if not given.
    """

    def failed(name: str, problem: BaseException) -> None:
        # What our own errors say quotes no value, by rule; what others say may, and is left out.
        says = str(problem) if isinstance(problem, SfumatoError) else None
        log.event("release failed", level=logging.ERROR, release=name, says=says, failure=problem)

    releases = Releases(limits, failed, home)
    keys = None if coin_keys is None else ReleaseKeys(coin_keys, home.registry)
    desk = ReleaseDesk(home, releases, keys, node)
    readouts = Readouts(ReadableReleases(releases, desk))
    releases.saw = readouts.saw
    releases.metrics.watch_registry(lambda: desk.catalogue.entries)
    operations = (
        *OWN_OPERATIONS,
        *release_operations(desk, releases, home),
        *key_operations(control),
        *readout_operations(readouts),
    )
    ending: list[Callable[[], bool]] = []
    application = Application(
        releases=releases,
        gate=AccessGate(control),
        metrics=releases.metrics,
        log=log,
        limits=limits,
        flight=Flight(limits.flight_bytes),
        ready=lambda: lacking(home, releases, ending=ending[0]()),
    )
    service = Service(application, operations, dashboard_routes())
    ending.append(lambda: service.ending)
    app = RequestLog(guarded_app(service, origins), log.gathered())
    return Gateway(service, app, desk, control, home, log, HeadLog(home, log))


def controlled(home: Home) -> AccessControl:
    """The access keys of a home; of a shared one they must be fresh."""
    return AccessControl(home.registry, stale_after=_STALE_SECONDS if home.shared else None)


def lacking(home: Home, releases: Releases, *, ending: bool) -> list[str]:
    """What keeps a service from answering, in words; asks the disk and the database."""
    found = ["it is shutting down"] if ending else []
    found += _stores(home)
    for state in releases.states():
        if state.open is not None and not state.open.gatherer.alive:
            # Everybody may ask whether the service is ready: names of releases are not for all.
            found.append("the worker of a release has ended")
        elif state.name == releases.default and state.status is not Status.READY:
            found.append(f"the default release is {state.status.value}")
    return found


def _stores(home: Home) -> list[str]:
    try:
        home.registry.entries(home.registry.head.entries)
    except (SfumatoError, OSError):
        return ["the registry cannot be read"]
    folder = getattr(home, "path", None)
    if not isinstance(folder, Path):
        return []
    if not os.access(folder, os.W_OK):
        return ["the folder of the home cannot be written to"]
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE:
        room = f"{free / _MEGA:.1f} MB are free, and {_LEAST_FREE // _MEGA} MB must be"
        return [f"the disk of the home is full: {room}"]
    return []
