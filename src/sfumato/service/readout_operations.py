"""What is read of releases, as operations: documents from public things alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from sfumato.core.errors import SfumatoError
from sfumato.service.application import Visitor
from sfumato.service.fleet_documents import CatalogueDocument
from sfumato.service.operations import Call, Operation, Result
from sfumato.service.problems import HttpProblem, of_query, problem
from sfumato.service.readable_release import CatalogueLine, ReadableRelease
from sfumato.service.readout_routes import READOUT_ROUTES, ReadoutRoute, Scope
from sfumato.service.readouts import NoAnswers, Readouts
from sfumato.service.release_desk import ReleaseDesk
from sfumato.service.releases import OpenRelease, Releases
from sfumato.service.stream_documents import CertificateDocument
from sfumato.store.catalogue import Catalogue, ModelVersion, StoredPolicy

_COUNTS = "metrics"
"""The action for what is counted over all streams."""


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
        return self._readable(found)

    def _readable(self, found: OpenRelease) -> ReadableRelease:
        known = self._known.get(found.name)
        if known is None or known[0] is not found:
            opened = found.opened
            made = ReadableRelease(found.name, opened.store, opened.model, opened.policy)
            known = self._known[found.name] = (found, made)
        return known[1]

    def others(self, name: str) -> Sequence[ReadableRelease]:
        """All open releases but one."""
        return [self._readable(one) for one in self._releases.open() if one.name != name]

    def unread(self) -> Sequence[str]:
        """Names of the releases that are not open."""
        return [state.name for state in self._releases.states() if state.open is None]

    def catalogue(self, within: Collection[str] | None = None) -> Sequence[CatalogueLine]:
        """Everything that was registered, oldest first; of some releases, what they rest on."""
        known = self._desk.catalogue
        if within is not None:
            known = _of_releases(known, within)
        return sorted(_lines(known, self._releases), key=lambda one: one.created or "")


def _of_releases(catalogue: Catalogue, names: Collection[str]) -> Catalogue:
    """What is known of some releases, and of the models and policies that they rest on.

    A policy is called like the release that it was compiled for first, and a model may be called
    like the one that a service was started with: another release that rests on it, too, would be
    told that name. So each is called like the first of these releases, models where they must be.
    """
    found = {name: one for name, one in catalogue.releases.items() if name in names}
    hidden = catalogue.releases.keys() - found.keys()
    models: dict[str, ModelVersion] = {}
    policies: dict[str, StoredPolicy] = {}
    for one in found.values():
        name, created = one.name, one.created
        if (model := catalogue.models.get(one.content.model or "")) is not None:
            own = replace(model, version=1, name=name, created=created)
            models.setdefault(model.fingerprint, own if model.name in hidden else model)
        if (policy := catalogue.policies.get(one.content.policy or "")) is not None:
            policies.setdefault(policy.fingerprint, replace(policy, name=name, created=created))
    return replace(catalogue, releases=found, models=models, policies=policies)


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
        status = "preparing" if state is None else state.status.value
        found.append(
            CatalogueLine(
                kind="release",
                name=one.name,
                created=one.created,
                uses=uses,
                job=content.job,
                status=status,
                default=one.name == catalogue.default,
                detail="" if state is None else state.detail,
                closed=one.closed,
            )
        )
    return found


def readout_operations(readouts: Readouts) -> tuple[Operation, ...]:
    """All readouts as operations."""
    return tuple(_operation(route, readouts) for route in READOUT_ROUTES)


def _operation(route: ReadoutRoute, readouts: Readouts) -> Operation:
    async def handler(call: Call) -> Result:
        _require(call, route)
        room = call.application.reading
        try:
            found = await room.read(call.known.id, lambda: _asked(readouts, route, call))
        except NoAnswers as nothing:
            raise HttpProblem(problem("not-found", str(nothing))) from None
        except LookupError:
            detail = "there is no such release, or no such stream in it"
            raise HttpProblem(problem("not-found", detail)) from None
        except SfumatoError as wrong:
            raise HttpProblem(of_query(wrong)) from None
        return Result(_within(call.known, found))

    return Operation(
        name=f"get_{route.method}",
        method="GET",
        path=route.path,
        summary=route.summary,
        handler=handler,
        action=route.action,
        instead=_COUNTS if route.scope is Scope.COUNTED else None,
        query=route.query,
        replies={200: route.reply},
        problems=("not-found", "rules", "busy", "unavailable"),
        own=route.scope is Scope.NONE and route.beside,
    )


def _require(call: Call, route: ReadoutRoute) -> None:
    """Refuse what tells of streams beyond the key, were it only how many answers they got."""
    match route.scope:
        case Scope.STREAM | Scope.OWN | Scope.NONE:
            return  # the stream in the address was asked for; a listing keeps to the key
        case Scope.COUNTED if call.known.may(_COUNTS):
            return
        case Scope.ALL | Scope.COUNTED:
            call.known.require_everywhere(route.action)


def _asked(readouts: Readouts, route: ReadoutRoute, call: Call) -> Any:
    if route.scope is Scope.OWN:
        return readouts.streams(call.query, call.known.streams)
    if route.beside:
        tell = getattr(readouts, route.method)
        return tell(*call.path.values(), call.query, within=call.known.releases)
    return getattr(readouts, route.method)(*call.path.values(), call.query)


def _within(visitor: Visitor, found: Any) -> Any:
    """A document without what is not for a visitor: the length of the ledger, why releases failed.

    The head of a ledger begins with how many rows all streams have.
    """
    if isinstance(found, CertificateDocument) and not visitor.may_everywhere("read"):
        return msgspec.structs.replace(found, head="")
    if isinstance(found, CatalogueDocument) and not visitor.may("admin"):
        rows = [msgspec.structs.replace(row, detail="") for row in found.rows]
        return msgspec.structs.replace(found, rows=rows)
    return found
