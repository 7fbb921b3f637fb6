"""Laws of access keys as values: form, scope, rotation, expiry, and what later entries can do."""

import hmac
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.service import access_keys
from sfumato.service.access_keys import AccessKey, Action, Grant, mint, narrowed, rotated

NOW = datetime(2026, 5, 1, tzinfo=UTC)
PEPPER = bytes(range(32))
NAMES = st.text("ab*-é", min_size=1, max_size=4)
PATTERNS = st.builds(
    lambda name, any_: name + any_, st.text("ab-é", max_size=3), st.sampled_from(["", "*"])
).filter(bool)
ACTIONS = st.frozensets(st.sampled_from(Action), min_size=1)
TIMES = st.one_of(st.none(), st.integers(1, 10**6).map(lambda at: NOW + timedelta(seconds=at)))
GRANTS = st.builds(
    Grant, st.lists(PATTERNS, min_size=1, max_size=3).map(tuple), ACTIONS, expires=TIMES
)
KEYS = GRANTS.map(lambda grant: mint(grant, PEPPER, NOW)[1])


def reached(pattern: str, stream: str) -> bool:
    """What a pattern means, by its definition: a name, or how names begin."""
    if pattern[-1] == "*":
        return stream[: len(pattern) - 1] == pattern[:-1]
    return pattern == stream


@given(GRANTS)
def test_the_text_proves_its_key_and_no_other(grant: Grant) -> None:
    text, key = mint(grant, PEPPER, NOW)
    parts = access_keys.parted(text)
    assert parts is not None and parts[0] == key.id
    assert access_keys.proves(key, PEPPER, *parts)
    assert not access_keys.proves(key, bytes(32), *parts)
    assert not access_keys.proves(None, PEPPER, *parts)
    other = mint(grant, PEPPER, NOW)[1]
    assert not access_keys.proves(other, PEPPER, *parts)
    # A hash is for one id: an entry that was copied to another opens nothing.
    assert not access_keys.proves(replace(other, hash=key.hash), PEPPER, other.id, parts[1])


@given(GRANTS)
def test_nothing_that_is_kept_tells_the_secret(grant: Grant) -> None:
    text, key = mint(grant, PEPPER, NOW)
    secret = text.split("_", 2)[2]
    assert secret not in repr(key) and secret.encode() not in msgspec.json.encode(key)
    assert len(text) == 64 and len(set(secret)) > 8


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sfk_",
        "sfk__",
        "sfk_0123456789abcdef_short",
        "SFK_0123456789abcdef_" + 43 * "a",
        "sfk_0123456789abcdeF_" + 43 * "a",
        "sfk_0123456789abcdef_" + 44 * "a",
        "sfk_0123456789abcdef_" + 42 * "a" + "\n",
        " sfk_0123456789abcdef_" + 43 * "a",
    ],
)
def test_other_text_is_no_key(text: str) -> None:
    assert access_keys.parted(text) is None


def test_hashes_are_compared_in_constant_time_whether_or_not_there_is_a_key() -> None:
    text, key = mint(access_keys.EVERYTHING, PEPPER, NOW)
    parts = access_keys.parted(text)
    assert parts is not None
    with patch.object(hmac, "compare_digest", wraps=hmac.compare_digest) as compared:
        access_keys.proves(key, PEPPER, *parts)
        access_keys.proves(key, PEPPER, key.id, 43 * "a")
        access_keys.proves(None, PEPPER, "0" * 16, 43 * "a")
    assert compared.call_count == 3
    assert all(len(side) == 32 for call in compared.call_args_list for side in call.args)


@given(KEYS, st.sampled_from(Action), NAMES)
def test_a_scope_is_its_actions_on_its_streams(key: AccessKey, action: Action, name: str) -> None:
    inside = any(reached(pattern, name) for pattern in key.streams)
    assert key.may(action, name) == (action in key.actions and inside)
    assert key.may(action) == (action in key.actions)
    if key.may_everywhere(action):
        assert key.may(action, name)


@given(KEYS, KEYS, NAMES, st.sampled_from(Action))
def test_who_covers_another_may_all_that_the_other_may(
    one: AccessKey, other: AccessKey, name: str, action: Action
) -> None:
    assert one.covers(one)
    if one.covers(other) and other.may(action, name):
        assert one.may(action, name)


@given(PATTERNS, PATTERNS)
def test_patterns_cover_just_those_whose_names_they_reach(one: str, other: str) -> None:
    key = mint(Grant((one,), frozenset({Action.READ})), PEPPER, NOW)[1]
    names = [other[:-1] + ending for ending in ("", "q", "qa")] if other[-1] == "*" else [other]
    assert key.covers(Grant((other,), key.actions)) == all(reached(one, name) for name in names)


@given(KEYS, st.integers(0, 2 * 10**6))
def test_a_key_ends_when_it_says(key: AccessKey, seconds: int) -> None:
    now = NOW + timedelta(seconds=seconds)
    assert key.valid(now) == (key.expires is None or now < key.expires)
    assert not access_keys.revoked(key, now).valid(NOW)


@given(KEYS, st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_rotation_has_the_same_scope_and_lets_the_old_one_end(
    key: AccessKey, overlap: int, later: int
) -> None:
    text, new, old = rotated(key, PEPPER, NOW, timedelta(seconds=overlap))
    now = NOW + timedelta(seconds=later)
    assert (new.streams, new.actions, new.rate) == (key.streams, key.actions, key.rate)
    assert new.expires == key.expires and new.id != key.id and new.hash != key.hash
    assert new.valid(now) == key.valid(now)
    assert old.valid(now) == (key.valid(now) and later < overlap)
    assert old.replaced_by == new.id and text.split("_")[1] == new.id
    if old.valid(NOW):
        with pytest.raises(InvalidParameter, match="not rotated before"):
            rotated(old, PEPPER, NOW, timedelta(0))


@given(KEYS, KEYS, TIMES, TIMES, NAMES, st.sampled_from(Action), st.integers(0, 10**6))
def test_no_later_entry_gives_a_key_more_than_it_had(
    before: AccessKey,
    after: AccessKey,
    expires: datetime | None,
    revoked: datetime | None,
    name: str,
    action: Action,
    seconds: int,
) -> None:
    now = NOW + timedelta(seconds=seconds)
    told = replace(after, expires=expires, revoked=revoked)
    left = narrowed(before, told)
    assert left.hash == before.hash and left.id == before.id
    assert left.may(action, name) == before.may(action, name)
    assert left.valid(now) == (before.valid(now) and told.valid(now))


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ({"streams": ()}, "streams"),
        ({"streams": ("",)}, "streams"),
        ({"streams": ("a*b",)}, "streams"),
        ({"streams": ("**",)}, "streams"),
        ({"streams": ("a" * 1025,)}, "streams"),
        ({"actions": frozenset()}, "actions"),
        ({"actions": frozenset({"release"})}, "actions"),
        ({"expires": datetime(2026, 1, 1)}, "expires"),
        ({"note": "two\nlines"}, "note"),
    ],
)
def test_a_grant_that_means_nothing_is_refused_by_its_field(
    parts: dict[str, object], field: str
) -> None:
    whole: dict[str, object] = {"streams": ("*",), "actions": frozenset({Action.READ}), **parts}
    with pytest.raises(InvalidParameter, match=f"^{field} must"):
        Grant(**whole)  # type: ignore[arg-type]


def test_a_key_that_has_expired_is_not_made() -> None:
    grant = Grant(("*",), frozenset({Action.READ}), expires=NOW)
    with pytest.raises(InvalidParameter, match="later than now"):
        mint(grant, PEPPER, NOW)
