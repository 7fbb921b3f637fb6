"""Who asks, and whether he may: the access keys of a service, as its registry has them.

`AccessControl` follows the log of what administrators did. A key is what the first entry about it
said, less whatever later entries took away. Changes that are made here count at once; those of
other nodes when `follow` is called next, which the server does every second.

    control = AccessControl(home.registry)
    caller = control.identify(request.headers.get("authorization"))    # or raises Unauthenticated
    caller.require(Action.RELEASE, "ann")                              # or raises Forbidden

A stream out of scope is refused before anybody looks whether it exists: the reply is the same.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sfumato.core.errors import InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.service import access_keys
from sfumato.service.access_entries import (
    REVOKED,
    ROTATED,
    EntryLog,
    begun,
    content_of,
    creation,
    followed,
)
from sfumato.service.access_keys import EVERYTHING, AccessKey, Action, Grant
from sfumato.service.callers import Caller, Denial, Forbidden, Unauthenticated, operator
from sfumato.store.protocol import LedgerMismatch
from sfumato.store.registry import RegistryMoved

__all__ = [
    "AccessControl",
    "AccessKey",
    "Action",
    "Caller",
    "Denial",
    "Forbidden",
    "Grant",
    "Unauthenticated",
    "operator",
]

_SCHEME = "bearer "
_ATTEMPTS = 8
"""Times that others may append between a look at the registry and an entry that rests on it."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


