"""What is current, as it follows from all that administrators did: a fold over a registry.

An action that this program does not know was written by a newer one, and is refused: it might have
revoked something. Whoever appends asks first whether the catalogue would take it (`record`), so
that a registry never holds what no catalogue can follow from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store.catalogue_contents import (
    NOTHING,
    BegunContent,
    ClosedContent,
    CoinsContent,
    Content,
    KeyContent,
    ModelContent,
    NoContent,
    PolicyContent,
    ReleaseContent,
    content_bytes,
    content_of,
)
from sfumato.store.registry import Entry, Registry, RegistryMoved

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class ModelVersion:
    """A version of a model; versions of a name are counted from 1."""

    name: str
    version: int
    fingerprint: str
    data: bytes = field(repr=False)
    created: str


@dataclass(frozen=True, slots=True)
class StoredPolicy:
    """A compiled policy."""

    name: str
    fingerprint: str
    data: bytes = field(repr=False)
    created: str


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A release: a name, and a rule that never changes.

    Attributes:
        name: Its name.
        content: Its rule.
        created: When it was made.
        closed: Since when no more events are answered under it; None if they are.
        last_head: Of its ledger when it was closed; None if it is open, or had none.
    """

    name: str
    content: ReleaseContent
    created: str
    closed: str | None = None
    last_head: str | None = None


@dataclass(frozen=True, slots=True)
class CoinKey:
    """What is known of a key of coins: everything but the key."""

    id: str
    commitment: str
    created: str
    rotated_from: str | None = None
    retired: str | None = None


