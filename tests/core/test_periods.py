"""Periods of event time, held against a calendar that counts by names; and budgets for them."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import LDP, SIP, Ledger, PerPeriod
from sfumato.core.allowance_loops import AllowanceRule
from sfumato.core.budgets import USELESS_BELOW
from sfumato.core.errors import InvalidParameter
from sfumato.core.ledger import Charge, Ledgers
from sfumato.core.periods import NAMES, Period
from tests.oracles.period_sums import period_name

KINDS = [*NAMES, "1", "90", "900", "86400"]
MOMENTS = st.datetimes(datetime(1, 1, 8), datetime(9999, 12, 1))
DAY = Period("day")


@given(st.sampled_from(KINDS), st.lists(MOMENTS, min_size=2, max_size=6))
def test_moments_share_a_number_just_where_a_calendar_gives_them_one_name(
    kind: str, moments: list[datetime]
) -> None:
    moments.sort()
    told = [Period(kind).at(moment) for moment in moments]
    names = [period_name(kind, moment.isoformat()) for moment in moments]
    assert told == sorted(told)
    for (one, other), (name, another) in zip(pairwise(told), pairwise(names), strict=True):
        assert (one == other) == (name == another)


@pytest.mark.parametrize("kind", KINDS)
@given(moment=MOMENTS)
def test_microseconds_and_moments_lie_in_the_same_period(kind: str, moment: datetime) -> None:
    micros = (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
    assert Period(kind).at_microsecond(micros) == Period(kind).at(moment)


@given(st.sampled_from(KINDS), MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_a_moment_with_a_zone_lies_where_it_does_in_utc(
    kind: str, moment: datetime, minutes: int
) -> None:
    elsewhere = moment.replace(tzinfo=UTC).astimezone(timezone(timedelta(minutes=minutes)))
    assert Period(kind).at(elsewhere) == Period(kind).at(moment)


def test_weeks_begin_on_mondays_and_months_on_their_first_days() -> None:
    week, month = Period("week"), Period("month")
    assert week.at(datetime(2024, 5, 5, 23, 59, 59)) + 1 == week.at(datetime(2024, 5, 6))
    assert month.at(datetime(2024, 2, 29, 23, 59)) + 1 == month.at(datetime(2024, 3, 1))


@given(st.decimals(-(10**18), 10**18, places=6), st.integers(1, 10**6))
def test_numbers_are_counted_exactly(number: Decimal, length: int) -> None:
    index = Period(str(length)).at(number)
    assert index * length <= Fraction(number) < (index + 1) * length


@pytest.mark.parametrize("name", ["", "0", "01", "-5", "2.5", "fortnight", "Day", "٣", "9" * 30])
def test_what_is_no_period_is_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match="the period must be"):
        Period(name)


def test_a_number_lies_in_no_day_and_far_numbers_in_no_period() -> None:
    with pytest.raises(InvalidParameter, match="be a date or a moment"):
        DAY.at(Decimal(7))
    with pytest.raises(InvalidParameter, match="2\\^62"):
        Period("1").at(Decimal(10) ** 27)
    with pytest.raises(InvalidParameter, match="years 1 to 9999"):
        Period("month").at_microsecond(10**18)


# -- the budget ------------------------------------------------------------------------------------

BUDGETS = st.builds(
    lambda total, steps, cap, ldp: PerPeriod(
        SIP(total),
        DAY,
        steps,
        None if cap is None and steps is not None else SIP(cap or 0.5),
        None if ldp is None else LDP(ldp),
    ),
    st.floats(0.1, 20),
    st.none() | st.integers(1, 12),
    st.none() | st.floats(0.01, 3),
    st.none() | st.floats(0.1, 20),
)


@given(BUDGETS, st.lists(st.floats(0, 1), max_size=40))
def test_no_period_is_passed_whatever_part_of_their_allowances_steps_use(
    budget: PerPeriod, parts: list[float]
) -> None:
    ledger, sums = Ledger(), [Fraction(0), Fraction(0)]
    for part in parts:
        due = budget.allowance(ledger)
        if due.exhausted:
            break
        ldp = due.sip if due.ldp is None else min(due.ldp, 2 * due.sip)
        charge = Charge(part * min(due.sip, ldp), part * ldp)
        assert due.covers(charge.sip, charge.ldp)
        assert budget.cap is None or due.sip <= budget.cap.epsilon
        sums = [sums[0] + Fraction(charge.sip), sums[1] + Fraction(charge.ldp)]
        ledger = ledger.charged(charge, budget.memory)
        assert sums[0] <= Fraction(ledger.sip) <= Fraction(budget.sip.epsilon)
        assert budget.ldp is None or sums[1] <= Fraction(ledger.ldp) <= budget.ldp.epsilon


@given(BUDGETS, st.integers(0, 15), st.floats(0, 1))
def test_many_streams_may_what_each_alone_may(budget: PerPeriod, steps: int, part: float) -> None:
    ledger, ledgers = Ledger(), Ledgers(2, budget.memory)
    for _ in range(steps):
        due = budget.allowance(ledger)
        spent = part * (due.sip if due.ldp is None else min(due.sip, due.ldp))
        ledger = ledger.charged(Charge(spent, spent), budget.memory)
    ledgers[1] = ledger
    for row, alone in zip(
        budget.allowances(ledgers, np.array([0, 1])), (Ledger(), ledger), strict=True
    ):
        due = budget.allowance(alone)
        assert row.tolist() == [due.sip, np.inf if due.ldp is None else due.ldp]


def test_all_of_it_can_be_used_and_then_it_is_gone() -> None:
    budget, ledger = PerPeriod(SIP(2.0), DAY, cap=SIP(0.5)), Ledger()
    for _ in range(4):
        due = budget.allowance(ledger)
        assert 0.5 - 1e-14 < due.sip <= 0.5
        ledger = ledger.charged(Charge(due.sip, due.sip), 0)
    assert budget.allowance(ledger).exhausted
    crumbs = ledger.charged(Charge(0.0, 0.0), 0)
    assert budget.sip.epsilon - crumbs.sip < USELESS_BELOW


def test_values_beyond_those_expected_share_what_is_left() -> None:
    budget = PerPeriod(SIP(1.0), DAY, steps=4)
    silent = Ledger(count=9, sip=0.25, ldp=0.25)
    assert budget.allowance(silent).sip == pytest.approx(0.75)
    assert budget.allowance(Ledger(count=2, sip=0.5, ldp=0.5)).sip == pytest.approx(0.25)


@pytest.mark.parametrize(
    "given",
    [{}, {"steps": 0}, {"cap": SIP(0.0)}, {"cap": SIP(0.5, 1e-6)}, {"steps": 2, "ldp": LDP(0.0)}],
)
def test_what_is_no_budget_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        PerPeriod(SIP(1.0), DAY, **given)  # type: ignore[arg-type]


def test_compiled_loops_refuse_it() -> None:
    with pytest.raises(InvalidParameter, match="loops do not know when a value was"):
        AllowanceRule.of(PerPeriod(SIP(1.0), DAY, steps=2), (np.inf, np.inf), 1)
