"""An exception in the middle of a step, and other ways to misuse a release with a policy."""

import threading
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
from sfumato.core.purpose import Purpose
from sfumato.store import to_bytes
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
        inside = fleet._arrays.share

        def broken(
            *args: Any, inside: Any = inside, calls: list[int] = calls, place: int = place
        ) -> None:
            """What came before the alarm was done, by this thread or another."""
            calls.append(1)
            if place == 1:
                inside(*args)
            raise Alarm

        with mock.patch.object(fleet._arrays, "share", broken), pytest.raises(Alarm):
            fleet.step([1, 1])
        assert calls and not fleet.torn
        assert [to_bytes(fleet.state(stream)) for stream in range(2)] == before
        assert len(fleet.step([1, 1])) == 2


def test_a_fleet_that_was_broken_into_refuses_to_go_on() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet = Fleet(plan, ["a", "b"])
    fleet.step([0, 1])
    kept = [fleet.state(place) for place in range(2)]
    with (
        mock.patch.object(fleet._loop, "follow", side_effect=Alarm),
        mock.patch.object(fleet._arrays, "settle", side_effect=Alarm),
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


def test_a_forked_child_gets_threads_of_its_own() -> None:
    plan = Plan(CHAIN, PerStep(SIP(1.0)), LOSS, policy=POLICY)
    fleet = Fleet(plan, [str(place) for place in range(8)], threads=2)
    fleet.step([0] * 8)
    before = fleet._arrays._workers()
    assert fleet._arrays._workers() is before
    with mock.patch("os.getpid", return_value=-1):
        assert fleet._arrays._workers() is not before
        assert len(fleet.step([1] * 8)) == 8
