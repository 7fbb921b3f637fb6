import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse, stats

from sfumato import Alphabet, Channel, MarkovChain, seeded
from sfumato.core.errors import InvalidParameter, UnknownSymbol
from tests.oracles.joint import Symbols, beliefs, input_probabilities, joint_table

ALPHA = 1e-6  # false alarm rate of a statistical test
SAMPLES = 12_000

Matrix = NDArray[np.float64]


def rows_of(draw: Callable[..., Any], count: int, size: int, least: int = 0) -> Matrix:
    weights = st.lists(st.integers(least, 20), min_size=size, max_size=size).filter(any)
    rows = np.array([draw(weights) for _ in range(count)], dtype=np.float64)
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


@st.composite
def matrices(draw: st.DrawFn, max_order: int = 1, max_size: int = 4, least: int = 0) -> Matrix:
    size, order = draw(st.integers(2, max_size)), draw(st.integers(1, max_order))
    return rows_of(draw, size**order, size, least)


@st.composite
def chains(draw: st.DrawFn, max_order: int = 1, max_size: int = 4) -> MarkovChain:
    """Full support, in the general form: known rows, backoff and background all different."""
    size, order = draw(st.integers(2, max_size)), draw(st.integers(1, max_order))
    contexts = size**order
    backoff = [draw(st.integers(1, 10)) / 10 for _ in range(contexts)]
    return MarkovChain(
        alphabet=Alphabet.of_size(size),
        order=order,
        initial=rows_of(draw, 1, contexts, least=1).reshape((size,) * order),
        known=rows_of(draw, contexts, size),
        backoff=np.array(backoff),
        background=rows_of(draw, 1, size, least=1)[0],
    )


def sparse_twin(chain: MarkovChain) -> MarkovChain:
    return MarkovChain(
        chain.alphabet,
        chain.order,
        chain.initial,
        sparse.csr_array(chain.known),
        chain.backoff,
        chain.background,
    )


def naive_transition(chain: MarkovChain) -> dict[Symbols, list[float]]:
    known = chain.known if isinstance(chain.known, np.ndarray) else chain.known.toarray()
    table = {}
    for place, context in enumerate(itertools.product(range(chain.size), repeat=chain.order)):
        weight = chain.backoff[place]
        table[context] = [
            float((1 - weight) * known[place, x] + weight * chain.background[x])
            for x in range(chain.size)
        ]
    return table


def naive_initial(chain: MarkovChain) -> dict[Symbols, float]:
    contexts = itertools.product(range(chain.size), repeat=chain.order)
    return {context: float(chain.initial[context]) for context in contexts}


# Belief ------------------------------------------------------------------------------------------


@given(chains(max_order=3, max_size=3), st.data())
def test_dense_and_sparse_rows_carry_the_same_belief(
    chain: MarkovChain, data: st.DataObject
) -> None:
    twin = sparse_twin(chain)
    dense, thin = chain.first(), twin.first()
    for _ in range(5):
        likelihood = rows_of(data.draw, 1, chain.size, least=1)[0]
        dense, thin = dense.update(likelihood), thin.update(likelihood)
        dense, thin = chain.following(dense), twin.following(thin)
        assert thin.joint == pytest.approx(dense.joint, rel=1e-12)
        assert (thin.axis, thin.drift) == (dense.axis, dense.drift)


@given(chains(max_order=3, max_size=2))
def test_prediction_equals_brute_force_over_all_paths(chain: MarkovChain) -> None:
    length = chain.order + 3
    paths = input_probabilities(chain.size, length, naive_initial(chain), naive_transition(chain))
    belief = chain.first()
    for t in range(length):
        expected = [sum(p for x, p in paths.items() if x[t] == i) for i in range(chain.size)]
        assert belief.marginal == pytest.approx(expected, rel=1e-12)
        belief = chain.following(belief)


