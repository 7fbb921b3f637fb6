import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.errors import InvalidParameter
from sfumato.models.mixture import GaussianMixture
from tests.strategies import Floats

SECRET = "9151.25"

scales = st.sampled_from([1e-6, 1.0, 1e9])


@st.composite
def mixtures(draw: st.DrawFn) -> GaussianMixture:
    """One to four components at any scale, means up to twenty deviations apart."""
    count, scale = draw(st.integers(1, 4)), draw(scales)
    masses = np.array(draw(st.lists(st.floats(0.01, 1.0), min_size=count, max_size=count)))
    means = draw(st.lists(st.floats(-10.0, 10.0), min_size=count, max_size=count))
    widths = draw(st.lists(st.floats(0.05, 5.0), min_size=count, max_size=count))
    return GaussianMixture(masses / masses.sum(), scale * np.array(means), scale * np.array(widths))


def parts(mixture: GaussianMixture) -> list[tuple[mpmath.mpf, mpmath.mpf, mpmath.mpf]]:
    """Weight, mean and deviation of each component, as the rationals they are."""
    columns = (mixture.weights, mixture.means, mixture.deviations)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(mpmath.mpf(w), mpmath.mpf(m), mpmath.mpf(d)) for w, m, d in rows]


def exact_between(mixture: GaussianMixture, low: float, high: float) -> float:
    """Differences of 400-digit tails, so that none of the digits that remain is lost."""
    with mpmath.workdps(400):
        total = mpmath.mpf(0)
        for weight, mean, deviation in parts(mixture):
            ends = [(mpmath.mpf(end) - mean) / (deviation * mpmath.sqrt(2)) for end in (low, high)]
            total += weight * (mpmath.erf(ends[1]) - mpmath.erf(ends[0])) / 2
        return float(total)


def exact_density(mixture: GaussianMixture, point: float) -> float:
    with mpmath.workdps(40):
        return float(sum(w * mpmath.npdf(mpmath.mpf(point), m, d) for w, m, d in parts(mixture)))


def outermost(mixture: GaussianMixture, deviations: float) -> tuple[float, float]:
    far = deviations * mixture.deviations
    return float((mixture.means - far).min()), float((mixture.means + far).max())


@settings(max_examples=30, deadline=None)
@given(mixtures(), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_probabilities_and_densities_are_those_of_forty_digits(
    mixture: GaussianMixture, one: float, other: float
) -> None:
    first, last = outermost(mixture, 6.0)
    low, high = sorted((first + one * (last - first), first + other * (last - first)))
    whole = exact_between(mixture, low, high)
    # What separates two nearby floats is known to them no better.
    loss = 1e-15 * max(abs(low), abs(high)) * exact_density(mixture, low)
    assert float(mixture.between(low, high)) == pytest.approx(whole, rel=1e-9, abs=1e-15 + loss)
    below = exact_between(mixture, -math.inf, high)
    assert float(mixture.cumulative(high)) == pytest.approx(below, rel=1e-11)
    peak = exact_density(mixture, low)
    assert float(mixture.density(low)) == pytest.approx(peak, rel=1e-10)
    assert float(mixture.log_density(low)) == pytest.approx(math.log(peak), abs=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("place", [-36.0, -20.0, -8.0, 8.0, 20.0, 36.0])
def test_tiny_tail_masses_keep_their_digits(place: float, scale: float) -> None:
    mixture = GaussianMixture([0.25, 0.75], [-scale, scale], [scale, 0.5 * scale])
    low, high = place * scale, (place + 0.25) * scale
    expected = exact_between(mixture, low, high)
    assert 0 < expected < 1e-10
    assert float(mixture.between(low, high)) == pytest.approx(expected, rel=1e-10)


def test_masses_of_far_cells_keep_their_digits_and_sum_to_one() -> None:
    mixture = GaussianMixture([0.5, 0.3, 0.2], [-3.0, 0.0, 5.0], [1.0, 0.2, 2.0])
    edges = np.linspace(-30.0, 60.0, 46)
    found = mixture.masses(edges)
    ends = [-math.inf, *edges[1:-1].tolist(), math.inf]
    expected = [exact_between(mixture, a, b) for a, b in itertools.pairwise(ends)]
    assert min(expected) < 1e-100
    assert found == pytest.approx(expected, rel=1e-10)
    assert found.sum() == pytest.approx(1.0, abs=1e-14)
    assert edges[0] == -30.0, "the caller's edges are left as they were"


@settings(max_examples=25, deadline=None)
@given(mixtures(), st.one_of(st.floats(1e-12, 1 - 1e-12), st.sampled_from([1e-200, 1e-30])))
def test_a_quantile_inverts_the_distribution(mixture: GaussianMixture, share: float) -> None:
    point = mixture.quantile(share)
    slope = exact_density(mixture, point) * max(abs(point), float(mixture.deviations.max()))
    reached = exact_between(mixture, -math.inf, point)
    assert reached == pytest.approx(share, rel=1e-9, abs=4e-15 * slope + 2e-16 * (share > 0.5))


@pytest.mark.parametrize("share", [1e-250, 1e-3, 0.5, 0.9, 1 - 1e-9])
def test_quantiles_of_one_normal_are_those_of_scipy(share: float) -> None:
    for mean, deviation in ((0.0, 1.0), (1e9, 1e9), (-1e-6, 1e-6)):
        expected = float(stats.norm.ppf(share, mean, deviation))
        found = GaussianMixture.normal(mean, deviation).quantile(share)
        assert found == pytest.approx(expected, rel=1e-7, abs=1e-7 * deviation)


def test_quantiles_grow_and_cross_a_gap_without_mass() -> None:
    apart = GaussianMixture([0.5, 0.5], [-1e6, 1e6], [1.0, 1.0])
    points = [apart.quantile(share) for share in (0.1, 0.4999, 0.5001, 0.9)]
    assert points == sorted(points)
    assert points[1] < -1e6 + 10 < 1e6 - 10 < points[2]


def test_the_log_density_does_not_vanish_where_the_density_does() -> None:
    mixture = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 2.0])
    assert float(mixture.density(500.0)) == 0.0
    expected = math.log(0.5) - 0.5 * (499 / 2) ** 2 - math.log(2) - 0.5 * math.log(2 * math.pi)
    assert float(mixture.log_density(500.0)) == pytest.approx(expected, rel=1e-14)


