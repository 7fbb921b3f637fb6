import math
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from sfumato import LDP, SIP, Horizon, Ledger, PerStep, Window
from sfumato.core.budgets import USELESS_BELOW, Allowance, Budget, as_budget
from sfumato.core.errors import InvalidParameter
from sfumato.core.ledger import Charge
from sfumato.stream import Geometric

totals = st.floats(0.01, 100.0)
uses = st.lists(st.one_of(st.just(1.0), st.just(0.0), st.floats(0.0, 1.0)), min_size=1, max_size=60)
"""Which part of its allowance each step uses: all, nothing, or something in between."""


def run(budget: Budget, parts: list[float]) -> list[Charge]:
    """Charge each step a part of what it may leak, until the budget is gone."""
    ledger, charges = Ledger(), []
    for part in parts:
        allowance = budget.allowance(ledger)
        if allowance.exhausted:
            event("exhausted")
            break
        cap = allowance.sip if allowance.ldp is None else min(allowance.sip, allowance.ldp)
        charge = Charge(part * cap, part * (cap if allowance.ldp is None else allowance.ldp))
        assert allowance.covers(charge.sip, charge.ldp)
        charges.append(charge)
        ledger = ledger.charged(charge, budget.memory)
        assert len(ledger.recent) <= budget.memory
    return charges


def exact(amounts: list[float]) -> Fraction:
    return sum((Fraction(amount) for amount in amounts), start=Fraction(0))


# Promises ----------------------------------------------------------------------------------------


@given(totals, uses)
def test_every_step_may_leak_the_same(amount: float, parts: list[float]) -> None:
    budget = PerStep(SIP(amount), LDP(2 * amount))
    assert len(run(budget, parts)) == len(parts)
    assert budget.allowance(Ledger(count=7, sip=1e9, ldp=1e9)) == Allowance(amount, 2 * amount)


@given(totals, st.integers(1, 50), uses)
def test_a_horizon_is_never_passed(total: float, steps: int, parts: list[float]) -> None:
    charges = run(Horizon(SIP(total), steps, LDP(1.5 * total)), parts)
    assert len(charges) <= steps
    assert exact([charge.sip for charge in charges]) <= Fraction(total)
    assert exact([charge.ldp for charge in charges]) <= Fraction(1.5 * total)


@given(totals, st.integers(1, 3), uses)
def test_no_window_is_ever_passed(total: float, width: int, parts: list[float]) -> None:
    charges = run(Window(SIP(total), width, LDP(1.5 * total)), parts)
    for start in range(len(charges)):
        part = charges[start : start + width]
        assert exact([charge.sip for charge in part]) <= Fraction(total)
        assert exact([charge.ldp for charge in part]) <= Fraction(1.5 * total)


@given(totals, st.floats(0.001, 0.999), uses)
def test_an_endless_stream_stays_within_its_total(
    total: float, ratio: float, parts: list[float]
) -> None:
    charges = run(Geometric(SIP(total), ratio, LDP(1.5 * total)), parts)
    assert exact([charge.sip for charge in charges]) <= Fraction(total)
    assert exact([charge.ldp for charge in charges]) <= Fraction(1.5 * total)


# Use ---------------------------------------------------------------------------------------------


@given(totals, st.integers(1, 50))
def test_a_horizon_used_fully_is_used_up_and_not_before(total: float, steps: int) -> None:
    charges = run(Horizon(SIP(total), steps), [1.0] * (steps + 3))
    assert len(charges) == steps
    assert sum(charge.sip for charge in charges) == pytest.approx(total, rel=1e-9)
    assert max(charge.sip for charge in charges) == pytest.approx(total / steps, rel=1e-9)


@given(totals, st.integers(1, 12))
def test_a_window_used_fully_gives_every_step_its_even_share(total: float, width: int) -> None:
    charges = run(Window(SIP(total), width), [1.0] * 40)
    assert len(charges) == 40
    for charge in charges:
        assert charge.sip == pytest.approx(total / width, rel=1e-9)


@given(totals, st.integers(2, 50), st.integers(1, 49))
def test_a_horizon_shares_what_silent_steps_left(total: float, steps: int, silent: int) -> None:
    budget = Horizon(SIP(total), steps)
    silent = min(silent, steps - 1)
    ledger = Ledger()
    for _ in range(silent):
        ledger = ledger.charged(Charge(0.0, 0.0), budget.memory)
    assert budget.allowance(ledger).sip == pytest.approx(total / (steps - silent), rel=1e-12)


