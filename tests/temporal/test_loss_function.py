"""The loss function of a transition matrix against six oracles, and the laws it must keep."""

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sfumato.core.errors import InvalidParameter
from sfumato.temporal.loss_function import LossFunction, strangers, temporal_loss
from sfumato.temporal.temporal_budgets import allocate
from sfumato.temporal.temporal_loops import _UNIT, _quick
from tests.oracles import temporal as oracle
from tests.oracles.temporal import ExactLoss

Floats = NDArray[np.float64]

BACKWARD_2 = [[0.1, 0.2, 0.7], [0.0, 0.0, 1.0], [0.3, 0.3, 0.4]]
FORWARD_2 = [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]
EXAMPLE_2 = [[0.8, 0.2], [0.0, 1.0]]
EXAMPLE_4 = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.3, 0.2]]
BACKWARD_8 = [[0.8, 0.2], [0.2, 0.8]]
FORWARD_8 = [[0.8, 0.2], [0.1, 0.9]]
EVEN = [[0.25, 0.75], [0.25, 0.75]]
IDENTITY = [[1.0, 0.0], [0.0, 1.0]]

ALPHAS = [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 12.0, 30.0, 80.0, 200.0, 500.0, 700.0]
SMALL_ALPHAS = [1e-3, 0.1, 1.0, 3.0]


def normalised(rows: ArrayLike) -> Floats:
    table = np.asarray(rows, dtype=np.float64)
    return np.asarray(table / table.sum(axis=1, keepdims=True))


def random_rows(seed: int, size: int, concentration: float = 1.0) -> Floats:
    rng = np.random.default_rng(seed)
    return normalised(rng.dirichlet(np.full(size, concentration), size) + 1e-9)


def sparse_rows(seed: int, size: int) -> Floats:
    """Most entries 0, but no two rows without a common column."""
    rng = np.random.default_rng(seed)
    table = rng.random((size, size)) * (rng.random((size, size)) < 0.3)
    table[:, 0] += 0.2
    return normalised(table)


def tiny_rows(entry: float) -> Floats:
    """Entries of one row that are all but impossible in another."""
    return normalised([[0.5, 0.3, 0.2], [entry, 0.4, 0.6], [0.4, entry, 0.6], [0.3, 0.7, entry]])


MATRICES: dict[str, Floats] = {
    "Fig. 2, backward": normalised(BACKWARD_2),
    "Fig. 2, forward": normalised(FORWARD_2),
    "Example 2": normalised(EXAMPLE_2),
    "Example 4": normalised(EXAMPLE_4),
    "random, 2": random_rows(1, 2),
    "random, 5": random_rows(2, 5),
    "random, 7, peaked": random_rows(3, 7, 0.2),
    "sparse, 6": sparse_rows(4, 6),
    "sparse, 8": sparse_rows(5, 8),
    "nearly deterministic": normalised(np.eye(5) + 1e-6),
    "nearly deterministic, one absorbing": normalised([[1 - 1e-7, 1e-7], [0.0, 1.0]]),
    "equal rows": normalised(EVEN),
    "tiny entries, 1e-12": tiny_rows(1e-12),
    "tiny entries, 1e-300": tiny_rows(1e-300),
}
matrices = pytest.mark.parametrize("name", MATRICES)


def same(got: float, exact: Any, relative: float = 1e-12) -> bool:
    return bool(exact <= got <= exact * (1 + relative))


@st.composite
def chains(draw: st.DrawFn, most: int = 6) -> Floats:
    """Transition matrices with zeros, tiny entries and equal rows among them."""
    size = draw(st.integers(2, most))
    entry = st.one_of(st.just(0.0), st.floats(1e-6, 1.0), st.sampled_from([1e-12, 1e-30, 1e-100]))
    rows = draw(
        st.lists(
            st.lists(entry, min_size=size, max_size=size).filter(lambda row: sum(row) > 1e-7),
            min_size=size,
            max_size=size,
        )
    )
    return normalised(rows)


alphas = st.one_of(st.floats(1e-9, 50.0), st.floats(1e-12, 1e-6), st.floats(50.0, 600.0))


