"""Search of a ledger: the rows that a plain filter finds, page by page, in any database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.store import ledger_search
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.ledger_search import Entry, LedgerQuery, Order, ReadableLedger
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Answer, Identity, Position, Store
from sfumato.store.sqlite import SqliteStore

ROWS = 41


def filled(store: Store) -> list[Answer]:
    """Rows of three streams in commits of several, some of them suppressed or without a time."""
    store.begin("test", Identity.EVENT)
    written = list[Answer]()
    for first in range(0, ROWS, 3):
        group = []
        for number in range(first, min(first + 3, ROWS)):
            stream, sequence = f"s{number % 3}", number // 3
            outcome = "suppressed" if number % 5 == 0 else "released"
            time = None if number % 7 == 0 else f"2026-01-{1 + number % 28:02d}"
            released = None if outcome == "suppressed" else number
            leakage = 0.1 * (outcome == "released")
            group.append(
                Answer(
                    f"e{number}",
                    "test",
                    number + 1,
                    stream,
                    sequence,
                    outcome,
                    released,
                    leakage,
                    leakage,
                    None,
                    time,
                )
            )
        ends = {answer.stream: answer for answer in group}
        positions = [
            Position(name, one.sequence + 1, float(one.sequence), float(one.sequence), b"state")
            for name, one in ends.items()
        ]
        store.commit(group, positions)
        written += group
    return written


@pytest.fixture(scope="module", params=["memory", "sqlite"])
def ledger(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ReadableLedger, list[Answer]]]:
    if request.param == "memory":
        with MemoryStore(plan="plan") as memory:
            yield memory, filled(memory)
    else:
        path = tmp_path_factory.mktemp("search") / "a.ledger"
        with SqliteStore(path, "plan") as store:
            written = filled(store)
            with LedgerReader(path) as reader:  # beside the one who writes
                yield reader, written


def all_pages(ledger: ReadableLedger, asked: dict[str, object]) -> list[Entry]:
    """Everything that is found, page after page."""
    found, beyond = list[Entry](), None
    while True:
        page = ledger.search(LedgerQuery(**asked, beyond=beyond))  # type: ignore[arg-type]
        found += page.entries
        if page.next is None:
            return found
        assert page.next != beyond
        beyond = page.next


queries = st.fixed_dictionaries(
    {"order": st.sampled_from(Order), "limit": st.integers(1, 12)},
    optional={
        "stream": st.sampled_from(["s0", "s1", "s2", "s9"]),
        "event": st.sampled_from(["e0", "e3", "e40", "e99"]),
        "outcome": st.sampled_from(["released", "suppressed", "other"]),
        "since": st.sampled_from(["2026-01-05", "2026-01-20", "2027"]),
        "until": st.sampled_from(["2026-01-05", "2026-01-20", "2025"]),
        "first": st.integers(1, ROWS + 3),
        "last": st.integers(1, ROWS + 3),
    },
)


@given(asked=queries, scanned=st.integers(1, 20))
def test_pages_together_are_what_a_filter_finds(
    ledger: tuple[ReadableLedger, list[Answer]], asked: dict[str, object], scanned: int
) -> None:
    reader, written = ledger
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ledger_search, "SCANNED", scanned)
        found = all_pages(reader, asked)
    due = [
        Entry(number, answer)
        for number, answer in enumerate(written, start=1)
        if asked.get("stream", answer.stream) == answer.stream
        and asked.get("event", answer.id) == answer.id
        and asked.get("outcome", answer.outcome) == answer.outcome
        and ("since" not in asked or (answer.time or "") >= str(asked["since"]))
        and (
            "until" not in asked or (answer.time is not None and answer.time <= str(asked["until"]))
        )
        and asked.get("first", 1) <= number <= asked.get("last", ROWS)  # type: ignore[operator]
    ]
    assert found == (due if asked["order"] is Order.OLDEST else due[::-1])


def test_a_page_costs_no_more_than_a_page(
    ledger: tuple[ReadableLedger, list[Answer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_search, "SCANNED", 10)
    page = ledger[0].search(LedgerQuery(outcome="other"))
    assert page == ([], ROWS - 9)  # ten rows were looked at, and the search may go on


def test_streams_stand_by_name(ledger: tuple[ReadableLedger, list[Answer]]) -> None:
    reader = ledger[0]
    assert [one.stream for one in reader.standing("", 2)] == ["s0", "s1"]
    assert [one.stream for one in reader.standing("s1", 9)] == ["s2"]
    (one,) = reader.standing_of(["s2", "nobody"])
    assert (one.stream, one.sequence) == ("s2", 13)


def test_a_row_that_was_changed_is_not_found_but_refused(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "a.ledger"
    with SqliteStore(path, "plan") as store:
        filled(store)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE events SET leakage = 0 WHERE entry = 7")
    database.close()
    with LedgerReader(path) as reader, pytest.raises(CorruptData, match="changed"):
        reader.search(LedgerQuery(first=7, last=7))


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": 10**6}, {"first": -1}, {"beyond": 2**63}]
)
def test_what_no_ledger_has_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidParameter):
        LedgerQuery(**wrong)  # type: ignore[arg-type]
