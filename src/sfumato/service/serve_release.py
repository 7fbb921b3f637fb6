"""The release that a service is started with: made at the first start, the same at every other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sfumato.models.stream_model import StreamModel
from sfumato.service.job_rules import MadeRules
from sfumato.service.release_desk import ReleaseDesk
from sfumato.solver.policy import Policy
from sfumato.store.protocol import LedgerMismatch
from sfumato.stream.release_document import document, parse_spec
from sfumato.stream.release_spec import JOB, ReleaseSpec

Chosen: TypeAlias = tuple[StreamModel, ReleaseSpec, Policy | None]
ACTOR = "command line"


def establish(
    desk: ReleaseDesk,
    name: str,
    choose: Callable[[ReleaseSpec | None], Chosen],
    coins: str | None = None,
) -> None:
    """Make a release and activate it, or see that the one of this name has the same rules.

    Args:
        desk: Where releases are made.
        name: Of the release.
        choose: The model, the complete rules and the policy, given the rules that are there.
        coins: Id of the key of its coins.

    Raises:
        LedgerMismatch: If there is a release of this name under other rules.
    """
    desk.catch_up()
    there = desk.catalogue.releases.get(name)
    begun = None
    if there is not None:
        content = there.content
        if content.job != JOB.name or content.coins != coins:
            raise _other(name)
        begun = parse_spec(content.rules.encode(), f"release {name}")
    model, spec, policy = choose(begun)
    made = MadeRules(document(spec, model).decode(), policy)
    if there is not None:
        if made.document != there.content.rules:
            raise _other(name)
        return
    spec.plan(model, policy)
    fingerprint, _ = desk.add_model(ACTOR, name, model)
    desk.establish(ACTOR, name, JOB.name, made, fingerprint, coins)
    desk.activate_first(ACTOR, name)


def _other(name: str) -> LedgerMismatch:
    return LedgerMismatch(
        f"release {name!r} of this home has other rules ({JOB.rules}), and rules never change; "
        "start with those, without any, or under another --name"
    )
