import itertools
import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.densities import (
    classical_gaussian_delta,
    gaussian_divergence,
    local_gaussian_delta,
)
from tests.oracles.mixture_noise import (
    gaussian_deltas,
    largest_gaussian_delta,
    modular_gaussian_delta,
)
from tests.strategies import Floats

DIGITS = 30
Normal = tuple[float, float]
Density = Callable[[mpmath.mpf], mpmath.mpf]

normals = st.tuples(st.floats(-5, 5), st.floats(-2, 2).map(lambda e: 10.0**e))
factors = st.floats(-4, 4).map(math.exp)


# --- oracles ---


def normal_density(mean: float, deviation: float) -> Density:
    return lambda y: mpmath.npdf(y, mpmath.mpf(mean), mpmath.mpf(deviation))


def mixture_density(prior: GaussianMixture, noise: float) -> Density:
    columns = (prior.weights.tolist(), prior.means.tolist(), prior.deviations.tolist())
    rows = list(zip(*columns, strict=True))
    wide = [(w, m, mpmath.sqrt(mpmath.mpf(d) ** 2 + mpmath.mpf(noise) ** 2)) for w, m, d in rows]
    return lambda y: sum(w * mpmath.npdf(y, m, s) for w, m, s in wide)


def cuts(centres: list[Normal]) -> list[mpmath.mpf]:
    """Points around every centre at every width, out to where nothing is left."""
    ends = {mpmath.mpf(m) + mpmath.mpf(d) * step for m, d in centres for step in range(-12, 13, 4)}
    return sorted(ends)


def quadrature(f: Density, g: Density, factor: mpmath.mpf, points: list[mpmath.mpf]) -> mpmath.mpf:
    """The integral of max(f - factor g, 0), split where the difference changes its sign."""

    def over(y: mpmath.mpf) -> mpmath.mpf:
        return f(y) - factor * g(y)

    total = mpmath.mpf(0)
    for left, right in itertools.pairwise(points):
        # Not at even parts: a root of two alike densities lies halfway.
        parts = (0.0, 0.237, 0.511, 0.769, 1.0)
        inner = [left + (right - left) * mpmath.mpf(part) for part in parts]
        split = [left]
        for a, b in itertools.pairwise(inner):
            if over(a) * over(b) < 0:
                split.append(mpmath.findroot(over, (a, b), solver="anderson", verify=False))
        split.append(right)
        for a, b in itertools.pairwise(split):
            if over((a + b) / 2) > 0:
                total += mpmath.quad(over, [a, b], method="gauss-legendre", maxdegree=5)
    return total


def oracle_divergence(first: Normal, second: Normal, factor: float) -> float:
    with mpmath.workdps(DIGITS):
        points = cuts([first, second])
        value = quadrature(
            normal_density(*first), normal_density(*second), mpmath.mpf(factor), points
        )
        return float(value)


def oracle_delta(prior: GaussianMixture, noise: float, epsilon: float, x: float) -> float:
    with mpmath.workdps(DIGITS):
        k = mpmath.exp(mpmath.mpf(epsilon))
        marginal, given_x = mixture_density(prior, noise), normal_density(x, noise)
        wide = np.hypot(prior.deviations, noise).tolist()
        points = cuts([(x, noise), *zip(prior.means.tolist(), wide, strict=True)])
        both = (
            quadrature(given_x, marginal, k, points),
            quadrature(marginal, given_x, k, points),
        )
        return float(max(both))


