"""`sfumato key add`: keys of coins that a service can be given, and can change."""

import json
from pathlib import Path

from sfumato.service.release_keys import ReleaseKeys
from sfumato.store.home import open_home
from sfumato.store.keys import is_committed
from tests.shell.running import call, done, refused


def added(home: Path, keys: Path, *words: str) -> dict[str, str]:
    made = done("key", "add", home, "--key-folder", keys, "--json", "--quiet", *words)
    told: dict[str, str] = json.loads(made.out)
    return told


def test_a_key_is_made_committed_to_and_rotated(tmp_path: Path) -> None:
    home, keys = tmp_path / "home", tmp_path / "keys"
    first = added(home, keys)
    second = added(home, keys, "--in-place-of", first["id"])
    with open_home(str(home)) as opened:
        held = ReleaseKeys(keys, opened.registry)
        assert held.current(first["id"]).id == second["id"]
        assert is_committed(held.key(first["id"]).secret, first["commitment"])
        entries = opened.registry.entries()
        secrets = [held.key(one["id"]).secret for one in (first, second)]
    assert [entry.action for entry in entries] == ["coins.created", "coins.created"]
    assert not any(secret in each.content for secret in secrets for each in entries)


def test_a_file_that_is_there_is_taken_by_its_id(tmp_path: Path) -> None:
    home, keys = tmp_path / "home", tmp_path / "keys"
    keys.mkdir(mode=0o700)
    made = done("key", "new", keys / "year-2026.key", "--quiet").out.strip()
    assert added(home, keys, "--id", "year-2026") == {"id": "year-2026", "commitment": made}
    again = call("key", "add", home, "--key-folder", keys, "--id", "year-2026")
    refused(again)
    assert "be new" in again.err
