import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato import Channel, MarkovChain
from sfumato.core.errors import InvalidParameter
from sfumato.stream import SequenceTable, tabulate
from tests.oracles.joint import (
    JointTable,
    Symbols,
    joint_table,
    local_leakage,
    mutual_information,
    pufferfish_leakage,
    sequence_leakage,
)

Policy = Callable[[Symbols], Channel]


def random_rows(
    draw: np.random.Generator, count: int, size: int, floor: float
) -> NDArray[np.float64]:
    return np.asarray((1 - floor) * draw.dirichlet(np.ones(size), count) + floor / size)


def random_policy(size: int, seed: int) -> Policy:
    """A channel that depends on all outputs so far; some leave outputs out, some rename them."""

    def channel(told: Symbols) -> Channel:
        draw = np.random.default_rng([seed, len(told), *told])
        outputs = draw.permutation(size)[: draw.integers(2, size + 1)]
        return Channel.from_probabilities(random_rows(draw, size, len(outputs), 0.05), outputs)

    return channel


@st.composite
def cases(draw: st.DrawFn) -> tuple[MarkovChain, Policy, int]:
    seed = draw(st.integers(0, 2**32))
    size, order, length = draw(
        st.sampled_from(
            [(2, 1, 1), (2, 1, 4), (3, 1, 3), (2, 2, 1), (2, 2, 4), (3, 2, 3), (2, 3, 4)]
        )
    )
    random = np.random.default_rng(seed)
    initial = random_rows(random, 1, size**order, 0.1).reshape((size,) * order)
    chain = MarkovChain.from_matrix(
        random_rows(random, size**order, size, 0.0), initial, floor=0.01
    )
    event(f"{size} symbols, order {order}, {length} steps")
    return chain, random_policy(size, seed), length


def oracle(chain: MarkovChain, policy: Policy, length: int) -> JointTable:
    contexts = list(itertools.product(range(chain.size), repeat=chain.order))
    moves = dict(zip(contexts, chain.transition().tolist(), strict=True))
    starts = {context: float(chain.initial[context]) for context in contexts}

    def rows(told: Symbols) -> tuple[list[list[float]], list[int]]:
        channel = policy(told)
        return channel.probabilities.tolist(), channel.outputs.tolist()

    return joint_table(chain.size, length, starts, moves, rows)


@settings(max_examples=20)
@given(cases())
def test_every_notion_equals_brute_force(case: tuple[MarkovChain, Policy, int]) -> None:
    table, expected = tabulate(*case), oracle(*case)
    for found, brute in (
        (table.information_leakage(), sequence_leakage(expected)),
        (table.local_leakage(), local_leakage(expected)),
        (table.mutual_information(), mutual_information(expected)),
        (table.pufferfish_leakage(), pufferfish_leakage(expected)),
    ):
        assert found == pytest.approx(brute, rel=1e-9, abs=1e-12)


@settings(max_examples=30)
@given(cases())
def test_notions_bound_each_other(case: tuple[MarkovChain, Policy, int]) -> None:
    table = tabulate(*case)
    moved, free = table.information_leakage(), table.local_leakage()
    assert moved <= free * (1 + 1e-12)
    assert free <= 2 * moved * (1 + 1e-12)
    assert table.mutual_information() <= moved
    assert table.pufferfish_leakage() <= free * (1 + 1e-12)


@settings(max_examples=30)
@given(cases())
def test_rows_and_prior_are_distributions(case: tuple[MarkovChain, Policy, int]) -> None:
    table = tabulate(*case)
    assert table.prior.sum() == pytest.approx(1.0)
    assert table.rows.sum(axis=1) == pytest.approx(np.ones(len(table.prior)))
    assert table.rows.shape[0] == table.size**table.length


@settings(max_examples=30)
@given(cases())
def test_mutual_information_is_below_the_largest_divergence(
    case: tuple[MarkovChain, Policy, int],
) -> None:
    table = tabulate(*case)
    moved = table.information_leakage()
    assert table.mutual_information() <= moved * math.tanh(moved / 2) * (1 + 1e-9)


def test_pufferfish_can_leak_more_than_a_single_step_would() -> None:
    # One value seen twice through the same noise, because the chain hardly ever moves.
    still = MarkovChain.from_matrix([[0.999, 0.001], [0.001, 0.999]])
    noisy = Channel.from_probabilities([[0.75, 0.25], [0.25, 0.75]])
    table = tabulate(still, lambda told: noisy, 2)
    assert table.pufferfish_leakage() > 1.9 * math.log(3)
    apart = MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]])
    assert tabulate(apart, lambda told: noisy, 2).pufferfish_leakage() == pytest.approx(math.log(3))


def test_a_silent_release_leaks_nothing_under_any_notion() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    table = tabulate(chain, lambda told: Channel.constant(2, 0), 3)
    leaked = (
        table.information_leakage(),
        table.local_leakage(),
        table.mutual_information(),
        table.pufferfish_leakage(),
    )
    assert leaked == pytest.approx((0.0, 0.0, 0.0, 0.0), abs=1e-12)


def test_telling_the_truth_leaks_without_bound() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    table = tabulate(chain, lambda told: Channel.from_probabilities(np.eye(2)), 2)
    assert table.information_leakage() == table.local_leakage() == math.inf
    assert table.pufferfish_leakage() == math.inf
    assert 0 < table.mutual_information() < math.inf


def test_tables_that_no_memory_can_hold_are_refused() -> None:
    chain = MarkovChain.from_matrix(np.full((4, 4), 0.25))
    with pytest.raises(InvalidParameter, match="length must keep"):
        tabulate(chain, lambda told: Channel.constant(4, 0), 7)


def test_a_chain_that_calls_values_impossible_is_refused() -> None:
    chain = MarkovChain.from_matrix([[1.0, 0.0], [0.5, 0.5]], [0.5, 0.5])
    with pytest.raises(InvalidParameter, match=r"chain\.floor must be greater than 0"):
        tabulate(chain, lambda told: Channel.constant(2, 0), 2)


@pytest.mark.parametrize("length", [0, -1])
def test_a_release_has_at_least_one_step(length: int) -> None:
    with pytest.raises(InvalidParameter, match="length"):
        tabulate(
            MarkovChain.from_matrix([[0.5, 0.5]] * 2), lambda told: Channel.constant(2, 0), length
        )


def test_a_table_can_be_written_down_by_hand() -> None:
    rows = np.array([[0.6, 0.4], [0.3, 0.7]])
    table = SequenceTable(2, 1, np.array([0.5, 0.5]), rows)
    assert table.information_leakage() == pytest.approx(math.log(0.45 / 0.3))
    assert table.local_leakage() == pytest.approx(math.log(2))
