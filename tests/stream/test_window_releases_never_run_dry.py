"""Releases under a window never refuse, whatever chain, budget, batch and policy."""

import numpy as np
import pytest

from sfumato import (
    LDP,
    SIP,
    BatchedRelease,
    Fleet,
    Horizon,
    InstantRelease,
    MarkovChain,
    Method,
    PerStep,
    Plan,
    Window,
    compile_policy,
    loss,
    secure,
)
from sfumato.core.budgets import Budget
from sfumato.core.errors import BudgetExceeded
from sfumato.stream import Outcome, batch_loss

WINDOWS: list[Budget] = [
    Window(SIP(5.0), 10),
    Window(SIP(5.0), 10, LDP(6.0)),
    Window(SIP(0.3), 7),
    Window(SIP(60.0), 3),
    Window(SIP(1e-6), 4),
    Window(SIP(1e-12), 4),
]
TINY: list[Budget] = [
    PerStep(SIP(1e-12)),
    PerStep(SIP(1.0), LDP(1e-12)),
    Horizon(SIP(1e-9), 100),
    Window(SIP(1e-11), 10),
]


def town(seed: int, size: int) -> MarkovChain:
    """A sticky chain with habits, in which steps often tell nothing."""
    draw = np.random.default_rng(seed)
    rows = draw.dirichlet(np.full(size, 0.3), size) + 0.02
    rows[np.arange(size), np.arange(size)] += draw.uniform(0.0, 6.0, size)
    return MarkovChain.from_matrix(rows / rows.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("budget", WINDOWS, ids=str)
@pytest.mark.parametrize("size", [2, 5])
def test_values_leave_for_ever(budget: Budget, size: int) -> None:
    chain = town(size, size)
    release = InstantRelease(chain, budget=budget, loss=loss.hamming(chain.alphabet))
    for value in chain.sample(120, secure()):
        assert release.step(int(value)).outcome is Outcome.RELEASED


@pytest.mark.parametrize("budget", WINDOWS[:2] + WINDOWS[4:], ids=str)
@pytest.mark.parametrize("width", [2, 5])
def test_batches_leave_for_ever_however_they_are_cut(budget: Budget, width: int) -> None:
    chain = town(width, 2)
    release = BatchedRelease(
        chain, width=width, budget=budget, loss=batch_loss.additive(loss.hamming(chain.alphabet))
    )
    draw, released = np.random.default_rng(width), 0
    for value in chain.sample(80, secure()):
        released += len(release.add(int(value)))
        if draw.random() < 0.2:
            released += len(release.flush())
    assert released + release.waiting == 80


@pytest.mark.parametrize("budget", WINDOWS, ids=str)
def test_fleets_with_a_policy_go_on_for_ever(budget: Budget) -> None:
    chain = town(9, 3)
    costs = loss.hamming(chain.alphabet)
    policy = compile_policy(chain, costs, 0.4, steps=400)
    fleet = Fleet(Plan(chain, budget, costs, policy=policy), ["ann", "bob", "eve"])
    paths = np.array([chain.sample(100, secure()) for _ in range(3)])
    for values in paths.T:
        assert fleet.step(values).outcomes == [Outcome.RELEASED] * 3


@pytest.mark.parametrize("budget", TINY, ids=str)
def test_an_allowance_too_small_to_tell_anything_releases_a_constant_for_free(
    budget: Budget,
) -> None:
    chain = town(1, 4)
    costs = loss.absolute(chain.alphabet)
    release = InstantRelease(chain, budget=budget, loss=costs)
    for value in (0, 3, 1, 2):
        belief = release.state.belief.marginal
        event = release.step(value)
        assert (event.outcome, event.sip.epsilon, event.ldp.epsilon) == (Outcome.RELEASED, 0.0, 0.0)
        assert event.released == int(np.argmin(belief @ costs.matrix))


@pytest.mark.parametrize("budget", TINY, ids=str)
def test_a_constant_leaves_for_batches_too_and_an_observer_agrees(budget: Budget) -> None:
    chain = town(1, 3)
    plan = Plan(chain, budget, batch_loss.additive(loss.hamming(chain.alphabet)), width=2)
    state, told = plan.begin("ann"), set()
    for values in ([0, 2], [1, 1], [2, 0]):
        events, following = plan.step(plan.begin("ann"), values, secure())
        assert all(event.sip.epsilon == event.ldp.epsilon == 0.0 for event in events)
        seen, after = plan.observe(state, [event.released for event in events])
        assert (seen, after.ledger) == (events, following.ledger)
        told.add(tuple(event.released for event in events))
    assert len(told) == 1


def test_the_end_of_a_horizon_is_still_refused_and_says_what_did_not_leave() -> None:
    chain = town(1, 2)
    costs = loss.hamming(chain.alphabet)
    release = InstantRelease(chain, budget=Horizon(SIP(1e-10), 2), loss=costs)
    release(0)
    release(1)
    with pytest.raises(BudgetExceeded, match=r"event 2 of stream.*this event was not released"):
        release(0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_no_random_window_runs_dry(seed: int) -> None:
    """Sizes, losses, methods, caps, batches and policies at random; long streams of them."""
    draw = np.random.default_rng(seed)
    size, total = int(draw.integers(2, 8)), float(10 ** draw.uniform(-11, 2))
    cap = LDP(total * float(draw.uniform(0.3, 3.0))) if draw.random() < 0.4 else None
    budget = Window(SIP(total), int(draw.integers(1, 25)), cap)
    chain = town(seed, size)
    costs = loss.hamming(chain.alphabet) if draw.random() < 0.5 else loss.absolute(chain.alphabet)
    path = [int(value) for value in chain.sample(400, secure())]
    match seed % 3:
        case 0:
            method = Method.OPTIMAL if cap else draw.choice([*Method][:3])
            release = InstantRelease(chain, budget=budget, loss=costs, method=method)
            told = sum(release.step(value).outcome is Outcome.RELEASED for value in path)
        case 1:
            each = budget.sip.epsilon / budget.width
            policy = compile_policy(chain, costs, float(np.clip(each, 1e-3, 5.0)), steps=300)
            fleet = Fleet(Plan(chain, budget, costs, policy=policy), ["ann"])
            told = sum(fleet.step([value]).outcomes == [Outcome.RELEASED] for value in path)
        case _:
            width = int(draw.integers(2, 5))
            batched = BatchedRelease(
                chain, width=width, budget=budget, loss=batch_loss.additive(costs)
            )
            told = 0
            for value in path[:120]:
                told += len(batched.add(value))
                told += len(batched.flush()) if draw.random() < 0.1 else 0
            path, told = path[:120], told + batched.waiting
    assert told == len(path)
