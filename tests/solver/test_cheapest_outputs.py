"""Any number of outputs, costs of either sign: the same optimum, certificates and bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import InvalidParameter
from sfumato.solver.linear_programs import solve_capped, solve_transport
from sfumato.solver.optimal_channel import cheapest_outputs, optimal
from tests.oracles.exact_leakage import within
from tests.oracles.textbook_lp import textbook_optimum


@pytest.mark.parametrize("size", [2, 3, 6, 12, 20, 30])
@pytest.mark.parametrize("outputs", [1, 2, 5, 90])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_reaches_the_optimum_of_highs(size: int, outputs: int, epsilon: float) -> None:
    rng = np.random.default_rng([size, outputs])
    belief, costs = rng.dirichlet(np.ones(size)), rng.normal(size=(size, outputs)) + 5.0
    found = cheapest_outputs(belief, costs, epsilon)
    best = float((belief[:, None] * solve_transport(belief, costs, epsilon).rows * costs).sum())
    assert found.cost == pytest.approx(best, abs=1e-6)
    assert found.lower_bound is not None
    assert found.cost - 1e-6 <= found.lower_bound <= found.cost
    assert within(found.channel.weights, belief.tolist(), epsilon)
    assert found.channel.outputs.max() < outputs


@given(
    size=st.integers(2, 4),
    outputs=st.integers(1, 7),
    epsilon=st.floats(0.05, 3.0),
    cap=st.none() | st.floats(0.1, 3.0),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=40, deadline=None)
def test_the_cost_lies_between_bound_and_programme(
    size: int, outputs: int, epsilon: float, cap: float | None, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    belief = rng.dirichlet(np.ones(size)) * 0.97 + 0.03 / size
    costs = rng.normal(size=(size, outputs))
    found = cheapest_outputs(belief, costs, epsilon, ldp=cap)
    best = textbook_optimum(belief, costs, epsilon, cap)
    assert found.lower_bound is not None
    assert found.lower_bound <= best + 1e-9
    assert found.cost == pytest.approx(best, abs=1e-6)
    assert found.sip.epsilon <= epsilon
    assert cap is None or found.ldp.epsilon <= cap
    assert within(found.channel.weights, belief.tolist(), epsilon)


def test_symbols_as_outputs_are_the_old_programme() -> None:
    belief = np.array([0.5, 0.3, 0.2])
    loss = sf.loss.absolute(sf.Alphabet.of_size(3)).matrix
    old, new = optimal(belief, loss, 0.7), cheapest_outputs(belief, loss, 0.7)
    assert (old.channel.weights == new.channel.weights).all()
    assert new.cost == pytest.approx(old.cost, abs=1e-12)


def test_what_every_output_costs_decides_nothing() -> None:
    rng = np.random.default_rng(3)
    belief, costs = rng.dirichlet(np.ones(4)), rng.random((4, 9))
    dear = costs + 1e6 * np.arange(4)[:, None]
    plain, shifted = (cheapest_outputs(belief, table, 0.8) for table in (costs, dear))
    assert (plain.channel.outputs == shifted.channel.outputs).all()
    assert np.allclose(plain.channel.probabilities, shifted.channel.probabilities, atol=1e-6)


def test_a_second_output_of_a_symbol_is_worth_something() -> None:
    """Equal symbols with other continuations: more outputs than symbols are used."""
    rng = np.random.default_rng(8)
    costs = rng.random((3, 40))
    used = cheapest_outputs([0.4, 0.35, 0.25], costs, 1.0).channel
    assert used.outputs.max() >= 3


def test_a_cap_is_kept_with_many_outputs() -> None:
    rng = np.random.default_rng(5)
    belief, costs = rng.dirichlet(np.ones(5)), rng.random((5, 12))
    found = cheapest_outputs(belief, costs, 1.0, ldp=0.4)
    best = float((belief[:, None] * solve_capped(belief, costs, 1.0, 0.4).rows * costs).sum())
    assert found.ldp.epsilon <= 0.4
    assert found.cost == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(
    "costs", [[[0.0, 1.0]], np.zeros((2, 0)), [0.0, 1.0], [[0.0], [math.inf]], [[0.0], [math.nan]]]
)
def test_other_tables_are_refused(costs: list[list[float]]) -> None:
    with pytest.raises(InvalidParameter, match="costs"):
        cheapest_outputs([0.5, 0.5], costs, 1.0)
