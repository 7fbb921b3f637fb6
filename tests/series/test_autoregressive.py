import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats

from sfumato.core.errors import InvalidParameter, SfumatoError
from sfumato.core.randomness import seeded
from tests.oracles import kalman
from tests.oracles.processes import (
    Drifting,
    Process,
    kalman_bound,
    lag_estimates,
)
from tests.strategies import Floats

SECRET = 9151.25
ERRORS = 4.0
"""Standard errors that an estimate may be off; a parameter 30 % off must be further away."""

SERIES = [
    Process(3.0, [0.6], 2.0),
    Process(0.0, [-0.9], 0.5),
    Process(-5.0, [0.5, 0.3], 2.0),
    Process(1e6, [1.6, -0.8], 1e-3),
    Process(0.0, [0.0, 0.0, 0.9], 1.0),
    Process(0.0, [0.2, 0.0, -0.3, 0.1, 0.5], 7.0),
]


@st.composite
def stationary(draw: st.DrawFn) -> Process:
    """Any stationary series, through its partial autocorrelations (Levinson)."""
    partial = draw(st.lists(st.floats(-0.95, 0.95), min_size=1, max_size=4))
    weights: list[float] = []
    for new in partial:
        weights = [w - new * v for w, v in zip(weights, reversed(weights), strict=True)] + [new]
    return Process(draw(st.floats(-9, 9)), weights, draw(st.sampled_from([1e-6, 1.0, 1e6])))


def within(found: float, true: float, error: float) -> bool:
    """Whether an estimate is near the truth, and far from what is 30 % more or less than it."""
    near = abs(found - true) <= ERRORS * error
    return near and all(abs(found - wrong * true) > ERRORS * error for wrong in (0.7, 1.3))


# --- moments ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", SERIES, ids=str)
def test_autocovariances_are_the_sum_over_all_innovations(model: Process) -> None:
    expected = kalman.autocovariances(model.coefficients, model.innovation, 12)
    found = model.autocovariances(range(12))
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * expected[0])
    assert model.variance == pytest.approx(expected[0], rel=1e-12)


@given(stationary())
def test_companion_form_leaves_the_autocovariances_unchanged(model: Process) -> None:
    transition, noise = model.transition, np.zeros((model.order, model.order))
    noise[0, 0] = model.innovation
    state = linalg.toeplitz(model.leading[:-1])
    kept = transition @ state @ transition.T + noise
    np.testing.assert_allclose(kept, state, rtol=1e-6, atol=1e-8 * model.variance)
    assert model.variance >= model.innovation * (1 - 1e-9)


@given(st.floats(-0.999, 0.999), st.floats(1e-3, 1e3))
def test_first_order_has_the_moments_of_the_definition(rho: float, variance: float) -> None:
    model = Process.first_order(2.0, rho, variance)
    assert model.variance == pytest.approx(variance, rel=1e-11)
    expected = variance * rho ** np.arange(6)
    np.testing.assert_allclose(model.autocovariances(range(6)), expected, atol=1e-11 * variance)
    np.testing.assert_array_equal(model.autocovariances([-3, 3]), model.autocovariances([3, 3]))


@pytest.mark.parametrize(
    "coefficients",
    # The last one solves the Yule-Walker equations with a variance above its innovation.
    [[1.0], [-1.0], [1.2], [0.5, 0.5], [0.5, 0.6], [1.9, -1.0], [0.0, 0.0, 1.0], [-0.24, 1.2]],
)
def test_coefficients_that_are_not_stationary_are_refused(coefficients: list[float]) -> None:
    with pytest.raises(InvalidParameter, match="stationary"):
        Process(0.0, coefficients, 1.0)


@pytest.mark.parametrize(
    ("mean", "coefficients", "innovation"),
    [
        (math.inf, [0.5], 1.0),
        (0.0, [math.nan], 1.0),
        (0.0, [], 1.0),
        (0.0, [[0.5]], 1.0),
        (0.0, [0.5], 0.0),
        (0.0, [0.5], math.inf),
    ],
)
def test_other_parameters_are_refused(mean: float, coefficients: object, innovation: float) -> None:
    with pytest.raises(InvalidParameter):
        Process(mean, coefficients, innovation)  # type: ignore[arg-type]


