import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sfumato.core.errors import InvalidParameter
from sfumato.solver.inverse import least_leakage
from tests.oracles.exact_leakage import within
from tests.oracles.textbook_lp import textbook_optimum
from tests.strategies import Floats, balanced_beliefs, losses


@st.composite
def requests(draw: st.DrawFn) -> tuple[Floats, Floats, float]:
    """A bound on the loss between hiding everything and hiding next to nothing."""
    size = draw(st.integers(2, 4))
    belief, loss = draw(balanced_beliefs(size)), draw(losses(size))
    hidden = float((belief @ loss).min())
    open_ = textbook_optimum(belief, loss, 6.0)
    assume(hidden - open_ > 0.05 * loss.max())
    return belief, loss, open_ + draw(st.floats(0.05, 0.95)) * (hidden - open_)


@given(requests())
@settings(max_examples=15)
def test_keeps_the_bound_and_less_leakage_would_not(
    request: tuple[Floats, Floats, float],
) -> None:
    belief, loss, bound = request
    design = least_leakage(belief, loss, bound)
    assert design.cost <= bound
    assert within(design.channel.weights, belief.tolist(), design.sip.epsilon)
    assert textbook_optimum(belief, loss, 0.999 * design.sip.epsilon) > bound
    assert textbook_optimum(belief, loss, 1.001 * design.sip.epsilon) <= bound


@given(requests())
@settings(max_examples=5)
def test_a_looser_bound_never_leaks_more(request: tuple[Floats, Floats, float]) -> None:
    belief, loss, bound = request
    tight, loose = least_leakage(belief, loss, bound), least_leakage(belief, loss, 1.05 * bound)
    assert loose.sip.epsilon <= tight.sip.epsilon + 1e-9


@given(balanced_beliefs(4), losses(4), st.floats(0.0, 1.0))
def test_a_bound_that_a_constant_keeps_costs_no_privacy(
    belief: Floats, loss: Floats, spare: float
) -> None:
    design = least_leakage(belief, loss, float((belief @ loss).min()) * (1 + 1e-12) + spare)
    assert design.channel.is_constant
    assert design.sip.epsilon == 0.0
    assert design.ldp.epsilon == 0.0


def test_a_fair_coin_needs_what_the_formula_says() -> None:
    for flip in (0.4, 0.25, 0.1):
        design = least_leakage([0.5, 0.5], 1 - np.eye(2), flip)
        # The likelihood ratios of a symmetric flip are 2(1-f) and 2f.
        assert design.sip.epsilon == pytest.approx(-math.log(2 * flip), abs=1e-8)


@pytest.mark.parametrize(
    ("loss", "bound"),
    [([[0.0, 1.0], [1.0, 0.0]], 0.0), ([[1.0, 2.0], [2.0, 1.0]], 0.999)],
    ids=["no error at all", "less than the truth costs"],
)
def test_refuses_a_loss_that_cannot_be_reached(loss: list[list[float]], bound: float) -> None:
    with pytest.raises(InvalidParameter, match="max_loss must be at least"):
        least_leakage([0.5, 0.5], loss, bound)
