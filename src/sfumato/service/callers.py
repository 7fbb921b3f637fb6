"""Who was let in and what he may do, and the two ways of not being let in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sfumato.core.errors import SfumatoError
from sfumato.service.access_keys import EVERYTHING, AccessKey, Action, Scoped
from sfumato.service.rate_limits import WIDEST_RATE


class Denial(StrEnum):
    """Why somebody was not let in: for the log; whoever asks is told nothing but that he was not.

    Attributes:
        MISSING: There was no key.
        MALFORMED: What there was has not the form of one.
        UNKNOWN: No key has this id.
        WRONG: The id is that of a key, the secret is not.
        EXPIRED: It was valid once.
        REVOKED: It was revoked.
        STALE: The registry was not heard of for too long to know who is revoked.
    """

    MISSING = "missing"
    MALFORMED = "malformed"
    UNKNOWN = "unknown"
    WRONG = "wrong"
    EXPIRED = "expired"
    REVOKED = "revoked"
    STALE = "stale"


class Unauthenticated(SfumatoError):
    """Nobody with a valid access key asks (401).

    Attributes:
        why: For the log alone.
        key: The id that was claimed, if there was one; for the log alone.
    """

    def __init__(self, why: Denial, key: str | None = None) -> None:
        self.why, self.key = why, key
        super().__init__("Authorization must be `Bearer` and an access key that is valid")


class Forbidden(SfumatoError):
    """A valid key does not allow this (403), whether or not there is what it asks for."""

    def __init__(self, action: Action, where: str = "here") -> None:
        self.action = action
        super().__init__(f"the access key must allow the action {action.value!r} {where}")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever showed a valid key.

    Attributes:
        key: The key, as it was when he asked.
    """

    key: AccessKey

    @property
    def id(self) -> str:
        """Who it is, for logs and the registry."""
        return self.key.id

    def may(self, action: Action, stream: str | None = None) -> bool:
        """Whether an action is allowed, on a stream or on none in particular."""
        return self.key.may(action, stream)

    def require(self, action: Action, stream: str | None = None) -> None:
        """Refuse what is not allowed.

        Raises:
            Forbidden: If it is not.
        """
        if not self.key.may(action, stream):
            raise Forbidden(action)

    def require_everywhere(self, action: Action) -> None:
        """Refuse an action on all streams at once to whoever may not touch each of them."""
        if not self.key.may_everywhere(action):
            raise Forbidden(action, "for all streams (scope '*'): this is about all of them")

    def require_unlimited(self, action: Action) -> None:
        """Refuse an action on all releases at once to whoever may know of some."""
        if self.key.releases is not None or action not in self.key.actions:
            raise Forbidden(action, "for all releases: this is about all of them")

    def require_power_over(self, scope: Scoped) -> None:
        """Refuse to hand out, or to take away, more than the caller has himself."""
        if Action.ADMIN not in self.key.actions or not self.key.covers(scope):
            where = (
                "for all of these streams and releases, and allow itself what it is to give or take"
            )
            raise Forbidden(Action.ADMIN, where)

    def visible(self, streams: Iterable[str]) -> list[str]:
        """The streams that he may see; a listing shows no others."""
        return [stream for stream in streams if self.key.may(Action.READ, stream)]


def operator(name: str) -> Caller:
    """Whoever has the files of the service in his hands, and needs no key for what he can do."""
    now = datetime.now(UTC)
    key = AccessKey(name, "", EVERYTHING.streams, EVERYTHING.actions, now, rate=WIDEST_RATE)
    return Caller(key)
