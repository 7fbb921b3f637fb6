"""Access keys: who may ask the service for what, and the text that proves it.

A key is `sfk_<id>_<secret>`. The text is shown once, when it is made; what is kept is the id, a
hash, and what the key may do (`AccessKey`), as an entry of the registry. Everything here is a
value or a function of values: clocks and coins are passed in, and the log of entries is read and
written elsewhere (`access`).

Not to be mixed with release keys (`release_keys`), from which coins are drawn.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Annotated, Protocol

import msgspec

from sfumato.core.errors import InvalidParameter
from sfumato.core.keyed_digest import KeyedDigest
from sfumato.service.rate_limits import USUAL_RATE, WIDEST_RATE, Rate
from sfumato.store.home import checked_name

PREFIX = "sfk"
"""Begins every access key, so that one that was committed to a repository is found by scanners."""
_ID_BYTES, _SECRET_BYTES = 8, 32
_TEXT = re.compile(r"sfk_(?P<id>[0-9a-f]{16})_(?P<secret>[A-Za-z0-9_-]{43})")
_MOST_PATTERNS, _LONGEST_PATTERN, _LONGEST_NOTE = 1_000, 1_024, 200
_MOST_RELEASES = 100
_NOBODY = bytes(32)
"""Stands for the hash of a key that is not there; no text has it, by the odds of SHA-256."""


Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""A time with its zone; one without could not be compared with a clock."""


class Action(StrEnum):
    """What a key may do; none implies another.

    Attributes:
        RELEASE: Send events and get their answers.
        READ: See answers, budgets and certificates of streams in its scope.
        ADMIN: Make releases and keys.
        METRICS: Read what is counted over all streams.
    """

    RELEASE = "release"
    READ = "read"
    ADMIN = "admin"
    METRICS = "metrics"


