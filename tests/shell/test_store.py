import sqlite3
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sfumato import (
    LDP,
    SIP,
    Event,
    InstantPlan,
    MarkovChain,
    Method,
    Outcome,
    PerStep,
    StreamState,
    keyed,
    loss,
)
from sfumato.core.errors import CorruptData, SfumatoError
from sfumato.store.sqlite import Answer, LedgerMismatch, SqliteStore
from tests.shell.running import PATIENCE, done, rows
from tests.shell.tables import table

CHAIN = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
PLAN = InstantPlan(
    CHAIN, PerStep(SIP(1.0)), loss.hamming(CHAIN.alphabet), method=Method.RANDOMIZED_RESPONSE
)
COINS = keyed(b"sixteen bytes or more")

HOLDER = """
import sys
from sfumato.store.sqlite import SqliteStore
with SqliteStore(sys.argv[1], sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def moments(stream: str, count: int) -> Iterator[tuple[Answer, StreamState]]:
    """Successive answers of one stream, each with the state after it."""
    state = PLAN.begin(stream)
    for place in range(1, count + 1):
        event, state = PLAN.step(state, place % 2, COINS)
        yield Answer(f"{stream}:{place}", "live.csv", place, event), state


def spent(store: SqliteStore, stream: str) -> float:
    state = store.state(stream)
    assert state is not None
    return state.ledger.sip


def same(one: StreamState | None, other: StreamState | None) -> bool:
    assert one is not None
    assert other is not None
    return (
        (one.plan, one.stream, one.sequence, one.ledger, one.last)
        == (other.plan, other.stream, other.sequence, other.ledger, other.last)
        and one.belief.joint.tolist() == other.belief.joint.tolist()
        and (one.belief.axis, one.belief.drift) == (other.belief.axis, other.belief.drift)
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a ledger may lie."""
    return tmp_path / "city.ledger"


# What is kept ------------------------------------------------------------------------------------


def test_the_same_id_returns_the_same_answer(path: Path) -> None:
    with SqliteStore(path, PLAN.fingerprint) as store:
        history = list(moments("u1", 5))
        for answer, state in history:
            store.commit([answer], [state])
        for answer, _ in history:
            assert store.answers([answer.id]) == {answer.id: answer}


def test_an_id_never_answered_has_no_answer(path: Path) -> None:
    with SqliteStore(path, PLAN.fingerprint) as store:
        (answer, state), *_ = moments("u1", 1)
        store.commit([answer], [state])
        assert store.answers(["u1:2", "", "u1:1 ", "U1:1"]) == {}
        assert store.state("u2") is None


def test_a_ledger_outlives_the_program(path: Path) -> None:
    history = list(moments("u1", 3))
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([answer for answer, _ in history], [history[-1][1]])
    with SqliteStore(path, PLAN.fingerprint) as store:
        assert list(store.events()) == [answer for answer, _ in history]
        assert same(store.state("u1"), history[-1][1])


def test_many_ids_are_found_in_one_call(path: Path) -> None:
    history = list(moments("u1", 1201))
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([answer for answer, _ in history], [history[-1][1]])
        found = store.answers([answer.id for answer, _ in history])
    assert found == {answer.id: answer for answer, _ in history}


def test_labels_keep_their_kind_and_ids_may_be_any_text(path: Path) -> None:
    labels: list[str | int | None] = ["1", 1, "", None, -7, "é ✓", "Robert'); DROP TABLE events;--"]
    answers = [
        Answer(
            str(label) + "'\"\n%",
            "a source",
            place,
            Event("u1", place, Outcome.RELEASED, label, SIP(0.1), LDP(0.2)),
        )
        for place, label in enumerate(label for label in labels if label != 1)
    ]
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit(answers, [replace(PLAN.begin("u1"), sequence=len(answers))])
        found = store.answers([answer.id for answer in answers])
    assert found == {answer.id: answer for answer in answers}
    kinds = {type(answer.event.released) for answer in found.values()}
    assert kinds == {str, int, type(None)}


