import itertools
import math
from fractions import Fraction
from functools import cache

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.core.guarantees import PureDP
from sfumato.core.purpose import Purpose
from sfumato.core.randomness import secure, seeded
from sfumato.noise.geometric import DiscreteLaplace
from sfumato.series.memory import Nothing
from sfumato.series.rivals.delayed_fourier import DelayedFourier
from sfumato.series.rivals.fourier import (
    Fourier,
    best_coefficients,
    orthonormal,
    series_of,
    transform_error,
)
from tests.series.quick import simulations

Floats = NDArray[np.float64]
SIMULATION = Purpose.SIMULATION


def basis(length: int) -> Floats:
    """The orthonormal waves, one row each, from cosines and sines alone."""
    times = np.arange(length)
    rows = [np.full(length, 1 / math.sqrt(length))]
    for j in range(1, length // 2 + 1):
        angle = 2 * np.pi * j * times / length
        if 2 * j == length:
            rows.append(np.cos(angle) / math.sqrt(length))
        else:
            rows.append(math.sqrt(2 / length) * np.cos(angle))
            rows.append(-math.sqrt(2 / length) * np.sin(angle))
    return np.array(rows)


def expected_error(method: Fourier | DelayedFourier, series: Floats) -> float:
    """Mean squared error of a value: what dropping loses, and the noise of what is kept."""
    if isinstance(method, DelayedFourier):
        ends = range(method.delay, series.size, method.delay)
        parts = np.split(series, list(ends))
        kinds = [method.block if part.size == method.delay else method.rest for part in parts]
        pairs = [(kind, part) for kind, part in zip(kinds, parts, strict=True) if kind is not None]
        return sum(expected_error(kind, part) * part.size for kind, part in pairs) / series.size
    kept = basis(series.size)[: method.numbers]
    dropped = float(np.mean((series - kept.T @ kept @ series) ** 2))
    return dropped + method.numbers * method.variance / series.size


def exact_leakage(noise: DiscreteLaplace, steps: int) -> float:
    table = [int(weight) for weight in noise.weights]
    ratios = [Fraction(a, b) for a, b in itertools.pairwise(table)]
    ratios.append(Fraction(table[-1] * 2**62, table[0] * noise.repeat))
    return steps * math.log(max(ratios))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 31, 60])
def test_the_transform_is_that_of_the_waves_and_keeps_the_norm(length: int) -> None:
    values = np.random.default_rng(length).normal(size=length)
    waves = basis(length)
    assert waves @ waves.T == pytest.approx(np.eye(length), abs=1e-12)
    assert orthonormal(values) == pytest.approx(waves @ values, abs=1e-12)
    assert series_of(orthonormal(values)) == pytest.approx(values, abs=1e-12)
    assert np.sum(orthonormal(values) ** 2) == pytest.approx(np.sum(values**2))  # Parseval


@pytest.mark.parametrize(
    ("length", "kept", "numbers"), [(7, 1, 1), (7, 2, 3), (7, 4, 7), (8, 5, 8)]
)
def test_a_complex_coefficient_is_two_numbers(length: int, kept: int, numbers: int) -> None:
    assert Fourier.at(1.0, 1.0, length, kept).numbers == numbers