@pytest.mark.parametrize(("size", "order"), [(2, 1), (3, 1), (2, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("thin", [False, True])
def test_filtering_equals_bayes_over_the_joint_table(
    size: int, order: int, thin: bool, rng: np.random.Generator
) -> None:
    chain = MarkovChain.from_matrix(
        rng.dirichlet(np.ones(size), size**order),
        rng.dirichlet(np.ones(size**order)).reshape((size,) * order),
        floor=0.02,
    )
    noisy = Channel.from_probabilities(rng.dirichlet(np.ones(size), size))
    length = 4
    table = joint_table(
        size,
        length,
        naive_initial(chain),
        naive_transition(chain),
        lambda told: (noisy.probabilities.tolist(), noisy.outputs.tolist()),
    )
    filtered = sparse_twin(chain) if thin else chain
    for outputs, expected in beliefs(table).items():
        belief = filtered.first()
        for output in outputs:
            belief = filtered.following(belief.update(noisy.likelihood(output)))
        assert belief.marginal == pytest.approx(expected, rel=1e-11)


def test_memory_of_an_order_two_chain_is_not_that_of_order_one() -> None:
    # The next value repeats the one before the last: only the joint of two can know that.
    echo = MarkovChain.from_matrix(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [[0.4, 0.1], [0.2, 0.3]]
    )
    third = echo.following(echo.following(echo.first().update(np.array([1.0, 0.0]))))
    assert third.marginal == pytest.approx([1.0, 0.0])


# Stationary --------------------------------------------------------------------------------------


@given(matrices(max_order=2, least=1))
def test_stationary_is_invariant_and_unique(matrix: Matrix) -> None:
    chain = MarkovChain.from_matrix(matrix)
    weight = chain.stationary()
    assert weight.sum() == pytest.approx(1.0, abs=1e-12)
    moves = naive_transition(chain)
    moved = dict.fromkeys(moves, 0.0)
    for context, row in moves.items():
        for x, p in enumerate(row):
            moved[(*context[1:], x)] += float(weight[context]) * p
    assert [float(weight[c]) for c in moves] == pytest.approx(list(moved.values()), abs=1e-12)


@given(matrices(least=1))
def test_stationary_is_where_every_start_leads(matrix: Matrix) -> None:
    power = np.linalg.matrix_power(matrix, 2**12)
    assert MarkovChain.from_matrix(matrix).stationary() == pytest.approx(power[0], abs=1e-9)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_periodic_chain_has_a_stationary_distribution(length: int) -> None:
    cycle = np.roll(np.eye(length), 1, axis=1)
    assert MarkovChain.from_matrix(cycle).stationary() == pytest.approx(np.full(length, 1 / length))


def test_a_periodic_chain_of_order_two_has_a_stationary_distribution() -> None:
    # 0, 0, 1, 1, 0, 0, 1, 1, ...: the next value is the opposite of the one before the last.
    turning = MarkovChain.from_matrix([[0, 1], [0, 1], [1, 0], [1, 0]])
    assert turning.stationary() == pytest.approx(np.full((2, 2), 0.25), abs=1e-12)


def test_stationary_of_a_large_sparse_chain_is_invariant(rng: np.random.Generator) -> None:
    size = 2_500
    targets = rng.integers(0, size, (size, 3))
    known = sparse.csr_array(
        (np.full(3 * size, 1 / 3), (np.repeat(np.arange(size), 3), targets.ravel())),
        shape=(size, size),
    )
    chain = MarkovChain.from_matrix(known, floor=0.1 / size)
    weight = chain.stationary()
    moved = 0.9 * (weight @ known.toarray()) + 0.1 / size
    assert moved == pytest.approx(weight, abs=1e-12)


def test_first_belief_is_the_stationary_one_unless_given() -> None:
    chain = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]])
    assert chain.first().marginal == pytest.approx([2 / 3, 1 / 3])
    assert chain.following(chain.first()).marginal == pytest.approx([2 / 3, 1 / 3])
    started = MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], [0.5, 0.5])
    assert started.first().marginal == pytest.approx([0.5, 0.5])


# Time reversal -----------------------------------------------------------------------------------


@given(chains(max_size=5))
def test_reversal_keeps_the_joint_of_two_successive_values(chain: MarkovChain) -> None:
    for forward in (chain, sparse_twin(chain)):
        backward = forward.reversed()
        weight, there, back = forward.stationary(), forward.transition(), backward.transition()
        assert back.sum(axis=1) == pytest.approx(np.ones(chain.size), abs=1e-12)
        assert weight[:, None] * there == pytest.approx((weight[:, None] * back).T, abs=1e-12)