class Scoped(Protocol):
    """What may be done, with which streams, in which releases."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Patterns of streams."""
        ...

    @property
    def actions(self) -> frozenset[Action]:
        """What may be done with them."""
        ...

    @property
    def releases(self) -> tuple[str, ...] | None:
        """Names of releases; None for all."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """What a new key may do.

    Attributes:
        streams: Names of streams, `prefix*`, or `*` for all.
        actions: What may be done with them.
        expires: From when on it is of no use; None if never.
        note: For people: whose key it is.
        rate: How much it may ask for; None for the usual, or that of its maker where that is less.
        releases: Names of the releases that it may know of; None for all that are, or will be.

    Examples:
        >>> Grant(streams=("ann", "ward-3-*"), actions=frozenset({Action.READ})).note
        ''
        >>> Grant(streams=("a*b",), actions=frozenset({Action.READ}))
        Traceback (most recent call last):
        sfumato.core.errors.InvalidParameter: streams must have no * but one at the end...
    """

    streams: tuple[str, ...]
    actions: frozenset[Action]
    expires: datetime | None = None
    note: str = ""
    rate: Rate | None = None
    releases: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not self.actions or not all(isinstance(each, Action) for each in self.actions):
            raise InvalidParameter("actions", "others", f"be some of {', '.join(Action)}")
        if not 1 <= len(self.streams) <= _MOST_PATTERNS:
            rule = f"be 1 to {_MOST_PATTERNS:,} names, prefix* or * for all"
            raise InvalidParameter("streams", len(self.streams), rule)
        for pattern in self.streams:
            _check_pattern(pattern)
        if self.expires is not None and self.expires.tzinfo is None:
            raise InvalidParameter("expires", str(self.expires), "say its time zone")
        if len(self.note) > _LONGEST_NOTE or not self.note.isprintable():
            rule = f"be one printable line of at most {_LONGEST_NOTE} letters"
            raise InvalidParameter("note", "another", rule)
        if self.releases is not None:
            _check_releases(self.releases)


def _check_releases(names: tuple[str, ...]) -> None:
    if not 1 <= len(names) <= _MOST_RELEASES or len({*names}) < len(names):
        rule = f"be 1 to {_MOST_RELEASES} names, none of them twice; left out for all releases"
        raise InvalidParameter("releases", len(names), rule)
    for name in names:
        checked_name(name)


def _check_pattern(pattern: str) -> None:
    if not 0 < len(pattern) <= _LONGEST_PATTERN:
        raise InvalidParameter("streams", "one", f"have 1 to {_LONGEST_PATTERN:,} letters each")
    if "*" in pattern[:-1]:
        raise InvalidParameter("streams", "one", "have no * but one at the end, for any ending")


EVERYTHING = Grant(("*",), frozenset(Action), note="first key of the service", rate=WIDEST_RATE)
"""What the first key may do: nobody can hand out more than he has."""


@dataclass(frozen=True, slots=True)
class AccessKey:
    """A key as it is kept: everything but its secret.

    Attributes:
        id: Tells it from all others; no secret, and seen in logs.
        hash: Of its secret, under the pepper of the installation; hexadecimal.
        streams: Patterns of the streams in its scope.
        actions: What may be done with them.
        created: When it was made.
        expires: From when on it is of no use; None if never.
        revoked: When it was revoked; None if it was not.
        replaced_by: The id of the key that a rotation put in its place.
        note: For people.
        rate: How much it may ask for.
        releases: Names of the releases in its scope; None for all, as keys of old have it.
    """

    id: str
    hash: str
    streams: tuple[str, ...]
    actions: frozenset[Action]
    created: Moment
    expires: Moment | None = None
    revoked: Moment | None = None
    replaced_by: str | None = None
    note: str = ""
    rate: Rate = USUAL_RATE
    releases: tuple[str, ...] | None = None

    def valid(self, now: datetime) -> bool:
        """Whether it opens anything at a time."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def may(self, action: Action, stream: str | None = None) -> bool:
        """Whether an action is in its scope, with a stream or with none in particular."""
        if action not in self.actions:
            return False
        return stream is None or any(_matches(pattern, stream) for pattern in self.streams)

    def outside(self, action: Action, streams: Iterable[str]) -> set[str]:
        """Those of some streams on which an action is not in its scope."""
        if self.may_everywhere(action):
            return set()
        return {stream for stream in {*streams} if not self.may(action, stream)}

    def may_everywhere(self, action: Action) -> bool:
        """Whether an action on all streams that are, or will be, is in its scope."""
        return action in self.actions and "*" in self.streams

    def covers(self, other: Scoped) -> bool:
        """Whether all that another scope allows is in its own."""
        within = all(any(_covers(mine, each) for mine in self.streams) for each in other.streams)
        return (
            within
            and self.actions.issuperset(other.actions)
            and _covers_releases(self.releases, other.releases)
        )


def _covers_releases(mine: tuple[str, ...] | None, others: tuple[str, ...] | None) -> bool:
    """Whether all releases of others are mine; those of one without a limit are all."""
    return mine is None or (others is not None and {*mine}.issuperset(others))


def _matches(pattern: str, stream: str) -> bool:
    return stream.startswith(pattern[:-1]) if pattern.endswith("*") else stream == pattern


def _covers(pattern: str, other: str) -> bool:
    """Whether every stream of another pattern is one of this."""
    if other.endswith("*"):
        return pattern.endswith("*") and other[:-1].startswith(pattern[:-1])
    return _matches(pattern, other)


def key_hash(pepper: bytes, id_: str, secret: str) -> bytes:
    """The hash of a secret.

    A secret has 256 random bits: nobody runs through them, however quick the hash is, so a slow
    one for passwords would protect nothing and cost every request. The pepper, one for each
    installation, and the id make it a hash for this place: an entry that was copied from another
    registry, or to another id, opens nothing.
    """
    return _peppered(pepper)(f"{id_} {secret}".encode())


@lru_cache(maxsize=8)
def _peppered(pepper: bytes) -> KeyedDigest:
    return KeyedDigest(pepper, b"sfumato access key v1 ")


