"""An exception in the middle of a step, and other ways to misuse a release with a policy."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from sfumato import (
    SIP,
    Fleet,
    InstantRelease,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    compile_policy,
    loss,
    seeded,
)
from sfumato.core.errors import InterruptedStep, InvalidParameter
from sfumato.core.events import OUTCOMES, Outcome
from sfumato.core.purpose import Purpose
from sfumato.store import to_bytes
from sfumato.stream import run_loops
from sfumato.stream.fleet_replay import Left, Replay
from sfumato.stream.single_stream import SingleStream

CHAIN = MarkovChain.from_matrix([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]], floor=1e-3)
LOSS = loss.absolute(CHAIN.alphabet)
POLICY = compile_policy(CHAIN, LOSS, 1.0, steps=64)


class Alarm(BaseException):
    """What a timer may raise anywhere."""


def release() -> InstantRelease:
    return InstantRelease(
        CHAIN,
        budget=SIP(1.0),
        loss=LOSS,
        policy=POLICY,
        randomness=seeded(2),
        purpose=Purpose.SIMULATION,
    )


@pytest.mark.parametrize("times", [1, 3])
def test_a_release_that_was_broken_into_never_happened(times: int) -> None:
    torn, smooth = release(), release()
    for value in (0, 1, 2):
        assert torn(value) == smooth(value)
    with mock.patch.object(SingleStream, "_done", side_effect=Alarm):
        for _ in range(times):
            with pytest.raises(Alarm):
                torn(1)
    assert to_bytes(torn.state) == to_bytes(smooth.state)
    for value in (2, 1, 0):
        assert torn.step(value) == smooth.step(value)
    assert to_bytes(torn.state) == to_bytes(smooth.state)


def test_a_step_of_a_fleet_that_was_broken_into_never_happened() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    for place in (0, 1):
        fleet = Fleet(plan, ["a", "b"], threads=2)
        fleet.step([0, 1])
        before = [to_bytes(fleet.state(stream)) for stream in range(2)]
        calls: list[int] = []
        inside = fleet._arrays.threads.together

        def broken(
            *args: Any, inside: Any = inside, calls: list[int] = calls, place: int = place
        ) -> None:
            """What came before the alarm was done, by this thread or another."""
            calls.append(1)
            if place == 1:
                inside(*args)
            raise Alarm

        with mock.patch.object(fleet._arrays.threads, "together", broken), pytest.raises(Alarm):
            fleet.step([1, 1])
        assert calls and not fleet.torn
        assert [to_bytes(fleet.state(stream)) for stream in range(2)] == before
        assert len(fleet.step([1, 1])) == 2


def test_a_run_that_was_broken_into_waits_for_its_threads_before_it_is_set_back() -> None:
    """Another thread begins its part after the alarm, and moves all of its streams."""
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet = Fleet(plan, list("abcdefgh"), threads=2)
    fleet.step([0] * 8)
    before, inside = fleet.states(np.arange(8)), run_loops.follow
    running, raised, moved = threading.Event(), threading.Event(), threading.Event()
    settle = fleet._arrays.threads.settle

    def settled() -> None:
        raised.set()
        settle()

    def broken(*given: Any) -> int:
        if threading.current_thread() is threading.main_thread():
            assert running.wait(60)
            fleet._arrays.threads.settle = settled  # type: ignore[method-assign]
            raise Alarm
        running.set()
        # Who does not wait for it reads `entered` before this thread says that it moved streams.
        assert raised.wait(60)
        time.sleep(0.2)
        stopped = inside(*given)
        moved.set()
        return stopped

    with mock.patch.object(run_loops, "follow", broken), pytest.raises(Alarm):
        fleet.run(np.repeat([0, 1, 2], 8), np.tile(np.arange(8), 3))
    raised.set()
    assert moved.is_set() and not fleet.torn
    assert [*map(to_bytes, fleet.states(np.arange(8)))] == [*map(to_bytes, before)]
    assert len(fleet.step([1] * 8)) == 8


def test_what_cannot_be_put_tears_nothing_and_moves_no_stream() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet, other = (Fleet(plan, ["a", "b"]) for _ in range(2))
    fleet.step([0, 1])
    before, (one, two) = fleet.states(np.arange(2)), other.states(np.arange(2))
    wrong = replace(two, plan=POLICY.fingerprint)
    vague = replace(two, belief=replace(two.belief, joint=two.belief.joint / 2))
    for places, states, problem in (
        ([0, 7], [one, two], "which must be places"),
        ([0, 1], [one, one], "states must be in their order"),
        ([0, 1], [one, wrong], "state must come from this model"),
        ([0, 1], [one, vague], "belief must"),
        ([0, 1], [one], "shorter"),
    ):
        with pytest.raises(ValueError, match=problem):
            fleet.put(np.array(places), states)
        assert not fleet.torn
        assert [*map(to_bytes, fleet.states(np.arange(2)))] == [*map(to_bytes, before)]
    fleet.put(np.arange(2), [one, two])
    assert to_bytes(fleet.state(1)) == to_bytes(two)


def test_a_replay_that_was_broken_into_refuses_to_go_on() -> None:
    replay = Replay(Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY), ["a", "b"])
    one = np.zeros(1, dtype=np.int64)
    left = Left(one, one, np.full(1, OUTCOMES.index(Outcome.RELEASED)), np.full(1, -1))
    held: list[bool] = []
    lock: Any = replay._lock
    inside = replay._loop.follow

    def watched(*args: Any, **options: Any) -> bool:
        held.append(lock.locked())
        return inside(*args, **options)

    with mock.patch.object(replay._loop, "follow", watched):
        replay.follow(left, lambda _: held.append(lock.locked()), whole=False)
    assert held == [True, False]
    with (
        mock.patch.object(replay._loop, "follow", side_effect=Alarm),
        mock.patch.object(replay._arrays.threads, "settle", side_effect=Alarm),
        pytest.raises(Alarm),
    ):
        replay.follow(left, whole=False)
    assert replay.torn
    with pytest.raises(InterruptedStep):
        replay.follow(left, whole=False)


def test_a_fleet_that_was_broken_into_refuses_to_go_on() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet = Fleet(plan, ["a", "b"])
    fleet.step([0, 1])
    kept = [fleet.state(place) for place in range(2)]
    with (
        mock.patch.object(fleet._loop, "follow", side_effect=Alarm),
        mock.patch.object(fleet._arrays.threads, "settle", side_effect=Alarm),
        pytest.raises(Alarm),
    ):
        fleet.step([1, 1])
    assert fleet.torn
    calls: list[Callable[[], object]] = [
        lambda: fleet.step([0, 0]),
        lambda: fleet.skip(),
        lambda: fleet.state(0),
    ]
    for go_on in calls:
        with pytest.raises(InterruptedStep, match="begin a new one from the states"):
            go_on()
    assert len(Fleet(plan, states=kept).step([0, 0])) == 2


def test_an_error_before_anything_changed_tears_nothing() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet = Fleet(plan, ["a", "b"])
    with pytest.raises(InvalidParameter, match="values must be one per stream"):
        fleet.step([0])
    assert not fleet.torn


def test_threads_that_share_a_release_get_one_step_each() -> None:
    shared = InstantRelease(CHAIN, budget=SIP(1.0), loss=LOSS, policy=POLICY)
    workers = [
        threading.Thread(target=lambda: [shared(place % 3) for place in range(400)])
        for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    state = shared.state
    assert state.sequence == state.ledger.count == 1_600
    assert abs(float(state.belief.joint.sum()) - 1) < 1e-12


def test_a_policy_must_have_the_size_of_the_chain() -> None:
    small = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    policy = compile_policy(small, loss.hamming(small.alphabet), 1.0, steps=64)
    disguised = replace(policy, chain=CHAIN.fingerprint, loss=LOSS.fingerprint)
    with pytest.raises(InvalidParameter, match="policy must be for 3 symbols; got 2"):
        Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=disguised)


def test_a_tree_whose_places_overflow_is_refused() -> None:
    splits = np.array(POLICY.tables[7])
    splits[0] = [0, 2**63 - 1, -(2**63)]
    wrong = (*POLICY.tables[:7], splits, *POLICY.tables[8:])
    with pytest.raises(InvalidParameter, match=r"policy\.tables"):
        replace(POLICY, tables=wrong)


def test_a_chain_whose_beliefs_may_vanish_needs_a_higher_floor() -> None:
    faint = MarkovChain.from_matrix([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], floor=1e-250)
    hamming = loss.hamming(faint.alphabet)
    policy = compile_policy(faint, hamming, 1.0, method="randomized-response", steps=32)
    with pytest.raises(InvalidParameter, match="keep every belief above 1e-200"):
        Plan(faint, PerStep(SIP(1.0)), hamming, method=Method(policy.method), policy=policy)
