"""Randomised response among the values that can follow, and what two answers leak in fact."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.core.local_leakage import local_leakage
from sfumato.temporal.temporal_response import temporal_response, temporal_response_leakage

Floats = NDArray[np.float64]

WALK = [[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]]
FULL = [[0.6, 0.3, 0.1], [0.2, 0.3, 0.5], [0.1, 0.5, 0.4]]


def answers(row: Floats, value: int, size: int, epsilon: float) -> Floats:
    """Probabilities of all answers, by definition: even among the followers but for the value."""
    told = np.zeros(size)
    followers = [place for place in range(size) if row[place] > 0]
    for place in followers:
        told[place] = math.exp(epsilon) if place == value else 1.0
    return np.asarray(told / told.sum())


def exact_leakages(chain: Floats, prior: Floats, epsilon: float) -> tuple[float, float]:
    """Both leakages of two answers, over the joint table of two values and two answers."""
    size = len(chain)
    even = np.ones(size)
    tables, chances = [], []
    for first, second in itertools.product(range(size), repeat=2):
        if chain[first, second] > 0:
            chances.append(prior[first] * chain[first, second])
            tables.append(
                np.outer(
                    answers(even, first, size, epsilon),
                    answers(chain[first], second, size, epsilon),
                ).ravel()
            )
    table, share = np.array(tables), np.array(chances)
    table = table[:, table.max(axis=0) > 0]
    marginal = share @ table
    with np.errstate(divide="ignore"):
        local = float(np.max(np.log(table.max(axis=0)) - np.log(table.min(axis=0))))
        told = float(np.max(np.abs(np.log(table) - np.log(marginal))))
    return told, local


@st.composite
def full_chains(draw: st.DrawFn) -> tuple[Floats, Floats]:
    size = draw(st.integers(2, 4))
    entry = st.floats(0.01, 1.0)
    rows = np.array(
        draw(st.lists(st.lists(entry, min_size=size, max_size=size), min_size=size, max_size=size))
    )
    prior = np.array(draw(st.lists(entry, min_size=size, max_size=size)))
    return rows / rows.sum(axis=1, keepdims=True), prior / prior.sum()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("chain", [WALK, FULL])
def test_each_channel_is_randomised_response_among_the_followers(
    chain: list[list[float]], epsilon: float
) -> None:
    rows = np.array(chain)
    for row, channel in zip(rows, temporal_response(chain, epsilon), strict=True):
        followers = np.flatnonzero(row > 0)
        assert channel.outputs.tolist() == followers.tolist()
        for value in followers:
            wanted = answers(row, int(value), len(rows), epsilon)[followers]
            assert channel.probabilities[value] == pytest.approx(wanted, rel=1e-9)


def test_a_value_that_cannot_follow_is_answered_evenly() -> None:
    channel = temporal_response(WALK, 1.0)[0]
    assert channel.probabilities[2] == pytest.approx([0.5, 0.5], rel=1e-12)


@settings(max_examples=30)
@given(full_chains(), st.floats(0.01, 10.0))
def test_one_answer_keeps_its_claim_if_the_previous_value_is_public(
    chain: tuple[Floats, Floats], epsilon: float
) -> None:
    for channel in temporal_response(chain[0], epsilon):
        assert local_leakage(channel).epsilon <= epsilon


@settings(max_examples=30)
@given(full_chains(), st.floats(0.01, 4.0))
def test_two_answers_leak_what_the_joint_table_says(
    chain: tuple[Floats, Floats], epsilon: float
) -> None:
    told, local = temporal_response_leakage(*chain, epsilon)
    wanted = exact_leakages(*chain, epsilon)
    assert told.epsilon == pytest.approx(wanted[0], rel=1e-9)
    assert local.epsilon == pytest.approx(wanted[1], rel=1e-9)
    assert told.epsilon <= local.epsilon


def test_where_followers_differ_an_answer_rules_values_out_for_good() -> None:
    prior = [1 / 3] * 3
    told, local = temporal_response_leakage(WALK, prior, 0.1)
    assert told.epsilon == local.epsilon == math.inf
    assert exact_leakages(np.array(WALK), np.array(prior), 0.1) == (math.inf, math.inf)


def test_where_all_values_have_the_same_followers_both_answers_add_up() -> None:
    told, local = temporal_response_leakage(FULL, [1 / 3] * 3, 0.7)
    assert local.epsilon == pytest.approx(1.4, rel=1e-9)
    assert told.epsilon < 1.4


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, 41.0])
def test_a_budget_that_is_none_is_refused(epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        temporal_response(WALK, epsilon)
    with pytest.raises(InvalidParameter, match="epsilon"):
        temporal_response_leakage(WALK, [1 / 3] * 3, epsilon)


@pytest.mark.parametrize(
    ("chain", "prior"),
    [([[0.5, 0.6], [0.5, 0.5]], [0.5, 0.5]), (FULL, [0.5, 0.5]), (FULL, [1.0, 0.0, 0.0])],
)
def test_what_is_no_chain_or_no_prior_is_refused(chain: Any, prior: Any) -> None:
    with pytest.raises(InvalidParameter):
        temporal_response_leakage(chain, prior, 1.0)


# Found broken -------------------------------------------------------------------------------------


def test_a_matrix_that_is_not_square_is_refused() -> None:
    for chain in ([[0.2, 0.3, 0.5], [0.3, 0.3, 0.4]], [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]]):
        with pytest.raises(InvalidParameter):
            temporal_response(chain, 1.0)
