"""Ledgers of earlier versions, in which every row had a hash and a head, are read and go on."""

import hashlib
import sqlite3
from dataclasses import astuple
from pathlib import Path

import msgspec
import pytest

from sfumato.core.errors import CorruptData
from sfumato.store.chain import head_file
from sfumato.store.ledger_check import check_ledger
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import Answer, Head, Position
from sfumato.store.sqlite import SqliteStore
from tests.contracts.store_laws import PLAN, answers_of, by_columns, moments

STREAMS = ("u1", "u2")
History = list[tuple[Answer, Position]]


def histories(count: int) -> list[History]:
    return [moments(stream, count) for stream in STREAMS]


def written_before(path: Path, version: int) -> str:
    """Six moments of two streams in one commit, written by hand by the rules of version 4 and 5."""
    SqliteStore(path, PLAN).close()
    database = sqlite3.connect(path, isolation_level=None)
    id_, head = database.execute("SELECT id, head FROM ledger").fetchone()

    def hashed(kind: str, content: bytes) -> bytes:
        return hashlib.sha256(f"sfumato ledger 4 {kind}\0".encode() + content).digest()

    number = 0
    for history in histories(6):
        stream = history[0][0].stream
        own = hashed("stream", msgspec.msgpack.encode([id_, PLAN, stream]))
        for answer, after in history:
            number += 1
            *fields, signal = astuple(answer)
            signal = None if version == 4 else signal
            digest = None
            if after.sequence == 6:
                spent = [after.leakage, after.model_free, after.state]
                digest = hashed("state", msgspec.msgpack.encode(spent))
            told = [] if signal is None else [signal]
            own = hashed("row", own + msgspec.msgpack.encode([number, *fields, *told, digest]))
            head = hashed("head", head + own)
            row = (number, *fields, digest, own, head, signal)
            database.execute(f"INSERT INTO events VALUES ({', '.join('?' * 17)})", row)
        state = (*astuple(history[-1][1]), own)
        database.execute("INSERT INTO streams VALUES (?, ?, ?, ?, ?, ?)", state)
    database.execute("UPDATE ledger SET version = ?, entries = 12, head = ?", (version, head))
    if version == 4:
        database.execute("ALTER TABLE events DROP COLUMN signal")
    database.close()
    head_file(path).write_text(f"{12:020} {head.hex()}\n")
    return f"12:{head.hex()}"


@pytest.fixture(params=[4, 5])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "city.ledger"
    written_before(path, request.param)
    return path


def stored(path: Path) -> list[tuple[object, ...]]:
    """The first rows as they lie there."""
    database = sqlite3.connect(path)
    query = "SELECT * FROM events WHERE entry <= 12 ORDER BY entry"
    rows = [row[:16] for row in database.execute(query)]
    database.close()
    return rows


def test_it_is_read_as_it_is(ledger: Path) -> None:
    before, (first, *_) = ledger.read_bytes(), histories(6)
    assert check_ledger(ledger).problems == []
    with LedgerReader(ledger) as reader:
        assert len(answers_of(reader)) == 12 == len(list(reader.rows()))
        assert reader.position("u1") == first[-1][1]
        assert [answer.sequence for answer in reader.rest("u1", 4)] == [4, 5]
    assert ledger.read_bytes() == before


def test_it_goes_on_with_its_history_intact(ledger: Path) -> None:
    before, head = stored(ledger), Head.read(check_ledger(ledger).head)
    some = [one for history in histories(80) for one in history[6:]]
    after = [one for _, one in some if one.sequence == 80]
    for _ in range(2):  # the second time it is of this version
        with SqliteStore(ledger, PLAN) as store:
            assert store.position("u1") is not None
            if store.count() == 12:
                store.commit_columns(*by_columns([answer for answer, _ in some], after))
            assert store.moment("u2", 79) == some[-1][0]
    assert stored(ledger) == before
    report = check_ledger(ledger, head)
    assert (report.rows, report.problems) == (160, [])
    with LedgerReader(ledger) as reader:
        assert len(answers_of(reader)) == 160
        assert reader.answers(["u1:3", "u2:77"]).keys() == {"u1:3", "u2:77"}


@pytest.mark.parametrize("entry", [1, 6, 12, 13, 90, 160])
def test_an_edited_row_shows_after_it_went_on(ledger: Path, entry: int) -> None:
    test_it_goes_on_with_its_history_intact(ledger)
    database = sqlite3.connect(ledger, isolation_level=None)
    database.execute("UPDATE events SET leakage = .1 WHERE entry = ?", (entry,))
    stream, id_ = database.execute(
        "SELECT stream, id FROM events WHERE entry = ?", (entry,)
    ).fetchone()
    database.close()
    assert not check_ledger(ledger).passed
    with LedgerReader(ledger) as reader:
        with pytest.raises(CorruptData, match=f"of stream '{stream}' was changed"):
            reader.position(stream)
        with pytest.raises(CorruptData, match=f"of stream '{stream}' was changed"):
            reader.answers([id_])
        with pytest.raises(CorruptData, match=f"of stream '{stream}' was changed"):
            list(reader.rows())
