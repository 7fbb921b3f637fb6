"""Leakage under chains that look back on several values, against every sequence in turn."""

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.models.markov import MarkovChain
from sfumato.stream.sequence_table import tabulate
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import chain_leakage, temporal_leakage
from tests.oracles.sequences import told_of_windows, two_levels
from tests.oracles.temporal import randomised_response, reversed_steps

Floats = NDArray[np.float64]

REMEMBERING = MarkovChain.from_matrix([[0.48, 0.52], [0.05, 0.95], [0.22, 0.78], [0.05, 0.95]])
ROUNDING = 1e-9
"""Of the oracle, whose sums are plain floats."""


def random_chain(rng: np.random.Generator, order: int, size: int) -> MarkovChain:
    """Even, uneven and nearly deterministic rows; beginnings that are stationary or anything."""
    weight = rng.choice([5.0, 1.0, 0.3, 0.05])
    rows = rng.dirichlet(np.full(size, weight), size**order) + 1e-9
    rows = rows / rows.sum(axis=1, keepdims=True)
    if weight >= 1 and rng.random() < 0.5:
        return MarkovChain.from_matrix(rows)
    start = rng.dirichlet(np.full(size**order, 0.5)).reshape((size,) * order)
    return MarkovChain.from_matrix(rows, initial=start)


def holed_chain(rng: np.random.Generator, order: int, size: int) -> MarkovChain:
    """Some followers and beginnings are impossible."""
    rows = rng.dirichlet(np.ones(size), size**order) * (rng.random((size**order, size)) < 0.6)
    rows[rows.sum(axis=1) == 0, 0] = 1.0
    start = rng.dirichlet(np.ones(size**order)) * (rng.random(size**order) < 0.6)
    start = np.where(start.sum() > 0, start, 1.0)
    rows, start = rows / rows.sum(axis=1, keepdims=True), start / start.sum()
    return MarkovChain.from_matrix(rows, initial=start.reshape((size,) * order))


def random_channel(rng: np.random.Generator, size: int, epsilon: float) -> Floats:
    if rng.random() < 0.5:
        return randomised_response(size, epsilon)
    large = {value for value in range(size) if rng.random() < 0.5}
    return two_levels(size, epsilon, large, rng.choice([1.0, 1e-3]) / (1 + np.exp(epsilon)))


def check_windows(rng: np.random.Generator, order: int) -> None:
    """Of one random release, every window."""
    size = 3 if order < 3 and rng.random() < 0.3 else 2
    length = int(rng.integers(1, 5 if size == 3 else 7))
    chain = (holed_chain if rng.random() < 0.3 else random_chain)(rng, order, size)
    epsilons = rng.uniform(0.0, rng.choice([0.3, 3.0]), length) * (rng.random(length) < 0.8)
    channels = [random_channel(rng, size, float(epsilon)) for epsilon in epsilons]
    exact = told_of_windows(chain.initial, chain.transition(), channels)
    told = chain_leakage(chain, epsilons)
    for (first, width), truth in exact.items():
        assert told.windows(width)[first] >= truth - ROUNDING, (order, size, first, width)
    assert told.user.alpha >= epsilons.sum()


# Against every sequence ---------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_no_window_of_any_chain_tells_more_than_stated(order: int, seed: int) -> None:
    check_windows(np.random.default_rng([order, seed]), order)


@pytest.mark.parametrize("seed", [14, 110, 288, 298, 338, 341])
def test_what_is_told_of_tuples_that_cannot_occur_never_lowers_a_bound(seed: int) -> None:
    """Two ways to a window say different things of an impossible tuple; neither may be used."""
    rng = np.random.default_rng([5, seed])
    chain = holed_chain(rng, 3, 2)
    epsilons = rng.uniform(0.0, 3.0, 6)
    channels = [random_channel(rng, 2, float(epsilon)) for epsilon in epsilons]
    told = chain_leakage(chain, epsilons)
    for (first, width), truth in told_of_windows(
        chain.initial, chain.transition(), channels
    ).items():
        assert told.windows(width)[first] >= truth - ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("block", range(10))
def test_no_window_of_thousands_of_chains_tells_more_than_stated(order: int, block: int) -> None:
    rng = np.random.default_rng([17, order, block])
    for _ in range(150):
        check_windows(rng, order)


def test_randomised_response_of_two_values_comes_near_the_bound() -> None:
    found = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        chain, epsilons = random_chain(rng, 2, 2), rng.uniform(0.0, 3.0, 4)
        channels = [randomised_response(2, float(epsilon)) for epsilon in epsilons]
        exact = told_of_windows(chain.initial, chain.transition(), channels)
        told = chain_leakage(chain, epsilons)
        found += [told.windows(width)[first] / truth for (first, width), truth in exact.items()]
    assert np.median(found) < 1.02
    assert np.quantile(found, 0.9) < 1.2


def test_past_and_future_told_of_a_moment_do_not_add_up_at_order_two() -> None:
    epsilons = [1.1, 1.8, 1.0]
    channels = [randomised_response(2, epsilon) for epsilon in epsilons]
    exact = told_of_windows(REMEMBERING.initial, REMEMBERING.transition(), channels)
    told = chain_leakage(REMEMBERING, epsilons)
    assert exact[1, 1] == pytest.approx(2.57686, abs=1e-5)
    assert exact[1, 1] <= told.event.alpha <= exact[1, 1] * (1 + 1e-9)
    assert told.backward[1] + told.forward[1] - epsilons[1] < exact[1, 1] - 0.05


