import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sfumato.core.channel import Channel
from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import LDP, PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import seeded
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.noise.laplace_noise import LaplaceNoise
from sfumato.series.rivals import tops
from sfumato.series.rivals.local_numbers import ONLY_SIGNS, HybridMechanism, SquareWave
from sfumato.series.rivals.topl import Topl
from sfumato.series.rivals.tops import ThresholdChoice, Tops, _uniform
from sfumato.series.series_methods import AnyMethod
from tests.strategies import Floats

ALPHA = 1e-4
WRONG_BY = 0.3

both = pytest.mark.parametrize(
    "method", [Tops.at(10.0, 1.0, 5), Topl.at(10.0, 1.0, 5, points=16)], ids=["tops", "topl"]
)
epsilons = pytest.mark.parametrize("epsilon", [0.05, 0.5, 0.62, 1.0, 3.0, 8.0])


def simulated(method: AnyMethod, series: Floats, seed: int = 1) -> Floats:
    return method.release(series, seeded(seed), Purpose.SIMULATION)


def exact_local(channel: Channel) -> mpmath.mpf:
    """The largest log ratio within a column, from the integers, with many digits."""
    columns = np.array(channel.weights.tolist(), dtype=object).T
    return max(mpmath.log(mpmath.mpf(max(each)) / min(each)) for each in columns)


# --- choosing a threshold ---


def above(values: tuple[float, ...], candidates: Floats) -> list[int]:
    return [sum(value > each for value in values) for each in candidates]


def shares(choice: ThresholdChoice, values: tuple[float, ...]) -> list[Fraction]:
    weights = choice.weights(above(values, choice.candidates))
    return [Fraction(weight, sum(weights)) for weight in weights]


def most_told(choice: ThresholdChoice) -> float:
    """The largest ratio of probabilities over all pairs of neighbouring series of 3 values."""
    levels = [0.0, 1.5, 2.5, 9.0]
    found = Fraction(1)
    for values in itertools.product(levels, repeat=3):
        one = shares(choice, values)
        for place, level in itertools.product(range(3), levels):
            other = list(values)
            other[place] = level
            two = shares(choice, tuple(other))
            found = max(found, *(a / b for a, b in zip(one, two, strict=True)))
    return math.log(found)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_a_choice_keeps_its_budget_on_all_neighbours(epsilon: float) -> None:
    choice = ThresholdChoice.at([1.0, 2.0, 3.0], [0.0, 0.7, 30.0], epsilon)
    assert most_told(choice) <= choice.leakage.epsilon <= epsilon
    assert choice.leakage.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert most_told(choice) > 0.5 * epsilon
    # Planted: twice the slope.
    assert most_told(ThresholdChoice.at([1.0, 2.0, 3.0], [0.0] * 3, 2 * epsilon)) > epsilon


def test_weights_are_those_of_the_exponential_mechanism() -> None:
    costs = [0.0, 3.0, 200.0, 1000.25]
    choice = ThresholdChoice.at([1.0, 2.0, 3.0, 4.0], costs, 0.5)
    counts = [900, 400, 20, 0]
    weights = choice.weights(counts)
    whole = mpmath.log(sum(weights))
    scores = [-0.5 * (count + cost) for count, cost in zip(counts, costs, strict=True)]
    top = max(scores) + math.log(sum(math.exp(each - max(scores)) for each in scores))
    for weight, score in zip(weights, scores, strict=True):
        assert float(mpmath.log(weight) - whole) == pytest.approx(score - top, abs=1e-4)


def test_draws_of_a_threshold_are_three_sided_right() -> None:
    counts, count = [6, 3, 1, 0], 3000
    made = {
        part: ThresholdChoice.at([1.0, 2.0, 3.0, 4.0], [0.0, 0.5, 1.0, 1.5], part * 0.5)
        for part in (1.0, 1 - WRONG_BY, 1 + WRONG_BY)
    }
    coins = seeded(3)
    drawn = [made[1.0].draw(counts, coins) for _ in range(count)]
    found = [drawn.count(each) for each in (1.0, 2.0, 3.0, 4.0)]
    for part, choice in made.items():
        scores = np.array([-part * 0.5 * (c + 0.5 * j) for j, c in enumerate(counts)])
        expected = np.exp(scores) / np.exp(scores).sum()
        assert choice.probabilities(counts) == pytest.approx(expected, rel=1e-6)
        pvalue = stats.chisquare(found, count * expected).pvalue
        assert pvalue > ALPHA if part == 1.0 else pvalue < ALPHA