@given(chains(max_size=4))
def test_reversing_twice_gives_the_chain_back(chain: MarkovChain) -> None:
    again = chain.reversed().reversed()
    assert again.transition() == pytest.approx(chain.transition(), abs=1e-9)


def test_reversal_of_a_chain_without_background_is_right() -> None:
    cycle = MarkovChain.from_matrix(np.roll(np.eye(4), 1, axis=1))
    assert cycle.reversed().transition() == pytest.approx(np.roll(np.eye(4), -1, axis=1))


def test_reversal_gives_unreachable_values_some_row() -> None:
    # Value 2 is left at once and never reached: its row backwards is free, but must be one.
    chain = MarkovChain.from_matrix([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    back = chain.reversed().transition()
    assert back.sum(axis=1) == pytest.approx(np.ones(3))
    assert back[:2] == pytest.approx(np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]]))


def test_reversal_of_a_sparse_chain_stays_sparse() -> None:
    size = 300
    ring = sparse.csr_array(
        sparse.diags_array(
            [np.full(size, 0.7), np.full(size - 1, 0.3), [0.3]], offsets=[0, 1, 1 - size]
        )
    )
    chain = MarkovChain.from_matrix(ring, floor=1e-5)
    backward = chain.reversed()
    assert not isinstance(backward.known, np.ndarray)
    assert backward.known.nnz == ring.nnz
    weight = chain.stationary()
    there, back = weight[:, None] * chain.transition(), weight[:, None] * backward.transition()
    assert back == pytest.approx(there.T, abs=1e-14)


@settings(max_examples=25)
@given(chains(max_order=3, max_size=3))
def test_reversal_keeps_the_joint_of_successive_values_at_any_order(chain: MarkovChain) -> None:
    for forward in (chain, sparse_twin(chain)):
        backward = forward.reversed()
        start, there = forward.stationary(), naive_transition(forward)
        end, back = naive_initial(backward), naive_transition(backward)
        for path in itertools.product(range(chain.size), repeat=chain.order + 1):
            told = path[::-1]
            assert float(start[path[:-1]]) * there[path[:-1]][path[-1]] == pytest.approx(
                end[told[:-1]] * back[told[:-1]][told[-1]], abs=1e-10
            )


# Floor and support -------------------------------------------------------------------------------


@given(matrices(max_order=2), st.integers(0, 9))
def test_floor_is_the_least_transition_when_it_is_mixed_in_evenly(
    matrix: Matrix, tenths: int
) -> None:
    contexts, size = matrix.shape
    floor = tenths / 10 / size
    even = np.full((size,) * (1 if contexts == size else 2), 1 / contexts)
    chain = MarkovChain.from_matrix(matrix, even, floor=floor)
    least = min(min(row) for row in naive_transition(chain).values())
    assert chain.floor == pytest.approx(least, rel=1e-12, abs=1e-300)
    assert least >= floor * (1 - 1e-14)
    assert chain.full_support == (least > 0)


@given(chains(max_order=2))
def test_floor_is_never_above_a_transition(chain: MarkovChain) -> None:
    for twin in (chain, sparse_twin(chain)):
        assert 0 < twin.floor <= twin.transition().min() * (1 + 1e-15)


def test_floor_of_a_sparse_chain_is_its_least_transition() -> None:
    chain = MarkovChain.from_matrix(sparse.csr_array([[1.0, 0.0], [0.5, 0.5]]), floor=0.01)
    assert chain.floor == pytest.approx(chain.transition().min(), rel=1e-12) == pytest.approx(0.01)


def test_support_is_not_full_when_a_start_is_impossible() -> None:
    assert not MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0]).full_support
    assert MarkovChain.from_matrix([[0.5, 0.5], [0.5, 0.5]], [1.0, 0.0], floor=0.1).full_support


@given(chains(max_order=2))
def test_transition_is_the_mixture_it_says(chain: MarkovChain) -> None:
    expected = np.array(list(naive_transition(chain).values()))
    assert chain.transition() == pytest.approx(expected, rel=1e-14)
    assert sparse_twin(chain).transition() == pytest.approx(expected, rel=1e-14)


