"""Streams by name within the patterns of an access key, page by page.

A page begins at the first name in scope and ends at the last: names in between that are not in
scope are never its cursor, and how many of them there are changes neither the page nor its length.
The work of a page is bounded by its length and the number of patterns: the names of a prefix stand
side by side in the order of names, so nothing else is walked through.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice

from sfumato.store.ledger_search import ReadableLedger
from sfumato.store.protocol import Position

_FIRST_LOOK = 8
"""Names that are fetched of a prefix at first, then twice as many: few lie beyond its end."""


def standing_within(
    ledger: ReadableLedger, patterns: Sequence[str], after: str, limit: int
) -> tuple[list[Position], str | None]:
    """A page of the streams that some patterns name.

    Args:
        ledger: Where streams stand.
        patterns: Names of streams, `prefix*`, or `*` for all.
        after: The name after which the page begins.
        limit: Streams of the page.

    Returns:
        The page, and its last name if there are more in scope.
    """
    found = list(islice(_within(ledger, patterns, after, limit + 1), limit + 1))
    page = found[:limit]
    return page, page[-1].stream if len(found) > limit else None


def disjoint(patterns: Sequence[str]) -> list[str]:
    """The same scope by patterns that share no name, in the order of their names.

    Examples:
        >>> disjoint(["ward-1", "ann", "ward-*", "ward-2*"])
        ['ann', 'ward-*']
    """
    found: list[str] = []
    # A prefix comes right before everything that begins with it, itself as a name included.
    for pattern in sorted(set(patterns), key=lambda one: (_stem(one), not one.endswith("*"))):
        last = found[-1] if found else ""
        if not (last.endswith("*") and pattern.startswith(_stem(last))):
            found.append(pattern)
    return found


def _within(
    ledger: ReadableLedger, patterns: Sequence[str], after: str, most: int
) -> Iterator[Position]:
    for prefixes, some in groupby(disjoint(patterns), key=lambda one: one.endswith("*")):
        if prefixes:
            for pattern in some:
                yield from _of_prefix(ledger, _stem(pattern), after, most)
        else:
            names = [name for name in some if name > after]
            yield from sorted(ledger.standing_of(names), key=lambda one: one.stream)


def _of_prefix(ledger: ReadableLedger, prefix: str, after: str, most: int) -> Iterator[Position]:
    if after > prefix and not after.startswith(prefix):
        return  # all of its names come before
    if prefix and after < prefix:
        yield from ledger.standing_of([prefix])
    last, size = max(after, prefix), min(_FIRST_LOOK, most)
    while True:
        page = ledger.standing(last, size)
        for one in page:
            if not one.stream.startswith(prefix):
                return
            yield one
        if len(page) < size:
            return
        last, size = page[-1].stream, min(2 * size, most)


def _stem(pattern: str) -> str:
    return pattern.removesuffix("*")
