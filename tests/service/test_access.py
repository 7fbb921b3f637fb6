"""Laws of access control: who is let in, who may do what, and that a revocation wins."""

from datetime import UTC, datetime, timedelta
from threading import Thread

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.service.access import (
    AccessControl,
    AccessKey,
    Action,
    Caller,
    Denial,
    Forbidden,
    Grant,
    Unauthenticated,
    operator,
)
from sfumato.service.access_entries import CREATED, REVOKED, ROTATED, content_of
from sfumato.service.access_keys import revoked
from sfumato.service.rate_limits import Limit, Rate
from sfumato.store.protocol import LedgerMismatch
from tests.service.entry_lists import EntryList

READ = frozenset({Action.READ})
HOST = operator("command line")


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def seconds(self) -> float:
        return self.now.timestamp()

    def passes(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log() -> EntryList:
    return EntryList()


@pytest.fixture
def control(log: EntryList, clock: Clock) -> AccessControl:
    return AccessControl(log, clock)


def bearer(text: str) -> str:
    return f"Bearer {text}"


def denied(control: AccessControl, header: str | None) -> Denial:
    with pytest.raises(Unauthenticated) as refused:
        control.identify(header)
    assert str(refused.value) == str(Unauthenticated(Denial.MISSING))  # all are told the same
    return refused.value.why


def made(control: AccessControl, *streams: str, actions: frozenset[Action] = READ) -> str:
    return control.issue(HOST, Grant(streams or ("*",), actions))[0]


def caller(control: AccessControl, *streams: str, actions: frozenset[Action] = READ) -> Caller:
    return control.identify(bearer(made(control, *streams, actions=actions)))


def test_a_key_lets_in_and_everything_else_does_not(control: AccessControl) -> None:
    text = made(control, "ann")
    assert control.identify(bearer(text)).may(Action.READ, "ann")
    assert control.identify("bEARER  " + text).id == text.split("_")[1]
    id_ = text.split("_")[1]
    assert denied(control, None) == denied(control, "") == Denial.MISSING
    assert denied(control, "Basic " + text) == denied(control, text) == Denial.MALFORMED
    assert denied(control, bearer(text[:-1])) == Denial.MALFORMED
    assert denied(control, bearer(f"sfk_{id_}_{43 * 'a'}")) == Denial.WRONG
    assert denied(control, bearer(f"sfk_{16 * '0'}_{text[21:]}")) == Denial.UNKNOWN


def test_the_first_key_may_everything_and_is_made_once(
    control: AccessControl, log: EntryList, clock: Clock
) -> None:
    text = control.first_key()
    assert text is not None and control.first_key() is None
    first = control.identify(bearer(text))
    assert all(first.key.may_everywhere(action) for action in Action)
    control.revoke(HOST, first.id)
    # One that was revoked was there: a second start makes none.
    assert AccessControl(log, clock).first_key() is None


def test_two_nodes_that_start_at_once_agree(log: EntryList, clock: Clock) -> None:
    other = EntryList()
    AccessControl(other, clock)
    quicker = other.lines[0]
    log.meanwhile = [("service", quicker.action, quicker.name, quicker.content)]
    one, two = AccessControl(log, clock), AccessControl(log, clock)
    text = made(one)
    two.follow()
    assert two.identify(bearer(text)).id == text.split("_")[1]
    assert [action for _, action, _ in log.actions()].count("access.begun") == 1
    assert one.secret("a") == two.secret("a") != one.secret("b")


def test_of_two_first_keys_there_is_one(log: EntryList, clock: Clock) -> None:
    one, two = AccessControl(log, clock), AccessControl(log, clock)
    assert one.first_key() is not None
    assert two.first_key() is None


def test_a_log_that_refuses_is_not_asked_for_ever(log: EntryList, clock: Clock) -> None:
    control = AccessControl(log, clock)
    key = control.issue(HOST, Grant(("*",), READ))[1]
    log.closed = True
    with pytest.raises(LedgerMismatch):
        AccessControl(log, clock).rotate(HOST, key.id, timedelta(0))
    with pytest.raises(LedgerMismatch):
        empty = EntryList()
        empty.closed = True
        AccessControl(empty, clock)


def test_a_revocation_counts_at_once_here_and_after_a_poll_elsewhere(
    control: AccessControl, log: EntryList, clock: Clock
) -> None:
    text = made(control)
    elsewhere = AccessControl(log, clock)
    inside = elsewhere.identify(bearer(text))
    control.revoke(HOST, inside.id)
    assert denied(control, bearer(text)) == Denial.REVOKED
    assert elsewhere.identify(bearer(text)) == inside
    elsewhere.follow()
    assert denied(elsewhere, bearer(text)) == Denial.REVOKED
    with pytest.raises(Unauthenticated):
        elsewhere.current(inside)
    before = len(log.lines)
    assert control.revoke(HOST, inside.id).revoked == clock.now and len(log.lines) == before


def test_an_open_connection_ends_with_its_key(control: AccessControl, clock: Clock) -> None:
    grant = Grant(("*",), READ, expires=clock.now + timedelta(seconds=10))
    inside = control.identify(bearer(control.issue(HOST, grant)[0]))
    clock.passes(seconds=9.999)
    assert control.current(inside) == inside
    clock.passes(seconds=0.001)
    with pytest.raises(Unauthenticated) as ended:
        control.current(inside)
    assert ended.value.why == Denial.EXPIRED


def test_a_rotated_key_and_its_successor_overlap(control: AccessControl, clock: Clock) -> None:
    old = made(control, "ann", "b*")
    new, key = control.rotate(HOST, old.split("_")[1], timedelta(hours=1))
    assert control.identify(bearer(old)) and control.identify(bearer(new)).key == key
    clock.passes(hours=1)
    assert denied(control, bearer(old)) == Denial.EXPIRED
    assert control.identify(bearer(new)).may(Action.READ, "bob")


def test_a_rotation_that_comes_after_a_revocation_elsewhere_does_not_undo_it(
    control: AccessControl, log: EntryList, clock: Clock
) -> None:
    text = made(control)
    key = control.identify(bearer(text)).key
    elsewhere = AccessControl(log, clock)
    elsewhere.revoke(HOST, key.id)
    # What a node would append that has not heard of it.
    log.append("late", ROTATED, key.id, content_of(key))
    log.append("late", CREATED, key.id, content_of(key))
    control.follow()
    assert denied(control, bearer(text)) == Denial.REVOKED


def test_a_rotation_that_was_overtaken_by_a_revocation_makes_no_key(
    control: AccessControl, log: EntryList, clock: Clock
) -> None:
    key = control.issue(HOST, Grant(("*",), READ))[1]
    other = EntryList()
    other.lines = list(log.lines)
    AccessControl(other, clock).revoke(HOST, key.id)
    last = other.lines[-1]
    log.meanwhile = [(last.actor, last.action, last.name, last.content)]
    with pytest.raises(InvalidParameter, match="be valid"):
        control.rotate(HOST, key.id, timedelta(hours=1))
    assert [action for _, action, _ in log.actions()].count(CREATED) == 1


def test_only_a_creation_adds_a_key(control: AccessControl, log: EntryList, clock: Clock) -> None:
    elsewhere = AccessControl(EntryList(), clock)
    key = elsewhere.issue(HOST, Grant(("*",), READ))[1]
    for action in (REVOKED, ROTATED):
        log.append("x", action, key.id, content_of(key))
    log.append("x", "model.created", key.id, content_of(key))
    control.follow()
    assert control.keys(HOST) == []


def test_a_key_of_another_installation_opens_nothing(
    control: AccessControl, log: EntryList, clock: Clock
) -> None:
    elsewhere = AccessControl(EntryList(), clock)
    text, key = elsewhere.issue(HOST, Grant(("*",), READ))
    log.append("x", CREATED, key.id, content_of(key))
    control.follow()
    assert denied(control, bearer(text)) == Denial.WRONG


@pytest.mark.parametrize("content", [b"", b"{}", b'{"id": 3}', b"\xff"])
def test_an_entry_about_keys_that_cannot_be_read_is_not_passed_over(
    control: AccessControl, log: EntryList, clock: Clock, content: bytes
) -> None:
    log.append("x", REVOKED, "0" * 16, content)
    with pytest.raises(CorruptData, match=r"entry 2 of the registry must hold an access key"):
        control.follow()
    with pytest.raises(CorruptData):
        AccessControl(log, clock)


def test_an_entry_must_hold_the_key_that_it_names(control: AccessControl, log: EntryList) -> None:
    key = control.issue(HOST, Grant(("*",), READ))[1]
    log.append("x", REVOKED, "0" * 16, content_of(key))
    with pytest.raises(CorruptData, match="the key that it names"):
        control.follow()


def test_nobody_is_let_in_when_the_registry_was_not_heard_of(log: EntryList, clock: Clock) -> None:
    control = AccessControl(log, clock, stale_after=30.0, monotonic=clock.seconds)
    text = made(control)
    inside = control.identify(bearer(text))
    clock.passes(seconds=31)
    assert denied(control, bearer(text)) == Denial.STALE
    with pytest.raises(Unauthenticated):
        control.current(inside)
    control.follow()
    assert control.identify(bearer(text)) == inside


def test_a_stream_out_of_scope_is_refused_alike_whatever_its_name(control: AccessControl) -> None:
    ann = caller(control, "ann", "ward-*")
    ann.require(Action.READ, "ward-3")
    told = set()
    for action, stream in ((Action.READ, "bob"), (Action.READ, "war"), (Action.READ, "annette")):
        with pytest.raises(Forbidden) as refused:
            ann.require(action, stream)
        told.add(str(refused.value))
    assert len(told) == 1
    assert ann.visible(["ann", "bob", "ward-", "ward-3"]) == ["ann", "ward-", "ward-3"]
    with pytest.raises(Forbidden):
        ann.require_everywhere(Action.READ)
    assert caller(control, "*", actions=frozenset({Action.RELEASE})).visible(["ann"]) == []


def test_nobody_hands_out_more_than_he_has(control: AccessControl) -> None:
    admin = frozenset({Action.ADMIN, Action.READ})
    ward = caller(control, "ward-*", actions=admin)
    text, key = control.issue(ward, Grant(("ward-3*",), READ))
    assert control.identify(bearer(text)).key == key
    wider = (
        Grant(("*",), READ),
        Grant(("war*",), READ),
        Grant(("ward-1", "ann"), READ),
        Grant(("ward-1",), frozenset({Action.RELEASE})),
    )
    for grant in wider:
        with pytest.raises(Forbidden):
            control.issue(ward, grant)
    with pytest.raises(Forbidden):
        control.issue(caller(control, "*"), Grant(("ann",), READ))  # no administrator at all


def test_who_has_less_neither_rotates_nor_revokes_nor_sees_a_key(control: AccessControl) -> None:
    # A rotation would hand him the new secret of a wider key.
    root = control.identify(bearer(control.first_key() or ""))
    ward = caller(control, "ward-*", actions=frozenset({Action.ADMIN, Action.READ}))
    for attempt in (
        lambda: control.rotate(ward, root.id, timedelta(0)),
        lambda: control.revoke(ward, root.id),
        lambda: control.revoke(ward, "0" * 16),  # whether there is such a key is not his to know
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert [key.id for key in control.keys(ward)] == [ward.id]
    assert {key.id for key in control.keys(root)} == {root.id, ward.id}
    with pytest.raises(InvalidParameter, match="be the id of an access key"):
        control.revoke(root, "0" * 16)


ADMIN = frozenset({Action.ADMIN, Action.READ})


def test_a_key_ends_no_later_and_asks_for_no_more_than_its_maker(
    control: AccessControl, clock: Clock
) -> None:
    ends, slow = clock.now + timedelta(hours=1), Rate(Limit(2, 4), Limit(10, 20))
    maker = control.issue(HOST, Grant(("*",), ADMIN, ends, rate=slow))[1]
    by = Caller(maker)
    child = control.issue(by, Grant(("ann",), READ))[1]
    assert (child.expires, child.rate) == (ends, slow)
    sooner = control.issue(by, Grant(("ann",), READ, ends - timedelta(minutes=1)))[1]
    assert sooner.expires == ends - timedelta(minutes=1)
    for wider in (
        Grant(("ann",), READ, ends + timedelta(seconds=1)),
        Grant(("ann",), READ, rate=Rate(Limit(3, 4), Limit(10, 20))),
        Grant(("ann",), READ, rate=Rate(Limit(2, 4), Limit(10, 21))),
    ):
        with pytest.raises(InvalidParameter, match="key that makes it"):
            control.issue(by, wider)
    lasting = control.issue(HOST, Grant(("ann",), READ, rate=slow))[1]
    with pytest.raises(InvalidParameter, match="no later than the key that rotates it"):
        control.rotate(by, lasting.id, timedelta(0))  # its secret would outlive him
    quick = control.issue(HOST, Grant(("ann",), READ, ends))[1]
    with pytest.raises(InvalidParameter, match="no larger"):
        control.rotate(by, quick.id, timedelta(0))
    assert control.rotate(by, child.id, timedelta(0))[1].expires == ends


def test_who_was_revoked_on_any_node_changes_nothing_on_another(
    log: EntryList, clock: Clock
) -> None:
    here, there = AccessControl(log, clock), AccessControl(log, clock)
    text, key = here.issue(HOST, Grant(("*",), frozenset(Action)))
    there.follow()
    evil, other = there.identify_text(text), here.issue(HOST, Grant(("*",), READ))[1]
    here.revoke(HOST, key.id)
    before = log.actions()
    for attempt in (
        lambda: there.issue(evil, Grant(("*",), READ)),
        lambda: there.rotate(evil, other.id, timedelta(0)),
        lambda: there.rotate(evil, key.id, timedelta(0)),
        lambda: there.revoke(evil, other.id),
        lambda: here.issue(evil, Grant(("*",), READ)),  # identified before, asked after
    ):
        with pytest.raises(Unauthenticated):
            attempt()
    assert log.actions() == before


def test_a_revocation_that_comes_between_the_look_and_the_entry_wins(
    log: EntryList, clock: Clock
) -> None:
    control = AccessControl(log, clock)
    text, key = control.issue(HOST, Grant(("*",), frozenset(Action)))
    other = control.issue(HOST, Grant(("*",), READ))[1]
    ended = ("another node", REVOKED, key.id, content_of(revoked(key, clock.now)))
    by = control.identify_text(text)
    log.meanwhile = [ended]
    with pytest.raises(Unauthenticated):
        control.issue(by, Grant(("*",), READ))
    fresh, again = control.issue(HOST, Grant(("*",), frozenset(Action)))
    by = control.identify_text(fresh)
    log.meanwhile = [("another node", REVOKED, again.id, content_of(revoked(again, clock.now)))]
    with pytest.raises(Unauthenticated):
        control.revoke(by, other.id)
    assert {one.id: one.revoked for one in control.keys(HOST)}[other.id] is None


def test_others_who_are_quicker_are_no_reason_to_fail(log: EntryList, clock: Clock) -> None:
    control = AccessControl(log, clock)
    log.meanwhile = [("another node", "release.activated", "city", b"")]
    key = control.issue(HOST, Grant(("*",), READ))[1]
    log.meanwhile = [("another node", "release.activated", "town", b"")]
    assert control.revoke(HOST, key.id).revoked is not None


def test_every_action_is_in_the_log_with_who_did_it(control: AccessControl, log: EntryList) -> None:
    root = control.identify(bearer(control.first_key() or ""))
    key = control.issue(root, Grant(("*",), READ))[1]
    new = control.rotate(root, key.id, timedelta(hours=1))[1]
    control.revoke(root, key.id)
    assert log.actions()[2:] == [
        (root.id, CREATED, key.id),
        (root.id, CREATED, new.id),
        (root.id, ROTATED, key.id),
        (root.id, REVOKED, key.id),
    ]


def test_threads_may_ask_while_keys_change(control: AccessControl) -> None:
    text = made(control)
    problems: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(200):
                control.identify(bearer(text))
        except BaseException as problem:
            problems.append(problem)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(50):
        control.revoke(HOST, control.issue(HOST, Grant(("*",), READ))[1].id)
    for thread in threads:
        thread.join()
    assert problems == []


class AccessMachine(RuleBasedStateMachine):
    """Two nodes on one log, against a list of who should be let in."""

    @initialize()
    def start(self) -> None:
        self.clock, self.log = Clock(), EntryList()
        self.nodes = [AccessControl(self.log, self.clock) for _ in range(2)]
        self.ends: dict[str, datetime | None] = {}
        self.rotations: set[str] = set()

    def pick(self, at: int) -> str | None:
        return sorted(self.ends)[at % len(self.ends)] if self.ends else None

    def key_of(self, text: str) -> AccessKey:
        self.nodes[0].follow()
        return {key.id: key for key in self.nodes[0].keys(HOST)}[text.split("_")[1]]

    @rule(node=st.integers(0, 1), seconds=st.one_of(st.none(), st.integers(1, 100)))
    def issue(self, node: int, seconds: int | None) -> None:
        expires = None if seconds is None else self.clock.now + timedelta(seconds=seconds)
        text, _ = self.nodes[node].issue(HOST, Grant(("*",), READ, expires=expires))
        self.ends[text] = expires

    @rule(node=st.integers(0, 1), at=st.integers(0, 20))
    def revoke(self, node: int, at: int) -> None:
        if text := self.pick(at):
            self.nodes[node].revoke(HOST, text.split("_")[1])
            self.ends[text] = datetime.min.replace(tzinfo=UTC)

    @rule(node=st.integers(0, 1), at=st.integers(0, 20), overlap=st.integers(0, 60))
    def rotate(self, node: int, at: int, overlap: int) -> None:
        text = self.pick(at)
        if text is None:
            return
        end = self.ends[text]
        usable = (end is None or self.clock.now < end) and text not in self.rotations
        try:
            new, _ = self.nodes[node].rotate(HOST, text.split("_")[1], timedelta(seconds=overlap))
        except InvalidParameter:
            assert not usable
            return
        assert usable
        self.rotations.add(text)
        self.ends[new] = end
        over = self.clock.now + timedelta(seconds=overlap)
        self.ends[text] = over if end is None else min(end, over)

    @rule(seconds=st.integers(1, 50))
    def wait(self, seconds: int) -> None:
        self.clock.passes(seconds=seconds)

    @invariant()
    def who_should_be_let_in_is(self) -> None:
        for node in getattr(self, "nodes", ()):
            node.follow()
            for text, end in self.ends.items():
                expected = end is None or self.clock.now < end
                try:
                    node.identify(bearer(text))
                except Unauthenticated:
                    assert not expected
                else:
                    assert expected


TestAccessMachine = AccessMachine.TestCase
TestAccessMachine.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
