import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.solver.certify import certified
from tests.oracles.exact_leakage import within, within_locally
from tests.strategies import Floats, beliefs, epsilons, positive_matrices, stochastic_matrices

wide_epsilons = st.one_of(epsilons, st.sampled_from([1e-6, 1e-3, 20.0]))


@st.composite
def rough_channels(draw: st.DrawFn) -> tuple[Floats, Floats]:
    """Any rows, with zeros, or the identity; and a belief about their input."""
    belief = draw(beliefs())
    identity = st.just(np.eye(belief.size))
    return draw(st.one_of(stochastic_matrices(rows=belief.size), identity)), belief


@given(rough_channels(), wide_epsilons)
def test_never_exceeds_the_budget_whatever_is_given(
    pair: tuple[Floats, Floats], epsilon: float
) -> None:
    rows, belief = pair
    channel = certified(rows, belief, epsilon)
    assert within(channel.weights, belief.tolist(), epsilon)


@given(rough_channels(), wide_epsilons, st.floats(0.1, 3.0))
def test_never_exceeds_the_cap_either(
    pair: tuple[Floats, Floats], epsilon: float, share: float
) -> None:
    rows, belief = pair
    cap = min(share * epsilon, 40.0)
    channel = certified(rows, belief, epsilon, ldp=cap)
    assert within(channel.weights, belief.tolist(), epsilon)
    assert within_locally(channel.weights, cap)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 4.0, 20.0])
@pytest.mark.parametrize("rare", [1e-12, 1e-9, 1e-3, 0.25])
def test_makes_the_identity_keep_its_budget(rare: float, epsilon: float) -> None:
    belief = np.array([rare, 0.5, 0.5 - rare])
    assert within(certified(np.eye(3), belief, epsilon).weights, belief.tolist(), epsilon)


@pytest.mark.parametrize("share", [1e-15, 1e-16, 1e-17, 3e-18, 4e-19, 1e-25])
@pytest.mark.parametrize("ldp", [None, 0.3, 0.01])
def test_an_output_of_a_few_units_of_weight_keeps_both_budgets(
    share: float, ldp: float | None
) -> None:
    """Rounding such an output to whole units moves its ratios by far more than a float does."""
    belief = np.array([0.2, 0.3, 0.5])
    rows = [[part * share, 1 - part * share] for part in (1, 2, 3)]
    channel = certified(rows, belief, 0.5, ldp=ldp)
    assert within(channel.weights, belief.tolist(), 0.5)
    assert ldp is None or within_locally(channel.weights, ldp)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.5, 4.0, 20.0])
def test_spends_the_budget_that_it_has(epsilon: float) -> None:
    belief = np.array([0.01, 0.5, 0.49])
    channel = certified(np.eye(3), belief, epsilon)
    assert not within(channel.weights, belief.tolist(), 0.999 * epsilon)


@given(positive_matrices(), st.data())
def test_hardly_moves_what_is_within_the_budget(rows: Floats, data: st.DataObject) -> None:
    masses = data.draw(st.lists(st.floats(0.1, 1.0), min_size=len(rows), max_size=len(rows)))
    belief = np.array(masses) / sum(masses)
    ratios = rows / (belief @ rows)
    epsilon = float(np.abs(np.log(ratios)).max()) + 1e-3
    channel = certified(rows, belief, min(epsilon, 40.0))
    assert channel.probabilities == pytest.approx(rows, abs=1e-14)


@given(positive_matrices(), st.data())
def test_moves_no_further_than_the_budget_asks(rows: Floats, data: st.DataObject) -> None:
    masses = data.draw(st.lists(st.floats(0.1, 1.0), min_size=len(rows), max_size=len(rows)))
    belief = np.array(masses) / sum(masses)
    ratios = rows / (belief @ rows)
    most, least = float(ratios.max()), float(ratios.min())
    k = math.exp(data.draw(st.floats(0.05, 5.0)))
    weight = max((most - k) / (most - 1), (1 / k - least) / (1 - least)) if most > 1 + 1e-9 else 0.0
    expected = 1 + (1 - max(0.0, weight)) * (ratios - 1)
    channel = certified(rows, belief, math.log(k))
    assert channel.ratios(belief) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_releases_the_symbols_that_it_is_told() -> None:
    channel = certified(np.eye(2), [0.5, 0.5], 1.0, outputs=[3, 1])
    assert channel.outputs.tolist() == [3, 1]
    assert channel.weights[0, 0] > channel.weights[1, 0]


@pytest.mark.parametrize(
    ("rows", "belief", "epsilon", "rule"),
    [
        ([[0.5, 0.6], [0.5, 0.5]], [0.5, 0.5], 1.0, "probabilities row 0 must sum to 1"),
        ([[1.5, -0.5], [0.5, 0.5]], [0.5, 0.5], 1.0, "have no negative or NaN entry"),
        (np.eye(2), [0.5, 0.6], 1.0, "belief must sum to 1"),
        (np.eye(2), [1.0, 0.0], 1.0, r"belief\[1\] must be at least"),
        (np.eye(2), [0.5, 0.5], 0.0, "epsilon must be finite and greater than 0"),
        (np.eye(2), [0.5, 0.5], math.nan, "epsilon must be finite and greater than 0"),
        (np.eye(2), [0.5, 0.5], 41.0, "epsilon must be at most 40"),
    ],
)
def test_refuses_what_is_no_channel_no_belief_or_no_budget(
    rows: Floats, belief: list[float], epsilon: float, rule: str
) -> None:
    with pytest.raises(InvalidParameter, match=rule):
        certified(rows, belief, epsilon)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.nan, math.inf])
def test_refuses_a_cap_that_is_no_guarantee(cap: float) -> None:
    with pytest.raises(InvalidParameter, match="ldp must be finite and greater than 0"):
        certified(np.eye(2), [0.5, 0.5], 1.0, ldp=cap)