@pytest.mark.parametrize("below", [1, 2, 3, 7, 2**64, 2**64 + 1, 3**90])
def test_large_uniform_numbers_stay_below_and_reach_far(below: int) -> None:
    coins = seeded(1)
    drawn = [_uniform(below, coins) for _ in range(200)]
    assert min(drawn) >= 0 and max(drawn) < below
    assert max(drawn) >= below * 0.9 - 1 and min(drawn) <= below * 0.1


def test_candidates_that_do_not_grow_are_refused() -> None:
    for wrong in ([], [0.0, 1.0], [2.0, 1.0], [1.0, 1.0]):
        with pytest.raises(InvalidParameter, match="candidates"):
            ThresholdChoice.at(wrong, [0.0] * len(wrong), 1.0)


# --- ToPS ---


@pytest.mark.parametrize(("epsilon", "share"), [(0.2, 0.5), (1.0, 0.1), (3.0, 0.8)])
def test_both_stages_keep_the_budget(epsilon: float, share: float) -> None:
    method = Tops.at(50.0, epsilon, 20, share=share)
    assert method.guarantee <= PureDP(epsilon)
    assert method.later.leakage.epsilon == pytest.approx(epsilon)
    assert method.choice.leakage.epsilon == pytest.approx(share * epsilon, rel=1e-6)
    assert method.early.leakage.epsilon == pytest.approx((1 - share) * epsilon)


def test_a_forgotten_warm_up_is_seen() -> None:
    right = Tops.at(50.0, 1.0, 20)
    # Planted: the first values get noise of the whole budget, and the threshold comes on top.
    planted = Tops(50.0, 20, right.choice, LaplaceNoise.at(1.0, 1.0), right.later)
    assert planted.guarantee.epsilon == pytest.approx(1.5)
    assert not planted.guarantee <= PureDP(1.0)


def quiet(patch: pytest.MonkeyPatch, threshold: float) -> None:
    patch.setattr(DiscreteLaplace, "draw", lambda self, count, coins: np.zeros(count, int))
    patch.setattr(ThresholdChoice, "draw", lambda self, above, coins: threshold)


def test_without_noise_later_values_are_cut_off() -> None:
    series = np.array([1.0, 99.0, 2.0, 5.0, 8.0, -3.0, 99.0])
    with pytest.MonkeyPatch.context() as patch:
        quiet(patch, 4.0)
        told = simulated(Tops.at(16.0, 1.0, 3), series)
    assert told == pytest.approx([1.0, 16.0, 2.0, 4.0, 4.0, 0.0, 4.0], abs=16 / 64)
    assert told[3:] == pytest.approx([4.0, 4.0, 0.0, 4.0])


def test_what_lies_beyond_the_threshold_does_not_matter() -> None:
    method = Tops.at(100.0, 1.0, 50)
    first = np.full(50, 3.0)
    one, two = (simulated(method, np.append(first, np.full(50, each))) for each in (99.5, 100.0))
    with pytest.MonkeyPatch.context() as patch:
        quiet(patch, 10.0)
        cut = [simulated(method, np.append(first, np.full(50, far))) for far in (11.0, 100.0)]
    assert cut[0].tolist() == cut[1].tolist()
    assert one.tolist() == two.tolist()


def test_the_threshold_leaves_few_values_above_and_spares_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tops, "_EXCESS", 0.063)  # what is beyond is little, and known to be
    rng = np.random.default_rng(1)
    series = rng.exponential(1.0, 1200).clip(0, 100.0)
    method = Tops.at(100.0, 2.0, 600)
    told = simulated(method, series)
    plain = math.sqrt(2) * 100.0 / 2.0
    assert np.sqrt(((told[600:] - series[600:]) ** 2).mean()) < 0.1 * plain


def test_blocks_share_one_noise_and_are_smoothed() -> None:
    series = np.append(np.zeros(2), np.arange(1.0, 9.0))
    with pytest.MonkeyPatch.context() as patch:
        quiet(patch, 8.0)
        plain = simulated(Tops.at(8.0, 1.0, 2, block=2), series)[2:]
        mixed = simulated(Tops.at(8.0, 1.0, 2, block=2, weight=0.5), series)[2:]
    assert plain == pytest.approx([4.0, 1.5, 1.5, 3.5, 3.5, 5.5, 5.5, 7.5], abs=0.07)
    assert mixed == pytest.approx([4.0, 1.5, 1.5, 2.5, 2.5, 4.0, 4.0, 5.75], abs=0.07)
    # With noise: a block of 10 has a tenth of it.
    calm = np.full(3000, 5.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThresholdChoice, "draw", lambda self, above, coins: 8.0)
        told = simulated(Tops.at(8.0, 1.0, 2, block=10), calm)[12:]
    assert told.std() == pytest.approx(math.sqrt(2) * 8.0 / 10, rel=0.2)


