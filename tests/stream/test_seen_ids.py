"""Ids that came are found, whatever came between; others seldom look like them."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from sfumato.stream import seen_ids
from sfumato.stream.seen_ids import SeenIds


@given(st.lists(st.lists(st.text(max_size=3), max_size=20), max_size=12), st.text(max_size=3))
def test_exactly_what_came_is_found(parts: list[list[str]], other: str) -> None:
    seen, came = SeenIds(), set[str]()
    for part in parts:
        assert seen.perhaps([*part, other]).tolist() == [id_ in came for id_ in [*part, other]]
        seen.add(part)
        came |= set(part)
    assert seen.perhaps(sorted(came)).all()


def test_what_looks_alike_is_said_to_have_come_perhaps() -> None:
    with mock.patch.object(seen_ids, "hash", len, create=True):
        seen = SeenIds()
        seen.add(["e1", "e23"])
        assert seen.perhaps(["e7", "e", "e99"]).tolist() == [True, False, True]


def test_hashes_are_held_in_few_runs() -> None:
    seen = SeenIds()
    for part in range(200):
        seen.add([f"{part}-{row}" for row in range(50)])
    assert len(seen._runs) < 16
    assert sum(map(len, seen._runs)) == 10_000
