"""Laws of heads in the log: all at the start and the end, in between those that have moved."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import SfumatoError
from sfumato.service import assembly
from sfumato.service.event_log import EventLog
from sfumato.service.head_log import HeadLog, Moment
from sfumato.store.folder_home import FolderHome
from sfumato.store.home import MemoryHome
from sfumato.store.home_anchor import HomeAnchor, check_anchor
from tests.service.gateways import Opened, begun, opened


def heads_in(lines: list[bytes]) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, lines) if line["event"] == "head"]


async def ask(there: Opened, id_: str) -> None:
    reply = await there.client.post("/v1/streams/ann/events", json={"id": id_, "value": "home"})
    assert reply.status_code == 200


def test_only_what_has_moved_is_told_in_between() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            heads = there.gateway.heads
            heads.tell(Moment.START)
            there.lines.clear()
            heads.tell(Moment.GROWN)
            assert heads_in(there.lines) == []
            await ask(there, "e1")
            heads.tell(Moment.GROWN)
            [line] = heads_in(there.lines)
            assert (line["release"], line["reason"]) == ("a", "grown")
            assert line["head"] == there.gateway.home.heads().ledgers["a"]
            assert line["head"].startswith("1:")
            there.lines.clear()
            heads.tell(Moment.END)
            assert [one.get("release") for one in heads_in(there.lines)] == [None, "a"]

    asyncio.run(run())


def test_a_service_that_runs_tells_heads_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assembly, "_HEADS_SECONDS", 0.02)

    async def run() -> None:
        async with opened() as there:
            await begun(there)
            await ask(there, "e1")
            following = asyncio.ensure_future(there.gateway.follow())
            async with asyncio.timeout(30.0):
                while not any(one.get("release") == "a" for one in heads_in(there.lines)):
                    await asyncio.sleep(0.01)
            following.cancel()

    asyncio.run(run())


def test_heads_of_a_log_are_an_anchor_that_a_home_put_back_does_not_pass(tmp_path: Path) -> None:
    async def run(home: FolderHome) -> HomeAnchor:
        async with opened(home) as there:
            await begun(there)
            await ask(there, "e1")
            there.gateway.heads.tell(Moment.GROWN)
            told = {one.get("release", ""): one["head"] for one in heads_in(there.lines)}
            return HomeAnchor(told.pop(""), told, "2026-05-01T12:00:00Z")

    with FolderHome(tmp_path / "one") as home:
        anchor = asyncio.run(run(home))
        check_anchor(home, anchor)
    with FolderHome(tmp_path / "two") as other, pytest.raises(SfumatoError, match="rolled back"):
        check_anchor(other, anchor)


def test_a_home_that_cannot_be_read_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: MemoryHome) -> HomeAnchor:
        raise SfumatoError("the database is gone: hivpositive")

    lines: list[bytes] = []
    monkeypatch.setattr(MemoryHome, "heads", broken)
    assert HeadLog(MemoryHome(), EventLog(lines.append, b"secret")).tell(Moment.GROWN) is None
    [line] = map(json.loads, lines)
    assert (line["event"], line["level"]) == ("heads not read", "error")
    assert "hivpositive" not in str(line)


def test_entries_of_the_registry_are_a_figure() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            text = (await there.client.get("/metrics")).text
            entries = there.gateway.home.registry.head.entries
            assert f"sfumato_registry_entries {float(entries)}" in text
            assert 'sfumato_release_entries{release="a"} 0.0' in text

    asyncio.run(run())