# The paper's numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("matrix", "supremum"),
    [
        (BACKWARD_2, 0.2716859682450311),
        (EXAMPLE_2, 0.6459066160576808),
        (EXAMPLE_4, 0.20153247882443304),
        (BACKWARD_8, 0.2487718349655268),
        (FORWARD_8, 0.34324905538530603),
    ],
)
def test_suprema_of_the_paper_at_a_tenth(matrix: list[list[float]], supremum: float) -> None:
    assert LossFunction.of(matrix).supremum(0.1) == pytest.approx(supremum, rel=1e-12, abs=0)
    assert oracle.algorithm_6(0.1, oracle.algorithm_2(matrix)) == pytest.approx(supremum, rel=1e-12)


def test_tenth_backward_leakage_of_example_2() -> None:
    told = LossFunction.of(EXAMPLE_2).accumulated([0.1] * 10)[-1]
    assert told == pytest.approx(0.4963885968498696, rel=1e-12, abs=0)


def test_budgets_of_fig_2_and_fig_8() -> None:
    found = allocate(LossFunction.of(BACKWARD_2), LossFunction.of(FORWARD_2), 1.0)
    assert found.constant == pytest.approx(0.2203095252275054, rel=1e-12, abs=0)
    found = allocate(LossFunction.of(BACKWARD_8), LossFunction.of(FORWARD_8), 1.0)
    assert found.middle == pytest.approx(0.20387212304613664, rel=1e-12, abs=0)
    assert found.first == pytest.approx(0.49980623, abs=5e-9)
    assert found.last == pytest.approx(0.70406589, abs=5e-9)


def test_transition_points_of_algorithm_2_are_those_of_its_example() -> None:
    points = oracle.algorithm_2([[0.2, 0.3, 0.5], [0.1, 0.0, 0.9]])[0][2]
    assert points[0] == math.inf
    assert round(points[1], 2) == 1.47


# Oracles ------------------------------------------------------------------------------------------


@matrices
@pytest.mark.parametrize("alpha", SMALL_ALPHAS)
def test_the_loss_is_the_optimum_of_the_linear_fractional_program(name: str, alpha: float) -> None:
    assert temporal_loss(MATRICES[name], alpha) == pytest.approx(
        oracle.linear_fractional(MATRICES[name], alpha), abs=1e-9
    )


@matrices
@pytest.mark.parametrize("alpha", [*SMALL_ALPHAS, 10.0])
def test_all_algorithms_of_the_paper_agree_with_the_best_of_all_subsets(
    name: str, alpha: float
) -> None:
    matrix = MATRICES[name]
    best, parameters = oracle.best_subset(matrix, alpha), oracle.algorithm_2(matrix)
    pieces = oracle.algorithm_4(parameters, 1e-4, 12.0)
    near = pytest.approx(best, rel=1e-10, abs=1e-14)
    assert oracle.algorithm_1(matrix, alpha) == near
    assert oracle.algorithm_3(alpha, parameters) == near
    assert oracle.algorithm_5(alpha, pieces) == near
    assert oracle.all_pairs(matrix, alpha) == near
    assert LossFunction.of(matrix)(alpha) == near


@matrices
def test_the_loss_is_that_of_fifty_digits_rounded_up(name: str) -> None:
    exact, loss = ExactLoss(MATRICES[name]), LossFunction.of(MATRICES[name])
    for alpha in ALPHAS:
        wanted = exact(alpha)
        assert same(temporal_loss(MATRICES[name], alpha), wanted), alpha
        assert same(loss(alpha), wanted), alpha


@settings(max_examples=30)
@given(chains(), alphas)
def test_any_chain_loses_what_fifty_digits_say_rounded_up(matrix: Floats, alpha: float) -> None:
    wanted = ExactLoss(matrix)(alpha)
    # Rows that differ by rounding only are the matter of a test of their own.
    if wanted > 1e-3 * min(alpha, 1.0):
        assert wanted <= temporal_loss(matrix, alpha) <= wanted * (1 + 1e-12)
        assert wanted <= LossFunction.of(matrix)(alpha) <= wanted * (1 + 1e-12)


def test_a_missing_plus_one_in_algorithm_2_is_noticed() -> None:
    noticed = 0
    for seed, alpha in itertools.product(range(60), (0.2, 0.5, 1.0, 2.0)):
        matrix = random_rows(seed, 4, 0.5)
        planted = oracle.algorithm_3(alpha, oracle.algorithm_2(matrix, plus_one=False))
        found = temporal_loss(matrix, alpha)
        assert planted <= found
        noticed += planted < found * (1 - 1e-3)
    assert noticed >= 5


