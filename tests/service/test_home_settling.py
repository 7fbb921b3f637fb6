"""Homes of streams: one commit for all who wait, and each asker's own answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from sfumato.service.home_settling import HomeSettling


class Written:
    """Writes down `v1`; breaks where a stream is called `bad`; may be held up."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate, self.rounds = gate, list[list[str]]()

    def settle(self, streams: list[str]) -> dict[str, str]:
        if self.gate is not None:
            assert self.gate.wait(10.0)
        self.rounds.append(streams)
        if "bad" in streams:
            raise LookupError("bad")
        return dict.fromkeys(streams, "v1")


def test_all_who_ask_meanwhile_are_written_down_together() -> None:
    async def run() -> list[list[str]]:
        gate = threading.Event()
        written = Written(gate)
        settling = HomeSettling(written.settle)
        first = asyncio.ensure_future(settling.homes(["ann"]))
        while settling._askers or settling._work is None:
            await asyncio.sleep(0.001)
        others = [asyncio.ensure_future(settling.homes([f"u{n % 5}", "ann"])) for n in range(10)]
        others[3].cancel()
        await asyncio.sleep(0)
        gate.set()
        assert await first == {"ann": "v1"}
        for number, other in enumerate(others):
            if number != 3:
                assert await other == {f"u{number % 5}": "v1", "ann": "v1"}
        return written.rounds

    assert asyncio.run(run()) == [["ann"], ["ann", "u0", "u1", "u2", "u3", "u4"]]


def test_what_fails_for_one_asker_is_told_to_nobody_else() -> None:
    async def run() -> None:
        settling = HomeSettling(Written().settle)
        asked = [settling.homes(names) for names in (["ann"], ["bad", "bob"], ["bob"])]
        ann, bad, bob = await asyncio.gather(*asked, return_exceptions=True)
        assert (ann, bob) == ({"ann": "v1"}, {"bob": "v1"})
        assert isinstance(bad, LookupError)
        with pytest.raises(LookupError):
            await settling.homes(["bad"])
        assert await settling.homes(["eve"]) == {"eve": "v1"}

    asyncio.run(run())
