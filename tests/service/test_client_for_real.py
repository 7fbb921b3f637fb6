"""The client and `sfumato push` on a real server, through a crash."""

from pathlib import Path

import pytest

from sfumato.cli.app import called
from sfumato.client import client as client_module
from tests.service.nodes import LIMIT, SYMBOLS, ServiceHome, served


def test_a_push_through_a_crash_gives_the_same_file_and_pages_give_all_rows(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = tmp_path / "live.csv"
    rows = [f"u{place % 3},{place},{SYMBOLS[place % 2]}" for place in range(90)]
    live.write_text("\n".join(["stream,when,value", *rows]) + "\n")
    monkeypatch.setattr(client_module, "PAGE", 7)
    home = ServiceHome.made(tmp_path)
    with served(home, model) as ([node], key):
        monkeypatch.setenv("SFUMATO_ACCESS_KEY", key)
        words = ["push", str(live), "--to", node.url, "--time", "when", "-q", "-o"]
        assert called([*words, str(tmp_path / "one.csv")]) == 0
        node.kill()
        node.start()
        assert called([*words, str(tmp_path / "two.csv"), "--socket"]) == 0
        with node.client(key) as client:
            listed = [row["sequence"] for row in client.ledger("u1")]
            assert {row["stream"] for row in client.streams()} == {"u0", "u1", "u2"}
            assert client.budget("u1")["answers"] == 30
    lines = (tmp_path / "one.csv").read_text().splitlines()
    assert lines[0] == "stream,sequence,released,outcome,sip,ldp" and len(lines) == 91
    assert (tmp_path / "two.csv").read_text().splitlines() == lines
    assert listed == list(range(30))
    ledger = home.raw()
    assert ledger.problems(LIMIT) == [] and len(ledger.events) == 90
