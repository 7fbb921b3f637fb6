from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato import Alphabet, MarkovChain, seeded
from sfumato.core.errors import InvalidParameter
from sfumato.models.fitting import DENSE_CELLS, count_transitions

Path = NDArray[np.int64]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[list[int]], int, int]:
    size, order = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    path = st.lists(st.integers(0, size - 1), max_size=12)
    return draw(st.lists(path, min_size=1, max_size=5)), size, order


def code(context: tuple[int, ...], size: int) -> int:
    return sum(value * size**lag for lag, value in enumerate(reversed(context)))


def naive_moves(paths: list[list[int]], order: int) -> Counter[tuple[tuple[int, ...], int]]:
    moves: Counter[tuple[tuple[int, ...], int]] = Counter()
    for path in paths:
        for t in range(order, len(path)):
            moves[tuple(path[t - order : t]), path[t]] += 1
    return moves


def naive_background(paths: list[list[int]], size: int) -> list[float]:
    seen = Counter(value for path in paths for value in path)
    return [0.5 * seen[x] / seen.total() + 0.5 / size for x in range(size)]


# Counts ------------------------------------------------------------------------------------------


@given(histories())
def test_counts_are_those_of_a_naive_counter(case: tuple[list[list[int]], int, int]) -> None:
    paths, size, order = case
    counts = count_transitions((np.array(path, dtype=np.int64) for path in paths), size, order)
    expected = np.zeros((size**order, size))
    for (context, value), times in naive_moves(paths, order).items():
        expected[code(context, size), value] = times
    starts = Counter(code(tuple(path[:order]), size) for path in paths if len(path) >= order)
    symbols = Counter(value for path in paths for value in path)
    assert np.array_equal(counts.moves.toarray(), expected)
    assert counts.starts.tolist() == [starts[c] for c in range(size**order)]
    assert counts.symbols.tolist() == [symbols[x] for x in range(size)]
    assert counts.sequences == len(paths)


def test_counting_in_parts_gives_the_whole() -> None:
    # Counts are folded in whenever more than 2,000,000 values are held: here after the third
    # path, and again after the fifth, which is longer than that by itself.
    draw = np.random.default_rng(8)
    paths = [
        draw.integers(0, 3, length) for length in (900_000, 900_000, 300_000, 17, 2_100_000, 5)
    ]
    counts = count_transitions(iter(paths), 3, 1)
    expected = np.zeros((3, 3))
    for path in paths:
        expected += np.bincount(3 * path[:-1] + path[1:], minlength=9).reshape(3, 3)
    assert np.array_equal(counts.moves.toarray(), expected)
    assert counts.moves.sum() == sum(len(path) - 1 for path in paths)
    assert counts.symbols.sum() == sum(map(len, paths))
    assert counts.starts.tolist() == np.bincount([path[0] for path in paths], minlength=3).tolist()


def test_no_move_is_counted_from_one_sequence_to_the_next() -> None:
    counts = count_transitions([np.array([0, 0]), np.array([1, 1])], 2, 1)
    assert np.array_equal(counts.moves.toarray(), [[1, 0], [0, 1]])


# Fit ---------------------------------------------------------------------------------------------


@given(histories(), st.sampled_from([0.0, 0.5, 3.0]))
def test_fit_equals_pseudo_counts_spread_like_the_symbols(
    case: tuple[list[list[int]], int, int], smoothing: float
) -> None:
    paths, size, order = case
    paths = [*paths, [0]]
    floor = 1e-9
    chain = MarkovChain.fit(
        paths, alphabet=Alphabet.of_size(size), order=order, smoothing=smoothing, floor=floor
    )
    background, moves = naive_background(paths, size), naive_moves(paths, order)
    seen: Counter[tuple[int, ...]] = Counter()
    followers: Counter[tuple[int, ...]] = Counter()
    for (context, _), times in moves.items():
        seen[context] += times
        followers[context] += 1
    fitted = chain.transition()
    for context in np.ndindex(*(size,) * order):
        pseudo = smoothing * followers[context]
        total = seen[context] + pseudo
        for x in range(size):
            expected = background[x]
            if seen[context]:
                expected = (moves[context, x] + pseudo * background[x]) / total
            # The floor moves a row by at most its own weight in the mixture.
            assert fitted[code(context, size), x] == pytest.approx(expected, abs=4 * size * floor)


@given(histories(), st.floats(0, 10), st.integers(1, 99))
def test_every_transition_reaches_the_floor(
    case: tuple[list[list[int]], int, int], smoothing: float, percent: int
) -> None:
    paths, size, order = case
    paths = [*paths, [0]]
    floor = percent / 100 / (2 * size)
    chain = MarkovChain.fit(
        paths, alphabet=Alphabet.of_size(size), order=order, smoothing=smoothing, floor=floor
    )
    assert chain.transition().min() >= floor * (1 - 1e-14)
    assert chain.transition().sum(axis=1) == pytest.approx(np.ones(size**order))
    assert chain.floor >= floor * (1 - 1e-14)
    assert chain.full_support


def test_without_smoothing_a_fit_is_the_share_of_each_move() -> None:
    chain = MarkovChain.fit([list("aaab"), list("bb")], smoothing=0.0, floor=1e-12)
    assert chain.transition() == pytest.approx(np.array([[2 / 3, 1 / 3], [0.0, 1.0]]), abs=1e-11)
    assert chain.initial == pytest.approx(np.array([0.5, 0.5]), abs=1e-11)


# How streams begin --------------------------------------------------------------------------------


