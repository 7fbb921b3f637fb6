"""Independent and correlated noise: masses against integrals, samplers three-sided."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import integrate, stats

from sfumato.core.errors import InvalidParameter
from sfumato.core.randomness import seeded
from sfumato.record.vector_noise import (
    MOST_AXES,
    CorrelatedNoise,
    Kind,
    ProductNoise,
    axis_scales,
    uniforms,
)
from tests.record.noises import coins, correlated

Floats = NDArray[np.float64]

KINDS = list(Kind)
FROZEN: dict[Kind, Callable[[float], Any]] = {
    Kind.UNIFORM: lambda s: stats.uniform(-math.sqrt(3) * s, 2 * math.sqrt(3) * s),
    Kind.GAUSSIAN: lambda s: stats.norm(0, s),
    Kind.LAPLACE: lambda s: stats.laplace(0, s / math.sqrt(2)),
}
EXTREME = [0, 1, 2**11 - 1, 2**11, 2**63 - 1, 2**63, 2**63 + 2**11, 2**64 - 2**11, 2**64 - 1]
DRAWS = 20_000


def fits(drawn: Floats, law: Any) -> float:
    return float(stats.kstest(drawn, law.cdf).pvalue)


# Masses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@given(sigma=st.floats(0.01, 100), low=st.floats(-4, 4), width=st.floats(0, 5))
@settings(max_examples=50)
def test_an_axis_has_the_mass_of_its_density(
    kind: Kind, sigma: float, low: float, width: float
) -> None:
    noise, law = ProductNoise(kind, np.array([9.0, sigma])), FROZEN[kind](sigma)
    a, b = low * sigma, (low + width) * sigma
    exact = law.cdf(b) - law.cdf(a)
    assert float(noise.axis_mass(1, a, b)) == pytest.approx(exact, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", [Kind.GAUSSIAN, Kind.LAPLACE])
def test_tails_keep_their_digits(kind: Kind) -> None:
    noise = ProductNoise(kind, np.array([1.0]))
    left, right = noise.axis_mass(0, -31.0, -30.0), noise.axis_mass(0, 30.0, 31.0)
    with mpmath.workdps(40):
        if kind is Kind.GAUSSIAN:
            exact = float(mpmath.ncdf(-30) - mpmath.ncdf(-31))
        else:
            root = mpmath.sqrt(2)
            exact = float((mpmath.exp(-30 * root) - mpmath.exp(-31 * root)) / 2)
    assert float(left) == pytest.approx(exact, rel=1e-9)
    assert float(right) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_come_in_arrays_and_may_be_endless(kind: Kind) -> None:
    noise = ProductNoise(kind, np.array([2.0]))
    ends = np.array([-math.inf, -1.0, 0.0, 3.0])
    masses = noise.axis_mass(0, ends, np.append(ends[1:], math.inf))
    assert masses.shape == (4,)
    assert masses.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sigma", [0.03, 1.0, 50.0])
def test_the_deviation_is_sigma_and_the_mean_is_0(kind: Kind, sigma: float) -> None:
    noise = ProductNoise(kind, np.array([sigma]))
    reach = 45 * sigma

    def tail(t: float) -> float:
        return float(noise.axis_mass(0, t, math.inf) + noise.axis_mass(0, -math.inf, -t))

    cuts = [sigma, math.sqrt(3) * sigma, 5 * sigma]
    squared = integrate.quad(lambda t: 2 * t * tail(t), 0, reach, points=cuts)[0]
    assert squared == pytest.approx(sigma**2, rel=1e-6)
    assert float(noise.axis_mass(0, -reach, 0)) == pytest.approx(0.5)


@pytest.mark.parametrize("kind", KINDS)
@given(
    sigma=st.lists(st.floats(0.05, 20), min_size=1, max_size=6),
    half=st.lists(st.floats(0.05, 20), min_size=6, max_size=6),
)
@settings(max_examples=40)
def test_a_box_is_a_product_of_axes(kind: Kind, sigma: list[float], half: list[float]) -> None:
    noise, widths = ProductNoise(kind, np.array(sigma)), half[: len(sigma)]
    exact = math.prod(
        float(FROZEN[kind](s).cdf(h) - FROZEN[kind](s).cdf(-h))
        for s, h in zip(sigma, widths, strict=True)
    )
    assert noise.box_mass(widths) == pytest.approx(exact, rel=1e-9)
    assert exact * (1 - 1e-9) <= noise.largest_box(widths) <= min(1.0, exact * (1 + 1e-6))


@pytest.mark.parametrize("kind", KINDS)
def test_no_box_elsewhere_has_more(kind: Kind, rng: np.random.Generator) -> None:
    noise, half = ProductNoise(kind, np.array([1.0, 3.0])), np.array([0.7, 1.1])
    centres = rng.normal(size=(4_000, 2)) * [2.0, 6.0]
    masses = np.prod(
        [noise.axis_mass(k, centres[:, k] - half[k], centres[:, k] + half[k]) for k in (0, 1)],
        axis=0,
    )
    assert masses.max() <= noise.largest_box(half)


def test_uniform_noise_has_the_box_of_the_errata() -> None:
    noise = ProductNoise(Kind.UNIFORM, np.array([5.0, 5.0]))
    assert noise.largest_box(2.0) == pytest.approx(4.0 / (3 * 25.0))


@pytest.mark.parametrize("rho", [-0.95, -0.3, 0.0, 0.6, 0.999, 1 - 1e-7])
@pytest.mark.parametrize("half", [(0.01, 0.02), (1.0, 2.0), (0.3, 9.0), (30.0, 60.0)])
def test_a_correlated_pair_agrees_with_quadrature(rho: float, half: tuple[float, float]) -> None:
    noise = CorrelatedNoise(np.array([1.0, 2.0]), np.array([[1.0, rho], [rho, 1.0]]))
    rest = math.sqrt(1 - rho**2)

    def slice_at(x: float) -> float:
        upper, lower = (half[1] / 2 - rho * x) / rest, (-half[1] / 2 - rho * x) / rest
        return float(stats.norm.pdf(x) * (stats.norm.cdf(upper) - stats.norm.cdf(lower)))

    reach = min(half[0], 12.0)
    edge = abs(half[1] / (2 * rho)) if rho else math.inf
    cuts = [c for c in (-edge, -edge / 2, 0, edge / 2, edge) if abs(c) < reach]
    exact = integrate.quad(slice_at, -reach, reach, points=cuts, limit=500, epsabs=1e-12)[0]
    assert noise.box_mass(half) == pytest.approx(exact, rel=1e-7)
    assert noise.largest_box(half) >= exact * (1 - 1e-10)


@pytest.mark.parametrize("size", [3, 4])
def test_correlated_boxes_agree_with_scipy(size: int, rng: np.random.Generator) -> None:
    factor = rng.normal(size=(size, size))
    covariance = factor @ factor.T + 0.3 * np.eye(size)
    noise, half = correlated(covariance), np.linspace(0.8, 2.5, size)
    law = stats.multivariate_normal(np.zeros(size), covariance, seed=3)
    exact = law.cdf(half, lower_limit=-half)
    assert noise.box_mass(half) == pytest.approx(exact, rel=3e-3)
    assert noise.box_mass(half) == noise.box_mass(half)


@pytest.mark.parametrize("size", [3, 5])
def test_an_equicorrelated_box_agrees_with_one_integral(size: int) -> None:
    rho, half = 0.7, 0.8
    rest = math.sqrt(1 - rho)

    def given_the_common_part(z: float) -> float:
        shift = math.sqrt(rho) * z
        inside = stats.norm.cdf((half - shift) / rest) - stats.norm.cdf((-half - shift) / rest)
        return float(stats.norm.pdf(z) * inside**size)

    exact = integrate.quad(given_the_common_part, -9, 9, epsabs=1e-13)[0]
    noise = correlated(rho + (1 - rho) * np.eye(size))
    assert noise.box_mass(half) == pytest.approx(exact, rel=1e-4)
    assert exact <= noise.largest_box(half) <= exact * 1.001


def test_without_correlation_it_is_independent_noise() -> None:
    sigma, half = np.array([1.0, 2.0, 0.5]), [0.4, 3.0, 0.6]
    apart = ProductNoise(Kind.GAUSSIAN, sigma)
    noise = CorrelatedNoise(sigma, np.eye(3))
    assert noise.box_mass(half) == pytest.approx(apart.box_mass(half), rel=1e-5)
    assert np.allclose(noise.axis_mass(1, -1.0, 2.0), apart.axis_mass(1, -1.0, 2.0))
    assert noise.sigma == pytest.approx(sigma)


# Samplers ---------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrong", [0.7, 1.3])
def test_draws_follow_their_law_and_no_other(kind: Kind, wrong: float) -> None:
    noise = ProductNoise(kind, np.array([0.5, 4.0]))
    drawn = noise.draw(coins(noise, DRAWS))
    for axis, sigma in enumerate(noise.sigma):
        assert fits(drawn[:, axis], FROZEN[kind](sigma)) > 1e-4
        assert fits(drawn[:, axis], FROZEN[kind](wrong * sigma)) < 1e-6
        assert drawn[:, axis].std() == pytest.approx(sigma, rel=0.05)
    assert abs(float(np.asarray(np.corrcoef(drawn.T))[0, 1])) < 4.5 / math.sqrt(DRAWS)


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5])
def test_correlated_draws_are_normal_along_every_direction(rho: float) -> None:
    noise = CorrelatedNoise(np.array([1.0, 3.0]), np.array([[1.0, rho], [rho, 1.0]]))
    drawn = noise.draw(coins(noise, DRAWS))
    for direction in ([1.0, 0.0], [0.0, 1.0], [3.0, 1.0], [3.0, -1.0]):
        spread = math.sqrt(float(np.array(direction) @ noise.covariance @ direction))
        along = drawn @ np.array(direction)
        assert fits(along, stats.norm(0, spread)) > 1e-4
        assert fits(along, stats.norm(0, 1.3 * spread)) < 1e-6
        assert fits(along, stats.norm(0, 0.7 * spread)) < 1e-6


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_words_give_the_same_noise(kind: Kind) -> None:
    noise = ProductNoise(kind, np.array([1.0, 2.0]))
    assert np.array_equal(noise.draw(coins(noise, 50)), noise.draw(coins(noise, 50)))
    assert not np.array_equal(noise.draw(coins(noise, 50)), noise.draw(coins(noise, 50, 8)))


@pytest.mark.parametrize("word", EXTREME)
def test_uniforms_lie_strictly_between_0_and_1(word: int) -> None:
    share = float(uniforms(np.array([word], dtype=np.uint64))[0])
    assert 0 < share < 1


def test_uniforms_are_symmetric() -> None:
    words = seeded(5).words(2_000)
    assert np.abs(uniforms(~words) - (1 - uniforms(words))).max() <= 2.0**-53


@pytest.mark.parametrize("word", EXTREME)
@pytest.mark.parametrize("kind", [*KINDS, None])
def test_extreme_words_give_finite_noise(kind: Kind | None, word: int) -> None:
    sigma = np.array([1.0, 2.0])
    noise = correlated([[1.0, 1.0], [1.0, 4.0]]) if kind is None else ProductNoise(kind, sigma)
    assert np.isfinite(noise.draw(np.full((1, 2), word, dtype=np.uint64))).all()


# Forms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sigma", [1e-30, 1e-6, 1.0, 1e6, 1e30])
def test_forms_are_finite_whatever_the_unit(kind: Kind, sigma: float) -> None:
    form = ProductNoise(kind, np.full(4, sigma)).form()
    assert np.isfinite(form.heights).all()
    assert form.heights.min() > 0


def test_fingerprints_tell_noises_apart() -> None:
    sigma = np.array([1.0, 2.0])
    noises = [ProductNoise(kind, sigma) for kind in KINDS]
    noises.append(ProductNoise(Kind.UNIFORM, np.array([2.0, 1.0])))
    prints = {noise.fingerprint for noise in noises}
    prints.add(CorrelatedNoise(sigma, np.eye(2)).fingerprint)
    assert len(prints) == 5


def test_noise_cannot_be_written_to() -> None:
    sigma = np.array([1.0, 2.0])
    noise = ProductNoise(Kind.UNIFORM, sigma)
    sigma[0] = 99.0
    assert noise.sigma[0] == 1.0
    with pytest.raises(ValueError):
        noise.sigma[0] = 5.0


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad", [0.0, -1.0, math.nan, math.inf, 1e-200, 1e200, "x", None, [], [[1.0, 2.0]], [1.0] * 17]
)
def test_bad_deviations_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        axis_scales("sigma", bad)
    assert refusal.value.name == "sigma"


def test_one_number_serves_every_axis() -> None:
    assert axis_scales("sigma", 2.0, 3).tolist() == [2.0, 2.0, 2.0]
    assert axis_scales("sigma", [1.0] * MOST_AXES).size == MOST_AXES
    with pytest.raises(InvalidParameter, match="sigma"):
        axis_scales("sigma", [1.0, 2.0], 3)


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        ProductNoise("cauchy", np.array([1.0])).box_mass(1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("half", [0.0, -1.0, math.nan, [1.0, 1.0, 1.0], "x"])
def test_bad_boxes_are_refused_by_name(half: Any) -> None:
    for noise in (
        ProductNoise(Kind.LAPLACE, np.array([1.0, 1.0])),
        correlated(np.eye(2)),
    ):
        for ask in (noise.box_mass, noise.largest_box):
            with pytest.raises(InvalidParameter, match="half"):
                ask(half)


@pytest.mark.parametrize(
    "correlation",
    [
        [[1.0, 1.5], [1.5, 1.0]],
        [[1.0, 1.0], [1.0, 1.0]],
        [[2.0, 0.5], [0.5, 2.0]],
        [[1.0, 0.5], [0.4, 1.0]],
        [[1.0, math.nan], [math.nan, 1.0]],
        [[1.0, 0.5]],
        [],
        "x",
    ],
)
def test_bad_correlations_are_refused_by_name(correlation: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        CorrelatedNoise(np.ones(2), correlation)
    assert refusal.value.name == "correlation"


def test_bad_covariances_are_refused() -> None:
    for bad in (-np.eye(2), np.zeros((2, 2)), np.ones((2, 3)), np.eye(17)):
        with pytest.raises(InvalidParameter):
            CorrelatedNoise(np.ones(len(bad)), bad)
