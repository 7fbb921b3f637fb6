"""A service with its real gate, log, headers, home and release, listening on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sfumato as sf
from sfumato.models.encoding import Symbols
from sfumato.models.stream_model import StreamModel
from sfumato.service.access import AccessControl, Action, Grant, operator
from sfumato.service.assembly import assembled, controlled
from sfumato.service.event_log import EventLog
from sfumato.service.job_rules import MadeRules
from sfumato.service.releases import Opened
from sfumato.service.server import GracefulServer, address_of, listening, run, serve
from sfumato.service.settings import Limits, Settings
from sfumato.service.wording import stream_wording
from sfumato.store.home import Home, MemoryHome, open_home
from sfumato.store.live_intake import begun
from sfumato.store.protocol import Job
from sfumato.stream.live_fleet import LiveFleet

HOST = operator("tests")
SYMBOLS = ("homeSym", "workSym", "clinicSym")
RULES = '{"epsilon": 0.5}'


@dataclass
class Secured:
    """A service that listens."""

    url: str
    control: AccessControl
    server: GracefulServer
    first: str

    def key(self, *actions: Action, streams: tuple[str, ...] = ("*",)) -> str:
        """The text of a new key."""
        return self.control.issue(HOST, Grant(streams, frozenset(actions or Action)))[0]


def city(home: Home) -> Callable[[], Opened]:
    """A release of single values, in a ledger of its home."""

    def made() -> Opened:
        places = sf.Alphabet(list(SYMBOLS))
        chain = sf.MarkovChain.from_matrix(
            [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]], alphabet=places
        )
        loss = sf.loss.hamming(places)
        policy = sf.compile_policy(chain, loss, 0.5, steps=200)
        plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        model = StreamModel(chain, Symbols(places))
        store = home.open_ledger("city", plan.fingerprint, Job("release"), None)
        run_ = LiveFleet(store, begun(store, "http"), model, plan, sf.secure())

        def close() -> None:
            run_.close()
            store.close()

        return Opened("release", run_, store, stream_wording(model), close, model, policy)

    return made


@contextmanager
def secured(
    log: EventLog,
    where: Path | None = None,
    limits: Limits = Limits(),  # noqa: B008
    *,
    released: bool = True,
) -> Iterator[Secured]:
    """A service whose home is a folder, or in memory; without a release it starts at once."""
    found: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        with MemoryHome() if where is None else open_home(str(where)) as home:
            control = controlled(home)
            found["control"], found["first"] = control, control.first_key()
            gateway = assembled(home, log, control, limits=limits)
            if released:
                # As every release is: written down before it is opened.
                gateway.desk.establish("tests", "city", "release", MadeRules(RULES), None)
                await gateway.releases.prepare("city", city(home))
                gateway.releases.activate("city")
            with listening(Settings(port=0)) as own:
                found["url"] = address_of(own, tls=False)
                await serve(
                    gateway.service,
                    own,
                    limits,
                    app=gateway.app,
                    announce=ready.set,
                    started=lambda server: found.update(server=server),
                )

    thread = threading.Thread(target=lambda: _run(main, ready))
    thread.start()
    assert ready.wait(60.0)
    there = Secured(found["url"], found["control"], found["server"], found["first"])
    try:
        yield there
    finally:
        there.server.should_exit = True
        thread.join(30.0)
        assert not thread.is_alive()


def _run(main: Callable[[], Any], ready: threading.Event) -> None:
    try:
        run(main)
    finally:
        ready.set()  # whoever waits sees that nothing was begun