def test_a_block_of_cut_off_values_moves_by_one_threshold_at_most() -> None:
    method = Tops.at(10.0, 1.0, 1, block=4)
    with pytest.MonkeyPatch.context() as patch:
        quiet(patch, 0.3)
        sums = [simulated(method, np.array([0.0, 0.1, 0.2, 0.1, last]))[-1] for last in (0.0, 10.0)]
    assert 4 * (sums[1] - sums[0]) == pytest.approx(0.3)


# --- ToPL ---


@epsilons
@pytest.mark.parametrize("points", [2, 16, 65])
def test_local_leakage_is_that_of_the_integers(epsilon: float, points: int) -> None:
    method = Topl.at(10.0, epsilon, 5, points)
    exact = max(exact_local(each) for each in (method.wave.channel, method.hybrid.channel))
    assert exact <= method.local.epsilon <= exact + 1e-13 + 1e-13 * exact
    assert method.local <= LDP(epsilon)
    assert method.local.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert method.guarantee.epsilon == method.local.epsilon


def wave_row(epsilon: float, points: int, reach: int, true: int) -> Floats:
    near = np.array([true <= j <= true + 2 * reach for j in range(points + 2 * reach)])
    weights = np.where(near, math.exp(epsilon), 1.0)
    return np.asarray(weights / weights.sum())


def test_the_wave_is_as_wide_as_its_formula() -> None:
    for epsilon in (0.5, 1.0, 4.0):
        large = math.exp(epsilon)
        half = (epsilon * large - large + 1) / (2 * large * (large - 1 - epsilon))
        assert SquareWave.at(epsilon, 1000).reach == math.floor(1000 * half)
    assert SquareWave.at(1e-5, 100).reach == 50


def test_reports_of_the_wave_are_three_sided_right() -> None:
    epsilon, count, true = 1.0, 6000, 3
    wave = SquareWave.at(epsilon, 12)
    words = seeded(5).words(count)
    found = np.bincount(wave.channel.draw([true] * count, words), minlength=12 + 2 * wave.reach)
    for part in (1.0, 1 - WRONG_BY, 1 + WRONG_BY):
        expected = count * wave_row(part * epsilon, 12, wave.reach, true)
        pvalue = stats.chisquare(found, expected).pvalue
        assert pvalue > ALPHA if part == 1.0 else pvalue < ALPHA


def textbook_hybrid(epsilon: float, truth: float, edges: Floats) -> Floats:
    """Probabilities of the signs, and of the piecewise mechanism's density between edges."""
    large, half = math.exp(epsilon), math.exp(epsilon / 2)
    often = 1 - 1 / half if epsilon > ONLY_SIGNS else 0.0
    up = 0.5 + truth * (large - 1) / (2 * large + 2)
    most = (half + 1) / (half - 1)
    left = (most + 1) / 2 * truth - (most - 1) / 2
    right = left + most - 1
    density = (large - half) / (2 * half + 2)
    cells = np.diff(edges)
    inside = np.clip(np.minimum(edges[1:], right) - np.maximum(edges[:-1], left), 0.0, None)
    pieces = density * inside + density / large * (cells - inside)
    return np.concatenate([[(1 - often) * (1 - up), (1 - often) * up], often * pieces])


def test_the_hybrid_comes_close_to_the_textbook_on_fine_lattices() -> None:
    epsilon, points = 2.0, 801
    hybrid = HybridMechanism.at(epsilon, points)
    middle = hybrid.amounts[2:]
    step = middle[1] - middle[0]
    half = math.exp(epsilon / 2)
    assert middle[-1] + step / 2 == pytest.approx((half + 1) / (half - 1), rel=5e-3)
    edges = np.append(middle - step / 2, middle[-1] + step / 2)
    for place in (0, 300, 400, 800):
        expected = textbook_hybrid(epsilon, -1 + 2 * place / (points - 1), edges)
        apart = np.abs(hybrid.channel.probabilities[place] - expected).sum()
        assert apart < 0.02
    large = math.exp(epsilon)
    assert hybrid.amounts[1] == pytest.approx((large + 1) / (large - 1))


@epsilons
@pytest.mark.parametrize("points", [2, 33, 128])
def test_the_hybrid_has_no_bias(epsilon: float, points: int) -> None:
    hybrid = HybridMechanism.at(epsilon, points)
    means = hybrid.channel.probabilities @ hybrid.amounts
    assert means == pytest.approx(np.linspace(-1.0, 1.0, points), abs=1e-8)
    assert (hybrid.amounts.size == 2) == (epsilon <= ONLY_SIGNS)


