import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import Policy
from sfumato.core.belief import Belief
from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.solver.policy import PolicyChannel, Tables
from sfumato.stream import local_leakage
from sfumato.stream.fleet_arrays import PREPARED, StreamArrays
from tests.compiled import (
    CHAINS,
    WHOLE,
    Floats,
    broken_law,
    exact_shares,
    kept_rows,
    mixed_weights,
    policy_of,
)
from tests.strategies import beliefs, positive_channels

NAME = "dense, order 1"
TABLES = (
    "nodes",
    "local",
    "row_of",
    "costs",
    "weights",
    "outputs",
    "extremes",
    "splits",
    "thresholds",
    "candidates",
)
TRIED = [
    [0.2, 0.3, 0.5],
    [0.98, 0.01, 0.01],
    [1e-6, 0.5, 0.499999],
    [1 / 3, 1 / 3, 1 / 3],
    [0.1, 0.1, 0.8],
]


def damaged(policy: Policy, changes: dict[int, Any]) -> Policy:
    tables: list[Any] = [table.copy() for table in policy.tables]
    for place, table in changes.items():
        tables[place] = table
    made: Any = tuple(tables)
    return replace(policy, tables=made)


def harmless(policy: Policy) -> bool:
    """Whether every channel that it prepares is worth at most its price, at several beliefs."""
    crowd = StreamArrays(CHAINS[NAME], policy.tables, policy.repair_limit, 1)
    for told in TRIED:
        for allowed in ((1.0, math.inf), (0.3, 0.4)):
            crowd.put(0, 0, Belief(np.array(told)))
            step = crowd.prepare(np.zeros(1, dtype=np.int64), np.array([allowed]))
            if step.status[0] != PREPARED:
                continue
            node, parts = int(step.chosen[0]), int(step.parts[0])
            weights = mixed_weights(policy.tables, node, parts, step.blends[0].tolist())
            shares = exact_shares(np.array(told), 0)
            if broken_law(weights, shares, step.charges[0].tolist(), allowed) is not None:
                return False
            rebuilt = policy.channel(node, parts, step.blends[0]).weights.tolist()
            if rebuilt != weights:
                return False
    return True


# Damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(len(TABLES)), ids=TABLES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_damaged_entry_is_refused_or_does_no_harm(place: int, data: st.DataObject) -> None:
    policy = policy_of(NAME)
    table: Any = policy.tables[place].copy()
    flat = table.reshape(-1)
    entry = data.draw(st.integers(0, flat.size - 1))
    old = flat[entry]
    if table.dtype == np.float64:
        worst = [math.nan, math.inf, -math.inf, 0.0, -1.0, 1e308, float(old) / 2]
        amount = st.sampled_from([*worst, float(old) + 1, float(old) - 1]) | st.floats()
        flat[entry] = data.draw(amount)
    else:
        limits = np.iinfo(table.dtype)
        near = [int(old) + 1, int(old) - 1, 0, -1, limits.max, limits.min]
        least, most = int(limits.min), int(limits.max)
        told = data.draw(st.sampled_from(near) | st.integers(-3, 40))
        flat[entry] = min(max(told, least), most)
    try:
        made = damaged(policy, {place: table})
    except InvalidParameter:
        note("refused")
        return
    note("accepted")
    assert harmless(made)


