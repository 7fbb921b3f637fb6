"""Which releases a key may know of: a name out of its scope is the name of nothing.

A release that is out of scope is asked for under a name that no release can have. So whatever a
route replies, in whatever order it looks at things, is what it replies to a name that was never
given: that there is such a release shows nowhere. An operation that names no release is about all
of them, unless it says that it keeps to the key by itself; a key for some releases is refused
there, and so are operations of which nobody thought yet.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

import msgspec

from sfumato.service.application import Visitor
from sfumato.service.problems import HttpProblem, problem

Query = TypeVar("Query", bound=msgspec.Struct)
NOWHERE = "(no release)"
"""Names begin with a letter or a digit: no release has this one."""


class Reach(StrEnum):
    """Of which releases an operation tells.

    Attributes:
        NAMED: Of the one that its query names.
        ALL: Of all of them: it is not for a key that is limited to some.
        OWN: Of those in the scope of the key, as its handler sees to.
    """

    NAMED = "named"
    ALL = "all"
    OWN = "own"


def release_in_scope(visitor: Visitor, name: str | None) -> str | None:
    """The release that a visitor asks, by the name that he gave, if he gave one.

    A key for one release asks that one where none is named: the home of a stream would tell that
    it has begun elsewhere.

    Raises:
        HttpProblem: 404 if his key is for several, and he names none of them.
    """
    own = visitor.releases
    if own is None:
        return name
    if name is None and len(own) > 1:
        detail = "the access key is for several releases; name one of them"
        raise HttpProblem(problem("not-found", detail, field="release"))
    asked = own[0] if name is None else name
    return asked if asked in own else NOWHERE


def query_in_scope(visitor: Visitor, query: Query, reach: Reach, action: str) -> Query:
    """A query that asks for nothing beyond the releases of a key.

    Raises:
        HttpProblem: 403 where it would be about all releases; 404 as `release_in_scope`.
    """
    if visitor.releases is None:
        return query
    match reach:
        case Reach.OWN:
            return query
        case Reach.ALL:
            visitor.require_unlimited(action)
            return query
        case Reach.NAMED:
            named: str | None = msgspec.structs.asdict(query)["release"]
            return msgspec.structs.replace(query, release=release_in_scope(visitor, named))
