import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from sfumato.column.number_error import TrueNumbers
from sfumato.core.channel import Channel
from sfumato.models.mixture import GaussianMixture
from sfumato.noise.lattice import Lattice


def noisy(size: int, seed: int) -> Channel:
    rng = np.random.default_rng(seed)
    return Channel.from_probabilities(rng.dirichlet(np.ones(size), size))


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-50, 150, allow_nan=False), min_size=1, max_size=30),
    st.integers(2, 12),
    st.integers(0, 5),
)
def test_the_error_is_the_mean_over_values_and_outputs(
    values: list[float], count: int, seed: int
) -> None:
    lattice, channel = Lattice(0.0, 100.0, count), noisy(count, seed)
    points = lattice.points
    total = 0.0
    for value in values:
        place = int(np.searchsorted(0.5 * (points[1:] + points[:-1]), value, side="right"))
        total += float(channel.probabilities[place] @ np.abs(value - points[channel.outputs]))
    found = TrueNumbers.of_values(lattice, values)
    assert found.error(channel) == pytest.approx(total / len(values), abs=1e-9)
    silent = min(float(np.mean(np.abs(np.array(values) - told))) for told in values)
    assert found.silence == pytest.approx(silent, abs=1e-9)


def test_weights_count_like_repeated_values() -> None:
    lattice, channel = Lattice(0.0, 10.0, 6), noisy(6, 1)
    heavy = TrueNumbers.of_values(lattice, [1.0, 7.5], [0.75, 0.25])
    plain = TrueNumbers.of_values(lattice, [1.0, 1.0, 1.0, 7.5])
    assert heavy.error(channel) == pytest.approx(plain.error(channel))
    assert heavy.silence == pytest.approx(plain.silence)


@pytest.mark.parametrize("count", [2, 9])
def test_the_error_of_a_mixture_is_its_integral(count: int) -> None:
    mixture = GaussianMixture([0.3, 0.7], [2.0, 7.0], [1.0, 2.5])
    lattice, channel = Lattice(0.0, 9.0, count), noisy(count, 3)
    points, cuts = lattice.points, lattice.cuts

    def density(x: float) -> float:  # written out: a call of scipy's costs a hundred times more
        narrow, wide = math.exp(-0.5 * (x - 2) ** 2), math.exp(-0.5 * ((x - 7) / 2.5) ** 2)
        return (0.3 * narrow + 0.7 / 2.5 * wide) / math.sqrt(2 * math.pi)

    total = 0.0
    for place in range(count):
        row = channel.probabilities[place]
        low, high = max(cuts[place], -30.0), min(cuts[place + 1], 40.0)
        total += integrate.quad(
            lambda x, row=row: density(x) * float(row @ np.abs(x - points[channel.outputs])),
            low,
            high,
            points=[points[place]],
            limit=200,
        )[0]
    found = TrueNumbers.of_mixture(lattice, mixture)
    assert found.error(channel) == pytest.approx(total, abs=1e-6)
    tries = [
        integrate.quad(lambda x, c=c: density(x) * abs(x - c), -30, 40, points=[c], limit=200)[0]
        for c in np.linspace(5, 7, 21)
    ]
    assert found.silence == pytest.approx(min(tries), abs=1e-3)
    assert found.silence <= min(tries) + 1e-9