# Laws ---------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(chains(), alphas)
def test_the_loss_lies_between_nothing_and_everything(matrix: Floats, alpha: float) -> None:
    assert 0 <= temporal_loss(matrix, alpha) <= alpha
    assert 0 <= LossFunction.of(matrix)(alpha) <= alpha


@settings(max_examples=30)
@given(chains(), alphas)
def test_the_hull_tells_what_the_pairs_tell(matrix: Floats, alpha: float) -> None:
    direct = temporal_loss(matrix, alpha)
    assert LossFunction.of(matrix)(alpha) == pytest.approx(direct, rel=1e-12, abs=1e-15 * alpha)


@settings(max_examples=30)
@given(chains(), st.lists(alphas, min_size=2, max_size=6))
def test_more_leakage_is_never_less_loss(matrix: Floats, levels: list[float]) -> None:
    loss = LossFunction.of(matrix)
    told = [loss(level) for level in sorted(levels)]
    assert all(one <= other * (1 + 1e-13) for one, other in itertools.pairwise(told))


@settings(max_examples=30)
@given(chains(), alphas, st.randoms(use_true_random=False))
def test_names_of_values_do_not_matter(matrix: Floats, alpha: float, random: Any) -> None:
    rows, columns = list(range(len(matrix))), list(range(len(matrix)))
    random.shuffle(rows)
    random.shuffle(columns)
    turned = matrix[rows][:, columns]
    told = temporal_loss(matrix, alpha)
    assert temporal_loss(turned, alpha) == pytest.approx(told, rel=1e-12, abs=1e-15 * alpha)
    assert LossFunction.of(turned)(alpha) == pytest.approx(told, rel=1e-12, abs=1e-15 * alpha)


@settings(max_examples=30)
@given(st.lists(chains(4), min_size=1, max_size=3), alphas)
def test_any_of_some_chains_loses_as_much_as_the_worst(choice: list[Floats], alpha: float) -> None:
    together = LossFunction.of_any(choice)(alpha)
    each = [LossFunction.of(matrix)(alpha) for matrix in choice]
    assert together >= max(each) * (1 - 1e-15)
    assert together == pytest.approx(max(each), rel=1e-12, abs=1e-15 * alpha)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_equal_rows_lose_nothing(alpha: float) -> None:
    assert temporal_loss(EVEN, alpha) == LossFunction.of(EVEN)(alpha) == 0.0
    assert temporal_loss([[1.0]], alpha) == LossFunction.of([[1.0]])(alpha) == 0.0
    assert LossFunction.unknown()(alpha) == 0.0


@pytest.mark.parametrize("alpha", [0.0, *ALPHAS, 1e4])
def test_rows_without_a_common_column_lose_everything(alpha: float) -> None:
    apart = [[0.5, 0.5, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.3, 0.7], [0.25] * 4]
    for matrix, pair in ((IDENTITY, (0, 1)), (apart, (0, 2))):
        assert temporal_loss(matrix, alpha) == LossFunction.of(matrix)(alpha) == alpha
        assert LossFunction.of(matrix).disjoint == pair
    assert LossFunction.of(EXAMPLE_2).disjoint is None


def test_nothing_lost_of_nothing() -> None:
    assert temporal_loss(EXAMPLE_2, 0.0) == LossFunction.of(EXAMPLE_2)(0.0) == 0.0


@settings(max_examples=30)
@given(chains(4), st.floats(1e-6, 40.0))
def test_inverse_is_the_largest_leakage_with_that_loss(matrix: Floats, value: float) -> None:
    loss = LossFunction.of(matrix)
    most = loss.inverse(value)
    if most == math.inf:
        assert loss(math.inf if loss.gaps.size else 700.0) <= value
        return
    assert loss(most) <= value
    assert loss(most * (1 + 1e-9) + 1e-12) > value or most > 300.0