def test_a_model_is_a_value() -> None:
    assert Process(1, np.array([0.5]), 2) == Process(1.0, (0.5,), 2.0)
    assert len({Process(1, [0.5], 2), Process(1.0, (0.5,), 2.0)}) == 1
    with pytest.raises(AttributeError):
        SERIES[0].mean = 1.0  # type: ignore[misc]


# --- simulation and fits ---------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (place % 2))
        for place, each in enumerate(SERIES)
    ],
    ids=str,
)
def test_samples_have_the_covariance_from_their_first_value_on(model: Process) -> None:
    coins, draws, length = seeded(5), 6_000, 7
    drawn = np.array([model.sample(length, coins) for _ in range(draws)]) - model.mean
    true = kalman.covariance(model.coefficients, model.innovation, length)
    found = drawn.T @ drawn / draws
    # Var(xy) = g_xx g_yy + g_xy^2 for normal numbers.
    error = np.sqrt((np.outer(true.diagonal(), true.diagonal()) + true**2) / draws)
    assert np.all(np.abs(found - true) <= 4.5 * error)
    for wrong in (0.7, 1.3):
        assert np.any(np.abs(found - wrong * true) > 4.5 * error)
    normal = drawn[:, -1] / math.sqrt(model.variance)
    assert stats.kstest(normal, "norm").pvalue > 1e-4
    assert stats.kstest(1.3 * normal, "norm").pvalue < 1e-4


def test_equal_coins_give_equal_samples() -> None:
    model = SERIES[2]
    np.testing.assert_array_equal(model.sample(50, seeded(1)), model.sample(50, seeded(1)))
    assert model.sample(1, seeded(1)).shape == (1,)


@pytest.mark.statistical
@pytest.mark.parametrize("rho", [0.9, 0.5, -0.7])
def test_a_fit_of_order_one_recovers_its_parameters(rho: float) -> None:
    size, true = 20_000, Process.first_order(40.0, rho, 3.0)
    found = Process.fit(true.sample(size, seeded(11)), order=1)
    assert within(found.coefficients[0], rho, math.sqrt((1 - rho**2) / size))
    assert within(found.innovation, true.innovation, true.innovation * math.sqrt(2 / size))
    assert within(found.mean, 40.0, math.sqrt(true.innovation / size) / (1 - rho))


@pytest.mark.statistical
@pytest.mark.parametrize("weights", [(0.5, 0.3), (1.6, -0.8), (0.3, -0.5)])
def test_a_fit_chooses_order_two_and_recovers_its_parameters(
    weights: tuple[float, float],
) -> None:
    size, true = 20_000, Process(-5.0, weights, 2.0)
    history = true.sample(size, seeded(12))
    found = Process.fit(history)
    assert found.order == 2
    assert found == Process.fit(history, order=2)
    error = math.sqrt((1 - weights[1] ** 2) / size)
    assert all(within(f, t, error) for f, t in zip(found.coefficients, weights, strict=True))
    assert within(found.innovation, 2.0, 2.0 * math.sqrt(2 / size))


@settings(max_examples=50)
@given(
    st.lists(st.floats(-1e3, 1e3), min_size=4, max_size=40).filter(lambda s: np.std(s) > 1e-9),
    st.integers(1, 2),
)
def test_a_fit_solves_the_equations_of_its_own_moments(values: list[float], order: int) -> None:
    found = Process.fit(values, order)
    centred = np.array(values) - np.mean(values)
    moments = np.array([centred[k:] @ centred[: len(values) - k] for k in range(order + 1)])
    expected = moments / len(values)
    np.testing.assert_allclose(
        found.autocovariances(range(order + 1)), expected, rtol=1e-6, atol=1e-7 * expected[0]
    )


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
def test_a_fit_does_not_depend_on_the_scale(scale: float) -> None:
    history = SERIES[2].sample(300, seeded(2))
    one, other = Process.fit(history), Process.fit(scale * history)
    assert other.coefficients == pytest.approx(one.coefficients, rel=1e-9)
    assert other.innovation == pytest.approx(one.innovation * scale**2, rel=1e-9)


@pytest.mark.parametrize(
    "series", [[], [SECRET] * 5, [SECRET, 1.0], [SECRET, math.nan, 1.0], [[SECRET, 1.0, 2.0]]]
)
def test_a_history_that_says_nothing_is_refused_and_not_quoted(series: list[float]) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        Process.fit(series)
    assert str(SECRET) not in str(refusal.value)


