"""Joint densities: integrals, moments and information against quadrature."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from sfumato.core.errors import InvalidParameter
from sfumato.record.coupling.joint_mixture import JointMixture
from sfumato.record.coupling.kernel_density import MOST_COMPONENTS

Floats = NDArray[np.float64]

INF = math.inf
PAIR = JointMixture(
    [0.3, 0.7],
    [[-1.0, 0.5], [1.5, -0.5]],
    [[[0.5, 0.2], [0.2, 1.0]], [[1.0, -0.6], [-0.6, 0.8]]],
)
DOMAINS: list[Any] = [
    None,
    [[-0.5, INF], [-INF, INF]],
    [[-1.0, 2.0], [-1.0, 1.0]],
    [[0.0, INF], [-INF, 0.3]],
]


def grid(model: JointMixture, cells: int = 500) -> tuple[Floats, Floats, Floats]:
    low, high = model.bounds
    axes = [low[k] + (np.arange(cells) + 0.5) * (high[k] - low[k]) / cells for k in (0, 1)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    weights = float(np.prod((high - low) / cells))
    return axes[0], axes[1], (model.density(points) * weights).reshape(cells, cells)


# Densities ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", DOMAINS)
def test_densities_integrate_to_1(domain: Any) -> None:
    model = JointMixture(PAIR.weights, PAIR.means, PAIR.covariances, domain)
    assert grid(model)[2].sum() == pytest.approx(1.0, rel=1e-4)
    if domain is not None:
        assert model.density([[-9.0, 9.0]])[0] == 0


@given(
    st.floats(-3, 3), st.floats(0.1, 3), st.floats(-2, 2), st.floats(0.2, 4), st.floats(0.05, 0.95)
)
@settings(max_examples=30)
def test_limited_densities_on_a_line_integrate_to_1(
    mean: float, deviation: float, low: float, width: float, weight: float
) -> None:
    model = JointMixture(
        [weight, 1 - weight],
        [[mean], [0.0]],
        [[[deviation**2]], [[1.0]]],
        [[low, low + width]],
    )
    cuts = [place for place in (mean, 0.0) if low < place < low + width]
    total = integrate.quad(
        lambda x: float(model.density([[x]])[0]), low, low + width, points=cuts or None, limit=200
    )[0]
    assert total == pytest.approx(1.0, rel=1e-6)


def test_a_density_is_scipys() -> None:
    points = np.random.default_rng(1).normal(size=(50, 2))
    exact = sum(
        w * stats.multivariate_normal(m, c).pdf(points)
        for w, m, c in zip(PAIR.weights, PAIR.means, PAIR.covariances, strict=True)
    )
    assert PAIR.density(points) == pytest.approx(exact, rel=1e-10)


@pytest.mark.parametrize("size", [3, 4])
def test_a_model_gives_the_same_mass_twice(size: int) -> None:
    """A random integral would make the same model two models."""
    limits = [[0.0, INF]] * size
    model = JointMixture.normal(np.zeros(size), 0.5 * np.eye(size) + 0.5, limits)
    assert model.mass == model.mass
    # All of them positive at correlation one half: one in `size` + 1.
    assert model.mass == pytest.approx(1 / (size + 1), rel=1e-4)


def test_little_mass_in_space_is_found() -> None:
    far = JointMixture.normal(np.zeros(3), np.eye(3), [[1.5, 2.0]] * 3)
    exact = float(stats.norm.cdf(2.0) - stats.norm.cdf(1.5)) ** 3
    assert far.mass == pytest.approx(exact, rel=1e-3)


# Marginals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("domain", [None])
def test_a_marginal_is_the_joint_summed_over_the_other(axis: int, domain: Any) -> None:
    model = JointMixture(PAIR.weights, PAIR.means, PAIR.covariances, domain)
    first, second, table = grid(model)
    places = (first, second)[axis]
    step = places[1] - places[0]
    summed = table.sum(axis=1 - axis) / step
    alone = model.marginal(axis).density(places[:, None])
    assert np.abs(summed - alone).max() < 0.01 * alone.max()


@pytest.mark.parametrize("domain", [None])
@pytest.mark.parametrize("axis", [0, 1])
def test_independent_attributes_keep_their_marginals(domain: Any, axis: int) -> None:
    model = JointMixture(PAIR.weights, PAIR.means, PAIR.covariances, domain)
    apart = model.independent()
    assert apart is not None
    low, high = model.bounds
    places = np.linspace(low[axis], high[axis], 300)[1:-1]
    here, there = grid(model), grid(apart)
    step = here[axis][1] - here[axis][0]
    assert np.allclose(here[axis], there[axis])
    one, other = here[2].sum(axis=1 - axis) / step, there[2].sum(axis=1 - axis) / step
    assert np.abs(one - other).max() < 0.01 * one.max()
    assert places.size == 298


def test_independent_attributes_are_independent() -> None:
    apart = PAIR.independent()
    assert apart is not None
    assert apart.weights.size == 4
    table = grid(apart)[2]
    product = table.sum(axis=1)[:, None] * table.sum(axis=0)[None, :]
    assert np.abs(table - product).max() < 1e-6 * table.max() + 1e-12
    assert apart.correlation[0, 1] == pytest.approx(0.0, abs=1e-12)
    assert apart.mutual_information(0) == pytest.approx(0.0, abs=1e-6)


def test_too_many_components_are_not_taken_apart() -> None:
    count = 16
    wide = JointMixture(
        np.full(count, 1 / count), np.arange(2.0 * count).reshape(-1, 2), [np.eye(2)] * count
    )
    assert wide.independent() is None


def test_marginals_keep_the_order_asked_for() -> None:
    model = JointMixture.normal(
        [1.0, 2.0, 3.0], np.diag([1.0, 4.0, 9.0]), [[-9, 9], [0, 9], [1, 9]]
    )
    turned = model.marginal([2, 0])
    assert turned.means.tolist() == [[3.0, 1.0]]
    assert turned.domain.tolist() == [[1.0, 9.0], [-9.0, 9.0]]


# Moments and information --------------------------------------------------------------------------


def test_covariance_and_correlation_are_those_of_the_density() -> None:
    first, second, table = grid(PAIR, 700)
    mean = [float((table.sum(axis=1) * first).sum()), float((table.sum(axis=0) * second).sum())]
    x, y = first - mean[0], second - mean[1]
    cross = float((table * x[:, None] * y[None, :]).sum())
    spread = float((table.sum(axis=1) * x**2).sum()), float((table.sum(axis=0) * y**2).sum())
    exact = [[spread[0], cross], [cross, spread[1]]]
    assert PAIR.covariance == pytest.approx(np.array(exact), rel=1e-4)
    assert PAIR.correlation[0, 1] == pytest.approx(
        cross / math.sqrt(spread[0] * spread[1]), rel=1e-4
    )
    assert np.diag(PAIR.correlation) == pytest.approx(1.0)


def information(table: Floats) -> float:
    apart = table.sum(axis=1)[:, None] * table.sum(axis=0)[None, :]
    kept = table > 1e-300
    return float((table[kept] * np.log(table[kept] / apart[kept])).sum())


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5, 0.95])
def test_information_of_one_normal_is_the_closed_form(rho: float) -> None:
    model = JointMixture.normal([1.0, 50.0], [[4.0, 6.0 * rho], [6.0 * rho, 9.0]])
    assert model.mutual_information(0) == pytest.approx(-0.5 * math.log1p(-rho * rho), abs=1e-12)
    assert model.mutual_information(1) == pytest.approx(information(grid(model)[2]), abs=2e-4)


def test_information_of_three_is_the_multiple_correlation() -> None:
    matrix = np.array([[1.0, 0.5, 0.3], [0.5, 2.0, 0.4], [0.3, 0.4, 1.5]])
    model = JointMixture.normal(np.zeros(3), matrix)
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        cross = matrix[axis, others]
        squared = (
            cross @ np.linalg.solve(matrix[np.ix_(others, others)], cross) / matrix[axis, axis]
        )
        assert model.mutual_information(axis) == pytest.approx(-0.5 * math.log1p(-squared))
    assert JointMixture.normal([0.0], [[1.0]]).mutual_information(0) == 0


@pytest.mark.parametrize(
    "model",
    [
        PAIR,
        JointMixture([0.5, 0.5], [[-9.0, -9.0], [9.0, 9.0]], [np.eye(2)] * 2),
        JointMixture([0.2, 0.8], [[0.0, 0.0], [0.0, 0.0]], [np.eye(2), 0.01 * np.eye(2)]),
    ],
)
def test_information_of_a_mixture_is_its_integral(model: JointMixture) -> None:
    exact = information(grid(model, 900)[2])
    for axis in (0, 1):
        assert model.mutual_information(axis) == pytest.approx(exact, rel=0.02, abs=2e-3)


@pytest.mark.parametrize("attribute", [-1, 2, 7])
def test_information_of_no_attribute_is_refused(attribute: int) -> None:
    with pytest.raises(InvalidParameter):
        PAIR.mutual_information(attribute)


@pytest.mark.statistical
def test_draws_have_the_moments_of_the_mixture(rng: np.random.Generator) -> None:
    rows = 40_000
    drawn = PAIR.draw(rng.random((rows, 3)))
    centre = PAIR.weights @ PAIR.means
    spread = np.sqrt(np.diag(PAIR.covariance))
    assert np.abs((drawn.mean(axis=0) - centre) / spread).max() < 4.5 / math.sqrt(rows)
    assert np.cov(drawn.T) == pytest.approx(PAIR.covariance, rel=0.05, abs=0.02)
    for axis in (0, 1):

        def below(x: Floats, axis: int = axis, wide: float = 1.0) -> Floats:
            return np.asarray(
                sum(
                    w * stats.norm.cdf(x, m[axis], wide * math.sqrt(c[axis, axis]))
                    for w, m, c in zip(PAIR.weights, PAIR.means, PAIR.covariances, strict=True)
                )
            )

        assert stats.kstest(drawn[:, axis], below).pvalue > 1e-4
        for wide in (0.7, 1.3):
            assert stats.kstest(drawn[:, axis], lambda x, w=wide: below(x, wide=w)).pvalue < 1e-6


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=2))
@settings(max_examples=20)
def test_units_change_nothing_but_the_scale(units: list[float]) -> None:
    model = JointMixture(PAIR.weights, PAIR.means, PAIR.covariances, [[-2.0, 3.0], [-INF, 1.0]])
    scaled = model.scaled(units)
    point = np.array([[0.3, -0.2]])
    assert scaled.density(point / units)[0] == pytest.approx(
        model.density(point)[0] * units[0] * units[1], rel=1e-6
    )
    assert scaled.mass == pytest.approx(model.mass, rel=1e-6)
    assert scaled.correlation == pytest.approx(model.correlation)


# Fits ---------------------------------------------------------------------------------------------


def table_of(rows: int, size: int, rng: np.random.Generator) -> Floats:
    return 50 + rng.standard_gamma(2.0, size=(rows, size)) @ rng.normal(size=(size, size))


@pytest.mark.parametrize(("rows", "size"), [(20, 1), (2_000, 1), (500, 2), (3_000, 3), (800, 5)])
@pytest.mark.parametrize("bandwidth", [None, 0.02, 1.5])
def test_a_kernel_density_keeps_mean_and_covariance(
    rows: int, size: int, bandwidth: float | None, rng: np.random.Generator
) -> None:
    records = table_of(rows, size, rng)
    density = JointMixture.kernel(records, bandwidth=bandwidth)
    width = rows ** (-1 / (size + 4)) if bandwidth is None else bandwidth
    spread = np.atleast_2d(np.cov(records.T, ddof=1))
    within = np.atleast_2d(np.cov(records.T, ddof=0))
    assert density.weights.size <= MOST_COMPONENTS
    assert density.weights.sum() == pytest.approx(1.0)
    assert density.weights @ density.means == pytest.approx(records.mean(axis=0), rel=1e-9)
    scale = np.sqrt(np.outer(np.diag(spread), np.diag(spread)))
    assert np.abs((density.covariance - within - width**2 * spread) / scale).max() < 1e-9
    assert np.abs(density.covariance / scale - (1 + width**2) * spread / scale).max() < 1.1 / rows


def test_a_kernel_density_of_many_attributes_is_refused(rng: np.random.Generator) -> None:
    records = rng.normal(size=(600, 9))  # in more of the 512 corners than there may be components
    with pytest.raises(InvalidParameter, match="records"):
        JointMixture.kernel(records)
    assert 1 < JointMixture.kernel(records[:, :6]).weights.size <= MOST_COMPONENTS


def test_a_normal_fit_has_mean_and_covariance_of_the_records(rng: np.random.Generator) -> None:
    records = table_of(300, 2, rng)
    model = JointMixture.fit_normal(records)
    assert model.means[0] == pytest.approx(records.mean(axis=0))
    assert model.covariances[0] == pytest.approx(np.cov(records.T))
    line = JointMixture.fit_normal(records[:, :1])
    assert line.covariances[0, 0, 0] == pytest.approx(records[:, 0].var(ddof=1))


def test_a_mixture_fit_finds_two_groups(rng: np.random.Generator) -> None:
    pytest.importorskip("sklearn")
    groups = np.concatenate(
        [rng.normal(size=(300, 2)), rng.normal(size=(700, 2)) * [5.0, 0.1] + [60.0, 5.0]]
    )
    model = JointMixture.fit(groups)
    assert model.weights.size == 2
    assert sorted(model.weights) == pytest.approx([0.3, 0.7], abs=0.01)
    assert model.covariance == pytest.approx(np.cov(groups.T), rel=0.02, abs=0.05)


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 0.1, 4711.3, 1e-12, 4711e10])
@pytest.mark.parametrize("make", [JointMixture.fit_normal, JointMixture.kernel])
def test_constant_columns_are_refused_unquoted(make: Any, value: float) -> None:
    records = [[value, float(row)] for row in range(13)]
    with pytest.raises(InvalidParameter) as refusal:
        make(records)
    assert refusal.value.name == "records"
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize(
    "records", [[[1.0]], [1.0, 2.0], [[1.0], [math.nan]], [["4711x"], ["y"]], []]
)
@pytest.mark.parametrize("make", [JointMixture.fit_normal, JointMixture.kernel, JointMixture.fit])
def test_records_that_are_none_are_refused_unquoted(make: Any, records: Any) -> None:
    with pytest.raises(InvalidParameter, match="records") as refusal:
        make(records)
    assert "4711" not in str(refusal.value)


@pytest.mark.parametrize(
    "domain",
    [
        [[1.0, 1.0], [0.0, 1.0]],
        [[2.0, 1.0], [0.0, 1.0]],
        [[0.0, 1.0]],
        [[math.nan, 1.0], [0.0, 1.0]],
        [[40.0, 41.0], [0.0, 1.0]],
        [["a", 1.0], [0.0, 1.0]],
        "x",
    ],
)
def test_bad_domains_are_refused_by_name(domain: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        JointMixture(PAIR.weights, PAIR.means, PAIR.covariances, domain)
    assert refusal.value.name == "domain"


@pytest.mark.parametrize(
    "covariance",
    [
        [[1.0, 2.0], [2.0, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        [[0.0, 0.0], [0.0, 1.0]],
        [[math.nan, 0.0], [0.0, 1.0]],
    ],
)
def test_bad_covariances_are_refused_by_name(covariance: Any) -> None:
    with pytest.raises(InvalidParameter, match="covariance"):
        JointMixture.normal([0.0, 0.0], covariance)
    with pytest.raises(InvalidParameter, match="covariance"):
        JointMixture([1.0], [[0.0, 0.0]], [covariance])


@pytest.mark.parametrize("weights", [[0.5, 0.4], [-0.1, 1.1], [1.0], [math.nan, 1.0], ["x", "y"]])
def test_bad_weights_are_refused(weights: Any) -> None:
    with pytest.raises(InvalidParameter):
        JointMixture(weights, PAIR.means, PAIR.covariances)


@pytest.mark.parametrize("bandwidth", [0.0, -1.0, math.nan, math.inf])
def test_bad_bandwidths_are_refused_by_name(bandwidth: float) -> None:
    with pytest.raises(InvalidParameter, match="bandwidth"):
        JointMixture.kernel([[1.0], [2.0], [4.0]], bandwidth=bandwidth)


def test_models_cannot_be_written_to() -> None:
    for part in (PAIR.weights, PAIR.means, PAIR.covariances, PAIR.domain):
        with pytest.raises(ValueError):
            part[0] = 0.0


def test_a_kernel_is_as_narrow_as_clusters_ask_for_and_no_narrower() -> None:
    rng = np.random.default_rng(5)
    plain = rng.normal(size=(2_000, 1))
    scott = 2_000**-0.2
    assert JointMixture.kernel(plain).covariances.min() >= 0.9 * scott**2 * plain.var()
    clusters = np.where(rng.random((2_000, 1)) < 0.5, 0.1 * plain, 100 + 0.1 * plain)
    found = JointMixture.kernel(clusters)
    box = np.array([[-0.2, 0.2]])
    line = np.linspace(-0.2, 0.2, 2_001)[:, None]
    mass = found.density(line).sum() * (box[0, 1] - box[0, 0]) / 2_001
    assert mass == pytest.approx(0.5 * 0.954, rel=0.05)
