"""A response channel is the channel of its matrix, without the matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.core.loss import matrix
from sfumato.core.randomness import BITS, seeded
from sfumato.core.response_channel import ResponseChannel
from tests.oracles.exact_leakage import within, within_locally
from tests.strategies import Floats


@st.composite
def responses(draw: st.DrawFn) -> ResponseChannel:
    size = draw(st.integers(1, 7))
    shared = np.array(draw(st.lists(st.integers(0, 2**58), min_size=size, max_size=size)))
    shared[draw(st.integers(0, size - 1))] += draw(st.sampled_from([0, 1, 2**61]))
    rows = draw(st.integers(1, 8))
    target = draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows))
    return ResponseChannel(shared, target, [3 * place for place in range(size)])


def even_belief(channel: Channel) -> Floats:
    return np.full(channel.size, 1 / channel.size)


@given(responses(), st.integers(0, 2**32))
def test_it_is_the_channel_of_its_matrix(response: ResponseChannel, seed: int) -> None:
    dense = Channel(response.weights, response.outputs)
    assert dense.weights.tolist() == response.weights.tolist()
    assert dense.outputs.tolist() == response.outputs.tolist()
    assert dense.is_constant == response.is_constant
    belief = np.random.default_rng(seed).dirichlet(np.ones(response.size))
    assert response.marginal(belief) == pytest.approx(dense.marginal(belief), rel=1e-12)
    assert response.ratios(belief) == pytest.approx(dense.ratios(belief), rel=1e-12)
    for mine, other in zip(response.extremes, dense.extremes, strict=True):
        assert mine.tolist() == other.tolist()
    for output in response.outputs.tolist():
        assert response.likelihood(output).tolist() == dense.likelihood(output).tolist()
    names = [int(place) % 2 for place in response.outputs]
    assert response.merged(names).weights.tolist() == dense.merged(names).weights.tolist()


@given(responses(), st.integers(0, 2**32))
def test_its_cost_is_that_of_its_matrix(response: ResponseChannel, seed: int) -> None:
    rng = np.random.default_rng(seed)
    belief, last = rng.dirichlet(np.ones(response.size)), int(response.outputs.max())
    size = max(response.size, last + 1)
    table = rng.random((size, size))
    if size != response.size:
        names = [place % response.size for place in response.outputs.tolist()]
        response, size = response.merged(names), response.size
        table = table[:size, :size]
    expected = belief @ (response.probabilities * table[:, response.outputs]).sum(axis=1)
    assert response.mean_loss(belief, matrix(table)) == pytest.approx(float(expected), rel=1e-9)


@given(responses(), st.integers(0, 2**32))
def test_its_certificates_are_never_below_exact_arithmetic(
    response: ResponseChannel, seed: int
) -> None:
    belief = np.random.default_rng(seed).dirichlet(np.ones(response.size)) + 1e-9
    belief /= belief.sum()
    sip, ldp = information_leakage(response, belief), local_leakage(response)
    if np.isfinite(sip.epsilon):
        assert within(response.weights, belief.tolist(), sip.epsilon)
    if np.isfinite(ldp.epsilon):
        assert within_locally(response.weights, ldp.epsilon)


def test_a_draw_uses_each_integer_of_the_weights() -> None:
    """Coins at both ends of every interval: the truth first, then the shared outputs in order."""
    quarter = 2**BITS // 4
    response = ResponseChannel([quarter, 2 * quarter], [1, 0, 1])
    edges = np.array([0, quarter - 1, quarter, 2 * quarter - 1, 2 * quarter, 4 * quarter - 1])
    words = edges.astype(np.uint64) << np.uint64(64 - BITS)
    assert response.draw([0] * 6, words).tolist() == [1, 1, 0, 0, 1, 1]
    assert response.draw([1] * 6, words).tolist() == [0, 0, 0, 0, 1, 1]


@pytest.mark.statistical
@pytest.mark.parametrize(("kept", "fits"), [(0.3, True), (0.39, False), (0.21, False)])
def test_draws_keep_the_truth_as_often_as_said(kept: float, fits: bool) -> None:
    count, size, said = 200_000, 5, 0.3
    values = np.arange(count) % size
    drawn = ResponseChannel.even(size, kept).draw(values, seeded(7).words(count))
    right = float((drawn == values).mean())
    expected = said + (1 - said) / size
    deviation = (expected * (1 - expected) / count) ** 0.5
    assert (abs(right - expected) < 5 * deviation) is fits


@pytest.mark.parametrize(
    ("shared", "target", "rule"),
    [
        ([2**61, 2**61, 1], [0, 1, 2], "shared must be"),
        ([-1, 5], [0, 1], "shared must be"),
        ([2**62] * 5, [0], "shared must be"),
        ([1.5, 2.0], [0, 1], "shared must be"),
        ([1, 2], [0, 2], "target must lie"),
        ([1, 2], [-1, 0], "target must lie"),
        ([1, 2], [], "target must be"),
    ],
)
def test_what_is_no_response_is_refused(shared: list[int], target: list[int], rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        ResponseChannel(shared, target)


def test_a_matrix_that_fills_the_memory_is_refused_and_a_value_is_not_quoted() -> None:
    large = ResponseChannel.even(6000, 0.5)
    with pytest.raises(InvalidParameter, match="have at most 5000 to be a matrix"):
        _ = large.weights
    with pytest.raises(UnknownSymbol) as caught:
        large.draw([6000], seeded(1).words(1))
    assert "6000" not in str(caught.value).replace("6000 symbols", "")
