"""Far-sighted channels that are kept: the same answers alone, in a fleet and to an onlooker."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.core.belief import Belief
from sfumato.core.budgets import Budget
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.policy import Policy
from sfumato.solver.value_function import ValueFunction
from sfumato.solver.value_iteration import Effort
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Outcome
from sfumato.stream.evidence import evidence
from sfumato.stream.fleet_arrays import StreamArrays
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.tables.problems import BadTable
from tests.grids import covered
from tests.oracles.far_sighted_sequences import assert_charges_cover_every_sequence
from tests.stream.fleet_scripts import (
    BATCH_BUDGETS,
    BUDGETS,
    NAMES,
    everything,
    keyed_coins,
    moves,
    same,
)

CHAINS = {
    "bit": sf.MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]]),
    "letters": sf.MarkovChain.from_matrix(
        [[0.9, 0.07, 0.03], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]], alphabet=sf.Alphabet("abc")
    ),
}
LITTLE = Effort(beliefs=(20,), depths=(12,), walked=120, judged=200)


def hamming(name: str) -> Loss:
    return sf.loss.hamming(CHAINS[name].alphabet)


@cache
def sight(name: str, price: float = 0.0) -> ValueFunction:
    return look_ahead(CHAINS[name], hamming(name), 0.7, price=price, effort=LITTLE)


@cache
def policy_of(name: str, price: float = 0.0) -> Policy:
    asked = {"method": "far-sighted", "sight": sight(name, price), "steps": 320, "kind": "kept"}
    return sf.compile_policy(CHAINS[name], hamming(name), 0.7, max_channels=24, **asked)  # type: ignore[arg-type]


def plan_of(name: str, budget: Budget | None = None, **options: Any) -> Plan:
    options.setdefault("policy", policy_of(name))
    due = sf.PerStep(sf.SIP(0.7)) if budget is None else budget
    return Plan(CHAINS[name], due, hamming(name), method=sf.Method.FAR_SIGHTED, **options)


# The same answers --------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "budget"), covered(list(CHAINS), list(BUDGETS)))
def test_a_fleet_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    plan = plan_of(name, BUDGETS[budget], on_exhausted=sf.Fallback.SUPPRESS)
    events = same(plan, moves(plan, 9), keyed_coins)
    assert any(event.sip.epsilon > 0 for event in events)
    for event in events:
        assert (event.signal is not None) == (event.outcome is Outcome.RELEASED)


@pytest.mark.parametrize("name", list(CHAINS))
def test_beliefs_that_the_policy_misses_are_solved_by_its_own_sight(name: str) -> None:
    never = replace(policy_of(name), repair_limit=1e-12)
    plan = plan_of(name, sf.PerStep(sf.SIP(0.6)), policy=never, on_unknown=sf.Fallback.SUBSTITUTE)
    same(plan, moves(plan, 8, "stranger"), keyed_coins)
    space: Any = plan.space
    assert space._steps.cache_info().misses > 0


@pytest.mark.parametrize("name", list(CHAINS))
@pytest.mark.parametrize("budget", ["per step, capped", "window", "bursts"])
def test_one_live_stream_answers_as_the_rule_does(name: str, budget: str) -> None:
    plan, labels = plan_of(name, BUDGETS[budget]), CHAINS[name].alphabet.labels
    release = sf.InstantRelease(
        CHAINS[name],
        budget=BUDGETS[budget],
        loss=hamming(name),
        method="far-sighted",
        policy=policy_of(name),
        randomness=keyed_coins(),
        stream="s",
    )
    assert release.plan.fingerprint == plan.fingerprint
    state = watched = plan.begin("s")
    for turn in range(8):
        (due,), state = plan.step(state, [labels[turn % len(labels)]], keyed_coins())
        event = release.step(labels[turn % len(labels)])
        assert event == due
        assert event.signal is not None
        seen, watched = plan.observe(watched, [event.released], signal=event.signal)
        assert seen == (event,)
        assert to_bytes(release.state) == to_bytes(state) == to_bytes(watched)


def test_a_step_of_a_fleet_holds_its_signals() -> None:
    plan = plan_of("letters", on_unknown=sf.Fallback.SUPPRESS)
    step = sf.Fleet(plan, NAMES, randomness=keyed_coins()).step(["a", "b", "z", "c", "a"])
    assert step.signals is not None
    assert step.signals.tolist() == [
        -1 if event.signal is None else event.signal for (event,) in step
    ]
    assert step.signals[2] == -1
    plain = sf.compile_policy(CHAINS["bit"], hamming("bit"), 0.7, steps=32)
    blind = Plan(CHAINS["bit"], sf.PerStep(sf.SIP(0.7)), hamming("bit"), policy=plain)
    assert sf.Fleet(blind, ["ann"]).step([0]).signals is None


@cache
def batch_policy(name: str) -> Policy:
    chain, far = CHAINS[name], "far-sighted"
    asked = {"width": 2, "method": far, "steps": 320, "repair_limit": 1.0}
    return sf.compile_policy(chain, hamming(name), 0.8, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", ["per step", "window, capped", "horizon"])
@pytest.mark.parametrize("name", list(CHAINS))
def test_batches_leave_with_signals_and_in_a_fleet_as_alone(name: str, budget: str) -> None:
    policy = batch_policy(name)
    rule = {"method": sf.Method.FAR_SIGHTED, "on_exhausted": sf.Fallback.SUPPRESS}
    plan = Plan(CHAINS[name], BATCH_BUDGETS[budget], hamming(name), 2, policy=policy, **rule)  # type: ignore[arg-type]
    script = moves(plan, 6)
    for event in same(plan, script, keyed_coins):
        assert (event.signal is not None) == (event.outcome is Outcome.RELEASED)
    watched, coins = plan.begin("s"), keyed_coins()
    state = watched
    for batch in (move.batches[0] for move in script if move.batches):
        told, state = plan.step(state, batch, coins)
        sent = [one.signal for one in told]
        assert len(set(sent)) == 1
        left = [one.released for one in told]
        seen, watched = plan.observe(watched, left, told[0].outcome, sent[0])
        assert (seen, to_bytes(watched)) == (told, to_bytes(state))


# Certificates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "price", "steps"),
    [
        ("bit", 0.0, 5),
        ("letters", 0.0, 3),
        ("letters", 0.05, 3),
        pytest.param("letters", 0.0, 5, marks=pytest.mark.slow),
    ],
)
def test_the_charges_cover_every_sequence(name: str, price: float, steps: int) -> None:
    assert_charges_cover_every_sequence(plan_of(name, policy=policy_of(name, price)), steps)


@pytest.mark.parametrize(
    ("name", "lengths"),
    [("bit", (2, 2, 1)), pytest.param("letters", (2, 2), marks=pytest.mark.slow)],
)
def test_the_charges_of_batches_cover_every_sequence(name: str, lengths: tuple[int, ...]) -> None:
    rule = {"method": sf.Method.FAR_SIGHTED, "policy": batch_policy(name)}
    plan = Plan(CHAINS[name], sf.PerStep(sf.SIP(0.4)), hamming(name), 2, **rule)  # type: ignore[arg-type]
    assert_charges_cover_every_sequence(plan, lengths)


# What it loses -----------------------------------------------------------------------------------


def ring(size: int, stay: float) -> sf.MarkovChain:
    steps = np.roll(np.eye(size), 1, axis=1) + np.roll(np.eye(size), -1, axis=1)
    moves = stay * np.eye(size) + (1 - stay) * steps / steps.sum(axis=1, keepdims=True)
    return sf.MarkovChain.from_matrix(moves, floor=1e-4)


def paired_losses(
    chain: sf.MarkovChain, epsilon: float, streams: int, steps: int
) -> tuple[float, float, float]:
    """Expected loss of a step: solved on the spot, compiled, and compiled step-wise."""
    loss, far = sf.loss.hamming(chain.alphabet), sf.Method.FAR_SIGHTED
    sight, budget = look_ahead(chain, loss, epsilon), sf.PerStep(sf.SIP(epsilon))
    kept = sf.compile_policy(chain, loss, epsilon, method=far, sight=sight, kind="kept")
    plans = [
        Plan(chain, budget, loss, method=far, sight=sight, purpose=sf.Purpose.SIMULATION),
        Plan(chain, budget, loss, method=far, policy=kept, purpose=sf.Purpose.SIMULATION),
        Plan(chain, budget, loss, purpose=sf.Purpose.SIMULATION),
    ]
    found = []
    for plan in plans:
        rng, total, states = np.random.default_rng(5), 0.0, [plan.begin("s")] * streams
        coins = rng.random((steps, streams))
        for moment, row in enumerate(coins):
            for place, coin in enumerate(row.tolist()):
                ready = plan.prepare(states[place])
                assert ready is not None
                total += ready.design.cost if moment >= 5 else 0.0
                channel = ready.design.channel
                reached = channel.marginal(states[place].belief.marginal).cumsum()
                column = min(int((reached <= coin * reached[-1]).sum()), reached.size - 1)
                output = int(channel.outputs[column])
                left = [chain.alphabet.labels[place] for place in ready.patterns[output]]
                signal = None if plan.sight is None else output
                states[place] = plan.observe(states[place], left, signal=signal)[1]
        found.append(total / (streams * (steps - 5)))
    return found[0], found[1], found[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chain", "epsilon", "within", "saved"),
    [
        (ring(2, 0.95), 0.5, 0.01, 0.18),
        (ring(2, 0.95), 1.0, 0.01, 0.22),
        (ring(4, 0.95), 0.5, 0.04, 0.25),
    ],
    ids=["bit .5", "bit 1", "ring .5"],
)
def test_kept_channels_lose_little_more_than_solved_ones_and_far_less_than_step_wise_ones(
    chain: sf.MarkovChain, epsilon: float, within: float, saved: float
) -> None:
    solved, kept, step_wise = paired_losses(chain, epsilon, 40, 85)
    assert kept <= (1 + within) * solved
    assert kept <= (1 - saved) * step_wise


# What it is --------------------------------------------------------------------------------------


def test_a_policy_is_stored_with_its_sight() -> None:
    policy = policy_of("letters")
    read = from_bytes(to_bytes(policy), Policy)
    assert read.fingerprint == policy.fingerprint
    assert read.sight is not None and policy.sight is not None
    assert read.sight.fingerprint == policy.sight.fingerprint
    assert read.sight.promised == policy.sight.promised
    assert plan_of("letters", policy=read).fingerprint == plan_of("letters").fingerprint
    alone = from_bytes(to_bytes(policy.sight), ValueFunction)
    assert alone.fingerprint == policy.sight.fingerprint


def test_policies_without_sight_are_stored_as_before() -> None:
    plain = sf.compile_policy(CHAINS["bit"], hamming("bit"), 0.7, steps=32)
    stored = to_bytes(plain)
    assert b"sight" not in stored
    read = from_bytes(stored, Policy)
    assert (read.fingerprint, read.sight) == (plain.fingerprint, None)
    assert b"sight" in to_bytes(policy_of("bit"))


def test_a_constant_in_all_costs_changes_nothing() -> None:
    """Vectors are known but for one: what may be repaired must not depend on it."""
    policy = replace(policy_of("letters"), repair_limit=0.02)
    tables: Any = list(policy.tables)
    for shift in (-1e3, 1e3):
        moved: Any = (*tables[:3], tables[3] + shift, *tables[4:])
        other = replace(policy, tables=moved)
        for place in np.random.default_rng(1).dirichlet(np.ones(3), 40):
            chosen = []
            for one in (policy, other):
                arrays = StreamArrays.under(one, CHAINS["letters"], 1)
                arrays.put(0, 0, Belief(place))
                ready = arrays.prepare(np.zeros(1, np.int64), np.array([[0.7, np.inf]]))
                chosen.append((int(ready.status[0]), int(ready.chosen[0]), int(ready.parts[0])))
            assert chosen[0] == chosen[1]


def test_a_policy_and_its_sight_belong_together() -> None:
    policy, far = policy_of("letters"), sf.Method.FAR_SIGHTED
    budget = sf.PerStep(sf.SIP(0.7))
    with pytest.raises(InvalidParameter, match="sight must be that of the policy"):
        plan_of("letters", sight=sight("letters", 0.05))
    assert plan_of("letters", sight=sight("letters")).fingerprint == plan_of("letters").fingerprint
    with pytest.raises(InvalidParameter, match="sight"):
        Plan(CHAINS["letters"], budget, hamming("letters"), policy=policy)
    plain = sf.compile_policy(CHAINS["letters"], hamming("letters"), 0.7, steps=32)
    with pytest.raises(InvalidParameter, match="sight must stand at a policy of far-sighted"):
        replace(plain, method="far-sighted")
    with pytest.raises(InvalidParameter, match="policy must be compiled for this chain, loss and"):
        plan_of("letters", policy=plain, sight=sight("letters"))
    with pytest.raises(InvalidParameter, match="sight must be made for this chain"):
        replace(policy, sight=sight("bit"))
    with pytest.raises(InvalidParameter, match="sight must stand at a policy of far-sighted"):
        replace(policy, method="optimal")
    chain, loss = CHAINS["letters"], hamming("letters")
    with pytest.raises(InvalidParameter, match="sight must be made for this chain"):
        sf.compile_policy(chain, loss, 0.7, method=far, sight=sight("bit"))
    with pytest.raises(InvalidParameter, match="method must be far-sighted"):
        sf.compile_policy(chain, loss, 0.7, sight=sight("letters"))
    with pytest.raises(InvalidParameter, match="every must be 1"):
        sf.compile_policy(chain, loss, 0.7, method=far, sight=sight("letters"), every=2)


def test_the_same_symbol_may_stand_behind_several_signals() -> None:
    policy = policy_of("letters")
    twice = [node for node in range(policy.channels) if repeats(policy, node)]
    assert twice
    assert policy.channel(twice[0]).outputs.tolist() == list(range(len(policy.outputs(twice[0]))))
    with pytest.raises(InvalidParameter, match="policy channel"):
        replace(policy, sight=None)


def repeats(policy: Policy, node: int) -> bool:
    symbols = policy.outputs(node).tolist()
    return len(set(symbols)) < len(symbols)


def test_sight_decides_the_fingerprint() -> None:
    policy = policy_of("letters")
    assert policy.sight is not None
    dearer = replace(policy.sight, promised=policy.sight.promised * 2)
    assert replace(policy, sight=dearer).fingerprint != policy.fingerprint
    assert policy_of("letters", 0.05).fingerprint != policy.fingerprint


# Who looks on ------------------------------------------------------------------------------------


def test_a_population_is_followed_by_its_signals() -> None:
    """All streams together, and one by one: the same likelihoods."""
    plan = plan_of("letters")
    fleet = sf.Fleet(plan, NAMES, randomness=keyed_coins())
    events: dict[str, list[Any]] = {name: [] for name in NAMES}
    rng = np.random.default_rng(3)
    for _ in range(7):
        for (event,) in fleet.step([["a", "b", "c"][place] for place in rng.integers(0, 3, 5)]):
            events[event.stream].append(event)
    tracks = ReleasedTracks.of(events, CHAINS["letters"].alphabet)
    found = evidence(tracks, plan)
    told = found.told.reshape(-1, 3)
    for stream, name in enumerate(NAMES):
        state = plan.begin(name)
        for moment, event in enumerate(events[name]):
            ready = plan.prepare(state)
            assert ready is not None and event.signal is not None
            at = int(tracks.starts[stream]) + moment
            if not ready.design.channel.is_constant:
                assert found.begins[at] == 3 * at
                due = ready.design.channel.likelihood(event.signal)
                assert told[at] == pytest.approx(due, rel=1e-12)
            _, state = plan.observe(state, [event.released], signal=event.signal)
    for signal in (-1, 99):
        signals = np.where(np.arange(len(tracks.signals)) == 4, signal, tracks.signals)
        with pytest.raises(BadTable, match=r"signal|output"):
            evidence(replace(tracks, signals=signals), plan)


def test_a_fleet_stored_in_mid_stream_goes_on_as_if_it_were_not() -> None:
    plan = plan_of("letters")
    one, two = (sf.Fleet(plan, NAMES, randomness=keyed_coins()) for _ in range(2))
    for values in ("abcab", "bbcaa"):
        one.step(values)
        two.step(values)
    again = sf.Fleet(
        plan, states=[two.state(place) for place in range(5)], randomness=keyed_coins()
    )
    assert list(one.step("ccbba")) == list(again.step("ccbba"))
    assert everything(one) == everything(again)