# Fingerprint -------------------------------------------------------------------------------------


@given(chains(max_order=2), chains(max_order=2))
def test_equal_chains_and_no_others_have_equal_fingerprints(
    one: MarkovChain, two: MarkovChain
) -> None:
    again = MarkovChain(
        one.alphabet, one.order, one.initial, one.known, one.backoff, one.background
    )
    assert one.fingerprint == again.fingerprint
    same = all(
        np.array_equal(getattr(one, part), getattr(two, part))
        for part in ("initial", "known", "backoff", "background")
    )
    assert (one.fingerprint == two.fingerprint) == same


def test_names_of_symbols_count_for_the_fingerprint() -> None:
    matrix = [[0.9, 0.1], [0.2, 0.8]]
    numbers, letters = (
        MarkovChain.from_matrix(matrix),
        MarkovChain.from_matrix(matrix, alphabet=Alphabet("ab")),
    )
    assert numbers.fingerprint != letters.fingerprint


def test_nobody_can_write_to_a_chain() -> None:
    for chain in (
        MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]]),
        MarkovChain.from_matrix(sparse.csr_array([[0.9, 0.1], [0.2, 0.8]])),
    ):
        known = chain.known if isinstance(chain.known, np.ndarray) else chain.known.data
        for part in (chain.initial, chain.backoff, chain.background, known):
            with pytest.raises(ValueError, match="read-only"):
                part.flat[0] = 0.5


# Samples -----------------------------------------------------------------------------------------


def tempered(rows: Matrix, power: float) -> Matrix:
    return np.asarray(rows**power / (rows**power).sum(axis=1, keepdims=True))


def transition_p_value(path: NDArray[np.int64], rows: Matrix, order: int) -> float:
    size = rows.shape[1]
    counts = np.zeros(rows.shape)
    for t in range(order, len(path)):
        context = 0
        for value in path[t - order : t]:
            context = context * size + int(value)
        counts[context, path[t]] += 1
    expected = rows * counts.sum(axis=1, keepdims=True)
    statistic = ((counts - expected) ** 2 / np.maximum(expected, 1e-9)).sum()
    return float(stats.chi2.sf(statistic, rows.shape[0] * (size - 1)))


@pytest.mark.statistical
@pytest.mark.parametrize(("size", "order", "thin"), [(3, 1, False), (3, 1, True), (2, 2, False)])
def test_samples_follow_the_chain_and_no_neighbouring_one(
    size: int, order: int, thin: bool
) -> None:
    rows = np.random.default_rng(5).dirichlet(np.full(size, 0.8), size**order)
    rows = 0.9 * rows + 0.1 / size
    given = sparse.csr_array(rows) if thin else rows
    path = MarkovChain.from_matrix(given).sample(SAMPLES, seeded(11))
    assert transition_p_value(path, rows, order) > ALPHA
    assert transition_p_value(path, tempered(rows, 0.7), order) < ALPHA
    assert transition_p_value(path, tempered(rows, 1.3), order) < ALPHA


@pytest.mark.statistical
def test_samples_begin_like_the_initial_joint_and_no_neighbouring_one() -> None:
    initial = np.array([[0.4, 0.1], [0.2, 0.3]])
    chain = MarkovChain.from_matrix(np.full((4, 2), 0.5), initial)
    starts = [tuple(chain.sample(2, seeded(seed))) for seed in range(4_000)]
    counts = [starts.count(pair) for pair in itertools.product(range(2), repeat=2)]

    def p_value(power: float) -> float:
        expected = tempered(initial.reshape(1, -1), power)[0] * len(starts)
        return float(stats.chisquare(counts, expected).pvalue)

    assert p_value(1.0) > ALPHA
    assert p_value(0.7) < ALPHA
    assert p_value(1.3) < ALPHA


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 9])
def test_a_sample_has_the_length_that_was_asked_for(order: int, length: int) -> None:
    chain = MarkovChain.from_matrix(np.full((2**order, 2), 0.5))
    assert chain.sample(length, seeded(0)).shape == (length,)