def test_the_bound_is_that_of_the_whole_table_where_one_mechanism_is_the_worst() -> None:
    response = [Channel.from_probabilities(randomised_response(2, e)) for e in (1.1, 1.8, 1.0)]
    table = tabulate(REMEMBERING, lambda released: response[len(released)], 3)
    told = chain_leakage(REMEMBERING, [1.1, 1.8, 1.0]).event.alpha
    assert told == pytest.approx(table.pufferfish_leakage(), rel=1e-9)


def test_a_window_narrower_than_what_the_chain_looks_back_on_is_bounded_over_contexts() -> None:
    chain = MarkovChain.from_matrix([[0.5, 0.5], [0.1, 0.9], [0.1, 0.9], [0.1, 0.9]])
    channels = [randomised_response(2, epsilon) for epsilon in (2.0, 0.0, 2.0)]
    exact = told_of_windows(chain.initial, chain.transition(), channels)
    told = chain_leakage(chain, [2.0, 0.0, 2.0]).window(2).alpha
    assert max(exact[0, 2], exact[1, 2]) == pytest.approx(2.9398, abs=1e-4)
    assert max(exact[0, 2], exact[1, 2]) <= told < 2.93976


# Chains that look back on less --------------------------------------------------------------------


@pytest.mark.parametrize("order", [2, 3])
def test_a_chain_told_at_a_higher_order_leaks_the_same(order: int) -> None:
    chain = MarkovChain.from_matrix([[0.7, 0.3], [0.2, 0.8]])
    epsilons = [0.3, 0.1, 0.0, 0.5, 0.2, 0.4]
    once, again = chain_leakage(chain, epsilons), chain_leakage(chain.lifted(order), epsilons)
    for width in range(1, 7):
        assert again.windows(width) == pytest.approx(once.windows(width), rel=1e-9)


def test_without_memory_nothing_is_added() -> None:
    rows = np.full((8, 2), 0.5)
    epsilons = np.random.default_rng(1).random(20)
    told = chain_leakage(MarkovChain.from_matrix(rows), epsilons)
    assert told.total == pytest.approx(epsilons, rel=1e-9)
    assert np.all(told.total >= epsilons)


def test_at_order_one_a_beginning_that_is_not_stationary_is_told_step_by_step() -> None:
    rows, start, epsilons = [[0.9, 0.1], [0.3, 0.7]], [0.99, 0.01], [0.3, 0.1, 0.0, 0.5, 0.2]
    told = chain_leakage(MarkovChain.from_matrix(rows, initial=start), epsilons)
    losses = [LossFunction.of(matrix) for matrix in reversed_steps(rows, start, 4)]
    added = temporal_leakage(epsilons, losses, LossFunction.of(rows))
    assert told.backward == pytest.approx(added.backward, rel=1e-9)
    assert told.forward == pytest.approx(added.forward, rel=1e-9)
    assert np.all(told.total <= added.total * (1 + 1e-9))


# Shape --------------------------------------------------------------------------------------------


def test_a_long_sequence_settles_and_a_wider_window_tells_no_less() -> None:
    told = chain_leakage(REMEMBERING, [0.1] * 120)
    assert told.total[60] == pytest.approx(told.total[61], rel=1e-6)
    assert told.event.alpha < 0.21
    widths = [told.window(width).alpha for width in range(1, 121)]
    assert widths == sorted(widths)
    assert told.user.alpha == pytest.approx(12.0)


def test_one_value_or_one_release_tells_what_it_tells() -> None:
    alone = MarkovChain.from_matrix([[1.0]])
    assert chain_leakage(alone, [0.5]).event.alpha >= 0.5
    told = chain_leakage(REMEMBERING, [0.5])
    assert told.event.alpha == pytest.approx(0.5, rel=1e-12)
    assert told.user == told.event


def test_contexts_that_cannot_occur_are_no_secrets() -> None:
    rows = [[0.5, 0.5], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]
    start = [[0.5, 0.5], [0.0, 0.0]]
    chain = MarkovChain.from_matrix(rows, initial=start)
    epsilons = [0.7, 0.2, 0.9, 0.4]
    exact = told_of_windows(
        chain.initial, chain.transition(), [randomised_response(2, e) for e in epsilons]
    )
    told = chain_leakage(chain, epsilons)
    for (first, width), truth in exact.items():
        assert truth - ROUNDING <= told.windows(width)[first] <= sum(epsilons) * (1 + 1e-12)


def test_a_chain_with_too_many_contexts_is_refused() -> None:
    rows = np.full((32**2, 32), 1 / 32)
    with pytest.raises(InvalidParameter, match="at most 512 contexts"):
        chain_leakage(MarkovChain.from_matrix(rows), [0.1, 0.1])
    with pytest.raises(InvalidParameter, match="fewer over a long time"):
        chain_leakage(MarkovChain.from_matrix(np.full((256, 16), 1 / 16)), [0.1] * 1000)
