import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import ApproxDP, PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, seeded
from sfumato.noise.gaussian_noise import GaussianNoise
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.rivals.square_root_tree import SquareRootTree
from sfumato.series.rivals.tree import BinaryTree, Told, randomly_placed
from sfumato.series.series_methods import AnyMethod
from tests.series.quick import Quick, simulations
from tests.strategies import Floats

ALPHA = 1e-4
WRONG_BY = 0.3
SECRET = 9151.25

both = pytest.mark.parametrize(
    "method",
    [
        BinaryTree.at(1.0, 1.0, 40),
        SquareRootTree.at(1.0, 1.0, 1e-6, 40),
        SquareRootTree.at(1.0, 1.0, 1e-6, 40, band=3),
    ],
    ids=["tree", "root", "banded"],
)


def simulated(method: AnyMethod, series: Floats, seed: int = 1) -> Floats:
    return method.release(series, seeded(seed), Purpose.SIMULATION)


def nodes(t: int) -> list[tuple[int, int]]:
    """The dyadic intervals [a, b) that make up [0, t), largest first."""
    found, start = [], 0
    for level in reversed(range(t.bit_length())):
        if t >> level & 1:
            found.append((start, start + 2**level))
            start += 2**level
    return found


# --- the tree ---


@pytest.mark.parametrize("length", [1, 2, 3, 7, 8, 31, 32, 100])
def test_an_event_lies_in_at_most_one_node_of_each_level(length: int) -> None:
    used = set(itertools.chain.from_iterable(nodes(t) for t in range(1, length + 1)))
    most = max(sum(a <= event < b for a, b in used) for event in range(length))
    tree = BinaryTree.at(1.0, 1.0, length)
    assert most == tree.levels == math.floor(math.log2(length)) + 1


@settings(max_examples=30)
@given(st.lists(st.integers(-50, 50), min_size=1, max_size=70))
def test_without_noise_sums_and_values_are_exact(series: list[int]) -> None:
    values = np.array(series, dtype=float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DiscreteLaplace, "draw", lambda self, count, coins: np.zeros(count, int))
        patch.setattr(GaussianNoise, "perturb", lambda self, values, coins: np.asarray(values))
        for told, expected in ((Told.SUMS, np.cumsum(values)), (Told.VALUES, values)):
            tree = BinaryTree.at(1.0, 1.0, len(series), told)
            assert simulated(tree, values) == pytest.approx(expected, abs=1e-12)
            for band in (None, 1, 2, 5):
                root = SquareRootTree.at(1.0, 1.0, 1e-6, len(series), band, told)
                assert simulated(root, values) == pytest.approx(expected, abs=1e-9)


def test_the_noise_of_a_sum_is_that_of_its_dyadic_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    length = 37
    drawn: list[int] = []

    def counted(self: DiscreteLaplace, count: int, randomness: Randomness) -> Floats:
        drawn.append(3 ** (len(drawn) % 30) + len(drawn))
        return np.array(drawn[-1:])

    monkeypatch.setattr(DiscreteLaplace, "draw", counted)
    tree = BinaryTree.at(1.0, 1.0, length, Told.SUMS)
    told = simulated(tree, np.zeros(length)) / tree.noise.step
    # A node is drawn when it ends, so interval [a, b) has the draw of time b.
    expected = [sum(drawn[b - 1] for _, b in nodes(t)) for t in range(1, length + 1)]
    assert told == pytest.approx(expected, rel=1e-12)
    assert len(drawn) == length


def test_values_are_differences_of_sums() -> None:
    series = np.arange(50.0)
    for make in (
        lambda told: BinaryTree.at(1.0, 1.0, 50, told),
        lambda told: SquareRootTree.at(1.0, 1.0, 1e-6, 50, 4, told),
    ):
        ways = [make(told) for told in (Told.SUMS, Told.VALUES)]
        sums, values = (way.release(series, Quick(1), Purpose.SIMULATION) for way in ways)
        assert np.diff(sums, prepend=0.0) == pytest.approx(values, abs=1e-9)