def test_a_component_without_weight_adds_no_density_anywhere() -> None:
    one = GaussianMixture.normal(0.0, 1.0)
    two = GaussianMixture([1.0, 0.0], [0.0, 50.0], [1.0, 1.0])
    points = [0.0, 26.0, 60.0, 100.0]
    assert two.log_density(points) == pytest.approx(one.log_density(points), rel=1e-13)
    assert two.cumulative(points) == pytest.approx(one.cumulative(points), rel=1e-13)


@settings(max_examples=15, deadline=None)
@given(mixtures(), st.floats(0.1, 3.0))
def test_noise_widens_every_component(mixture: GaussianMixture, part: float) -> None:
    noise = part * float(mixture.deviations.max())
    blurred = mixture.blurred(noise)
    assert blurred.means.tolist() == mixture.means.tolist()
    assert blurred.weights == pytest.approx(mixture.weights, rel=1e-14)
    assert blurred.deviations**2 == pytest.approx(mixture.deviations**2 + noise**2, rel=1e-12)


def test_shapes_of_points_are_kept() -> None:
    mixture = GaussianMixture([0.5, 0.5], [0.0, 1.0], [1.0, 1.0])
    for shape in ((), (3,), (2, 3)):
        points = np.zeros(shape)
        assert mixture.density(points).shape == shape
        assert mixture.cumulative(points).shape == shape
        assert mixture.between(points, points + 1).shape == shape


# --- learning one ---


def bumps(seed: int, scale: float = 1.0) -> Floats:
    rng = np.random.default_rng(seed)
    groups = [rng.normal(9, 1, 600), rng.normal(0, 0.5, 300), rng.normal(-8, 2, 300)]
    return np.asarray(scale * np.concatenate(groups))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_fitting_finds_known_components_in_order_at_any_scale(scale: float) -> None:
    found = GaussianMixture.fit(bumps(1, scale), most=5)
    assert found.means / scale == pytest.approx([-8.0, 0.0, 9.0], abs=0.5)
    assert found.deviations / scale == pytest.approx([2.0, 0.5, 1.0], rel=0.25)
    assert found.weights == pytest.approx([0.25, 0.25, 0.5], abs=0.03)


def test_a_far_origin_changes_nothing_but_the_means() -> None:
    near = GaussianMixture.fit(bumps(1), components=3)
    moved = GaussianMixture.fit(1e6 + bumps(1), components=3)
    assert moved.means - 1e6 == pytest.approx(near.means, abs=1e-5)
    assert moved.deviations == pytest.approx(near.deviations, rel=1e-5)