def float_deltas(prior: GaussianMixture, noise: float, epsilon: float, points: Floats) -> Floats:
    """The same by a plain sum over many outputs: six digits, no roots and no splits."""
    wide = np.hypot(prior.deviations, noise)
    low = min(float((prior.means - 9 * wide).min()), float(points.min()) - 9 * noise)
    high = max(float((prior.means + 9 * wide).max()), float(points.max()) + 9 * noise)
    outputs = np.linspace(low, high, 100_001)
    step, k = outputs[1] - outputs[0], math.exp(epsilon)
    marginal = sum(
        w * np.exp(-0.5 * ((outputs - m) / s) ** 2) / s
        for w, m, s in zip(prior.weights, prior.means, wide, strict=True)
    )
    found = []
    for x in points:
        row = np.exp(-0.5 * ((outputs - x) / noise) ** 2) / noise
        over = np.maximum(row - k * marginal, 0).sum(), np.maximum(marginal - k * row, 0).sum()
        found.append(max(over) * step / math.sqrt(2 * math.pi))
    return np.array(found)


# --- two normals ---


@settings(max_examples=12, deadline=None)
@given(normals, normals, factors)
@example((0.0, 1.0), (0.0, 1.0), 1.0)
@example((0.0, 1.0), (1e-3, 1.0), 1.0)
@example((0.0, 1.0), (0.5, 1.0 + 1e-9), 2.0)
@example((0.0, 1.0), (0.0, 1.0 + 1e-13), 0.5)
@example((0.0, 1.0), (0.0, 3.0), math.e)
@example((0.0, 3.0), (0.0, 1.0), math.e)
@example((0.0, 1e-3), (0.2, 1e3), 0.1)
@example((0.0, 1.0), (200.0, 1.0), 5.0)
@example((0.0, 1.0), (200.0, 1.0), 0.2)
@example((7.0, 2.0), (7.0, 1.0), 40.0)
def test_the_divergence_of_two_normals_is_its_integral(
    first: Normal, second: Normal, factor: float
) -> None:
    expected = oracle_divergence(first, second, factor)
    assert gaussian_divergence(first, second, factor) == pytest.approx(expected, abs=1e-12)


@given(normals, normals)
def test_with_factor_one_it_is_the_total_variation_which_has_no_direction(
    first: Normal, second: Normal
) -> None:
    there = gaussian_divergence(first, second, 1.0)
    assert gaussian_divergence(second, first, 1.0) == pytest.approx(there, abs=1e-13)
    assert 0 <= there <= 1 + 1e-15


@given(normals, normals, factors, st.floats(1.0, 10.0))
def test_it_falls_with_the_factor_and_no_faster_than_a_probability(
    first: Normal, second: Normal, factor: float, times: float
) -> None:
    less = gaussian_divergence(first, second, factor * times)
    more = gaussian_divergence(first, second, factor)
    assert less <= more + 1e-14
    assert more - less <= factor * (times - 1) + 1e-12
    assert more >= max(0.0, 1 - factor) - 1e-14


@given(normals, normals, st.floats(0.0, 4.0))
def test_one_direction_follows_from_the_other(
    first: Normal, second: Normal, epsilon: float
) -> None:
    straight = gaussian_divergence(first, second, math.exp(epsilon))
    other = gaussian_divergence(second, first, math.exp(-epsilon))
    slack = 1e-13 * math.exp(epsilon)
    swapped = math.exp(epsilon) * other - math.expm1(epsilon)  # [LIP, Prop. 3]
    assert swapped == pytest.approx(straight, abs=slack)


@pytest.mark.parametrize("shift", [0.0, 1e3, -1e7])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_shift_and_scale_do_not_matter(shift: float, scale: float) -> None:
    base = gaussian_divergence((0.0, 1.0), (1.5, 2.0), 1.7)
    moved = gaussian_divergence((shift * scale, scale), ((1.5 + shift) * scale, 2.0 * scale), 1.7)
    assert moved == pytest.approx(base, abs=1e-8)


# --- a mixture and one normal ---

TWO = GaussianMixture([0.3, 0.7], [-2.0, 3.0], [1.0, 0.5])
FOUR = GaussianMixture([0.1, 0.4, 0.2, 0.3], [-6.0, -1.0, 0.0, 7.0], [0.2, 1.0, 3.0, 0.05])


