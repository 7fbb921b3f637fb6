"""What every design refuses, whatever it designs: nothing that is no belief, no loss, no budget."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from sfumato.core.errors import InvalidParameter
from sfumato.solver.closed_form import (
    calibrated_randomized_response,
    paper_response,
    randomized_response,
)
from sfumato.solver.context_free_channel import context_free
from sfumato.solver.design_result import Design
from sfumato.solver.inverse import least_leakage
from tests.strategies import Floats

Rule = Callable[[Any, Any, float], Design]
WRONG = 1 - np.eye(2)

BUDGETED: list[Rule] = [
    randomized_response,
    calibrated_randomized_response,
    paper_response,
    context_free,
]
every_rule = pytest.mark.parametrize("rule", [*BUDGETED, least_leakage])


@pytest.mark.parametrize("rule", BUDGETED)
@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 41.0])
def test_a_budget_that_is_no_guarantee(rule: Rule, epsilon: float) -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be"):
        rule([0.5, 0.5], WRONG, epsilon)


@pytest.mark.parametrize("bound", [-1.0, math.nan, math.inf])
def test_a_bound_on_the_loss_that_is_none(bound: float) -> None:
    with pytest.raises(InvalidParameter, match="max_loss must be finite and at least 0"):
        least_leakage([0.5, 0.5], WRONG, bound)


@every_rule
@pytest.mark.parametrize(
    ("belief", "wording"),
    [
        ([0.5, 0.6], "belief must sum to 1"),
        ([1.0, 0.0], r"belief\[1\] must be at least"),
        ([1.5, -0.5], "belief must have no negative"),
        ([math.nan, 1.0], "belief must have no negative or NaN"),
    ],
)
def test_a_belief_that_is_none(rule: Rule, belief: list[float], wording: str) -> None:
    with pytest.raises(InvalidParameter, match=wording):
        rule(belief, WRONG, 0.1)


@every_rule
@pytest.mark.parametrize("entry", [-1.0, math.nan, math.inf])
def test_a_loss_that_is_none(rule: Rule, entry: float) -> None:
    with pytest.raises(InvalidParameter, match="loss must be finite and nowhere negative"):
        rule([0.5, 0.5], [[0.0, entry], [1.0, 0.0]], 0.1)


@every_rule
def test_a_loss_of_other_symbols(rule: Rule) -> None:
    other: Floats = 1 - np.eye(3)
    with pytest.raises(InvalidParameter, match="loss must be 2 by 2"):
        rule([0.5, 0.5], other, 0.1)