@matrices
def test_slope_is_that_of_finite_differences(name: str) -> None:
    exact, loss = ExactLoss(MATRICES[name]), LossFunction.of(MATRICES[name])
    for alpha in (0.0123, 0.321, 1.71, 4.57, 11.3):
        with mpmath.workdps(oracle.DIGITS):
            step = mpmath.mpf(10) ** -15
            slope = (exact(alpha + step) - exact(alpha - step)) / (2 * step)
        assert loss.slope(alpha) == pytest.approx(float(slope), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("matrix", "rule"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], "sum to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], "negative"),
        ([[math.nan, 1.0], [0.5, 0.5]], "NaN"),
        ([0.5, 0.5], "be a matrix"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(matrix: Any, rule: str) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        temporal_loss(matrix, 1.0)
    with pytest.raises(InvalidParameter, match=rule):
        LossFunction.of(matrix)


@pytest.mark.parametrize("alpha", [-1.0, math.nan])
def test_a_leakage_below_nothing_is_refused(alpha: float) -> None:
    with pytest.raises(InvalidParameter, match="alpha"):
        temporal_loss(EXAMPLE_2, alpha)
    with pytest.raises(InvalidParameter, match="alpha"):
        LossFunction.of(EXAMPLE_2)(alpha)


def test_a_choice_of_no_matrix_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        LossFunction.of_any([])


# Suprema ------------------------------------------------------------------------------------------


@matrices
@pytest.mark.parametrize("epsilon", [1e-6, 0.01, 0.1, 0.2, 1.0])
def test_the_supremum_is_what_fifty_digits_say_and_one_more_release_keeps_it(
    name: str, epsilon: float
) -> None:
    exact, found = ExactLoss(MATRICES[name]), LossFunction.of(MATRICES[name]).supremum(epsilon)
    wanted = exact.supremum(epsilon)
    if wanted == mpmath.inf:
        assert found == math.inf
        return
    # How ill-conditioned the fixed point is, is seen from its slope there.
    slope = LossFunction.of(MATRICES[name]).slope(float(wanted))
    assert wanted <= found <= wanted * (1 + 1e-12 / max(1 - slope, 1e-9))
    with mpmath.workdps(oracle.DIGITS):
        assert exact(found) + mpmath.mpf(epsilon) <= found


@matrices
def test_iteration_tends_to_the_supremum_from_below(name: str) -> None:
    loss = LossFunction.of(MATRICES[name])
    bound = loss.supremum(0.1)
    told = loss.accumulated([0.1] * 3000)
    assert np.all(np.diff(told) >= -1e-14)
    if bound == math.inf:
        assert told[-1] > 10
    else:
        assert told[-1] <= bound * (1 + 1e-15)
        assert told[-1] == pytest.approx(bound, rel=1e-9) or loss.slope(bound) > 0.99


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8, 0.99])
def test_the_supremum_is_infinite_exactly_from_the_logarithm_of_one_over_q_on(share: float) -> None:
    loss = LossFunction.of([[share, 1 - share], [0.0, 1.0]])
    edge = math.log(1 / share)
    assert loss.supremum(edge) == math.inf
    assert loss.supremum(edge * (1 + 1e-9)) == math.inf
    below = edge * (1 - 1e-6)
    assert loss.supremum(below) == pytest.approx(
        math.log((1 - share) * math.exp(below) / (1 - share * math.exp(below))), rel=1e-6
    )


def test_nothing_settles_where_rows_share_nothing_and_at_once_where_they_are_equal() -> None:
    assert LossFunction.of(IDENTITY).supremum(1e-9) == math.inf
    assert LossFunction.of(IDENTITY).supremum(0.0) == 0.0
    assert LossFunction.of(EVEN).supremum(0.3) == 0.3
    assert LossFunction.unknown().supremum(0.3) == 0.3
    assert LossFunction.of([[1.0]]).supremum(0.3) == 0.3


def test_a_tiny_denominator_does_not_cancel() -> None:
    matrix = normalised([[0.9, 0.1], [1e-15, 1 - 1e-15]])
    for epsilon in (0.05, 0.1053605156578263, 0.2):
        wanted = ExactLoss(matrix).supremum(epsilon)
        found = LossFunction.of(matrix).supremum(epsilon)
        assert wanted <= found <= wanted * (1 + 1e-6)