@pytest.mark.parametrize(
    ("prior", "noise", "epsilon", "x"),
    [
        (GaussianMixture.normal(0.0, 5.0), 10.0, 0.5, 10.0),
        (GaussianMixture.normal(0.0, 5.0), 10.0, 0.0, 0.0),
        (GaussianMixture.normal(0.0, 5.0), 1.0, 3.0, 7.0),
        (GaussianMixture.normal(0.0, 1e-3), 1.0, 0.1, 0.5),
        (TWO, 1.0, 0.0, 0.0),
        (TWO, 1.0, 1.0, 3.0),
        (TWO, 0.01, 1.0, 3.0),
        (TWO, 300.0, 0.01, 5.0),
        (TWO, 300.0, 0.0, -2.0),
        (TWO, 2.0, 0.2, -9.0),
        (FOUR, 1.0, 0.5, 7.0),
        (FOUR, 4.0, 0.3, 0.0),
        (FOUR, 0.5, 2.0, -6.0),
        (FOUR, 10.0, 0.0, 12.0),
        (GaussianMixture([0.5, 0.5], [0.0, 5.0], [1e-3, 1e-3]), 1.0, 0.5, 1.0),
        (GaussianMixture([0.5, 0.5], [0.0, 5.0], [1e-5, 1e-4]), 1.0, 0.0, 5.0),
        (GaussianMixture([0.6, 0.3, 0.1], [0.0, 0.0, 0.0], [0.1, 1.0, 10.0]), 1.0, 0.7, 2.0),
    ],
)
def test_the_delta_under_a_mixture_is_its_integral(
    prior: GaussianMixture, noise: float, epsilon: float, x: float
) -> None:
    expected = oracle_delta(prior, noise, epsilon, x)
    assert gaussian_deltas(prior, noise, epsilon, [x])[0] == pytest.approx(expected, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.floats(0.2, 20.0), st.floats(0.0, 4.0))
def test_the_delta_under_any_mixture_is_its_sum(
    data: st.DataObject, noise: float, epsilon: float
) -> None:
    count = data.draw(st.integers(1, 4))
    masses = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=count, max_size=count)))
    means = data.draw(st.lists(st.floats(-20, 20), min_size=count, max_size=count))
    widths = data.draw(st.lists(st.floats(0.01, 10), min_size=count, max_size=count))
    prior = GaussianMixture(masses / masses.sum(), means, widths)
    points = np.array([-25.0, means[0], 0.0, 10.0])
    found = gaussian_deltas(prior, noise, epsilon, points)
    assert found == pytest.approx(float_deltas(prior, noise, epsilon, points), abs=2e-6)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.3, 10.0), st.floats(0.0, 3.0), st.floats(0.0, 3.0))
def test_the_delta_falls_with_the_level(noise: float, one: float, other: float) -> None:
    points = np.linspace(-10, 10, 21)
    less, more = sorted((one, other))
    high = gaussian_deltas(FOUR, noise, less, points)
    low = gaussian_deltas(FOUR, noise, more, points)
    assert np.all(low <= high + 1e-13)
    assert np.all((low >= 0) & (high <= 1 + 1e-14))


def test_at_level_zero_it_is_the_total_variation() -> None:
    for x in (-3.0, 0.0, 8.0):
        both = (x, 2.0), (0.0, math.hypot(5.0, 2.0))
        expected = gaussian_divergence(*both, 1.0)
        found = gaussian_deltas(GaussianMixture.normal(0, 5), 2.0, 0.0, [x])[0]
        assert found == pytest.approx(expected, abs=1e-13)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 30.0), st.floats(0.0, 4.0), st.floats(-10, 5), st.floats(0.5, 15))