def test_an_order_needs_more_values_than_it_has() -> None:
    assert Process.fit([1.0, 2.0, 4.0, 3.0], order=2).order == 2
    with pytest.raises(InvalidParameter, match="order"):
        Process.fit([1.0, 2.0, 4.0, 3.0], order=3)


# --- drift -----------------------------------------------------------------------------------


@pytest.mark.parametrize("drift", [0.0, 0.05, -0.5])
def test_drifting_moments_are_the_closed_forms(drift: float) -> None:
    rho, times = 0.8, np.arange(1, 101)
    model = Drifting(rho, 10.0, drift)
    line = drift * (times / (1 - rho) - rho * (1 - rho**times) / (1 - rho) ** 2)
    np.testing.assert_allclose(model.mean_path(100), line, rtol=1e-11, atol=1e-12)
    spread = 10.0 * (1 - rho ** (2 * times)) / (1 - rho**2)
    np.testing.assert_allclose(model.variance_path(100), spread, rtol=1e-12)
    assert spread[-1] == pytest.approx(27.8, abs=0.05)


@pytest.mark.statistical
def test_drifting_samples_follow_both_paths() -> None:
    model, draws, coins = Drifting(0.8, 10.0, 0.5), 4_000, seeded(41)
    drawn = np.array([model.sample(30, coins) for _ in range(draws)])
    mean, variance = model.mean_path(30), model.variance_path(30)
    error = np.sqrt(variance / draws)
    assert np.all(np.abs(drawn.mean(axis=0) - mean) <= ERRORS * error)
    assert np.abs(drawn.mean(axis=0) - 0.7 * mean)[-1] > 20 * error[-1]
    ratio = drawn.var(axis=0) / variance
    assert np.all(np.abs(ratio - 1) <= ERRORS * math.sqrt(2 / draws))


