"""Where models, policies and releases are made: the registry, and what is open, kept in step.

The registry is the truth: a release is one when its entry is there, with rules that never change.
Nodes that share a home follow each other: what one appends the others open.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import Randomness, secure
from sfumato.models.stream_model import StreamModel
from sfumato.series.live_series import open_release as open_series
from sfumato.series.series_ledger import JOB as SERIES
from sfumato.service.job_rules import MadeRules, agree, check_asked, made_rules, read_model
from sfumato.service.problems import HttpProblem, problem
from sfumato.service.release_keys import ReleaseKeys
from sfumato.service.release_warming import warm_streams
from sfumato.service.releases import Opened, Releases, ReleaseState, Status
from sfumato.service.wording import Wording, series_wording, stream_wording, temporal_wording
from sfumato.solver.policy import Policy
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import (
    NOTHING,
    Content,
    ModelContent,
    PolicyContent,
    ReleaseContent,
)
from sfumato.store.codec import from_bytes, to_bytes
from sfumato.store.home import Home, checked_name
from sfumato.store.live_columns import ColumnarRun
from sfumato.store.protocol import Store
from sfumato.store.release_end import close_release
from sfumato.stream.live_release import open_release as open_streams
from sfumato.stream.release_spec import JOB as STREAM
from sfumato.temporal.live_streams import open_release as open_temporal
from sfumato.temporal.temporal_spec import JOB as TEMPORAL

_RETRY_SECONDS = 60.0
"""At most so long between two tries to open a release whose store was away."""
_OPENERS: Mapping[str, Callable[..., tuple[ColumnarRun, Store]]] = {
    STREAM.name: open_streams,
    SERIES.name: open_series,
    TEMPORAL.name: open_temporal,
}


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """A release that is asked for.

    Attributes:
        name: Its name.
        job: Who answers its events.
        rules: What is asked; what is left out is chosen.
        model: Name or fingerprint of its model.
        policy: Name or fingerprint of its policy; compiled where one is needed, if not given.
        coins: Id of the key of its coins; those of the operating system if not given.
    """

    name: str
    job: str
    rules: Mapping[str, Any]
    model: str | None = None
    policy: str | None = None
    coins: str | None = None


class ReleaseDesk:
    """Makes releases, and opens them.

    Args:
        home: Registry and ledgers.
        releases: What is open.
        keys: Keys of coins; None if there are none here.
        node: What tells this node from others of a shared home.
        door: Where events come in, as sources of answers begin in the ledger.
    """

    def __init__(
        self,
        home: Home,
        releases: Releases,
        keys: ReleaseKeys | None = None,
        node: str = "",
        door: str = "http",
    ) -> None:
        self._home, self._releases, self._keys = home, releases, keys
        self._source = f"{door} {node}" if home.shared and node else door
        self._catalogue, self._seen = Catalogue(), 0
        self._lock = threading.Lock()
        self._turn = asyncio.Lock()
        self._asked: dict[str, ReleaseRequest] = {}
        self._tries: dict[str, tuple[int, float]] = {}
        releases.look = self.look

    @property
    def catalogue(self) -> Catalogue:
        """What is current, as far as it was read."""
        return self._catalogue

    async def follow(self) -> None:
        """Read what was appended, here or elsewhere; open and activate what is new.

        What could not be opened for want of a disk or a database is tried again, more and more
        rarely. Whatever else broke a release would break it again: it stays failed.
        """
        activated = await asyncio.to_thread(self._read)
        there = {state.name: state for state in self._releases.states()}
        for name in self._catalogue.releases:
            if name not in there or self._is_due(there[name]):
                self._releases.prepare(name, lambda name=name: self.open(name))  # type: ignore[misc]
        for name in activated:
            self._releases.activate(name)
        self._tell_ends()

    def look(self) -> None:
        """Learn which releases were closed meanwhile, on whatever node; in a thread."""
        self.catch_up()
        self._tell_ends()

    def _tell_ends(self) -> None:
        for name, found in self._catalogue.releases.items():
            if found.closed is not None:
                self._releases.end(name)

    def _is_due(self, state: ReleaseState) -> bool:
        """Whether a release that failed is to be tried again now; then the next try is later."""
        if state.status is not Status.FAILED or not state.passing:
            return False
        now = time.monotonic()
        tries, due = self._tries.get(state.name, (0, now))
        if now < due:
            return False
        self._tries[state.name] = (tries + 1, now + min(2.0**tries, _RETRY_SECONDS))
        return True

    def _read(self) -> list[str]:
        with self._lock:
            entries = self._home.registry.entries(self._seen)
            new = [each for each in entries if each.number > self._catalogue.entries]
            self._catalogue = self._catalogue.after(new)
            self._seen = max((each.number for each in entries), default=self._seen)
            return [each.name for each in entries if each.action == "release.activated"]

    def _record(self, actor: str, action: str, name: str, content: Content = NOTHING) -> None:
        with self._lock:
            registry = self._home.registry
            self._catalogue = record(registry, self._catalogue, actor, action, name, content)

    # Models and policies --------------------------------------------------------------------------

    def add_model(self, actor: str, name: str, model: StreamModel) -> tuple[str, bool]:
        """Register a model; its fingerprint, and whether it is new. In a thread."""
        data = to_bytes(model)
        fingerprint = hashlib.sha256(data).hexdigest()
        self.catch_up()
        if fingerprint in self._catalogue.models:
            return fingerprint, False
        content = ModelContent(fingerprint, data)
        self._record(actor, "model.created", checked_name(name), content)
        return fingerprint, True

    def add_policy(self, actor: str, name: str, policy: Policy) -> bool:
        """Register a policy; whether it is new. In a thread."""
        self.catch_up()
        if policy.fingerprint in self._catalogue.policies:
            return False
        content = PolicyContent(policy.fingerprint, to_bytes(policy))
        self._record(actor, "policy.created", checked_name(name), content)
        return True

    def activate_first(self, actor: str, name: str) -> None:
        """Make a release the default before anything is open; `follow` sees it."""
        self._record(actor, "release.activated", name)

    def catch_up(self) -> None:
        """Catch up with the registry; what is to be opened is seen by `follow`."""
        with self._lock:
            entries = self._home.registry.entries(self._catalogue.entries)
            self._catalogue = self._catalogue.after(entries)

    def model(self, name: str | None) -> tuple[str | None, StreamModel | None]:
        """Fingerprint and model by either, or by the name of its last version."""
        if name is None:
            return None, None
        models = self._catalogue.models
        named = [each for each in models.values() if each.name == name]
        found = models.get(name) or (named[-1] if named else None)
        if found is None:
            raise InvalidParameter("model", "another", "be one that was created before")
        return found.fingerprint, read_model(found.data)

    def policy(self, name: str | None) -> Policy | None:
        """A policy by its fingerprint or name."""
        if name is None:
            return None
        policies = self._catalogue.policies
        named = [each for each in policies.values() if each.name == name]
        found = policies.get(name) or (named[-1] if named else None)
        if found is None:
            raise InvalidParameter("policy", "another", "be one that was created before")
        policy: Policy = from_bytes(found.data, Policy)
        return policy

    # Releases -------------------------------------------------------------------------------------

    async def create(self, actor: str, asked: ReleaseRequest) -> tuple[ReleaseState, bool]:
        """Make a release, or find it there; its state, and whether it was begun now.

        Raises:
            HttpProblem: 409 if there is one of this name under other rules, 422 if the rules are
                none.
        """
        async with self._turn:
            await self.follow()
            there = {state.name: state for state in self._releases.states()}.get(asked.name)
            if asked.name in self._catalogue.releases:
                await asyncio.to_thread(self._refuse_other, asked)
                assert there is not None
                return there, False
            if there is not None and there.status is Status.PREPARING:
                if self._asked.get(asked.name) != asked:
                    raise _other_rules()
                return there, False
            checked_name(asked.name)
            await asyncio.to_thread(self._check, asked)
            self._asked[asked.name] = asked
            self._releases.prepare(asked.name, lambda: self._make(actor, asked), "not-found")
            return ReleaseState(asked.name, Status.PREPARING), True

    def _check(self, asked: ReleaseRequest) -> None:
        if asked.job not in _OPENERS:
            raise InvalidParameter("job", asked.job, f"be one of {', '.join(_OPENERS)}")
        _, model = self.model(asked.model)
        policy = self.policy(asked.policy)
        self._coins(asked.coins)
        check_asked(asked.job, asked.rules, model, policy)

    def _refuse_other(self, asked: ReleaseRequest) -> None:
        """Refuse rules that the release of this name does not have."""
        content = self._catalogue.releases[asked.name].content
        policy = self.policy(asked.policy)
        same = (
            asked.job == content.job
            and self.model(asked.model)[0] == content.model
            and asked.coins == content.coins
            and (policy is None or policy.fingerprint == content.policy)
        )
        if not same or not agree(asked.job, asked.rules, content.rules):
            raise _other_rules()

    def _make(self, actor: str, asked: ReleaseRequest) -> Opened:
        fingerprint, model = self.model(asked.model)
        made = made_rules(asked.job, asked.rules, model, self.policy(asked.policy))
        self.establish(actor, asked.name, asked.job, made, fingerprint, asked.coins)
        return self.open(asked.name)

    def establish(
        self,
        actor: str,
        name: str,
        job: str,
        made: MadeRules,
        model: str | None,
        coins: str | None = None,
    ) -> None:
        """Register a release whose rules are complete; in a thread."""
        if made.policy is not None:
            self.add_policy(actor, name, made.policy)
        policy = None if made.policy is None else made.policy.fingerprint
        content = ReleaseContent(job, made.document, model, policy, coins)
        self._record(actor, "release.created", checked_name(name), content)

    async def activate(self, actor: str, name: str) -> None:
        """Make a release the default for streams that have no home yet.

        Raises:
            HttpProblem: If there is none of this name, or it is not ready.
        """
        async with self._turn:
            await self.follow()
            self._releases.named(name)
            if self._catalogue.releases[name].closed is not None:
                detail = "a release that is closed must not be the default: new streams begin there"
                raise HttpProblem(problem("closed", detail, field="release"))
            if self._catalogue.default != name:
                await asyncio.to_thread(self._record, actor, "release.activated", name)
            await self.follow()

    async def close_release(self, actor: str, name: str) -> None:
        """Let a release answer no more events, on all nodes; once more changes nothing.

        Raises:
            HttpProblem: If there is none of this name.
        """
        async with self._turn:
            await self.follow()
            if name not in self._catalogue.releases:
                raise HttpProblem(problem("not-found", "there is no such release", field="release"))
            await asyncio.to_thread(close_release, self._home, actor, name)
            await self.follow()
            for one in self._releases.open():
                if one.name == name:
                    await asyncio.to_thread(one.opened.run.close)  # values that wait here

    def open(self, name: str) -> Opened:
        """The ledger of a release, and what answers its events; in a thread."""
        content = self._catalogue.releases[name].content
        _, model = self.model(content.model)
        policy = self.policy(content.policy)
        coins, source = self._coins(content.coins)
        if content.job == STREAM.name and model is not None:
            warm_streams(content.rules, model, policy)
        run, store = _OPENERS[content.job](
            content.rules.encode(),
            model,
            policy,
            lambda plan, job, rules: self._home.open_ledger(name, plan, job, rules),
            coins,
            source,
        )

        # Whoever closed it meanwhile found the ledger open, or is seen here.
        store.ended = store.ended or self._catalogue.releases[name].closed is not None

        def close() -> None:
            run.close()
            store.close()

        worded = _wording(content.job, model)
        return Opened(content.job, run, store, worded, close, model, policy)

    def _coins(self, id_: str | None) -> tuple[Randomness, str]:
        if id_ is None:
            return secure(), self._source
        if self._keys is None:
            raise InvalidParameter("coins", id_, "not be given: there are no keys of coins here")
        key = self._keys.current(id_)
        rest = self._source.removeprefix("http").strip()
        return key.coins(), f"{key.label} {rest}".strip()


def _wording(job: str, model: StreamModel | None) -> Wording:
    wordings: dict[str, Wording] = {
        SERIES.name: series_wording,
        TEMPORAL.name: temporal_wording,
    }
    return wordings.get(job) or stream_wording(model)


def _other_rules() -> HttpProblem:
    detail = "there is a release of this name under other rules; rules never change: use another"
    return HttpProblem(problem("conflict", detail, field="name"))
