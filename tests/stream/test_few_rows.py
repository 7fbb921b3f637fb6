"""A few rows are done by the plan while the loop of a fleet is not compiled: to the same bits."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import compile_events
from sfumato.core.randomness import keyed
from sfumato.stream import fleet_loop, run_loops

CHAIN = sf.MarkovChain.from_matrix([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
LOSS = sf.loss.hamming(CHAIN.alphabet)
CELLS = np.array([0, 1, 2, 2, 1, 0, 0, 1, -2, 2])
WHICH = np.array([0, 1, 0, 0, 1, 2, 0, 1, 0, 2])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Calls of the loop, which is not at hand in this test."""
    seen: list[int] = []

    class Absent:
        """The loop, on no disk."""

        def __init__(self, loop: Any) -> None:
            self._loop = loop

        def at_hand(self, *_: Any) -> bool:
            return False

        def __call__(self, *args: Any) -> Any:
            seen.append(1)
            return self._loop(*args)

    monkeypatch.setattr(run_loops, "follow", Absent(run_loops.follow))
    return seen


def released(policy: sf.Policy) -> list[list[float]]:
    plan = sf.Plan(CHAIN, sf.PerStep(sf.SIP(0.5)), LOSS, policy=policy)
    fleet = sf.Fleet(plan, ["a", "b", "c"], randomness=keyed(bytes(range(32))))
    runs = [fleet.run(CELLS, WHICH), fleet.run(CELLS[:4], WHICH[:4])]
    return [
        column.tolist()
        for run in runs
        for column in (run.sequences, run.released, run.outcomes, run.charges)
    ]


def test_few_rows_need_no_loop_and_get_the_same_bits(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = sf.compile_policy(CHAIN, LOSS, 0.5, steps=400)
    by_loop = released(policy)
    assert calls
    calls.clear()
    monkeypatch.setattr(fleet_loop, "is_eager", lambda: False)
    assert released(policy) == by_loop
    assert not calls


def test_the_loop_is_compiled_once_it_is_worth_it(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = sf.compile_policy(CHAIN, LOSS, 0.5, steps=400)
    monkeypatch.setattr(fleet_loop, "is_eager", lambda: False)
    monkeypatch.setattr(fleet_loop, "_FEW_ROWS", 4)
    released(policy)
    assert calls


def test_tests_use_the_loops() -> None:
    assert compile_events.is_eager()
