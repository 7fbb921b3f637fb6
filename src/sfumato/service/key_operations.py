"""Access keys over HTTP: made, listed, rotated and revoked by administrators.

Nobody hands out, takes away or sees more than he has himself. A secret leaves in one reply, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.service.access import AccessControl
from sfumato.service.access_keys import AccessKey, Action
from sfumato.service.callers import Caller, Forbidden, Unauthenticated
from sfumato.service.gate import Admitted, forbidden
from sfumato.service.key_documents import (
    KeyBody,
    KeyRequest,
    KeysBody,
    NewKeyBody,
    RotationRequest,
    key_body,
)
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.problems import HttpProblem, of_error, problem

Made = TypeVar("Made")


def key_operations(control: AccessControl) -> tuple[Operation, ...]:
    """The operations on the keys of a service."""

    async def listed(call: Call) -> Result:
        now = datetime.now(UTC)
        found = await _done(lambda: control.keys(_caller(call)))
        return Result(KeysBody([key_body(key, now) for key in found]))

    async def created(call: Call) -> Result:
        return _new(await _done(lambda: control.issue(_caller(call), call.body.grant())))

    async def rotated(call: Call) -> Result:
        overlap = timedelta(seconds=call.body.overlap_seconds)
        return _new(await _done(lambda: control.rotate(_caller(call), call.path["key"], overlap)))

    async def revoked(call: Call) -> Result:
        key = await _done(lambda: control.revoke(_caller(call), call.path["key"]))
        return Result(key_body(key, datetime.now(UTC)))

    one, all_ = "/v1/keys/{key}", "/v1/keys"
    made = {201: NewKeyBody}
    return (
        _operation("get_keys", "GET", all_, "All access keys", listed, {200: KeysBody}),
        _operation("post_key", "POST", all_, "Make an access key", created, made, KeyRequest),
        _operation("delete_key", "DELETE", one, "Revoke a key, at once", revoked, {200: KeyBody}),
        _operation(
            "rotate_key", "POST", f"{one}/rotate", "Replace a key", rotated, made, RotationRequest
        ),
    )


def _operation(
    name: str,
    method: str,
    path: str,
    summary: str,
    handler: Callable[[Call], Awaitable[Result]],
    replies: Mapping[int, type],
    body: type | None = None,
) -> Operation:
    return Operation(
        name=name,
        method=method,
        path=path,
        summary=summary,
        handler=handler,
        action=Action.ADMIN.value,
        body=body,
        replies=replies,
        problems=("not-found", "rules"),
        own=True,
    )


def _new(made: tuple[str, AccessKey]) -> Result:
    text, key = made
    return Result(NewKeyBody(text, key_body(key, datetime.now(UTC))), 201)


def _caller(call: Call) -> Caller:
    visitor = call.known
    assert isinstance(visitor, Admitted)  # whoever comes through the gate is
    return visitor.caller


async def _done(act: Callable[[], Made]) -> Made:
    """What an act on the registry brings; it waits for a disk or a database, so in a thread."""
    try:
        return await asyncio.to_thread(act)
    except Forbidden as refused:
        raise forbidden(refused) from None
    except Unauthenticated as refused:  # revoked between the gate and here
        raise HttpProblem(problem("unauthorized", str(refused))) from None
    except InvalidParameter as wrong:
        if wrong.rule == "be the id of an access key":
            raise HttpProblem(problem("not-found", "there is no such access key")) from None
        raise HttpProblem(of_error(wrong)) from None
    except SfumatoError as wrong:
        raise HttpProblem(of_error(wrong)) from None
