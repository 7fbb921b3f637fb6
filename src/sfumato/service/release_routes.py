"""Models, policies and releases over HTTP, and the log of what administrators did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from sfumato.core.errors import SfumatoError
from sfumato.service.bodies import Word
from sfumato.service.job_rules import JOBS, read_model, rules_schema
from sfumato.service.key_documents import RELEASE_NAME
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.problems import HttpProblem, of_error
from sfumato.service.release_desk import ReleaseDesk, ReleaseRequest
from sfumato.service.releases import Releases, ReleaseState, Status
from sfumato.solver.policy import Policy
from sfumato.store.catalogue import Catalogue
from sfumato.store.codec import from_bytes
from sfumato.store.home import Home

Made = TypeVar("Made")
Name = Annotated[str, Meta(min_length=1, max_length=64, pattern=RELEASE_NAME)]


class DocumentBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model or a policy.

    Attributes:
        name: What it is called; a model may have several versions under one name.
        data: The file that `sfumato fit` or `sfumato compile` wrote, in base64.
    """

    name: Name
    data: bytes


class ReleaseBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release that is asked for.

    Attributes:
        name: Its name.
        rules: Rules of the job by their names, those of the schema with its title:
            `{"epsilon": 0.5}`; what is left out is chosen.
        job: `release`, `realtime` or `temporal` (also written `temporal release`).
        model: Name or fingerprint of its model, for job `release`.
        policy: Name or fingerprint of its policy; compiled where one is needed, if not given.
        coins: Id of the key of its coins; those of the operating system if not given.
    """

    name: Name
    rules: Annotated[dict[str, Any], Meta(extra_json_schema=rules_schema())]
    job: Annotated[str, Meta(extra_json_schema={"enum": [*JOBS, "temporal release"]})] = "release"
    model: Word | None = None
    policy: Word | None = None
    coins: Word | None = None


class DocumentLine(msgspec.Struct, frozen=True):
    """A model or a policy in a list."""

    name: str
    version: int
    fingerprint: str
    created: str


class ReleaseLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A release in a list.

    Attributes:
        name: Its name.
        status: `preparing`, `ready` or `failed`.
        default: Whether events that name no release go there.
        job: Who answers its events.
        rules: Its rules, complete.
        model: Fingerprint of its model.
        policy: Fingerprint of its policy.
        created: When.
        detail: Why it failed.
        closed: Since when it answers nothing new; left out if it does.
    """

    name: str
    status: str
    default: bool
    job: str | None = None
    rules: dict[str, Any] | None = None
    model: str | None = None
    policy: str | None = None
    created: str | None = None
    detail: str | None = None
    closed: str | None = None


class RulesQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which release; the default if not given."""

    release: Word | None = None


class RulesBody(msgspec.Struct, frozen=True):
    """The rules of a release: with them and its model whoever has the answers can audit them.

    Attributes:
        release: Its name.
        job: Who answers its events.
        rules: Its rules, complete.
        only: Whether all streams are answered by it; not so if none was named and streams may have
            begun in others.
    """

    release: str
    job: str
    rules: dict[str, Any]
    only: bool


class DocumentsBody(msgspec.Struct, frozen=True):
    """All models, or all policies, oldest first."""

    documents: list[DocumentLine]


class ReleasesBody(msgspec.Struct, frozen=True):
    """All releases, in the order in which they were made."""

    releases: list[ReleaseLine]


class LogQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Entries after one of them, so many."""

    after: Annotated[int, Meta(ge=0, lt=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100


class LogLine(msgspec.Struct, frozen=True):
    """What an administrator did; contents are left out, their hash is in that of the entry."""

    number: int
    time: str
    actor: str
    action: str
    name: str
    hash: str


class LogBody(msgspec.Struct, frozen=True):
    """Entries of the registry in order; ask for those after `next`, null at the end."""

    entries: list[LogLine]
    head: str
    next: int | None


async def in_thread(act: Callable[[], Made]) -> Made:
    """What an act on the registry brings; it waits for a disk or a database.

    Raises:
        HttpProblem: If it is refused.
    """
    try:
        return await asyncio.to_thread(act)
    except SfumatoError as wrong:
        raise HttpProblem(of_error(wrong)) from None


async def _done(act: Awaitable[None]) -> None:
    """Wait for an act of the desk; what it refuses is told."""
    try:
        await act
    except SfumatoError as wrong:
        raise HttpProblem(of_error(wrong)) from None


def rules_operation(handler: Callable[[Call], Awaitable[Result]]) -> Operation:
    """The rules of a release, for whoever may send it events."""
    return Operation(
        name="get_rules",
        method="GET",
        path="/v1/rules",
        summary="The rules of a release, for whoever audits its answers",
        handler=handler,
        action="release",
        query=RulesQuery,
        replies={200: RulesBody},
        problems=("preparing", "unavailable"),
    )


def release_operations(desk: ReleaseDesk, releases: Releases, home: Home) -> tuple[Operation, ...]:
    """The operations of administrators on models, policies and releases."""

    async def models(call: Call) -> Result:
        return Result(DocumentsBody([_line(each) for each in desk.catalogue.models.values()]))

    async def policies(call: Call) -> Result:
        return Result(DocumentsBody([_line(each) for each in desk.catalogue.policies.values()]))

    async def add_model(call: Call) -> Result:
        body: DocumentBody = call.body

        def act() -> tuple[str, bool]:
            return desk.add_model(call.known.id, body.name, read_model(body.data))

        fingerprint, new = await in_thread(act)
        return Result(_line(desk.catalogue.models[fingerprint]), 201 if new else 200)

    async def add_policy(call: Call) -> Result:
        body: DocumentBody = call.body

        def act() -> tuple[str, bool]:
            policy: Policy = from_bytes(body.data, Policy)
            return policy.fingerprint, desk.add_policy(call.known.id, body.name, policy)

        fingerprint, new = await in_thread(act)
        return Result(_line(desk.catalogue.policies[fingerprint]), 201 if new else 200)

    async def all_releases(call: Call) -> Result:
        lines = [_release(state, releases, desk.catalogue) for state in releases.states()]
        return Result(ReleasesBody(lines))

    async def rules(call: Call) -> Result:
        named: str | None = call.query.release
        found = releases.named(named)
        content = desk.catalogue.releases[found.name].content
        told = msgspec.json.decode(content.rules)
        only = releases.of_all((), named) is not None
        return Result(RulesBody(found.name, content.job, told, only))

    async def create(call: Call) -> Result:
        told = msgspec.structs.asdict(call.body)
        # The command is `temporal release`; its job has one name in registry and ledgers.
        told["job"] = told["job"].removesuffix(" release")
        asked = ReleaseRequest(**told)
        try:
            state, begun = await desk.create(call.known.id, asked)
        except SfumatoError as wrong:
            raise HttpProblem(of_error(wrong)) from None
        preparing = begun or state.status is Status.PREPARING
        return Result(_release(state, releases, desk.catalogue), 202 if preparing else 200)

    async def activate(call: Call) -> Result:
        name = call.path["release"]
        await _done(desk.activate(call.known.id, name))
        [state] = [state for state in releases.states() if state.name == name]
        return Result(_release(state, releases, desk.catalogue))

    async def close(call: Call) -> Result:
        name = call.path["release"]
        await _done(desk.close_release(call.known.id, name))
        [state] = [state for state in releases.states() if state.name == name]
        return Result(_release(state, releases, desk.catalogue))

    async def log(call: Call) -> Result:
        query: LogQuery = call.query
        return Result(await in_thread(lambda: _log(home, query)))

    listed, line = {200: DocumentsBody}, {200: DocumentLine, 201: DocumentLine}
    state = {200: ReleaseLine, 202: ReleaseLine}
    one = "/v1/releases/{release}"
    return (
        _operation("get_models", "GET", "/v1/models", "All models", models, listed),
        _operation(
            "post_model", "POST", "/v1/models", "Add a model", add_model, line, DocumentBody
        ),
        _operation("get_policies", "GET", "/v1/policies", "All policies", policies, listed),
        _operation(
            "post_policy", "POST", "/v1/policies", "Add a policy", add_policy, line, DocumentBody
        ),
        _operation(
            "get_releases", "GET", "/v1/releases", "All releases", all_releases, {200: ReleasesBody}
        ),
        _operation(
            "post_release", "POST", "/v1/releases", "Make a release", create, state, ReleaseBody
        ),
        _operation(
            "activate_release",
            "POST",
            f"{one}/activate",
            "Make a release the default",
            activate,
            state,
        ),
        _operation(
            "close_release",
            "POST",
            f"{one}/close",
            "Answer no more events under a release; what was answered is told as ever",
            close,
            state,
        ),
        rules_operation(rules),
        Operation(
            name="get_admin_log",
            method="GET",
            path="/v1/admin/log",
            summary="What administrators did",
            handler=_everywhere(log),
            action="admin",
            query=LogQuery,
            replies={200: LogBody},
        ),
    )


def _operation(
    name: str,
    method: str,
    path: str,
    summary: str,
    handler: Any,
    replies: dict[int, Any],
    body: Any = None,
) -> Operation:
    return Operation(
        name=name,
        method=method,
        path=path,
        summary=summary,
        handler=_everywhere(handler),
        action="admin",
        body=body,
        replies=replies,
        problems=("conflict", "closed", "rules", "preparing"),
        size="document_bytes",
    )


def _everywhere(handler: Any) -> Any:
    """A handler for whoever administers all streams: a release is for all of them."""

    async def checked(call: Call) -> Result:
        call.known.require_everywhere("admin")
        result: Result = await handler(call)
        return result

    return checked


def _line(found: Any) -> DocumentLine:
    version = getattr(found, "version", 1)
    return DocumentLine(found.name, version, found.fingerprint, found.created)


def _release(state: ReleaseState, releases: Releases, catalogue: Catalogue) -> ReleaseLine:
    status, default = state.status.value, state.name == releases.default
    stored = catalogue.releases.get(state.name)
    if stored is None:
        return ReleaseLine(state.name, status, default, detail=state.detail or None)
    content = stored.content
    return ReleaseLine(
        name=state.name,
        status=status,
        default=default,
        job=content.job,
        rules=msgspec.json.decode(content.rules),
        model=content.model,
        policy=content.policy,
        created=stored.created,
        detail=state.detail or None,
        closed=stored.closed,
    )


def _log(home: Home, query: LogQuery) -> LogBody:
    found = home.registry.entries(query.after)
    shown = found[: query.limit]
    lines = [
        LogLine(one.number, one.time, one.actor, one.action, one.name, one.hash.hex())
        for one in shown
    ]
    following = lines[-1].number if len(found) > len(shown) else None
    return LogBody(lines, str(home.registry.head), following)
