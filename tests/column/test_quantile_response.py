import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.column.number_mechanisms import guessed, optimal_number
from sfumato.column.quantile_response import _quantile_cells, _response, quantile_response
from sfumato.column.scaled_noise import least_noise
from sfumato.noise.lattice import Lattice, Noise
from tests.oracles.exact_leakage import exact_information_leakage
from tests.strategies import Floats


def distances(lattice: Lattice) -> Floats:
    return np.asarray(np.abs(lattice.points[:, None] - lattice.points))


@st.composite
def priors(draw: st.DrawFn, most: int) -> Floats:
    """Of points from 0 to 1, some of them rare."""
    rng = np.random.default_rng(draw(st.integers(0, 1_000)))
    masses = rng.dirichlet(np.full(draw(st.integers(2, most)), 0.5)) + 1e-9
    return np.asarray(masses / masses.sum())


@settings(max_examples=16, deadline=None)
@given(priors(15), st.floats(0.01, 40.0))
def test_it_leaks_what_it_says_and_no_more_than_allowed(prior: Floats, epsilon: float) -> None:
    lattice = Lattice(0.0, 1.0, prior.size)
    found = quantile_response(lattice, prior, epsilon)
    leakage = float(exact_information_leakage(found.channel.weights, prior.tolist()))
    assert leakage <= found.lip.epsilon + 1e-12 <= epsilon + 2e-12
    # Never worse than saying nothing: one cell is among what is tried.
    assert found.cost <= float((prior @ distances(lattice)).min()) + 1e-12


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
def test_it_is_a_far_better_rival_than_noise_and_loses_to_the_optimum(epsilon: float) -> None:
    lattice = Lattice(-12.0, 12.0, 49)
    bell = np.exp(-0.5 * (lattice.points / 4) ** 2)
    prior = bell / bell.sum()
    fair = quantile_response(lattice, prior, epsilon).cost
    noise = guessed(least_noise(Noise.LAPLACE, lattice, prior, epsilon), prior).cost
    assert optimal_number(lattice, prior, epsilon).cost <= fair * 1.0001
    assert fair < noise


def test_two_halves_are_told_by_the_textbook_response() -> None:
    # Even prior, two cells: each is told with e^eps / 2 of its share at most.
    found = quantile_response(Lattice(0.0, 1.0, 2), [0.5, 0.5], math.log(1.5))
    assert found.channel.probabilities[0, 0] == pytest.approx(2 / 3, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(priors(12), st.floats(0.1, 8.0))
def test_no_number_of_cells_is_better_than_the_one_that_was_chosen(
    prior: Floats, epsilon: float
) -> None:
    lattice = Lattice(0.0, 1.0, prior.size)
    found = quantile_response(lattice, prior, epsilon).cost
    for cells in range(1, prior.size + 1):
        channel = _response(_quantile_cells(prior, cells), prior, epsilon)
        after = prior[:, None] * channel.probabilities
        assert found <= float((after.T @ distances(lattice)).min(axis=1).sum()) + 1e-7
