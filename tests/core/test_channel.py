import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.randomness import seeded
from tests.oracles.exact_leakage import exact_local_leakage, exact_ratios
from tests.strategies import Floats, channels, channels_and_beliefs, losses, stochastic_matrices

WHOLE = 2**62
ALPHA = 1e-6  # false alarm rate of each statistical test
SAMPLES = 20_000
WRONG_BY = 0.3  # a sampler with a parameter off by this factor must be caught


def words_of(coins: list[int]) -> NDArray[np.uint64]:
    return np.array([coin << 2 for coin in coins], dtype=np.uint64)


@given(stochastic_matrices())
def test_every_row_sums_to_two_to_the_62(rows: Floats) -> None:
    weights = Channel.from_probabilities(rows).weights.tolist()
    assert [sum(row) for row in weights] == [WHOLE] * len(rows)
    assert min(min(row) for row in weights) >= 0


@given(stochastic_matrices())
def test_weights_stay_next_to_the_probabilities(rows: Floats) -> None:
    channel = Channel.from_probabilities(rows)
    dense = np.zeros_like(rows)
    dense[:, channel.outputs] = channel.probabilities
    assert dense == pytest.approx(rows, abs=1e-14)


def test_an_output_that_cannot_occur_is_left_out() -> None:
    channel = Channel.from_probabilities([[0.5, 0.0, 0.5], [1.0, 0.0, 0.0]])
    assert channel.outputs.tolist() == [0, 2]
    with pytest.raises(InvalidParameter, match="be one that the channel can release"):
        channel.likelihood(1)


@given(channels_and_beliefs())
def test_marginal_ratios_and_posterior_follow_bayes(pair: tuple[Channel, Floats]) -> None:
    channel, belief = pair
    kernel = [[weight / WHOLE for weight in row] for row in channel.weights.tolist()]
    symbols = range(channel.size)
    for column, output in enumerate(channel.outputs.tolist()):
        total = sum(belief[x] * kernel[x][column] for x in symbols)
        assert channel.marginal(belief)[column] == pytest.approx(total, rel=1e-12)
        likelihood, posterior = channel.likelihood(output), channel.posterior(belief, output)
        for x in symbols:
            ratio = kernel[x][column] / total
            assert likelihood[x] == pytest.approx(kernel[x][column], rel=1e-15)
            assert channel.ratios(belief)[x, column] == pytest.approx(ratio, rel=1e-12)
            assert posterior[x] == pytest.approx(belief[x] * ratio, rel=1e-12)


@given(channels_and_beliefs(), st.data())
def test_expected_loss_is_the_sum_over_all_pairs(
    pair: tuple[Channel, Floats], data: st.DataObject
) -> None:
    channel, belief = pair
    told = channel.outputs % channel.size
    channel = channel.merged(told.tolist())
    loss = data.draw(losses(channel.size))
    total = 0.0
    for x, (column, y) in itertools.product(
        range(channel.size), enumerate(channel.outputs.tolist())
    ):
        total += belief[x] * (int(channel.weights[x, column]) / WHOLE) * loss[x, y]
    assert channel.expected_loss(belief, loss) == pytest.approx(total, rel=1e-12, abs=1e-15)


@given(channels_and_beliefs(), st.data())
def test_merging_adds_weights_and_never_raises_leakage(
    pair: tuple[Channel, Floats], data: st.DataObject
) -> None:
    channel, belief = pair
    names = st.integers(0, len(channel.outputs))
    told = data.draw(st.lists(names, min_size=len(channel.outputs), max_size=len(channel.outputs)))
    merged = channel.merged(told)
    assert merged.outputs.tolist() == sorted(set(told))
    for x, (column, name) in itertools.product(
        range(channel.size), enumerate(merged.outputs.tolist())
    ):
        parts = [int(channel.weights[x, j]) for j, to in enumerate(told) if to == name]
        assert int(merged.weights[x, column]) == sum(parts)
    before, after = (exact_ratios(c.weights, belief.tolist()) for c in (channel, merged))
    assert min(before) <= min(after) <= max(after) <= max(before)
    assert exact_local_leakage(merged.weights) <= exact_local_leakage(channel.weights)


@given(channels(), st.data())
def test_each_output_owns_exactly_its_weight_of_coins(
    channel: Channel, data: st.DataObject
) -> None:
    x = data.draw(st.integers(0, channel.size - 1))
    start = 0
    for weight, output in zip(channel.weights[x].tolist(), channel.outputs, strict=True):
        if weight:
            ends = [start, start + weight - 1]
            assert channel.draw([x, x], words_of(ends)).tolist() == [output, output]
        start += weight
    assert start == WHOLE


@given(channels(), st.integers(0, WHOLE - 1))
def test_the_two_lowest_bits_of_a_word_do_not_matter(channel: Channel, coin: int) -> None:
    words = np.array([(coin << 2) + low for low in range(4)], dtype=np.uint64)
    assert len(set(channel.draw([0] * 4, words).tolist())) == 1


