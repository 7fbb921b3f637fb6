"""The laws of a live run: what those of every job keep, over every store.

A new kind inherits `LiveLaws` and says how it is opened, what its values are, and how a table of
the same events is released.
"""

import contextlib
import os
import random
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import ForkedUse
from sfumato.core.randomness import Randomness, keyed, ledger_key, secure
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.live import Answered, Asked, LiveRun, Reason, Refused, Reply
from sfumato.store.live_columns import ColumnarRun
from sfumato.store.live_intake import own_answer
from sfumato.store.protocol import Answer, Store
from tests.contracts.live_stores import FAILURES, FailingStore, Place
from tests.contracts.threads import at_once
from tests.shell.running import Result

SECRET = b"a secret of sixteen bytes or more"
FEW = 4
"""Answers of each stream that a release with a short budget allows."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
Opened: TypeAlias = tuple[ColumnarRun, Store]


def single(reply: Reply) -> Answer:
    """The one answer of a reply."""
    assert isinstance(reply, Answered), reply
    (answer,) = reply.answers
    return answer


def reason(reply: Reply) -> Reason:
    """Why there is no answer."""
    assert isinstance(reply, Refused), reply
    return reply.reason


def ledger(store: Store) -> dict[str, Answer]:
    """Every answer of a store by the id that its asker gave it, if no two streams share one."""
    found = [own_answer(answer) for name, _ in store.streams() for answer in store.rest(name, 0)]
    assert len({answer.id for answer in found}) == len(found)
    return {answer.id: answer for answer in found}


def table_coins(path: Path) -> Randomness:
    """The coins that a live run with `SECRET` has in a ledger, for a table."""
    with LedgerReader(path) as reader:
        return keyed(ledger_key(SECRET, reader.front.id))


def without_source(answer: Answer) -> tuple[Any, ...]:
    """What a table and a live run must agree on."""
    told = (answer.id, answer.stream, answer.sequence, answer.outcome, answer.released)
    return (*told, answer.leakage, answer.model_free, answer.batch, answer.time, answer.signal)


def _unreleased(reply: Reply) -> Reply:
    """A reply without what was released."""
    if not isinstance(reply, Answered):
        return reply
    return Answered(tuple(replace(one, released=None) for one in reply.answers), reply.repeated)


class LiveLaws(ABC):
    """What every live run keeps that answers each event as it comes."""

    readable: Sequence[Any]
    unreadable: Sequence[Any]
    most_spent: float
    """What a stream may spend of a budget for `FEW` answers."""
    timed = True
    """Whether a table of events keeps their times."""

    @abstractmethod
    def open(
        self, place: Any, coins: Randomness | None = None, *, few: bool = False, source: str = "x"
    ) -> Opened:
        """A run at a place, and its store; with a budget for `FEW` answers a stream if asked."""

    @abstractmethod
    def release_table(self, folder: Path, path: Path, events: list[Asked]) -> None:
        """Release a table of these events into a ledger, with the coins of `SECRET`."""

    @abstractmethod
    def audit(self, path: Path) -> Result:
        """Audit a ledger by the command line."""

    @pytest.fixture(params=["memory", "sqlite", "shared"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
        """Where the ledger lies."""
        return Place(request.param, tmp_path)

    def events(self, count: int, streams: int = 3, seed: int = 0, prefix: str = "e") -> list[Asked]:
        """Events of some streams."""
        draw = random.Random(seed)
        return [
            Asked(f"{prefix}{n}", f"u{draw.randrange(streams)}", draw.choice(self.readable))
            for n in range(count)
        ]

    # The same id, the same answer -----------------------------------------------------------------

    def test_the_same_id_has_the_same_answer_also_after_a_restart(self, place: Place) -> None:
        events = self.events(20)
        run, store = self.open(place)
        first = run.answer(events)
        assert all(isinstance(one, Answered) and not one.repeated for one in first)
        again = run.answer(events[::-1])[::-1]
        run.close()
        after = run.answer(events)
        store.close()
        run, store = self.open(place)
        for replies in (again, after, run.answer(events)):
            assert [single(one) for one in replies] == [single(one) for one in first]
            assert all(isinstance(one, Answered) and one.repeated for one in replies)
        assert set(store.inputs()) == {"x"} and len(ledger(store)) == 20

    def test_a_closed_release_tells_what_was_answered_and_nothing_else(self, place: Place) -> None:
        run, store = self.open(place)
        events = self.events(6)
        first = run.answer(events)
        store.ended = True
        new = [*self.events(4, prefix="n"), Asked("n9", "new", self.unreadable[0])]
        replies = run.answer([*events, *new, new[0]])
        assert [single(one) for one in replies[:6]] == [single(one) for one in first]
        assert {reason(one) for one in replies[6:]} == {Reason.CLOSED}
        assert run.finish("u0") is None and run.waiting() == 0
        assert len(ledger(store)) == 6

    def test_an_id_that_comes_twice_in_one_call_is_answered_once(self, place: Place) -> None:
        run, store = self.open(place)
        event = self.events(1)[0]
        first, second, third = run.answer([event, event, event])
        assert single(first) == single(second) == single(third)
        assert [one.repeated for one in (first, second)] == [False, True]  # type: ignore[union-attr]
        assert len(ledger(store)) == 1

    @pytest.mark.parametrize("together", [True, False], ids=["one call", "two calls"])
    def test_the_reply_to_an_old_id_does_not_depend_on_the_value(
        self, place: Place, together: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        run, store = self.open(place)
        value, other = self.readable[:2]
        event = Asked("e1", "ann", value)
        guesses = [Asked("e1", "ann", guess) for guess in (value, other, *self.unreadable)]
        first: list[Reply] = []
        if not together:
            first = run.answer([event])
        # A time that cannot be read, or goes back, would tell nothing else either.
        guesses += [Asked("e1", "ann", other, time) for time in ("1", "no time")]
        replies = first + run.answer([*([event] if together else []), *guesses])
        again = Answered((single(replies[0]),), repeated=True)
        assert replies[1:] == [again] * len(guesses)
        assert list(ledger(store)) == ["e1"]
        # Whoever runs it sees that it happened, and neither whose nor what.
        assert run.conflicts == len(guesses) - 1
        assert caplog.text.count("came again with another value") == 1 and "e1" not in caplog.text

    def test_what_cannot_be_read_takes_no_id(self, place: Place) -> None:
        run, _ = self.open(place)
        bad, good = Asked("e1", "ann", self.unreadable[0]), Asked("e1", "ann", self.readable[0])
        refused, answered = run.answer([bad, good])
        assert reason(refused) is Reason.VALUE and single(answered).sequence == 0
        assert run.conflicts == 0

    def test_two_streams_share_no_ids(self, place: Place) -> None:
        run, store = self.open(place)
        value, other = self.readable[:2]
        names = [("ann", "b/1"), ("ann/b", "1"), ("ann%2Fb", "1"), ("ann", "1"), ("ann/b", "b/1")]
        events = [Asked(id_, stream, value) for stream, id_ in names]
        replies = [single(one) for one in run.answer(events)]
        assert [(one.stream, one.id) for one in replies] == names
        again = run.answer([Asked(id_, stream, other) for stream, id_ in names])
        assert [single(one) for one in again] == replies
        assert sum(count for _, count in store.streams()) == len(names)

    def test_two_ledgers_of_one_key_share_no_coins(self, tmp_path: Path) -> None:
        told = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            run, store = self.open(Place("sqlite", tmp_path / name), keyed(SECRET))
            events = [Asked(f"e{n}", "ann", self.readable[0]) for n in range(50)]
            told.append([single(one).released for one in run.answer(events)])
            store.close()
        assert told[0] != told[1]

    def test_events_by_columns_get_the_same_replies(self, place: Place) -> None:
        run, _ = self.open(place)
        events = [*self.events(6), Asked("bad", "u1", self.unreadable[0]), *self.events(2)]
        columns = [
            [event.id for event in events],
            [event.stream for event in events],
            [event.value for event in events],
        ]
        told = run.answer_columns(*columns)
        assert len(told) == len(events)
        for first, again in zip(told.replies(), run.answer(events), strict=True):
            if isinstance(again, Answered):
                assert single(first) == single(again)
            else:
                assert first == again
        assert run.answer_columns([], [], []).replies() == []

    # Order, and refusals that touch nobody else ---------------------------------------------------

    def test_values_of_a_stream_are_taken_in_the_order_given(self, place: Place) -> None:
        run, store = self.open(place)
        events = self.events(30)
        for start in range(0, 30, 10):
            for event, reply in zip(
                events[start : start + 10], run.answer(events[start : start + 10]), strict=True
            ):
                assert (single(reply).id, single(reply).stream) == (event.id, event.stream)
        kept, due = ledger(store), Counter[str]()
        for event in events:
            assert kept[event.id].sequence == due[event.stream]
            due[event.stream] += 1

    def test_a_refusal_touches_no_other_event(self, place: Place) -> None:
        run, store = self.open(place)
        good = self.events(12)
        bad = [Asked(f"bad{n}", "u1", value) for n, value in enumerate(self.unreadable)]
        bad += [
            Asked("", "u1", self.readable[0]),
            Asked("b1", "", self.readable[0]),
            Asked("b2", "u\0", self.readable[0]),
            Asked("b\ud800", "u1", self.readable[0]),
            Asked("b3", 7, self.readable[0]),  # type: ignore[arg-type]
            Asked([], "u1", self.readable[0]),  # type: ignore[arg-type]
            Asked("b4", "u1", self.readable[0], "no time"),
            Asked("b6", "u1", self.readable[0], "0001-01-01T00:00:00+14:00"),
            Asked("b7", "u1", self.readable[0], 10**5000),  # type: ignore[arg-type]
            Asked("b5" * 600, "u1", self.readable[0]),
        ]
        mixed = [*good, *bad]
        random.Random(3).shuffle(mixed)
        for event, reply in self.asked(run, mixed):
            if event in bad:
                assert reason(reply) is Reason.VALUE
            else:
                assert single(reply) == ledger(store)[event.id]
        assert sorted(ledger(store)) == sorted(event.id for event in good)

    @settings(
        max_examples=25, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(values=st.lists(JSON, max_size=5))
    def test_whatever_a_value_is_it_gets_a_reply(
        self, values: list[Any], tmp_path_factory: Any
    ) -> None:
        run, store = self.open(Place("memory", tmp_path_factory.getbasetemp()))
        events = [Asked(f"e{n}", "ann", value) for n, value in enumerate(values)]
        good = Asked("good", "ann", self.readable[0])
        *replies, last = run.answer([*events, good])
        assert single(last).sequence == len(ledger(store)) - 1
        assert all(isinstance(one, Answered) or reason(one) is Reason.VALUE for one in replies)

    def test_an_event_that_goes_back_in_time_is_refused_alone(self, place: Place) -> None:
        run, _ = self.open(place)
        times = ["10", "10", "9", "11", None, "2", "2024-05-01", "10", "11"]
        events = [Asked(f"e{n}", "ann", self.readable[0], time) for n, time in enumerate(times)]
        events.append(Asked("other", "bob", self.readable[0], "1"))
        for reply, ok in zip(run.answer(events), "++-++---++", strict=True):
            assert isinstance(reply, Answered) if ok == "+" else reason(reply) is Reason.ORDER
        run.close()
        late, same = run.answer(
            [
                Asked("late", "ann", self.readable[0], "2"),
                Asked("now", "ann", self.readable[0], "12"),
            ]
        )
        assert reason(late) is Reason.ORDER and single(same).time == "12"
        account = run.account("ann")
        assert account is not None and account.time == "12"

    @pytest.mark.parametrize("together", [True, False], ids=["one call", "calls"])
    @pytest.mark.parametrize("restarted", [True, False], ids=["restarted", "running"])
    def test_an_event_without_a_time_does_not_reset_the_order(
        self, place: Place, together: bool, restarted: bool
    ) -> None:
        run, _ = self.open(place)
        told = [Asked(f"e{n}", "ann", self.readable[0], "10" if n < 1 else None) for n in range(40)]
        early = Asked("early", "ann", self.readable[0], "9")
        if together and not restarted:
            assert reason(run.answer([*told, early])[-1]) is Reason.ORDER
            return
        for part in [told] if together else [[event] for event in told]:
            run.answer(part)
        if restarted:
            run.close()
        late = Asked("late", "ann", self.readable[0], "10")
        assert reason(run.answer([early])[0]) is Reason.ORDER
        assert single(run.answer([late])[0]).sequence == 40

    def test_the_time_of_an_event_that_was_refused_does_not_count(self, place: Place) -> None:
        run, _ = self.open(place, few=True)
        times = [*map(str, range(1, FEW)), "5", "100", "6", "99"]
        events = [Asked(f"e{n}", "ann", self.readable[0], time) for n, time in enumerate(times)]
        replies = run.answer(events)
        assert all(isinstance(one, Answered) for one in replies[:FEW])
        assert [reason(one) for one in replies[FEW:]] == [Reason.BUDGET] * 3

    # Budgets --------------------------------------------------------------------------------------

    def test_budgets_are_never_exceeded(self, place: Place) -> None:
        run, store = self.open(place, few=True)
        events = self.events(60, streams=4)
        replies = [reply for start in (0, 25) for reply in run.answer(events[start : start + 35])]
        kept = ledger(store)
        assert Counter(answer.stream for answer in kept.values()) == dict.fromkeys(
            ("u0", "u1", "u2", "u3"), FEW
        )
        for event, reply in zip([*events[:35], *events[25:]], replies, strict=True):
            if event.id in kept:
                assert single(reply) == kept[event.id]
            else:
                assert reason(reply) is Reason.BUDGET
        for name, _ in store.streams():
            rows = [answer for answer in kept.values() if answer.stream == name]
            account = run.account(name)
            assert account is not None and account.answers == FEW and account.moments == 0
            sums = [sum(row.leakage for row in rows), sum(row.model_free for row in rows)]
            assert [account.leakage, account.model_free] == pytest.approx(sums)
            assert account.leakage <= self.most_spent
        assert run.account("nobody") is None

    # One ledger, several nodes and threads --------------------------------------------------------

    def test_nodes_that_take_turns_answer_each_event_once(self, tmp_path: Path) -> None:
        place = Place("shared", tmp_path)
        nodes = [self.open(place, few=True, source=f"node {n}")[0] for n in range(2)]
        store = self.open(place, few=True)[1]
        events = self.events(30)
        told: dict[str, Answer] = {}
        for turn, event in enumerate([*events, *events]):
            (reply,) = nodes[turn % 2].answer([event])
            if isinstance(reply, Answered):
                assert told.setdefault(event.id, single(reply)) == single(reply)
            else:
                assert reason(reply) is Reason.BUDGET
        assert told == ledger(store)
        assert all(count == FEW for _, count in store.streams())

    def test_threads_that_send_the_same_events_get_the_same_answers(self, place: Place) -> None:
        run, store = self.open(place)
        events, told = self.events(24), list[list[Reply]]()

        def work(thread: int) -> None:
            own = events[:]
            random.Random(thread).shuffle(own)
            parts = [own[start : start + 5] for start in range(0, 24, 5)]
            found = {e.id: r for part in parts for e, r in zip(part, run.answer(part), strict=True)}
            told.append([found[event.id] for event in events])

        at_once(4, work)
        kept = ledger(store)
        assert len(told) == 4 and len(kept) == 24
        for replies in told:
            assert [single(one) for one in replies] == [kept[event.id] for event in events]

    def test_a_forked_child_is_refused(self, place: Place) -> None:
        run, store = self.open(place)
        child = os.fork()
        if child == 0:
            try:
                run.answer(self.events(1))
            except ForkedUse:
                os._exit(17)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
        assert ledger(store) == {}

    # Failures -------------------------------------------------------------------------------------

    @pytest.mark.parametrize("failure", FAILURES)
    def test_a_failing_store_yields_no_answer_that_is_not_stored(
        self, place: Place, failure: str
    ) -> None:
        run, store = self.open_failing(place)
        events = self.events(20)
        told = {event.id: single(reply) for event, reply in self.asked(run, events[:8])}
        store.failing = failure
        lost = [*events[8:], events[9], events[0]]
        for event, reply in self.asked(run, lost):
            if event.id in told and failure != "lookup":
                assert single(reply) == told[event.id]
            else:
                assert reason(reply) is Reason.UNSTORED
        store.failing = ""
        assert self.places(store.inner) == list(range(1, len(ledger(store.inner)) + 1))
        left = ledger(store.inner)
        assert set(left) in ({*told}, {event.id for event in events})
        for event, reply in self.asked(run, events[::-1]):
            assert single(reply) == ledger(store.inner)[event.id]
            assert single(reply) == told.get(event.id, left.get(event.id, single(reply)))
        later = self.asked(run, self.events(12, prefix="later "))
        assert all(single(reply) == ledger(store.inner)[event.id] for event, reply in later)
        moments = [(answer.stream, answer.sequence) for answer in ledger(store.inner).values()]
        assert len(moments) == len({*moments}) == 32
        assert self.places(store.inner) == list(range(1, 33))

    def open_failing(self, place: Place, few: bool = False) -> tuple[LiveRun, FailingStore]:
        """A run on a store that can be told to fail."""
        failing = FailingStore(None)  # type: ignore[arg-type]

        class Failing:
            def open(self, *given: Any) -> Any:
                failing.inner = place.open(*given)
                return failing

        return self.open(Failing(), few=few)[0], failing

    @staticmethod
    def places(store: Store) -> list[int]:
        """The rows of the input that were answered."""
        return sorted(answer.place for answer in ledger(store).values())

    @pytest.mark.parametrize("failure", FAILURES)
    def test_what_was_refused_in_a_turn_that_failed_is_not_final(
        self, place: Place, failure: str
    ) -> None:
        run, failing = self.open_failing(place, few=True)
        value = self.readable[0]
        events = [Asked(f"e{n}", "ann", value, "5") for n in range(FEW + 2)]
        events.append(Asked("early", "bob", value, "4"))
        events.insert(0, Asked("first", "bob", value, "5"))
        failing.failing = failure
        replies = run.answer([*events, Asked("bad", "ann", self.unreadable[0])])
        assert [reason(one) for one in replies[:-1]] == [Reason.UNSTORED] * len(events)
        assert reason(replies[-1]) is Reason.VALUE

    @staticmethod
    def asked(run: LiveRun, events: list[Asked]) -> list[tuple[Asked, Reply]]:
        """Events with their replies."""
        return list(zip(events, run.answer(events), strict=True))

    # What else leaves -----------------------------------------------------------------------------

    def test_no_raw_value_is_quoted_anywhere(
        self, place: Place, caplog: pytest.LogCaptureFixture
    ) -> None:
        run, failing = self.open_failing(place, few=True)
        marked = ["6172839455", 6172839455, [6172839455, "6172839455"], {"6172839455": "x"}]
        events = [
            Asked(f"e{n}", "ann", value) for n, value in enumerate([*marked, *self.unreadable])
        ]
        events += [Asked(f"late{n}", "ann", self.readable[0]) for n in range(FEW + 2)]
        replies = run.answer(events)
        failing.failing = "before"
        replies += run.answer([*events, Asked("new", "bob", self.readable[0])])
        # Noise may be 0: what was released is the one thing that may be the value.
        told = "".join(map(repr, [*map(_unreleased, replies), *events, run, vars(run)]))
        told += caplog.text
        assert "6172839455" not in told
        assert "answers were not stored" in caplog.text

    def test_an_audit_passes_a_live_ledger_and_finds_a_row_that_was_changed(
        self, tmp_path: Path
    ) -> None:
        place = Place("sqlite", tmp_path)
        for part in range(2):
            run, store = self.open(place)
            run.answer(self.events(15, prefix=f"day {part} ", seed=part))
            store.close()
        found = self.audit(place.path)
        assert found.code == 0, found.out + found.err
        with contextlib.closing(sqlite3.connect(place.path)) as database, database:
            database.execute("UPDATE events SET leakage = leakage / 2 + 0.01 WHERE entry = 7")
        changed = self.audit(place.path)
        assert changed.code in (1, 2) and "was changed" in changed.out + changed.err

    # A table of the same events -------------------------------------------------------------------

    @settings(
        max_examples=6, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @given(data=st.data())
    def test_events_are_answered_as_a_table_of_them(
        self, data: st.DataObject, tmp_path_factory: Any
    ) -> None:
        folder = tmp_path_factory.mktemp("both")
        events = self.events(data.draw(st.integers(1, 40)), seed=data.draw(st.integers(0, 99)))
        if self.timed and data.draw(st.booleans()):
            events = [Asked(e.id, e.stream, e.value, str(n)) for n, e in enumerate(events)]
        place = Place("sqlite", folder)
        run, store = self.open(place, keyed(SECRET))
        store.close()
        # Coins of a series are those of its ledger: the table goes on with a copy of the empty one.
        other = folder / "table.ledger"
        for suffix in ("", ".key"):
            shutil.copy(f"{place.path}{suffix}", f"{other}{suffix}")
        run, store = self.open(place, keyed(SECRET))
        rest = list(events)
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            part, rest = rest[:size], rest[size:]
            again = data.draw(
                st.lists(st.sampled_from(events[: len(events) - len(rest)]), max_size=3)
            )
            replies = run.answer([*part, *again])
            assert all(isinstance(reply, Answered) for reply in replies)
            if data.draw(st.booleans()):
                run.close()
        live = {id_: without_source(answer) for id_, answer in ledger(store).items()}
        store.close()
        self.release_table(folder, other, events)
        with LedgerReader(other) as reader:
            table = {answer.id: without_source(answer) for answer in reader.history()}
        assert live == table


def coins_or_fresh(coins: Randomness | None) -> Randomness:
    """Coins that were given, or fresh ones."""
    return secure() if coins is None else coins