def test_events_come_stream_by_stream_in_order(path: Path) -> None:
    histories = {stream: list(moments(stream, 4)) for stream in ("b", "a")}
    with SqliteStore(path, PLAN.fingerprint) as store:
        for place in range(4):
            now = [history[place] for history in histories.values()]
            store.commit([answer for answer, _ in now], [state for _, state in now])
        told = [(answer.event.stream, answer.event.sequence) for answer in store.events()]
    assert told == [(stream, sequence) for stream in "ab" for sequence in range(4)]


def test_a_ledger_without_a_name_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SqliteStore(None, PLAN.fingerprint) as store:
        (answer, state), *_ = moments("u1", 1)
        store.commit([answer], [state])
        assert store.answers([answer.id]) == {answer.id: answer}
    assert list(tmp_path.iterdir()) == []


# All or nothing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("clash", ["moment", "id"])
def test_a_moment_or_id_answered_before_rolls_everything_back(path: Path, clash: str) -> None:
    (first, begun), (second, later) = moments("u1", 2)
    (other, moved), *_ = moments("u2", 1)
    bad = (
        Answer("fresh id", "live.csv", 9, first.event)
        if clash == "moment"
        else Answer(first.id, "live.csv", 9, second.event)
    )
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([first], [begun])
        before = list(store.events())
        with pytest.raises(LedgerMismatch, match="answered before"):
            store.commit([other, bad], [moved, later])
        assert list(store.events()) == before
        assert store.state("u2") is None
        assert same(store.state("u1"), begun)
        store.commit([other], [moved])
    with SqliteStore(path, PLAN.fingerprint) as store:
        assert list(store.events()) == [first, other]


def test_a_state_that_cannot_be_stored_keeps_its_answers_out(path: Path) -> None:
    trouble = "CREATE TRIGGER t BEFORE INSERT ON streams BEGIN SELECT RAISE(ABORT, 'full'); END"
    (answer, state), *_ = moments("u1", 1)
    with SqliteStore(path, PLAN.fingerprint) as store:
        store._database.execute(trouble)
        with pytest.raises((SfumatoError, sqlite3.Error)):
            store.commit([answer], [state])
        store._database.execute("DROP TRIGGER t")
        assert store.answers([answer.id]) == {}
        assert store.state("u1") is None
        store.commit([answer], [state])
        assert store.answers([answer.id]) == {answer.id: answer}


def test_a_state_never_goes_back_and_never_lowers_its_spend(path: Path) -> None:
    (first, one), (second, two), (third, three) = moments("u1", 3)
    cheaper = replace(three, ledger=replace(three.ledger, sip=two.ledger.sip / 2))
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([first, second], [two])
        for older in (one, two, cheaper):
            with pytest.raises(LedgerMismatch, match="only move forward"):
                store.commit([third], [older])
            assert list(store.events()) == [first, second]
            assert same(store.state("u1"), two)
        store.commit([third], [three])
        assert same(store.state("u1"), three)


def test_the_charge_and_the_answer_are_kept_together(path: Path) -> None:
    with SqliteStore(path, PLAN.fingerprint) as store:
        for answer, state in moments("u1", 6):
            store.commit([answer], [state])
            told = sum(kept.event.sip.epsilon for kept in store.events())
            assert spent(store, "u1") == pytest.approx(told, rel=1e-12)
            assert spent(store, "u1") >= told


# What is not kept --------------------------------------------------------------------------------


def test_a_ledger_holds_no_value_that_was_never_released(
    models: Path, path: Path, tmp_path: Path
) -> None:
    raws = [f"{11 + i / 3:.6f}" for i in range(30)]
    live = table(tmp_path / "live.csv", [("person-1", raw) for raw in (*raws, "99.123456")])
    rule = ("--epsilon", 1, "--when-unknown", "suppress", "--method", "randomized-response")
    private = tmp_path / "private.csv"
    done("release", live, "-m", models / "bins.model", *rule, "--ledger", path, "-o", private)
    kept = path.read_bytes()
    assert all(row["released"].encode() in kept for row in rows(private))
    assert b"suppressed" in kept
    assert not any(raw.encode() in kept for raw in (*raws, "99.123456"))
    assert not any(struct.pack(order, float(raw)) in kept for raw in raws for order in ("<d", ">d"))


