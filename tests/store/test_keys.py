"""Keys from files: what is refused, and that nothing of a key is ever quoted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.store.keys import commitment_of, is_committed, key_commitment, new_key, read_key

SECRET = bytes(range(90, 122))
RANDOM = hashlib.sha256(b"as random as any").digest()
WORDS = "correct horse battery"
HAN = "".join(chr(0x4E11 + 1301 * place) for place in range(16))


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "secret.key"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


def refused(rule: str, path: Path, **options: object) -> str:
    with pytest.raises(InvalidParameter, match=rule) as refusal:
        read_key(path, **options)  # type: ignore[arg-type]
    assert SECRET.decode() not in str(refusal.value)
    return str(refusal.value)


def test_a_good_key_is_what_is_in_the_file(key: Path) -> None:
    assert read_key(key) == SECRET
    assert read_key(key, public=[None, "-", key.parent, key.parent / "missing.csv"]) == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o622, 0o601])
def test_a_key_open_to_others_needs_a_word(key: Path, mode: int) -> None:
    key.chmod(mode)
    assert "chmod 600" in refused("readable by its owner alone", key)
    assert read_key(key, shared=True) == SECRET


def test_the_permissions_of_what_a_link_leads_to_count(key: Path) -> None:
    link = key.with_name("link.key")
    link.symlink_to(key)
    assert read_key(link) == SECRET
    key.chmod(0o644)
    refused("readable by its owner alone", link)


def test_a_key_that_is_public_anyway_is_refused(key: Path, tmp_path: Path) -> None:
    model = tmp_path / "city.model"
    model.write_bytes(SECRET)
    assert "city.model" in refused("not be a public file", key, public=["-", model])
    model.write_bytes(SECRET + b"!")
    assert read_key(key, public=[model]) == SECRET


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (SECRET[:15], "at least 16 bytes"),
        (b"", "at least 16 bytes"),
        (b"\x00" * 32, "8 different bytes"),
        (b"password" * 4, "8 different bytes"),
        (SECRET[:12] * 3, "16 bytes that do not repeat"),
        (os.urandom(64) * 20_000, "at most 1,048,576 bytes"),
    ],
)
def test_a_weak_key_is_refused(key: Path, content: bytes, rule: str) -> None:
    key.write_bytes(content)
    refused(rule, key)


def test_a_device_without_an_end_is_no_key() -> None:
    refused("at most", Path("/dev/urandom"), shared=True)


def test_a_commitment_binds_to_key_and_name_and_is_a_plain_hash(key: Path) -> None:
    """Computed here from the description alone: lengths in front, a word before everything."""
    secret = RANDOM
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"town", secret))
    expected = hashlib.sha256(b"sfumato key commitment v1 " + framed).hexdigest()
    assert key_commitment(secret, "town") == f"town:{expected}"
    other = {key_commitment(secret), key_commitment(secret, "towns").split(":")[1], expected}
    assert len(other) == 3
    assert is_committed(secret, f"town:{expected}")
    assert not is_committed(secret, expected)
    assert not is_committed(secret, f"towm:{expected}")
    assert not is_committed(RANDOM[::-1], f"town:{expected}")


@pytest.mark.parametrize(
    "told",
    [
        b"thirty-two letters of some words",
        SECRET[:16],
        WORDS.encode("utf-16"),
        WORDS[:15].encode("utf-16"),
        WORDS[:16].encode("utf-16-be"),
        "Gr\u00fc\u00dfe aus M\u00fcnchen, sch\u00f6ne Tage!".encode("latin-1")[:32],
        "\u201cGr\u00f6\u00dfe 27\u201d: \u00dcber Jux & Typ, \u00e4chz".encode("cp1252"),
        f"{WORDS} and staple".encode()[:31] + b"\0",
        WORDS.encode().ljust(32, b"\0"),
        bytes(range(0xC0, 0xDE)) + b" !",  # as KOI8-R and CP1251 write Cyrillic
        HAN.encode("utf-16-le"),
        HAN.encode("utf-16-be"),
        HAN.encode("gb18030"),
        b"0123456789abcdef" * 4,
        RANDOM.hex().encode(),
        RANDOM + b"\n",
        bytes(range(32)),
        RANDOM[:16] * 2,
    ],
)
def test_a_key_that_may_be_guessed_has_no_commitment(told: bytes) -> None:
    assert commitment_of(told) is None
    with pytest.raises(InvalidParameter, match=r"16 bytes|32 random bytes.*sfumato key new") as no:
        key_commitment(told)
    assert told.decode("latin-1") not in str(no.value)


def test_every_new_key_has_a_commitment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the generator first gives what looks like a text."""
    drawn = iter([b"thirty-two letters of some words", RANDOM])
    monkeypatch.setattr(os, "urandom", lambda _: next(drawn))
    assert commitment_of(new_key(tmp_path / "new.key")) == key_commitment(RANDOM)
    assert (tmp_path / "new.key").read_bytes() == RANDOM


@pytest.mark.parametrize("text", ["", "5d41", 64 * "g", f":{64 * '0'}", f"a b :{64 * '0'}"])
def test_what_is_no_commitment_is_refused_not_taken_for_another_key(text: str) -> None:
    with pytest.raises(InvalidParameter, match="64 hexadecimal digits"):
        is_committed(RANDOM, text)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "new.key"
    secret = new_key(path)
    assert (len(secret), path.stat().st_mode & 0o777) == (32, 0o600)
    assert path.read_bytes() == secret != new_key(tmp_path / "other.key")
    with pytest.raises(InvalidParameter, match="not exist"):
        new_key(path)
    link = tmp_path / "link.key"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidParameter, match="not exist"):
        new_key(link)
    assert path.read_bytes() == secret
