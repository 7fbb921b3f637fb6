"""The client and `sfumato push` on a real server, through a crash."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sfumato.cli.app import called
from sfumato.client import AsyncClient, Client, ServiceRefused
from sfumato.client import client as client_module
from tests.service.gateways import gateway_served
from tests.service.nodes import LIMIT, SYMBOLS, ServiceHome, served
from tests.shell.running import done


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


def test_clients_and_the_command_line_close_a_release(monkeypatch: pytest.MonkeyPatch) -> None:
    with gateway_served() as (url, key), Client(url, key) as client:
        first = client.release("ann", "home", id="e1")
        closed = client.close_release("a")["closed"]

        async def again() -> dict[str, Any]:
            async with AsyncClient(url, key) as other:
                return await other.close_release("a")

        assert asyncio.run(again())["closed"] == closed
        monkeypatch.setenv("SFUMATO_ACCESS_KEY", key)
        told = done("store", "close", "--url", url, "--release", "a", "--json", "--quiet")
        assert told.document["closed"] == closed
        assert client.release("ann", "home", id="e1").answers == first.answers
        with pytest.raises(ServiceRefused, match="The release is closed") as refused:
            client.release("ann", "home", id="e2")
        assert refused.value.problem.status == 410
