"""Live events in batches: what waits is in memory alone, and a batch is answered whole."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.randomness import Randomness, keyed, ledger_key
from sfumato.store.ledger_reader import LedgerReader
from sfumato.store.live import Answered, Asked, LiveRun, Reason, Refused, Reply, Waiting
from sfumato.store.live_intake import begun
from sfumato.store.live_run import SteppedRun
from sfumato.store.memory import MemoryStore
from sfumato.store.protocol import Store
from sfumato.stream.input_rows import Reading
from sfumato.stream.live_batches import LiveBatches
from sfumato.stream.live_release import open_release
from sfumato.stream.release_document import document
from sfumato.stream.release_run import RunSpec, release_table
from sfumato.stream.release_spec import ReleaseSpec
from sfumato.tables.cells import Missing
from sfumato.tables.readers import Table
from tests.contracts.live_laws import SECRET, ledger, reason, without_source
from tests.contracts.live_stores import FAILURES, FailingStore, Place
from tests.shell.tables import write
from tests.stream.both_ways import model_of

MODEL = model_of("words")
RULES = ReleaseSpec(epsilon=1.0, batch=3, loss="hamming", missing="skip")


def opened(
    place: Any, coins: Randomness | None = None, rules: ReleaseSpec = RULES
) -> tuple[LiveRun, Store]:
    """A run in batches of three."""
    given = (document(rules, MODEL), MODEL, None, place.open, coins or sf.secure(), "x")
    return open_release(*given)


def asked(*ids: str, stream: str = "ann") -> list[Asked]:
    """Events of one stream; the value of each follows from its id."""
    return [Asked(id_, stream, "abc"[ord(id_[-1]) % 3]) for id_ in ids]


def ids_of(reply: Reply | None) -> list[str]:
    """The events that a reply answers."""
    assert isinstance(reply, Answered), reply
    return [answer.id for answer in reply.answers]


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the ledger lies."""
    return Place(request.param, tmp_path)


def test_values_wait_until_their_batch_is_complete(place: Place) -> None:
    run, store = opened(place)
    first, other, second = run.answer([*asked("e1"), *asked("f1", stream="bob"), *asked("e2")])
    assert (first, other, second) == (Waiting(2), Waiting(2), Waiting(1))
    assert run.waiting() == 3 and ledger(store) == {}
    (whole,) = run.answer(asked("e3"))
    assert ids_of(whole) == ["e1", "e2", "e3"] and run.waiting() == 1
    assert isinstance(whole, Answered) and {one.batch for one in whole.answers} == {0}
    own, last = run.answer(asked("e1", "e3"))
    assert (ids_of(own), ids_of(last)) == (["e1"], ["e1", "e2", "e3"])
    assert isinstance(last, Answered) and last.repeated and last.answers == whole.answers


def test_a_batch_that_comes_whole_is_answered_in_one_call(place: Place) -> None:
    run, store = opened(place)
    replies = run.answer([*asked("e1", "e2", "e3", "e1", "e4")])
    assert replies[:2] == [Waiting(2), Waiting(1)] and ids_of(replies[2]) == ["e1", "e2", "e3"]
    assert ids_of(replies[3]) == ["e1"] and replies[4] == Waiting(2)
    assert sorted(ledger(store)) == ["e1", "e2", "e3"]


def test_a_retry_of_what_waits_waits_once(place: Place) -> None:
    run, store = opened(place)
    assert run.answer([*asked("e1", "e1"), *asked("e1")]) == [Waiting(2)] * 3
    values: list[Any] = ["a", "b", "c", None, "?", []]
    guesses = [Asked("e1", "ann", value) for value in values]
    assert run.answer(guesses) == [Waiting(2)] * 6 and run.conflicts == 5
    assert run.waiting() == 1
    assert ids_of(run.finish("ann")) == ["e1"] and run.finish("ann") is None
    assert run.waiting() == 0 and list(ledger(store)) == ["e1"]


def test_values_that_wait_for_too_long_make_room(place: Place) -> None:
    plan, now = RULES.plan(MODEL), [0.0]
    store = MemoryStore(plan=plan.fingerprint)
    job = LiveBatches(MODEL, plan, sf.secure())
    limits: dict[str, Any] = {"most_waiting": 4, "most_seconds": 10.0, "clock": lambda: now[0]}
    run = SteppedRun(store, begun(store, "x"), job, **limits)
    run.answer([*asked("f1", "f2", stream="flood"), *asked("g1", "g2", stream="flood 2")])
    (full,) = run.answer(asked("e1"))
    assert reason(full) is Reason.UNSTORED
    now[0] = 9.0
    assert run.answer(asked("f1", stream="flood")) == [Waiting(1)]  # asking again keeps no place
    now[0] = 11.0
    assert run.answer(asked("e1", "e2")) == [Waiting(2), Waiting(1)] and run.waiting() == 2
    # Whoever sent what was let go of has it still.
    replies = run.answer(asked("e3", "f1", "f2", stream="flood"))
    assert ids_of(replies[2]) == ["e3", "f1", "f2"] and run.conflicts == 0