@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(st.floats(-1, 1), min_size=2, max_size=24),
    kept=st.integers(1, 13),
    offset=st.floats(-1e4, 1e4),
    seed=st.integers(0, 100),
)
def test_neighbours_are_never_further_apart_than_paid_for(
    changes: list[float], kept: int, offset: float, seed: int
) -> None:
    size = len(changes)
    method = Fourier.at(1.0, 2.0, size, min(kept, size // 2 + 1))
    one = offset + np.random.default_rng(seed).normal(size=size)
    other = one + np.array(changes)
    # The same coins: what differs is the lattice point alone.
    released = [method.release(series, seeded(1), SIMULATION) for series in (one, other)]
    apart = (orthonormal(released[0]) - orthonormal(released[1])) / method.spacing
    assert apart == pytest.approx(np.rint(apart), abs=1e-3)
    assert np.abs(np.rint(apart)).sum() <= method.steps


@pytest.mark.parametrize("signs", ["all", "wave"])
def test_the_sensitivity_is_reached_by_one_number_and_nearly_by_many(signs: str) -> None:
    length = 64
    method = Fourier.at(1.0, 1.0, length, 1 if signs == "all" else 2)
    change = np.ones(length) if signs == "all" else np.sign(basis(length)[:3].sum(axis=0))
    apart = np.abs(orthonormal(change)[: method.numbers]).sum() / method.spacing
    assert (0.97 if signs == "all" else 0.75) * method.steps < apart <= method.steps


@pytest.mark.parametrize(("epsilon", "kept"), [(0.5, 1), (2.0, 4), (10.0, 26)])
def test_the_guarantee_is_that_of_the_integers(epsilon: float, kept: int) -> None:
    method = Fourier.at(3.0, epsilon, 51, kept)
    exact = exact_leakage(method.noise, method.steps)
    assert exact <= method.guarantee.epsilon <= epsilon
    assert method.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)


def test_noise_within_any_budget_is_found() -> None:
    for epsilon in np.geomspace(0.01, 40.0, 300):
        method = Fourier.at(1.0, float(epsilon), 20, 3)
        assert epsilon * (1 - 1e-4) < method.guarantee.epsilon < epsilon


@pytest.mark.parametrize(("epsilon", "kept"), [(0.5, 1), (2.0, 4), (10.0, 26)])
def test_the_noise_is_the_papers_but_for_a_hundredth(epsilon: float, kept: int) -> None:
    method = Fourier.at(3.0, epsilon, 51, kept)
    scale = math.sqrt((2 * kept - 1) * 51) * 3.0 / epsilon
    assert 1 <= method.variance / (2 * scale**2) < 1.025


@cache
def constant_runs(kept: int) -> tuple[Fourier, NDArray[np.float64]]:
    """A method, and errors of releases of a series that does not move."""
    method, series = Fourier.at(1.0, 4.0, 16, kept), np.full(16, 40.0)
    return method, simulations(method, series, 2500) - series


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.7, False), (1.3, False)])
@pytest.mark.parametrize("kept", [1, 3, 9])
def test_the_error_of_a_constant_series_is_the_stated_one(
    kept: int, factor: float, passes: bool
) -> None:
    method, runs = constant_runs(kept)
    numbers = np.array([orthonormal(run)[: method.numbers] for run in runs]) ** 2
    variance = factor * method.variance
    deviation = variance * math.sqrt(5 / numbers.size)
    assert (abs(float(numbers.mean()) - variance) < 4 * deviation) == passes
    # By Parseval, this is the mean squared error as well.
    seen = float(np.mean(np.square(runs)))
    assert seen == pytest.approx(numbers.mean() * method.numbers / 16, rel=1e-6)


def test_all_coefficients_are_noise_on_all_and_nothing_dropped() -> None:
    series = np.random.default_rng(0).normal(size=20) * 100
    method = Fourier.at(1.0, 2.0, 20, 11)
    assert method.numbers == 20
    assert expected_error(method, series) == pytest.approx(method.variance)


def test_one_coefficient_of_a_constant_series_is_a_noisy_mean() -> None:
    method = Fourier.at(1.0, 2.0, 25, 1)
    released = method.release([8.0] * 25, seeded(1), SIMULATION)
    assert released == pytest.approx(np.full(25, released.mean()))
    assert expected_error(method, np.full(25, 8.0)) == pytest.approx(method.variance / 25)
    assert method.variance / 25 == pytest.approx(2 / 2.0**2, rel=0.025)  # as one count


@pytest.mark.statistical
def test_the_error_is_what_is_dropped_plus_what_is_added() -> None:
    series = 60 * np.sin(np.arange(30)) + np.arange(30.0)
    method = Fourier.at(1.0, 20.0, 30, 4)
    added, expected = 7 * method.variance / 30, expected_error(method, series)
    runs = simulations(method, series, 1000) - series
    squares = np.mean(np.square(runs), axis=1)
    assert abs(squares.mean() - expected) < 4 * squares.std() / math.sqrt(1000)
    assert 4 * squares.std() / math.sqrt(1000) < 0.3 * added


def test_dropped_frequencies_are_nowhere_in_the_release() -> None:
    series = np.random.default_rng(1).normal(size=40) * 1e3
    method = Fourier.at(1.0, 5.0, 40, 6)
    released = method.release(series, seeded(0), SIMULATION)
    assert np.abs(orthonormal(released)[method.numbers :]).max() < 1e-9


