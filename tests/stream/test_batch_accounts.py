"""Allowances of batches: a step is a value, whatever the length of the batch it leaves in."""

from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from sfumato import LDP, SIP, Horizon, Ledger, PerStep, Window
from sfumato.core.budgets import Allowance, Budget, PerPeriod
from sfumato.core.ledger import FREE, Charge
from sfumato.stream import Geometric

totals = st.floats(0.01, 100.0)
parts = st.one_of(st.just(1.0), st.just(0.0), st.floats(0.0, 1.0))
batches = st.lists(st.tuples(st.integers(1, 7), parts), min_size=1, max_size=30)
"""Lengths of batches, and which part of its allowance each uses."""

Spent = list[tuple[int, Charge]]


def run(budget: Budget, told: Sequence[tuple[int, float]]) -> Spent:
    """Charge batches a part of what they may leak; a batch that may leak nothing stays silent."""
    ledger = Ledger()
    spent: Spent = []
    for length, part in told:
        allowance = budget.allowance(ledger, length)
        charge = FREE
        if allowance.exhausted:
            event("exhausted")
        else:
            ldp = allowance.sip if allowance.ldp is None else allowance.ldp
            charge = Charge(part * min(allowance.sip, ldp), part * ldp)
            assert allowance.covers(charge.sip, charge.ldp)
        spent.append((length, charge))
        ledger = ledger.charged(charge, budget.memory, length)
        assert len(ledger.recent) <= budget.memory
    assert ledger.count == sum(length for length, _ in told)
    return spent


def exact(amounts: Sequence[float]) -> Fraction:
    return sum((Fraction(amount) for amount in amounts), start=Fraction(0))


def together(spent: Spent) -> tuple[Fraction, Fraction]:
    return exact([c.sip for _, c in spent]), exact([c.ldp for _, c in spent])


def touching(spent: Spent, first: int, last: int) -> Spent:
    """Batches with at least one value among those from `first` to `last`."""
    found, start = [], 0
    for length, charge in spent:
        if any(first <= value <= last for value in range(start, start + length)):
            found.append((length, charge))
        start += length
    return found


def check_windows(spent: Spent, width: int, sip: float, ldp: float) -> None:
    values = sum(length for length, _ in spent)
    for first in range(1 - width, values):
        inside = together(touching(spent, first, first + width - 1))
        assert inside[0] <= Fraction(sip)
        assert inside[1] <= Fraction(ldp)


# Promises ----------------------------------------------------------------------------------------


@given(totals, batches)
def test_a_batch_may_leak_what_its_values_may(amount: float, told: list[tuple[int, float]]) -> None:
    for length, charge in run(PerStep(SIP(amount), LDP(2 * amount)), told):
        assert Fraction(charge.sip) <= length * Fraction(amount)
        assert Fraction(charge.ldp) <= length * Fraction(2 * amount)


@given(totals, st.integers(1, 60), batches)
def test_a_horizon_is_never_passed(total: float, steps: int, told: list[tuple[int, float]]) -> None:
    spent = run(Horizon(SIP(total), steps, LDP(1.5 * total)), told)
    sip, ldp = together(spent)
    assert sip <= Fraction(total)
    assert ldp <= Fraction(1.5 * total)
    begun = 0
    for length, charge in spent:
        assert begun < steps or charge == FREE
        begun += length


@given(totals, st.integers(1, 12), batches)
def test_batches_with_a_value_in_one_window_stay_within_its_total(
    total: float, width: int, told: list[tuple[int, float]]
) -> None:
    spent = run(Window(SIP(total), width, LDP(1.5 * total)), told)
    check_windows(spent, width, total, 1.5 * total)


@given(totals, st.floats(0.001, 0.999), batches)
def test_an_endless_stream_stays_within_its_total(
    total: float, ratio: float, told: list[tuple[int, float]]
) -> None:
    sip, ldp = together(run(Geometric(SIP(total), ratio, LDP(1.5 * total)), told))
    assert sip <= Fraction(total)
    assert ldp <= Fraction(1.5 * total)


@given(totals, st.integers(1, 12), batches)
def test_sums_in_the_ledger_are_never_below_those_of_the_charges(
    total: float, width: int, told: list[tuple[int, float]]
) -> None:
    budget = Window(SIP(total), width)
    ledger = Ledger()
    spent = run(budget, told)
    for length, charge in spent:
        ledger = ledger.charged(charge, budget.memory, length)
    sip, ldp = together(spent)
    assert sip <= Fraction(ledger.sip) <= sip * (1 + Fraction(1, 10**12))
    assert ldp <= Fraction(ledger.ldp) <= ldp * (1 + Fraction(1, 10**12))


# Use ---------------------------------------------------------------------------------------------


@given(totals, st.integers(1, 12), st.integers(1, 5))
def test_a_horizon_used_fully_is_used_up_and_evenly(total: float, count: int, length: int) -> None:
    spent = run(Horizon(SIP(total), count * length), [(length, 1.0)] * (count + 2))
    assert [charge == FREE for _, charge in spent] == [False] * count + [True] * 2
    for _, charge in spent[:count]:
        assert charge.sip == pytest.approx(total / count, rel=1e-9)