def test_memory_of_the_tree_grows_with_the_logarithm() -> None:
    for length in (10, 1000, 100_000):
        releasing = BinaryTree.at(1.0, 1.0, length).begin(seeded(1), purpose=Purpose.SIMULATION)
        for _ in range(10):
            releasing.step(1.0)
        held = [array.size for array in releasing.state.arrays.values()]
        assert held == [length.bit_length(), 1]


def test_the_error_of_sums_grows_like_the_logarithm_to_one_and_a_half() -> None:
    lengths = 2 ** np.arange(6, 17)
    errors = []
    for length in lengths.tolist():
        levels = length.bit_length()
        tree = BinaryTree.at(1.0, 1.0, length, Told.SUMS)
        ones = np.array([bin(t).count("1") for t in range(1, length + 1)])
        ratio = math.exp(-tree.noise.noise.step)
        node = tree.noise.step**2 * 2 * ratio / (1 - ratio) ** 2
        assert tree.variances() == pytest.approx(ones * node)
        assert node == pytest.approx(2 * levels**2, rel=2e-3)
        errors.append(math.sqrt(tree.variances().mean()))
    slope = np.polyfit(np.log(np.log2(lengths)), np.log(errors), 1)[0]
    assert slope == pytest.approx(1.5, abs=0.1)


@pytest.mark.parametrize("told", list(Told))
@pytest.mark.parametrize("kind", ["tree", "root", "banded"])
def test_simulated_variance_is_the_formula(told: Told, kind: str) -> None:
    length, times = 12, 600
    method: BinaryTree | SquareRootTree = (
        BinaryTree.at(1.0, 1.0, length, told)
        if kind == "tree"
        else SquareRootTree.at(1.0, 1.0, 1e-6, length, 3 if kind == "banded" else None, told)
    )
    found = (simulations(method, [0.0] * length, times, 7) ** 2).mean(axis=0)
    assert found == pytest.approx(method.variances(), rel=0.3)
    assert found.mean() == pytest.approx(method.variances().mean(), rel=0.1)


def test_the_budget_is_kept_and_a_forgotten_level_is_seen() -> None:
    for length, epsilon in itertools.product([1, 2, 9, 64, 1000], [0.1, 1.0, 3.0]):
        tree = BinaryTree.at(0.7, epsilon, length)
        assert tree.noise.steps * tree.noise.step >= 0.7
        assert epsilon * (1 - 1e-7) <= tree.guarantee.epsilon <= epsilon
        # Exactly: the largest ratio of neighbouring probabilities, to the power of all steps.
        table = [int(each) for each in tree.noise.noise.weights]
        steepest = max(
            [mpmath.mpf(a) / b for a, b in itertools.pairwise(table)]
            + [mpmath.mpf(table[-1]) / table[0] * 2**62 / tree.noise.noise.repeat]
        )
        levels = math.floor(math.log2(length)) + 1
        exact = levels * tree.noise.steps * mpmath.log(steepest)
        assert exact <= tree.guarantee.epsilon <= exact * (1 + 1e-9)
    planted = BinaryTree(LaplaceNoise.at(1.0, 1.0 / 9), 1000)  # 10 levels, not 9
    assert not planted.guarantee <= PureDP(1.0)


def test_a_planted_bug_is_found_by_counting() -> None:
    """Nodes that get a whole budget each: the last of 8 values shows in 4 of them."""
    length, epsilon, count = 8, 2.0, 1500
    found = []
    for noise in (LaplaceNoise.at(1.0, epsilon), BinaryTree.at(1.0, epsilon, length).noise):
        tree = BinaryTree(noise, length, Told.SUMS)

        def hits(first: float, tree: BinaryTree = tree) -> int:
            # Value 1 is in the nodes that end at 1, 2, 4 and 8.
            runs = simulations(tree, [first] + [0.0] * 7, count, int(first))
            return int((runs[:, [0, 1, 3, 7]] > 0.5).all(axis=1).sum())

        with_it, without = hits(1.0), hits(0.0)
        # A lower bound of epsilon that is wrong with probability 1e-4 at most.
        low = stats.beta.ppf(ALPHA / 2, with_it, count - with_it + 1)
        high = stats.beta.ppf(1 - ALPHA / 2, without + 1, count - without)
        found.append(math.log(low / high))
    assert found[0] > epsilon
    assert found[1] <= epsilon