def _empty() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What is current after some entries of a registry.

    Attributes:
        entries: How many entries it follows from.
        models: Versions of models by fingerprint, oldest first.
        policies: By fingerprint.
        releases: By name.
        default: The release that was activated last.
        keys: Access keys by id, those of no use any more among them.
        coins: Keys of coins by id.

    Examples:
        >>> from sfumato.store.registry import MemoryRegistry
        >>> registry, rule = MemoryRegistry(), ReleaseContent("release", "{}")
        >>> now = record(registry, Catalogue(), "ann", "release.created", "city", rule)
        >>> now = record(registry, now, "ann", "release.activated", "city")
        >>> now.default, now == Catalogue().after(registry.entries())
        ('city', True)
    """

    entries: int = 0
    models: Mapping[str, ModelVersion] = field(default_factory=_empty)
    policies: Mapping[str, StoredPolicy] = field(default_factory=_empty)
    releases: Mapping[str, StoredRelease] = field(default_factory=_empty)
    default: str | None = None
    keys: Mapping[str, KeyContent] = field(default_factory=_empty)
    coins: Mapping[str, CoinKey] = field(default_factory=_empty)

    def after(self, entries: Iterable[Entry]) -> Catalogue:
        """The catalogue after more entries.

        Raises:
            CorruptData: If one cannot follow, is not understood, or was written by a newer program.
        """
        now = self
        for entry in entries:
            if entry.number != now.entries + 1:
                rule = f"entry {now.entries + 1} of the registry must come next"
                raise CorruptData(f"{rule}; got entry {entry.number}")
            try:
                now = replace(_followed(now, entry), entries=entry.number)
            except InvalidParameter as problem:
                raise CorruptData(f"entry {entry.number} of the registry: {problem}") from None
        return now


def record(
    registry: Registry,
    catalogue: Catalogue,
    actor: str,
    action: str,
    name: str,
    content: Content = NOTHING,
) -> Catalogue:
    """Append an action if it can follow from all that was done so far, on all nodes.

    Args:
        registry: Where it is appended.
        catalogue: What whoever asks has read; others may have appended since.
        actor: Who does it.
        action: What is done, in the words of `catalogue_contents`.
        name: What it is done to.
        content: What else belongs to it.

    Returns:
        The catalogue after it.

    Raises:
        InvalidParameter: If it cannot follow: a name that is taken, a model that is not there.
    """
    data = content_bytes(content)
    while True:
        catalogue = catalogue.after(registry.entries(catalogue.entries))
        tried = Entry(catalogue.entries + 1, "", actor, action, name, data, b"")
        _followed(catalogue, tried)
        try:
            entry = registry.append(actor, action, name, data, after=catalogue.entries)
        except RegistryMoved:
            continue  # another node was quicker: what it did is read first
        return catalogue.after([entry])


# What each action does ----------------------------------------------------------------------------


def _followed(now: Catalogue, entry: Entry) -> Catalogue:
    content = content_of(entry)
    match content:
        case ModelContent():
            return _with_model(now, entry, content)
        case PolicyContent():
            _refuse_taken(now.policies, content.fingerprint, "policy")
            policy = StoredPolicy(entry.name, content.fingerprint, content.data, entry.time)
            return replace(now, policies=_with(now.policies, content.fingerprint, policy))
        case ReleaseContent():
            return _with_release(now, entry, content)
        case ClosedContent():
            return _with_end(now, entry, content)
        case KeyContent():
            return _with_key(now, entry, content)
        case CoinsContent():
            return _with_coins(now, entry, content)
        case BegunContent():
            return now
        case NoContent():
            return _with_mark(now, entry)


def _with_model(now: Catalogue, entry: Entry, content: ModelContent) -> Catalogue:
    _refuse_taken(now.models, content.fingerprint, "model")
    earlier = sum(model.name == entry.name for model in now.models.values())
    made = ModelVersion(entry.name, earlier + 1, content.fingerprint, content.data, entry.time)
    return replace(now, models=_with(now.models, content.fingerprint, made))


def _with_release(now: Catalogue, entry: Entry, content: ReleaseContent) -> Catalogue:
    _refuse_taken(now.releases, entry.name, "release")
    _need(now.models, content.model, "model")
    _need(now.policies, content.policy, "policy")
    _need(now.coins, content.coins, "coins")
    if content.coins is not None and now.coins[content.coins].retired is not None:
        raise InvalidParameter("coins", content.coins, "not be retired")
    made = StoredRelease(entry.name, content, entry.time)
    return replace(now, releases=_with(now.releases, entry.name, made))


def _with_end(now: Catalogue, entry: Entry, content: ClosedContent) -> Catalogue:
    _need(now.releases, entry.name, "release")
    before = now.releases[entry.name]
    if before.closed is not None:
        return now  # once more changes nothing: the first time counts
    ended = replace(before, closed=entry.time, last_head=content.head)
    return replace(now, releases=_with(now.releases, entry.name, ended))


def _with_key(now: Catalogue, entry: Entry, told: KeyContent) -> Catalogue:
    if told.id != entry.name:
        raise InvalidParameter("key", told.id, "be the one that the entry names")
    before = now.keys.get(told.id)
    if before is None and entry.action not in ("key.created", "key.limited"):
        raise InvalidParameter("key", told.id, "be the id of an access key")
    return replace(
        now, keys=_with(now.keys, told.id, told if before is None else _less(before, told))
    )


def _less(before: KeyContent, told: KeyContent) -> KeyContent:
    """A key after one more entry about it: nothing ever widens it, and what ended stays ended."""
    ends = [end for end in (before.expires, told.expires) if end is not None]
    return msgspec.structs.replace(
        before,
        expires=min(ends, default=None),
        revoked=before.revoked or told.revoked,
        replaced_by=before.replaced_by or told.replaced_by,
    )


def _with_coins(now: Catalogue, entry: Entry, content: CoinsContent) -> Catalogue:
    _refuse_taken(now.coins, entry.name, "coins")
    _need(now.coins, content.rotated_from, "coins")
    made = CoinKey(entry.name, content.commitment, entry.time, content.rotated_from)
    return replace(now, coins=_with(now.coins, entry.name, made))


def _with_mark(now: Catalogue, entry: Entry) -> Catalogue:
    if entry.action == "release.activated":
        _need(now.releases, entry.name, "release")
        if now.releases[entry.name].closed is not None:
            raise InvalidParameter("release", entry.name, "not be closed")
        return replace(now, default=entry.name)
    _need(now.coins, entry.name, "coins")
    retired = now.coins[entry.name].retired or entry.time
    ended = replace(now.coins[entry.name], retired=retired)
    return replace(now, coins=_with(now.coins, entry.name, ended))


def _with(there: Mapping[str, Value], name: str, value: Value) -> Mapping[str, Value]:
    return MappingProxyType({**there, name: value})


def _refuse_taken(there: Mapping[str, object], name: str, what: str) -> None:
    if name in there:
        raise InvalidParameter(what, name, "be new: what was created never changes")


def _need(there: Mapping[str, object], name: str | None, what: str) -> None:
    if name is not None and name not in there:
        raise InvalidParameter(what, name, "be one that was created before")
