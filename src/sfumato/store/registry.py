"""What administrators did: a log that only grows, each entry tied to the one before by its hash.

A service holds no list of models, releases or access keys that could be edited: it appends what was
done, by whom and when, and what is current follows from all of it (`catalogue`). So every action is
audited by construction, and one that was changed or taken out shows.

An entry never holds a person's value, an access key or a key of coins: models and policies are
public to the adversary, access keys are hashed, of keys of coins there is a commitment.
`MemoryRegistry` is for tests; `sqlite_registry` and `postgres_registry` keep it.
A new kind of registry inherits `tests/contracts/registry_laws.py`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol, Self

import msgspec

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.guard import Guarded, guarded
from sfumato.store.protocol import Head, LedgerMismatch

VERSION = 1
MOST_BYTES = 256 << 20
"""A policy of many channels takes megabytes; more than this is a mistake, not a document."""
CLOSED = "release.closed"
"""The action that ledgers look for, too: nothing is committed to one after it."""
_MOST_LETTERS = 200
_ID_BYTES = 16
_encode = msgspec.msgpack.Encoder().encode

Clock = Callable[[], datetime]
"""Says what time it is."""


class RegistryMoved(LedgerMismatch):
    """Others appended to a registry since it was read: read it, and decide anew.

    Attributes:
        after: How many entries whoever appends had read.
        head: How many there are.
    """

    def __init__(self, after: int, head: int) -> None:
        self.after, self.head = after, head
        super().__init__(
            f"the registry must end with entry {after} to be appended to; it ends with {head}: "
            "somebody else was quicker, and nothing was appended"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One action of an administrator.

    Attributes:
        number: Its place, counted from 1.
        time: When it was appended, in UTC.
        actor: Who did it: the id of an access key, or a word such as `service`.
        action: What was done, in the words of `catalogue`.
        name: What it was done to.
        content: What else belongs to it, as bytes that the action explains.
        hash: Of all this and of the entry before.
    """

    number: int
    time: str
    actor: str
    action: str
    name: str
    content: bytes
    hash: bytes


class Registry(Protocol):
    """A log of actions; safe in threads, refused in a forked child.

    Examples:
        >>> log = MemoryRegistry()
        >>> _ = log.append("ann", "release.created", "city", b"{}")
        >>> [entry.action for entry in log.entries()]
        ['release.created']
    """

    @property
    def head(self) -> Head:
        """How many entries there are now, and the hash of all of them."""
        ...

    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> Entry:
        """Append an entry; it is durable when this returns.

        Args:
            actor: Who does it.
            action: What is done.
            name: What it is done to.
            content: What else belongs to it; never a person's value, never a key.
            after: The last entry that was read, if what is appended depends on it.

        Raises:
            RegistryMoved: If there are other entries after that one; nothing is appended.
        """
        ...

    def entries(self, after: int = 0) -> list[Entry]:
        """The entries after one of them, in order, each checked against the one before.

        Raises:
            CorruptData: If one was changed, moved or taken out.
        """
        ...

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        ...

    def close(self) -> None:
        """Let others hold it; everything appended stays."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def new_beginning() -> tuple[bytes, bytes]:
    """The id of a new registry, which tells it from others, and the hash before its first entry."""
    id_ = os.urandom(_ID_BYTES)
    return id_, beginning(id_)


def beginning(id_: bytes) -> bytes:
    """The hash that the first entry of a registry follows."""
    return _hash(b"registry", _encode((VERSION, id_)))


def next_entry(
    head: Head, now: datetime, actor: str, action: str, name: str, content: bytes
) -> Entry:
    """The entry that follows a head.

    Examples:
        >>> begun = Head(0, beginning(b"an id"))
        >>> next_entry(begun, datetime(2026, 5, 1, tzinfo=UTC), "ann", "greet", "bob", b"").number
        1
    """
    for field, text in (("actor", actor), ("action", action), ("name", name)):
        if not 0 < len(text) <= _MOST_LETTERS or not text.isprintable():
            rule = f"have 1 to {_MOST_LETTERS} letters that can be printed"
            raise InvalidParameter(f"{field} of an entry", text, rule)
    if len(content) > MOST_BYTES:
        rule = f"have at most {MOST_BYTES:,} bytes"
        raise InvalidParameter("content of an entry", f"{len(content):,} bytes", rule)
    time = now.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    bare = Entry(head.entries + 1, time, actor, action, name, bytes(content), b"")
    return replace(bare, hash=entry_hash(head.hash, bare))


def entry_hash(before: bytes, entry: Entry) -> bytes:
    """Hash of an entry and of the one before it."""
    # Of the content its digest: a log without contents can be checked too.
    content = hashlib.sha256(entry.content).digest()
    told = (entry.number, entry.time, entry.actor, entry.action, entry.name, content)
    return _hash(b"entry", before + _encode(told))


def chained(entries: Iterable[Entry], head: Head) -> Iterator[Entry]:
    """Entries that follow a head, each checked when its turn comes.

    Raises:
        CorruptData: If one is not the one that was appended.
    """
    number, before = head.entries, head.hash
    for entry in entries:
        number += 1
        if entry.number != number:
            raise CorruptData(f"entry {number} of the registry is missing, or stands elsewhere")
        if entry_hash(before, entry) != entry.hash:
            raise CorruptData(f"entry {number} of the registry was changed, or one before it")
        before = entry.hash
        yield entry


def refuse_moved(after: int | None, head: Head) -> None:
    """Refuse whoever decided on another head than the one that is there."""
    if after is not None and after != head.entries:
        raise RegistryMoved(after, head.entries)


def utc_now() -> datetime:
    """The clock of registries."""
    return datetime.now(UTC)


def _hash(kind: bytes, content: bytes) -> bytes:
    return hashlib.sha256(b"sfumato registry 1 %b\0%b" % (kind, content)).digest()


class MemoryRegistry(Guarded):
    """A registry in memory: for tests, and gone with its process.

    Examples:
        >>> registry = MemoryRegistry()
        >>> registry.append("ann", "greet", "bob", b"good morning").number
        1
        >>> [entry.action for entry in registry.entries()]
        ['greet']
        >>> registry.append("eve", "greet", "bob", b"", after=0)
        Traceback (most recent call last):
        sfumato.store.registry.RegistryMoved: the registry must end with entry 0 ...
    """

    def __init__(self, clock: Clock = utc_now) -> None:
        self._clock, self._closed = clock, False
        _, begun = new_beginning()
        self._heads = [Head(0, begun)]
        self._entries: list[Entry] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def head(self) -> Head:
        """How many entries there are, and the hash of all of them."""
        return self._heads[-1]

    @guarded
    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> Entry:
        """Append an entry."""
        if self._closed:
            raise LedgerMismatch("the registry must be open; it was closed")
        refuse_moved(after, self.head)
        entry = next_entry(self.head, self._clock(), actor, action, name, content)
        self._entries.append(entry)
        self._heads.append(Head(entry.number, entry.hash))
        return entry

    @guarded
    def entries(self, after: int = 0) -> list[Entry]:
        """The entries after one of them, in order."""
        if after > self.head.entries:
            return []
        return list(chained(self._entries[after:], self._heads[after]))

    def head_at(self, entries: int) -> Head | None:
        """The head after so many entries; None if there are fewer."""
        return self._heads[entries] if 0 <= entries < len(self._heads) else None

    def close(self) -> None:
        """Take nothing more."""
        self._closed = True
