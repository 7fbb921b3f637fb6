"""Attackers of series: filters are undone, particles know the noise, a private weight is found."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.attacks import (
    reconstruct_by_particles,
    reconstruct_private_weight,
    reconstruct_series,
    recovered_measurements,
)
from sfumato.core.purpose import Purpose
from sfumato.series.autoregressive import Autoregressive
from sfumato.series.filters import kalman, one_lag, plain
from sfumato.series.realtime import Realtime

MOVING = Autoregressive(20.0, [0.9], 1.0)


def walked(length: int, seed: int, process: Autoregressive = MOVING) -> np.ndarray:
    rng, series = np.random.default_rng(seed), [0.0] * process.order
    for _ in range(length + 100):
        pulled = sum(w * series[-k] for k, w in enumerate(process.coefficients, start=1))
        series.append(pulled + np.sqrt(process.innovation) * rng.normal())
    return process.mean + np.array(series[-length:])


def gaussian(length: int, **asked: object) -> Realtime:
    return Realtime.gaussian(1.0, epsilon=30.0, delta=1e-6, length=length, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked", [{}, {"estimate": one_lag(), "weight": 0.3}, {"estimate": kalman(MOVING)}]
)
def test_a_filter_hides_nothing_of_its_measurements(asked: dict[str, object]) -> None:
    method = gaussian(40, **asked)
    measured = walked(40, 1) + np.sqrt(method.variances[0]) * np.random.default_rng(2).normal(
        size=40
    )
    left = method.memory().update(measured[:, None], method.weights, method.variances)[:, 0]
    np.testing.assert_allclose(recovered_measurements(left.tolist(), method), measured, atol=1e-6)


def test_moments_without_a_value_stay_without_one() -> None:
    method = gaussian(4)
    running = method.begin(sf.seeded(1), purpose=Purpose.SIMULATION)
    left = [event.released for event in running.advance([1.0, None, 3.0, 2.0])]
    found = recovered_measurements(left, method)
    assert np.isnan(found).tolist() == [False, True, False, False]
    with pytest.raises(sf.SfumatoError, match="be at most 4 values"):
        recovered_measurements([1.0] * 5, method)


@pytest.mark.parametrize("process", [MOVING, Autoregressive(5.0, [0.5, 0.3], 2.0)])
def test_particles_find_what_the_smoother_does_under_normal_noise(process: Autoregressive) -> None:
    measured = walked(80, 3, process) + 3 * np.random.default_rng(4).normal(size=80)
    measured[[5, 40]] = np.nan
    exact = reconstruct_series(measured, 9.0, process=process)
    found = reconstruct_by_particles(measured, 9.0, process, particles=6000)
    assert np.abs(found.values - exact.values).max() < 0.4
    # Never surer than the exact bound, but for the draws of particles.
    assert found.expected_error == pytest.approx(exact.expected_error, rel=0.03)


@pytest.mark.statistical
def test_particles_beat_the_best_linear_guess_under_laplace_noise() -> None:
    method = Realtime.laplace(1.0, epsilon=150.0, length=300, estimate=plain())
    errors = np.zeros(2)
    for seed in range(4):
        truth = walked(300, 10 + seed)
        left = method.release(truth, sf.seeded(seed), Purpose.SIMULATION)
        linear = reconstruct_series(left, method, process=MOVING).scored(truth)
        found = reconstruct_by_particles(left, method, MOVING, seed=seed).scored(truth)
        errors += found.error, linear.error
        assert found.error < found.released and found.error < found.blind
    assert errors[0] < 0.99 * errors[1]


@pytest.mark.statistical
def test_a_private_weight_is_found_out_and_hides_next_to_nothing() -> None:
    method = gaussian(300, estimate=one_lag(), weight=0.3)
    noise, truth = 0.09 * float(method.variances[0]), walked(300, 7)
    left = method.release(truth, sf.seeded(3), Purpose.SIMULATION).tolist()
    blind = reconstruct_private_weight(left, noise, MOVING)
    knows = reconstruct_private_weight(left, noise, MOVING, weights=[0.3])
    assert 0.2 < blind.weight < 0.45
    assert blind.chances.sum() == pytest.approx(1.0)
    assert blind.chances[(blind.weights > 0.15) & (blind.weights < 0.5)].sum() > 0.9
    scores, best = blind.series.scored(truth), knows.series.scored(truth)
    assert best.error * 0.99 < scores.error < 1.1 * best.error  # never better than who knows it
    assert scores.error < 0.8 * scores.released  # of the receiver who takes what left
    assert scores.error < scores.blind


def test_who_knows_the_weight_is_the_smoother_of_the_measurements() -> None:
    method = gaussian(60, estimate=one_lag(), weight=0.4)
    left = method.release(walked(60, 8), sf.seeded(5), Purpose.SIMULATION).tolist()
    noise = 0.16 * float(method.variances[0])
    found = reconstruct_private_weight(left, noise, MOVING, weights=[0.4])
    measured = recovered_measurements(left, method)
    exact = reconstruct_series(measured, replace(method, estimate=plain()), process=MOVING)
    # The first releases are taken whole, with the noise of a release.
    np.testing.assert_allclose(found.series.values[5:], exact.values[5:], atol=0.5)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(sf.SfumatoError, match=r"be some, each in \(0, 1\]"):
        reconstruct_private_weight([1.0, 2.0], 1.0, MOVING, weights=[0.0])
    with pytest.raises(sf.SfumatoError, match="be 1 to 1,000 values"):
        reconstruct_private_weight([1.0] * 1001, 1.0, MOVING)
    with pytest.raises(sf.SfumatoError, match="particles must"):
        reconstruct_by_particles([1.0], 1.0, MOVING, particles=1)
