"""Laws of the threads of readers: bounded, shared out among keys, and apart from all others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from sfumato.service.problems import HttpProblem
from sfumato.service.threads import ReadingRoom, SharedLooks


def test_a_full_room_sends_away_and_takes_in_again_when_somebody_left() -> None:
    async def run() -> None:
        room, gate = ReadingRoom(threads=2, waiting=3, share=5), threading.Event()
        inside = [asyncio.create_task(room.read("k", lambda: gate.wait(10.0))) for _ in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(HttpProblem) as refused:
            await room.read("other", lambda: None)
        assert refused.value.problem.status == 429 and refused.value.headers["retry-after"] == "1"
        gate.set()
        assert await asyncio.gather(*inside) == [True] * 5
        assert await room.read("other", lambda: 7) == 7
        room.close()

    asyncio.run(run())


def test_one_key_has_its_share_and_no_more() -> None:
    async def run() -> None:
        room, gate = ReadingRoom(threads=2, waiting=8, share=3), threading.Event()
        inside = [asyncio.create_task(room.read("k", lambda: gate.wait(10.0))) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(HttpProblem):
            await room.read("k", lambda: None)
        other = asyncio.create_task(room.read("other", lambda: 7))
        gate.set()
        assert await other == 7
        await asyncio.gather(*inside)
        room.close()

    asyncio.run(run())


def test_who_goes_away_keeps_his_place_while_his_thread_works() -> None:
    async def run() -> None:
        room, gate, started = ReadingRoom(1, 0, 1), threading.Event(), threading.Event()

        def slow() -> bool:
            started.set()
            return gate.wait(10.0)

        gone = asyncio.create_task(room.read("k", slow))
        while not started.is_set():
            await asyncio.sleep(0.001)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        with pytest.raises(HttpProblem):
            await room.read("k", lambda: None)
        gate.set()
        while True:
            try:
                assert await room.read("k", lambda: 7) == 7
                break
            except HttpProblem:
                await asyncio.sleep(0.001)
        room.close()

    asyncio.run(run())


def test_an_act_that_fails_frees_its_place() -> None:
    async def run() -> None:
        room = ReadingRoom(1, 0, 1)

        def broken() -> Any:
            raise LookupError

        for _ in range(3):
            with pytest.raises(LookupError):
                await room.read("k", broken)
            await asyncio.sleep(0.01)
        room.close()

    asyncio.run(run())


def test_a_look_is_taken_once_for_all_who_wait() -> None:
    async def run() -> None:
        looks, gate, taken = SharedLooks(), threading.Event(), list[int]()

        def act() -> int:
            taken.append(1)
            assert gate.wait(10.0)
            return len(taken)

        waiting = [asyncio.create_task(looks.look("ready", act)) for _ in range(50)]
        await asyncio.sleep(0)
        waiting[0].cancel()  # who goes away takes it from nobody
        gate.set()
        found = await asyncio.gather(*waiting[1:])
        assert found == [1] * 49 and await looks.look("ready", act) == 2

    asyncio.run(run())
