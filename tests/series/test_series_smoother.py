"""A completed series, estimated from all of it: against normal distributions written down."""

import numpy as np
import pytest
from numpy.typing import NDArray

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.series.series_smoother import smooth_series
from sfumato.series.smoother_loops import smooth_one
from tests.oracles.kalman import Floats


def written_down(
    measured: Floats, variances: Floats, rho: float, signal: float, diffuse: float
) -> tuple[Floats, Floats, float]:
    """Means, variances and log density by inverting the joint covariance."""
    times = np.arange(measured.size)
    joint = signal * rho ** np.abs(times[:, None] - times) + diffuse
    seen = ~np.isnan(measured)
    centre = measured[seen].mean()
    noisy = joint[np.ix_(seen, seen)] + np.diag(variances[seen])
    gain = joint[:, seen] @ np.linalg.inv(noisy)
    off = measured[seen] - centre
    means = centre + gain @ off
    left = np.diag(joint - gain @ joint[seen])
    density = -0.5 * (off @ np.linalg.solve(noisy, off) + np.linalg.slogdet(2 * np.pi * noisy)[1])
    return means, left, float(density)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_one_process_is_smoothed_as_its_covariance_says(rho: float) -> None:
    rng = np.random.default_rng(3)
    measured, variances = rng.normal(5, 2, size=8), rng.uniform(0.5, 2, size=8)
    measured[[2, 7]] = np.nan
    values, errors = np.empty(8), np.empty(8)
    density = smooth_one(measured, variances, rho, 3.0, 50.0, values, errors)
    means, left, due = written_down(measured, variances, rho, 3.0, 50.0)
    np.testing.assert_allclose(values, means, rtol=1e-8)
    np.testing.assert_allclose(errors, left, rtol=1e-7)
    assert density == pytest.approx(due)


def walks(rho: float, count: int, length: int) -> tuple[Floats, Floats]:
    """Series with correlated deviations, and measurements of them with noise of variance 4."""
    rng = np.random.default_rng(7)
    series = np.empty((count, length))
    series[:, 0] = rng.normal(size=count)
    for time in range(1, length):
        fresh = rng.normal(size=count) * np.sqrt(1 - rho * rho)
        series[:, time] = rho * series[:, time - 1] + fresh
    series = 100 + 3 * series
    return series, series + rng.normal(scale=2.0, size=series.shape)


def misses(variance: float) -> float:
    """Mean squared error in units of what is said."""
    series, seen = walks(0.9, 24, 300)
    off: list[NDArray[np.float64]] = []
    for truth, left in zip(series, seen, strict=True):
        found = smooth_series(left, variance)
        off.append(((found.values - truth) / found.errors) ** 2)
    return float(np.mean(off))


def test_errors_are_those_of_the_truth() -> None:
    assert abs(misses(4.0) - 1) < 0.1


@pytest.mark.parametrize("variance", [4.0 * 0.7**2, 4.0 * 1.3**2])
def test_noise_of_another_size_is_found_out(variance: float) -> None:
    assert abs(misses(variance) - 1) > 0.1


def coverage(rho: float, deviation: float, length: int) -> float:
    """How often the interval of 95 % holds the truth, where the noise has variance 1."""
    rng, count = np.random.default_rng(11), 120
    series = np.empty((count, length))
    series[:, 0] = rng.normal(size=count)
    for time in range(1, length):
        fresh = rng.normal(size=count) * np.sqrt(1 - rho * rho)
        series[:, time] = rho * series[:, time - 1] + fresh
    series *= deviation
    held = []
    for truth, left in zip(series, series + rng.normal(size=series.shape), strict=True):
        low, high = smooth_series(left, 1.0).interval()
        held.append(((low <= truth) & (truth <= high)).mean())
    return float(np.mean(held))


# With all tried processes equally plausible it is 0.73 to 0.84.
@pytest.mark.parametrize(
    ("rho", "deviation", "length"),
    [(0.0, 0.5, 60), (0.3, 0.5, 60), (0.7, 0.5, 60), (0.0, 1.0, 20), (0.3, 1.0, 20)],
)
def test_intervals_hold_the_truth_where_noise_hides_it(
    rho: float, deviation: float, length: int
) -> None:
    assert coverage(rho, deviation, length) > 0.9


@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_intervals_are_those_of_95_per_cent_where_the_signal_is_larger(rho: float) -> None:
    assert abs(coverage(rho, 4.0, 60) - 0.95) < 0.015


def test_sizes_are_tried_close_enough_together_for_long_series() -> None:
    # Between sizes that are powers of 4, the nearest of which had errors a fifth too small.
    assert coverage(0.2, 0.7, 600) > 0.92


def test_a_series_of_one_value_is_its_measurement() -> None:
    found = smooth_series([3.0], 4.0)
    assert found.values == pytest.approx([3.0])
    assert found.errors == pytest.approx([2.0], rel=1e-2)


def test_looking_back_is_nearer_than_looking_on() -> None:
    series, seen = walks(0.9, 8, 300)
    method = sf.series.series_method(
        sf.series.SeriesSpec(sensitivity=1.0, epsilon=2.0, length=300, method="gaussian")
    )
    assert isinstance(method, sf.Realtime)
    after = [
        smooth_series(left, 4.0).values - truth for truth, left in zip(series, seen, strict=True)
    ]
    assert np.mean(np.square(after)) < 0.6 * np.mean(np.square(seen - series))
    assert smooth_series([None, *seen[0][1:]], method).values.shape == (300,)


def test_estimates_are_no_measurements() -> None:
    method = sf.series.series_method(
        sf.series.SeriesSpec(sensitivity=1.0, epsilon=2.0, length=3, method="realtime")
    )
    assert isinstance(method, sf.Realtime)
    with pytest.raises(InvalidParameter, match="estimate must be plain"):
        smooth_series([1.0, 2.0, 3.0], method)
    with pytest.raises(InvalidParameter, match="measured must be one row"):
        smooth_series([None, None], 1.0)
    with pytest.raises(InvalidParameter, match="noise must be positive, one or 2"):
        smooth_series([1.0, 2.0], -1.0)
