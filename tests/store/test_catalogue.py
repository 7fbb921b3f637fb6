"""What follows from a registry, and that nothing else does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import CorruptData, InvalidParameter, SfumatoError
from sfumato.store.catalogue import Catalogue, record
from sfumato.store.catalogue_contents import (
    NOTHING,
    CoinsContent,
    Content,
    KeyContent,
    ModelContent,
    PolicyContent,
    ReleaseContent,
    content_bytes,
)
from sfumato.store.registry import Entry, MemoryRegistry
from tests.contracts.registry_laws import NOON, noon

HASH = 64 * "5"
NAMES = ("a", "b", "c")


def key(id_: str, **others: object) -> KeyContent:
    bare = {"id": id_, "hash": HASH, "streams": ("*",), "actions": ("read",), "created": NOON}
    return KeyContent(**(bare | others))  # type: ignore[arg-type]


names = st.sampled_from(NAMES)
moments = st.none() | st.integers(0, 9).map(lambda days: NOON + timedelta(days))
keys = st.builds(key, names, expires=moments, revoked=moments)
rules = st.builds(
    ReleaseContent,
    st.just("release"),
    st.just("{}"),
    st.none() | names,
    st.none() | names,
    st.none() | names,
)
about_keys: st.SearchStrategy[tuple[str, str, Content]] = st.tuples(
    st.sampled_from(["key.created", "key.rotated", "key.revoked"]), keys
).map(lambda pair: (pair[0], pair[1].id, pair[1]))
actions: st.SearchStrategy[tuple[str, str, Content]] = st.one_of(
    about_keys,
    st.tuples(st.just("model.created"), names, st.builds(ModelContent, names, st.binary())),
    st.tuples(st.just("policy.created"), names, st.builds(PolicyContent, names, st.binary())),
    st.tuples(st.just("release.created"), names, rules),
    st.tuples(st.sampled_from(["release.activated", "coins.retired"]), names, st.just(NOTHING)),
    st.tuples(st.just("coins.created"), names, st.just(CoinsContent(HASH))),
)


def logged(asked: list[tuple[str, str, Content]]) -> tuple[MemoryRegistry, Catalogue]:
    """A registry of all actions that could follow, and the catalogue that `record` ended with."""
    registry, now = MemoryRegistry(noon), Catalogue()
    for action, name, content in asked:
        try:
            now = record(registry, now, "ann", action, name, content)
        except InvalidParameter:
            assert registry.head.entries == now.entries
    return registry, now


@given(st.lists(actions, max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_a_fold_in_parts_is_the_fold_at_once(
    asked: list[tuple[str, str, Content]], one: int, other: int
) -> None:
    registry, now = logged(asked)
    entries, (first, second) = registry.entries(), sorted((one, other))
    parts = Catalogue().after(entries[:first]).after(entries[first:second])
    assert parts.after(entries[second:]) == Catalogue().after(entries) == now


@given(st.lists(about_keys, max_size=8) | st.lists(actions, max_size=12))
def test_what_ended_never_comes_back_and_what_was_created_never_changes(
    asked: list[tuple[str, str, Content]],
) -> None:
    registry, _ = logged(asked)
    before = Catalogue()
    for entry in registry.entries():
        now = before.after([entry])
        for id_, old in before.keys.items():
            assert old.revoked is None or now.keys[id_].revoked == old.revoked
            ends = now.keys[id_].expires
            assert old.expires is None or (ends is not None and ends <= old.expires)
            assert (now.keys[id_].hash, now.keys[id_].streams) == (old.hash, old.streams)
        for id_, coins in before.coins.items():
            assert coins.retired is None or now.coins[id_].retired == coins.retired
        assert before.releases.items() <= now.releases.items()
        assert before.models.items() <= now.models.items()
        before = now


def test_each_action_does_what_it_says_or_is_refused() -> None:
    asked: list[tuple[str, str, Content]] = [
        ("release.activated", "a", NOTHING),
        ("model.created", "town", ModelContent("a", b"1")),
        ("model.created", "town", ModelContent("b", b"2")),
        ("policy.created", "town", PolicyContent("c", b"3")),
        ("coins.created", "k1", CoinsContent(HASH)),
        ("coins.created", "k2", CoinsContent(f"town:{HASH}", "k1")),
        ("coins.retired", "k1", NOTHING),
        ("release.created", "a", ReleaseContent("release", "{}", "a", "c", "k2")),
        ("release.created", "x", ReleaseContent("release", "{}", "a", "c", "k1")),
        ("release.activated", "a", NOTHING),
        ("key.created", "k", key("k")),
        ("key.revoked", "k", key("k", revoked=NOON)),
        ("key.created", "k", key("k")),
        ("key.revoked", "nobody", key("nobody")),
    ]
    registry, now = logged(asked)
    assert registry.head.entries == len(asked) - 3
    assert [(one.name, one.version) for one in now.models.values()] == [("town", 1), ("town", 2)]
    assert (now.default, now.releases["a"].content.model) == ("a", "a")
    assert now.releases["a"].created == "2026-05-01T12:00:00.000000Z"
    assert now.keys["k"].revoked == NOON
    assert (now.coins["k2"].rotated_from, now.coins["k1"].retired is None) == ("k1", False)


@pytest.mark.parametrize(
    ("action", "name", "content", "words"),
    [
        ("model.created", "m", ModelContent("a", b""), "model must be new"),
        ("release.created", "r", ReleaseContent("release", "{}"), "release must be new"),
        ("release.created", "s", ReleaseContent("release", "{}", "z"), "model must be one that"),
        ("release.activated", "s", NOTHING, "release must be one that was created before"),
        ("coins.retired", "k", NOTHING, "coins must be one that was created before"),
        ("key.created", "other", key("k"), "be the one that the entry names"),
    ],
)
def test_what_cannot_follow_is_never_appended(
    action: str, name: str, content: Content, words: str
) -> None:
    registry = MemoryRegistry()
    now = record(registry, Catalogue(), "ann", "model.created", "m", ModelContent("a", b""))
    now = record(registry, now, "ann", "release.created", "r", ReleaseContent("release", "{}"))
    with pytest.raises(InvalidParameter, match=words):
        record(registry, now, "ann", action, name, content)
    assert registry.head.entries == 2


def test_another_node_that_was_quicker_is_heard_first() -> None:
    registry, rule = MemoryRegistry(), ReleaseContent("release", "{}")
    stale = Catalogue()
    record(registry, stale, "one", "release.created", "city", rule)
    with pytest.raises(InvalidParameter, match="release must be new"):
        record(registry, stale, "other", "release.created", "city", rule)
    assert record(registry, stale, "other", "release.created", "town", rule).entries == 2


def test_an_action_of_a_newer_program_is_refused() -> None:
    registry = MemoryRegistry()
    registry.append("ann", "key.narrowed", "k", b"{}")
    with pytest.raises(CorruptData, match=r"'key\.narrowed', of a newer one"):
        Catalogue().after(registry.entries())
    with pytest.raises(CorruptData, match="this program knows"):
        record(MemoryRegistry(), Catalogue(), "ann", "key.narrowed", "k")


@pytest.mark.parametrize(
    ("action", "content"),
    [
        ("model.created", b"{}"),
        ("release.created", b'{"job": 1}'),
        ("release.activated", b'{"more": 1}'),
        ("key.created", content_bytes(key("k")).replace(b"5", b"x")),
        ("key.created", content_bytes(key("k")).replace(b"12:00:00Z", b"12:00:00")),
        ("coins.created", b'{"commitment": "the key itself"}'),
    ],
)
def test_a_content_of_another_form_is_refused_unquoted(action: str, content: bytes) -> None:
    entry = Entry(1, "", "ann", action, "k", content, b"")
    with pytest.raises(CorruptData, match=f"must hold what '{action}' needs") as caught:
        Catalogue().after([entry])
    assert "itself" not in str(caught.value)


def test_entries_out_of_their_order_are_refused() -> None:
    registry, _ = logged([("coins.created", name, CoinsContent(HASH)) for name in NAMES])
    one, two, three = registry.entries()
    for wrong in ([two], [one, three], [one, one], [two, one]):
        with pytest.raises(SfumatoError, match="must come next"):
            Catalogue().after(wrong)


def test_access_keys_are_read_as_the_service_writes_them() -> None:
    """JSON with a rate and other fields that a catalogue does not show."""
    content = content_bytes(key("k", expires=datetime(2027, 1, 1, tzinfo=UTC)))
    entry = Entry(1, "", "ann", "key.created", "k", content[:-1] + b',"rate":{"each":5}}', b"")
    begun = replace(entry, action="access.begun", content=b'{"pepper":"%s"}' % HASH.encode())
    now = Catalogue().after([begun, replace(entry, number=2)])
    assert now.keys["k"].expires == datetime(2027, 1, 1, tzinfo=UTC)