# What is refused ---------------------------------------------------------------------------------


def test_the_ledger_of_another_plan_is_refused_and_left_alone(path: Path) -> None:
    (answer, state), *_ = moments("u1", 1)
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([answer], [state])
    before = path.read_bytes()
    with pytest.raises(LedgerMismatch, match="begun with another model, budget, loss, method or"):
        SqliteStore(path, "another fingerprint")
    assert path.read_bytes() == before
    with SqliteStore(path, PLAN.fingerprint) as store:
        assert list(store.events()) == [answer]


@pytest.mark.parametrize("data", [b"person,place\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(CorruptData, match="not a readable ledger") as caught:
        SqliteStore(path, PLAN.fingerprint)
    assert str(caught.value).startswith(str(path))
    assert path.read_bytes() == data


def test_a_ledger_whose_first_page_is_damaged_is_refused(path: Path) -> None:
    with SqliteStore(path, PLAN.fingerprint) as store:
        for answer, state in moments("u1", 50):
            store.commit([answer], [state])
    damaged = bytearray(path.read_bytes())
    damaged[100:1000] = b"\xa5" * 900
    path.write_bytes(damaged)
    with pytest.raises(CorruptData, match="not a readable ledger"):
        SqliteStore(path, PLAN.fingerprint)


def test_a_ledger_of_another_version_is_refused(path: Path) -> None:
    SqliteStore(path, PLAN.fingerprint).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE ledger SET version = 4")
    database.close()
    with pytest.raises(CorruptData, match="must have version 3; it has 4"):
        SqliteStore(path, PLAN.fingerprint)


@pytest.mark.parametrize("version", [1, 2])
def test_a_ledger_from_before_the_chain_is_refused_and_left_alone(path: Path, version: int) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE ledger (version INTEGER NOT NULL, plan TEXT NOT NULL)")
        database.execute("INSERT INTO ledger VALUES (?, ?)", (version, PLAN.fingerprint))
    database.close()
    before = path.read_bytes()
    with pytest.raises(CorruptData, match=f"it has {version}. Older ones have no chain"):
        SqliteStore(path, PLAN.fingerprint)
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE friends (name TEXT)")
    database.close()
    before = path.read_bytes()
    with pytest.raises(CorruptData, match="not a readable ledger"):
        SqliteStore(path, PLAN.fingerprint)
    assert path.read_bytes() == before
    assert [other.name for other in path.parent.iterdir()] == [path.name]


def test_a_state_that_was_changed_by_hand_is_refused(path: Path) -> None:
    (answer, state), *_ = moments("u1", 1)
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([answer], [state])
    with sqlite3.connect(path) as database:
        (blob,) = database.execute("SELECT state FROM streams").fetchone()
        changed = bytearray(blob)
        changed[len(blob) // 2] ^= 1
        database.execute("UPDATE streams SET state = ?", (bytes(changed),))
    database.close()
    with SqliteStore(path, PLAN.fingerprint) as store, pytest.raises(CorruptData):
        store.state("u1")


def test_a_ledger_needs_a_folder_that_exists(tmp_path: Path) -> None:
    with pytest.raises(LedgerMismatch, match="the folder of a ledger must exist"):
        SqliteStore(tmp_path / "missing" / "city.ledger", PLAN.fingerprint)


def test_two_processes_cannot_hold_one_ledger_at_once(path: Path) -> None:
    (answer, state), *_ = moments("u1", 1)
    with SqliteStore(path, PLAN.fingerprint) as store:
        store.commit([answer], [state])
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), PLAN.fingerprint],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(SfumatoError) as caught:
            SqliteStore(path, PLAN.fingerprint)
        assert str(caught.value).startswith(str(path))
    finally:
        holder.communicate(timeout=PATIENCE)
    with SqliteStore(path, PLAN.fingerprint) as store:
        assert list(store.events()) == [answer]