def test_under_one_normal_the_largest_delta_is_at_the_far_end(
    noise: float, epsilon: float, low: float, width: float
) -> None:
    prior, high = GaussianMixture.normal(0.0, 5.0), low + width
    grid = gaussian_deltas(prior, noise, epsilon, np.linspace(low, high, 201))
    largest = largest_gaussian_delta(prior, noise, epsilon, low, high)
    far = low if abs(low) > abs(high) else high
    assert grid.max() <= largest + 1e-13
    assert largest == pytest.approx(gaussian_deltas(prior, noise, epsilon, [far])[0], abs=1e-13)


def test_the_largest_delta_over_all_values_tends_to_one() -> None:
    prior = GaussianMixture.normal(0.0, 5.0)
    reaches = (20.0, 60.0, 200.0, 600.0)
    found = [largest_gaussian_delta(prior, 20.0, 2.0, -reach, reach) for reach in reaches]
    assert found == sorted(found)
    assert found[0] < 0.05
    assert found[-1] > 1 - 1e-12


@settings(max_examples=4, deadline=None)
@given(st.floats(0.5, 20.0), st.floats(0.05, 3.0))
def test_the_bound_component_by_component_is_never_below_the_exact_one(
    noise: float, epsilon: float
) -> None:
    for prior in (TWO, FOUR):
        exact = largest_gaussian_delta(prior, noise, epsilon, -8.0, 8.0)
        assert modular_gaussian_delta(prior, noise, epsilon, -8.0, 8.0) >= exact - 1e-13


def test_the_bound_component_by_component_is_often_useless() -> None:
    apart = GaussianMixture([0.5, 0.5], [-3.0, 3.0], [1.0, 1.0])
    exact = largest_gaussian_delta(apart, 20.0, 1.0, -4.0, 4.0)
    modular = modular_gaussian_delta(apart, 20.0, 1.0, -4.0, 4.0)
    assert exact == pytest.approx(2.34e-6, rel=0.01)
    assert modular > 100 * exact


