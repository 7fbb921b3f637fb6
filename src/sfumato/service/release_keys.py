"""Release keys: files from which coins are drawn, with ids, so that they can be changed.

With a key every draw can be repeated by whoever is given it (`sfumato audit --key-file`). A folder
holds the keys of a service, `ID.key` for its owner alone; the registry holds the commitment to
each, from before anything is drawn with it: a file that was exchanged is refused.

Rotation begins another key for the draws to come. It repeats none: an event that was answered has
its answer in the ledger, and the next moment of a stream has an address of its own. Each answer
says which key it was drawn with, in the label of its source, `http key=ID`.

How the service uses it, for a release that was created with `coins` = ID:

    keys = ReleaseKeys(folder, home.registry)
    key = keys.current(ID)                      # the last of those that took its place
    run = ...(coins=key.coins(), source=key.label)

and once more, with a new run on the same store, when `keys.current(ID).id` has changed.
Not to be mixed with access keys (`access_keys`), which let somebody in.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.randomness import Randomness, keyed
from sfumato.service.access_entries import EntryLog, LogEntry
from sfumato.store.keys import is_committed, key_commitment, new_key, read_key

ADDED = "coins.created"
_ID = re.compile(r"[0-9a-z][0-9a-z-]{3,39}")
_LABEL = re.compile(r"http key=(?P<id>[0-9a-z][0-9a-z-]{3,39})(?: .*)?")
_ID_BYTES = 6


class _Committed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of an entry: the commitment to a key, and the id whose place it takes."""

    commitment: str
    rotated_from: str | None = None


@dataclass(frozen=True, slots=True)
class ReleaseKey:
    """A key that is there, and is the one that was committed to.

    Attributes:
        id: Its name.
        secret: The key itself.
    """

    id: str
    secret: bytes = field(repr=False)

    @property
    def label(self) -> str:
        """The source of the answers that are drawn with it, as their ledger has it."""
        return f"http key={self.id}"

    def coins(self) -> Randomness:
        """Its coins; they depend on plan, stream and sequence, too."""
        return keyed(self.secret)


def key_in_label(label: str) -> str | None:
    """The id of the key that answers of a source were drawn with; None if with none.

    Examples:
        >>> key_in_label("http key=0a1b2c3d4e5f"), key_in_label("live.csv")
        ('0a1b2c3d4e5f', None)
    """
    found = _LABEL.fullmatch(label)
    return None if found is None else found["id"]


class ReleaseKeys:
    """The release keys of a service: files in a folder, commitments in the registry."""

    def __init__(self, folder: str | Path, log: EntryLog) -> None:
        """Use a folder.

        Args:
            folder: Where the files are; with several nodes each has the same files.
            log: The registry.
        """
        self._folder, self._log = Path(folder), log

    def add(self, actor: str, *, in_place_of: str | None = None) -> ReleaseKey:
        """Make a key, on disk before its commitment is appended.

        Args:
            actor: Who does it.
            in_place_of: The key that is rotated: what it drew stays, what comes is drawn anew.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        id_ = secrets.token_hex(_ID_BYTES)
        new_key(self._path(id_))
        return self.adopt(actor, id_, in_place_of=in_place_of)

    def adopt(self, actor: str, id_: str, *, in_place_of: str | None = None) -> ReleaseKey:
        """Commit to a key whose file is there: with several nodes, once it is on all of them.

        Raises:
            InvalidParameter: If there was a key of this id, or none to take the place of, or the
                one that is rotated has been rotated already.
        """
        known = self._known()
        if id_ in known:
            raise InvalidParameter("release key", id_, "be new")
        if in_place_of is not None:
            if in_place_of not in known:
                raise InvalidParameter("release key", in_place_of, "be one of this service")
            if in_place_of in {each.rotated_from for each in known.values()}:
                raise InvalidParameter("release key", in_place_of, "not be rotated already")
        secret = read_key(self._path(id_))
        content = _Committed(key_commitment(secret), in_place_of)
        self._log.append(actor, ADDED, id_, msgspec.json.encode(content))
        return ReleaseKey(id_, secret)

    def key(self, id_: str) -> ReleaseKey:
        """A key of this service, to draw with or to repeat draws.

        Raises:
            InvalidParameter: If the registry has none of this id, or its file is missing.
            CorruptData: If the file holds another key than the one that was committed to.
        """
        known = self._known().get(id_)
        if known is None:
            raise InvalidParameter("release key", id_, "be one of this service")
        path = self._path(id_)
        if not path.is_file():
            rule = f"lie in {path}: without it nothing is drawn"
            raise InvalidParameter("release key", id_, rule)
        secret = read_key(path)
        if not is_committed(secret, known.commitment):
            raise CorruptData(f"{path}: it must be the key that was committed to; it is another")
        return ReleaseKey(id_, secret)

    def current(self, id_: str) -> ReleaseKey:
        """The key to draw with: the one named, or the last of those that took its place."""
        after = {each.rotated_from: new for new, each in self._known().items()}
        while id_ in after:
            id_ = after[id_]  # rotations only point to keys that came later: this ends
        return self.key(id_)

    def _known(self) -> dict[str, _Committed]:
        entries = self._log.entries(0)
        return {each.name: _read(each) for each in entries if each.action == ADDED}

    def _path(self, id_: str) -> Path:
        # An id is part of a path: one that leads elsewhere is none.
        if _ID.fullmatch(id_) is None:
            rule = "be 4 to 40 small letters, digits and dashes"
            raise InvalidParameter("release key", id_, rule)
        return self._folder / f"{id_}.key"


def _read(entry: LogEntry) -> _Committed:
    try:
        return msgspec.json.decode(entry.content, type=_Committed)
    except msgspec.DecodeError:
        raise CorruptData(f"entry {entry.number} of the registry must hold a commitment") from None
