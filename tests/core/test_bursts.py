"""Budgets in bursts: within their totals, one pause after every charge, never gone too early."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import LDP, SIP, Horizon, Ledger, Window
from sfumato.core.budgets import Allowance
from sfumato.core.bursts import Bursts, WindowBursts, spread_out
from sfumato.core.errors import InvalidParameter
from sfumato.core.ledger import FREE, Charge, Ledgers

totals = st.floats(0.01, 100.0)
gaps = st.integers(1, 9)
firsts = st.sampled_from([0.5, 1.0, 1.3, 4.0])
uses = st.lists(st.sampled_from([0.0, 1e-12, 0.5, 1.0]), min_size=60, max_size=60)
"""Which part of its allowance each step uses."""
Told = list[tuple[int, Allowance, Charge]]


def run(budget: Bursts | WindowBursts, parts: list[float], longest: int = 1) -> Told:
    """Lengths, allowances and charges of batches of random length, until the budget is gone."""
    draw, ledger, told = np.random.default_rng(7), Ledger(), Told()
    for part in parts:
        length = int(draw.integers(1, longest + 1))
        due = budget.allowance(ledger, length, longest)
        if due.exhausted:
            break
        charge = Charge(part * due.sip, part * (due.sip if due.ldp is None else due.ldp))
        told.append((length, due, charge))
        ledger = ledger.charged(charge, budget.memory, length)
    return told


def exact(amounts: list[float]) -> Fraction:
    return sum((Fraction(amount) for amount in amounts), start=Fraction(0))


# Promises ----------------------------------------------------------------------------------------


@given(totals, st.integers(1, 50), gaps, firsts, st.integers(1, 4), uses)
def test_a_total_is_never_passed_and_lasts_to_its_last_step(
    total: float, steps: int, every: int, first: float, longest: int, parts: list[float]
) -> None:
    budget = Bursts(SIP(total), steps, LDP(1.5 * total), every, first)
    told = run(budget, parts, longest)
    assert exact([charge.sip for _, _, charge in told]) <= Fraction(total)
    assert exact([charge.ldp for _, _, charge in told]) <= Fraction(1.5 * total)
    values = sum(length for length, _, _ in told)
    assert values >= min(steps, len(parts)) - longest + 1
    assert longest > 1 or len(told) == min(steps, len(parts))


@given(totals, st.integers(1, 20), gaps, st.integers(1, 5), uses)
def test_no_window_is_ever_passed(
    total: float, width: int, every: int, longest: int, parts: list[float]
) -> None:
    told = run(WindowBursts(SIP(total), width, LDP(1.5 * total), every), parts, longest)
    assert len(told) == len(parts)
    ends = np.cumsum([length for length, _, _ in told])
    starts = ends - [length for length, _, _ in told]
    for first in range(int(ends[-1])):
        inside = [
            t[2]
            for t, a, e in zip(told, starts, ends, strict=True)
            if a < first + width and e > first
        ]
        assert exact([charge.sip for charge in inside]) <= Fraction(total)
        assert exact([charge.ldp for charge in inside]) <= Fraction(1.5 * total)


@given(totals, gaps, uses, st.booleans())
def test_a_pause_follows_a_charge_and_nothing_else(
    total: float, every: int, parts: list[float], window: bool
) -> None:
    budget = (
        WindowBursts(SIP(total), 12, None, every) if window else Bursts(SIP(total), 60, None, every)
    )
    told = run(budget, parts)
    since = every
    for _, due, charge in told:
        assert due.pause == (since < every)
        assert due.pause or due.useful
        assert not due.pause or (due.sip, due.exhausted, due.useful) == (0.0, False, False)
        since = 1 if charge.sip > 0 else since + 1


@pytest.mark.parametrize("values", [1, 3])
@pytest.mark.parametrize(
    "budget",
    [
        Bursts(SIP(5.0), 40, None, 4, 1.3),
        Bursts(SIP(0.3), 100, LDP(0.4), 7),
        Bursts(SIP(3.0), 30, LDP(4.0), 2, 1.0, SIP(0.2)),
        WindowBursts(SIP(5.0), 10, None, 3),
        WindowBursts(SIP(5.0), 10, LDP(6.0), 25, SIP(1.5)),
    ],
    ids=str,
)
def test_many_streams_get_bit_for_bit_what_each_would(
    budget: Bursts | WindowBursts, values: int
) -> None:
    draw = np.random.default_rng(3)
    ledgers, singles = Ledgers(4, budget.memory), [Ledger()] * 4
    for step in range(40):
        which = draw.permutation(4)[: 1 + step % 4]
        due = budget.allowances(ledgers, which, values)
        pauses = budget.pauses(ledgers, which, values)
        for stream, row, pause in zip(which.tolist(), due, pauses, strict=True):
            alone = budget.allowance(singles[stream], values, values)
            cap = np.inf if alone.ldp is None else alone.ldp
            assert (alone.sip, cap, alone.pause) == (*row, pause)
        used = draw.choice([0.0, 1e-13, 0.7, 1.0], len(which))[:, None]
        charges = used * np.where(np.isinf(due), due[:, :1], due)
        ledgers.charge(which, charges, values)
        for stream, charge in zip(which.tolist(), charges.tolist(), strict=True):
            singles[stream] = singles[stream].charged(Charge(*charge), budget.memory, values)


# Use ---------------------------------------------------------------------------------------------


def test_bursts_share_a_total_and_the_first_gets_its_multiple() -> None:
    told = run(Bursts(SIP(3.0), 12, None, 4, first=2.0), [1.0] * 12)
    spent = [charge.sip for _, _, charge in told]
    assert [place for place, amount in enumerate(spent) if amount] == [0, 4, 8]
    assert [spent[0], spent[4], spent[8]] == pytest.approx([1.5, 0.75, 0.75], rel=1e-12)


def test_a_burst_waits_for_a_step_that_tells_something() -> None:
    budget, ledger = Bursts(SIP(3.0), 12, None, 6), Ledger()
    for _ in range(3):
        assert budget.allowance(ledger).useful
        ledger = ledger.charged(FREE, budget.memory)
    assert budget.allowance(ledger).sip == pytest.approx(1.5)


def test_a_cap_holds_for_every_value_and_hands_the_rest_on() -> None:
    told = run(Bursts(SIP(3.0), 12, None, 4, cap=SIP(0.4)), [1.0] * 12)
    assert max(charge.sip for _, _, charge in told) == 0.4
    assert Bursts(SIP(3.0), 12, None, 4, cap=SIP(0.4)).allowance(Ledger(), 2).sip == 0.8
    assert WindowBursts(SIP(3.0), 12, None, 4, cap=SIP(0.4)).allowance(Ledger()).sip == 0.4


@pytest.mark.parametrize("batch", [1, 3])
def test_nothing_ever_leaks_more_than_the_most_at_once(batch: int) -> None:
    for budget in (
        Bursts(SIP(3.0), 30, None, 4),
        Bursts(SIP(3.0), 30, None, 4, 9.0, SIP(0.3)),
        WindowBursts(SIP(3.0), 10, None, 4),
    ):
        told = run(budget, [1.0] * 30, batch)
        assert max(due.sip for _, due, _ in told) <= budget.most_at_once(batch)


def test_a_budget_is_spread_out_or_left_alone() -> None:
    horizon, window = Horizon(SIP(3.0), 12, LDP(4.0)), Window(SIP(3.0), 12)
    assert spread_out(horizon, 1) is horizon
    assert spread_out(horizon, 4, 1.3) == Bursts(SIP(3.0), 12, LDP(4.0), 4, 1.3)
    assert spread_out(window, 4) == WindowBursts(SIP(3.0), 12, None, 4)
    with pytest.raises(InvalidParameter, match="first must be 1: a window has no first burst"):
        spread_out(window, 4, 1.3)


def test_the_largest_first_burst_leaves_something_for_the_others() -> None:
    assert len(run(Bursts(SIP(6.0), 40, None, 5, 1_000.0), [1.0] * 40)) == 40


# Bad input ---------------------------------------------------------------------------------------


def test_pauses_and_caps_must_be_numbers_that_mean_something() -> None:
    for every in (0, -1, True):
        with pytest.raises(InvalidParameter, match="every must be a whole number of at least 1"):
            Bursts(SIP(1.0), 5, None, every)
        with pytest.raises(InvalidParameter, match="every must be a whole number of at least 1"):
            WindowBursts(SIP(1.0), 5, None, every)
    with pytest.raises(InvalidParameter, match="every must be at most 100,000"):
        WindowBursts(SIP(1.0), 5, None, 100_001)
    with pytest.raises(InvalidParameter, match="first must be finite and greater"):
        Bursts(SIP(1.0), 5, None, 2, 0.0)
    with pytest.raises(InvalidParameter, match=r"first must be at most 1,000, so that something"):
        Bursts(SIP(1.0), 5, None, 2, 1e17)
    with pytest.raises(InvalidParameter, match="cap must be finite and greater"):
        Bursts(SIP(1.0), 5, None, 2, 1.0, SIP(0.0))
    with pytest.raises(InvalidParameter, match=r"cap\.delta must be 0"):
        WindowBursts(SIP(1.0), 5, None, 2, SIP(1.0, 0.1))
