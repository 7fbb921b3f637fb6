import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import event as note
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import linalg

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import Randomness, seeded
from sfumato.series.rivals.fast import Control, Fast, best_process_variance, filter_errors
from sfumato.series.series_release import SeriesRelease
from tests.series.quick import simulations

Floats = NDArray[np.float64]
SIMULATION = Purpose.SIMULATION


class Recorder:
    """A method's noise that remembers every noisy measurement, for the oracle."""

    fingerprint = "recorder"

    def __init__(self, method: Fast) -> None:
        self._noise = method.noise
        self.leakage, self.charge = method.noise.leakage, method.noise.charge
        self.variance = method.noise.variance
        self.told: list[float] = []

    def perturb_one(self, value: float, randomness: Randomness) -> float:
        self.told.append(self._noise.perturb_one(value, randomness))
        return self.told[-1]


def recorded(method: Fast) -> Recorder:
    recorder = Recorder(method)
    object.__setattr__(method, "noise", recorder)
    return recorder


def measured(releasing: SeriesRelease) -> int:
    """How many measurements were made."""
    return int(releasing.state.arrays["measured"])


def posterior_means(observed: dict[int, float], length: int, q: float, r: float) -> list[float]:
    """E[Z_t | measurements up to t] of a random walk with a flat prior, by least squares.

    All values at once from the information matrix of the walk: no filter is written here.
    """
    means = []
    for t in range(length):
        known = [time for time in observed if time <= t]
        size = t + 1
        information = np.zeros((size, size))
        for k in range(t):
            information[k : k + 2, k : k + 2] += np.array([[1, -1], [-1, 1]]) / q
        vector = np.zeros(size)
        for time in known:
            information[time, time] += 1 / r
            vector[time] += observed[time] / r
        means.append(float(linalg.solve(information, vector, assume_a="pos")[-1]))
    return means


def riccati_gain(q: float, r: float) -> float:
    """Gain of the filter in the long run, from the algebraic Riccati equation."""
    prior = linalg.solve_discrete_are(np.eye(1), np.eye(1), [[q]], [[r]])[0, 0]
    return float(prior / (prior + r))


@pytest.mark.parametrize("q", [0.5, 40.0, 2e4])
def test_every_release_is_the_posterior_mean(q: float) -> None:
    length = 25
    series = 100 + np.cumsum(np.sin(np.arange(length)) * 8)
    method = Fast.at(1.0, 5.0, length, process_variance=q)
    recorder = recorded(method)
    released = method.release(series, seeded(1), SIMULATION)
    releasing = method.begin(seeded(2), purpose=Purpose.SIMULATION)
    stepped = [releasing.step(value) for value in series]
    assert len(recorder.told) == 2 * length and measured(releasing) == length
    for told, noisy in ((released, recorder.told[:length]), (stepped, recorder.told[length:])):
        observed = dict(enumerate(noisy))
        assert told == pytest.approx(posterior_means(observed, length, q, recorder.variance))


def test_between_samples_the_prediction_leaves() -> None:
    length, q = 60, 30.0
    method = Fast.at(1.0, 40.0, length, samples=12, process_variance=q)
    recorder = recorded(method)
    releasing = method.begin(seeded(2), purpose=Purpose.SIMULATION)
    observed: dict[int, float] = {}
    released = []
    for t in range(length):
        before = measured(releasing)
        released.append(releasing.step(500.0 + t))
        if measured(releasing) > before:
            observed[t] = recorder.told[-1]
        else:
            assert released[-1] == released[-2]
    assert 1 < len(observed) <= 12 < length
    assert released == pytest.approx(posterior_means(observed, length, q, recorder.variance))


def test_without_a_walk_the_mean_of_all_measurements_leaves() -> None:
    method = Fast.at(1.0, 5.0, 30, process_variance=0.0)
    recorder = recorded(method)
    released = method.release([10.0] * 30, seeded(4), SIMULATION)
    assert released == pytest.approx(np.cumsum(recorder.told) / np.arange(1, 31))