def mint(
    grant: Grant,
    pepper: bytes,
    now: datetime,
    random: Callable[[int], bytes] = secrets.token_bytes,
) -> tuple[str, AccessKey]:
    """A new key: its text, to be shown once, and what is kept of it.

    Args:
        grant: What it may do.
        pepper: Of the installation.
        now: The time.
        random: Bytes that nobody can guess.

    Raises:
        InvalidParameter: If it would have expired before it is made.

    Examples:
        >>> from datetime import UTC
        >>> text, key = mint(EVERYTHING, bytes(32), datetime(2026, 1, 1, tzinfo=UTC))
        >>> text.startswith(f"sfk_{key.id}_"), len(text), text[21:] in str(key)
        (True, 64, False)
    """
    if grant.expires is not None and grant.expires <= now:
        raise InvalidParameter("expires", grant.expires.isoformat(), "be later than now")
    id_ = random(_ID_BYTES).hex()
    secret = base64.urlsafe_b64encode(random(_SECRET_BYTES)).rstrip(b"=").decode()
    hash_ = key_hash(pepper, id_, secret).hex()
    key = AccessKey(
        id_,
        hash_,
        grant.streams,
        grant.actions,
        now,
        grant.expires,
        note=grant.note,
        rate=grant.rate or USUAL_RATE,
        releases=grant.releases,
    )
    return f"{PREFIX}_{id_}_{secret}", key


def within_maker(grant: Grant, maker: AccessKey) -> Grant:
    """A grant as its maker may hand it out: it ends no later, and asks for no more, than he.

    What is left open becomes his own; scope and actions are for `covers`.

    Raises:
        InvalidParameter: If it names a later end, or a larger rate.
    """
    ends, rate = grant.expires, grant.rate
    if maker.expires is not None:
        if ends is not None and ends > maker.expires:
            rule = "be no later than the end of the key that makes it"
            raise InvalidParameter("expires", "later", rule)
        ends = ends or maker.expires
    if rate is None:
        rate = USUAL_RATE.narrowed(maker.rate)
    elif not rate.within(maker.rate):
        raise InvalidParameter("rate", "larger", "be no larger than that of the key that makes it")
    return replace(grant, expires=ends, rate=rate)


def parted(text: str) -> tuple[str, str] | None:
    """Id and secret of a text that has the form of a key."""
    found = _TEXT.fullmatch(text)
    return None if found is None else (found["id"], found["secret"])


def proves(key: AccessKey | None, pepper: bytes, id_: str, secret: str) -> bool:
    """Whether a secret is that of a key; as much work if there is no such key.

    The bytes are compared in a time that does not depend on them, and the hash before it hides
    which of them would have been equal anyway.
    """
    wanted = _NOBODY if key is None else bytes.fromhex(key.hash)
    fits = hmac.compare_digest(key_hash(pepper, id_, secret), wanted)
    return fits and key is not None


def revoked(key: AccessKey, now: datetime) -> AccessKey:
    """A key that is of no use any more."""
    return key if key.revoked is not None else replace(key, revoked=now)


def grant_of(key: AccessKey) -> Grant:
    """What a key may do, as another could be given it."""
    return Grant(key.streams, key.actions, key.expires, key.note, key.rate, key.releases)


def rotated(
    key: AccessKey, pepper: bytes, now: datetime, overlap: timedelta
) -> tuple[str, AccessKey, AccessKey]:
    """A new secret under a new id for the same scope; the old one ends after an overlap.

    Returns:
        The new text, the new key, and the old key as it is from now on.

    Raises:
        InvalidParameter: If the old key is of no use, or was rotated before: of two keys in its
            place, one would be forgotten.
    """
    if not key.valid(now) or key.replaced_by is not None:
        raise InvalidParameter("key", key.id, "be valid, and not rotated before")
    if overlap < timedelta(0):
        raise InvalidParameter("overlap", str(overlap), "be at least 0")
    text, new = mint(grant_of(key), pepper, now)
    ends = now + overlap
    if key.expires is not None:
        ends = min(ends, key.expires)
    return text, new, replace(key, expires=ends, replaced_by=new.id)


def narrowed(before: AccessKey, after: AccessKey) -> AccessKey:
    """What is left of a key after a later entry about it: never more than before.

    Two administrators may act at the same time on two nodes, each on what he saw: a rotation that
    comes after a revocation must not undo it. So hash and scope stay those of the first entry,
    and of two ends the earlier counts.
    """
    return replace(
        before,
        expires=_earlier(before.expires, after.expires),
        revoked=_earlier(before.revoked, after.revoked),
        replaced_by=before.replaced_by or after.replaced_by,
    )


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    if one is None or other is None:
        return one or other
    return min(one, other)