def test_a_sample_never_makes_an_impossible_move() -> None:
    path = MarkovChain.from_matrix(np.roll(np.eye(3), 1, axis=1)).sample(30, seeded(2))
    assert np.array_equal(np.diff(path) % 3, np.ones(29))


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"transition row 1 must sum to 1 within 1e-09; got 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], r"transition must have no negative or NaN entry; got -0.5"),
        ([[0.5, 0.5], [float("nan"), 1.0]], r"transition must have no negative or NaN entry"),
        ([0.5, 0.5], r"transition must be a matrix; got \(2,\)"),
        ([], r"transition must be a matrix"),
        ([[0.5, 0.5]] * 3, r"have as many rows as a power of its columns; got \(3, 2\)"),
        ([[0.2, 0.3, 0.5]] * 2, r"have as many rows as a power of its columns; got \(2, 3\)"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(matrix: list[list[float]], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        MarkovChain.from_matrix(matrix)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.6]], r"transition row 1 must sum to 1 within 1e-09; got 1.1"),
        ([[0.5, 0.5], [1.5, -0.5]], r"transition must have no negative entry; got -0.5"),
        ([[0.0, 0.0], [0.5, 0.5]], r"transition row 0 must sum to 1 within 1e-09; got 0.0"),
    ],
)
def test_what_is_no_sparse_transition_matrix_is_refused(
    matrix: list[list[float]], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        MarkovChain.from_matrix(sparse.csr_array(matrix))


@pytest.mark.parametrize("floor", [0.5, 0.6, -0.1, float("nan"), float("inf")])
def test_a_floor_that_leaves_no_room_is_refused(floor: float) -> None:
    with pytest.raises(InvalidParameter, match="floor"):
        MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], floor=floor)


@pytest.mark.parametrize("initial", [[1.0], [0.5, 0.4], [0.2, 0.3, 0.5], [[0.5, 0.5]], [1.5, -0.5]])
def test_a_wrong_start_is_refused(initial: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="initial"):
        MarkovChain.from_matrix([[0.9, 0.1], [0.2, 0.8]], initial)


def test_parts_that_do_not_fit_together_are_refused() -> None:
    half = np.full(2, 0.5)
    known = np.full((2, 2), 0.5)
    with pytest.raises(InvalidParameter, match="backoff must be 2 numbers"):
        MarkovChain(Alphabet("ab"), 1, half, known, np.zeros(3), half)
    with pytest.raises(InvalidParameter, match="backoff must be 2 numbers"):
        MarkovChain(Alphabet("ab"), 1, half, known, np.array([0.0, 1.1]), half)
    with pytest.raises(InvalidParameter, match="background must have 2 entries"):
        MarkovChain(Alphabet("ab"), 1, half, known, half, np.ones(1))
    with pytest.raises(InvalidParameter, match=r"transition must have shape \(2, 2\)"):
        MarkovChain(Alphabet("ab"), 1, half, np.full((4, 2), 0.5), half, half)
    with pytest.raises(InvalidParameter, match=r"initial must have shape \(3,\)"):
        MarkovChain.from_matrix(known, alphabet=Alphabet("abc"))


@pytest.mark.parametrize("order", [0, -1])
def test_an_order_below_one_is_refused(order: int) -> None:
    half = np.full(2, 0.5)
    with pytest.raises(InvalidParameter, match="order must be a whole number of at least 1"):
        MarkovChain(Alphabet("ab"), order, half, np.full((2, 2), 0.5), half, half)
    with pytest.raises(InvalidParameter, match="order must be a whole number of at least 1"):
        MarkovChain.fit([list("aab")], order=order)


def test_an_order_that_no_memory_can_hold_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="order must keep"):
        MarkovChain(Alphabet.of_size(100), 4, np.ones(1), np.ones((1, 1)), np.ones(1), np.ones(1))


def test_an_unknown_symbol_in_a_history_is_refused_and_not_quoted() -> None:
    with pytest.raises(UnknownSymbol, match="must be one of the 2 symbols") as refusal:
        MarkovChain.fit([["a", "b", "secret-717"]], alphabet=Alphabet("ab"))
    assert "717" not in str(refusal.value) + repr(refusal.value)
    assert refusal.value.__cause__ is None
    assert refusal.value.__context__ is None
