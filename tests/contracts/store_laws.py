"""The laws of a store: what `memory`, `sqlite` and every other kind must keep.

A new kind inherits `StoreLaws` and says in `open` how it is opened; `tests/store/` has examples.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from sfumato.core.arrays import Ints
from sfumato.core.errors import ForkedUse, SfumatoError
from sfumato.store.answer_columns import AnswerColumns, Coded, PositionColumns
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.protocol import (
    NO_JOB,
    Again,
    Answer,
    Identity,
    Job,
    LedgerMismatch,
    Position,
    Released,
    Store,
)
from tests.contracts.threads import at_once

PLAN = "fingerprint"
JOB = Job("release", "model, budget, loss, method")


def moments(stream: str, count: int, source: str = "live.csv") -> list[tuple[Answer, Position]]:
    """Successive answers of one stream, each with the position after it."""
    history = []
    for place in range(count):
        answer = Answer(
            f"{stream}:{place}",
            source,
            place + 1,
            stream,
            place,
            "released",
            place % 2,
            0.5,
            0.25,
            tag=bytes([place % 256] * 16),
            signal=place % 3 or None,
        )
        after = Position(stream, place + 1, 0.5 * (place + 1), 0.25 * (place + 1), b"s%d" % place)
        history.append((answer, after))
    return history


Item = TypeVar("Item")


def by_columns(
    answers: Iterable[Answer], positions: Iterable[Position]
) -> tuple[AnswerColumns, PositionColumns]:
    """Answers of one source that left alone, and positions, as columns."""
    rows, after = list(answers), list(positions)
    assert all(row.batch is None for row in rows) and len({row.source for row in rows}) < 2

    def whole(read: Callable[[Answer], int]) -> Ints:
        return np.array([read(row) for row in rows], dtype=np.int64)

    def coded(cells: Sequence[Item], words: list[Item]) -> Ints:
        kinds = [(type(word), word) for word in words]
        found = [-1 if cell is None else kinds.index((type(cell), cell)) for cell in cells]
        return np.array(found, dtype=np.int64)

    streams = list(dict.fromkeys([*(one.stream for one in after), *(row.stream for row in rows)]))
    outcomes = sorted({row.outcome for row in rows})
    labels = [label for _, label in {(type(row.released), row.released) for row in rows}]
    columns = AnswerColumns(
        source=rows[0].source if rows else "",
        ids=[row.id for row in rows],
        places=whole(lambda row: row.place),
        streams=Coded(coded([row.stream for row in rows], streams), streams),
        sequences=whole(lambda row: row.sequence),
        outcomes=Coded(coded([row.outcome for row in rows], outcomes), outcomes),
        released=Coded(coded([row.released for row in rows], labels), labels),
        leakage=np.array([row.leakage for row in rows]),
        model_free=np.array([row.model_free for row in rows]),
        tags=[row.tag for row in rows],
        times=[row.time for row in rows] if any(row.time for row in rows) else None,
        signals=whole(lambda row: -1 if row.signal is None else row.signal),
    )
    return columns, PositionColumns(
        [one.stream for one in after],
        np.array([one.sequence for one in after], dtype=np.int64),
        np.array([one.leakage for one in after]),
        np.array([one.model_free for one in after]),
        [one.state for one in after],
    )


def answers_of(store: Store | LedgerReader) -> list[Answer]:
    """Every answer, stream by stream, in order."""
    return [answer for stream, _ in store.streams() for answer in store.rest(stream, 0)]


def go_on(store: Store, stream: str = "u1") -> None:
    """Answer the next moment of a stream, wherever it stands, in one turn."""
    with store.turn():
        (end,) = store.ends([stream])
        moment = 0 if end is None else end[0].sequence
        answer, after = moments(stream, moment + 1)[-1]
        store.commit([answer], [after])


class StoreLaws(ABC):
    """What every store keeps."""

    @abstractmethod
    def opened(self, place: Path, plan: str, job: Job) -> Store:
        """A store at a place; the same place again is the same ledger."""

    @pytest.fixture(autouse=True, params=["rows", "columns"])
    def way(self, request: pytest.FixtureRequest) -> None:
        """Every law holds for answers one by one, and for batches by columns."""
        self.in_columns = request.param == "columns"

    def open(self, place: Path, plan: str = PLAN, job: Job = JOB) -> Store:
        """A store whose `commit` goes the way that is tested."""
        store = self.opened(place, plan, job)
        if self.in_columns:
            commit = store.commit_columns
            store.commit = lambda answers, positions: commit(*by_columns(answers, positions))  # type: ignore[method-assign]
        return store

    # What is kept ---------------------------------------------------------------------------------

    def test_the_same_id_returns_the_same_answer(self, tmp_path: Path) -> None:
        history = moments("u1", 5)
        with self.open(tmp_path) as store:
            for answer, after in history:
                store.commit([answer], [after])
            for answer, _ in history:
                assert store.answers([answer.id]) == {answer.id: answer}
                assert store.moment("u1", answer.sequence) == answer
            assert list(store.rest("u1", 3)) == [answer for answer, _ in history[3:]]

    def test_what_never_was_is_not_found(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            ((answer, after),) = moments("u1", 1)
            store.commit([answer], [after])
            others = ["u1:1", "", "u1:0 ", "U1:0"]
            assert store.answers(others) == {}
            assert store.known(others).tolist() == [False] * 4
            assert store.known([]).tolist() == []
            assert store.position("u2") is None
            assert store.moment("u1", 1) is None
            assert store.moment("u1", -1) is None

    def test_a_ledger_outlives_its_store(self, tmp_path: Path) -> None:
        history = moments("u1", 3)
        with self.open(tmp_path) as store:
            store.commit([answer for answer, _ in history], [history[-1][1]])
            head = store.front.head
        with self.open(tmp_path) as store:
            assert answers_of(store) == [answer for answer, _ in history]
            assert store.position("u1") == history[-1][1]
            assert store.front.head == head

    def test_many_ids_are_found_in_one_call(self, tmp_path: Path) -> None:
        history = moments("u1", 1201)
        with self.open(tmp_path) as store:
            store.commit([answer for answer, _ in history], [history[-1][1]])
            ids = [answer.id for answer, _ in history]
            found = store.answers(ids)
            mask = store.known([ids[3], "u1:1201", *ids, "other:0", ids[3]])
        assert found == {answer.id: answer for answer, _ in history}
        assert mask.tolist() == [True, False, *[True] * 1201, False, True]

    def test_released_values_keep_their_kind_and_ids_may_be_any_text(self, tmp_path: Path) -> None:
        released: list[Released] = ["1", 1, 1.0, "", None, -7, 0.1, "é ✓", "'); --"]
        bare = [answer for answer, _ in moments("u1", len(released))]
        answers = [
            replace(answer, id=f"{value!r}'\"\n%", released=value)
            for answer, value in zip(bare, released, strict=True)
        ]
        with self.open(tmp_path) as store:
            store.commit(answers, [moments("u1", len(released))[-1][1]])
            found = store.answers([answer.id for answer in answers])
        kinds = [(type(found[answer.id].released), found[answer.id]) for answer in answers]
        assert kinds == [(type(answer.released), answer) for answer in answers]

    def test_streams_come_in_order_with_their_counts(self, tmp_path: Path) -> None:
        histories = {stream: moments(stream, 4) for stream in ("b", "a")}
        with self.open(tmp_path) as store:
            for place in range(4):
                now = [history[place] for history in histories.values()]
                store.commit([answer for answer, _ in now], [after for _, after in now])
            assert list(store.streams()) == [("a", 4), ("b", 4)]

    def test_rows_of_a_batch_keep_the_order_of_their_streams(self, tmp_path: Path) -> None:
        histories = [moments(stream, 3) for stream in ("b", "a", "c")]
        turns = [iter(history) for history in histories]
        answers = [next(turns[place])[0] for place in (2, 0, 0, 1, 2, 0, 1, 1, 2)]
        with self.open(tmp_path) as store:
            store.commit(answers, [history[-1][1] for history in histories])
            for history in histories:
                assert list(store.rest(history[0][0].stream, 0)) == [one for one, _ in history]
                assert store.position(history[0][0].stream) == history[-1][1]
            assert store.known([answer.id for answer in answers]).all()

    def test_many_streams_end_as_each_does_alone(self, tmp_path: Path) -> None:
        lengths = {f"u{place}": 1 + place % 3 for place in range(700)} | {"long": 5000, "u9 ": 2}
        histories = {stream: moments(stream, length) for stream, length in lengths.items()}
        with self.open(tmp_path) as store:
            answers = [answer for own in histories.values() for answer, _ in own]
            store.commit(answers, [own[-1][1] for own in histories.values()])
        asked = ["nobody", *reversed(lengths), "u"]
        due = [(own[-1][1], own[-1][0]) for own in reversed(histories.values())]
        with self.open(tmp_path) as store:
            for _ in range(2):  # rows are checked the first time only
                assert store.ends(asked) == [None, *due, None]
            assert store.ends([]) == []
            assert store.begun(asked) == {*lengths}

    # All or nothing -------------------------------------------------------------------------------

    @pytest.mark.parametrize("clash", ["moment", "id"])
    def test_a_moment_or_id_answered_before_rolls_everything_back(
        self, tmp_path: Path, clash: str
    ) -> None:
        (first, begun), (second, later) = moments("u1", 2)
        ((other, moved),) = moments("u2", 1)
        bad = replace(first, id="fresh") if clash == "moment" else replace(second, id=first.id)
        with self.open(tmp_path) as store:
            store.commit([first], [begun])
            head = store.front.head
            with pytest.raises(LedgerMismatch, match="answered before"):
                store.commit([other, bad], [moved, later])
            assert answers_of(store) == [first]
            assert store.position("u2") is None
            assert store.position("u1") == begun
            assert store.front.head == head
            store.commit([other], [moved])
        with self.open(tmp_path) as store:
            assert answers_of(store) == [first, other]

    def test_one_id_twice_in_a_commit_is_refused(self, tmp_path: Path) -> None:
        (first, _), (second, after) = moments("u1", 2)
        with self.open(tmp_path) as store:
            with pytest.raises(LedgerMismatch, match="answered before"):
                store.commit([first, replace(second, id=first.id)], [after])
            assert answers_of(store) == []

    def test_a_position_never_goes_back_and_never_lowers_its_spend(self, tmp_path: Path) -> None:
        (first, one), (second, two), (third, three) = moments("u1", 3)
        with self.open(tmp_path) as store:
            store.commit([first, second], [two])
            cheaper = (replace(three, leakage=0.5), replace(three, model_free=0.25))
            for older in (one, two, *cheaper):
                with pytest.raises(LedgerMismatch, match="only move forward"):
                    store.commit([third], [older])
                assert answers_of(store) == [first, second]
                assert store.position("u1") == two
            store.commit([third], [three])
            assert store.position("u1") == three

    def test_no_moment_is_left_out(self, tmp_path: Path) -> None:
        (first, _), (second, _), (third, three) = moments("u1", 3)
        with self.open(tmp_path) as store:
            for some in ([first, third], [second, third], [third, second, first]):
                with pytest.raises(LedgerMismatch):
                    store.commit(some, [three])
            assert answers_of(store) == []

    def test_an_answer_and_the_position_after_it_come_together(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        with self.open(tmp_path) as store:
            for answers, positions in ([answer], []), ([], [after]):
                with pytest.raises(LedgerMismatch, match="stored together"):
                    store.commit(answers, positions)
            assert answers_of(store) == []
            assert store.position("u1") is None

    # The chain ------------------------------------------------------------------------------------

    def test_the_head_counts_rows_and_stands_for_all_of_them(self, tmp_path: Path) -> None:
        heads = []
        with self.open(tmp_path) as store:
            heads.append(store.front.head)
            for answer, after in moments("u1", 3):
                store.commit([answer], [after])
                heads.append(store.front.head)
        assert [head.entries for head in heads] == [0, 1, 2, 3]
        assert len({head.hash for head in heads}) == 4

    def test_two_ledgers_have_two_heads(self, tmp_path: Path) -> None:
        heads = set()
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            with self.open(tmp_path / name) as store:
                ((answer, after),) = moments("u1", 1)
                store.commit([answer], [after])
                heads.add(store.front.head)
        assert len(heads) == 2

    # Whose it is ----------------------------------------------------------------------------------

    def test_the_ledger_of_another_plan_or_job_is_refused(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        with self.open(tmp_path) as store:
            store.commit([answer], [after])
        with pytest.raises(LedgerMismatch, match="begun with another model, budget, loss, method"):
            self.open(tmp_path, plan="another fingerprint")
        with pytest.raises(LedgerMismatch, match="a ledger of `release`, not of `realtime`"):
            self.open(tmp_path, job=Job("realtime"))
        for job in (JOB, NO_JOB):  # who names no job opens the ledger of any
            with self.open(tmp_path, job=job) as store:
                assert answers_of(store) == [answer]

    def test_a_closed_store_takes_nothing(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        store = self.open(tmp_path)
        store.close()
        with pytest.raises(SfumatoError):
            store.commit([answer], [after])

    def test_a_forked_child_is_refused(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        with self.open(tmp_path) as store:
            child = os.fork()
            if child == 0:
                try:
                    store.commit([answer], [after])
                except ForkedUse:
                    os._exit(17)
                os._exit(1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
            store.commit([answer], [after])
            assert answers_of(store) == [answer]

    def test_threads_commit_one_after_the_other(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:

            def work(stream: str) -> None:
                for answer, after in moments(stream, 20):
                    store.commit([answer], [after])

            threads = [threading.Thread(target=work, args=(f"u{i}",)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert list(store.streams()) == [(f"u{i}", 20) for i in range(4)]
            assert store.front.head.entries == 80

    # Turns ----------------------------------------------------------------------------------------

    def test_a_turn_excludes_other_threads(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:

            def work(_: int) -> None:
                for _ in range(10):
                    go_on(store)

            at_once(4, work)
            assert list(store.streams()) == [("u1", 40)]

    def test_what_is_committed_in_a_turn_is_seen_there_and_stays(self, tmp_path: Path) -> None:
        history = moments("u1", 3)
        with self.open(tmp_path) as store:
            with store.turn():
                for answer, after in history:
                    store.commit([answer], [after])
                    assert store.position("u1") == after
                    assert store.known([answer.id]).all()
                    assert store.front.head.entries == after.sequence
            head = store.front.head
        with self.open(tmp_path) as store:
            assert answers_of(store) == [answer for answer, _ in history]
            assert store.front.head == head

    def test_a_turn_may_hold_another(self, tmp_path: Path) -> None:
        (first, one), (second, two) = moments("u1", 2)
        with self.open(tmp_path) as store:
            with store.turn():
                with store.turn():
                    store.commit([first], [one])
                store.commit([second], [two])
            assert answers_of(store) == [first, second]

    def test_a_refusal_within_a_turn_takes_nothing_else_with_it(self, tmp_path: Path) -> None:
        (first, one), (second, two) = moments("u1", 2)
        with self.open(tmp_path) as store:
            with store.turn():
                store.commit([first], [one])
                head = store.front.head
                with pytest.raises(LedgerMismatch, match="answered before"):
                    store.commit([replace(second, id=first.id)], [two])
                assert store.front.head == head
                store.commit([second], [two])
            assert answers_of(store) == [first, second]

    def test_a_turn_that_fails_leaves_all_or_nothing_and_the_ledger_goes_on(
        self, tmp_path: Path
    ) -> None:
        history = moments("u1", 3)
        with self.open(tmp_path) as store:
            with pytest.raises(ZeroDivisionError), store.turn():
                for answer, after in history[:2]:
                    store.commit([answer], [after])
                raise ZeroDivisionError
            there = store.front.head.entries
            assert there in (0, 2)
            assert answers_of(store) == [answer for answer, _ in history[:there]]
            rest = history[there:]
            store.commit([answer for answer, _ in rest], [rest[-1][1]])
        with self.open(tmp_path) as store:
            assert answers_of(store) == [answer for answer, _ in history]

    # Inputs ---------------------------------------------------------------------------------------

    def answer_some(self, store: Store, name: str, identity: Identity, again: Again) -> str:
        """Begin an input and answer one row of it; return its label."""
        label = store.begin(name, identity, again).label
        stream = f"{label}-{store.front.head.entries}"
        ((answer, after),) = moments(stream, 1, label)
        store.commit([answer], [after])
        return label

    def test_events_of_a_ledger_are_known_by_one_thing(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            store.begin("day.csv", Identity.TIME)
        with (
            self.open(tmp_path) as store,
            pytest.raises(LedgerMismatch, match="known by stream and time"),
        ):
            store.begin("day.csv", Identity.ROW)

    def test_rows_known_by_their_place_need_a_word_when_they_come_again(
        self, tmp_path: Path
    ) -> None:
        with self.open(tmp_path) as store:
            with pytest.raises(LedgerMismatch, match=r"nothing of 'day.csv' to resume"):
                store.begin("day.csv", Identity.ROW, Again.RESUME)
            assert self.answer_some(store, "day.csv", Identity.ROW, Again.REFUSE) == "day.csv"
            with pytest.raises(LedgerMismatch, match=r"1 rows of 'day.csv' were answered before"):
                store.begin("day.csv", Identity.ROW)
            resumed = store.begin("day.csv", Identity.ROW, Again.RESUME)
            assert (resumed.label, resumed.answered) == ("day.csv", 1)
            assert store.begin("day.csv", Identity.ROW, Again.APPEND).label == "day.csv#2"

    @pytest.mark.parametrize("identity", [Identity.EVENT, Identity.TIME])
    def test_an_input_that_is_resumed_stays_one_source(
        self, tmp_path: Path, identity: Identity
    ) -> None:
        with self.open(tmp_path) as store:
            self.answer_some(store, "day.csv", identity, Again.REFUSE)
            assert self.answer_some(store, "day.csv", identity, Again.RESUME) == "day.csv"
            assert self.answer_some(store, "day.csv", identity, Again.REFUSE) == "day.csv#2"
            assert store.inputs() == {"day.csv": 2, "day.csv#2": 1}

    def test_no_input_takes_the_label_of_another(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            self.answer_some(store, "day.csv", Identity.ROW, Again.REFUSE)
            assert self.answer_some(store, "day.csv", Identity.ROW, Again.APPEND) == "day.csv#2"
            assert store.begin("day.csv#2", Identity.ROW).label == "day.csv#2#2"

    def test_an_input_without_answers_leaves_no_trace(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            assert store.begin("day.csv", Identity.ROW).label == "day.csv"
            assert store.begin("day.csv", Identity.ROW).label == "day.csv"
            assert store.inputs() == {}

    def test_values_are_compared_under_their_own_secret_alone(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            source = store.begin("day.csv", Identity.ROW)
            assert store.compared(source.label, source.secret)
            assert not store.compared(source.label, bytes(32))
            assert not store.compared("other.csv", source.secret)


class HeldStoreLaws(StoreLaws):
    """What a store keeps that one process holds."""

    def test_one_store_holds_a_ledger_at_a_time(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as store:
            assert not store.shared
            with pytest.raises(LedgerMismatch, match="in use"):
                self.open(tmp_path)
        self.open(tmp_path).close()


class SharedStoreLaws(StoreLaws):
    """What a store keeps that several nodes use at the same time."""

    def test_each_store_sees_what_the_others_committed(self, tmp_path: Path) -> None:
        history = moments("u1", 6)
        with self.open(tmp_path) as one, self.open(tmp_path) as other:
            assert one.shared and other.shared
            for place, (answer, after) in enumerate(history):
                writer, reader = (one, other) if place % 2 else (other, one)
                writer.commit([answer], [after])
                assert reader.position("u1") == after
                assert reader.answers([answer.id]) == {answer.id: answer}
                with reader.turn():
                    assert reader.front.head == writer.front.head

    def test_no_id_and_no_moment_is_answered_twice(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        with self.open(tmp_path) as one, self.open(tmp_path) as other:
            one.commit([answer], [after])
            for again in (answer, replace(answer, id="fresh")):
                with pytest.raises(LedgerMismatch, match="answered before"):
                    other.commit([again], [after])
            elsewhere = moments("u2", 1)[0]
            with pytest.raises(LedgerMismatch, match="answered before"):
                other.commit([replace(elsewhere[0], id=answer.id)], [elsewhere[1]])
            assert answers_of(other) == [answer]

    def test_turns_of_two_stores_follow_each_other(self, tmp_path: Path) -> None:
        with self.open(tmp_path) as one, self.open(tmp_path) as other:

            def work(thread: int) -> None:
                store = (one, other)[thread % 2]
                for _ in range(10):
                    go_on(store)

            at_once(4, work)
            assert list(one.streams()) == [("u1", 40)] == list(other.streams())
            position = one.position("u1")
            assert position is not None
            assert position.leakage == sum(answer.leakage for answer in answers_of(other))

    def test_a_turn_that_fails_leaves_nothing_to_the_others(self, tmp_path: Path) -> None:
        ((answer, after),) = moments("u1", 1)
        with self.open(tmp_path) as one, self.open(tmp_path) as other:
            with pytest.raises(ZeroDivisionError), one.turn():
                one.commit([answer], [after])
                raise ZeroDivisionError
            assert other.position("u1") is None
            assert one.position("u1") is None
            other.commit([answer], [after])
            with one.turn():
                assert one.front.head == other.front.head

    def test_two_stores_that_begin_a_ledger_at_once_begin_one(self, tmp_path: Path) -> None:
        ids = []

        def work(_: int) -> None:
            with self.open(tmp_path) as store:
                ids.append(store.front.id)

        at_once(4, work)
        assert len(set(ids)) == 1 and len(ids) == 4
