"""Laws of a listing: a page is of the scope alone, whatever else is in the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sfumato.service.access_keys import AccessKey, Action, Grant, mint
from sfumato.service.stream_listing import disjoint, standing_within
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Answer, Position
from tests.service.test_access_keys import NOW, PEPPER

NAMES = st.text("ab\U0001f600", min_size=1, max_size=3)
PATTERNS = st.lists(
    st.one_of(NAMES, NAMES.map(lambda name: name + "*"), st.just("*")), min_size=1, max_size=4
)


class CountedLedger:
    """Where streams stand, and how many rows were read."""

    def __init__(self, names: set[str]) -> None:
        self.store, self.read = MemoryStore(plan="plan"), 0
        answers = [
            Answer(name, "test", place, name, 0, "released", "x", 0.1, 0.1)
            for place, name in enumerate(sorted(names))
        ]
        self.store.commit(answers, [Position(name, 1, 0.1, 0.1, b"") for name in sorted(names)])

    def standing(self, after: str, limit: int) -> list[Position]:
        found = self.store.standing(after, limit)
        self.read += len(found)
        return found

    def standing_of(self, streams: Sequence[str]) -> list[Position]:
        return self.store.standing_of(streams)


def key_of(patterns: list[str]) -> AccessKey:
    return mint(Grant(tuple(patterns), frozenset({Action.READ})), PEPPER, NOW)[1]


def pages(ledger: CountedLedger, patterns: list[str], limit: int) -> list[tuple[list[str], str]]:
    found, after = [], ""
    while True:
        page, further = standing_within(ledger, patterns, after, limit)  # type: ignore[arg-type]
        found.append(([one.stream for one in page], after))
        if further is None:
            return found
        assert further == page[-1].stream and len(page) == limit
        after = further


@given(st.sets(NAMES), st.sets(NAMES), PATTERNS, st.integers(1, 5))
def test_pages_are_all_of_the_scope_and_the_same_whatever_is_beyond(
    own: set[str], others: set[str], patterns: list[str], limit: int
) -> None:
    key = key_of(patterns)
    mine = {name for name in own | others if key.may(Action.READ, name)}
    found = pages(CountedLedger(own | others), patterns, limit)
    assert [name for page, _ in found for name in page] == sorted(mine)
    assert found == pages(CountedLedger(mine), patterns, limit)


@given(NAMES, PATTERNS)
def test_patterns_without_overlap_have_the_same_scope(name: str, patterns: list[str]) -> None:
    few = disjoint(patterns)
    assert key_of(few).may(Action.READ, name) == key_of(patterns).may(Action.READ, name)
    assert sum(key_of([one]).may(Action.READ, name) for one in few) <= 1


def test_the_work_of_a_page_does_not_grow_with_what_is_beyond_it() -> None:
    names = {f"{letter}{number:04}" for letter in "abz" for number in range(2_000)}
    ledger = CountedLedger(names | {"bob"})
    page, further = standing_within(ledger, ["bo*", "c", "y*"], "", 100)  # type: ignore[arg-type]
    assert [one.stream for one in page] == ["bob"] and further is None
    assert ledger.read <= 20
