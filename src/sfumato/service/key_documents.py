"""Access keys as documents: what is asked for a new one, and what administrators see."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from sfumato.service.access_keys import AccessKey, Action, Grant, Moment
from sfumato.service.rate_limits import Limit, Rate

_Count = Annotated[int, Meta(ge=1, le=10**9)]
_MONTH = 31 * 86_400
RELEASE_NAME = "^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""What names of releases look like (`store.home.checked_name`), for the document."""


class LimitBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A steady rate, and how much may come at once after a pause."""

    per_second: _Count
    burst: _Count


class RateBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much a key may ask for."""

    requests: LimitBody
    events: LimitBody


class KeyRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a new key may do.

    Attributes:
        streams: Names of streams, `prefix*`, or `*` for all.
        actions: What may be done with them; none implies another.
        expires: From when on it is of no use; no later than the key that makes it, and as that if
            not given.
        note: For people: whose key it is.
        rate: How much it may ask for, no more than the key that makes it; the usual if not given.
        releases: Names of the releases that it may know of, there or to come; all if not given.
    """

    streams: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=1_024)]],
        Meta(min_length=1, max_length=1_000),
    ]
    actions: Annotated[list[Action], Meta(min_length=1, max_length=len(Action))]
    expires: Moment | None = None
    note: Annotated[str, Meta(max_length=200)] = ""
    rate: RateBody | None = None
    releases: (
        Annotated[
            list[Annotated[str, Meta(min_length=1, max_length=64, pattern=RELEASE_NAME)]],
            Meta(min_length=1, max_length=100),
        ]
        | None
    ) = None

    def grant(self) -> Grant:
        """The same, checked."""
        rate = None
        if self.rate is not None:
            asked, events = self.rate.requests, self.rate.events
            rate = Rate(
                Limit(asked.per_second, asked.burst), Limit(events.per_second, events.burst)
            )
        limit = None if self.releases is None else tuple(self.releases)
        streams, actions = tuple(self.streams), frozenset(self.actions)
        return Grant(streams, actions, self.expires, self.note, rate, limit)


class RotationRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long the old key stays valid beside the new one."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=_MONTH)] = 86_400


class KeyBody(msgspec.Struct, frozen=True):
    """A key as administrators see it: neither secret nor hash.

    Attributes:
        valid: Whether it opens anything now.
        releases: Names of the releases that it may know of; null for all.
    """

    id: str
    valid: bool
    streams: list[str]
    actions: list[Action]
    created: Moment
    expires: Moment | None
    revoked: Moment | None
    replaced_by: str | None
    note: str
    rate: RateBody
    releases: list[str] | None = None


class NewKeyBody(msgspec.Struct, frozen=True):
    """A new key: `key` is shown this once, and cannot be had again."""

    key: str
    access: KeyBody


class KeysBody(msgspec.Struct, frozen=True):
    """Keys, in the order in which they were made."""

    keys: list[KeyBody]


def key_body(key: AccessKey, now: datetime) -> KeyBody:
    """A key as administrators see it."""
    limits = (key.rate.requests, key.rate.events)
    return KeyBody(
        key.id,
        key.valid(now),
        list(key.streams),
        sorted(key.actions),
        key.created,
        key.expires,
        key.revoked,
        key.replaced_by,
        key.note,
        RateBody(*(LimitBody(limit.per_second, limit.burst) for limit in limits)),
        None if key.releases is None else list(key.releases),
    )
