"""The end of a release: nothing new is answered under it, and what was answered stays.

Whoever closes a release holds its ledger: what was begun is over. The entry that says so is in the
registry before the ledger is let go of, and every turn of every node looks for it after it has the
ledger. So there is no moment at which one node has closed it and another one answers.
"""

from __future__ import annotations

from sfumato.core.errors import InvalidParameter
from sfumato.store.catalogue import Catalogue, StoredRelease, record
from sfumato.store.catalogue_contents import ClosedContent
from sfumato.store.home import Home
from sfumato.store.registry import CLOSED


def close_release(home: Home, actor: str, name: str) -> StoredRelease:
    """Write down that a release is closed, with the last head of its ledger; it may take a turn.

    Once more changes nothing: the first time counts.

    Args:
        home: Its home; of a folder, held by this process.
        actor: Who does it.
        name: Of the release.

    Raises:
        InvalidParameter: If there is none of this name.

    Examples:
        >>> from sfumato.store.catalogue_contents import ReleaseContent
        >>> from sfumato.store.home import MemoryHome
        >>> home, rule = MemoryHome(), ReleaseContent("release", "{}")
        >>> _ = record(home.registry, Catalogue(), "ann", "release.created", "city", rule)
        >>> first = close_release(home, "ann", "city")
        >>> first == close_release(home, "bob", "city"), home.registry.head.entries
        (True, 2)
    """
    known = Catalogue().after(home.registry.entries())
    if name not in known.releases:
        raise InvalidParameter("release", name, "be one that was created before")
    with home.ending(name) as head:
        known = known.after(home.registry.entries(known.entries))
        if known.releases[name].closed is None:
            content = ClosedContent(None if head is None else str(head))
            known = record(home.registry, known, actor, CLOSED, name, content)
    return known.releases[name]
