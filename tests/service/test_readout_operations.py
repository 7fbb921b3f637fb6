"""Readouts over HTTP: what is not there, to whom that is said, and how full a disk may be."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sfumato.service import assembly
from tests.service.gateways import begun, json_of, opened

OF_ANSWERS = ("certificate", "leakage", "belief", "recovered")


def test_nothing_is_certified_of_a_stream_without_answers() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            for what in OF_ANSWERS:
                reply = await there.client.get(f"/v1/streams/nobody/{what}")
                told = json_of(reply)["detail"]
                assert (reply.status_code, told) == (
                    404,
                    "no answers of this stream in this release",
                )
            reply = await there.client.get("/v1/streams/nobody/budget")
            assert reply.status_code == 200 and json_of(reply)["answers"] == 0
            assert json_of(reply)["remark"] == "nothing released yet under this name"

    asyncio.run(run())


def test_whether_others_have_answers_is_not_told_to_a_key_of_some_streams() -> None:
    async def run() -> None:
        async with opened() as there:
            await begun(there)
            url = "/v1/streams/bob/events"
            await there.client.post(url, json={"id": "e1", "value": "work"})
            body = {"streams": ["ann"], "actions": ["read"]}
            made = json_of(await there.client.post("/v1/keys", json=body))
            headers = {"authorization": f"Bearer {made['key']}"}
            for what in OF_ANSWERS:
                told = [
                    await there.client.get(f"/v1/streams/{name}/{what}", headers=headers)
                    for name in ("bob", "nobody", "ann")
                ]
                assert [one.status_code for one in told] == [403, 403, 404]
                assert told[0].content == told[1].content

    asyncio.run(run())


@pytest.mark.parametrize(
    ("free", "lacking"),
    [
        (39 << 20, []),
        (3 << 20, ["the disk of the home is full: 3.0 MB are free, and 8 MB must be"]),
    ],
)
def test_a_disk_is_full_when_there_is_no_room_for_work(
    free: int, lacking: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = SimpleNamespace(entries=lambda after: None, head=SimpleNamespace(entries=0))
    home: Any = SimpleNamespace(path=tmp_path, registry=registry)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert assembly._stores(home) == lacking