@given(histories())
def test_beginnings_are_starts_and_as_many_of_the_long_run_as_a_stream_has_values(
    case: tuple[list[list[int]], int, int],
) -> None:
    paths, size, _ = case
    values = [value for path in paths for value in path]
    if not values:
        return
    starts = Counter(path[0] for path in paths if path)
    seen, length = Counter(values), len(values) / len(paths)
    counted = [starts[x] + length * seen[x] / len(values) for x in range(size)]
    chain = MarkovChain.fit(
        paths, alphabet=Alphabet(range(size)), smoothing=0.0, floor=1e-12 / size
    )
    assert chain.initial == pytest.approx(np.array(counted) / sum(counted), abs=1e-9)


def test_a_few_long_streams_do_not_say_how_streams_begin_and_many_short_ones_do() -> None:
    one, many = [["a"] + ["b", "a"] * 500] * 3, [["a", "b", "a", "b"]] * 500
    assert MarkovChain.fit(one).initial == pytest.approx([0.5, 0.5], abs=0.01)
    assert MarkovChain.fit(many).initial == pytest.approx([1.0, 0.0], abs=0.01)


def test_longer_contexts_begin_towards_the_contexts_of_the_long_run() -> None:
    chain = MarkovChain.fit([list("aab" * 400)], order=2, smoothing=0.0, floor=1e-12)
    # Of the pairs that are followed by anything, ab and ba are a third each (less one).
    assert chain.initial.ravel() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.0], abs=2e-3)


def test_much_smoothing_forgets_the_moves() -> None:
    chain = MarkovChain.fit([list("aaab"), list("bb")], smoothing=1e12)
    # Half the share of the symbols, half even: the symbols are even here.
    assert chain.transition() == pytest.approx(np.full((2, 2), 0.5), abs=1e-9)
    skewed = MarkovChain.fit([list("aaaaaaab")], smoothing=1e12)
    assert skewed.transition() == pytest.approx(np.tile([0.6875, 0.3125], (2, 1)), abs=1e-9)


def test_a_context_never_seen_follows_the_background() -> None:
    chain = MarkovChain.fit([list("aaaab")], alphabet=Alphabet("abc"), order=2)
    unseen = chain.transition()[code((2, 1), 3)]
    assert unseen == pytest.approx([0.4 + 1 / 6, 0.1 + 1 / 6, 1 / 6])


def test_sequences_shorter_than_the_order_only_tell_the_symbols() -> None:
    chain = MarkovChain.fit([list("a"), list("b"), list("b")], order=2)
    background = np.array([0.5 / 3 + 0.25, 1 / 3 + 0.25])
    assert chain.transition() == pytest.approx(np.tile(background, (4, 1)))
    assert chain.initial == pytest.approx(np.outer(background, background))


def test_symbols_are_found_and_sorted_numbers_first() -> None:
    chain = MarkovChain.fit([["b", 10, "a"], [2, "b"]])
    assert chain.alphabet.labels == (2, 10, "a", "b")


def test_order_of_the_sequences_does_not_matter() -> None:
    paths = [list(path) for path in ("aab", "ba", "bbba", "a")]
    one, two = MarkovChain.fit(paths, order=2), MarkovChain.fit(paths[::-1], order=2)
    assert one.fingerprint == two.fingerprint


def test_large_chains_are_kept_sparse_and_small_ones_dense() -> None:
    size = int(np.sqrt(DENSE_CELLS)) + 1
    path = list(range(size))
    large = MarkovChain.fit([path], smoothing=0.0)
    small = MarkovChain.fit([path[:-1]], smoothing=0.0)
    assert isinstance(small.known, np.ndarray)
    assert not isinstance(large.known, np.ndarray)
    assert large.known.nnz == size - 1
    assert large.transition()[:-1, 1:].diagonal() == pytest.approx(np.ones(size - 1), abs=2e-3)
    assert large.full_support


@pytest.mark.statistical
def test_a_fit_finds_the_chain_that_made_the_history_and_no_neighbouring_one() -> None:
    truth = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
    source = MarkovChain.from_matrix(truth)
    paths: list[list[int]] = [source.sample(2_000, seeded(seed)).tolist() for seed in range(8)]
    fitted = MarkovChain.fit(paths).transition()
    # 16,000 moves: each entry is known within .02; a matrix 30 % off differs by .03 or more.
    assert np.abs(fitted - truth).max() < 0.02
    for wrong in (0.7, 1.3):
        off = truth**wrong / (truth**wrong).sum(axis=1, keepdims=True)
        assert np.abs(fitted - off).max() > 0.03


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [0.0, -0.1, 0.25, 0.5, float("nan")])
def test_a_floor_outside_its_range_is_refused(floor: float) -> None:
    with pytest.raises(InvalidParameter, match="floor must be greater than 0 and less than 1/4"):
        MarkovChain.fit([list("ab")], floor=floor)


@pytest.mark.parametrize("smoothing", [-1.0, float("nan"), float("inf")])
def test_a_smoothing_that_is_no_count_is_refused(smoothing: float) -> None:
    with pytest.raises(InvalidParameter, match="smoothing must be finite and at least 0"):
        MarkovChain.fit([list("ab")], smoothing=smoothing)


@pytest.mark.parametrize("sequences", [[], [[]], [[], []]])
def test_a_history_without_values_is_refused(sequences: list[list[str]]) -> None:
    with pytest.raises(InvalidParameter, match="sequences must hold at least one value"):
        MarkovChain.fit(sequences, alphabet=Alphabet("ab"))
    with pytest.raises(InvalidParameter, match="labels"):
        MarkovChain.fit(sequences)
