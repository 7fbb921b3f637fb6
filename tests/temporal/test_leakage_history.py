"""The running history: what every release leaks so far, to the last bit."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.temporal.leakage_history import LeakageHistory
from sfumato.temporal.loss_function import LossFunction
from sfumato.temporal.over_time import temporal_leakage
from tests.oracles.temporal import ExactLoss, exact_leakage
from tests.temporal.test_temporal_account import (
    ABSORBING,
    APART,
    BACKWARD,
    EVEN,
    FORWARD,
    IDENTITY,
    PAIRS,
    Matrix,
    losses,
)

budgets = st.lists(
    st.one_of(st.just(0.0), st.floats(1e-9, 3.0), st.just(0.1)), min_size=1, max_size=30
)


@settings(max_examples=30)
@given(budgets, st.sampled_from(sorted(PAIRS)))
def test_the_history_is_the_leakage_of_the_sequence_to_the_last_bit(
    epsilons: list[float], name: str
) -> None:
    history = LeakageHistory(*losses(name))
    for count, epsilon in enumerate(epsilons, start=1):
        history.charge(epsilon)
        told, wanted = history.leakage(), temporal_leakage(epsilons[:count], *losses(name))
        assert len(history) == count
        assert history.latest == wanted.backward[-1]
        for part in ("epsilons", "backward", "forward", "total"):
            assert np.array_equal(getattr(told, part), getattr(wanted, part)), part


@settings(max_examples=20)
@given(budgets, st.sampled_from([(IDENTITY, IDENTITY), (APART, ABSORBING), (BACKWARD, IDENTITY)]))
def test_an_history_of_rows_that_share_nothing_is_that_of_fifty_digits_rounded_up(
    epsilons: list[float], chains: tuple[Matrix, Matrix]
) -> None:
    history = LeakageHistory(*map(LossFunction.of, chains))
    for epsilon in epsilons:
        history.charge(epsilon)
    told = history.leakage()
    exact = exact_leakage(epsilons, *map(ExactLoss, chains))
    for found, wanted in zip((told.backward, told.forward, told.total), exact, strict=True):
        for one, other in zip(found.tolist(), wanted, strict=True):
            assert other <= one <= other * (1 + 1e-12) + 1e-300


def test_thousands_of_releases_are_those_of_the_sequence() -> None:
    rng = np.random.default_rng(2)
    epsilons = rng.uniform(0.0, 0.3, 1500)
    history = LeakageHistory(*losses("Fig. 2"))
    for epsilon in epsilons.tolist():
        history.charge(epsilon)
    assert np.array_equal(
        history.leakage().total, temporal_leakage(epsilons, *losses("Fig. 2")).total
    )


@pytest.mark.parametrize("name", ["Fig. 8", "Fig. 2", "one way"])
def test_where_leakage_settles_a_release_changes_only_the_last_ones(name: str) -> None:
    history, most = LeakageHistory(*losses(name)), 0
    for place in range(2000):
        history.charge(0.05 if place % 3 else 0.15)
        most = max(most, history.revised)
    assert most < 200


def test_an_empty_history_has_told_nothing() -> None:
    history = LeakageHistory(*losses("Fig. 8"))
    assert (len(history), history.latest, history.revised) == (0, 0.0, 0)
    assert history.leakage().total.size == 0


@pytest.mark.parametrize("epsilon", [-0.1, math.nan])
def test_a_refused_charge_leaves_the_history_as_it_was(epsilon: float) -> None:
    history = LeakageHistory(*losses("Fig. 8"))
    history.charge(0.3)
    with pytest.raises(InvalidParameter):
        history.charge(epsilon)
    assert len(history) == 1
    assert history.leakage().total.tolist() == [0.3]


def test_what_was_told_does_not_change_when_more_is_charged() -> None:
    history = LeakageHistory(*losses("Fig. 8"))
    history.charge(0.3)
    before = history.leakage()
    history.charge(0.3)
    assert before.total.tolist() == [0.3]


@pytest.mark.parametrize("charges", [[1.0, math.inf], [math.inf, 1.0, 1.0]])
@pytest.mark.parametrize("matrix", [FORWARD, ABSORBING, IDENTITY, EVEN])
def test_a_release_without_protection_leaks_everything_and_nothing_fails(
    charges: list[float], matrix: Matrix
) -> None:
    history = LeakageHistory(LossFunction.of(matrix), LossFunction.of(matrix))
    for charge in charges:
        history.charge(charge)
    told = history.leakage()
    assert told.event.alpha == math.inf
    assert not np.any(np.isnan(told.total))
