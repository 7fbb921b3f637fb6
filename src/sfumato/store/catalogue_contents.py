"""What entries of a registry hold, as documents and bytes.

| action | name | content |
|---|---|---|
| `model.created` | of the model | fingerprint and bytes, `ModelContent` |
| `policy.created` | of the policy | fingerprint and bytes, `PolicyContent` |
| `release.created` | of the release | job, rules, fingerprints, `ReleaseContent` |
| `release.activated` | of the release | nothing: it is the default from now on |
| `release.closed` | of the release | the head of its ledger, which grows no more, `ClosedContent` |
| `access.begun` | `access` | what the hashes of this installation begin with |
| `key.created`, `key.rotated`, `key.revoked` | id | the access key from now on, `KeyContent` |
| `key.limited` | id | a new access key that is for some releases alone, `KeyContent` |
| `coins.created` | id | the commitment to a key of coins, `CoinsContent`; never the key |
| `coins.retired` | id | nothing: no new release may use it |
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, TypeAlias

import msgspec

from sfumato.core.errors import CorruptData
from sfumato.store.registry import CLOSED, Entry

Moment: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]
_HASH = r"^[0-9a-f]{64}$"
Digest: TypeAlias = Annotated[str, msgspec.Meta(pattern=_HASH)]
Commitment: TypeAlias = Annotated[str, msgspec.Meta(min_length=64, max_length=264)]


class ModelContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A version of a model: its fingerprint, and the bytes that `codec.to_bytes` makes."""

    fingerprint: str
    data: bytes


class PolicyContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A compiled policy: its fingerprint, and the bytes that `codec.to_bytes` makes."""

    fingerprint: str
    data: bytes


class ReleaseContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule under which events are answered; nothing of it ever changes.

    Attributes:
        job: Of which command it is.
        rules: What was asked for, as the document that its ledger keeps.
        model: Fingerprint of its model, if it has one.
        policy: Fingerprint of its policy, if it has one.
        coins: Id of the key of its coins; None for coins of the operating system.
    """

    job: str
    rules: str
    model: str | None = None
    policy: str | None = None
    coins: str | None = None


class ClosedContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """That a release takes no more events.

    Attributes:
        head: Of its ledger when it was closed, as `ROWS:HASH`; None if it had none.
    """

    head: str | None = None


class KeyContent(msgspec.Struct, frozen=True):
    """An access key, as far as a catalogue shows it; a hash, never its secret."""

    id: str
    hash: Digest
    streams: tuple[str, ...]
    actions: tuple[str, ...]
    created: Moment
    expires: Moment | None = None
    revoked: Moment | None = None
    replaced_by: str | None = None
    note: str = ""
    releases: tuple[str, ...] | None = None


class CoinsContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The commitment to a key of coins (`keys.key_commitment`), and whose place it takes."""

    commitment: Commitment
    rotated_from: str | None = None


class NoContent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For actions that need no more than a name."""


class BegunContent(msgspec.Struct, frozen=True):
    """What the hashes of the access keys of an installation begin with."""

    pepper: Digest


Content: TypeAlias = (
    ModelContent
    | PolicyContent
    | ReleaseContent
    | ClosedContent
    | KeyContent
    | CoinsContent
    | NoContent
    | BegunContent
)
_KINDS: Mapping[str, type[Content]] = {
    "model.created": ModelContent,
    "policy.created": PolicyContent,
    "release.created": ReleaseContent,
    "release.activated": NoContent,
    CLOSED: ClosedContent,
    "access.begun": BegunContent,
    "key.created": KeyContent,
    "key.limited": KeyContent,
    "key.rotated": KeyContent,
    "key.revoked": KeyContent,
    "coins.created": CoinsContent,
    "coins.retired": NoContent,
}
_BINARY = ("model.created", "policy.created")
"""Documents are JSON, for people; what holds megabytes of bytes is not."""


NOTHING = NoContent()


def content_bytes(content: Content) -> bytes:
    """A content as the bytes of an entry; the same content gives the same bytes."""
    if isinstance(content, ModelContent | PolicyContent):
        return msgspec.msgpack.encode(content)
    return msgspec.json.encode(content, order="deterministic")


def content_of(entry: Entry) -> Content:
    """What an entry holds.

    Raises:
        CorruptData: If its action is unknown, or it holds something else.
    """
    kind = _KINDS.get(entry.action)
    if kind is None:
        raise CorruptData(
            f"entry {entry.number} of the registry must be an action that this program knows; "
            f"it is {entry.action!r}, of a newer one: use that"
        )
    coder = msgspec.msgpack if entry.action in _BINARY else msgspec.json
    try:
        found: Content = coder.decode(entry.content, type=kind)
    except msgspec.DecodeError:
        what = f"must hold what {entry.action!r} needs; it does not"
        raise CorruptData(f"entry {entry.number} of the registry {what}") from None
    return found
