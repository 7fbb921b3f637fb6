"""Threads of a fleet: who does what, whatever breaks in, and how blocks are claimed."""

import gc
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from textwrap import dedent
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from sfumato.stream.claim_loops import all_done, claim, claims, open_claims, sign_off, stopped
from sfumato.stream.fleet_threads import Errand, FleetThreads
from tests.contracts.threads import at_once

Part = Callable[[int, int, int], None]
WAYS = ["share", "together"]


class Alarm(BaseException):
    """What a timer may raise anywhere."""


def share_out(threads: FleetThreads, way: str, part: Part) -> None:
    """Two parts, each by a thread of its own; or work that each does as it can."""
    if way == "share":
        threads.share([0, 4, 8], part)
    else:
        threads.together(lambda at: part(4 * at, 4 * at + 4, at), lambda _: False)


# -- errands --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("begun", [True, False])
def test_a_helper_that_was_begun_as_the_alarm_came_is_waited_for(begun: bool, way: str) -> None:
    """Handing over is broken into after a helper has the part, or before: then none ever has it."""
    threads = FleetThreads(2)
    running, raised, done = threading.Event(), threading.Event(), threading.Event()
    hand_over = threads._hand_over

    def part(*_: int) -> None:
        running.set()
        assert raised.wait(60)
        time.sleep(0.2)
        done.set()

    def broken(errand: Errand) -> None:
        if begun:
            hand_over(errand)
            assert running.wait(60)
        raise Alarm

    with mock.patch.object(threads, "_hand_over", broken), pytest.raises(Alarm):
        share_out(threads, way, part)
    raised.set()
    threads.settle()
    assert done.is_set() == running.is_set() == begun


@pytest.mark.parametrize("way", WAYS)
def test_a_part_that_waits_for_a_helper_is_given_up(way: str) -> None:
    threads, go, done = FleetThreads(2), threading.Event(), []
    threads._hand_over(Errand(lambda: assert_set(go)))  # the only helper is busy

    def part(begin: int, end: int, thread: int) -> None:
        if thread == 0:
            raise Alarm
        done.append((begin, end))

    with pytest.raises(Alarm):
        share_out(threads, way, part)
    threads.settle()
    threads.settle()  # whoever gives up twice waits for nobody
    go.set()
    threads.share([0, 1, 2], lambda *_: None)
    assert not done


def assert_set(event: threading.Event) -> None:
    assert event.wait(60)


def test_work_that_is_done_before_a_helper_wakes_up_waits_for_none() -> None:
    threads, go, done = FleetThreads(2), threading.Event(), list[int]()
    threads._hand_over(Errand(lambda: assert_set(go)))
    threads.together(done.append, lambda _: False)
    assert done == [0]
    go.set()
    threads.share([0, 1, 2], lambda *_: None)
    assert done == [0]


def test_a_helper_that_is_done_for_good_is_not_waited_for() -> None:
    """It has signed off, and is still on its way back: the next work waits in the queue."""
    threads, running, go, asked = FleetThreads(2), threading.Event(), threading.Event(), list[int]()

    def work(thread: int) -> None:
        if thread == 0:
            assert running.wait(60)
        else:
            running.set()
            assert go.wait(60)

    def done(many: int) -> bool:
        asked.append(many)
        return True

    threads.together(work, done)
    assert asked == [2] and not go.is_set()
    go.set()


@pytest.mark.parametrize("way", WAYS)
def test_a_part_of_a_helper_says_what_went_wrong(way: str) -> None:
    threads, begun = FleetThreads(2), threading.Event()

    def part(_begin: int, _end: int, thread: int) -> None:
        if thread == 1:
            begun.set()
            raise Alarm
        assert begun.wait(60)

    with pytest.raises(Alarm):
        share_out(threads, way, part)
    threads.share([0, 1, 2], lambda *_: None)  # and the helper is still there


def test_helpers_end_with_their_fleet() -> None:
    threads = FleetThreads(3)
    helpers: set[threading.Thread] = set()
    gate = threading.Barrier(3)

    def part(_begin: int, _end: int, _thread: int) -> None:
        helpers.add(threading.current_thread())
        gate.wait(60)

    threads.share([0, 1, 2, 3], part)
    helpers.discard(threading.current_thread())
    assert len(helpers) == 2
    del threads
    gc.collect()
    for helper in helpers:
        helper.join(60)
        assert not helper.is_alive()


