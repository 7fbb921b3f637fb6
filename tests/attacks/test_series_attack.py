"""Reconstruction of series: the least error there is, by a filter of another kind."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks import reconstruct_series
from sfumato.series.autoregressive import Autoregressive


def kalman_smoothed(
    seen: np.ndarray, noise: np.ndarray, process: Autoregressive
) -> tuple[np.ndarray, np.ndarray]:
    """First order: a filter forwards, and the smoother of Rauch, Tung and Striebel backwards."""
    rho, fresh = process.coefficients[0], process.innovation
    means, spreads, before = [], [], []
    mean, spread = 0.0, fresh / (1 - rho**2)
    for time, value in enumerate(seen):
        if time:
            mean, spread = rho * mean, rho**2 * spread + fresh
        before.append((mean, spread))
        if np.isfinite(value):
            gain = spread / (spread + noise[time])
            mean, spread = mean + gain * (value - process.mean - mean), (1 - gain) * spread
        means.append(mean)
        spreads.append(spread)
    for time in range(len(seen) - 2, -1, -1):
        pull = rho * spreads[time] / before[time + 1][1]
        means[time] += pull * (means[time + 1] - before[time + 1][0])
        spreads[time] += pull**2 * (spreads[time + 1] - before[time + 1][1])
    return process.mean + np.array(means), np.sqrt(spreads)


def test_estimates_are_those_of_the_kalman_smoother() -> None:
    rng = np.random.default_rng(2)
    process = Autoregressive(20.0, [0.7], 2.0)
    noise = rng.uniform(0.5, 6.0, 30)
    seen = 20 + rng.normal(size=30) * 2
    seen[[3, 17]] = np.nan
    found = reconstruct_series(seen, noise, process=process)
    values, errors = kalman_smoothed(seen, noise, process)
    np.testing.assert_allclose(found.values, values, atol=1e-9)
    np.testing.assert_allclose(found.errors, errors, atol=1e-9)


@pytest.mark.statistical
def test_what_he_believes_is_what_he_gets_and_more_than_the_release_says() -> None:
    rng = np.random.default_rng(11)
    process = Autoregressive(50.0, [1.1, -0.2], 1.0)
    truth = [50.0, 50.0]
    for _ in range(1500):
        truth.append(50 + 1.1 * (truth[-1] - 50) - 0.2 * (truth[-2] - 50) + rng.normal())
    true = np.array(truth[502:])
    measured = true + 3 * rng.normal(size=len(true))
    knows = reconstruct_series(measured, 9.0, process=process)
    guesses = reconstruct_series(measured, 9.0)
    scores = knows.scored(true)
    assert scores.error == pytest.approx(knows.expected_error, rel=0.1)
    assert 0.92 < scores.within < 0.98
    assert scores.released == pytest.approx(3.0, rel=0.1)
    assert scores.error < 0.6 * scores.released
    assert scores.error < scores.blind
    assert scores.error <= guesses.scored(true).error * 1.01 < scores.released


def test_what_does_not_fit_is_refused() -> None:
    process = Autoregressive(0.0, [0.5], 1.0)
    with pytest.raises(sf.SfumatoError, match="be at most 4,000"):
        reconstruct_series(np.zeros(4001), 1.0, process=process)
    with pytest.raises(sf.SfumatoError, match="be 2 values"):
        reconstruct_series([1.0, 2.0], 1.0, process=process).scored([1.0])
