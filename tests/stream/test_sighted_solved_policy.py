"""Far-sighted channels that are solved at each step: certified, alike, the best they could be."""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import sfumato as sf
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.policy import Policy, Tables
from sfumato.solver.solving_tables import HEADER, solved_rows
from sfumato.solver.value_iteration import Effort
from sfumato.store import from_bytes, to_bytes
from sfumato.stream import Outcome
from sfumato.stream.evidence import evidence
from sfumato.stream.fleet_arrays import MISSED, PREPARED, StreamArrays
from sfumato.stream.look_ahead import look_ahead
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from sfumato.stream.sighted_solve_loops import leaf_of
from tests.compiled import NO_LIMIT, Floats, broken_law, exact_shares, overcharged
from tests.oracles.far_sighted_sequences import assert_charges_cover_every_sequence
from tests.stream.fleet_scripts import BUDGETS, keyed_coins, moves, same
from tests.stream.test_fleet_arrays import CLOSE, FIRST, any_belief

LITTLE = Effort(beliefs=(20,), depths=(12,), walked=120, judged=200)
CHAINS = {
    "letters": sf.MarkovChain.from_matrix(
        [[0.9, 0.07, 0.03], [0.1, 0.8, 0.1], [0.05, 0.15, 0.8]], alphabet=sf.Alphabet("abc")
    ),
    "levels": sf.MarkovChain.from_matrix(
        0.8 * np.eye(9) + 0.2 * np.random.default_rng(3).dirichlet(np.ones(9), 9), floor=1e-3
    ),
}


def loss_of(name: str) -> Loss:
    alphabet = CHAINS[name].alphabet
    return sf.loss.absolute(alphabet) if name == "levels" else sf.loss.hamming(alphabet)


@cache
def policy_of(name: str = "letters") -> Policy:
    chain, loss = CHAINS[name], loss_of(name)
    sight = look_ahead(chain, loss, 0.7, effort=LITTLE)
    asked: dict[str, Any] = {"method": "far-sighted", "sight": sight, "steps": 320}
    return sf.compile_policy(chain, loss, 0.7, max_channels=24, **asked)


def plan_of(budget: str = "per step", name: str = "letters", **options: Any) -> Plan:
    far = sf.Method.FAR_SIGHTED
    given = {"policy": policy_of(name), "method": far, **options}
    return Plan(CHAINS[name], BUDGETS[budget], loss_of(name), **given)


def solved(
    name: str, belief: Belief, allowed: tuple[float, float], tables: Tables | None = None
) -> tuple[list[list[int]], list[int], list[float]]:
    """The channel of a belief: weights, outputs and both charges."""
    crowd = StreamArrays(CHAINS[name], tables or policy_of(name).tables, NO_LIMIT, 1)
    crowd.put(0, 0, belief)
    step = crowd.prepare(FIRST, np.array([allowed]))
    assert step.status[0] == PREPARED
    weights, outputs = solved_rows(crowd.tables, step.blends[0])
    return weights.tolist(), outputs.tolist(), step.charges[0].tolist()


# The law -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(CHAINS))
@pytest.mark.parametrize("cap", [None, 1.2])
@settings(max_examples=25)
@given(data=st.data())
def test_a_channel_keeps_its_price_at_any_belief(
    name: str, cap: float | None, data: st.DataObject
) -> None:
    drawn = data.draw(any_belief(CHAINS[name].size))
    belief = Belief(drawn, drift=data.draw(st.sampled_from([0.0, 1e-12, 1e-9])))
    epsilon = data.draw(st.floats(1e-3, 5.0) | st.just(0.7))
    allowed = (epsilon, math.inf if cap is None else cap * epsilon)
    weights, outputs, charge = solved(name, belief, allowed)
    shares = exact_shares(belief.joint, belief.axis)
    assert broken_law(weights, shares, charge, allowed) is None
    assert len(outputs) <= CHAINS[name].size
    if belief.drift == 0.0:
        assert overcharged(weights, shares, charge) <= CLOSE
    note("tells something" if charge[0] else "a constant")


def test_the_charges_cover_every_sequence() -> None:
    """By brute force over all values and signals, in fractions."""
    assert_charges_cover_every_sequence(plan_of(), 3)


# The best ----------------------------------------------------------------------------------------


