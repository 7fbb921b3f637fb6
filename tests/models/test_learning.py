"""A chain is learnt from what left as brute force over all hidden sequences would learn it."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.alphabet import Alphabet
from sfumato.core.errors import InvalidParameter
from sfumato.models.emissions import Emissions
from sfumato.models.expectation import (
    Guess,
    PassSums,
    expected,
    log_likelihoods,
    maximised,
    pass_sums,
)
from sfumato.models.learning import learn_chain
from sfumato.models.learning_worth import information_share
from sfumato.models.markov import MarkovChain
from sfumato.models.order_choice import HeldOut, held_out
from tests.oracles import hidden_sequences

Streams = list[list[int]]
LENGTHS = ((5, 3), (1, 2), (4,), (2, 1, 5))


def drawn_guess(rng: np.random.Generator, symbols: int, order: int) -> Guess:
    """Any chain."""
    initial = rng.random(symbols**order) + 0.1
    moves = rng.random((symbols**order, symbols)) + 0.1
    return Guess(initial / initial.sum(), moves / moves.sum(axis=1, keepdims=True))


def drawn_emissions(
    rng: np.random.Generator, symbols: int, lengths: tuple[int, ...], reaches: tuple[int, ...]
) -> tuple[Emissions, list[list[dict[tuple[int, ...], float] | None]]]:
    """Outputs about some values each, and nothing told about others; as arrays and as tuples."""
    begins, reached, told, plain = list[int](), list[int](), list[float](), []
    for length in lengths:
        stream: list[dict[tuple[int, ...], float] | None] = []
        for moment in range(length):
            reach = min(int(rng.choice(reaches)), moment + 1)
            if rng.random() < 0.2:
                begins.append(-1)
                reached.append(1)
                stream.append(None)
                continue
            likely = rng.random(symbols**reach) + 0.05
            begins.append(len(told))
            reached.append(reach)
            told.extend(likely)
            tuples = product(range(symbols), repeat=reach)
            stream.append(dict(zip(tuples, likely.tolist(), strict=True)))
        plain.append(stream)
    starts = np.append(0, np.cumsum(lengths))
    arrays = np.array(begins), np.array(reached), np.array(told)
    return Emissions(symbols, starts, *arrays), plain


@pytest.mark.parametrize("symbols", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reaches", [(1,), (1, 2), (3, 1)])
@pytest.mark.parametrize("lengths", LENGTHS)
def test_expected_counts_are_those_of_all_hidden_sequences(
    symbols: int, order: int, reaches: tuple[int, ...], lengths: tuple[int, ...]
) -> None:
    rng = np.random.default_rng([symbols, order, len(reaches), sum(lengths)])
    guess = drawn_guess(rng, symbols, order)
    emissions, plain = drawn_emissions(rng, symbols, lengths, reaches)
    contexts = list(product(range(symbols), repeat=order))
    initial = dict(zip(contexts, guess.initial.tolist(), strict=True))
    rows = dict(zip(contexts, guess.moves.tolist(), strict=True))
    starts, moves, score = hidden_sequences.counts(initial, rows, plain, symbols)
    found = expected(guess, emissions)
    assert found.scores.sum() == pytest.approx(score, abs=1e-12)
    assert found.starts.tolist() == pytest.approx([starts[c] for c in contexts], abs=1e-12)
    wanted = [[moves[c, x] for x in range(symbols)] for c in contexts]
    np.testing.assert_allclose(found.moves, wanted, atol=1e-12)
    summed = pass_sums(guess, emissions).counted(symbols, order)
    assert summed.score == pytest.approx(score, abs=1e-12)
    assert summed.starts.tolist() == pytest.approx([starts[c] for c in contexts], abs=1e-12)
    np.testing.assert_allclose(summed.moves, wanted, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_sums_of_a_pass_are_the_same_in_any_order_and_in_any_parts(seed: int, order: int) -> None:
    rng = np.random.default_rng(seed)
    emissions, _ = drawn_emissions(rng, 3, tuple(rng.integers(1, 12, 9).tolist()), (1,))
    guess, places = drawn_guess(rng, 3, order), rng.permutation(9)
    parts = np.split(places, np.sort(rng.integers(0, 10, 2)))
    whole = pass_sums(guess, emissions)
    several = [pass_sums(guess, emissions.of_streams(part)) for part in parts if part.size]
    for one, other in zip(whole, PassSums.added(several), strict=True):
        assert one.whole.tolist() == other.whole.tolist()
        assert one.parts.tolist() == other.parts.tolist()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2]), st.sampled_from([0.0, 0.1, 2.0]))
def test_no_pass_lowers_what_is_maximised(seed: int, order: int, smoothing: float) -> None:
    rng = np.random.default_rng(seed)
    emissions, _ = drawn_emissions(rng, 3, (9, 4, 1, 7), (1, 2) if order < 2 else (1,))
    guess, before = drawn_guess(rng, 3, max(order, 1)), -np.inf
    if order == 0:
        row = guess.moves[0]
        guess = Guess(row, np.repeat(row[None], 3, axis=0))
    for _ in range(6):
        counts = expected(guess, emissions)
        logs = np.log(guess.initial).sum()
        logs += np.log(guess.moves).sum() if order else 0.0
        worth = counts.scores.sum() + (smoothing * logs if smoothing else 0.0)
        assert worth >= before - 1e-9
        guess, before = maximised(counts, smoothing, order), worth


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 1, 2]))
def test_leaps_never_lower_it_either_and_support_is_full(seed: int, order: int) -> None:
    emissions, _ = drawn_emissions(np.random.default_rng(seed), 3, (30, 12, 1), (1,))
    found = learn_chain(emissions, Alphabet.of_size(3), order=order, floor=1e-4)
    assert np.all(np.diff(found.objective) >= -1e-9)
    assert found.chain.full_support
    assert found.chain.floor >= 1e-4 * (1 - 1e-9)
    assert found.log_likelihood == pytest.approx(log_likelihoods(emissions, found.chain).sum())


def hidden_rows(
    chain: MarkovChain, flip: float, streams: int, length: int, seed: int
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]:
    """Rows of likelihoods of streams of a binary chain, each value flipped with a probability."""
    rng, rows = np.random.default_rng(seed), []
    channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
    table, first = chain.transition(), chain.initial.ravel()
    for _ in range(streams):
        context, seen = int(rng.choice(first.size, p=first)), list[int]()
        for _ in range(length):
            seen.append(context % 2)
            after = int(rng.random() < table[context, 1])
            context = (context * 2 + after) % first.size
        flipped = np.array(seen) ^ (rng.random(length) < flip)
        rows.append(channel[:, flipped].T)
    return rows


def test_the_chain_is_found_and_beats_independence() -> None:
    true = MarkovChain.from_matrix([[0.9, 0.1], [0.3, 0.7]])
    emissions = Emissions.of_rows(hidden_rows(true, 0.2, 300, 40, 1))
    found = learn_chain(emissions, true.alphabet)
    alone = learn_chain(emissions, true.alphabet, order=0)
    assert found.converged
    np.testing.assert_allclose(found.chain.transition(), true.transition(), atol=0.03)
    assert found.log_likelihood > alone.log_likelihood + 100
    assert np.ptp(alone.chain.transition(), axis=0).max() < 1e-12


@pytest.mark.parametrize(
    ("matrix", "orders"),
    [
        ([[0.6, 0.4], [0.6, 0.4]], {0, 1}),
        ([[0.9, 0.1], [0.2, 0.8]], {1}),
        ([[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.1, 0.9]], {1}),
        ([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9], [0.1, 0.9]], {2}),
    ],
)
def test_the_order_is_that_of_the_process(matrix: list[list[float]], orders: set[int]) -> None:
    true = MarkovChain.from_matrix(matrix)
    emissions = Emissions.of_rows(hidden_rows(true, 0.1, 90, 40, 7))
    found = held_out(emissions, true.alphabet, MarkovChain.from_matrix([[0.5, 0.5]] * 2))
    assert found.order in orders


def test_a_past_that_gains_nothing_is_not_believed() -> None:
    lengths = np.full(4, 10.0)
    better, worse = np.array([-5.0, -5.2, -4.9, -5.1]), np.full(4, -5.1)
    unsure = better + np.array([0.2, -0.1, 0.1, -0.1])
    for order, scores in ((0, {0: better, 1: worse}), (1, {0: worse, 1: better, 2: unsure})):
        assert HeldOut(scores, lengths, worse).order == order


def test_one_stream_is_cut_and_outputs_are_not() -> None:
    rng = np.random.default_rng(5)
    emissions, _ = drawn_emissions(rng, 2, (40,), (1, 3))
    parts = emissions.cut(8)
    assert 2 <= parts.streams <= 8
    assert len(parts) == 40
    for start, stop in zip(parts.starts[:-1], parts.starts[1:], strict=True):
        moments = np.arange(start, stop)
        assert np.all(moments - parts.reaches[start:stop] + 1 >= start)
    some = parts.of_streams(np.array([1, 0]))
    assert some.begins[: some.starts[1]].tolist() == (
        parts.begins[parts.starts[1] : parts.starts[2]].tolist()
    )


def test_the_share_of_information_falls_with_noise() -> None:
    true = MarkovChain.from_matrix([[0.8, 0.2], [0.3, 0.7]])
    shares = []
    for flip in (0.0, 0.1, 0.3):
        emissions = Emissions.of_rows(hidden_rows(true, flip, 100, 30, 6))
        guess = learn_chain(emissions, true.alphabet, smoothing=0.0).guess
        shares.append(information_share(emissions, guess, 1, 0.0))
    assert shares[0] == pytest.approx(1.0, abs=1e-6)
    assert shares[0] > shares[1] > shares[2] > 0


def test_what_no_chain_could_make_is_refused() -> None:
    many = Emissions.of_rows([np.ones((2, 200)), np.ones((2, 200))])
    rival = MarkovChain.from_matrix(np.full((200, 200), 1 / 200))
    with pytest.raises(InvalidParameter, match="order must leave at most 4,000,000"):
        held_out(many, rival.alphabet, rival, orders=(2,))
    with pytest.raises(InvalidParameter, match="possible under some chain"):
        learn_chain(Emissions.of_rows([np.zeros((3, 2))]), Alphabet.of_size(2))
    with pytest.raises(InvalidParameter, match="have 2 symbols"):
        learn_chain(Emissions.of_rows([np.ones((3, 2))]), Alphabet.of_size(3))