def test_a_moment_that_passes_lets_what_waits_leave_first(place: Place) -> None:
    run, store = opened(place)
    *_, passed = run.answer([*asked("e1", "e2"), Asked("gone", "ann", None)])
    assert ids_of(passed) == ["e1", "e2", "gone"] and run.waiting() == 0
    assert [one.outcome for one in store.rest("ann", 0)][-1] == "skipped"


def test_a_value_outside_the_alphabet_is_refused_before_it_waits(place: Place) -> None:
    run, _ = opened(place)
    replies = run.answer([*asked("e1"), Asked("bad", "ann", "?"), *asked("e2", "e3")])
    assert reason(replies[1]) is Reason.VALUE and ids_of(replies[3]) == ["e1", "e2", "e3"]


def test_an_exhausted_stream_is_refused_before_it_waits(place: Place) -> None:
    rules = ReleaseSpec(budget=2.0, horizon=3, batch=3, loss="hamming")
    run, _ = opened(place, rules=rules)
    assert ids_of(run.answer(asked("e1", "e2", "e3"))[2]) == ["e1", "e2", "e3"]
    assert [reason(one) for one in run.answer(asked("e4"))] == [Reason.BUDGET]
    account = run.account("ann")
    assert run.waiting() == 0 and account is not None
    assert (account.answers, account.moments, account.left) == (3, 0, 0.0)


def test_what_waits_is_bounded(tmp_path: Path) -> None:
    plan = RULES.plan(MODEL)
    store = MemoryStore(plan=plan.fingerprint)
    job = LiveBatches(MODEL, plan, sf.secure(), missing=Missing.SKIP)
    run = SteppedRun(store, begun(store, "x"), job, most_waiting=2)
    *_, full = run.answer([*asked("e1"), *asked("f1", stream="bob"), *asked("e2")])
    assert isinstance(full, Refused) and "too many values wait" in full.detail
    assert run.waiting() == 2
    assert "value=" not in repr(vars(run))


def test_with_several_nodes_a_batch_comes_whole(tmp_path: Path) -> None:
    place = Place("shared", tmp_path)
    (one, _), (two, store) = opened(place), opened(place)
    alone, *whole = one.answer([*asked("f1", stream="bob"), *asked("e1", "e2", "e3")])
    assert isinstance(alone, Refused) and "whole in one request" in alone.detail
    assert reason(alone) is Reason.VALUE and ids_of(whole[2]) == ["e1", "e2", "e3"]
    assert one.waiting() == 0 and one.finish("bob") is None
    assert ids_of(two.answer(asked("e4", "e5", "e6"))[2]) == ["e4", "e5", "e6"]
    assert ids_of(one.answer(asked("e7", "e8", "e9"))[2]) == ["e7", "e8", "e9"]
    assert [answer.batch for answer in store.rest("ann", 0)] == [0, 0, 0, 3, 3, 3, 6, 6, 6]


@pytest.mark.parametrize("failure", FAILURES)
def test_a_batch_that_was_not_stored_is_asked_for_again(place: Place, failure: str) -> None:
    failing = FailingStore(None)  # type: ignore[arg-type]

    class Failing:
        def open(self, *given: Any) -> Any:
            failing.inner = place.open(*given)
            return failing

    run, _ = opened(Failing())
    run.answer([*asked("e1", "e2"), *asked("f1", stream="bob")])
    failing.failing = failure
    assert [reason(one) for one in run.answer(asked("e3"))] == [Reason.UNSTORED]
    stored = ledger(failing.inner)
    failing.failing = ""
    events = asked("e1", "e2", "e3")
    for _ in range(2):
        run.answer(events)
    kept = ledger(failing.inner)
    assert sorted(kept) == ["e1", "e2", "e3"] and (not stored or stored == kept)
    assert ids_of(run.finish("bob")) == ["f1"]


@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_batches_are_those_of_a_table(data: st.DataObject, tmp_path_factory: Any) -> None:
    folder, streams = tmp_path_factory.mktemp("both"), ("ann", "bob")
    cells = data.draw(
        st.lists(st.tuples(st.sampled_from(streams), st.sampled_from("abc")), min_size=1)
    )
    events = [Asked(f"e{n}", *cell) for n, cell in enumerate(cells)]
    run, store = opened(Place("memory", folder), keyed(SECRET))
    rest = list(events)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        part, rest = rest[:size], rest[size:]
        run.answer(part)
    for stream in streams:
        run.finish(stream)
    live = {id_: without_source(answer) for id_, answer in ledger(store).items()}
    own = keyed(ledger_key(SECRET, store.front.id))
    rows = [[one.stream, one.value, one.id] for one in events]
    source = Table.at(str(write(folder / "day.csv", ("person", "value", "id"), rows)))
    spec = RunSpec(reading=Reading(event="id"), ledger=folder / "t.ledger", randomness=own)
    release_table(source, Table.at(str(folder / "out.csv")), MODEL, RULES.plan(MODEL), spec)
    with LedgerReader(folder / "t.ledger") as reader:
        assert live == {answer.id: without_source(answer) for answer in reader.history()}
