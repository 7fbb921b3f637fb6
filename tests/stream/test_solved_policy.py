"""Policies that solve a small program at each step: certified, the same everywhere, near the best.

Small grids stand for large ones: `kind="solved"` asks for what large alphabets get by default.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st
from scipy import sparse

import sfumato as sf
from sfumato.core.belief import Belief
from sfumato.core.errors import InvalidParameter
from sfumato.core.loss import Loss
from sfumato.solver.design_methods import Method
from sfumato.solver.policy import Policy, Tables
from sfumato.solver.solving_tables import SOLVED_ROWS, solved_rows, solving_tables
from sfumato.store import from_bytes, to_bytes
from sfumato.stream.compile import chosen_kind
from sfumato.stream.evidence import evidence
from sfumato.stream.fleet_arrays import MISSED, PREPARED, StreamArrays
from sfumato.stream.plan import Plan
from sfumato.stream.released_tracks import ReleasedTracks
from tests.compiled import NO_LIMIT, Floats, broken_law, exact_shares, overcharged
from tests.oracles.far_sighted_sequences import assert_charges_cover_every_sequence
from tests.stream.fleet_scripts import BUDGETS, keyed_coins, moves, same
from tests.stream.test_fleet_arrays import CLOSE, FIRST, any_belief


def walk(side: int, stay: float = 0.6) -> sf.MarkovChain:
    """A walk on a grid: stay, or go to one of the eight cells around."""
    row, column = np.divmod(np.arange(side * side), side)
    moves = sparse.lil_array((side * side, side * side))
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            there = np.clip(row + down, 0, side - 1) * side + np.clip(column + right, 0, side - 1)
            for whence, to in enumerate(there.tolist()):
                moves[whence, to] += stay if down == right == 0 else (1 - stay) / 8
    alphabet = sf.Alphabet.grid(side, side)
    return sf.MarkovChain.from_matrix(moves.tocsr(), alphabet=alphabet, floor=1e-4 / side**2)


CHAINS = {
    "grid of 4": walk(2),
    "grid of 9": walk(3),
    "order 2": sf.MarkovChain.from_matrix(
        np.random.default_rng(4).dirichlet(np.ones(4), 16), floor=0.02
    ),
}


def loss_of(name: str) -> Loss:
    alphabet = CHAINS[name].alphabet
    return sf.loss.absolute(alphabet) if name == "order 2" else sf.loss.euclidean(alphabet)


@cache
def policy_of(name: str, epsilon: float = 1.0, ldp: float | None = None) -> Policy:
    asked: dict[str, Any] = {"kind": "solved", "steps": 32, "ldp": ldp}
    return sf.compile_policy(CHAINS[name], loss_of(name), epsilon, **asked)


def plan_of(name: str, budget: str = "per step", **options: Any) -> Plan:
    cap = None if BUDGETS[budget].ldp is None else 1.5
    options.setdefault("policy", policy_of(name, 1.0, cap))
    return Plan(CHAINS[name], BUDGETS[budget], loss_of(name), **options)


# The law -----------------------------------------------------------------------------------------


def solved(
    tables: Tables,
    chain: sf.MarkovChain,
    belief: Belief,
    allowed: tuple[float, float],
    moment: int = 0,
) -> tuple[list[list[int]], list[int], list[float]]:
    """The channel of a belief: weights, outputs and both charges."""
    crowd = StreamArrays(chain, tables, NO_LIMIT, 1)
    crowd.put(0, moment, belief)
    step = crowd.prepare(FIRST, np.array([allowed]))
    assert step.status[0] == PREPARED
    weights, outputs = solved_rows(tables, step.blends[0])
    return weights.tolist(), outputs.tolist(), step.charges[0].tolist()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("cap", [None, 1.2])
@settings(max_examples=12)
@given(data=st.data())
def test_a_solved_channel_keeps_its_price_at_any_belief(
    epsilon: float, cap: float | None, data: st.DataObject
) -> None:
    tables = policy_of("grid of 9", epsilon).tables
    belief = Belief(data.draw(any_belief(9)), drift=data.draw(st.sampled_from([0.0, 1e-12, 1e-9])))
    part = data.draw(st.floats(1e-3, 1.0) | st.just(1.0))
    allowed = (epsilon * part, math.inf if cap is None else cap * epsilon * part)
    weights, outputs, charge = solved(tables, CHAINS["grid of 9"], belief, allowed)
    shares = exact_shares(belief.joint, belief.axis)
    assert broken_law(weights, shares, charge, allowed) is None
    assert len(set(outputs)) == len(outputs)
    if belief.drift == 0.0:
        assert overcharged(weights, shares, charge) <= CLOSE
    note("tells something" if charge[0] else "a constant")


@pytest.mark.parametrize("moment", [0, 1, 2])
@settings(max_examples=12)
@given(data=st.data())
def test_the_current_value_of_a_longer_chain_counts(moment: int, data: st.DataObject) -> None:
    belief = Belief(data.draw(any_belief(16)).reshape(4, 4), min(moment, 1))
    given = (policy_of("order 2").tables, CHAINS["order 2"], belief, (1.0, math.inf))
    weights, _, charge = solved(*given, moment)
    shares = exact_shares(belief.joint, belief.axis)
    assert broken_law(weights, shares, charge, (1.0, math.inf)) is None
    assert overcharged(weights, shares, charge) <= CLOSE


@pytest.mark.parametrize("name", ["grid of 4", "order 2"])
def test_the_charges_cover_every_sequence(name: str) -> None:
    """By brute force over all values and outputs, in fractions."""
    assert_charges_cover_every_sequence(plan_of(name), 3)


def test_the_oracle_objects_to_a_charge_that_is_a_hair_too_low() -> None:
    chain = CHAINS["grid of 9"]
    belief, allowed = chain.first(), (1.0, math.inf)
    weights, _, charge = solved(policy_of("grid of 9").tables, chain, belief, allowed)
    shares = exact_shares(belief.joint, belief.axis)
    assert broken_law(weights, shares, charge, allowed) is None
    told = broken_law(weights, shares, [charge[0] * (1 - 1e-9), charge[1]], allowed)
    assert told is not None
    assert "leakage under the model" in told


def test_a_budget_that_buys_nothing_leaves_as_a_constant_for_free() -> None:
    """The best one of the moment."""
    chain, belief = CHAINS["grid of 9"], np.full(9, 0.01)
    belief[4] += 1 - belief.sum()
    tables = policy_of("grid of 9").tables
    weights, outputs, charge = solved(tables, chain, Belief(belief), (1e-3, math.inf))
    assert (outputs, charge) == ([4], [0.0, 0.0])
    assert weights == [[2**62]] * 9


# The same everywhere -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("grid of 9", "per step"),
        ("order 2", "horizon, capped"),
        ("grid of 4", "horizon"),
        ("order 2", "window"),
        ("order 2", "bursts"),
    ],
)
def test_a_fleet_answers_as_its_streams_would_alone(name: str, budget: str) -> None:
    plan = plan_of(name, budget, on_exhausted=sf.Fallback.SUPPRESS)
    events = same(plan, moves(plan, 9), keyed_coins)
    assert any(event.sip.epsilon > 0 for event in events)
    assert all(event.signal is None for event in events)


def test_threads_change_nothing() -> None:
    plan = plan_of("grid of 9")
    same(plan, moves(plan, 4), keyed_coins, threads=2)


def test_one_live_stream_answers_as_the_rule_does() -> None:
    chain, plan = CHAINS["grid of 9"], plan_of("grid of 9")
    asked = {"loss": loss_of("grid of 9"), "policy": policy_of("grid of 9"), "stream": "s"}
    coins = keyed_coins()
    release = sf.InstantRelease(chain, budget=BUDGETS["per step"], randomness=coins, **asked)  # type: ignore[arg-type]
    state = watched = plan.begin("s")
    for turn in range(8):
        value = chain.alphabet.labels[turn % 9]
        (due,), state = plan.step(state, [value], keyed_coins())
        event = release.step(value)
        assert event == due
        _, watched = plan.observe(watched, [event.released])
        assert to_bytes(release.state) == to_bytes(state) == to_bytes(watched)


def test_what_left_is_followed_by_the_loops_to_the_same_likelihoods() -> None:
    plan = plan_of("grid of 9")
    labels, coins = plan.model.alphabet.labels, keyed_coins()
    events: dict[str, list[Any]] = {}
    due: list[Floats] = []
    for name in ("ann", "bob"):
        state, events[name] = plan.begin(name), []
        for turn in range(5):
            ready = plan.prepare(state)
            assert ready is not None
            (event,), state = plan.step(state, [labels[(4 * turn) % 9]], coins)
            events[name].append(event)
            place = plan.model.alphabet.index(event.released)
            due.append(ready.design.channel.likelihood(place))
    tracks = ReleasedTracks.of(events, plan.model.alphabet)
    found = evidence(tracks, plan)
    assert (found.begins >= 0).any()
    np.testing.assert_array_equal(
        found.told.reshape(-1, 9)[found.begins >= 0], np.array(due)[found.begins >= 0]
    )


def test_a_policy_is_stored_and_read_to_the_bit() -> None:
    policy = policy_of("grid of 9")
    again = from_bytes(to_bytes(policy), Policy)
    assert again.fingerprint == policy.fingerprint
    assert again.solves
    assert (again.kind, again.channels, again.report) == ("solved", 0, policy.report)


# What it loses -----------------------------------------------------------------------------------


def stream_loss(chain: sf.MarkovChain, loss: Loss, policy: Policy, steps: int) -> float:
    """How much more streams lose than the proven floor of each of their steps."""
    plan = Plan(chain, sf.PerStep(sf.SIP(policy.epsilon)), loss, policy=policy, purpose=SIMULATION)
    coins, draw = sf.seeded(11), np.random.default_rng(12)
    lost = floor = 0.0
    state, truth = plan.begin("s"), int(draw.integers(chain.size))
    for _ in range(steps):
        belief = state.belief.marginal
        ready = plan.prepare(state)
        assert ready is not None
        found = ready.design.channel
        lost += float(belief @ (found.probabilities * loss.columns(found.outputs)).sum(axis=1))
        best = sf.solver.optimal(belief, loss, policy.epsilon)
        floor += best.cost if best.lower_bound is None else best.lower_bound
        _, state = plan.step(state, [chain.alphabet.labels[truth]], coins)
        truth = int(draw.choice(chain.size, p=chain.transition()[truth]))
    return lost / floor - 1


SIMULATION = sf.Purpose.SIMULATION


@pytest.mark.parametrize("measure", [sf.loss.euclidean, sf.loss.hamming])
def test_streams_on_a_small_grid_lose_at_most_two_percent_more_than_the_best(measure: Any) -> None:
    chain = walk(6)
    policy = sf.compile_policy(chain, measure(chain.alphabet), 0.5, steps=2048)
    assert policy.solves
    assert policy.report.missed == 0.0
    assert policy.report.steps == 256
    assert policy.report.extra_loss < 0.02
    assert stream_loss(chain, measure(chain.alphabet), policy, 100) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("stay", "epsilon"), [(0.5, 0.3), (0.6, 0.5), (0.9, 0.5), (0.9, 1.0)])
def test_streams_on_a_large_grid_lose_at_most_two_percent_more(stay: float, epsilon: float) -> None:
    chain = walk(16, stay)
    policy = sf.compile_policy(chain, sf.loss.euclidean(chain.alphabet), epsilon)
    assert policy.report.extra_loss < 0.02
    assert stream_loss(chain, sf.loss.euclidean(chain.alphabet), policy, 300) < 0.02


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.02, 0.1, 1.0]))
def test_a_solved_channel_is_never_dearer_than_the_best_constant_nearby(
    seed: int, epsilon: float
) -> None:
    chain, loss = CHAINS["grid of 9"], loss_of("grid of 9")
    belief = np.random.default_rng(seed).dirichlet(0.3 * np.ones(9)) + 1e-6
    share: Floats = belief / belief.sum()
    tables = policy_of("grid of 9").tables
    weights, outputs, _ = solved(tables, chain, Belief(share), (epsilon, math.inf))
    rows = np.array(weights, dtype=np.float64) / 2.0**62
    cost = float(share @ (rows * loss.columns(np.array(outputs))).sum(axis=1))
    assert cost <= float((share @ loss.matrix).min()) * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 1e-2])
def test_a_program_that_ends_dearer_than_silence_is_not_used(epsilon: float) -> None:
    """Where little can be won, the gap at which the small program stops is more than that."""
    chain, draw = walk(6), np.random.default_rng(7)
    loss = sf.loss.hamming(chain.alphabet)
    tables, constants = solving_tables(loss, 8), 0
    for _ in range(20):
        share = draw.dirichlet(np.ones(36))
        weights, outputs, charge = solved(tables, chain, Belief(share), (epsilon, math.inf))
        rows = np.array(weights, dtype=np.float64) / 2.0**62
        cost = float(share @ (rows * loss.columns(np.array(outputs))).sum(axis=1))
        assert cost <= float((share @ loss.matrix).min()) * (1 + 1e-9)
        constants += len(outputs) == 1
        assert (len(outputs) == 1) == (charge == [0.0, 0.0])
    assert constants > 0


def test_far_corners_are_not_what_a_small_budget_says() -> None:
    chain = walk(6)
    loss, belief = sf.loss.euclidean(chain.alphabet), np.full(36, 1 / 36)
    weights, outputs, _ = solved(solving_tables(loss, 8), chain, Belief(belief), (0.3, math.inf))
    rows = np.array(weights, dtype=np.float64) / 2.0**62
    cost = float(belief @ (rows * loss.columns(np.array(outputs))).sum(axis=1))
    floor = sf.solver.optimal(belief, loss, 0.3).lower_bound
    assert floor is not None
    assert cost < 1.006 * floor
    corners = {0, 5, 30, 35}
    assert len(outputs) > 1
    assert not corners & set(outputs)


# Which kind --------------------------------------------------------------------------------------


def kind_of(size: int, kind: str | None = None, **options: Any) -> str:
    chain = sf.MarkovChain.from_matrix(np.full((size, size), 1 / size))
    asked: dict[str, Any] = {"method": Method.OPTIMAL, "epsilon": 0.5, "ldp": None, "price": 0.0}
    given = asked | options
    return chosen_kind(kind, chain, sf.loss.absolute(chain.alphabet), **given).value


def test_large_alphabets_are_solved_and_others_kept() -> None:
    sizes = (2, 32, 33, 2048, 2049)
    assert [kind_of(size) for size in sizes] == ["kept", "kept", "solved", "solved", "kept"]
    assert kind_of(33, "kept") == "kept"
    assert kind_of(2, "solved") == "solved"
    assert kind_of(33, method=Method.RANDOMIZED_RESPONSE) == "kept"
    assert [kind_of(33, ldp=cap) for cap in (1.0, 0.9)] == ["solved", "kept"]


def test_far_sighted_steps_of_few_symbols_are_solved_unless_a_nat_has_a_price() -> None:
    far = Method.FAR_SIGHTED
    kinds = [kind_of(size, method=far) for size in (2, 3, 24, 25)]
    assert kinds == ["kept", "solved", "solved", "kept"]
    assert kind_of(3, method=far, price=0.1) == "kept"
    assert [kind_of(3, method=far, ldp=cap) for cap in (1.0, 0.9)] == ["solved", "kept"]
    with pytest.raises(InvalidParameter, match="and for far-sighted steps on 3 to 24"):
        kind_of(25, "solved", method=far)


def test_what_cannot_be_solved_at_each_step_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="kind must be kept, but for the optimum"):
        kind_of(2, "solved", method=Method.RANDOMIZED_RESPONSE)
    with pytest.raises(InvalidParameter, match="kind must be one of kept, solved"):
        kind_of(2, "both")


def test_loops_that_know_kept_channels_alone_miss_what_they_would_have_to_solve() -> None:
    """Whoever forgets to solve draws nothing, rather than from words that nobody wrote."""
    crowd = StreamArrays.under(policy_of("grid of 9"), CHAINS["grid of 9"], 1)
    crowd._solving = False
    assert crowd.prepare(FIRST, np.array([[1.0, math.inf]])).status[0] == MISSED


# Damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(10))
def test_damaged_tables_are_refused(place: int) -> None:
    policy = policy_of("grid of 9")
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
        (0, (0, 1), SOLVED_ROWS + 1),
        (0, (0, 3), 1),
        (0, (0, 4), 1),
        (3, (0, 1, 2), math.nan),
        (3, (0, 1, 2), -1.0),
        (9, (3,), 9),
        (9, (3,), -1),
    ],
)
def test_entries_that_the_loops_cannot_trust_are_refused(
    place: int, at: tuple[int, ...], entry: float
) -> None:
    policy = policy_of("grid of 9")
    tables: list[Any] = list(policy.tables)
    tables[place] = np.array(tables[place])
    tables[place][at] = entry
    with pytest.raises(InvalidParameter):
        replace(policy, tables=tuple(tables))


def test_the_loss_and_the_number_of_outputs_decide_the_fingerprint() -> None:
    policy = policy_of("grid of 9")
    others = [
        solving_tables(loss_of("grid of 9"), 9),
        solving_tables(sf.loss.hamming(CHAINS["grid of 9"].alphabet), 8),
    ]
    prints = {policy.fingerprint, *(replace(policy, tables=one).fingerprint for one in others)}
    assert len(prints) == 3