@given(totals, st.integers(1, 20), st.integers(1, 5))
def test_a_window_used_fully_gives_every_batch_the_same(
    total: float, width: int, length: int
) -> None:
    spent = run(Window(SIP(total), width), [(length, 1.0)] * 30)
    most = max(len(touching(spent, t, t + width - 1)) for t in range(5, 5 + length))
    for _, charge in spent:
        assert charge.sip == pytest.approx(total / most, rel=1e-9)


@given(totals, st.floats(0.1, 0.95), st.integers(1, 6))
def test_an_endless_stream_shrinks_by_value_not_by_batch(
    total: float, ratio: float, length: int
) -> None:
    spent = run(Geometric(SIP(total), ratio), [(length, 1.0)])
    single = run(Geometric(SIP(total), ratio), [(1, 1.0)] * length)
    assert together(spent)[0] == pytest.approx(float(together(single)[0]), rel=1e-9)


def test_a_horizon_is_shared_by_the_values_that_are_left() -> None:
    budget = Horizon(SIP(1.0), 10)
    ledger = Ledger().charged(FREE, 0, 4)
    assert budget.allowance(ledger, 3).sip == pytest.approx(0.5, rel=1e-12)
    assert budget.allowance(ledger, 6).sip == 1.0
    assert budget.allowance(ledger.charged(FREE, 0, 6), 1).exhausted


def test_a_window_forgives_a_batch_when_its_last_value_has_left() -> None:
    budget = Window(SIP(1.0), 4)
    ledger = Ledger().charged(Charge(1.0, 1.0), budget.memory, 5)
    for _ in range(3):
        assert budget.allowance(ledger, 2).exhausted
        ledger = ledger.charged(FREE, budget.memory)
    assert not budget.allowance(ledger, 2).exhausted


# Batches of one value ----------------------------------------------------------------------------


@given(
    totals,
    st.integers(1, 9),
    st.floats(0.05, 0.95),
    st.lists(parts, max_size=12),
    st.none() | st.floats(0.01, 100.0),
)
def test_one_value_may_leak_what_it_could_without_batches(
    total: float, width: int, ratio: float, used: list[float], cap: float | None
) -> None:
    ldp = None if cap is None else LDP(cap)
    for budget in (
        PerStep(SIP(total), ldp),
        Horizon(SIP(total), width, ldp),
        Window(SIP(total), width, ldp),
        Geometric(SIP(total), ratio, ldp),
    ):
        ledger = Ledger()
        for part in used:
            one: Allowance = budget.allowance(ledger)
            assert budget.allowance(ledger, 1) == one
            assert one.sip == pytest.approx(_plain(budget, ledger, total), rel=1e-9, abs=1e-12)
            if one.exhausted:
                break
            sip = part * (one.sip if one.ldp is None else min(one.sip, one.ldp))
            charge = Charge(sip, sip)
            assert ledger.charged(charge, budget.memory) == ledger.charged(charge, budget.memory, 1)
            ledger = ledger.charged(charge, budget.memory)


def _plain(budget: Budget, ledger: Ledger, total: float) -> float:
    """What one step may leak, by the words of each rule."""
    left = max(0.0, total - ledger.sip)
    match budget:
        case PerStep():
            return total
        case Horizon():
            return left / (budget.steps - ledger.count) if ledger.count < budget.steps else 0.0
        case Geometric():
            return (1 - budget.ratio) * left
        case PerPeriod():
            return left
        case Window():
            known = ledger.recent[len(ledger.recent) - budget.memory :] if budget.memory else ()
            known = ledger.recent if len(ledger.recent) < budget.memory else known
            past = [charge.sip for charge in known]
            share = total / budget.width
            wish = share + (share * len(past) - sum(past)) / budget.width
            # Every window with this step keeps half a share for each of its steps to come.
            windows = [
                past[len(past) - back :] for back in range(min(len(past), budget.memory) + 1)
            ]
            kept = [
                total - sum(window) - 0.5 * share * (budget.memory - len(window))
                for window in windows
            ]
            return min(max(wish, 0.5 * share), *kept)


# Planted bugs ------------------------------------------------------------------------------------


def test_a_batch_charged_at_its_first_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(self: Ledger, charge: Charge, keep: int, values: int = 1) -> Ledger:
        recent = (*self.recent, charge, *[FREE] * (values - 1))
        sums = self.count + values, self.sip + charge.sip, self.ldp + charge.ldp
        return Ledger(*sums, recent[-keep:] if keep else ())

    told = [(3, 1.0), (1, 1.0), (4, 1.0), (2, 1.0)] * 3
    check_windows(run(Window(SIP(1.0), 3, LDP(2.0)), told), 3, 1.0, 2.0)
    monkeypatch.setattr(Ledger, "charged", early)
    with pytest.raises(AssertionError):
        check_windows(run(Window(SIP(1.0), 3, LDP(2.0)), told), 3, 1.0, 2.0)