class AccessControl(Guarded):
    """The access keys of a service.

    `identify` takes no lock and no disk; the methods that change something wait for the registry.
    No answer is remembered from one request to the next: a hash takes a microsecond, and what is
    not remembered cannot outlive a revocation.
    """

    def __init__(
        self,
        log: EntryLog,
        clock: Callable[[], datetime] = _utc_now,
        *,
        stale_after: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Read the keys of a log.

        Args:
            log: The registry.
            clock: Says what time it is, with its zone.
            stale_after: Seconds without a successful `follow` after which nobody is let in, for a
                registry that others write to as well; None for one of our own.
            monotonic: A clock that nobody sets.
        """
        self._log, self._clock, self._monotonic = log, clock, monotonic
        self._stale_after, self._heard = stale_after, monotonic()
        self._ring = begun(log, "service")

    def identify(self, header: str | None) -> Caller:
        """Who asks, by the header `Authorization`.

        Raises:
            Unauthenticated: If there is no valid key in it. A wrong secret and an unknown id take
                the same work.
        """
        if not header:
            raise Unauthenticated(Denial.MISSING)
        if header[: len(_SCHEME)].lower() != _SCHEME:
            raise Unauthenticated(Denial.MALFORMED)
        return self.identify_text(header[len(_SCHEME) :].strip())

    def identify_text(self, text: str) -> Caller:
        """Who asks, by the text of a key, as the first message of a socket may hold it."""
        parts = access_keys.parted(text)
        if parts is None:
            raise Unauthenticated(Denial.MALFORMED)
        id_, secret = parts
        ring = self._ring
        key = ring.keys.get(id_)
        assert ring.pepper is not None  # `begun` saw to it
        if not access_keys.proves(key, ring.pepper, id_, secret) or key is None:
            raise Unauthenticated(Denial.UNKNOWN if key is None else Denial.WRONG, id_)
        return self._admitted(key)

    def current(self, caller: Caller) -> Caller:
        """The caller as he is now: asked again while a connection stays open.

        Raises:
            Unauthenticated: If his key was revoked or has expired meanwhile.
        """
        return self._admitted(self._ring.keys.get(caller.id, caller.key))

    def _admitted(self, key: AccessKey) -> Caller:
        silent = self._monotonic() - self._heard
        if self._stale_after is not None and silent > self._stale_after:
            raise Unauthenticated(Denial.STALE, key.id)
        if not key.valid(self._clock()):
            why = Denial.EXPIRED if key.revoked is None else Denial.REVOKED
            raise Unauthenticated(why, key.id)
        return Caller(key)

    @guarded
    def follow(self) -> None:
        """Read what was appended since, here or by other nodes."""
        self._catch_up()

    def _catch_up(self) -> None:
        self._ring = followed(self._ring, self._log.entries(self._ring.last))
        self._heard = self._monotonic()

    def keys(self, by: Caller) -> list[AccessKey]:
        """The keys over which a caller has power, in the order in which they were made."""
        by.require(Action.ADMIN)
        found = [key for key in self._ring.keys.values() if by.key.covers(key)]
        return sorted(found, key=lambda key: (key.created, key.id))

    @guarded
    def first_key(self) -> str | None:
        """The text of a key that may do everything, if there was never any key; shown once."""
        while not self._ring.keys:
            text, key = access_keys.mint(EVERYTHING, self._pepper, self._clock())
            if self._appended(operator("service"), creation(key), key):
                return text
        return None

    @guarded
    def issue(self, by: Caller, grant: Grant) -> tuple[str, AccessKey]:
        """Make a key within the power of the caller; its text is in nobody's memory after this.

        Raises:
            Forbidden: If it could do what the caller may not.
            InvalidParameter: If it would end later, or ask for more, than the key of the caller.
            Unauthenticated: If that key was revoked or has expired meanwhile, here or elsewhere.
        """
        for now in self._attempts(by):
            now.require_power_over(grant)
            within = access_keys.within_maker(grant, now.key)
            text, key = access_keys.mint(within, self._pepper, self._clock())
            if self._appended(by, creation(key), key):
                return text, key
        raise AssertionError  # the attempts end with what was made, or an error

    @guarded
    def revoke(self, by: Caller, id_: str) -> AccessKey:
        """Make a key useless, at once; once more changes nothing.

        Raises:
            Forbidden: If there is no such key within the power of the caller.
            Unauthenticated: If the key of the caller is of no use any more.
        """
        for now in self._attempts(by):
            key = self._within_power(now, id_)
            if key.revoked is not None:
                break
            if self._appended(by, REVOKED, access_keys.revoked(key, self._clock())):
                break
        return self._ring.keys[id_]

    @guarded
    def rotate(self, by: Caller, id_: str, overlap: timedelta) -> tuple[str, AccessKey]:
        """A new key with the same scope; the old one is valid until the overlap has passed.

        Raises:
            Forbidden: If there is no such key within the power of the caller.
            InvalidParameter: If it is of no use any more, or was rotated before; or if its
                successor would end later, or ask for more, than the key of the caller.
            Unauthenticated: If the key of the caller is of no use any more.
        """
        for now in self._attempts(by):
            old = self._within_power(now, id_)
            access_keys.within_maker(access_keys.grant_of(old), now.key)
            if old.expires is None and now.key.expires is not None:
                rule = "end no later than the key that rotates it"
                raise InvalidParameter("key", id_, rule)
            text, new, ended = access_keys.rotated(old, self._pepper, self._clock(), overlap)
            if self._appended(by, creation(new), new):
                break
        # It only takes away, from a key whose successor is there: no entry in between matters.
        self._log.append(by.id, ROTATED, id_, content_of(ended))
        self._catch_up()
        return text, new

    def _attempts(self, by: Caller) -> Iterator[Caller]:
        """The caller as the whole registry has him now, each time that others were quicker.

        Raises:
            Unauthenticated: If his key is of no use any more, whoever said so on whatever node.
            LedgerMismatch: If others were quicker too often.
        """
        for _ in range(_ATTEMPTS):
            self._catch_up()
            yield self.current(by)
        raise RegistryMoved(self._ring.last, self._ring.last)

    def _appended(self, by: Caller, action: str, key: AccessKey) -> bool:
        """Append what was decided on all entries so far; False if there were others meanwhile."""
        read = self._ring.last
        try:
            self._log.append(by.id, action, key.id, content_of(key), after=read)
        except LedgerMismatch:
            self._catch_up()
            if self._ring.last == read:
                raise  # nobody was quicker: the registry refuses for another reason
            return False
        self._catch_up()
        return True

    def _within_power(self, by: Caller, id_: str) -> AccessKey:
        key = self._ring.keys.get(id_)
        if key is None:
            # Only who sees all keys learns that it is not there; others are told what they are
            # told of keys that are.
            by.require_power_over(replace(EVERYTHING, actions=by.key.actions))
            raise InvalidParameter("key", id_, "be the id of an access key")
        by.require_power_over(key)
        return key

    @property
    def _pepper(self) -> bytes:
        assert self._ring.pepper is not None  # `begun` saw to it
        return self._ring.pepper

    def secret(self, purpose: str) -> bytes:
        """A secret of the installation for one purpose, the same on all of its nodes."""
        return hmac.digest(self._pepper, f"sfumato secret for {purpose}".encode(), "sha256")