def test_a_window_forgives_what_has_left_it() -> None:
    budget = Window(SIP(1.0), 3)
    ledger = Ledger()
    for charge in (1.0, 0.0):
        ledger = ledger.charged(Charge(charge, charge), budget.memory)
    assert budget.allowance(ledger).exhausted
    ledger = ledger.charged(Charge(0.0, 0.0), budget.memory)
    assert budget.allowance(ledger).sip > 1 / 3


def test_an_endless_stream_shrinks_by_its_ratio() -> None:
    charges = run(Geometric(SIP(1.0), 0.75), [1.0] * 10)
    for step, charge in enumerate(charges):
        assert charge.sip == pytest.approx(0.25 * 0.75**step, rel=1e-12)


def test_the_tighter_certificate_ends_the_stream() -> None:
    budget = Horizon(SIP(10.0), 10, LDP(1.0))
    spent = Ledger(count=2, sip=0.5, ldp=1.0)
    assert budget.allowance(spent).exhausted
    assert not Horizon(SIP(10.0), 10).allowance(spent).exhausted


@pytest.mark.parametrize("amount", [0.0, -1.0])
def test_a_budget_is_gone_when_nothing_is_left(amount: float) -> None:
    for allowance in (Allowance(amount, None), Allowance(1.0, amount)):
        assert allowance.exhausted
        assert not allowance.useful


def test_crumbs_are_no_use_but_the_budget_is_not_gone() -> None:
    for allowance in (Allowance(USELESS_BELOW / 2, None), Allowance(1.0, USELESS_BELOW / 2)):
        assert not allowance.useful
        assert not allowance.exhausted
    assert Allowance(USELESS_BELOW, USELESS_BELOW).useful


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 2), st.none() | st.floats(0, 2))
def test_an_allowance_covers_what_is_below_both_bounds(
    sip: float, ldp: float, limit: float, cap: float | None
) -> None:
    expected = sip <= limit and ldp <= (math.inf if cap is None else cap)
    assert Allowance(limit, cap).covers(sip, ldp) == expected


def test_a_plain_amount_is_meant_for_every_step() -> None:
    assert as_budget(SIP(0.3)) == PerStep(SIP(0.3))
    window = Window(SIP(1.0), 4)
    assert as_budget(window) is window


def test_only_a_window_needs_single_charges() -> None:
    assert Window(SIP(1.0), 5).memory == 4
    assert Window(SIP(1.0), 1).memory == 0
    for budget in (PerStep(SIP(1.0)), Horizon(SIP(1.0), 5), Geometric(SIP(1.0), 0.5)):
        assert budget.memory == 0


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("amount", [SIP(0.0), SIP(math.inf)])
def test_a_budget_must_be_finite_and_more_than_nothing(amount: SIP) -> None:
    for attempt in (
        lambda: PerStep(amount),
        lambda: Horizon(amount, 3),
        lambda: Window(amount, 3),
        lambda: Geometric(amount, 0.5),
        lambda: PerStep(SIP(1.0), LDP(amount.epsilon)),
    ):
        with pytest.raises(InvalidParameter, match=r"budget\.(sip|ldp) must be finite and greater"):
            attempt()


def test_a_budget_that_may_fail_is_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"budget\.sip\.delta must be 0"):
        PerStep(SIP(1.0, 1e-6))
    with pytest.raises(InvalidParameter, match=r"budget\.ldp\.delta must be 0"):
        Window(SIP(1.0), 3, LDP(1.0, 1e-6))


@pytest.mark.parametrize("count", [0, -1, True])
def test_a_number_of_steps_must_be_one(count: int) -> None:
    with pytest.raises(InvalidParameter, match="steps must be a whole number of at least 1"):
        Horizon(SIP(1.0), count)
    with pytest.raises(InvalidParameter, match="width must be a whole number of at least 1"):
        Window(SIP(1.0), count)


@pytest.mark.parametrize("ratio", [0.0, 1.0, -0.1, 1.1, math.nan])
def test_a_ratio_must_leave_something_and_take_something(ratio: float) -> None:
    with pytest.raises(InvalidParameter, match="ratio must lie strictly between 0 and 1"):
        Geometric(SIP(1.0), ratio)
