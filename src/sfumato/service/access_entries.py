"""Access keys as entries of the registry: what is appended, and what follows from all of it.

| action | content |
|---|---|
| `access.begun` | the pepper of the installation, once: the first such entry counts |
| `key.created` | a new key, as JSON of `AccessKey`: a hash, never a secret |
| `key.limited` | the same, of a key for some releases: unknown to programs without such limits |
| `key.rotated` | the key that was replaced, with its end and the id of the new one |
| `key.revoked` | the key, with the time |
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.service.access_keys import AccessKey, narrowed
from sfumato.store.protocol import LedgerMismatch

BEGUN, CREATED, REVOKED, ROTATED = "access.begun", "key.created", "key.revoked", "key.rotated"
LIMITED = "key.limited"
_PEPPER_BYTES = 32
_HASH = re.compile("[0-9a-f]{64}")


class LogEntry(Protocol):
    """What is asked of an entry of the registry."""

    @property
    def number(self) -> int:
        """Its place, counted from 1."""
        ...

    @property
    def action(self) -> str:
        """What was done."""
        ...

    @property
    def name(self) -> str:
        """What it was done to."""
        ...

    @property
    def content(self) -> bytes:
        """What else belongs to it."""
        ...


class EntryLog(Protocol):
    """What is asked of a registry: entries are appended, durably, and read in order."""

    def append(
        self, actor: str, action: str, name: str, content: bytes, *, after: int | None = None
    ) -> LogEntry:
        """Append an entry; refused with `LedgerMismatch` if others came after the one named."""
        ...

    def entries(self, after: int = 0) -> Iterable[LogEntry]:
        """The entries after one of them, in order."""
        ...


@dataclass(frozen=True, slots=True)
class KeyRing:
    """What follows from the entries so far.

    Attributes:
        last: The number of the last entry that was read.
        pepper: Of the installation; None before it has begun.
        keys: The keys by their ids, those of no use any more among them.
    """

    last: int = 0
    pepper: bytes | None = None
    keys: Mapping[str, AccessKey] = field(default_factory=lambda: MappingProxyType({}))


def followed(ring: KeyRing, entries: Iterable[LogEntry]) -> KeyRing:
    """A key ring after more entries: only `key.created` adds a key, nothing ever widens one.

    Raises:
        CorruptData: If an entry about keys cannot be read: whom it shuts out would not be known.
    """
    last, pepper, keys = ring.last, ring.pepper, dict(ring.keys)
    for entry in entries:
        last = entry.number
        if entry.action == BEGUN:
            pepper = pepper or _pepper_in(entry)
        elif entry.action in (CREATED, LIMITED, REVOKED, ROTATED):
            told = key_in(entry)
            before = keys.get(told.id)
            if before is not None:
                keys[told.id] = narrowed(before, told)
            elif entry.action in (CREATED, LIMITED):
                keys[told.id] = told
    return KeyRing(last, pepper, MappingProxyType(keys))


def begun(log: EntryLog, actor: str) -> KeyRing:
    """The key ring of a log, which is begun if it was not.

    Two nodes that begin at once agree on one pepper.
    """
    ring = followed(KeyRing(), log.entries(0))
    while ring.pepper is None:
        content = msgspec.json.encode({"pepper": secrets.token_hex(_PEPPER_BYTES)})
        try:
            log.append(actor, BEGUN, "access", content, after=ring.last)
        except LedgerMismatch:
            read = ring.last
            ring = followed(ring, log.entries(ring.last))
            if ring.last == read:
                raise  # nobody was quicker: the log refuses for another reason
        else:
            ring = followed(ring, log.entries(ring.last))
    return ring


def creation(key: AccessKey) -> str:
    """The action that makes a key.

    A node of an older program would take a key for some releases as one for all. Under a name that
    it does not know it makes none of it.
    """
    return CREATED if key.releases is None else LIMITED


def content_of(key: AccessKey) -> bytes:
    """A key as the content of an entry; the same key gives the same bytes."""
    return msgspec.json.encode(key, order="deterministic")


def key_in(entry: LogEntry) -> AccessKey:
    """The key that an entry is about.

    Raises:
        CorruptData: If it holds none, or one of another name.
    """
    try:
        key = msgspec.json.decode(entry.content, type=AccessKey)
    except msgspec.DecodeError:
        raise CorruptData(f"entry {entry.number} of the registry must hold an access key") from None
    if entry.action == LIMITED and key.releases is None:
        raise CorruptData(f"entry {entry.number} of the registry must limit its key to releases")
    if key.id != entry.name or _HASH.fullmatch(key.hash) is None:
        raise CorruptData(f"entry {entry.number} of the registry must hold the key that it names")
    return key


def _pepper_in(entry: LogEntry) -> bytes:
    try:
        pepper = bytes.fromhex(msgspec.json.decode(entry.content, type=dict[str, str])["pepper"])
    except (msgspec.DecodeError, KeyError, ValueError):
        pepper = b""
    if len(pepper) != _PEPPER_BYTES:
        raise CorruptData(f"entry {entry.number} of the registry must hold a pepper")
    return pepper