def test_with_a_wild_walk_the_measurement_itself_leaves() -> None:
    method = Fast.at(1.0, 5.0, 30, process_variance=1e15)
    recorder = recorded(method)
    released = method.release([10.0] * 30, seeded(4), SIMULATION)
    assert released == pytest.approx(recorder.told, rel=1e-9)


def expected_error(method: Fast, series: Floats) -> float:
    """Mean squared error of a value where every value is measured: the product's closed form."""
    return float(filter_errors(series, np.array([method.ratio]), method.noise.variance)[0])


SHORT = Fast.at(1.0, 10.0, 6, process_variance=1.0)


@pytest.fixture(scope="module")
def last_errors() -> Floats:
    """Errors of the last value of a constant series."""
    return np.asarray(simulations(SHORT, [20.0] * 6, 4000)[:, -1] - 20.0)


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.7, False), (1.3, False)])
def test_the_error_of_a_constant_series_is_that_of_the_riccati_equation(
    last_errors: Floats, factor: float, passes: bool
) -> None:
    gain = riccati_gain(1.0, SHORT.noise.variance)
    assert (1 - gain) ** 6 < 0.005  # six steps are a long run
    variance = factor * gain / (2 - gain) * SHORT.noise.variance
    # A weighted sum of Laplace numbers has a kurtosis of 6 at most.
    deviation = variance * math.sqrt(5 / last_errors.size)
    assert (abs(float(np.mean(last_errors**2)) - variance) < 4 * deviation) == passes


@pytest.mark.statistical
def test_the_closed_form_of_the_error_is_what_is_seen() -> None:
    series = 50 * np.sin(np.arange(20) / 3)
    method = Fast.at(1.0, 10.0, 20, process_variance=30.0)
    squares = np.square(simulations(method, series, 400) - series).mean(axis=1)
    stated = expected_error(method, series)
    assert abs(squares.mean() - stated) < 4 * squares.std() / math.sqrt(400) < 0.2 * stated


def test_in_the_long_run_the_closed_form_is_that_of_the_riccati_equation() -> None:
    method = Fast.at(1.0, 40.0, 4000, process_variance=300.0)
    gain = riccati_gain(300.0, method.noise.variance)
    expected = gain / (2 - gain) * method.noise.variance
    assert expected_error(method, np.zeros(4000)) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(("samples", "count"), [(None, 40), (7, 7)])
def test_the_guarantee_is_the_sum_over_all_measurements(samples: int | None, count: int) -> None:
    method = Fast.at(3.0, 2.0, 40, samples=samples, process_variance=1.0)
    noise = method.noise.noise
    table = [int(weight) for weight in noise.weights]
    ratios = [Fraction(a, b) for a, b in itertools.pairwise(table)]
    ratios.append(Fraction(table[-1] * 2**62, table[0] * noise.repeat))
    exact = count * method.noise.steps * math.log(max(ratios))
    assert method.measurements == count
    assert exact <= method.guarantee.epsilon <= 2.0
    assert method.guarantee.epsilon == pytest.approx(exact, rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    series=st.lists(st.floats(-1e5, 1e5), min_size=1, max_size=60),
    samples=st.integers(1, 20),
    xi=st.floats(0.01, 5.0),
    seed=st.integers(0, 10**6),
)
def test_no_run_measures_more_often_than_paid_for(
    series: list[float], samples: int, xi: float, seed: int
) -> None:
    allowed = min(samples, len(series))
    method = Fast.at(
        1.0, 5.0, len(series), samples=allowed, process_variance=10.0, control=Control(xi=xi)
    )
    recorder = recorded(method)
    releasing = method.begin(seeded(seed), purpose=Purpose.SIMULATION)
    counts = []
    for value in series:
        releasing.step(value)
        counts.append(measured(releasing))
        interval = float(releasing.state.arrays["interval"])
        assert 1.0 <= interval <= 1 + 10 * (1 - math.exp(-1)) * counts[-1]
    note(f"used up {counts[-1] == allowed}")
    assert counts[0] == 1 and counts[-1] == len(recorder.told) <= allowed