@pytest.mark.parametrize("x", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("width", [1e-6, 3e-8, 1e-8])
def test_components_far_narrower_than_the_noise_are_points(width: float, x: float) -> None:
    """With noise 1 the marginal is that of two atoms, up to the square of the width."""
    atoms = GaussianMixture([0.5, 0.5], [0.0, 5.0], [1e-4, 1e-4])
    narrow = GaussianMixture([0.5, 0.5], [0.0, 5.0], [width, width])
    expected = oracle_delta(atoms, 1.0, 0.5, x)
    assert gaussian_deltas(narrow, 1.0, 0.5, [x])[0] == pytest.approx(expected, abs=1e-7)


def test_a_component_without_weight_changes_nothing() -> None:
    one = GaussianMixture.normal(0.0, 1.0)
    two = GaussianMixture([1.0, 0.0], [0.0, 50.0], [1.0, 1.0])
    points = [0.0, 3.0, 45.0]
    found = gaussian_deltas(two, 1.0, 1.0, points)
    assert found == pytest.approx(gaussian_deltas(one, 1.0, 1.0, points), abs=1e-12)


def test_noise_that_drowns_the_prior_leaves_the_shift_alone() -> None:
    """Deviations of the marginal and of the noise are the same float here."""
    points = [0.0, 1e-9, 1.0]
    found = gaussian_deltas(GaussianMixture.normal(0.0, 1e-9), 1.0, 0.1, points)
    expected = [gaussian_divergence((x, 1.0), (0.0, 1.0), math.exp(0.1)) for x in points]
    assert found == pytest.approx(expected, abs=1e-9)


def test_the_search_for_a_crossing_ends_where_a_turning_point_is_far_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The least point lies at 1e18, where a step of some deviations is no step at all."""
    counted = itertools.count()
    plain = GaussianMixture.log_density

    def watched(mixture: GaussianMixture, points: Floats) -> Floats:
        assert next(counted) < 10_000, "the search goes on for ever"
        return plain(mixture, points)

    monkeypatch.setattr(GaussianMixture, "log_density", watched)
    spikes = GaussianMixture([0.5, 0.5], [0.0, 5.0], [1e-9, 1e-9])
    found = gaussian_deltas(spikes, 1.0, 0.5, [1.0])[0]
    assert found == pytest.approx(0.50779116, abs=1e-7)


def test_a_level_that_no_float_exponential_holds_needs_next_to_no_delta() -> None:
    assert gaussian_deltas(GaussianMixture.normal(0, 1), 1.0, 800.0, [0.0])[0] <= 1e-12


# --- no prior ---


@settings(max_examples=60)
@given(st.floats(0.01, 100.0), st.floats(0.0, 8.0))
def test_without_a_prior_the_delta_is_that_of_thirty_digits(noise: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        sigma, level = mpmath.mpf(noise), mpmath.mpf(epsilon)
        high, low = 1 / (2 * sigma) - level * sigma, -1 / (2 * sigma) - level * sigma
        expected = float(mpmath.ncdf(high) - mpmath.exp(level) * mpmath.ncdf(low))
    found = local_gaussian_delta(1.0, noise, epsilon)
    assert found == pytest.approx(expected, abs=1e-14)
    assert found == pytest.approx(
        gaussian_divergence((0.0, noise), (1.0, noise), math.exp(epsilon)), abs=1e-12
    )
    assert local_gaussian_delta(1e9, 1e9 * noise, epsilon) == pytest.approx(found, abs=1e-12)


@given(st.floats(0.01, 50.0), st.floats(0.0, 6.0), st.floats(1.0, 3.0))
def test_without_a_prior_noise_and_level_lower_the_delta(
    noise: float, epsilon: float, times: float
) -> None:
    found = local_gaussian_delta(1.0, noise, epsilon)
    assert local_gaussian_delta(1.0, noise * times, epsilon) <= found + 1e-15
    assert local_gaussian_delta(1.0, noise, epsilon * times) <= found + 1e-15
    assert local_gaussian_delta(times, noise, epsilon) >= found - 1e-15


@given(st.floats(0.01, 100.0), st.floats(0.0, 0.999))
def test_the_textbook_bound_is_never_below_the_exact_delta(noise: float, epsilon: float) -> None:
    exact = local_gaussian_delta(1.0, noise, epsilon)
    assert classical_gaussian_delta(1.0, noise, epsilon) >= exact - 1e-15


# --- errors ---


def test_wrong_arguments_are_refused_by_name() -> None:
    prior = GaussianMixture.normal(0, 1)
    calls: list[tuple[str, Callable[[], object]]] = [
        ("factor", lambda: gaussian_divergence((0, 1), (0, 1), 0.0)),
        ("first", lambda: gaussian_divergence((0, 0), (0, 1), 1.0)),
        ("second", lambda: gaussian_divergence((0, 1), (0, -1), 1.0)),
        ("noise", lambda: gaussian_deltas(prior, 0.0, 1.0, [0.0])),
        ("epsilon", lambda: gaussian_deltas(prior, 1.0, -1.0, [0.0])),
        ("epsilon", lambda: gaussian_deltas(prior, 1.0, math.nan, [0.0])),
        ("low", lambda: largest_gaussian_delta(prior, 1.0, 1.0, 1.0, 1.0)),
        ("low", lambda: largest_gaussian_delta(prior, 1.0, 1.0, 0.0, math.inf)),
        ("sensitivity", lambda: local_gaussian_delta(0.0, 1.0, 1.0)),
        ("noise", lambda: local_gaussian_delta(1.0, math.nan, 1.0)),
        ("noise", lambda: classical_gaussian_delta(1.0, 0.0, 0.5)),
    ]
    for name, call in calls:
        with pytest.raises(InvalidParameter, match=name):
            call()


def test_a_true_value_that_is_no_number_is_refused() -> None:
    for wrong in (math.nan, math.inf):
        with pytest.raises(InvalidParameter):
            gaussian_deltas(GaussianMixture.normal(0, 1), 1.0, 1.0, [0.0, wrong])
