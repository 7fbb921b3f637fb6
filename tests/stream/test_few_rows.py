"""A few rows are done by the plan while the loop of a fleet is not compiled: to the same bits."""

from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core import compile_events
from sfumato.core.errors import UnknownSymbol
from sfumato.core.randomness import keyed
from sfumato.store import to_bytes
from sfumato.stream import fleet_loop, run_loops

CHAIN = sf.MarkovChain.from_matrix([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
LOSS = sf.loss.hamming(CHAIN.alphabet)
FAR = sf.Method.FAR_SIGHTED
# -1 is outside the alphabet, -2 a moment that passes.
CELLS = np.array([0, 1, 2, 2, 1, 0, -1, 0, 1, -2, 2, -1])
WHICH = np.array([0, 1, 0, 0, 1, 2, 0, 0, 1, 0, 2, 1])
BUDGETS: dict[str, sf.PerStep | sf.Horizon] = {
    "per step": sf.PerStep(sf.SIP(0.5)),
    "horizon": sf.Horizon(sf.SIP(0.9), 3),
}


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


def policy_of(kind: str, method: str = "optimal") -> sf.Policy:
    asked: dict[str, Any] = {"kind": kind, "method": method, "steps": 200, "max_channels": 16}
    return sf.compile_policy(CHAIN, LOSS, 0.5, **asked)


def fleet_of(policy: sf.Policy, budget: str = "per step", **rules: Any) -> sf.Fleet:
    plan = sf.Plan(CHAIN, BUDGETS[budget], LOSS, policy=policy, **rules)
    return sf.Fleet(plan, ["a", "b", "c"], randomness=keyed(bytes(range(32))))


def released(fleet: sf.Fleet) -> list[list[float]]:
    runs = [fleet.run(CELLS, WHICH), fleet.run(CELLS[:4], WHICH[:4])]
    return [
        column.tolist()
        for run in runs
        for column in (run.sequences, run.released, run.outcomes, run.charges, run.signals)
        if column is not None
    ]


@pytest.mark.parametrize(
    ("kind", "budget", "rules"),
    [
        ("kept", "per step", {"on_unknown": sf.Fallback.SUPPRESS}),
        ("kept", "horizon", {"on_unknown": sf.Fallback.REPEAT, "on_exhausted": sf.Fallback.REPEAT}),
        ("solved", "per step", {"on_unknown": sf.Fallback.REPEAT}),
        ("solved", "horizon", dict.fromkeys(("on_unknown", "on_exhausted"), sf.Fallback.SUPPRESS)),
        ("solved", "per step", {"on_unknown": sf.Fallback.SUBSTITUTE, "method": FAR}),
    ],
)
def test_few_rows_need_no_loop_and_get_the_same_bits(
    kind: str, budget: str, rules: dict[str, Any], calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_of(kind, rules.get("method", sf.Method.OPTIMAL).value)
    by_loop = released(fleet_of(policy, budget, **rules))
    assert calls
    calls.clear()
    monkeypatch.setattr(fleet_loop, "is_eager", lambda: False)
    assert released(fleet_of(policy, budget, **rules)) == by_loop
    assert not calls


def test_a_refused_row_among_few_moves_no_stream(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_loop, "is_eager", lambda: False)
    fleet = fleet_of(policy_of("kept"))
    before = [to_bytes(state) for state in fleet.states(np.arange(3))]
    with pytest.raises(UnknownSymbol):
        fleet.run(CELLS, WHICH)
    assert not calls
    assert not fleet.torn
    assert [to_bytes(state) for state in fleet.states(np.arange(3))] == before


@pytest.mark.parametrize(("most", "compiled"), [(16, False), (15, True), (11, True), (4, True)])
def test_the_loop_is_compiled_once_it_is_worth_it(
    most: int, compiled: bool, calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_loop, "is_eager", lambda: False)
    monkeypatch.setattr(fleet_loop, "_FEW_ROWS", most)
    released(fleet_of(policy_of("kept"), on_unknown=sf.Fallback.SUPPRESS))
    assert bool(calls) == compiled


def test_tests_use_the_loops() -> None:
    assert compile_events.is_eager()