# Sizes and forms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("concentration", [0.05, 1.0, 50.0])
def test_many_rows_lose_what_all_pairs_lose(concentration: float) -> None:
    matrix = random_rows(7, 200 if concentration == 1.0 else 80, concentration)
    loss = LossFunction.of(matrix)
    for alpha in (0.01, 1.0, 6.0):
        wanted = oracle.all_pairs(matrix, alpha)
        assert temporal_loss(matrix, alpha) == pytest.approx(wanted, rel=1e-12)
        assert loss(alpha) == pytest.approx(wanted, rel=1e-12)
    exact = ExactLoss(matrix, pairs=loss.pairs)
    for alpha in (1e-6, 0.1, 3.0, 50.0):
        assert same(loss(alpha), exact(alpha), 1e-11)


def test_sparse_matrices_are_what_they_are_written_out() -> None:
    for seed in range(5):
        table = sparse_rows(seed, 40)
        for form in (sparse.csr_array, sparse.csc_array, sparse.coo_array):
            loss = LossFunction.of(form(table))
            assert np.array_equal(loss.gaps, LossFunction.of(table).gaps)
            assert np.array_equal(loss.bases, LossFunction.of(table).bases)
            assert temporal_loss(form(table), 1.3) == temporal_loss(table, 1.3)


def test_strangers_are_found_exactly_where_there_are_some() -> None:
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = rng.random((7, 7)) * (rng.random((7, 7)) < 0.45)
        table[np.arange(7), rng.integers(0, 7, 7)] += 0.1
        shared = (table > 0).astype(int) @ (table > 0).astype(int).T
        pair = strangers(sparse.csr_array(table))
        assert (pair is None) == bool(shared.all())
        if pair is not None:
            found += 1
            assert shared[pair] == 0
    assert 10 <= found <= 50


def test_a_large_map_whose_rows_are_strangers_is_settled_without_writing_it_out() -> None:
    size = 6000
    ring = sparse.csr_array(
        (np.full(2 * size, 0.5), (np.arange(size).repeat(2), _ring(size))), shape=(size, size)
    )
    loss = LossFunction.of(ring)
    assert loss.disjoint is not None
    assert loss(3.0) == 3.0
    close = sparse.csr_array(sparse.hstack([ring * 0.5, np.full((size, 1), 0.5)]))
    with pytest.raises(InvalidParameter, match="at most 5000 rows"):
        LossFunction.of(close)


def _ring(size: int) -> NDArray[np.int64]:
    here = np.arange(size)
    return np.stack([here, (here + 1) % size], axis=1).ravel()


# The sieve in single precision --------------------------------------------------------------------


def crowd(lead: float, spread: float, seed: int, size: int = 48) -> Floats:
    """Many pairs within `spread` of each other, and one that leads by about `lead`."""
    rng = np.random.default_rng(seed)
    half = size // 2
    high, low = np.full(size, 0.2), np.full(size, 0.2)
    high[:half], low[half:] = 1.8, 1.8
    rows = np.array([high if row % 2 else low for row in range(size)]) / size
    rows += spread * rng.uniform(-1, 1, rows.shape) / size
    rows = normalised(rows)
    leader = 2 * rng.integers(0, half) + 1
    rows[leader, :half] += lead / half
    rows[leader, half:] -= lead / half
    return normalised(rows)


@pytest.mark.parametrize("lead", [0.0, 1e-9, 1e-7, 3e-6])
@pytest.mark.parametrize("spread", [0.0, 1e-9, 1e-7, 1e-5])
def test_no_pair_is_lost_among_many_that_are_as_good(lead: float, spread: float) -> None:
    for seed in range(3):
        matrix = crowd(lead, spread, seed)
        for alpha in (0.01, 1.0, 9.0):
            wanted = oracle.all_pairs(matrix, alpha)
            assert temporal_loss(matrix, alpha) == pytest.approx(wanted, rel=3e-14)
            assert LossFunction.of(matrix)(alpha) == pytest.approx(wanted, rel=3e-14)


@pytest.mark.parametrize("entry", [1e-37, 1e-39, 1e-45, 1e-60, 1e-200])
def test_entries_below_single_precision_count(entry: float) -> None:
    rng = np.random.default_rng(3)
    table = rng.dirichlet(np.ones(9), 9)
    table[rng.random((9, 9)) < 0.4] = entry
    table[:, 0] += 0.05
    matrix = normalised(table)
    exact, loss = ExactLoss(matrix), LossFunction.of(matrix)
    for alpha in (0.5, 20.0, 85.0, 95.0, 110.0, 150.0, 460.0, 600.0):
        assert same(temporal_loss(matrix, alpha), exact(alpha)), alpha
        assert same(loss(alpha), exact(alpha)), alpha