def by_a_solver(belief: Floats, costs: Floats, epsilon: float) -> float:
    """The least cost of channels to outputs, by the program as it is written in books."""
    size, outputs = costs.shape
    k, eye = math.exp(epsilon), np.eye(outputs)
    # Column `x * outputs + y` is a(y|x); ratios to the marginal are within 1/k and k.
    marginal = np.concatenate([share * eye for share in belief], axis=1)
    bounds = []
    for x in range(size):
        own = np.zeros((outputs, size * outputs))
        own[:, x * outputs : (x + 1) * outputs] = eye
        bounds += [own - k * marginal, marginal / k - own]
    found = linprog(
        (belief[:, None] * costs).ravel(),
        A_ub=np.concatenate(bounds),
        b_ub=np.zeros(2 * size * outputs),
        A_eq=np.kron(np.eye(size), np.ones(outputs)),
        b_eq=np.ones(size),
    )
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("name", list(CHAINS))
@pytest.mark.parametrize("begun", ["near", "anywhere"])
def test_a_channel_is_the_best_one_to_the_outputs_of_its_leaf(name: str, begun: str) -> None:
    """Wherever the program began."""
    policy, draw = policy_of(name), np.random.default_rng(8)
    tables: Any = list(policy.tables)
    if begun == "anywhere":
        tables[2] = draw.permuted(tables[2], axis=1)
    costs, outputs, splits, thresholds, candidates = (tables[i] for i in (3, 5, 7, 8, 9))
    told = 0
    for share in draw.dirichlet(np.full(policy.size, 0.5), 12):
        belief = (share + 1e-4) / (share + 1e-4).sum()
        leaf = leaf_of(splits, thresholds, belief.cumsum(), 1.0)
        some = candidates[splits[leaf, 1] : splits[leaf, 2]]
        weights, released, _ = solved(name, Belief(belief), (0.7, math.inf), tuple(tables))
        rows, table = np.array(weights, dtype=np.float64) / 2.0**62, costs[0, some].T
        # Two outputs may release one symbol: its cheapest one is at most what the channel meant.
        own = np.array(
            [[table[x, outputs[some] == z].min() for z in released] for x in range(len(rows))]
        )
        best = by_a_solver(belief, table, 0.7)
        floor = float(belief @ table.min(axis=1))
        assert float(belief @ (rows * own).sum(axis=1)) <= best + 1e-5 * (best - floor) + 1e-9
        told += len(released) > 1
    assert told > 0


def test_the_same_symbol_may_stand_behind_several_signals() -> None:
    policy, draw = policy_of(), np.random.default_rng(2)
    found = [
        solved("letters", Belief(belief), (0.7, math.inf))[1]
        for belief in draw.dirichlet(np.ones(3), 60)
    ]
    assert any(len(set(outputs)) < len(outputs) for outputs in found)
    assert policy.channels == 0


# The same everywhere -----------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["per step", "horizon, capped", "window", "bursts"])
def test_a_fleet_answers_as_its_streams_would_alone(budget: str) -> None:
    options = {"on_exhausted": sf.Fallback.SUPPRESS, "on_unknown": sf.Fallback.SUBSTITUTE}
    plan = plan_of(budget, **options)
    events = same(plan, moves(plan, 9, "stranger"), keyed_coins)
    assert any(event.sip.epsilon > 0 for event in events)
    for event in events:
        assert (event.signal is not None) == (event.outcome is Outcome.RELEASED)


def test_threads_change_nothing() -> None:
    plan = plan_of(name="levels")
    same(plan, moves(plan, 4), keyed_coins, threads=2)


def test_a_long_run_is_the_sum_of_its_steps_and_is_never_solved_outside_of_the_loop() -> None:
    plan, draw = plan_of(name="levels"), np.random.default_rng(5)
    which, cells = draw.integers(0, 4, 200), draw.integers(0, 9, 200)
    names = ["ann", "bob", "eve", "joe"]
    run = sf.Fleet(plan, names, randomness=keyed_coins()).run(cells, which)
    space: Any = plan.space
    assert space._steps.cache_info().misses == 0
    states = [plan.begin(name) for name in names]
    for row, (stream, cell) in enumerate(zip(which.tolist(), cells.tolist(), strict=True)):
        (event,), states[stream] = plan.step(states[stream], [cell], keyed_coins())
        assert (event.released, event.signal) == (run.released[row], run.signals[row])  # type: ignore[index]
        assert (event.sip.epsilon, event.ldp.epsilon) == tuple(run.charges[row])
    seen = sf.Fleet(plan, names).observe(run.released, run.signals, run.outcomes, which)
    assert seen.possible.all()
    assert (seen.charges == run.charges).all()


def test_one_live_stream_answers_as_the_rule_does() -> None:
    chain, plan = CHAINS["letters"], plan_of()
    asked = {"loss": loss_of("letters"), "policy": policy_of(), "stream": "s"}
    given = {"method": "far-sighted", "randomness": keyed_coins(), **asked}
    release = sf.InstantRelease(chain, budget=BUDGETS["per step"], **given)  # type: ignore[arg-type]
    state = watched = plan.begin("s")
    for turn in range(8):
        (due,), state = plan.step(state, ["abc"[turn % 3]], keyed_coins())
        event = release.step("abc"[turn % 3])
        assert event == due
        _, watched = plan.observe(watched, [event.released], signal=event.signal)
        assert to_bytes(release.state) == to_bytes(state) == to_bytes(watched)