def test_reports_of_the_hybrid_are_three_sided_right() -> None:
    epsilon, count, points, place = 1.5, 8000, 9, 6
    hybrid = HybridMechanism.at(epsilon, points)
    words = seeded(6).words(count)
    found = np.bincount(hybrid.channel.draw([place] * count, words), minlength=hybrid.amounts.size)
    width = hybrid.amounts.size - 2 - points + 1
    assert width == round(8 * math.exp(-0.75))
    for part in (1.0, 1 - WRONG_BY, 1 + WRONG_BY):
        large, half = math.exp(part * epsilon), math.exp(part * epsilon / 2)
        up = 0.5 + 0.5 * (large - 1) / (large + 1) / 2
        near = np.array([place <= j < place + width for j in range(points - 1 + width)])
        pieces = np.where(near, large, 1.0) / (width * large + points - 1)
        expected = np.concatenate([[(1 - up) / half, up / half], (1 - 1 / half) * pieces])
        pvalue = stats.chisquare(found, count * expected).pvalue
        assert pvalue > ALPHA if part == 1.0 else pvalue < ALPHA


def test_a_distribution_is_found_from_reports() -> None:
    wave, rng = SquareWave.at(2.0, 64), np.random.default_rng(4)
    truth = np.rint(63 * rng.beta(2.0, 5.0, size=20_000)).astype(int)
    reports = wave.channel.draw(truth, seeded(1).words(truth.size))
    shares = wave.distribution(np.bincount(reports, minlength=wave.channel.outputs.size))
    raw = np.bincount(np.clip(reports - wave.reach, 0, 63), minlength=64) / truth.size
    exact = np.bincount(truth, minlength=64) / truth.size
    assert shares.sum() == pytest.approx(1.0)
    assert np.abs((shares - exact).cumsum()).max() < 0.03
    assert np.abs((raw - exact).cumsum()).max() > 0.1


def test_the_threshold_follows_the_values_and_the_span() -> None:
    rng = np.random.default_rng(2)
    series = rng.uniform(0.0, 20.0, 4000)
    found = {}
    for span in (1, 100):
        method = Topl.at(100.0, 1.0, 4000, span=span)
        places = np.rint(series / 100 * 127).astype(int)
        reports = method.wave.channel.draw(places, seeded(1).words(places.size))
        size = method.wave.channel.outputs.size
        found[span] = method.threshold(np.bincount(reports, minlength=size))
    assert 0.0 < found[1] < found[100] < 40.0


def test_the_mean_of_later_reports_is_that_of_cut_off_values() -> None:
    rng = np.random.default_rng(5)
    series = rng.uniform(0.0, 20.0, 3000)
    method = Topl.at(20.0, 3.0, 1000, span=1000)
    told = simulated(method, series)
    assert told[1000:].mean() == pytest.approx(series[1000:].mean(), abs=1.5)
    assert told[:1000].min() >= 0.0 and told[:1000].max() <= 20.0


# --- both ---


@both
def test_values_outside_the_range_are_taken_for_its_ends(method: AnyMethod) -> None:
    wild = simulated(method, np.array([-5.0, 1e300] * 6))
    assert wild.tolist() == simulated(method, np.array([0.0, 10.0] * 6)).tolist()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("ceiling", 0.0),
        ("ceiling", math.inf),
        ("epsilon", 0.0),
        ("warmup", 0),
        ("warmup", 10_001),
        ("share", 1.0),
        ("block", 0),
        ("weight", 0.0),
        ("weight", 1.5),
        ("candidates", 0),
        ("span", 0),
        ("points", 1),
        ("points", 1025),
    ],
)
def test_bad_parameters_are_refused(name: str, wrong: float) -> None:
    right = {"ceiling": 10.0, "epsilon": 1.0, "warmup": 5}
    if name not in {"points", "span"}:
        with pytest.raises(InvalidParameter, match=name):
            Tops.at(**{**right, name: wrong})  # type: ignore[arg-type]
    if name in {"ceiling", "epsilon", "points", "span"}:
        with pytest.raises(InvalidParameter, match=name):
            Topl.at(**{**right, name: wrong})  # type: ignore[arg-type]


def test_reports_that_count_nothing_are_refused() -> None:
    wave = SquareWave.at(1.0, 8)
    for wrong in (np.zeros(wave.channel.outputs.size), np.ones(3)):
        with pytest.raises(InvalidParameter, match="reports"):
            wave.distribution(wrong.astype(np.int64))