def test_a_forked_child_gets_helpers_of_its_own() -> None:
    threads = FleetThreads(2)
    threads.share([0, 1, 2], lambda *_: None)
    before = threads._helpers
    threads.share([0, 1, 2], lambda *_: None)
    assert threads._helpers is before
    with mock.patch("os.getpid", return_value=-1):
        threads.share([0, 1, 2], lambda *_: None)
        assert threads._helpers is not before


# -- claims ---------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 300), min_size=1, max_size=4), st.data())
def test_every_stream_is_claimed_once_in_any_order_of_threads(
    lengths: list[int], data: st.DataObject
) -> None:
    edges = [0, *np.cumsum(lengths).tolist()]
    table, parts = claims(len(lengths)), len(lengths)
    open_claims(table, edges)
    found: Counter[int] = Counter()
    while True:
        thread = data.draw(st.integers(0, parts - 1))
        begin, end = claim(table, thread, thread < 0)
        if begin == end:
            break
        found.update(range(begin, end))
    assert found == Counter(range(edges[-1]))


def test_every_stream_is_claimed_once_by_threads_at_once() -> None:
    """At full speed: there are 62,500 blocks, and each is looked at by all."""
    edges = [0, 100, 1_000_000, 1_000_001, 4_000_000]
    for _ in range(5):
        table, taken = claims(4), np.zeros((4, edges[-1]), dtype=np.uint8)
        open_claims(table, edges)
        at_once(4, lambda thread: _take_all(table, thread, taken[thread]))  # noqa: B023
        assert (taken.sum(axis=0) == 1).all()
        assert stopped(table) == 0 + 1 + 2 + 3 and all_done(table, 4, 1)


@njit(nogil=True)
def _take_all(table: Any, thread: int, taken: Any) -> None:
    while True:
        begin, end = claim(table, thread, thread < 0)
        if begin == end:
            break
        for stream in range(begin, end):
            taken[stream] += 1
    sign_off(table, thread)


def test_a_thread_takes_of_its_own_part_first_and_of_others_only_if_it_may() -> None:
    table = claims(2)
    open_claims(table, [0, 1, 2])
    assert claim(table, 1, True) == (1, 2)
    assert claim(table, 1, True) == (0, 0)
    assert claim(table, 1, False) == (0, 1)
    assert claim(table, 0, False) == (0, 0)


def test_threads_count_in_lines_of_their_own() -> None:
    table = claims(3)
    assert table.ctypes.data % 128 == 0 and table.strides[0] == 128


# -- Ctrl-C ---------------------------------------------------------------------------------------


def test_a_key_press_while_two_threads_run_leaves_streams_as_they_were() -> None:
    """Wherever it comes, the run happened or did not; and the fleet goes on with two threads."""
    script = dedent(
        """
        import os, signal, threading, time
        import numpy as np
        import sfumato as sf
        from sfumato.store import to_bytes

        chain = sf.MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
        loss = sf.loss.hamming(chain.alphabet)
        policy = sf.compile_policy(chain, loss, 0.5, steps=500)
        plan = sf.Plan(chain, sf.PerStep(sf.SIP(0.5)), loss, policy=policy)
        names = [str(place) for place in range(300)]
        coins = b"sixteen bytes or more, of a test"
        pair = [sf.Fleet(plan, names, randomness=sf.keyed(coins), threads=t) for t in (2, 1)]
        rows = np.tile(np.arange(300), 40)
        cells, broken, turn = (rows // 7) % 2, 0, 0
        for fleet in pair:
            fleet.run(cells, rows)
        # Sixty moments, and on a busy machine, which presses late, until one came in time.
        while turn < 60 or (not broken and turn < 3_000):
            wait, turn = 0.0001 * (turn % 60), turn + 1
            pressed = threading.Timer(wait, os.kill, (os.getpid(), signal.SIGINT))
            done = False
            try:
                pressed.start()
                pair[0].run(cells, rows)
                done = True
                pressed.join()
                time.sleep(0.001)
            except KeyboardInterrupt:
                broken += not done
            pressed.join()
            if pair[0].torn:
                raise SystemExit("torn")
            if int(pair[0].state(0).sequence) > int(pair[1].state(0).sequence):
                pair[1].run(cells, rows)
            one, two = ([to_bytes(f.state(s)) for s in range(300)] for f in pair)
            assert one == two
        print("broken into", broken)
        """
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr
    assert int(found.stdout.split()[-1]) >= 1
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