@given(channels(), st.data())
def test_one_at_a_time_equals_many_at_a_time(channel: Channel, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(0, channel.size - 1), max_size=20))
    words = seeded(data.draw(st.integers(0, 1000))).words(len(values))
    many = channel.draw(values, words)
    one = [channel.draw(value, words[i : i + 1])[0] for i, value in enumerate(values)]
    assert many.tolist() == one


def response(epsilon: float, size: int) -> Floats:
    kernel = np.ones((size, size)) + (np.exp(epsilon) - 1) * np.eye(size)
    return np.asarray(kernel / kernel.sum(axis=1, keepdims=True))


def p_value(counts: NDArray[np.int64], epsilon: float) -> float:
    expected = response(epsilon, counts.size)[1] * counts.sum()
    return float(stats.chisquare(counts, expected).pvalue)


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_sampler_follows_its_weights_and_no_neighbouring_ones(
    epsilon: float, rng: np.random.Generator
) -> None:
    channel = Channel.from_probabilities(response(epsilon, 4))
    words = rng.integers(0, 2**64, size=SAMPLES, dtype=np.uint64)
    counts = np.bincount(channel.draw(np.ones(SAMPLES, dtype=np.int64), words), minlength=4)
    assert p_value(counts, epsilon) > ALPHA
    assert p_value(counts, epsilon * (1 - WRONG_BY)) < ALPHA
    assert p_value(counts, epsilon * (1 + WRONG_BY)) < ALPHA


@pytest.mark.parametrize("value", [717, -717])
def test_refuses_a_value_outside_and_does_not_quote_it(value: int) -> None:
    channel = Channel.from_probabilities(np.eye(3))
    with pytest.raises(UnknownSymbol, match="one of the 3 symbols") as refusal:
        channel.draw([0, value], words_of([0, 0]))
    assert "717" not in str(refusal.value)


def test_refuses_another_number_of_words_than_values() -> None:
    with pytest.raises(InvalidParameter, match="words must be one per value"):
        Channel.constant(2, 0).draw([0, 1], words_of([0]))


@pytest.mark.parametrize(
    ("weights", "rule"),
    [
        ([[WHOLE - 1]], r"sum to 2\*\*62 in every row"),
        ([[WHOLE], [WHOLE - 1]], r"sum to 2\*\*62 in every row"),
        ([[WHOLE + 1, -1]], r"lie in \[0, 2\*\*62\]"),
        ([[WHOLE] * 5], r"sum to 2\*\*62 in every row"),  # wraps around to the right sum
        ([[1.0]], "be a matrix of integers"),
        ([[True]], "be a matrix of integers"),
        ([WHOLE], "be a matrix of integers"),
        (np.empty((0, 2), dtype=np.int64), "be a matrix of integers"),
        (np.empty((2, 0), dtype=np.int64), "be a matrix of integers"),
    ],
)
def test_refuses_weights_that_are_no_channel(weights: object, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        Channel(weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("outputs", [[0], [0, 0], [0, -1], [0, 1, 2]])
def test_refuses_outputs_that_do_not_name_each_column_once(outputs: list[int]) -> None:
    with pytest.raises(InvalidParameter, match="outputs must"):
        Channel([[WHOLE // 2, WHOLE // 2]], outputs)


@pytest.mark.parametrize("rows", [[[0.5, 0.6]], [[1.5, -0.5]], [[np.nan, 1.0]], [0.5, 0.5]])
def test_refuses_rows_that_are_no_probabilities(rows: list[list[float]]) -> None:
    with pytest.raises(InvalidParameter, match="rows"):
        Channel.from_probabilities(rows)


@pytest.mark.parametrize("output", [-1, 2])
def test_refuses_a_constant_outside_the_alphabet(output: int) -> None:
    with pytest.raises(InvalidParameter, match=r"output must lie in range\(2\)"):
        Channel.constant(2, output)


def test_a_constant_releases_one_symbol_whatever_is_true() -> None:
    channel = Channel.constant(3, 1)
    assert channel.is_constant
    assert channel.draw([0, 1, 2], words_of([0, 7, WHOLE - 1])).tolist() == [1, 1, 1]
    assert channel.expected_loss([0.5, 0.25, 0.25], 1 - np.eye(3)) == 0.75


def test_refuses_a_loss_of_outputs_outside_the_alphabet() -> None:
    wide = Channel([[WHOLE // 2, WHOLE // 2]], [0, 1])
    with pytest.raises(InvalidParameter, match=r"outputs must lie in range\(1\)"):
        wide.expected_loss([1.0], [[0.0]])


def test_refuses_a_renaming_of_another_length() -> None:
    with pytest.raises(InvalidParameter, match="told must name 1 outputs"):
        Channel.constant(2, 0).merged([0, 1])


def test_nothing_about_a_channel_can_be_changed() -> None:
    given_weights = np.array([[WHOLE // 2, WHOLE // 2]])
    channel = Channel(given_weights)
    given_weights[0] = [WHOLE, 0]
    assert channel.weights.tolist() == [[WHOLE // 2, WHOLE // 2]]
    for array in (channel.weights, channel.outputs):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        channel.weights = given_weights  # type: ignore[misc]