def test_after_the_last_sample_only_the_prediction_leaves() -> None:
    method = Fast.at(1.0, 5.0, 50, samples=4, process_variance=1e6, control=Control(xi=1e-6))
    series = np.geomspace(1.0, 1e6, 50)
    released = method.release(series, seeded(1), SIMULATION)
    assert len(set(released.tolist())) == 4
    assert (released[3:] == released[3]).all()


def test_a_quiet_series_is_measured_less_often_than_a_restless_one() -> None:
    def count(series: Floats) -> int:
        method = Fast.at(1.0, 40.0, 100, samples=100, process_variance=100.0)
        releasing = method.begin(seeded(1), purpose=Purpose.SIMULATION)
        for value in series:
            releasing.step(value)
        return measured(releasing)

    quiet, restless = np.full(100, 1e4), np.tile([1e4, 3e4], 50)
    assert count(quiet) < 20 < 80 < count(restless)


@settings(max_examples=100, deadline=None)
@given(
    interval=st.floats(1, 100),
    errors=st.lists(st.floats(0, 50), min_size=1, max_size=8),
    gap=st.integers(1, 30),
    derivative=st.floats(0, 1),
)
def test_the_interval_is_that_of_the_paper(
    interval: float, errors: list[float], gap: int, derivative: float
) -> None:
    control = Control(derivative=derivative)
    slope = (errors[-1] - errors[-2]) / gap if len(errors) > 1 else 0.0
    feedback = 0.9 * errors[-1] + 0.1 * sum(errors[-5:]) / 5 + derivative * slope
    step = 10 * (1 - math.exp(min(700.0, (feedback - 0.1) / 0.1)))
    assert control.interval(interval, errors, gap) == pytest.approx(max(1.0, interval + step))


def test_an_error_at_the_set_point_leaves_the_interval() -> None:
    control = Control(proportional=1.0, integral=0.0)
    assert control.interval(6.0, [0.1], 6) == pytest.approx(6.0)
    assert control.interval(6.0, [0.05], 6) > 6.0 > control.interval(6.0, [0.11], 6)


def test_the_best_walk_has_the_least_error() -> None:
    series = 30 * np.sin(np.arange(40) / 4)
    best = best_process_variance(series, 1.0, 20.0)

    def error(variance: float) -> float:
        return expected_error(Fast.at(1.0, 20.0, 40, process_variance=variance), series)

    assert all(error(best) <= error(best * factor) for factor in (0.3, 0.8, 1.25, 3.0))


def test_a_constant_series_needs_no_walk() -> None:
    assert best_process_variance([5.0] * 30, 1.0, 1.0) < 1e-6


def test_filtering_helps_a_smooth_series() -> None:
    series = 500 + 40 * np.sin(np.arange(200) / 30)
    best = best_process_variance(series, 1.0, 10.0)
    method = Fast.at(1.0, 10.0, 200, process_variance=best)
    assert expected_error(method, series) < 0.3 * method.noise.variance


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"sensitivity": 0.0}, "sensitivity"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": 1e-7}, "epsilon"),
        ({"length": 0}, "length"),
        ({"samples": 0}, "samples"),
        ({"samples": 11}, "measurements must be at most the length, 10; got 11"),
        ({"process_variance": -1.0}, "process_variance"),
        ({"process_variance": math.inf}, "process_variance"),
        ({"process_variance": 1e308, "sensitivity": 1e-100}, "ratio"),
        ({"control": Control()}, "control must come with a number of samples"),
    ],
)
def test_bad_parameters_are_named(change: dict[str, float], named: str) -> None:
    good = {"sensitivity": 1.0, "epsilon": 1.0, "length": 10, "process_variance": 1.0}
    with pytest.raises(InvalidParameter, match=named):
        Fast.at(**(good | change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change", [{"proportional": -1.0}, {"memory": 0}, {"theta": 0.0}, {"xi": 0.0}, {"xi": math.nan}]
)
def test_a_bad_control_is_refused(change: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match=next(iter(change))):
        Control(**change)  # type: ignore[arg-type]


def test_the_guarantee_does_not_exceed_small_budgets() -> None:
    for epsilon in (0.01, 0.1, 1.0):
        method = Fast.at(1.0, epsilon, 1000, process_variance=1.0)
        assert method.guarantee <= PureDP(epsilon)