@pytest.mark.parametrize("wrong", [(1.0, 1.0, 0.0), (0.5, 0.0, 0.0), (0.5, 1.0, math.inf)])
def test_a_drift_that_explodes_is_refused(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(InvalidParameter):
        Drifting(*wrong)


# --- linear estimates ------------------------------------------------------------------------


@pytest.mark.parametrize("model", SERIES, ids=str)
@pytest.mark.parametrize("lags", [[0], [1], [0, 1, 2, 3], [1, 2, 5], [7, 3], [-2, 0, 4]])
def test_lag_estimates_are_the_joint_normal_conditional(model: Process, lags: list[int]) -> None:
    noise = 0.7 * model.variance
    joint = kalman.covariance(model.coefficients, model.innovation, 12)
    expected = kalman.conditional(joint, 8, [8 - lag for lag in lags], noise)
    found = lag_estimates(model, lags, noise)
    np.testing.assert_allclose(found.weights, expected[:-1], atol=1e-9)
    assert found.squared_error == pytest.approx(expected[-1], rel=1e-9)


def test_estimates_use_what_is_there() -> None:
    model = SERIES[2]
    exact = lag_estimates(model, [1, 2], 0.0)
    np.testing.assert_allclose(exact.weights, model.coefficients, rtol=1e-12)
    assert exact.squared_error == pytest.approx(model.innovation)
    assert lag_estimates(model, [0, 1], 0.0).squared_error == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("lags", [[], [1, 1], [[1, 2]], [0.5]])
def test_lags_must_be_different_whole_numbers(lags: list[int]) -> None:
    with pytest.raises(InvalidParameter, match="lags"):
        lag_estimates(SERIES[0], lags, 1.0)


# --- the Kalman bound ------------------------------------------------------------------------


@pytest.mark.parametrize("model", SERIES, ids=str)
@pytest.mark.parametrize("ratio", [1e-3, 0.3, 1.0, 4.0, 1e3])
def test_kalman_bound_is_the_end_of_a_plain_iteration(model: Process, ratio: float) -> None:
    noise = ratio * model.variance
    expected = kalman.riccati(model.coefficients, model.innovation, noise)
    assert kalman_bound(model, noise) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("model", SERIES, ids=str)
def test_kalman_bound_is_the_error_given_the_whole_past(model: Process) -> None:
    noise, length = 0.5 * model.variance, 250
    joint = kalman.covariance(model.coefficients, model.innovation, length)
    whole = float(kalman.conditional(joint, length - 1, range(length), noise)[-1])
    assert kalman_bound(model, noise) == pytest.approx(whole, rel=1e-9)
    assert lag_estimates(model, range(length), noise).squared_error == pytest.approx(whole)


@settings(max_examples=50)
@given(stationary(), st.floats(-3, 3))
def test_kalman_bound_lies_below_every_estimate_from_few_lags(
    model: Process, exponent: float
) -> None:
    noise = model.variance * 10**exponent
    try:
        bound = kalman_bound(model, noise)
    except SfumatoError:
        pytest.fail("a well conditioned series was refused")
    assert 0 < bound <= lag_estimates(model, range(5), noise).squared_error * (1 + 1e-9)
    assert bound <= lag_estimates(model, [0], noise).squared_error * (1 + 1e-9)


@pytest.mark.parametrize("gap", [0.5, 1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("noise", [1e-9, 1e-3, 1.0, 1e3, 1e9])
def test_kalman_bound_keeps_its_digits_near_the_unit_circle(gap: float, noise: float) -> None:
    """Against the positive root of the quadratic equation that order 1 leaves."""
    rho = 1 - gap
    left = (1 - rho) * (1 + rho)
    half = (noise * left - left) / 2
    root = math.hypot(half, math.sqrt(left * noise))
    prior = root - half if half < 0 else left * noise / (root + half)
    bound = kalman_bound(Process.first_order(0.0, rho, 1.0), noise)
    assert bound == pytest.approx(noise * prior / (noise + prior), rel=1e-9)


def test_without_noise_nothing_is_unknown() -> None:
    assert kalman_bound(SERIES[2], 0.0) == 0
    with pytest.raises(InvalidParameter, match="noise_variance"):
        kalman_bound(SERIES[2], -1.0)


# --- what the paper says of its own release --------------------------------------------------

CASES = [(0.9, 4.0, 0.546), (0.99, 1.0, 0.124)]


@pytest.mark.parametrize(("rho", "baseline", "bound"), CASES)
def test_the_honest_yardstick(rho: float, baseline: float, bound: float) -> None:
    model = Process.first_order(0.0, rho, 1.0)
    assert kalman_bound(model, baseline) == pytest.approx(bound, abs=5e-4)
    assert kalman.riccati([rho], 1 - rho**2, baseline) == pytest.approx(bound, abs=5e-4)


def published_formula(rho: float, noise: float, weight: float) -> float:
    """Theorem 6.1, for one step, a signal of variance 1 and a constant weight."""
    return (1 - weight) ** 2 * (1 - rho**2 / (1 + noise)) + noise


def published_shrinking(rho: float, noise: float) -> float:
    """Factor of Proposition 2.4 as Algorithm 2 uses it, for a signal of variance 1."""
    return rho / (1 + noise)


def exact_errors(rho: float, baseline: float, weight: float, steps: int) -> list[float]:
    """Mean squared errors of Algorithm 2 at each step, from the covariance of (z, x) alone.

    The first release is the first value with noise of the same variance, as in the proofs.
    """
    noise = weight**2 * baseline
    keep = (1 - weight) * published_shrinking(rho, noise)
    move = np.array([[rho, 0.0], [weight * rho, keep]])
    fresh = (1 - rho**2) * np.outer([1.0, weight], [1.0, weight]) + np.diag([0.0, noise])
    both = np.array([[1.0, 1.0], [1.0, 1.0 + noise]])
    errors = []
    for _ in range(steps):
        errors.append(float(both[0, 0] - 2 * both[0, 1] + both[1, 1]))
        both = move @ both @ move.T + fresh
    return errors


def settled_error(rho: float, baseline: float, weight: float) -> float:
    """The same in the long run: the two moments that the recursion does not change."""
    noise = weight**2 * baseline
    keep = (1 - weight) * published_shrinking(rho, noise)
    shared = weight / (1 - rho * keep)
    spread = (weight**2 + noise + 2 * keep * weight * rho * shared) / (1 - keep**2)
    return float(1 - 2 * shared + spread)


def simulated_errors(
    rho: float, baseline: float, weight: float, steps: int, rng: np.random.Generator
) -> Floats:
    """Squared errors of Algorithm 2 with known parameters: one row per step, many runs."""
    runs, noise = 20_000, weight**2 * baseline
    shrink = published_shrinking(rho, noise)
    z = rng.normal(size=runs)
    x = z + rng.normal(0, math.sqrt(noise), runs)
    errors = [(x - z) ** 2]
    for _ in range(steps - 1):
        z = rho * z + rng.normal(0, math.sqrt(1 - rho**2), runs)
        x = (1 - weight) * shrink * x + weight * z + rng.normal(0, math.sqrt(noise), runs)
        errors.append((x - z) ** 2)
    return np.array(errors)


# rho, baseline, Theorem 6.1, the exact error in the long run, and the one simulated in the errata.
ALGORITHM_2 = [(0.9, 4.0, 0.219, 0.57746, 0.573), (0.99, 1.0, 0.034, 0.13290, 0.128)]


@pytest.mark.statistical
@pytest.mark.parametrize(("rho", "baseline", "formula", "settled", "errata"), ALGORITHM_2)
def test_theorem_6_1_is_not_the_error_of_algorithm_2(
    rho: float,
    baseline: float,
    formula: float,
    settled: float,
    errata: float,
    rng: np.random.Generator,
) -> None:
    weight, steps = 0.1, 200
    claimed = published_formula(rho, weight**2 * baseline, weight)
    assert claimed == pytest.approx(formula, abs=5e-4)
    exact = exact_errors(rho, baseline, weight, 2_000)
    assert exact[-1] == pytest.approx(settled_error(rho, baseline, weight), rel=1e-9)
    assert exact[-1] == pytest.approx(settled, abs=5e-6)
    assert exact[-1] == pytest.approx(errata, rel=0.04)
    # The formula is right for the one step whose past really is a value with noise.
    assert exact[1] == pytest.approx(claimed)
    late = simulated_errors(rho, baseline, weight, steps, rng)[steps // 2 :].mean(axis=0)
    error = float(late.std() / math.sqrt(late.size))
    assert within(float(late.mean()), float(np.mean(exact[steps // 2 : steps])), error)
    assert abs(late.mean() - claimed) > 50 * error


def test_theorem_6_1_holds_at_weight_one() -> None:
    for rho, baseline, _ in CASES:
        assert settled_error(rho, baseline, 1.0) == pytest.approx(baseline)
        assert published_formula(rho, baseline, 1.0) == pytest.approx(baseline)


RHOS = [*np.linspace(-0.99, 0.99, 34).tolist(), 0.0, 0.999]
BASELINES = np.logspace(-3, 3, 31).tolist()
WEIGHTS = np.linspace(0.01, 0.99, 50).tolist()


def test_condition_3_of_theorem_6_2_holds_in_spite_of_its_proof() -> None:
    """Over the whole grid: enough for an exact gain, tight without correlation, not needed."""
    inside = better_outside = 0
    for rho in RHOS:
        for baseline in BASELINES:
            for weight in WEIGHTS:
                better = settled_error(rho, baseline, weight) < baseline
                limit = (1 - baseline) / (1 + baseline)
                if weight > limit + 1e-12:
                    inside += 1
                    assert better, (rho, baseline, weight)
                elif better:
                    better_outside += 1
                    assert abs(rho) > 0.02
    assert inside > 30_000
    assert better_outside > 1_000


@pytest.mark.parametrize("rho", [-0.9, 0.0, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("baseline", [0.01, 0.3, 1.0, 4.0, 100.0])
def test_no_weight_beats_the_kalman_filter_of_the_baseline(rho: float, baseline: float) -> None:
    bound = kalman_bound(Process.first_order(0.0, rho, 1.0), baseline)
    assert all(settled_error(rho, baseline, weight) >= bound * (1 - 1e-9) for weight in WEIGHTS)


@pytest.mark.parametrize(("rho", "baseline", "bound"), CASES)
def test_the_released_history_reaches_the_bound(rho: float, baseline: float, bound: float) -> None:
    """The Kalman filter of x itself: x tells all that z + noise tells."""
    weight = 0.1
    keep = (1 - weight) * published_shrinking(rho, weight**2 * baseline)
    length = 300
    # x is a known combination of the noisy baseline, row by row, and can be taken apart again.
    mixing = linalg.toeplitz(weight * keep ** np.arange(length), np.zeros(length))
    mixing[:, 0] = keep ** np.arange(length)
    noisy = np.full(length, baseline)
    noisy[0] = weight**2 * baseline
    signal = kalman.covariance([rho], 1 - rho**2, length)
    seen = mixing @ (signal + np.diag(noisy)) @ mixing.T
    shared = mixing @ signal[:, -1]
    error = 1.0 - shared @ np.linalg.solve(seen, shared)
    assert error == pytest.approx(bound, abs=5e-4)