# Certificates: each of these was found broken -----------------------------------------------------


def test_a_corner_between_very_small_entries_is_not_cut_off() -> None:
    matrix = [[0.4, 0.3, 0.2, 0.1], [0.0, 1e-290, 1e-280, 1.0]]
    assert LossFunction.of(matrix)(660.0) >= ExactLoss(matrix)(660.0)


def test_beyond_the_range_of_floats_the_loss_is_still_a_bound() -> None:
    matrix = [[1.0, 1e-305], [1e-305, 1.0]]
    assert LossFunction.of(matrix)(800.0) >= ExactLoss(matrix)(800.0)


@pytest.mark.parametrize("alpha", [701.0, 800.0, 1e5])
def test_beyond_the_range_of_floats_equal_rows_lose_nothing_and_both_ways_agree(
    alpha: float,
) -> None:
    assert temporal_loss(EVEN, alpha) == 0.0
    for matrix in (FORWARD_8, EXAMPLE_2, EXAMPLE_4):
        assert temporal_loss(matrix, alpha) == pytest.approx(LossFunction.of(matrix)(alpha))


def test_a_loss_that_is_bounded_settles_however_large_the_budget_is() -> None:
    wanted = ExactLoss(FORWARD_8).supremum(800.0)
    assert wanted <= LossFunction.of(FORWARD_8).supremum(800.0) <= wanted * (1 + 1e-12)


def test_nothing_carries_over_from_an_infinite_leakage_without_correlation() -> None:
    assert LossFunction.unknown()(math.inf) == 0.0
    assert LossFunction.of(EVEN)(math.inf) == 0.0


@pytest.mark.parametrize("difference", [1e-15, 1e-13, 1e-10, 1e-6])
def test_rows_that_are_nearly_equal_never_lose_less_than_they_do(difference: float) -> None:
    rng = np.random.default_rng(11)
    below = 0
    for _ in range(40):
        first = rng.dirichlet(np.ones(5))
        matrix = np.array([first, first * (1 + difference * rng.standard_normal(5))])
        matrix[1, 0] += 1 - matrix[1].sum()
        exact = ExactLoss(matrix)(1.0)
        below += bool(temporal_loss(matrix, 1.0) < exact or LossFunction.of(matrix)(1.0) < exact)
    assert below == 0


def pair_of_halves(columns: int, part: float) -> Floats:
    """Two rows, each with most of its mass spread evenly over one half of the columns."""
    half = columns // 2
    row = np.full(columns, (1 - part) / (columns - half))
    row[:half] = part / half
    return np.array([row, np.roll(row, half)])


def test_the_quick_sum_is_as_near_as_the_margin_says_at_the_largest_size() -> None:
    worst = 0.0
    for part in np.linspace(0.90, 0.98, 81):
        first, second = pair_of_halves(5000, float(part))
        quick, _ = _quick(first.astype(np.float32), second.astype(np.float32), 1.0)
        worst = max(worst, abs(quick - math.fsum(np.maximum(first - second, 0.0))))
    assert worst < (8 + 5000) * _UNIT


def test_the_best_pair_of_wide_rows_is_not_sieved_out() -> None:
    columns, lead = 20_000, 1e-6
    missed = []
    for part in np.linspace(0.90, 0.98, 81):
        first, second = pair_of_halves(columns, float(part))
        better = second.copy()
        better[: columns // 2] -= 2 * lead / columns
        better[columns // 2 :] += 2 * lead / columns
        matrix = normalised([first, second, better])
        if temporal_loss(matrix, 1.0) < oracle.all_pairs(matrix, 1.0):
            missed.append(float(part))
    assert missed == []


def test_a_sparse_matrix_that_is_no_transition_matrix_is_refused_like_a_dense_one() -> None:
    for wrong in ([[5.0, 0.0], [0.0, 7.0]], [[1.0, 0.0], [0.0, -1.0]], [[1.0, 0.0], [0.0, 0.0]]):
        with pytest.raises(InvalidParameter):
            LossFunction.of(wrong)
        with pytest.raises(InvalidParameter):
            LossFunction.of(sparse.csr_array(wrong))