@pytest.mark.parametrize("length", [64, 97, 360, 1009])
def test_the_floats_of_the_transform_are_far_within_their_bound(length: int) -> None:
    values = np.random.default_rng(length).normal(size=length) * 1e6
    found = orthonormal(values)
    checked = [0, 1, 2, length // 2, length - 1]
    with mpmath.workdps(40):
        for place in checked:
            j = (place + 1) // 2
            last = length % 2 == 0 and place == length - 1
            wave = mpmath.sin if place and place % 2 == 0 else mpmath.cos
            norm = mpmath.sqrt(mpmath.mpf(1 if place == 0 or last else 2) / length)
            terms = [
                mpmath.mpf(float(v)) * wave(2 * mpmath.pi * j * t / length)
                for t, v in enumerate(values)
            ]
            sign = -1 if wave is mpmath.sin else 1
            error = abs(mpmath.mpf(float(found[place])) - sign * norm * mpmath.fsum(terms))
            assert error < 0.05 * transform_error(length) * np.linalg.norm(values)


def test_the_best_number_of_coefficients_is_found_by_trying_all() -> None:
    series = 80 * np.sin(np.arange(48) * 2 * np.pi / 12) + 5 * np.cos(np.arange(48))
    for epsilon in (1.0, 10.0, 40.0):
        errors = [
            expected_error(Fourier.at(1.0, epsilon, 48, kept), series) for kept in range(1, 26)
        ]
        assert best_coefficients(series, 1.0, epsilon) == int(np.argmin(errors)) + 1


def test_the_best_number_with_a_delay_is_found_by_trying_all() -> None:
    series = 80 * np.sin(np.arange(50) * 2 * np.pi / 12)
    errors = [
        expected_error(DelayedFourier.at(1.0, 40.0, 50, 12, kept), series) for kept in range(1, 8)
    ]
    assert best_coefficients(series, 1.0, 40.0, delay=12) == int(np.argmin(errors)) + 1


def test_blocks_share_the_budget() -> None:
    method = DelayedFourier.at(2.0, 3.0, 50, 12, 5)
    assert method.blocks == 5 and method.rest is not None
    assert method.rest.length == 2 and method.rest.coefficients == 2
    exact = 4 * exact_leakage(method.block.noise, method.block.steps)
    exact += exact_leakage(method.rest.noise, method.rest.steps)
    assert exact <= method.guarantee.epsilon <= 3.0
    assert method.guarantee.epsilon == pytest.approx(3.0, rel=1e-6)


def test_one_block_is_the_whole_series() -> None:
    series = np.arange(20.0)
    whole = Fourier.at(1.0, 2.0, 20, 3).release(series, seeded(1), SIMULATION)
    delayed = DelayedFourier.at(1.0, 2.0, 20, 20, 3)
    assert delayed.delay == 20 and delayed.rest is None
    coins = Fourier.at(1.0, 2.0, 20, 3).own_coins(seeded(1), None, SIMULATION)
    assert [
        e.released for e in delayed.answers(Nothing(), 0, series.tolist(), coins)
    ] == whole.tolist()


def test_without_delay_it_is_laplace_noise_on_every_value() -> None:
    method = DelayedFourier.at(1.0, 8.0, 40, 1, 1)
    laplace = 2 * (40 / 8.0) ** 2
    assert expected_error(method, np.arange(40.0)) == pytest.approx(laplace, rel=0.025)


def test_a_block_does_not_depend_on_later_ones() -> None:
    method = DelayedFourier.at(1.0, 8.0, 30, 10, 3)
    one, other = np.arange(30.0), np.concatenate([np.arange(20.0), np.full(10, 500.0)])
    first, second = (method.release(s, seeded(1), SIMULATION) for s in (one, other))
    assert first[:20].tolist() == second[:20].tolist()
    assert (first[20:] != second[20:]).all()


def test_a_delay_helps_a_smooth_series() -> None:
    series = 1000 + 50 * np.sin(np.arange(240) * 2 * np.pi / 48)
    errors = []
    for delay in (1, 4, 48, 240):
        kept = best_coefficients(series, 1.0, 10.0, delay)
        errors.append(expected_error(DelayedFourier.at(1.0, 10.0, 240, delay, kept), series))
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.1 * errors[0]


METHODS = [Fourier.at(1.0, 2.0, 12, 3), DelayedFourier.at(1.0, 2.0, 12, 5, 2)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 11, 13])
def test_another_length_is_refused(method: Fourier | DelayedFourier, size: int) -> None:
    with pytest.raises(InvalidParameter, match=r"exactly 12|blocks of 5|at most 12"):
        method.release([1.0] * size, secure())


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((0.0, 1.0, 10, 2), "sensitivity"),
        ((1.0, 0.0, 10, 2), "epsilon"),
        ((1.0, 1.0, 0, 1), "length"),
        ((1.0, 1.0, 10, 0), "coefficients"),
        ((1.0, 1.0, 10, 7), "coefficients must be at most half the length, plus 1: 6; got 7"),
        ((1.0, 1e-3, 1000, 500), "epsilon must be larger for 999 numbers"),
    ],
)
def test_bad_parameters_are_named(arguments: tuple[float, float, int, int], named: str) -> None:
    with pytest.raises(InvalidParameter, match=named):
        Fourier.at(*arguments)


def test_a_delay_longer_than_the_series_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="delay must be at most the length, 10; got 11"):
        DelayedFourier.at(1.0, 1.0, 10, 11, 1)
    with pytest.raises(InvalidParameter, match="epsilon must be larger for a series"):
        best_coefficients(np.arange(5.0), 1.0, 1e-6)


def test_long_series_with_small_budgets_work() -> None:
    method = Fourier.at(1.0, 0.1, 8760, 200)
    assert method.guarantee <= PureDP(0.1)
    scale = math.sqrt(399 * 8760) / 0.1
    assert method.variance == pytest.approx(2 * scale**2, rel=0.15)
