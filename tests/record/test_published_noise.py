"""Publishing: on the lattice exactly, near what was meant, and no bit tells the value."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import InvalidParameter
from sfumato.record.published_noise import (
    VECTOR_NOISES,
    lattice_steps,
    noise_of,
    published,
    published_box,
)
from tests.record.noises import coins

Floats = NDArray[np.float64]

SHAPES = list(VECTOR_NOISES)


@pytest.mark.parametrize("shape", SHAPES)
@given(
    value=st.floats(-1e6, 1e6),
    sigma=st.sampled_from([1e-3, 0.1, 1.0, 300.0]),
    accuracy=st.sampled_from([1e-2, 1.0, 1e3]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40)
def test_outputs_are_whole_steps_near_value_plus_noise(
    shape: str, value: float, sigma: float, accuracy: float, seed: int
) -> None:
    noise = noise_of(shape, [sigma, 2 * sigma])
    steps = lattice_steps(noise, accuracy)
    words = coins(noise, 1, seed)
    values = np.array([[value, -value / 3]])
    told, drawn = published(noise, values, steps, words), noise.draw(words)
    for axis in (0, 1):
        step = Fraction(float(steps[axis]))
        assert (Fraction(float(told[0, axis])) / step).denominator == 1
        meant = Fraction(float(values[0, axis])) + Fraction(float(drawn[0, axis]))
        assert abs(Fraction(float(told[0, axis])) - meant) <= step


@pytest.mark.parametrize("shape", SHAPES)
def test_values_of_one_place_are_published_alike(shape: str) -> None:
    """Only the nearest multiple of a step counts: whatever lies under it cannot be seen."""
    noise = noise_of(shape, 1.0, 2)
    steps = lattice_steps(noise, 1.0)
    words = coins(noise, 200)
    base = np.tile([170.0, 65.5], (200, 1))
    nudged = base + 0.49 * steps
    assert np.array_equal(
        published(noise, base, steps, words), published(noise, nudged, steps, words)
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_another_value_only_moves_the_outputs(shape: str) -> None:
    noise = noise_of(shape, 1.0, 2)
    steps = lattice_steps(noise, 1.0)
    words = coins(noise, 500)
    one = published(noise, np.tile([0.1, 1e5], (500, 1)), steps, words)
    two = published(noise, np.tile([-77.7, 1 / 3], (500, 1)), steps, words)
    apart = (one - two) / steps
    assert np.array_equal(apart, np.tile(apart[0], (500, 1)))
    assert np.array_equal(apart, np.rint(apart))


def test_bare_addition_would_be_caught() -> None:
    noise = noise_of("laplace", 1.0, 2)
    steps = lattice_steps(noise, 1.0)
    naive = np.array([[0.1, 1 / 3]]) + noise.draw(coins(noise, 1))
    assert any(
        (Fraction(float(naive[0, axis])) / Fraction(float(steps[axis]))).denominator != 1
        for axis in (0, 1)
    )


@pytest.mark.parametrize("sigma", [1e-6, 0.3, 1.0, 1e6])
@pytest.mark.parametrize("accuracy", [1e-7, 0.5, 1e5])
def test_steps_are_powers_of_two_fine_against_noise_and_accuracy(
    sigma: float, accuracy: float
) -> None:
    steps = lattice_steps(noise_of("ball", [sigma, 3 * sigma]), accuracy)
    for step, scale in zip(steps, (sigma, 3 * sigma), strict=True):
        assert math.frexp(step)[0] == 0.5
        assert step <= min(scale, accuracy) * 2.0**-20
        assert step > min(scale, accuracy) * 2.0**-22


@pytest.mark.parametrize("shape", SHAPES)
@given(st.floats(0.01, 100), st.floats(0.01, 100), st.integers(1, 4))
@settings(max_examples=25)
def test_the_published_box_covers_the_lattice(
    shape: str, sigma: float, accuracy: float, dimension: int
) -> None:
    noise = noise_of(shape, sigma, dimension)
    steps = lattice_steps(noise, accuracy)
    told = published_box(noise, accuracy, steps)
    assert noise.largest_box(accuracy) <= told <= 1
    assert noise.largest_box(accuracy + steps) <= told
    assert told <= noise.largest_box(accuracy) * (1 + 1e-4) + 1e-11


@pytest.mark.statistical
def test_what_is_added_has_no_more_in_any_box_than_promised() -> None:
    noise = noise_of("ball", 1.0, 2)
    steps = lattice_steps(noise, 0.5)
    rows = 40_000
    added = published(noise, np.full((rows, 2), 12.3), steps, coins(noise, rows)) - 12.3
    promised = published_box(noise, 0.5, steps)
    share = float((np.abs(added) <= 0.5).all(axis=1).mean())
    error = 4.5 * math.sqrt(promised / rows)
    assert share < promised + error
    assert share > promised - error
    assert share < 1.3 * promised - error  # a box of 30 % more would be seen


def test_one_deviation_is_that_of_every_axis() -> None:
    for shape in SHAPES:
        assert noise_of(shape, 2.0, 3).fingerprint == noise_of(shape, [2.0] * 3).fingerprint
    assert noise_of("ball", 5.0, 2).largest_box(1.0) == pytest.approx(1 / (25 * math.pi))


@pytest.mark.parametrize("bad", ["disc", "", None, 3])
def test_unknown_shapes_are_refused_by_name(bad: Any) -> None:
    with pytest.raises(InvalidParameter) as refusal:
        noise_of(bad, 1.0, 2)
    assert refusal.value.name == "noise"


@pytest.mark.parametrize("dimension", [0, -1, 1.5, 17, 10**13])
def test_bad_dimensions_are_refused(dimension: Any) -> None:
    with pytest.raises(InvalidParameter):
        noise_of("ball", 1.0, dimension)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, "4711x", None, 4711e30])
@pytest.mark.parametrize("shape", SHAPES)
def test_values_that_cannot_be_published_are_refused_unquoted(shape: str, bad: Any) -> None:
    noise = noise_of(shape, 1.0, 2)
    with pytest.raises(InvalidParameter) as refusal:
        published(noise, [[4711.0, bad]], lattice_steps(noise, 1.0), coins(noise, 1))
    assert refusal.value.name == "values"
    assert "4711" not in str(refusal.value)
    assert "e+3" not in str(refusal.value)


@pytest.mark.parametrize("values", [[1.0, 2.0, 3.0], [[1.0], [2.0]], [[[1.0, 2.0]]]])
def test_values_of_another_shape_are_refused(values: Any) -> None:
    noise = noise_of("ball", 1.0, 2)
    with pytest.raises(InvalidParameter, match="values"):
        published(noise, values, lattice_steps(noise, 1.0), coins(noise, 1))


def test_no_column_is_dropped_for_want_of_a_step() -> None:
    noise = noise_of("ball", 1.0, 2)
    steps = lattice_steps(noise, 1.0)[:1]
    with pytest.raises(InvalidParameter, match="steps"):
        published(noise, [[1.0, 2.0]], steps, coins(noise, 1))


def test_words_of_another_shape_are_refused() -> None:
    noise = noise_of("ball", 1.0, 2)
    with pytest.raises(InvalidParameter):
        published(noise, [[1.0, 2.0]], lattice_steps(noise, 1.0), coins(noise, 1)[:, :3])


def test_the_same_words_publish_the_same() -> None:
    noise = noise_of("gaussian", 1.0, 2)
    steps, values = lattice_steps(noise, 1.0), [[1.0, 2.0]] * 9
    told = [published(noise, values, steps, coins(noise, 9, seed)) for seed in (1, 1, 2)]
    assert np.array_equal(told[0], told[1])
    assert not np.array_equal(told[0], told[2])