# --- the square root ---


def exact_root(count: int) -> Floats:
    coefficients = [1.0]
    for k in range(1, count):
        coefficients.append(coefficients[-1] * (2 * k - 1) / (2 * k))
    return np.array(coefficients)


def toeplitz(column: Floats, size: int) -> Floats:
    full = np.zeros(size)
    full[: column.size] = column
    return np.array([[full[i - j] if i >= j else 0.0 for j in range(size)] for i in range(size)])


def test_the_square_root_squared_is_counting() -> None:
    root = toeplitz(exact_root(200), 200)
    assert np.abs(root @ root - np.tri(200)).max() < 1e-12


@pytest.mark.parametrize("width", [2.0, 0.7, 3e5])
@pytest.mark.parametrize("band", [None, 1, 2, 7, 30])
def test_guarantee_and_variance_against_dense_matrices(band: int | None, width: float) -> None:
    length, epsilon = 60, 1.0
    method = SquareRootTree.at(width, epsilon, 1e-6, length, band, Told.SUMS)
    given = method.coefficients / method.coefficients[0]
    assert given == pytest.approx(exact_root(given.size), abs=0.5 / method.coefficients[0])
    assert given.size == min(length, band or length)
    encoder = toeplitz(given, length)
    decoder = np.tri(length) @ np.linalg.inv(encoder)
    assert decoder @ encoder == pytest.approx(np.tri(length), abs=1e-9)
    deviation = method.noise.deviation * method.noise.step
    # The worst of all events, each moved by the sensitivity in whole steps.
    step = method.noise.step * method.coefficients[0]
    moved = step * math.ceil(width / step)
    assert width <= moved <= 1.011 * width
    ratio = moved * float(np.linalg.norm(encoder, axis=0).max()) / deviation
    assert method.ratio == pytest.approx(ratio, rel=1e-12)
    with mpmath.workdps(40):
        high, low = (
            mpmath.mpf(ratio) / 2 - epsilon / ratio,
            -mpmath.mpf(ratio) / 2 - epsilon / ratio,
        )
        exact = float(mpmath.ncdf(high) - mpmath.e**epsilon * mpmath.ncdf(low))
    assert exact <= method.guarantee.delta <= exact + 1e-14 + 1e-7 * exact
    assert method.guarantee <= ApproxDP(epsilon, 1e-6)
    assert method.guarantee.delta > 0.8e-6
    expected = (decoder**2).sum(axis=1) * method.noise.variance
    assert method.variances() == pytest.approx(expected, rel=1e-9)


