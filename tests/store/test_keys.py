"""Keys from files: what is refused, and that nothing of a key is ever quoted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.store.keys import read_key

SECRET = bytes(range(90, 122))


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
