"""What is read of releases, as operations: documents from public things alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from sfumato.core.errors import SfumatoError
from sfumato.service.fleet_documents import StreamsDocument
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.problems import HttpProblem, of_error, problem
from sfumato.service.readable_release import CatalogueLine, ReadableRelease
from sfumato.service.readout_routes import READOUT_ROUTES, ReadoutRoute
from sfumato.service.readouts import NoAnswers, Readouts
from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.releases import OpenRelease, Releases
from sfumato.store.catalogue import Catalogue

_OF_ALL = ("/v1/plan", "/v1/catalogue", "/v1/ledger/head")
"""What tells nothing of single streams: whoever may read anything may read it."""


class ReadableReleases:
    """Where readouts find releases; from any thread.

    Args:
        releases: What is open.
        desk: What was registered.
    """

    def __init__(self, releases: Releases, desk: ReleaseDesk) -> None:
        self._releases, self._desk = releases, desk
        self._known: dict[str, tuple[OpenRelease, ReadableRelease]] = {}

    def readable(self, name: str | None, stream: str | None = None) -> ReadableRelease:
        """A release by name; else that of a stream which began in one, or the default.

        Raises:
            LookupError: If there is none.
        """
        try:
            if stream is not None:
                found = self._releases.of_stream(stream, name)
            else:
                found = self._releases.named(name)
        except HttpProblem as refused:
            raise LookupError(refused.problem.detail) from None
        known = self._known.get(found.name)
        if known is None or known[0] is not found:
            opened = found.opened
            made = ReadableRelease(found.name, opened.store, opened.model, opened.policy)
            known = self._known[found.name] = (found, made)
        return known[1]

    def catalogue(self) -> Sequence[CatalogueLine]:
        """Everything that was registered, oldest first."""
        return sorted(
            _lines(self._desk.catalogue, self._releases), key=lambda one: one.created or ""
        )


def _lines(catalogue: Catalogue, releases: Releases) -> list[CatalogueLine]:
    states = {state.name: state for state in releases.states()}
    names = {each.fingerprint: each.name for each in catalogue.models.values()}
    names |= {each.fingerprint: each.name for each in catalogue.policies.values()}
    found = [
        CatalogueLine("model", one.name, one.version, one.created, one.fingerprint)
        for one in catalogue.models.values()
    ]
    found += [
        CatalogueLine("policy", one.name, 1, one.created, one.fingerprint)
        for one in catalogue.policies.values()
    ]
    for one in catalogue.releases.values():
        content, state = one.content, states.get(one.name)
        uses = tuple(names[each] for each in (content.model, content.policy) if each in names)
        status = "preparing" if state is None else state.detail or state.status.value
        found.append(
            CatalogueLine(
                kind="release",
                name=one.name,
                created=one.created,
                uses=uses,
                job=content.job,
                status=status,
                default=one.name == catalogue.default,
            )
        )
    return found


def readout_operations(readouts: Readouts) -> tuple[Operation, ...]:
    """All readouts as operations."""
    return tuple(_operation(route, readouts) for route in READOUT_ROUTES)


def _operation(route: ReadoutRoute, readouts: Readouts) -> Operation:
    async def handler(call: Call) -> Result:
        _require(call, route)
        try:
            found = await asyncio.to_thread(_asked, readouts, route, call)
        except NoAnswers as nothing:
            raise HttpProblem(problem("not-found", str(nothing))) from None
        except LookupError:
            detail = "there is no such release, or no such stream in it"
            raise HttpProblem(problem("not-found", detail)) from None
        except SfumatoError as wrong:
            raise HttpProblem(of_error(wrong)) from None
        if isinstance(found, StreamsDocument):
            seen = [one for one in found.streams if call.known.sees(one.stream)]
            found = msgspec.structs.replace(found, streams=seen)
        return Result(found)

    return Operation(
        name=f"get_{route.method}",
        method="GET",
        path=route.path,
        summary=route.summary,
        handler=handler,
        action=route.action,
        query=route.query,
        replies={200: route.reply},
        problems=("not-found", "rules", "unavailable"),
    )


def _require(call: Call, route: ReadoutRoute) -> None:
    """Refuse what shows streams beyond the key; a listing of streams shows only those within."""
    stream = getattr(call.query, "stream", None)
    if stream is not None:
        call.known.require(route.action, stream)
    elif "stream" not in call.path and route.path not in _OF_ALL and route.method != "streams":
        call.known.require_everywhere(route.action)


def _asked(readouts: Readouts, route: ReadoutRoute, call: Call) -> Any:
    return getattr(readouts, route.method)(*call.path.values(), call.query)