def test_what_is_released_is_the_decoded_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoder times (encoder times series + noise), by dense matrices, with the same noise."""
    length, rng = 25, np.random.default_rng(3)
    series, noise = rng.integers(-4, 5, length).astype(float), rng.normal(0, 9, length)
    for band in (None, 4):
        queue = iter(noise)
        monkeypatch.setattr(
            GaussianNoise, "perturb", lambda self, values, coins, queue=queue: values + next(queue)
        )
        method = SquareRootTree.at(1.0, 1.0, 1e-6, length, band, Told.SUMS)
        encoder = toeplitz(method.coefficients / method.coefficients[0], length)
        expected = np.tri(length) @ np.linalg.solve(encoder, encoder @ series + noise)
        assert simulated(method, series) == pytest.approx(expected, abs=1e-8)


def test_the_error_is_within_one_percent_of_the_exact_root() -> None:
    for length in (30, 256, 5000):
        method = SquareRootTree.at(1.0, 1.0, 1e-6, length, told=Told.SUMS)
        exact = float((exact_root(length) ** 2).sum())
        deviation = method.noise.deviation * method.noise.step
        rows = math.sqrt(method.variances()[-1] / method.noise.variance)
        assert method.column * rows == pytest.approx(exact, rel=0.01)
        assert deviation * method.ratio == pytest.approx(method.column, rel=1e-9)


def test_sums_are_better_than_the_tree_when_series_are_long() -> None:
    for length in (1000, 20_000):
        tree = BinaryTree.at(1.0, 1.0, length, Told.SUMS)
        root = SquareRootTree.at(1.0, 1.0, 1e-6, length, told=Told.SUMS)
        assert root.variances().max() < 0.2 * tree.variances().max()
        assert root.variances().mean() < 0.4 * tree.variances().mean()


def test_a_band_bounds_memory() -> None:
    method = SquareRootTree.at(1.0, 1.0, 1e-6, 500, band=16)
    releasing = method.begin(seeded(1), purpose=Purpose.SIMULATION)
    for _ in range(40):
        releasing.step(1.0)
    assert [array.size for array in releasing.state.arrays.values()] == [16, 16, 1]
    assert SquareRootTree.at(1.0, 1.0, 1e-6, 500).band == 500


@pytest.mark.parametrize("band", [None, 16])
@pytest.mark.parametrize("epsilon", [1.0, 12.0])
def test_many_roundings_take_next_to_nothing_of_a_small_delta(
    band: int | None, epsilon: float
) -> None:
    method = SquareRootTree.at(1.0, epsilon, 1e-8, 100_000, band=band)
    assert ApproxDP(epsilon, 0.9e-8) <= method.guarantee <= ApproxDP(epsilon, 1e-8)


def test_a_delta_that_floats_cannot_tell_from_nothing_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delta must be larger"):
        SquareRootTree.at(1.0, 1.0, 1e-16, 100)


# --- both ---


@settings(max_examples=50)
@given(st.floats(-1e3, 1e3), st.floats(0.0, 0.99), st.integers(0, 2**32))
def test_with_one_coin_values_stay_as_near_as_they_were(
    low: float, apart: float, seed: int
) -> None:
    step, steps = 2.0**-5, 32
    first, second = (randomly_placed(each, step, seeded(seed)) for each in (low, low + apart))
    assert 0 <= second - first <= steps


def test_rounding_is_unbiased() -> None:
    coins = seeded(2)
    drawn = np.array([randomly_placed(-2.3, 1.0, coins) for _ in range(4000)])
    assert set(drawn.tolist()) == {-3, -2}
    assert drawn.mean() == pytest.approx(-2.3, abs=0.035)


def test_noise_is_three_sided_right() -> None:
    tree, count = BinaryTree.at(1.0, 1.0, 1), 4000
    drawn = simulations(tree, [0.0], count, 4)[:, 0]
    # Whole steps, spread evenly over their cells, are Laplace in all but the finest detail.
    spread = drawn / tree.noise.step + Quick(9).words(count) / 2.0**64 - 0.5

    def fits(part: float) -> float:
        return float(stats.kstest(spread, stats.laplace(scale=part * tree.noise.steps).cdf).pvalue)

    assert fits(1.0) > ALPHA
    assert max(fits(1 - WRONG_BY), fits(1 + WRONG_BY)) < ALPHA


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sensitivity", 0.0),
        ("epsilon", -1.0),
        ("epsilon", 41.0),
        ("delta", 0.0),
        ("delta", 1.0),
        ("length", 0),
        ("length", 2.5),
        ("band", 0),
    ],
)
def test_bad_parameters_are_refused(name: str, wrong: float) -> None:
    right = {"sensitivity": 1.0, "epsilon": 1.0, "delta": 1e-6, "length": 10, "band": 4}
    with pytest.raises(InvalidParameter, match=name):
        SquareRootTree.at(**{**right, name: wrong})  # type: ignore[arg-type]
    if name not in ("delta", "band"):
        with pytest.raises(InvalidParameter, match=name):
            BinaryTree.at(**{"sensitivity": 1.0, "epsilon": 1.0, "length": 10, name: wrong})  # type: ignore[arg-type]


def test_coefficients_that_grow_or_end_below_nothing_are_refused() -> None:
    noise = GaussianNoise.at(1 / 64, 4.0)
    for wrong in ([1, 2], [0], [2, 1, -1], [], [[1]], [3] * 11):
        with pytest.raises(InvalidParameter, match="coefficients"):
            SquareRootTree(noise, np.array(wrong, dtype=np.int64), 8, 10, 1.0)
    with pytest.raises(InvalidParameter, match="one step"):
        SquareRootTree(GaussianNoise.at(1.0, 1.0), np.array([2, 1]), 8, 10, 1.0)
