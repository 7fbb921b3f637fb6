"""Laws of release keys: committed to before use, rotated without drawing anything again."""

import os
from pathlib import Path

import pytest

from sfumato.core.errors import CorruptData, InvalidParameter
from sfumato.core.randomness import Address, Domain
from sfumato.service.release_keys import ReleaseKey, ReleaseKeys, key_in_label
from sfumato.store.keys import is_committed, new_key
from tests.service.entry_lists import EntryList

HERE = Address(Domain.STREAM, "plan", "ann", 7)


@pytest.fixture
def log() -> EntryList:
    return EntryList()


@pytest.fixture
def keys(tmp_path: Path, log: EntryList) -> ReleaseKeys:
    return ReleaseKeys(tmp_path / "keys", log)


def test_a_key_is_for_its_owner_alone_and_committed_to(
    keys: ReleaseKeys, log: EntryList, tmp_path: Path
) -> None:
    key = keys.add("ann")
    file = tmp_path / "keys" / f"{key.id}.key"
    assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700
    assert log.actions() == [("ann", "coins.created", key.id)]
    assert key.secret not in log.lines[0].content and str(key.secret) not in repr(key)
    commitment = log.lines[0].content.decode().split('"')[3]
    assert is_committed(key.secret, commitment)


def test_draws_are_repeated_by_the_key_that_their_label_names(keys: ReleaseKeys) -> None:
    old = keys.add("ann")
    word, label = old.coins().at(HERE).word(), old.label
    new = keys.add("ann", in_place_of=old.id)
    assert keys.current(old.id) == keys.current(new.id) == new
    assert new.coins().at(HERE).word() != word
    named = key_in_label(label)
    assert named is not None and keys.key(named).coins().at(HERE).word() == word
    third = keys.add("ann", in_place_of=new.id)
    assert keys.current(old.id) == third


def test_a_rotation_is_for_one_key_and_for_a_key_that_is_there(keys: ReleaseKeys) -> None:
    one, other = keys.add("ann"), keys.add("ann")
    keys.add("ann", in_place_of=one.id)
    assert keys.current(other.id) == other
    with pytest.raises(InvalidParameter, match="not be rotated already"):
        keys.add("ann", in_place_of=one.id)
    with pytest.raises(InvalidParameter, match="be one of this service"):
        keys.add("ann", in_place_of="00000000")
    with pytest.raises(InvalidParameter, match="be new"):
        keys.adopt("ann", one.id)


def test_a_file_that_was_exchanged_or_lost_draws_nothing(keys: ReleaseKeys, tmp_path: Path) -> None:
    key = keys.add("ann")
    file = tmp_path / "keys" / f"{key.id}.key"
    file.unlink()
    with pytest.raises(InvalidParameter, match="without it nothing is drawn"):
        keys.current(key.id)
    new_key(file)
    with pytest.raises(CorruptData, match="the key that was committed to"):
        keys.current(key.id)
    file.chmod(0o644)
    with pytest.raises(InvalidParameter, match="chmod 600"):
        keys.key(key.id)


def test_a_file_that_lies_on_all_nodes_is_adopted(
    keys: ReleaseKeys, log: EntryList, tmp_path: Path
) -> None:
    for node in ("keys", "other"):
        os.makedirs(tmp_path / node, exist_ok=True)
    secret = new_key(tmp_path / "keys" / "year-2026.key")
    elsewhere = tmp_path / "other" / "year-2026.key"
    elsewhere.touch(mode=0o600)
    elsewhere.write_bytes(secret)
    adopted = keys.adopt("ann", "year-2026")
    assert ReleaseKeys(tmp_path / "other", log).current("year-2026") == adopted
    assert adopted == ReleaseKey("year-2026", secret)


@pytest.mark.parametrize("id_", ["", "..", "../../etc/key", "a/b-c-d", "ABCDEF", "abc\n1", "-abc"])
def test_an_id_that_leads_elsewhere_is_none(keys: ReleaseKeys, id_: str) -> None:
    with pytest.raises(InvalidParameter, match="be 4 to 40 small letters"):
        keys.adopt("ann", id_)


def test_an_entry_that_holds_no_commitment_is_not_passed_over(
    keys: ReleaseKeys, log: EntryList
) -> None:
    log.append("x", "coins.created", "year-2026", b"{}")
    with pytest.raises(CorruptData, match="must hold a commitment"):
        keys.current("year-2026")