def test_the_same_values_give_the_same_fit() -> None:
    first, second = (GaussianMixture.fit(bumps(2), most=4) for _ in range(2))
    assert first.fingerprint == second.fingerprint
    other = GaussianMixture.fit(bumps(3), most=4)
    assert first.fingerprint != other.fingerprint


def test_a_fit_leaves_the_global_coins_alone() -> None:
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    GaussianMixture.fit(bumps(2), components=2)
    assert np.random.random() == expected


@pytest.mark.parametrize("seed", range(3))
def test_normal_values_need_one_component(seed: int) -> None:
    values = np.random.default_rng(seed).normal(4, 3, 800)
    found = GaussianMixture.fit(values, most=4)
    assert found.weights.tolist() == [1.0]
    assert found.means[0] == pytest.approx(values.mean())
    assert found.deviations[0] == pytest.approx(values.std(), rel=1e-4)


def test_as_many_components_as_asked_for() -> None:
    assert GaussianMixture.fit(bumps(1), components=2).weights.size == 2


def test_repeated_values_make_no_spike_narrower_than_a_thousandth_of_the_spread() -> None:
    rng = np.random.default_rng(4)
    repeated = np.concatenate([np.full(400, 2.0), rng.normal(0, 1, 400)])
    for values in (repeated, rng.integers(0, 4, 300).astype(float), np.array([1.0, 2.0])):
        found = GaussianMixture.fit(values, most=4)
        assert found.deviations.min() >= 0.999e-3 * values.std()


# --- errors ---


def test_mixtures_that_are_none_are_refused() -> None:
    for weights, means, deviations, name in (
        ([0.5, 0.4], [0, 1], [1, 1], "weights"),
        ([1.5, -0.5], [0, 1], [1, 1], "weights"),
        ([], [], [], "weights"),
        ([[1.0]], [[0.0]], [[1.0]], "weights"),
        ([0.5, 0.5], [0.0], [1, 1], "means"),
        ([0.5, 0.5], [0.0, math.nan], [1, 1], "means"),
        ([0.5, 0.5], [0.0, math.inf], [1, 1], "means"),
        ([0.5, 0.5], [0.0, 1.0], [1.0], "deviations"),
        ([0.5, 0.5], [0.0, 1.0], [1.0, math.nan], "deviations"),
        ([0.5, 0.5], [0.0, 1.0], [1.0, 0.0], "deviations"),
        ([0.5, 0.5], [0.0, 1.0], [1.0, -2.0], "deviations"),
    ):
        with pytest.raises(InvalidParameter, match=name):
            GaussianMixture(weights, means, deviations)
    for share in (0.0, 1.0, -0.1, math.nan):
        with pytest.raises(InvalidParameter, match="probability"):
            GaussianMixture.normal(0, 1).quantile(share)
    for noise in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InvalidParameter, match="noise"):
            GaussianMixture.normal(0, 1).blurred(noise)


def test_a_mixture_cannot_be_changed() -> None:
    means = np.array([0.0, 1.0])
    mixture = GaussianMixture([0.5, 0.5], means, [1.0, 1.0])
    means[0] = 7.0
    assert mixture.means[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        mixture.means[0] = 7.0


def test_histories_without_a_spread_are_refused_and_not_quoted() -> None:
    secret = float(SECRET)
    for values in ([], [secret], [secret] * 9, [secret, math.nan], [secret, -math.inf]):
        with pytest.raises(InvalidParameter, match="values") as refusal:
            GaussianMixture.fit(values)
        assert SECRET not in str(refusal.value)
    for wrong in (0, -1, 1.5):
        with pytest.raises(InvalidParameter):
            GaussianMixture.fit([1.0, 2.0], most=wrong)  # type: ignore[arg-type]
        with pytest.raises(InvalidParameter):
            GaussianMixture.fit([1.0, 2.0], components=wrong)  # type: ignore[arg-type]


def test_a_history_of_text_is_not_quoted() -> None:
    with pytest.raises(ValueError, match=r"values|float") as refusal:
        GaussianMixture.fit(["secret77", "secret78"])
    assert "secret77" not in str(refusal.value)


def test_more_components_than_different_values_are_refused_by_name() -> None:
    for values in ([1.0, 2.0, 3.0], [1.0] * 5 + [2.0] * 5):
        with pytest.raises(InvalidParameter, match="components"):
            GaussianMixture.fit(values, components=4)


def test_histories_too_small_or_too_large_for_a_variance_are_refused_by_name() -> None:
    for values in ([1e200, 2e200], [1e-200, 2e-200]):
        with pytest.raises(InvalidParameter, match="values"):
            GaussianMixture.fit(values)