def test_what_left_is_followed_by_the_loops_to_the_same_likelihoods() -> None:
    plan, coins = plan_of(), keyed_coins()
    events: dict[str, list[Any]] = {}
    due: list[Floats] = []
    for name in ("ann", "bob"):
        state, events[name] = plan.begin(name), []
        for turn in range(6):
            ready = plan.prepare(state)
            assert ready is not None
            (event,), state = plan.step(state, ["abc"[turn % 3]], coins)
            events[name].append(event)
            assert event.signal is not None
            due.append(ready.design.channel.likelihood(event.signal))
    found = evidence(ReleasedTracks.of(events, plan.model.alphabet), plan)
    tells = found.begins >= 0
    assert tells.any()
    np.testing.assert_array_equal(found.told.reshape(-1, 3)[tells], np.array(due)[tells])


def test_a_signal_that_says_another_symbol_is_impossible() -> None:
    plan = plan_of()
    run = sf.Fleet(plan, ["ann"], randomness=keyed_coins()).run(np.array([0]), np.array([0]))
    assert run.signals is not None
    for released, signal in ((run.released + 1) % 3, run.signals), (run.released, run.signals + 9):
        fleet = sf.Fleet(plan, ["ann"])
        seen = fleet.observe(released, signal, run.outcomes, np.zeros(1, np.int64))
        assert not seen.possible.any()


# What it is --------------------------------------------------------------------------------------


def test_a_policy_is_stored_and_read_to_the_bit() -> None:
    policy = policy_of()
    again = from_bytes(to_bytes(policy), Policy)
    assert again.fingerprint == policy.fingerprint
    assert (again.kind, again.channels, again.report) == ("solved", 0, policy.report)
    assert plan_of(policy=again).fingerprint == plan_of().fingerprint


def test_loops_that_know_kept_channels_alone_miss_what_they_would_have_to_solve() -> None:
    crowd = StreamArrays.under(policy_of(), CHAINS["letters"], 1)
    crowd._solving = False
    assert crowd.prepare(FIRST, np.array([[0.7, math.inf]])).status[0] == MISSED


def test_what_asks_for_kept_channels_gets_them() -> None:
    chain, loss = CHAINS["letters"], loss_of("letters")
    asked: dict[str, Any] = {"method": "far-sighted", "steps": 64, "max_channels": 4}
    sight = policy_of().sight
    assert (
        sf.compile_policy(chain, loss, 0.7, sight=sight, repair_limit=1.0, **asked).kind == "kept"
    )
    with pytest.raises(InvalidParameter, match="sight was made for less than a step may leak"):
        sf.compile_policy(chain, loss, 0.8, sight=sight, kind="solved", **asked)


@pytest.mark.parametrize("place", range(10))
def test_damaged_tables_are_refused(place: int) -> None:
    policy = policy_of()
    tables: list[Any] = list(policy.tables)
    wrong = np.array(tables[place])
    tables[place] = (
        np.concatenate([wrong, wrong]) if wrong.size else np.zeros((1, *wrong.shape[1:]))
    )
    with pytest.raises(InvalidParameter):
        replace(policy, tables=tuple(tables))


@pytest.mark.parametrize(
    ("place", "at", "entry"),
    [
        (0, (0, 1), 4),
        (0, (0, 3), HEADER),
        (0, (0, 4), 4),
        (2, (0, 0), 3),
        (2, (0, slice(None)), 1),
        (3, (0, 1, 2), math.nan),
        (5, (0,), 3),
        (5, (0,), -1),
        (7, (-1, 2), 10**6),
        (9, (0,), 10**6),
        (9, (0,), -1),
        (9, (-1,), 10**6),
    ],
)
def test_entries_that_the_loops_cannot_trust_are_refused(place: int, at: Any, entry: float) -> None:
    policy = policy_of()
    tables: list[Any] = list(policy.tables)
    tables[place] = np.array(tables[place])
    tables[place][at] = entry
    with pytest.raises(InvalidParameter):
        replace(policy, tables=tuple(tables))


def test_columns_to_begin_with_are_outputs_of_their_leaf() -> None:
    policy = policy_of()
    tables: list[Any] = list(policy.tables)
    leaves = tables[7][tables[7][:, 0] < 0]
    tables[9] = np.array(tables[9])
    tables[9][leaves[0, 2]] = leaves[0, 2] - leaves[0, 1]
    with pytest.raises(InvalidParameter):
        replace(policy, tables=tuple(tables))
