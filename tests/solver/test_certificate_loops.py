"""The compiled certificates against the plain ones and against rational numbers."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.channel import Channel
from sfumato.core.information_leakage import information_leakage
from sfumato.core.local_leakage import local_leakage
from sfumato.solver.certificate_loops import leakages, rounded, undusted
from tests.oracles.exact_leakage import (
    exact_information_leakage,
    exact_local_leakage,
    within,
    within_locally,
)
from tests.strategies import Floats, beliefs, channels_and_beliefs, positive_matrices

WHOLE = 2**62


@given(channels_and_beliefs())
def test_leakages_are_those_of_the_plain_formulas(pair: tuple[Channel, Floats]) -> None:
    channel, belief = pair
    under_belief, model_free = leakages(channel.weights, belief)
    assert under_belief == pytest.approx(information_leakage(channel, belief).epsilon, abs=1e-14)
    assert model_free == pytest.approx(local_leakage(channel).epsilon, abs=1e-14)


@given(channels_and_beliefs())
def test_leakages_are_never_under_the_exact_ones(pair: tuple[Channel, Floats]) -> None:
    channel, belief = pair
    under_belief, model_free = leakages(channel.weights, belief)
    assert exact_information_leakage(channel.weights, belief.tolist()) <= under_belief
    assert exact_local_leakage(channel.weights) <= model_free


def test_a_constant_leaks_nothing_and_a_silent_output_everything() -> None:
    half, belief = WHOLE // 2, np.array([0.5, 0.5])
    assert leakages(np.array([[half, half], [half, half]]), belief) == (0.0, 0.0)
    assert leakages(np.array([[WHOLE, 0], [half, half]]), belief) == (math.inf, math.inf)


@given(positive_matrices(), st.floats(1e-6, 30.0), st.floats(1e-6, 60.0), st.data())
def test_rounded_weights_keep_both_budgets(
    rows: Floats, epsilon: float, ldp: float, data: st.DataObject
) -> None:
    belief = data.draw(beliefs(len(rows)))
    good, weights, kept, under_belief, model_free = rounded(rows.copy(), belief, epsilon, ldp)
    assert good
    assert weights.shape[1] == len(kept)
    assert (weights.sum(axis=1) == WHOLE).all()
    assert weights.min() >= 0
    assert weights.any(axis=0).all()
    assert under_belief <= epsilon
    assert model_free <= ldp
    assert within(weights, belief.tolist(), epsilon)
    assert within_locally(weights, ldp)


def test_dust_joins_its_cheapest_stand_in() -> None:
    rows = np.array([[0.5, 1e-12, 0.5 - 1e-12], [0.25, 2e-12, 0.75 - 2e-12]])
    loss = np.array([[3.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
    merged, kept = undusted(rows, np.array([0.5, 0.5]), loss)
    assert kept.tolist() == [0, 2]
    assert merged[:, 1] == pytest.approx(rows[:, 1] + rows[:, 2], abs=1e-15)
    assert merged.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
