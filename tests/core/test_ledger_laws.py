import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato import LDP, SIP, Horizon, Ledger, PerStep, Window
from sfumato.core.allowance_loops import AllowanceRule, allowance
from sfumato.core.budgets import FLOOR, Budget
from sfumato.core.ledger import Charge, Ledgers, sum_up
from sfumato.stream import Geometric

amounts = st.one_of(st.just(0.0), st.floats(1e-12, 2.0), st.just(5e-324))
charges = st.builds(Charge, amounts, amounts)
totals = st.floats(1e-9, 40.0)
caps = st.none() | st.builds(LDP, totals)
budgets: st.SearchStrategy[Budget] = st.one_of(
    st.builds(PerStep, st.builds(SIP, totals), caps),
    st.builds(Horizon, st.builds(SIP, totals), st.integers(1, 12), caps),
    st.builds(Window, st.builds(SIP, totals), st.integers(1, 6), caps),
    st.builds(Geometric, st.builds(SIP, totals), st.floats(0.01, 0.99), caps),
)
histories = st.lists(st.lists(st.none() | charges, min_size=4, max_size=4), max_size=14)


def run(history: list[list[Charge | None]], keep: int) -> tuple[Ledgers, list[Ledger]]:
    """Four accounts side by side; None: the stream does not move in that round."""
    ledgers, singles = Ledgers(4, keep), [Ledger() for _ in range(4)]
    for row in history:
        moved = [(stream, charge) for stream, charge in enumerate(row) if charge is not None]
        which = np.array([stream for stream, _ in moved], dtype=np.int64)
        paid = np.array([(c.sip, c.ldp) for _, c in moved]).reshape(-1, 2)
        ledgers.charge(which[::-1].copy(), paid[::-1].copy())
        for stream, charge in moved:
            singles[stream] = singles[stream].charged(charge, keep)
    return ledgers, singles


@given(histories, st.integers(0, 5))
def test_accounts_side_by_side_are_the_accounts_alone(
    history: list[list[Charge | None]], keep: int
) -> None:
    ledgers, singles = run(history, keep)
    assert [ledgers[stream] for stream in range(4)] == singles


@settings(max_examples=300)
@given(budgets, histories)
def test_allowances_of_many_are_the_allowances_of_each(
    budget: Budget, history: list[list[Charge | None]]
) -> None:
    ledgers, singles = run(history, budget.memory)
    which = np.array([2, 0, 3])
    due = [budget.allowance(singles[stream]) for stream in which]
    assert budget.allowances(ledgers, which).tolist() == [
        [one.sip, math.inf if one.ldp is None else one.ldp] for one in due
    ]


def assert_loops_allow_the_same(
    budget: Budget, history: list[list[Charge | None]], values: int
) -> None:
    ledgers, singles = run(history, budget.memory)
    rule = AllowanceRule.of(budget, (math.inf, math.inf), values)
    for stream, ledger in enumerate(singles):
        due = budget.allowance(ledger, values, values)
        count, spent, recent = ledgers.counts[stream], ledgers.spent[stream], ledgers.recent
        found = [
            allowance(rule.counts, rule.amounts, count, spent[kind], recent, stream, kind)
            for kind in range(2)
        ]
        assert found == [due.sip, math.inf if due.ldp is None else due.ldp]


@settings(max_examples=300)
@given(budgets, histories, st.integers(1, 3))
def test_allowances_in_loops_are_those_of_the_rule(
    budget: Budget, history: list[list[Charge | None]], values: int
) -> None:
    assert_loops_allow_the_same(budget, history, values)


@pytest.mark.parametrize("values", [1, 2, 3])
def test_loops_keep_back_what_later_steps_of_a_window_need(values: int) -> None:
    """Where a large charge leaves hardly more than that; at random this hardly ever comes."""
    budget, kept_back = Window(SIP(1.0), 6, LDP(2.0)), 0
    for part in np.linspace(0.0, 1.0, 101).tolist():
        paid = Charge(part, 2 * part)
        assert_loops_allow_the_same(budget, [[paid, None, paid, None]], values)
        due = budget.allowance(Ledger().charged(paid, budget.memory), values, values).sip
        kept_back += due < min(FLOOR / 6, 1 - part)
    assert kept_back > 0


@given(histories, st.integers(0, 5))
def test_an_account_goes_on_from_where_it_was_put(
    history: list[list[Charge | None]], keep: int
) -> None:
    _, singles = run(history, keep)
    again = Ledgers(4, keep)
    again.recent[:] = 9.0  # left from somebody else
    for stream, ledger in enumerate(singles):
        again[stream] = ledger
    assert [again[stream] for stream in range(4)] == singles
    paid = np.array([[0.25, 0.5]])
    again.charge(np.array([1]), paid)
    assert again[1] == singles[1].charged(Charge(0.25, 0.5), keep)
    assert again[0] == singles[0]


@given(amounts, amounts)
def test_sums_are_never_below_the_exact_ones(left: float, right: float) -> None:
    total = Fraction(float(sum_up(np.array([left]), np.array([right]))[0]))
    exact = Fraction(left) + Fraction(right)
    assert total >= exact
    if left == 0.0 or right == 0.0:
        assert total == exact


@pytest.mark.parametrize(
    "budget",
    [PerStep(SIP(1.0)), Horizon(SIP(1.0), 5), Window(SIP(1.0), 3), Geometric(SIP(1.0), 0.5)],
)
@pytest.mark.parametrize("values", [1, 2, 7])
def test_no_cap_is_infinite(budget: Budget, values: int) -> None:
    ledgers = Ledgers(2, budget.memory)
    ledgers.charge(np.array([0]), np.array([[0.25, 0.5]]))
    due = budget.allowances(ledgers, np.arange(2), values)
    assert due[:, 1].tolist() == [math.inf, math.inf]


def test_accounts_take_the_same_memory_for_ever() -> None:
    ledgers = Ledgers(3, keep=2)
    before = [array.nbytes for array in (ledgers.counts, ledgers.spent, ledgers.recent)]
    for _ in range(100):
        ledgers.charge(np.arange(3), np.full((3, 2), 0.1))
    after = [array.nbytes for array in (ledgers.counts, ledgers.spent, ledgers.recent)]
    assert after == before