@pytest.mark.parametrize("name", ["weights", "extremes", "local", "nodes"])
def test_what_a_certificate_rests_on_is_refused_if_any_entry_is_off(name: str) -> None:
    policy, place = policy_of(NAME), TABLES.index(name)
    table = policy.tables[place]
    for entry in range(0, table.size, max(1, table.size // 50)):
        wrong = table.copy()
        wrong.reshape(-1)[entry] += 1
        with pytest.raises(InvalidParameter):
            damaged(policy, {place: wrong})


def test_a_row_sum_that_is_off_by_one_is_refused_even_with_extremes_to_match() -> None:
    policy = policy_of(NAME)
    nodes, _, _, _, weights, _, extremes, *_ = (table.copy() for table in policy.tables)
    node = int(np.flatnonzero((nodes[:, 1] > 1) & (nodes[:, 4] > 1))[0])
    weights[nodes[node, 0], 0] += 1
    rows = weights[nodes[node, 0] : nodes[node, 0] + nodes[node, 1], 0]
    extremes[nodes[node, 2]] = rows.max(), rows.min()
    with pytest.raises(InvalidParameter, match=r"must have different rows that sum to 2\*\*40"):
        damaged(policy, {4: weights, 6: extremes})


def test_a_tree_must_lead_to_a_leaf() -> None:
    policy = policy_of(NAME)
    splits, thresholds, candidates = policy.tables[7:]
    assert len(splits) > 3
    circle, outside, uneven = splits.copy(), splits.copy(), splits.copy()
    circle[1] = [0, 0, 1]
    outside[0] = [0, len(splits), len(splits) + 1]
    uneven[0, 2] += 1
    itself = splits.copy()
    itself[0] = [0, 0, 1]
    for wrong in (circle, outside, uneven, itself):
        with pytest.raises(InvalidParameter, match=r"policy\.tables must be those of a compiled"):
            damaged(policy, {7: wrong})
    empty = splits.copy()
    leaf = int(np.flatnonzero(splits[:, 0] < 0)[0])
    empty[leaf, 2] = empty[leaf, 1]
    beyond = splits.copy()
    beyond[leaf, 2] = candidates.size + 1
    for wrong in (empty, beyond):
        with pytest.raises(InvalidParameter):
            damaged(policy, {7: wrong})
    for wrong_candidate in (-1, policy.channels):
        with pytest.raises(InvalidParameter):
            damaged(
                policy, {9: np.where(np.arange(candidates.size) == 0, wrong_candidate, candidates)}
            )
    assert harmless(damaged(policy, {8: np.full(thresholds.shape, math.nan)}))


@pytest.mark.parametrize("place", range(len(TABLES)), ids=TABLES)
@pytest.mark.parametrize("shape", ["flat", "deeper", "shorter", "wider", "empty", "one number"])
def test_a_table_of_another_shape_is_refused(place: int, shape: str) -> None:
    policy = policy_of(NAME)
    table: Any = policy.tables[place]
    match shape:
        case "flat":
            wrong = table.reshape(-1)
        case "deeper":
            wrong = table[..., None]
        case "shorter":
            wrong = table[:-1]
        case "wider":
            wrong = np.concatenate([table, table], axis=-1)
        case "empty":
            wrong = table[:0]
        case _:
            wrong = np.array(table.flat[0])
    if wrong.shape == table.shape:
        return
    if TABLES[place] == "candidates" and shape == "wider":
        assert harmless(damaged(policy, {place: wrong}))
        return
    with pytest.raises(InvalidParameter):
        damaged(policy, {place: wrong})


@pytest.mark.parametrize("count", [0, 9, 11])
def test_another_number_of_tables_is_refused(count: int) -> None:
    policy = policy_of(NAME)
    wrong: Any = (policy.tables * 2)[:count]
    with pytest.raises(InvalidParameter, match=r"policy\.tables must be 10 arrays"):
        replace(policy, tables=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": 41.0},
        {"ldp": -1.0},
        {"ldp": math.inf},
        {"repair_limit": 0.0},
        {"repair_limit": math.nan},
    ],
)
def test_amounts_that_promise_nothing_are_refused(wrong: dict[str, float]) -> None:
    changes: dict[str, Any] = dict(wrong)
    with pytest.raises(InvalidParameter):
        replace(policy_of(NAME), **changes)


# What it is --------------------------------------------------------------------------------------


def test_nobody_can_write_to_a_policy() -> None:
    policy = policy_of(NAME)
    for table in policy.tables:
        with pytest.raises(ValueError, match="read-only"):
            table.reshape(-1)[0] = 0
    mine: list[Any] = [table.copy() for table in policy.tables]
    given_away: Any = tuple(mine)
    kept = replace(policy, tables=given_away)
    mine[4][:] = 7
    assert kept.fingerprint == policy.fingerprint
    assert harmless(kept)


def test_a_fingerprint_tells_policies_apart() -> None:
    policy = policy_of(NAME)
    others: list[Policy] = [
        replace(policy, chain="another"),
        replace(policy, loss="another"),
        replace(policy, method="context-free"),
        replace(policy, epsilon=0.5),
        replace(policy, ldp=2.0),
        replace(policy, repair_limit=0.3),
        damaged(policy, {8: policy.tables[8] + 1e-3}),
        damaged(policy, {3: policy.tables[3] + 1e-3}),
    ]
    prints = {policy.fingerprint, *(other.fingerprint for other in others)}
    assert len(prints) == len(others) + 1
    assert replace(policy).fingerprint == policy.fingerprint


@given(positive_channels(), st.data())
def test_a_kept_channel_is_the_given_one_to_a_few_units(
    channel: Channel, data: st.DataObject
) -> None:
    belief: Floats = data.draw(beliefs(channel.size))
    loss = np.ones(channel.weights.shape)
    kept = PolicyChannel.of(channel, belief, loss)
    rows = kept.weights[kept.row_of]
    assert (rows.sum(axis=1) == 2**40).all()
    assert rows.min() >= 1
    assert np.abs(rows / 2**40 - channel.probabilities).max() <= 2 * channel.size / 2**40
    assert kept.ldp == local_leakage(Channel(rows * WHOLE, channel.outputs)).epsilon
    assert kept.costs == pytest.approx(np.ones((2, channel.size)))


def test_a_policy_says_what_it_holds() -> None:
    policy = policy_of(NAME)
    tables: Tables = policy.tables
    assert policy.channels == len(tables[0]) > 1
    assert policy.memory == sum(table.nbytes for table in tables)
    assert policy.allowed == (1.0, math.inf)
    assert replace(policy, ldp=1.5).allowed == (1.0, 1.5)
    for node in range(policy.channels):
        channel = policy.channel(node)
        assert channel.weights.tolist() == [
            [WHOLE * w for w in row] for row in kept_rows(tables, node)
        ]
        assert channel.outputs.tolist() == policy.outputs(node).tolist()
        assert len(policy.outputs(node)) <= policy.width
